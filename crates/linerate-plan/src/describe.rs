//! A plan as text for people, 80 columns wide.

use std::fmt::Write;

use linerate_model::experiment::{Cell, Experiment, Factor, Level};
use linerate_model::plan::{LeftOut, Plan, Trial};
use linerate_model::unit::Nanos;
use linerate_model::workload::{Direction, Traffic};

/// Width of the text.
const COLUMNS: usize = 80;

/// Returns `plan` as text: the experiments with their cells, the estimate, what is left out.
pub fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    for experiment in &plan.experiments {
        let trials: Vec<&Trial> = plan
            .trials
            .iter()
            .filter(|trial| trial.experiment == experiment.name)
            .collect();
        describe_experiment(&mut text, experiment, &trials);
    }
    let phases: u64 = plan.trials.iter().map(|trial| trial.timing.total().0).sum();
    line(
        &mut text,
        "",
        &format!(
            "{} trials take {}: {} in their phases, {} around them.",
            plan.trials.len(),
            plan.estimate,
            Nanos(phases),
            Nanos(plan.estimate.0.saturating_sub(phases)),
        ),
    );
    let budget = match plan.budget {
        Some(budget) => format!("The budget is {budget}."),
        None => "There is no budget: the files are taken as they are.".to_owned(),
    };
    line(
        &mut text,
        "",
        &format!("{budget} The seed is {}.", plan.seed),
    );
    describe_left_out(&mut text, &plan.left_out);
    text
}

fn describe_experiment(text: &mut String, experiment: &Experiment, trials: &[&Trial]) {
    let chapter = experiment
        .chapter
        .map(|chapter| format!("Chapter {chapter} · "))
        .unwrap_or_default();
    line(
        text,
        "",
        &format!("{chapter}{} ({})", experiment.title, experiment.name),
    );
    line(text, "  ", &experiment.question);
    line(text, "  ", &workload_words(experiment));
    let cells = cells_in_order(experiment, trials);
    let timing = experiment.timing;
    line(
        text,
        "  ",
        &format!(
            "{} trials = {} cells × {} replicates, each {} settle + {} warm-up + {} measured \
             + {} drain",
            trials.len(),
            cells.len(),
            experiment.replicates,
            timing.settle,
            timing.warm_up,
            timing.measure,
            timing.drain,
        ),
    );
    describe_cells(text, experiment, &cells);
    text.push('\n');
}

/// Returns the cells that `trials` measure, sorted by the order of factors and levels.
fn cells_in_order<'a>(experiment: &Experiment, trials: &[&'a Trial]) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.replicate == 1) {
        cells.push(&trial.cell);
    }
    let position = |cell: &Cell| -> Vec<Option<usize>> {
        experiment
            .factors
            .iter()
            .map(|(factor, levels)| {
                let level = cell.get(factor)?;
                levels.iter().position(|other| other == level)
            })
            .collect()
    };
    cells.sort_by_key(|cell| position(cell));
    cells
}

/// Appends a table: one column a factor, one row a cell.
fn describe_cells(text: &mut String, experiment: &Experiment, cells: &[&Cell]) {
    let heads: Vec<&str> = experiment.factors.iter().map(|(f, _)| f.title()).collect();
    if heads.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            let word = |factor| cell.get(factor).map_or("–".to_owned(), ToString::to_string);
            experiment
                .factors
                .iter()
                .map(|(factor, _)| word(factor))
                .collect()
        })
        .collect();
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([heads[at].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut row = |cells: &[&str]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        let _ = writeln!(text, "    {}", padded.join("  "));
    };
    row(&heads);
    for cells in &rows {
        row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Returns what does not vary: the traffic, the connections and the socket options that are set.
fn workload_words(experiment: &Experiment) -> String {
    let varies = |factor| experiment.factors.iter().any(|entry| entry.0 == factor);
    let workload = &experiment.workload;
    let options = &workload.options;
    let mut words = Vec::new();
    let mut fixed = |factor: Factor, value: Option<String>| {
        if let (false, Some(value)) = (varies(factor), value) {
            words.push(format!("{} {value}", factor.title()));
        }
    };
    let kind = match &workload.traffic {
        Traffic::Stream {
            direction,
            message_bytes,
        } => {
            let direction = match direction {
                Direction::ToServer => "to-server",
                Direction::FromServer => "from-server",
                Direction::Both => "both",
            };
            fixed(Factor::Direction, Some(direction.to_owned()));
            fixed(Factor::MessageBytes, Some(message_bytes.to_string()));
            "stream"
        }
        Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes,
        } => {
            if !varies(Factor::PayloadBytes) {
                fixed(Factor::RequestBytes, Some(request_bytes.to_string()));
                fixed(Factor::ResponseBytes, Some(response_bytes.to_string()));
            }
            fixed(Factor::RequestWrites, Some(request_writes.to_string()));
            "request/response"
        }
    };
    fixed(Factor::Connections, Some(workload.connections.to_string()));
    fixed(Factor::Clients, Some(workload.clients.to_string()));
    let switch = |on: bool| Level::Switch(on).to_string();
    fixed(
        Factor::SocketBuffer,
        options.socket_buffer.map(|size| size.to_string()),
    );
    fixed(Factor::Nagle, options.nagle.map(switch));
    fixed(Factor::DelayedAck, options.delayed_ack.map(switch));
    fixed(Factor::Congestion, options.congestion.clone());
    fixed(
        Factor::MssBytes,
        options.mss_bytes.map(|mss| mss.to_string()),
    );
    format!("{kind}: {}", words.join(", "))
}

fn describe_left_out(text: &mut String, left_out: &[LeftOut]) {
    if left_out.is_empty() {
        return;
    }
    text.push('\n');
    line(text, "", "Left out:");
    for left in left_out {
        line(text, "  ", &format!("{}: {}", left.what, left.why));
    }
}

/// Appends `words` broken into lines of at most [`COLUMNS`], the later ones further in.
fn line(text: &mut String, indent: &str, words: &str) {
    let mut current = indent.to_owned();
    let mut empty = true;
    for word in words.split(' ') {
        if !empty && current.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(text, "{current}");
            current = format!("{indent}  ");
            empty = true;
        }
        if !empty {
            current.push(' ');
        }
        current.push_str(word);
        empty = false;
    }
    let _ = writeln!(text, "{current}");
}
