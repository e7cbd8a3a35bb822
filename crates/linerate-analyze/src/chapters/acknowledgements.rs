//! Chapter 6: data packets and ACK packets over time.

use std::collections::BTreeMap;

use linerate_model::analysis::{Axis, Chapter, Curve, Figure, Origin, Scale, Table, TableCell};
use linerate_model::experiment::Factor;
use linerate_model::metric::Metric;
use linerate_model::sample::End;
use linerate_model::unit::Unit;
use linerate_model::workload::{FlowPlan, receiving_end};

use super::{draw, series};
use crate::dataset::{CellOutcomes, Dataset, varied};
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

/// The course of the trial that stands for a cell.
struct Course {
    name: String,
    window_ns: f64,
    moments: Vec<Moment>,
}

/// Replaces figures and answer and puts a table first.
pub(super) fn fill(chapter: &mut Chapter, dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) {
    let factors = varied(cells);
    let courses: Vec<Course> = cells
        .iter()
        .filter_map(|cell| course(dataset, cell, &factors))
        .collect();
    if courses.is_empty() {
        return;
    }
    chapter.figures = vec![packets(&courses), ratio(&courses)];
    chapter.figures.extend(retransmissions(&courses));
    chapter.tables.insert(0, table(cells, &factors, &courses));
    chapter.answer = answer(cells, &factors, &courses).or(chapter.answer.take());
}

/// Returns the course of the cell's middle trial by data packets per second: a mean over trials
/// would smear what happens at an instant of one of them.
fn course(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, factors: &[Factor]) -> Option<Course> {
    let rate = |outcome: &&Outcome| outcome.value(name::DATA_SEGMENTS);
    let mut outcomes: Vec<&Outcome> = cell.valid.iter().filter(|it| rate(it).is_some()).collect();
    outcomes.sort_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)));
    let outcome = *outcomes.get(outcomes.len().checked_sub(1)? / 2)?;
    let records = &dataset.recording.trials;
    let record = records.iter().find(|it| it.trial == outcome.trial)?;
    let readings = Readings::new(&dataset.recording.samples, outcome.trial, record.window_ns);
    let moments = moments(&readings, &cell.workload.flows());
    let words = words::cell(&cell.cell, factors);
    (!moments.is_empty()).then_some(Course {
        name: words,
        window_ns: record.window_ns as f64,
        moments,
    })
}

/// Reads data packets sent and ACK packets received, both at the sending end, where one reading of
/// TCP_INFO has both.
fn moments(readings: &Readings<'_>, flows: &[FlowPlan]) -> Vec<Moment> {
    let rates = |metric| -> BTreeMap<u64, f64> {
        let points = series::rates(readings, flows, metric, |flow| {
            match receiving_end(flow.client_part) {
                End::Client => End::Server,
                End::Server => End::Client,
            }
        });
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

fn curve(course: &Course, what: &str, value: impl Fn(&Moment) -> Option<f64>) -> Curve {
    let name = match (course.name.is_empty(), what.is_empty()) {
        (true, _) => draw::sentence(what),
        (false, true) => course.name.clone(),
        (false, false) => format!("{}, {what}", course.name),
    };
    let moments = course.moments.iter();
    let points = moments.filter_map(|moment| Some((moment.at_ns, value(moment)?)));
    draw::curve(name, Origin::Measured, points)
}

fn figure(id: &str, title: &str, caption: &str, y: (&str, Unit), curves: Vec<Curve>) -> Figure {
    Figure {
        id: format!("acknowledgements-{id}"),
        title: title.to_owned(),
        caption: caption.to_owned(),
        x: Axis {
            label: "time since the first packet".to_owned(),
            unit: Unit::Nanoseconds,
            scale: Scale::Linear,
        },
        y: Axis {
            label: y.0.to_owned(),
            unit: y.1,
            scale: Scale::Linear,
        },
        curves,
    }
}

fn packets(courses: &[Course]) -> Figure {
    let curves = courses.iter().flat_map(|course| {
        [
            curve(course, "data packets", |moment| Some(moment.data)),
            curve(course, "ACK packets", |moment| Some(moment.acks)),
        ]
    });
    figure(
        "packets",
        "Data packets and ACK packets over time",
        "Packets on the wire at the sender, each point the mean since the one before. The trial \
         shown is the middle one of its cell.",
        ("packets per second", Unit::PerSecond),
        curves.collect(),
    )
}

fn ratio(courses: &[Course]) -> Figure {
    let per_ack = |moment: &Moment| (moment.acks > 0.0).then(|| moment.data / moment.acks);
    figure(
        "ratio",
        "Data packets per ACK over time",
        "The receiver answers packets that come together with one ACK, and packets out of order \
         one by one: after a loss the ratio falls.",
        ("data packets per ACK", Unit::Count),
        courses
            .iter()
            .map(|course| curve(course, "", per_ack))
            .collect(),
    )
}

/// Absent where nothing was sent again.
fn retransmissions(courses: &[Course]) -> Option<Figure> {
    let again = |moment: &Moment| moment.retransmitted > 0.0;
    let any = courses
        .iter()
        .any(|course| course.moments.iter().any(again));
    any.then(|| {
        figure(
            "retransmissions",
            "Packets sent again over time",
            "Retransmissions at the sender.",
            ("packets sent again per second", Unit::PerSecond),
            courses
                .iter()
                .map(|course| curve(course, "", |moment| Some(moment.retransmitted)))
                .collect(),
        )
    })
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

fn table(cells: &[&CellOutcomes<'_>], factors: &[Factor], courses: &[Course]) -> Table {
    let columns = [
        "Options",
        "Data packets/s",
        "ACK packets/s",
        "Data packets per ACK",
        "… in the first tenth",
        "… in the last tenth",
        "… while packets were sent again",
        "Sent again",
        "Throughput",
    ];
    let row = |cell: &&CellOutcomes<'_>| {
        let words = words::cell(&cell.cell, factors);
        let course = courses.iter().find(|course| course.name == words);
        let estimate = |response| match cell.estimate(response) {
            Some(estimate) => TableCell::Estimate(estimate),
            None => TableCell::Absent("not read".to_owned()),
        };
        let part = |value: Option<f64>, why: &str| match value {
            Some(value) => TableCell::Number(value, Unit::Count),
            None => TableCell::Absent(why.to_owned()),
        };
        let lossy = |course: &Course| course.per_ack(|moment| moment.retransmitted > 0.0);
        let mut row = vec![
            TableCell::Text(words),
            estimate(name::DATA_SEGMENTS),
            estimate(name::ACKS),
            estimate(name::SEGMENTS_PER_ACK),
        ];
        row.extend([
            part(course.and_then(Course::at_begin), "not read"),
            part(course.and_then(Course::at_end), "not read"),
            part(course.and_then(lossy), "nothing was sent again"),
            estimate(name::RETRANSMITTED),
            estimate(name::THROUGHPUT),
        ]);
        row
    };
    Table {
        title: "Data packets and ACKs".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: cells.iter().map(row).collect(),
    }
}

fn answer(cells: &[&CellOutcomes<'_>], factors: &[Factor], courses: &[Course]) -> Option<String> {
    let sentence = |course: &Course| {
        let cell = cells
            .iter()
            .find(|cell| words::cell(&cell.cell, factors) == course.name)?;
        let number = |value| words::number(Unit::Count, value);
        let subject = match course.name.as_str() {
            "" => "An ACK".to_owned(),
            words => format!("With {words} an ACK"),
        };
        let again = match cell.mean(name::RETRANSMITTED)? {
            none if none < 0.5 => "nothing was sent again".to_owned(),
            some => format!("{} packets were sent again", number(some.round())),
        };
        Some(format!(
            "{subject} answers {} data packets, {} in the first tenth of the time and {} in the \
             last; {again}.",
            number(cell.mean(name::SEGMENTS_PER_ACK)?),
            number(course.at_begin()?),
            number(course.at_end()?),
        ))
    };
    let sentences: Vec<String> = courses.iter().filter_map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::{Subject, TrialSample};
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
            client: 0,
            client_part: Part::Sender,
        };
        let found = moments(&readings, &[flow]);
        let expect = [(8000.0, 1000.0, 0.0), (2000.0, 1000.0, 50.0)];
        assert_eq!(found.len(), expect.len());
        for (moment, expect) in found.iter().zip(expect) {
            assert_eq!((moment.data, moment.acks, moment.retransmitted), expect);
        }
        let course = Course {
            name: String::new(),
            window_ns: 2e8,
            moments: found,
        };
        assert_eq!(
            course.per_ack(|moment| moment.retransmitted == 0.0),
            Some(8.0)
        );
        assert_eq!(course.at_end(), Some(2.0));
        assert_eq!(course.per_ack(|_| true), Some(5.0));
        assert_eq!(course.at_begin(), None);
        assert!(retransmissions(&[course]).is_some());
    }
}
