//! The last page: CPUs per Gbit/s and per port, what they are made of, and what one more CPU or flow is worth.

use linerate_model::analysis::{
    Axis, Chapter, Curve, Figure, Origin, Position, Scale, Table, TableCell,
};
use linerate_model::experiment::Factor;
use linerate_model::finding::Estimate;
use linerate_model::number::counted;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;

use super::draw;
use super::study_chapter::{Content, Row, StudyChapter, row};
use crate::capacity::scaling::Scaling;
use crate::capacity::{
    Above, Gain, HeldOut, Model, Side, Target, above_half, gains, is_plain, models, supplies,
};
use crate::dataset::{CellOutcomes, Dataset, groups};
use crate::diagnose::Told;
use crate::reduce::name;
use crate::study::FULL_SHARE;
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 16,
    content: Content::Derived(chapter, lines),
};

/// A port that is full of messages of one size.
struct Port<'m> {
    model: &'m Model,
    target: Target,
    busy: Estimate,
}

fn chapter(dataset: &Dataset<'_>, _told: &Told<'_>) -> Chapter {
    let (models, missing) = models(dataset);
    let ports: Vec<Port<'_>> = models.iter().flat_map(|it| ports(dataset, it)).collect();
    let mut method = "The CPU time of a trial is packets, KiB, calls, wake-ups of workers, packets held back for a rate and \
                      connections, each times its price, and what is there without traffic. Prices are fitted to all trials whose hosts are as they are, robust \
                      and from zero on; their intervals are those of cells drawn again. Every fifth cell is not fitted, and its \
                      error is shown."
        .to_owned();
    let none = format!("No model of cost: {}.", missing.join("; "));
    let laws = laws(dataset);
    if laws.is_empty() {
        method += " A scaling law is fitted to four numbers of CPUs, or of connections, at which the link is not full; here \
                   there are fewer.";
    }
    let prices = models.iter().map(prices);
    let tables = [
        ports_table(&ports),
        supplies_table(dataset, &ports),
        errors_table(&models, &above_half(dataset), &gains(dataset)),
        laws_table(&laws),
    ];
    Chapter {
        id: "capacity".to_owned(),
        title: "Capacity".to_owned(),
        question: "How many CPUs does a Gbit/s ask for, and how many a port?".to_owned(),
        answer: answer(&ports).or((!missing.is_empty()).then_some(none)),
        method,
        figures: models.iter().filter_map(|it| figure(dataset, it)).collect(),
        tables: tables.into_iter().flatten().chain(prices).collect(),
        ..Chapter::default()
    }
}

/// Returns what a full port costs with the smallest and the largest messages that were measured, on the fewest flows.
fn ports<'m>(dataset: &Dataset<'_>, model: &'m Model) -> Vec<Port<'m>> {
    let mut found = Vec::new();
    for direction in [Direction::ToServer, Direction::FromServer] {
        let Some(bps) = dataset.path.rate_bps(1) else {
            continue;
        };
        for message_bytes in model.message_sizes(direction) {
            let target = Target {
                bps,
                message_bytes,
                flows: 1,
                direction,
                headroom: 0.0,
            };
            if let Some(busy) = model.busy(&target) {
                found.push(Port {
                    model,
                    target,
                    busy,
                });
            }
        }
    }
    found
}

fn per_gbit(port: &Port<'_>) -> Estimate {
    let gbit = port.target.bps / 1e9;
    port.busy.map(Unit::Cpus, |cpus| cpus / gbit)
}

fn answer(ports: &[Port<'_>]) -> Option<String> {
    let dear = |one: &&Port<'_>, other: &&Port<'_>| one.busy.value.total_cmp(&other.busy.value);
    let (least, most) = (ports.iter().min_by(dear)?, ports.iter().max_by(dear)?);
    let told = |port: &Port<'_>| {
        format!(
            "{} in messages of {} {}",
            words::estimate(&per_gbit(port)),
            words::number(Unit::Bytes, port.target.message_bytes as f64),
            port.target.direction.in_words()
        )
    };
    Some(format!(
        "1 Gbit/s asks for {}, and for {}; a port of {} keeps {} to {} busy.",
        told(least),
        told(most),
        Unit::BitsPerSecond.display(least.target.bps),
        Unit::Count.display(least.busy.value),
        Unit::Cpus.display(most.busy.value),
    ))
}

fn ports_table(ports: &[Port<'_>]) -> Option<Table> {
    let line = |port: &Port<'_>| {
        vec![
            TableCell::Text(draw::sentence(port.target.direction.in_words())),
            TableCell::Number(port.target.message_bytes as f64, Unit::Bytes),
            TableCell::Estimate(per_gbit(port)),
            TableCell::Estimate(port.busy),
        ]
    };
    let heads = ["Direction", "Message", "CPUs per Gbit/s", "CPUs per port"];
    draw::unless_empty(Table::new(
        "CPUs per Gbit/s and per port, by the model; the interval holds a further trial in 95 of 100 cases",
        heads,
        ports.iter().map(line),
    ))
}

fn prices(model: &Model) -> Table {
    let rows = model.prices.iter().map(|price| {
        let unit = price.all.unit;
        let mode = |value: Option<f64>| match value {
            Some(value) => TableCell::Number(value, unit),
            None => TableCell::Absent("not read".to_owned()),
        };
        let is_alike = model.alike.contains(&price.kind);
        vec![
            TableCell::Text(draw::sentence(price.kind.title())),
            TableCell::Estimate(price.all),
            mode(price.user),
            mode(price.system),
            mode(price.interrupts),
            TableCell::Text(
                if is_alike {
                    "not distinguishable"
                } else {
                    "–"
                }
                .to_owned(),
            ),
        ]
    });
    let title = format!(
        "What one of each costs {}, from {} of {}",
        model.side.title(),
        counted(model.trials as u64, "trial"),
        counted(model.cells as u64, "cell")
    );
    let heads = [
        "Work",
        "CPU time",
        "User",
        "Kernel",
        "Interrupts",
        "From the others",
    ];
    Table::new(title, heads, rows)
}

/// What a full port of the largest messages asks for on one connection, what ends first before the others.
fn supplies_table(dataset: &Dataset<'_>, ports: &[Port<'_>]) -> Option<Table> {
    let ways = ports.chunk_by(|a, b| a.target.direction == b.target.direction);
    let largest = ways.filter_map(<[_]>::last);
    let of_port = |port: &Port<'_>| {
        let way = draw::sentence(port.target.direction.in_words());
        let all = supplies(dataset, port.model, &port.target, port.busy.value);
        all.into_iter().map(move |supply| {
            vec![
                TableCell::Text(way.clone()),
                TableCell::Text(draw::sentence(&supply.what)),
                TableCell::Number(supply.needs, supply.unit),
                TableCell::Number(supply.has, supply.unit),
                TableCell::Number(100.0 * supply.needs / supply.has, Unit::Percent),
            ]
        })
    };
    let heads = ["Direction", "Of", "A port asks for", "There is", "Share"];
    draw::unless_empty(Table::new(
        "What ends first: a full port of the largest messages on one connection",
        heads,
        largest.flat_map(of_port),
    ))
}

fn errors_table(models: &[Model], above: &[Above], gains: &[Gain]) -> Option<Table> {
    let share = |share: Option<f64>| match share {
        Some(share) => TableCell::Number(100.0 * share, Unit::Percent),
        None => TableCell::Absent("none was left out".to_owned()),
    };
    let line = |what: String, side: Side, errors: &HeldOut, ratios: [Option<f64>; 2]| {
        let ratio = |ratio: Option<f64>| match ratio {
            Some(ratio) => TableCell::Number(ratio, Unit::Ratio),
            None => TableCell::Text("–".to_owned()),
        };
        vec![
            TableCell::Text(what),
            TableCell::Text(side.title().to_owned()),
            ratio(ratios[0]),
            ratio(ratios[1]),
            TableCell::Number(errors.cells as f64, Unit::Count),
            share(errors.median),
            share(errors.most),
            share(errors.held),
        ]
    };
    let held_out = models.iter().flat_map(|model| {
        let [of_work, of_target] = Above::errors(above, model.side);
        let known = [
            ("Every fifth cell", model.held_out.clone()),
            (
                "Loads above half of what such streams reach, by their work",
                of_work,
            ),
            (
                "The same, by rate, messages and connections alone",
                of_target,
            ),
        ];
        let known = known.into_iter().filter(|(_, errors)| errors.cells > 0);
        known.map(|(what, errors)| line(what.to_owned(), model.side, &errors, [None; 2]))
    });
    let gains = gains.iter().map(|gain| {
        let ratios = [Some(gain.predicted), Some(gain.measured)];
        line(
            draw::sentence(&gain.title()),
            gain.side,
            &gain.errors,
            ratios,
        )
    });
    let heads = [
        "Not fitted",
        "Cost of",
        "Predicted per byte",
        "Measured",
        "Cells",
        "Median error",
        "Largest",
        "Inside the interval",
    ];
    draw::unless_empty(Table::new(
        "Predictions: cells that were not fitted, and changes before they were measured, as a factor of the cost of a byte",
        heads,
        held_out.chain(gains),
    ))
}

/// CPUs against throughput: measured, and by the model, for the smallest and the largest messages.
fn figure(dataset: &Dataset<'_>, model: &Model) -> Option<Figure> {
    let mut curves = Vec::new();
    for direction in [Direction::ToServer, Direction::FromServer] {
        let sizes = model.message_sizes(direction);
        let mut ends = vec![*sizes.first()?, *sizes.last()?];
        ends.dedup();
        for bytes in ends {
            let name = format!(
                "{} messages, {}",
                words::number(Unit::Bytes, bytes as f64),
                direction.in_words()
            );
            let is_own = |cell: &&CellOutcomes<'_>| {
                cell.message_bytes() == Some(bytes)
                    && cell.workload.traffic.direction() == Some(direction)
                    && cell.workload.connections == 1
                    && is_plain(cell)
            };
            let point = |cell: &CellOutcomes<'_>| {
                let x = Position::Number(cell.mean(name::THROUGHPUT)?);
                Some(draw::point_at(x, cell.estimate(name::CPU_COST)?, cell))
            };
            let points: Vec<_> = dataset
                .measured()
                .filter(is_own)
                .filter_map(point)
                .collect();
            let at = points.iter().filter_map(|point| match point.x {
                Position::Number(x) => Some(x),
                Position::Name(_) => None,
            });
            let computed = at.filter_map(|bps| {
                let target = Target {
                    bps,
                    message_bytes: bytes,
                    flows: 1,
                    direction,
                    headroom: 0.0,
                };
                Some((bps, model.busy(&target)?.value))
            });
            let computed: Vec<(f64, f64)> = computed.collect();
            curves.push(Curve {
                name: name.clone(),
                origin: Origin::Measured,
                points,
            });
            curves.push(draw::computed(format!("{name}: model"), computed));
        }
    }
    curves.retain(|curve| !curve.points.is_empty());
    (!curves.is_empty()).then(|| Figure {
        id: format!("capacity-{}", model.side.title().replace([' ', ','], "-")),
        title: "CPUs against throughput".to_owned(),
        caption: format!(
            "CPU time of {}, measured and by the model. Points are means with 95 % intervals (of two values, their range).",
            model.side.title()
        ),
        x: Axis::new("throughput", Unit::BitsPerSecond, Scale::Linear),
        y: Axis::new("CPUs", Unit::Cpus, Scale::Linear),
        curves,
    })
}

/// What is a law of what, where the link does not bound it.
fn laws(dataset: &Dataset<'_>) -> Vec<(String, Scaling)> {
    let mut found = Vec::new();
    for experiment in dataset.experiments() {
        for factor in [Factor::Cpus, Factor::Connections] {
            let of_stream = experiment.response == name::THROUGHPUT && experiment.beside.is_empty();
            if !of_stream || experiment.levels(factor).len() < 2 {
                continue;
            }
            let cells = dataset.cells_of(&experiment.name);
            for group in groups(&cells, factor) {
                let point = |cell: &&CellOutcomes<'_>| {
                    let x = cell.mean(name::THROUGHPUT)?;
                    let limit = dataset.limit_bps(cell);
                    let is_free = limit.is_none_or(|limit| x < FULL_SHARE * limit);
                    Some((cell.number(factor)?, x)).filter(|_| is_free)
                };
                let points: Vec<(f64, f64)> = group.cells.iter().filter_map(point).collect();
                let name = if group.words.is_empty() {
                    experiment.title.clone()
                } else {
                    format!("{}, {}", experiment.title, group.words)
                };
                found.extend(Scaling::of(&points).map(|law| (name, law)));
            }
        }
    }
    found
}

fn laws_table(laws: &[(String, Scaling)]) -> Option<Table> {
    let rows = laws.iter().map(|(name, law)| {
        let most = law.residuals.iter().map(|(_, error)| error.abs());
        vec![
            TableCell::Text(name.clone()),
            TableCell::Number(law.one, Unit::BitsPerSecond),
            TableCell::Number(law.contention, Unit::Ratio),
            TableCell::Number(law.coherency, Unit::Ratio),
            match law.peak() {
                Some(peak) => TableCell::Number(peak, Unit::Count),
                None => TableCell::Text("none".to_owned()),
            },
            TableCell::Number(100.0 * most.fold(0.0, f64::max), Unit::Percent),
        ]
    });
    let heads = [
        "Of",
        "One has",
        "Contention α",
        "Coherency β",
        "Most at",
        "Largest residual",
    ];
    draw::unless_empty(Table::new(
        "Universal Scalability Law: n have γ n / (1 + α (n − 1) + β n (n − 1))",
        heads,
        rows,
    ))
}

/// CPUs per Gbit/s in the summary.
fn lines(dataset: &Dataset<'_>) -> Vec<Row> {
    let (models, _) = models(dataset);
    let ports: Vec<Port<'_>> = models.iter().flat_map(|it| ports(dataset, it)).collect();
    let large = ports.iter().max_by_key(|port| port.target.message_bytes);
    let line = large.map(|port| {
        let note = format!(
            "messages of {}, {}; by the model",
            words::number(Unit::Bytes, port.target.message_bytes as f64),
            port.target.direction.in_words()
        );
        row("CPUs per Gbit/s", per_gbit(port), note)
    });
    line.into_iter().collect()
}
