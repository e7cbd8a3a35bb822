//! Chapter 6: data packets and ACK packets over time, and what losses change.

use std::collections::BTreeMap;

use linerate_model::analysis::{Axis, Chapter, Curve, Figure, Origin, Scale, Table, TableCell};
use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::Estimate;
use linerate_model::metric::Metric;
use linerate_model::number::agreeing;
use linerate_model::run::TrialRecord;
use linerate_model::unit::Unit;
use linerate_model::workload::{FlowPlan, Kind, receiving_end};

use super::draw;
use super::series::{SAMPLE_NS, Sampled};
use super::study_chapter::{Content, Measured, StudyChapter};
use crate::compare::interval::student_t_interval;
use crate::dataset::{self, CellOutcomes, Dataset, groups, varied};
use crate::diagnose::Told;
use crate::reduce::{Outcome, Readings, name};
use crate::words;

/// Share of the window that counts as its begin, and as its end.
const EDGE_SHARE: f64 = 0.1;

/// One instant of a trial: rates per second since the instant before.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment {
    at_ns: f64,
    data: f64,
    acks: f64,
    retransmitted: f64,
}

/// The course of a trial.
#[derive(Debug, Clone, PartialEq)]
struct Course {
    window_ns: f64,
    moments: Vec<Moment>,
}

/// A cell with the courses of its valid trials, by data packets per second.
struct Watched<'d, 'a> {
    cell: &'d CellOutcomes<'a>,
    /// Its levels in words, without those that all cells of its group share.
    name: String,
    courses: Vec<Course>,
}

/// Cells that are drawn together: those between which the loss differs.
struct WatchedGroup<'d, 'a> {
    /// What they share and other groups do not, in words.
    words: String,
    /// The fewest losses first.
    cells: Vec<Watched<'d, 'a>>,
}

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 6,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces figures and answer and puts tables first.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { dataset, cells, .. } = *measured;
    let groups = watched(dataset, cells);
    if groups.is_empty() {
        return;
    }
    chapter.figures = groups.iter().flat_map(figures).collect();
    chapter.tables.insert(0, table(&groups));
    let sentences: Vec<String> = groups.iter().filter_map(answer).collect();
    if !sentences.is_empty() {
        chapter.answer = Some(sentences.join(" "));
    }
    draw::add_verdicts(chapter, measured);
}

/// Returns the cells of which something was read. Where no loss was varied they are one group.
fn watched<'d, 'a>(
    dataset: &Dataset<'_>,
    cells: &[&'d CellOutcomes<'a>],
) -> Vec<WatchedGroup<'d, 'a>> {
    let factors = varied(cells);
    let watch = |cell: &'d CellOutcomes<'a>, factors: &[Factor]| {
        let courses = courses(dataset, cell);
        (!courses.is_empty()).then(|| Watched {
            cell,
            name: words::cell(&cell.cell, factors),
            courses,
        })
    };
    let (all, factors) = if factors.contains(&Factor::LinkLoss) {
        (groups(cells, Factor::LinkLoss), vec![Factor::LinkLoss])
    } else {
        let (words, cells) = (String::new(), cells.to_vec());
        (vec![dataset::CellGroup { words, cells }], factors)
    };
    let group = |group: dataset::CellGroup<'d, 'a>| {
        let cells = group.cells.into_iter();
        let cells: Vec<_> = cells.filter_map(|cell| watch(cell, &factors)).collect();
        let words = group.words;
        (!cells.is_empty()).then_some(WatchedGroup { words, cells })
    };
    all.into_iter().filter_map(group).collect()
}

/// Returns the courses of a cell's valid trials, by data packets per second.
fn courses(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Vec<Course> {
    let rate = cell.experiment.probes.sample_rate;
    let interval_ns = rate.map_or(SAMPLE_NS, |rate| rate.interval().0.cast_signed());
    let flows = cell.workload.flows();
    let course = |record: &TrialRecord| {
        let readings = Readings::of(dataset.recording, record);
        let moments = moments(&Sampled {
            readings: &readings,
            flows: &flows,
            interval_ns,
        });
        (!moments.is_empty()).then_some(Course {
            window_ns: record.window_ns as f64,
            moments,
        })
    };
    let mut outcomes: Vec<_> = cell.valid.iter().collect();
    let data = |outcome: &Outcome| outcome.value(name::DATA_SEGMENTS).unwrap_or(0.0);
    outcomes.sort_by(|a, b| data(a).total_cmp(&data(b)));
    outcomes
        .into_iter()
        .filter_map(|outcome| dataset.recording.record(outcome.trial))
        .filter_map(course)
        .collect()
}

/// Reads data packets sent and ACK packets received, both at the sending end, where one reading of
/// TCP_INFO has both.
fn moments(sampled: &Sampled<'_>) -> Vec<Moment> {
    let rates = |metric| -> BTreeMap<u64, f64> {
        let sender = |flow: &FlowPlan| receiving_end(flow.client_part).other();
        let points = sampled.rates(metric, sender);
        points
            .into_iter()
            .map(|(at_ns, rate)| (at_ns as u64, rate))
            .collect()
    };
    let [data, all_in, data_in, again] = [
        Metric::TcpDataSegsOut,
        Metric::TcpSegsIn,
        Metric::TcpDataSegsIn,
        Metric::TcpRetrans,
    ]
    .map(rates);
    data.iter()
        .filter_map(|(at_ns, data)| {
            Some(Moment {
                at_ns: *at_ns as f64,
                data: *data,
                acks: all_in.get(at_ns)? - data_in.get(at_ns)?,
                retransmitted: *again.get(at_ns)?,
            })
        })
        .collect()
}

impl Moment {
    fn is_lossy(&self) -> bool {
        self.retransmitted > 0.0
    }
}

impl Course {
    /// Returns data packets per ACK over the moments that `wanted` takes.
    fn per_ack(&self, wanted: impl Fn(&Moment) -> bool) -> Option<f64> {
        let moments = self.moments.iter().filter(|moment| wanted(moment));
        let (data, acks) = moments.fold((0.0, 0.0), |(data, acks), moment| {
            (data + moment.data, acks + moment.acks)
        });
        (acks > 0.0).then(|| data / acks)
    }

    fn at_begin(&self) -> Option<f64> {
        self.per_ack(|moment| moment.at_ns <= self.window_ns * EDGE_SHARE)
    }

    fn at_end(&self) -> Option<f64> {
        self.per_ack(|moment| moment.at_ns > self.window_ns * (1.0 - EDGE_SHARE))
    }
}

impl Watched<'_, '_> {
    /// Returns the trial in the middle, which stands for the cell in pictures: a mean over trials
    /// would smear what happens at an instant of one of them.
    fn middle(&self) -> &Course {
        &self.courses[(self.courses.len() - 1) / 2]
    }

    /// Returns mean and interval of what `value` is in each trial.
    fn estimate(&self, value: impl Fn(&Course) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.courses.iter().filter_map(value).collect();
        student_t_interval(&values, Unit::Count)
    }
}

fn figures(group: &WatchedGroup<'_, '_>) -> Vec<Figure> {
    let mut figures = vec![ratios(group), packets(group)];
    figures.extend(retransmissions(group));
    figures
}

fn curve(watched: &Watched<'_, '_>, what: &str, value: impl Fn(&Moment) -> Option<f64>) -> Curve {
    let name = match (watched.name.is_empty(), what.is_empty()) {
        (true, _) => draw::sentence(what),
        (false, true) => watched.name.clone(),
        (false, false) => format!("{}, {what}", watched.name),
    };
    let moments = watched.middle().moments.iter();
    let points = moments.filter_map(|moment| Some((moment.at_ns, value(moment)?)));
    draw::curve(name, Origin::Measured, points)
}

/// What a figure is about, whatever its group.
struct Look {
    id: &'static str,
    title: &'static str,
    caption: &'static str,
    y: (&'static str, Unit, Scale),
}

impl Look {
    fn of(self, group: &WatchedGroup<'_, '_>, curves: Vec<Curve>) -> Figure {
        let (id, title) = match group.words.as_str() {
            "" => (self.id.to_owned(), self.title.to_owned()),
            words => {
                let plain = words.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
                (
                    format!("{}-{plain}", self.id),
                    format!("{}: {words}", self.title),
                )
            }
        };
        Figure {
            id: format!("acknowledgements-{id}"),
            title,
            caption: self.caption.to_owned(),
            x: Axis::new(
                "time since the first packet",
                Unit::Nanoseconds,
                Scale::Linear,
            ),
            y: Axis::new(self.y.0.to_owned(), self.y.1, self.y.2),
            curves,
        }
    }
}

fn ratios(group: &WatchedGroup<'_, '_>) -> Figure {
    let per_ack = |moment: &Moment| {
        (moment.acks > 0.0 && moment.data > 0.0).then(|| moment.data / moment.acks)
    };
    let look = Look {
        id: "ratio",
        title: "Data packets per ACK over time",
        caption: "The receiver acknowledges packets that arrive together with one ACK, and out-of-order \
                  packets one by one, which lowers the ratio after a loss. The trial shown is the middle one \
                  of its cell.",
        // A receiver that gets no CPU for a moment answers a hundred packets at once.
        y: ("data packets per ACK", Unit::Count, Scale::Log),
    };
    let curves = group.cells.iter().map(|cell| curve(cell, "", per_ack));
    look.of(group, curves.collect())
}

fn packets(group: &WatchedGroup<'_, '_>) -> Figure {
    let curves = group.cells.iter().flat_map(|cell| {
        [
            curve(cell, "data packets", |moment| Some(moment.data)),
            curve(cell, "ACK packets", |moment| Some(moment.acks)),
        ]
    });
    let look = Look {
        id: "packets",
        title: "Data packets and ACK packets over time",
        caption: "Packets on the wire at the sender, each point the mean since the one before.",
        y: ("packets per second", Unit::PerSecond, Scale::Linear),
    };
    look.of(group, curves.collect())
}

/// Absent where nothing was sent again.
fn retransmissions(group: &WatchedGroup<'_, '_>) -> Option<Figure> {
    let any = |cell: &&Watched<'_, '_>| cell.middle().moments.iter().any(Moment::is_lossy);
    let curves: Vec<Curve> = group
        .cells
        .iter()
        .filter(any)
        .map(|cell| curve(cell, "", |moment| Some(moment.retransmitted)))
        .collect();
    let look = Look {
        id: "retransmissions",
        title: "Retransmissions over time",
        caption: "Retransmissions at the sender.",
        y: (
            "packets retransmitted per second",
            Unit::PerSecond,
            Scale::Linear,
        ),
    };
    (!curves.is_empty()).then(|| look.of(group, curves))
}

/// Returns the words of a cell in a table over all groups.
fn whole_name(group: &WatchedGroup<'_, '_>, watched: &Watched<'_, '_>) -> String {
    let parts = [group.words.as_str(), watched.name.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

fn table(groups: &[WatchedGroup<'_, '_>]) -> Table {
    let columns = [
        "Options",
        "Data packets/s",
        "ACK packets/s",
        "Data packets per ACK",
        "… in the first tenth",
        "… in the last tenth",
        "… while packets were retransmitted",
        "… at other times",
        "Retransmitted",
        "Throughput",
    ];
    let row = |group: &WatchedGroup<'_, '_>, watched: &Watched<'_, '_>| {
        let of = |response| TableCell::of(watched.cell.estimate(response), "not read");
        let lossy = watched.estimate(|course| course.per_ack(Moment::is_lossy));
        let other = watched.estimate(|course| course.per_ack(|moment| !moment.is_lossy()));
        vec![
            TableCell::Text(whole_name(group, watched)),
            of(name::DATA_SEGMENTS),
            of(name::ACKS),
            of(name::SEGMENTS_PER_ACK),
            TableCell::of(watched.estimate(Course::at_begin), "not read"),
            TableCell::of(watched.estimate(Course::at_end), "not read"),
            TableCell::of(lossy, "nothing was retransmitted"),
            TableCell::of(other, "something was always retransmitted"),
            of(name::RETRANSMITTED),
            of(name::THROUGHPUT),
        ]
    };
    let rows = groups
        .iter()
        .flat_map(|group| group.cells.iter().map(move |watched| row(group, watched)));
    Table::new("Data packets and ACKs", columns, rows)
}

/// Returns the clean cell and the lossy ones, where a loss was varied.
fn clean_and_lossy<'g, 'd, 'a>(
    group: &'g WatchedGroup<'d, 'a>,
) -> Option<(&'g Watched<'d, 'a>, &'g [Watched<'d, 'a>])> {
    let (clean, lossy) = group.cells.split_first()?;
    let level = |watched: &Watched<'_, '_>| watched.cell.level(Factor::LinkLoss).cloned();
    let is_varied = lossy.iter().any(|watched| level(watched) != level(clean));
    let is_clean = matches!(level(clean), None | Some(Level::Ppm(0)));
    (is_clean && is_varied).then_some((clean, lossy))
}

/// Returns what the group's ACKs answer, and what its highest loss changes.
fn answer(group: &WatchedGroup<'_, '_>) -> Option<String> {
    let Some((clean, lossy)) = clean_and_lossy(group) else {
        let sentences: Vec<String> = group.cells.iter().filter_map(plain_answer).collect();
        return (!sentences.is_empty()).then(|| sentences.join(" "));
    };
    let most = lossy.last()?;
    let per_ack = |watched: &Watched<'_, '_>| watched.cell.estimate(name::SEGMENTS_PER_ACK);
    let subject = match group.words.as_str() {
        "" => "An".to_owned(),
        words => format!("{}: an", draw::sentence(words)),
    };
    let data = |watched: &Watched<'_, '_>| {
        let rate = watched.cell.estimate(name::DATA_SEGMENTS);
        rate.map(|rate| words::estimate(&rate))
    };
    Some(format!(
        "{subject} ACK acknowledges {} on the link without loss and {} with {}; data packets per second: {} and {}.",
        data_packets(&per_ack(clean)?),
        words::estimate(&per_ack(most)?),
        most.name,
        data(clean)?,
        data(most)?,
    ))
}

fn data_packets(count: &Estimate) -> String {
    agreeing(&words::estimate(count), "data packet", "data packets")
}

fn plain_answer(watched: &Watched<'_, '_>) -> Option<String> {
    let number = |value| words::number(Unit::Count, value);
    let subject = match watched.name.as_str() {
        "" => "An ACK".to_owned(),
        words => format!("With {words} an ACK"),
    };
    let again = match watched.cell.mean(name::RETRANSMITTED)? {
        none if none < 0.5 => "nothing was retransmitted".to_owned(),
        some => agreeing(
            &number(some.round()),
            "packet was retransmitted",
            "packets were retransmitted",
        ),
    };
    Some(format!(
        "{subject} acknowledges {}, {} in the first tenth of the time and {} in the last; \
         {again}.",
        data_packets(&watched.cell.estimate(name::SEGMENTS_PER_ACK)?),
        number(watched.estimate(Course::at_begin)?.value),
        number(watched.estimate(Course::at_end)?.value),
    ))
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::{End, Subject, TrialSample};
    use linerate_model::samples::Samples;
    use linerate_model::workload::Part;
    use linerate_model::{FlowId, TrialId};

    use super::*;

    const TENTH_NS: i64 = 100_000_000;

    /// Eight data packets an ACK, then two with five losses, as the published course has it.
    fn samples() -> Samples {
        let series = [
            (Metric::TcpDataSegsOut, [0, 800, 1000]),
            (Metric::TcpSegsIn, [1, 102, 203]),
            (Metric::TcpDataSegsIn, [0, 1, 2]),
            (Metric::TcpRetrans, [0, 0, 5]),
        ];
        let of = |(metric, values): (Metric, [i64; 3])| {
            (0..).zip(values).map(move |(tick, value)| TrialSample {
                trial: TrialId(1),
                host: "client1".into(),
                subject: Subject::Flow(FlowId(0), End::Client),
                metric,
                at_ns: tick * TENTH_NS,
                value,
            })
        };
        series.into_iter().flat_map(of).collect()
    }

    #[test]
    fn packets_and_their_acks_are_those_of_the_sender() {
        let samples = samples();
        let readings = Readings::new(&samples, TrialId(1), 2 * TENTH_NS as u64);
        let flow = FlowPlan {
            flow: FlowId(0),
            group: 0,
            from: 1,
            to: 0,
            client_part: Part::Sender,
        };
        let found = moments(&Sampled {
            readings: &readings,
            flows: &[flow],
            interval_ns: SAMPLE_NS,
        });
        let expect = [(8000.0, 1000.0, 0.0), (2000.0, 1000.0, 50.0)];
        assert_eq!(found.len(), expect.len());
        for (moment, expect) in found.iter().zip(expect) {
            assert_eq!((moment.data, moment.acks, moment.retransmitted), expect);
        }
        let course = Course {
            window_ns: 2e8,
            moments: found,
        };
        assert_eq!(course.per_ack(|moment| !moment.is_lossy()), Some(8.0));
        assert_eq!(course.per_ack(Moment::is_lossy), Some(2.0));
        assert_eq!(course.at_end(), Some(2.0));
        assert_eq!(course.per_ack(|_| true), Some(5.0));
        assert_eq!(course.at_begin(), None);
    }
}
