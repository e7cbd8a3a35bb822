//! Chapter 7: what throughput gains from each further CPU, how many are busy, and which is full first.

use linerate_model::HostName;
use linerate_model::analysis::{Chapter, Figure, Table, TableCell};
use linerate_model::experiment::Factor;
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::study_chapter::{Content, Measured, Row, StudyChapter, row};
use super::{draw, suffices};
use crate::compare::interval::share_interval;
use crate::dataset::{CellOutcomes, Dataset, by_value};
use crate::diagnose::{SATURATED_SHARE, Told};
use crate::reduce::cpu_time::busy_by_cpu;
use crate::reduce::{Readings, name};
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 7,
    content: Content::Experiment(Kind::Stream, fill, lines),
};

/// The CPU of a host that was busiest in the trials of a cell.
struct Busiest {
    host: HostName,
    cpu: u32,
    /// The share of its time, and that in interrupts, of each trial.
    shares: Vec<(f64, f64)>,
}

impl Busiest {
    /// Returns that of all hosts; of several as busy the first.
    fn of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Self> {
        let recording = dataset.recording;
        let trials = cell.trials().into_iter();
        let records: Vec<_> = trials.filter_map(|id| recording.record(id)).collect();
        let mut all: Vec<Self> = Vec::new();
        for record in records {
            let readings = Readings::of(recording, record);
            for host in dataset.hosts() {
                for (cpu, shares) in busy_by_cpu(&host.name, &readings) {
                    let known = all.iter_mut();
                    let known = known.filter(|it| it.cpu == cpu);
                    // Hosts of a lab have the same CPUs.
                    let mut known = known.filter(|it| dataset.is_lab() || it.host == host.name);
                    match known.next() {
                        Some(known) if known.host == host.name => known.shares.push(shares),
                        Some(_) => {}
                        None => all.push(Self {
                            host: host.name.clone(),
                            cpu,
                            shares: vec![shares],
                        }),
                    }
                }
            }
        }
        all.into_iter()
            .reduce(|most, it| if it.mean() > most.mean() { it } else { most })
    }

    fn mean(&self) -> f64 {
        let sum: f64 = self.shares.iter().map(|(busy, _)| busy).sum();
        // Ticks that fall into a window are not all of it.
        (sum / self.shares.len() as f64).min(1.0)
    }

    fn whose(&self, dataset: &Dataset<'_>) -> String {
        if dataset.is_one_machine() {
            format!("CPU {}", self.cpu)
        } else {
            format!("CPU {} of {}", self.cpu, self.host)
        }
    }
}

/// Replaces figures and answer, and adds the busiest CPU of each cell.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured {
        dataset,
        experiment,
        cells,
    } = *measured;
    let x = Factor::Cpus;
    let points = draw::caption(name::THROUGHPUT);
    let busy = if dataset.is_one_machine() {
        "CPU time of the whole machine, which both ends share, and not of the workers alone."
    } else {
        "CPU time of the server, all modes but idle: n times their utilisation."
    };
    let figures = [
        draw::figure(cells, x, name::THROUGHPUT, "cpus-throughput", &points),
        draw::figure(cells, x, name::CPU_BUSY, "cpus-busy", busy),
    ];
    let figures: Vec<Figure> = figures.into_iter().flatten().collect();
    chapter.tables.insert(0, busiest_table(dataset, cells));
    let plateaus = dataset.verdicts().plateaus_of(&experiment.name);
    let plateaus: Vec<_> = plateaus.collect();
    let mut sentences = suffices::sentences(&plateaus);
    sentences.extend(first_full(measured));
    draw::replace(chapter, figures, &sentences);
}

fn busiest_table(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Table {
    let heads = [
        "Throughput",
        "Busy CPUs",
        "Busiest",
        "Busy",
        "… in interrupts",
    ];
    let heads = heads.map(str::to_owned).to_vec();
    draw::table_of("The busiest CPU", cells, heads, |cell| {
        let busiest = Busiest::of(dataset, cell);
        let share = |of: fn(&(f64, f64)) -> f64| {
            let shares = busiest.iter().flat_map(|it| &it.shares).map(of);
            draw::read(share_interval(&shares.collect::<Vec<_>>()))
        };
        let whose = busiest.as_ref().map(|it| it.whose(dataset));
        vec![
            draw::read(cell.estimate(name::THROUGHPUT)),
            draw::read(cell.estimate(name::CPU_BUSY)),
            whose.map_or_else(|| TableCell::Absent("not read".to_owned()), TableCell::Text),
            share(|it| it.0),
            share(|it| it.1),
        ]
    })
}

/// Says which CPU is busiest where most is carried, and whether it has anything left.
fn first_full(measured: &Measured<'_, '_>) -> Option<String> {
    let (best, _) = by_value(measured.cells, name::THROUGHPUT).pop()?;
    let busiest = Busiest::of(measured.dataset, best)?;
    let full = if busiest.mean() >= SATURATED_SHARE {
        "is full"
    } else {
        "is the busiest"
    };
    Some(format!(
        "{} {full} with {}: {} of its time.",
        busiest.whose(measured.dataset),
        words::whole_cell(&best.cell),
        words::percent(busiest.mean())
    ))
}

/// The busy CPUs at the highest throughput.
fn lines(measured: &Measured<'_, '_>) -> Vec<Row> {
    let best = by_value(measured.cells, name::THROUGHPUT).pop();
    let line = best.and_then(|(best, most)| {
        let busy = best.estimate(name::CPU_BUSY)?;
        let at = format!(
            "at {} with {}",
            Unit::BitsPerSecond.display(most.value),
            words::whole_cell(&best.cell)
        );
        Some(row("Busy CPUs at the highest throughput", busy, at))
    });
    line.into_iter().collect()
}
