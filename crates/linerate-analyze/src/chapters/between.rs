//! Hosts that measure with each other: a map of all pairs, and those that are slow against the rest.

use linerate_model::analysis::{Chapter, HeatCell, HeatMap, Table, TableCell};
use linerate_model::experiment::Experiment;
use linerate_model::finding::Estimate;
use linerate_model::number::{self, counted};
use linerate_model::pairs::Pair;
use linerate_model::run::FlowRecord;
use linerate_model::sample::End;
use linerate_model::unit::Unit;
use linerate_model::{FlowId, HostName};

use std::collections::BTreeMap;

use super::draw;
use super::study_chapter::Measured;
use crate::compare::interval::median_or_range;
use crate::dataset::Dataset;
use crate::pairs::{Mesh, meshes};
use crate::reduce::describe;
use crate::words;

/// Slow pairs that a table lists.
const LISTED_MAX: usize = 40;

/// Replaces what an experiment shows of its levels by what pairs of hosts came to.
pub(super) fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>) {
    let meshes = meshes(measured.dataset, measured.cells);
    if meshes.is_empty() {
        return;
    }
    let response = describe(&measured.experiment.response);
    let answers: Vec<String> = meshes
        .iter()
        .map(|mesh| answer(mesh, response.title, response.unit))
        .collect();
    chapter.answer = Some(answers.join(" "));
    chapter.figures.clear();
    chapter.tables.clear();
    let title = |mesh: &Mesh| {
        let each = format!("{} of each pair", draw::sentence(response.title));
        if meshes.len() == 1 {
            each
        } else {
            format!("{each}: {}", words::whole_cell(&mesh.rest))
        }
    };
    chapter.heat_maps = (1..).zip(&meshes).map(|(number, mesh)| HeatMap {
        id: format!("{}-pairs-{number}", chapter.id),
        title: title(mesh),
        caption: "Rows open the flows, columns take them up. A frame marks pairs that are slow against the rest; what is empty was not measured.".to_owned(),
        hosts: mesh.hosts.iter().map(ToString::to_string).collect(),
        unit: response.unit,
        median: mesh.median,
        cells: cells(mesh),
    }).collect();
    let rows = meshes
        .iter()
        .flat_map(|mesh| mesh.slow.iter().map(move |pair| (mesh, pair)));
    let rows = rows.take(LISTED_MAX).filter_map(|(mesh, pair)| {
        let value = mesh.values.get(pair)?;
        Some(vec![
            TableCell::Text(pair.from.to_string()),
            TableCell::Text(pair.to.to_string()),
            TableCell::Estimate(*value),
            TableCell::Number(100.0 * value.value / mesh.median, Unit::Percent),
        ])
    });
    let slow = Table::new(
        "Slow pairs",
        ["from", "to", response.title, "of the median"],
        rows,
    );
    let rows = meshes
        .iter()
        .flat_map(|mesh| &mesh.suspects)
        .map(|suspect| {
            vec![
                TableCell::Text(suspect.common.words()),
                TableCell::Number(suspect.slow as f64, Unit::Count),
                TableCell::Number(suspect.of as f64, Unit::Count),
                TableCell::Text(suspect.common.where_to_look()),
            ]
        });
    let heads = ["slow pairs are those", "slow", "of", "what to look at"];
    let suspects = Table::new("What slow pairs have in common", heads, rows);
    let own = [suspects, slow]
        .into_iter()
        .filter(|table| !table.rows.is_empty());
    chapter.tables.splice(0..0, own);
}

fn cells(mesh: &Mesh) -> Vec<HeatCell> {
    let place = |host: &linerate_model::HostName| {
        let at = mesh.hosts.iter().position(|known| known == host)?;
        u32::try_from(at).ok()
    };
    let cells = mesh.values.iter().filter_map(|(pair, value)| {
        Some(HeatCell {
            from: place(&pair.from)?,
            to: place(&pair.to)?,
            value: value.value,
            is_slow: mesh.slow.contains(pair),
        })
    });
    cells.collect()
}

/// Returns what each client of several had of the payload, where a trial names its hosts.
pub(super) fn shares(measured: &Measured<'_, '_>) -> Option<Table> {
    let plan = &measured.dataset.recording.document.plan;
    let mut shares: BTreeMap<(String, HostName), Vec<f64>> = BTreeMap::new();
    for cell in measured.cells {
        let flows: Vec<&FlowRecord> = measured.dataset.flows_of(cell).collect();
        for trial in cell.trials() {
            let names = &plan.trial(trial)?.hosts;
            let own = || flows.iter().filter(move |flow| flow.trial == trial);
            let clients = own().filter(|flow| flow.end == End::Client);
            let client_of: BTreeMap<FlowId, &HostName> =
                clients.map(|flow| (flow.flow, &flow.host)).collect();
            let mut bytes: BTreeMap<&HostName, u64> = BTreeMap::new();
            for flow in own() {
                if let Some(client) = client_of.get(&flow.flow) {
                    *bytes.entry(client).or_default() += flow.bytes_received;
                }
            }
            let all: u64 = bytes.values().sum();
            if names.len() > 2 && all > 0 {
                for (client, own) in bytes {
                    let key = (words::whole_cell(&cell.cell), client.clone());
                    let share = 100.0 * own as f64 / all as f64;
                    shares.entry(key).or_default().push(share);
                }
            }
        }
    }
    let rows = shares.into_iter().filter_map(|((cell, client), shares)| {
        Some(vec![
            TableCell::Text(cell),
            TableCell::Text(client.to_string()),
            TableCell::Estimate(median_or_range(&shares, Unit::Percent)?),
        ])
    });
    let heads = [
        "levels",
        "client",
        "of the payload that arrived, all phases",
    ];
    let table = Table::new("What each client had", heads, rows);
    (!table.rows.is_empty()).then_some(table)
}

/// Returns what the pairs of a run came to, where hosts measured with each other.
pub(crate) fn told(dataset: &Dataset<'_>) -> Option<String> {
    let (experiment, mesh) = first(dataset)?;
    let response = describe(&experiment.response);
    Some(answer(&mesh, response.title, response.unit))
}

/// Returns the number of a pair that stands for all, with what it is called and between what the others lie.
pub(crate) fn headline(dataset: &Dataset<'_>) -> Option<(String, Estimate, Vec<String>)> {
    let (experiment, mesh) = first(dataset)?;
    let response = describe(&experiment.response);
    let values: Vec<f64> = mesh
        .values
        .values()
        .map(|estimate| estimate.value)
        .collect();
    let median = median_or_range(&values, response.unit)?;
    let what = format!("{} of a pair", draw::sentence(response.title));
    let slow = match mesh.slow.len() {
        0 => "none slow against the rest".to_owned(),
        slow => format!("{slow} slow against the rest"),
    };
    let notes = vec![format!("median of {}", counted(values.len(), "pair")), slow];
    Some((what, median, notes))
}

fn first<'d>(dataset: &'d Dataset<'_>) -> Option<(&'d Experiment, Mesh)> {
    let experiment = dataset.experiments().iter().find(|it| it.pairs.is_some())?;
    let mesh = meshes(dataset, &dataset.cells_of(&experiment.name))
        .into_iter()
        .next()?;
    Some((experiment, mesh))
}

/// Returns what pairs came to in a sentence or two.
fn answer(mesh: &Mesh, title: &str, unit: Unit) -> String {
    let value = |value: f64| words::number(unit, value);
    let values = mesh.values.values().map(|estimate| estimate.value);
    let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let all = format!(
        "{} of {}: {} {} in the median ({} to {}).",
        counted(mesh.values.len(), "pair"),
        counted(mesh.hosts.len(), "host"),
        title,
        value(mesh.median),
        value(least),
        value(most),
    );
    let Some(worst) = mesh.slow.first() else {
        return format!("{all} None is slow against the rest.");
    };
    let share = |pair: &Pair| {
        let value = mesh.values.get(pair).map_or(0.0, |estimate| estimate.value);
        number::percent(value / mesh.median)
    };
    let are = if mesh.slow.len() == 1 { "is" } else { "are" };
    let slow = format!(
        "{} {are} slow, the slowest from {} to {} with {} of the median",
        mesh.slow.len(),
        worst.from,
        worst.to,
        share(worst)
    );
    match mesh.suspects.as_slice() {
        [] => format!("{all} {slow}; no host or group stands out among them."),
        suspects => {
            let suspects = suspects.iter().map(|suspect| {
                format!(
                    "{} of {} {}",
                    suspect.slow,
                    suspect.of,
                    suspect.common.words()
                )
            });
            format!(
                "{all} {slow}: {}.",
                words::list(&suspects.collect::<Vec<_>>())
            )
        }
    }
}
