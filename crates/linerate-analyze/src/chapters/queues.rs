//! Chapter 12: packets by receive queue and CPU, against what chance gives.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::analysis::{
    Axis, Chapter, Curve, Figure, Origin, Position, Scale, Table, TableCell,
};
use linerate_model::experiment::Factor;
use linerate_model::finding::{Caution, Estimate};
use linerate_model::host::{FactValue, QUEUE_OBSERVER};
use linerate_model::run::HostRecord;
use linerate_model::sample::QueueKind;
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::study_chapter::{Content, Measured, StudyChapter};
use super::{draw, queue_table};
use crate::compare::interval::{share_interval, student_t_interval};
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{self, SATURATED_SHARE, Told, What};
use crate::reduce::{CpuIntake, Intake, QueueIntake, Raw, Readings, intake, name};
use crate::study;
use crate::words;

/// Queues up to which each rank has a curve of its own; of more, five stand for all.
const RANKS_DRAWN_MAX: usize = 8;
/// CPUs that are drawn and listed: those that took most packets.
const CPUS_SHOWN_MAX: usize = 16;

/// A cell, and what the receiving host took in during each of its valid trials.
struct CellIntake<'d, 'a> {
    cell: &'d CellOutcomes<'a>,
    intakes: Vec<Intake>,
}

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: study::QUEUES,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces figures, adds tables, the answer, and what can be said of the hash.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, told: &Told<'_>) {
    let Measured { dataset, cells, .. } = *measured;
    let taken: Vec<CellIntake<'_, '_>> = cells
        .iter()
        .map(|cell| CellIntake {
            cell,
            intakes: intakes(dataset, cell),
        })
        .collect();
    let host = taken.iter().flat_map(|cell| &cell.intakes).next();
    let document = &dataset.recording.document;
    let host = match host {
        Some(intake) => document.host(&intake.host),
        None => document.server(),
    };
    let Some(host) = host else { return };
    chapter.method += &format!(" {}", hash(host));
    if dataset.is_lab() {
        chapter.method +=
            " CPU counters are machine-wide: they include all hosts of the lab and the switch.";
    }
    let queues = most_queues(&taken);
    let answers = match queues {
        0 => vec![untold(host)],
        1 => vec![single(host)],
        _ => vec![fullest_queue(&taken, queues, host)],
    };
    let verdict = diagnose::balance(dataset, measured.experiment).filter(|_| queues > 1);
    let verdict = verdict.map(|balance| balance.verdict());
    let answers: Vec<String> = verdict
        .into_iter()
        .chain(answers.into_iter().flatten())
        .chain(one_cpu(&taken, told))
        .collect();
    if !answers.is_empty() {
        chapter.answer = Some(answers.join(" "));
    }
    let mut figures = Vec::new();
    if queues > 1 {
        figures.extend(by_queue(&taken, queues));
        figures.extend(against_chance(cells));
    }
    let packets = ("packets", "packets processed");
    figures.extend(by_cpu(&taken, packets, |cpu| cpu.packets_per_s));
    let interrupts = ("interrupts", "interrupts of network devices");
    figures.extend(by_cpu(&taken, interrupts, |cpu| cpu.interrupts_per_s));
    if !figures.is_empty() {
        chapter.figures = figures;
    }
    let fullest = taken.iter().rev().find(|cell| !cell.intakes.is_empty());
    let tables = [
        (queues > 1).then(|| balance_table(cells)),
        fullest.and_then(|cell| map(cell, host)),
        fullest.and_then(cpu_table),
    ];
    for (at, table) in tables.into_iter().flatten().enumerate() {
        chapter.tables.insert(at, table);
    }
}

fn intakes(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Vec<Intake> {
    let recording = dataset.recording;
    let of = |trial| {
        let record = recording.record(trial)?;
        let readings = Readings::of(recording, record);
        intake(&Raw::of(recording, record, &readings)?)
    };
    cell.trials().into_iter().filter_map(of).collect()
}

fn most_queues(taken: &[CellIntake<'_, '_>]) -> usize {
    let all = taken.iter().flat_map(|cell| &cell.intakes);
    all.map(|intake| intake.queues.len()).max().unwrap_or(0)
}

/// Says which fields the device's hash takes in, or why they cannot be chosen.
fn hash(host: &HostRecord) -> String {
    let Some(link) = &host.link else {
        return "Which device the data flows use is not known.".to_owned();
    };
    let fact = |fact: &str| format!("link.{link}.{fact}");
    match host.snapshot.value(&fact("rss_hash_tcp4")) {
        Some(FactValue::Text(fields)) => format!(
            "The RSS hash of {link} uses {fields} of TCP over IPv4; it was not varied (`ethtool -N {link} \
             rx-flow-hash` sets it)."
        ),
        Some(FactValue::Missing(reason)) => {
            format!("The RSS hash fields of {link} cannot be read and were not varied: {reason}.")
        }
        _ => format!(
            "{link}{} has no RSS hash fields to choose, so they were not varied; the sending kernel's hash \
             of the connection selects the queue.",
            match host.snapshot.text(&fact("driver")) {
                Some(driver) => format!(" ({driver})"),
                None => String::new(),
            }
        ),
    }
}

fn untold(host: &HostRecord) -> Option<String> {
    let observer = host
        .observers
        .iter()
        .find(|it| it.observer == QUEUE_OBSERVER);
    let reason = observer.and_then(|it| it.missing.as_ref().or(it.note.as_ref()));
    Some(format!(
        "There are no counters of packets by receive queue on {}{}.",
        host.name,
        reason.map_or(String::new(), |reason| format!(": {reason}"))
    ))
}

fn single(host: &HostRecord) -> Option<String> {
    let link = host.link.as_ref()?;
    let most = host.snapshot.number(&format!("link.{link}.rx_queues_max"));
    let more = most
        .filter(|most| *most > 1.0)
        .map(|most| format!(" It could have {most}: `ethtool -L {link} combined N`, or `rx N`."));
    Some(format!(
        "{link} of {} has one receive queue, so there is nothing to balance.{}",
        host.name,
        more.unwrap_or_default()
    ))
}

fn fullest_queue(taken: &[CellIntake<'_, '_>], queues: usize, host: &HostRecord) -> Option<String> {
    let fullest = taken.iter().rev().find(|cell| !cell.intakes.is_empty())?;
    let cell = fullest.cell;
    let (packets, flows) = (
        cell.mean(name::RX_QUEUE_IMBALANCE)?,
        cell.mean(name::RX_QUEUE_FLOWS_IMBALANCE),
    );
    let most = cell.mean(name::RX_QUEUE_CHANCE_MOST)?;
    let flows = flows.map_or(String::new(), |flows| {
        format!(" and {} times its share of the connections", two(flows))
    });
    Some(format!(
        "With {} the fullest of {queues} receive queues of {} took {} times its share of the \
         packets{flows}; random hashing alone gives {}, and up to {} in 95 of 100 cases.",
        words::whole_cell(&cell.cell),
        host.name,
        two(packets),
        two(cell.mean(name::RX_QUEUE_CHANCE)?),
        two(most),
    ))
}

/// Returns the claim of the first finding about these cells that is `wanted`.
fn claim<'f>(
    taken: &[CellIntake<'_, '_>],
    told: &'f Told<'_>,
    wanted: fn(&What<'_>) -> bool,
) -> Option<&'f str> {
    let experiment = taken.first()?.cell.experiment;
    let mut all = told.findings.iter().chain(&told.cautions);
    let found = all.find(|found| found.is_about(experiment) && wanted(&found.what))?;
    Some(&found.claim)
}

fn two(number: f64) -> String {
    format!("{number:.2}")
}

/// Says whether one CPU had no room for more packets.
fn one_cpu(taken: &[CellIntake<'_, '_>], told: &Told<'_>) -> Option<String> {
    let is_of_packets =
        |what: &What<'_>| matches!(what, What::Caution(Caution::OneCpuOfPackets, _));
    if let Some(claim) = claim(taken, told, is_of_packets) {
        return Some(claim.to_owned());
    }
    let shares = taken.iter().filter_map(|cell| {
        let share = cell.cell.mean(name::CPU_INTERRUPT_SHARE_MOST)?;
        Some((cell.cell, share))
    });
    let (cell, share) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    if share >= SATURATED_SHARE {
        // Told of another experiment, or as one among others as busy.
        return Some(format!(
            "The busiest CPU spent {} of its time in interrupts, with {}.",
            words::percent(share),
            words::whole_cell(&cell.cell)
        ));
    }
    Some(format!(
        "No single CPU was full of interrupts while the others had time left: the busiest spent {} of its \
         time in them, with {}.",
        words::percent(share),
        words::whole_cell(&cell.cell)
    ))
}

/// Mean and interval at each number of connections, as a curve.
fn curve<'t>(
    name: String,
    taken: &'t [CellIntake<'_, '_>],
    unit: Unit,
    of: impl Fn(&'t Intake) -> Option<f64>,
) -> Curve {
    let point = |cell: &'t CellIntake<'_, '_>| {
        let values: Vec<f64> = cell.intakes.iter().filter_map(&of).collect();
        let x = Position::Number(cell.cell.number(Factor::Connections)?);
        Some(draw::point_at(x, interval(&values, unit)?, cell.cell))
    };
    Curve {
        name,
        origin: Origin::Measured,
        points: taken.iter().filter_map(point).collect(),
    }
}

/// Ratios are shares here: of the packets, and of a CPU's time.
fn interval(values: &[f64], unit: Unit) -> Option<Estimate> {
    match unit {
        Unit::Ratio => share_interval(values),
        unit => student_t_interval(values, unit),
    }
}

/// Shares of the packets by rank: the fullest queue of each trial, the next, and so on.
///
/// By number they would tell nothing, since in each trial another queue is the fullest.
fn by_queue(taken: &[CellIntake<'_, '_>], queues: usize) -> Option<Figure> {
    let last = queues - 1;
    let mut ranks: Vec<usize> = if queues <= RANKS_DRAWN_MAX {
        (0..queues).collect()
    } else {
        vec![0, last / 4, last / 2, 3 * last / 4, last]
    };
    ranks.dedup();
    let share = |intake: &Intake, rank: usize| {
        let mut packets: Vec<f64> = intake.queues.values().map(|it| it.packets_per_s).collect();
        packets.sort_by(|a, b| b.total_cmp(a));
        let all: f64 = packets.iter().sum();
        let packets = packets.get(rank).filter(|_| all > 0.0)?;
        Some(packets / all)
    };
    let title = |rank: usize| match rank {
        0 => "fullest queue".to_owned(),
        rank if rank == last => "emptiest queue".to_owned(),
        rank => format!("number {} of {queues}", rank + 1),
    };
    let curve = |rank: usize| curve(title(rank), taken, Unit::Ratio, |it| share(it, rank));
    let mut curves: Vec<Curve> = ranks.into_iter().map(curve).collect();
    curves.retain(|curve| !curve.points.is_empty());
    let connections: Vec<f64> = numbers(taken);
    let even = connections.iter().map(|&x| (x, 1.0 / queues as f64));
    curves.push(draw::computed("even", even));
    let cells: Vec<_> = taken.iter().map(|cell| cell.cell).collect();
    (curves.len() > 1).then(|| Figure {
        id: "queues-packets".to_owned(),
        title: "Packets by receive queue".to_owned(),
        caption:
            "The queues of each trial, sorted by packets, as shares of all packets. With fewer \
                  connections than queues some stay empty; with many, the lines converge."
                .to_owned(),
        x: draw::factor_axis(&cells, Factor::Connections),
        y: Axis::new("share of the packets", Unit::Ratio, Scale::Linear),
        curves,
    })
}

fn numbers(taken: &[CellIntake<'_, '_>]) -> Vec<f64> {
    let cells = taken.iter();
    cells
        .filter_map(|cell| cell.cell.number(Factor::Connections))
        .collect()
}

fn against_chance(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let measured = [
        (name::RX_QUEUE_IMBALANCE, "packets"),
        (name::RX_QUEUE_FLOWS_IMBALANCE, "connections"),
    ];
    let computed = [
        (name::RX_QUEUE_CHANCE, "chance, median"),
        (
            name::RX_QUEUE_CHANCE_MOST,
            "random hashing, up to this in 95 of 100",
        ),
    ];
    let mut curves: Vec<Curve> = measured
        .iter()
        .flat_map(|(response, name)| draw::curves(cells, Factor::Connections, response, name))
        .collect();
    if curves.is_empty() {
        return None;
    }
    curves.extend(computed.iter().map(|(response, name)| {
        let points = cells
            .iter()
            .filter_map(|cell| Some((cell.number(Factor::Connections)?, cell.mean(response)?)));
        draw::computed(*name, points)
    }));
    Some(Figure {
        id: "queues-chance".to_owned(),
        title: "Imbalance against random hashing".to_owned(),
        caption:
            "Packets of the fullest receive queue over the mean of all queues: 1 is even. Another hash \
                  could fix only what lies above random hashing."
                .to_owned(),
        x: draw::factor_axis(cells, Factor::Connections),
        y: Axis::new("fullest queue over the mean", Unit::Count, Scale::Linear),
        curves,
    })
}

/// One curve a CPU; absent where nothing was counted.
fn by_cpu(
    taken: &[CellIntake<'_, '_>],
    (id, what): (&str, &str),
    of: fn(&CpuIntake) -> Option<f64>,
) -> Option<Figure> {
    let value = |intake: &Intake, cpu: u32| of(intake.cpus.get(&cpu)?);
    let cpus = cpus_shown(taken);
    let counted = |cpu: &u32| {
        let mut all = taken.iter().flat_map(|cell| &cell.intakes);
        all.any(|intake| value(intake, *cpu).is_some_and(|value| value > 0.0))
    };
    if !cpus.iter().any(counted) {
        return None;
    }
    let curve = |cpu: &u32| {
        let name = format!("CPU {cpu}");
        curve(name, taken, Unit::PerSecond, |it| value(it, *cpu))
    };
    let cells: Vec<_> = taken.iter().map(|cell| cell.cell).collect();
    Some(Figure {
        id: format!("queues-cpu-{id}"),
        title: draw::sentence(&format!("{id} by CPU")),
        caption: format!(
            "Each CPU's {what} per second, means with 95 % intervals (of two values, their range)."
        ),
        x: draw::factor_axis(&cells, Factor::Connections),
        y: Axis::new(format!("{id} per second"), Unit::PerSecond, Scale::Linear),
        curves: cpus.iter().map(curve).collect(),
    })
}

/// The CPUs by number; of more than can be shown, those with most packets.
fn cpus_shown(taken: &[CellIntake<'_, '_>]) -> Vec<u32> {
    let mut sums = BTreeMap::<u32, f64>::new();
    for intake in taken.iter().flat_map(|cell| &cell.intakes) {
        for (cpu, counts) in &intake.cpus {
            *sums.entry(*cpu).or_default() += counts.packets_per_s.unwrap_or(0.0);
        }
    }
    let mut cpus: Vec<(u32, f64)> = sums.into_iter().collect();
    cpus.sort_by(|a, b| b.1.total_cmp(&a.1));
    cpus.truncate(CPUS_SHOWN_MAX);
    let mut cpus: Vec<u32> = cpus.into_iter().map(|(cpu, _)| cpu).collect();
    cpus.sort_unstable();
    cpus
}

fn balance_table(cells: &[&CellOutcomes<'_>]) -> Table {
    const COLUMNS: &[(&str, &str)] = &[
        ("Packets/s", name::RX_PACKETS),
        (
            "Fullest queue over the mean, packets",
            name::RX_QUEUE_IMBALANCE,
        ),
        ("… connections", name::RX_QUEUE_FLOWS_IMBALANCE),
        ("… with random hashing", name::RX_QUEUE_CHANCE),
        ("… in 95 of 100 up to", name::RX_QUEUE_CHANCE_MOST),
        (
            "CPU with most over the mean, packets",
            name::CPU_PACKETS_IMBALANCE,
        ),
        (
            "Most time in interrupts of a CPU",
            name::CPU_INTERRUPT_SHARE_MOST,
        ),
    ];
    let mut columns = vec!["Connections".to_owned()];
    columns.extend(COLUMNS.iter().map(|(title, _)| (*title).to_owned()));
    let row = |cell: &&CellOutcomes<'_>| {
        let level = cell.level(Factor::Connections);
        let level = level.map_or("–".to_owned(), ToString::to_string);
        let value = |(_, response): &(&str, &str)| estimate(cell.estimate(response));
        let mut row = vec![TableCell::Text(level)];
        row.extend(COLUMNS.iter().map(value));
        row
    };
    Table::new(
        "Imbalance of receive queues and CPUs",
        columns,
        cells.iter().map(row),
    )
}

fn estimate(estimate: Option<Estimate>) -> TableCell {
    match estimate {
        // Chance is the same in each trial: no interval.
        Some(estimate) if estimate.unit != Unit::Ratio && estimate.low == estimate.high => {
            TableCell::Number(estimate.value, estimate.unit)
        }
        estimate => draw::read(estimate),
    }
}

/// Queue → flows, packets, interrupt, CPUs, node, with the most connections.
fn map(cell: &CellIntake<'_, '_>, host: &HostRecord) -> Option<Table> {
    let link = host.link.as_ref()?;
    let numbers: BTreeSet<u32> = cell
        .intakes
        .iter()
        .flat_map(|intake| intake.queues.keys().copied())
        .collect();
    let row = |number: &u32| {
        let of = |value: fn(&QueueIntake) -> f64, unit| {
            let queues = cell.intakes.iter();
            let values: Vec<f64> = queues
                .filter_map(|intake| intake.queues.get(number).map(value))
                .collect();
            estimate(interval(&values, unit))
        };
        let known = cell.intakes.iter().any(|intake| intake.flows_mapped > 0);
        let flows = if known {
            of(|queue| f64::from(queue.flows), Unit::Count)
        } else {
            TableCell::Absent("not reported by the sockets".to_owned())
        };
        let mut row = vec![
            TableCell::Text(format!("rx {number}")),
            flows,
            of(|queue| queue.packets_per_s, Unit::PerSecond),
        ];
        row.extend(queue_table::served(
            &host.snapshot,
            link,
            QueueKind::Rx,
            *number,
        ));
        row
    };
    let mut columns = vec!["Queue", "Connections", "Packets/s"];
    columns.extend(queue_table::SERVED);
    let title = format!(
        "Receive queues of {link} of {} with {}, means of its trials",
        host.name,
        words::whole_cell(&cell.cell.cell)
    );
    draw::unless_empty(Table::new(title, columns, numbers.iter().map(row)))
}

/// CPU → packets, interrupts and flows, with the most connections.
fn cpu_table(cell: &CellIntake<'_, '_>) -> Option<Table> {
    let all = || cell.intakes.iter().flat_map(|intake| intake.cpus.values());
    // Devices without interrupts of their own, as veth, leave nothing to say.
    let interrupts = all().any(|cpu| cpu.interrupts_per_s.is_some());
    let row = |cpu: &u32| {
        let of = |value: fn(&CpuIntake) -> Option<f64>, unit| {
            let cpus = cell.intakes.iter().filter_map(|it| it.cpus.get(cpu));
            let values: Vec<f64> = cpus.filter_map(value).collect();
            estimate(interval(&values, unit))
        };
        let mut row = vec![
            TableCell::Text(format!("CPU {cpu}")),
            of(|cpu| Some(f64::from(cpu.flows)), Unit::Count),
            of(|cpu| cpu.packets_per_s, Unit::PerSecond),
        ];
        if interrupts {
            row.push(of(|cpu| cpu.interrupts_per_s, Unit::PerSecond));
        }
        row.push(of(|cpu| cpu.interrupt_share, Unit::Ratio));
        row
    };
    let cpus = cpus_shown(std::slice::from_ref(cell));
    let mut columns = vec!["CPU", "Connections brought up last", "Packets/s processed"];
    if interrupts {
        columns.push("Network interrupts/s");
    }
    columns.push("Time in interrupts");
    let with = words::whole_cell(&cell.cell.cell);
    let title = format!("CPUs with {with}, means of its trials");
    draw::unless_empty(Table::new(title, columns, cpus.iter().map(row)))
}
