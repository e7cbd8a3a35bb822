//! A plan as text for people, 80 columns wide.

use std::collections::BTreeSet;
use std::fmt::Write;

use linerate_model::condition::Condition;
use linerate_model::experiment::{
    Cell, DesignKind, Experiment, Factor, Level, Search, joined_titles,
};
use linerate_model::finding::{Decidable, DecidableAt, FOUND_SHARE, NOISES};
use linerate_model::fraction::Fraction;
use linerate_model::group::GroupName;
use linerate_model::number;
use linerate_model::plan::Plan;
use linerate_model::response::name;
use linerate_model::text::{fit, wrap};
use linerate_model::unit::{Nanos, Unit};
use linerate_model::workload::Workload;

use crate::group::{FactorGroup, groups};

/// Width of the text.
const COLUMNS: usize = 80;

/// Width of what is compared, beside what it can decide.
const COMPARED_COLUMNS: usize = 28;

/// Returns `plan` as text: a table of the experiments, each with its cells, what its comparisons can decide, and what is
/// left out. What they can decide may not be known.
pub fn describe(plan: &Plan, decidable: Option<&[Decidable]>) -> String {
    let mut text = String::new();
    describe_totals(&mut text, plan);
    for experiment in &plan.experiments {
        text.push('\n');
        describe_experiment(&mut text, experiment);
    }
    match decidable {
        Some(decidable) => describe_decidable(&mut text, plan, decidable),
        None => text.push_str("\nWhat it can decide is not worked out for so many trials.\n"),
    }
    if !plan.left_out.is_empty() {
        text.push_str("\nLeft out\n");
        for left in &plan.left_out {
            line(&mut text, "  ", &format!("{}: {}", left.what, left.why));
        }
    }
    text
}

/// Appends one row an experiment, and the estimate.
fn describe_totals(text: &mut String, plan: &Plan) {
    let head = [
        "experiment",
        "cells",
        "replicates",
        "trials",
        "window",
        "time",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for experiment in &plan.experiments {
        let trials = plan.trials.iter();
        let trials = || trials.clone().filter(|t| t.experiment == experiment.name);
        let time: u64 = trials().map(|trial| trial.timing.total().0).sum();
        let cells: BTreeSet<&Cell> = trials().map(|trial| &trial.cell).collect();
        rows.push([
            experiment.name.clone(),
            cells.len().to_string(),
            experiment.replicates.to_string(),
            trials().count().to_string(),
            experiment.timing.measure.to_string(),
            Unit::Nanoseconds.display(time as f64),
        ]);
    }
    for row in &rows {
        let cell = |at: usize| {
            let widths = rows.iter().map(|row| row[at].chars().count());
            let width = widths.max().unwrap_or(0);
            match at {
                0 => format!("{:<width$}", row[at]),
                _ => format!("{:>width$}", row[at]),
            }
        };
        let cells: Vec<String> = (0..head.len()).map(cell).collect();
        let _ = writeln!(text, "{}", cells.join("  "));
    }
    let phases: u64 = plan.trials.iter().map(|trial| trial.timing.total().0).sum();
    let in_digits = |time: Nanos| glued(Unit::Nanoseconds.display(time.0 as f64));
    let around = in_digits(Nanos(plan.estimate.0.saturating_sub(phases)));
    let budget = plan.budget.map_or_else(
        || "no budget, files taken as they are".to_owned(),
        |budget| format!("budget {}", glued(budget)),
    );
    let trials = number::counted(plan.trials.len(), "trial");
    let (estimate, seed) = (in_digits(plan.estimate), plan.seed);
    let adds = plan.experiments.iter().any(Experiment::is_adaptive);
    let total = if adds {
        format!("{trials} and those of further levels, about {estimate} in all")
    } else {
        format!("{trials}, about {estimate}, {around} of it around the trials")
    };
    text.push('\n');
    line(text, "", &format!("{total} ({budget}; seed {seed})"));
}

/// Appends one row a comparison.
fn describe_decidable(text: &mut String, plan: &Plan, decidable: &[Decidable]) {
    text.push_str("\nWhat it can decide\n");
    if !decidable.is_empty() {
        describe_rows(text, decidable);
    }
    let has_none = |own: &&Experiment| !decidable.iter().any(|row| row.experiment == own.name);
    let others = || plan.experiments.iter().filter(has_none);
    let mut line_of = |varies: bool, why: &str| {
        let names = others().filter(|own| own.factors.is_empty() != varies);
        let names: Vec<&str> = names.map(|own| own.name.as_str()).collect();
        if !names.is_empty() {
            let words = format!("Nothing is compared in {}: {why}.", names.join(", "));
            line(text, "  ", &words);
        }
    };
    line_of(
        true,
        "what varies there is a scale, which is drawn, or is searched for",
    );
    line_of(false, "nothing varies there");
}

fn describe_rows(text: &mut String, decidable: &[Decidable]) {
    let words = format!(
        "The smallest difference that {} of runs find, and the share of runs that show \"the same\" where nothing differs, \
         if the trials of a cell deviate by {}. A curve of buffers has blocks for pairs.",
        glued(number::percent(FOUND_SHARE)),
        NOISES.map(|noise| glued(number::percent(noise))).join(", ")
    );
    line(text, "  ", &words);
    let heads = |width: usize| NOISES.map(|noise| format!("{:>width$}", number::percent(noise)));
    let (head, empty) = ("difference, at a noise of", "");
    let _ = writeln!(text, "  {empty:COMPARED_COLUMNS$}  pairs  {head}  same");
    let [differences, same] = [heads(8), heads(6)].map(|heads| heads.concat());
    let _ = writeln!(
        text,
        "  {empty:COMPARED_COLUMNS$}       {differences} {same}"
    );
    let mut experiment = "";
    for row in decidable {
        if row.experiment != experiment {
            experiment = &row.experiment;
            line(text, "  ", experiment);
        }
        let shown = match row.pairs_needed {
            Some(needed) => format!("  too few: {needed} may decide"),
            None => {
                let of = |width: usize, of: fn(&DecidableAt) -> String| {
                    let shares = row.at.iter().map(of);
                    shares
                        .map(|share| format!("{share:>width$}"))
                        .collect::<String>()
                };
                let difference = of(8, |at| percent(at.smallest));
                format!(
                    "{difference} {}",
                    of(6, |at| format!("{:.0} %", 100.0 * at.same_share))
                )
            }
        };
        let words = fit(&row.what, COMPARED_COLUMNS - 2);
        let mut words = words.iter();
        if let Some(first) = words.next() {
            let room = COMPARED_COLUMNS - 2;
            let _ = writeln!(text, "    {first:<room$}  {:>5}{shown}", row.pairs);
        }
        for more in words {
            let _ = writeln!(text, "    {more}");
        }
    }
}

/// Returns `share` with two digits: it is an estimate.
fn percent(share: f64) -> String {
    let digits = usize::from(share < 0.0995);
    format!("{:.digits$} %", 100.0 * share)
}

/// Returns `value` as one word, so that no line breaks between a number and its unit.
fn glued(value: impl ToString) -> String {
    value.to_string().replace(' ', "\u{a0}")
}

fn describe_experiment(text: &mut String, experiment: &Experiment) {
    // By name: the report numbers what was measured, without gaps.
    let title = format!("{} ({})", experiment.title, experiment.name);
    line(text, "", &title);
    line(text, "  ", &experiment.question);
    let varies = |factor| !experiment.levels(factor).is_empty();
    line(text, "  ", &workload_words(&experiment.workload, varies));
    for group in &experiment.beside {
        let name = GroupName::new(&group.name);
        let varies = |factor: Factor| name.and_then(|name| factor.of(name)).is_some_and(varies);
        let words = workload_words(&group.workload, varies);
        line(text, "  ", &format!("in addition, {}: {words}", group.name));
    }
    let groups = groups(experiment);
    let heads: Vec<String> = groups.iter().map(group_title).collect();
    let widths = heads.iter().map(|head| head.chars().count());
    let width = widths.max().unwrap_or(0);
    for (group, head) in groups.iter().zip(&heads) {
        let levels = group.levels.iter().map(|level| level_words(level));
        let levels: Vec<String> = levels.collect();
        let start = format!("  {head:<width$}  ");
        let indent = start.chars().count();
        for line in wrap(&(start + &levels.join(", ")), COLUMNS, indent) {
            let _ = writeln!(text, "{line}");
        }
    }
    if experiment.design == DesignKind::OneAtATime {
        let words = |(factor, level): (&Factor, &Level)| format!("{} {level}", factor.title());
        let baseline: Vec<String> = experiment.baseline.iter().map(words).collect();
        line(
            text,
            "  ",
            &format!("one at a time around {}", baseline.join(", ")),
        );
    }
    if let Some((fraction, factors)) = experiment.fraction() {
        describe_fraction(text, &fraction, &factors);
    }
    if experiment.design == DesignKind::LatinHypercube {
        let words =
            "Latin hypercube: a block has each level of each factor once, combined at random";
        line(text, "  ", words);
    }
    if !experiment.whole_plots.is_empty() {
        let words = format!(
            "whole plots: in a block, the levels of {} change as seldom as can be",
            joined_titles(&experiment.whole_plots)
        );
        line(text, "  ", &words);
    }
    if !experiment.suffices.is_empty() {
        let words = format!(
            "the smallest {} that does as well as the largest is looked for",
            joined_titles(&experiment.suffices)
        );
        line(text, "  ", &words);
    }
    if let Some((search, _, [low, high])) = experiment.searched() {
        let words = format!(
            "bisection: the two levels, then levels between them, until `{}` is kept by all trials of one and by none \
             of another within {} of it; {} levels, at most {}, each measured at most {} times as often",
            search.condition,
            number::percent(search.resolution),
            2 + search.steps(low, high),
            search.levels_max(low, high),
            Search::LOOKS_MAX,
        );
        line(text, "  ", &words);
        if let Some(words) = few_datagrams(experiment, search, low) {
            line(text, "  ", &words);
        }
    }
    if let Some(refinement) = &experiment.refinement {
        let words = format!(
            "refinement: these levels, then the middle of the two neighbours between which the response changes most, \
             until there are {} or no two are further apart than {}",
            number::counted(refinement.levels, "level"),
            number::percent(refinement.resolution),
        );
        line(text, "  ", &words);
    }
    line(text, "  ", &timing_words(experiment));
}

/// Says that a trial at the `low` rate has too few datagrams for one of them to be less than the loss that the search allows.
fn few_datagrams(experiment: &Experiment, search: &Search, low: f64) -> Option<String> {
    let condition = Condition::parse(&search.condition).ok()?;
    let (_, size) = experiment.workload.traffic.stream()?;
    let (factor, _) = experiment.factors.first()?;
    let seconds = experiment.timing.measure.0 as f64 / 1e9;
    let datagrams = (low * seconds / (8.0 * size.0 as f64)).floor();
    let is_of_loss = *factor == Factor::Rate && condition.response == name::LOSS_SHARE;
    let is_few = is_of_loss && condition.of.is_none() && condition.limit * datagrams < 1.0;
    is_few.then(|| {
        format!(
            "a trial at {} has {}, so that it keeps the condition only if it loses none",
            Unit::BitsPerSecond.display(low),
            number::counted(datagrams as u64, "datagram"),
        )
    })
}

/// Appends the resolution of a fraction, and what cannot be told apart by it.
fn describe_fraction(text: &mut String, fraction: &Fraction, factors: &[Vec<Factor>]) {
    let runs = fraction.cells().len();
    let resolution = fraction.resolution();
    let clear = match resolution {
        3 => "",
        4 => ": main effects are clear of interactions of two factors",
        _ => ": main effects and interactions of two factors are clear of each other",
    };
    let words = format!(
        "{runs} of all {} combinations, resolution {}{clear}",
        1_u64 << factors.len(),
        roman(resolution)
    );
    line(text, "  ", &words);
    let title = |at: usize| joined_titles(&factors[at]);
    let interaction =
        |(one, other): &(usize, usize)| format!("{} × {}", title(*one), title(*other));
    let mut told = |one: String, others: &[(usize, usize)]| {
        let others: Vec<String> = others.iter().map(interaction).collect();
        let words = format!("{one} is aliased with {}", others.join(", "));
        line(text, "  ", &words);
    };
    for at in 0..factors.len() {
        let aliases = fraction.aliases(at);
        if !aliases.is_empty() {
            told(title(at), &aliases);
        }
    }
    for alike in fraction.alike() {
        told(interaction(&alike[0]), &alike[1..]);
    }
}

/// Returns a resolution as it is written: III.
fn roman(resolution: u32) -> String {
    let names = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII"];
    let name = (resolution as usize)
        .checked_sub(1)
        .and_then(|at| names.get(at));
    name.map_or_else(|| resolution.to_string(), |name| (*name).to_owned())
}

/// Returns replicates, the control and phases; phases without length are left out.
fn timing_words(experiment: &Experiment) -> String {
    let timing = experiment.timing;
    let phases = [
        ("settle", timing.settle),
        ("warm-up", timing.warm_up),
        ("measure", timing.measure),
        ("drain", timing.drain),
    ];
    let words: Vec<String> = phases
        .iter()
        .filter(|(_, length)| length.0 > 0)
        .map(|(name, length)| format!("{name}\u{a0}{}", glued(length)))
        .collect();
    let blocks = number::counted(experiment.replicates, "shuffled block");
    let control = experiment.control.as_ref().map(|control| {
        let levels = control.levels.iter();
        let levels = levels.map(|(factor, level)| format!("{} {level}", factor.title()));
        let levels: Vec<String> = levels.collect();
        format!(" with {} {} times each", levels.join(", "), control.times)
    });
    let control = control.unwrap_or_default();
    format!("{blocks}{control}; {}", words.join(", "))
}

fn group_title(group: &FactorGroup) -> String {
    joined_titles(&group.factors)
}

fn level_words(level: &[Level]) -> String {
    let words: Vec<String> = level.iter().map(ToString::to_string).collect();
    glued(words.join(" / "))
}

/// What is said of a workload, in this order, where it is set and does not vary.
const TOLD: [Factor; 12] = [
    Factor::Direction,
    Factor::MessageBytes,
    Factor::RequestBytes,
    Factor::ResponseBytes,
    Factor::RequestWrites,
    Factor::Connections,
    Factor::Clients,
    Factor::SocketBuffer,
    Factor::Nagle,
    Factor::DelayedAck,
    Factor::Congestion,
    Factor::MssBytes,
];

/// Returns what does not vary: the traffic, the connections and the socket options that are set.
fn workload_words(workload: &Workload, varies: impl Fn(Factor) -> bool) -> String {
    let is_fixed = |factor: &Factor| match factor {
        Factor::RequestBytes | Factor::ResponseBytes if varies(Factor::PayloadBytes) => false,
        // The steps say it.
        Factor::RequestWrites if workload.manner.steps.is_some() => false,
        factor => !varies(*factor),
    };
    let words = TOLD.into_iter().filter(is_fixed).filter_map(|factor| {
        let level = factor.parameter().read(workload)?;
        Some(glued(format!("{} {level}", factor.title())))
    });
    let steps = workload.manner.steps.as_ref();
    let steps = steps.map(|steps| glued(number::counted(steps.len(), "step")));
    let words: Vec<String> = steps.into_iter().chain(words).collect();
    let kind = workload.traffic.kind();
    format!("{}: {}", kind.about().title, words.join(", "))
}

/// Appends `words` broken into lines of at most [`COLUMNS`], the later ones further in.
fn line(text: &mut String, indent: &str, words: &str) {
    for line in wrap(words, COLUMNS - indent.len(), 2) {
        let _ = writeln!(text, "{indent}{line}");
    }
}
