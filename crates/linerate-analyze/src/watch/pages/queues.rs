//! The queues of network devices: how packets are spread over them, and where each is served.

use std::collections::BTreeMap;

use linerate_model::analysis::Table;
use linerate_model::fact::{OfQueue, QueueFact};
use linerate_model::host::Snapshot;
use linerate_model::metric::Metric;
use linerate_model::number::counted;
use linerate_model::sample::{QueueKind, Subject};
use linerate_model::unit::Unit;

use super::super::{Span, Watched};
use super::{Page, fact, number, tenths, text, unit_of_counts, volume};
use crate::compare::balance::{SEED, chance, imbalance};
use crate::reduce::queues_in_use;

/// One queue.
struct Queue<'w> {
    link: &'w str,
    side: QueueKind,
    number: u32,
    packets: Option<f64>,
    bytes: Option<f64>,
    drops: Option<f64>,
}

pub(super) fn page(watched: &Watched, facts: &Snapshot, span: Span) -> Page {
    let queues = queues(watched, facts, span);
    let unit = unit_of_counts(span);
    let line = |queue: &Queue<'_>| {
        let all = sum_of(&queues, queue.link, queue.side);
        let share = queue.packets.filter(|_| all > 0.0);
        let (device, side, at) = (queue.link, queue.side, queue.number);
        let place = |what| {
            let queue = QueueFact {
                device,
                side,
                number: at,
                what,
            };
            fact(facts, &queue.to_string())
        };
        vec![
            text(format!("{device} {side} {at}")),
            number(queue.packets, unit),
            number(
                share.map(|packets| tenths(100.0 * packets / all)),
                Unit::Percent,
            ),
            volume(queue.bytes, span),
            number(queue.drops, unit),
            place(OfQueue::Irq),
            place(OfQueue::Cpus),
            place(OfQueue::Node),
        ]
    };
    Page {
        name: "Queues",
        table: Table::new(
            "Packets by queue",
            [
                "queue", "packets", "share", "bits", "drops", "irq", "CPUs", "node",
            ],
            queues.iter().map(line),
        ),
        trend: 1,
        verdict: (watched.readings() > 1 || queues.is_empty())
            .then(|| verdict(watched, &queues, span)),
        named_by: &[0],
        is_prose: false,
    }
}

fn queues<'w>(watched: &'w Watched, facts: &Snapshot, span: Span) -> Vec<Queue<'w>> {
    let rows = watched.subjects().filter_map(|subject| {
        let Subject::Queue(link, side, number) = subject else {
            return None;
        };
        if *number >= queues_in_use(facts, link, *side) {
            return None;
        }
        let [packets, bytes, drops] = match side {
            QueueKind::Rx => [
                Metric::QueueRxPackets,
                Metric::QueueRxBytes,
                Metric::QueueRxDrops,
            ],
            QueueKind::Tx => [
                Metric::QueueTxPackets,
                Metric::QueueTxBytes,
                Metric::QueueTxDrops,
            ],
        };
        let change = |metric| watched.change(subject, metric, span);
        Some(Queue {
            link,
            side: *side,
            number: *number,
            packets: change(packets),
            bytes: change(bytes),
            drops: change(drops),
        })
    });
    rows.collect()
}

fn sum_of(queues: &[Queue<'_>], link: &str, side: QueueKind) -> f64 {
    let same = queues
        .iter()
        .filter(|queue| queue.link == link && queue.side == side);
    same.filter_map(|queue| queue.packets).sum()
}

/// Returns how unevenly packets lie where most of them go, and what chance alone would give.
fn verdict(watched: &Watched, queues: &[Queue<'_>], span: Span) -> String {
    if queues.is_empty() {
        return "no device here counts by queue".to_owned();
    }
    let mut sides: BTreeMap<(&str, QueueKind), Vec<&Queue<'_>>> = BTreeMap::new();
    for queue in queues {
        sides
            .entry((queue.link, queue.side))
            .or_default()
            .push(queue);
    }
    let uneven = sides.into_iter().filter_map(|(side, queues)| {
        let loads: Vec<f64> = queues
            .iter()
            .map(|queue| queue.packets.unwrap_or(0.0))
            .collect();
        let uneven = imbalance(&loads).filter(|_| loads.len() > 1)?;
        let fullest = queues.iter().max_by(|a, b| {
            a.packets
                .partial_cmp(&b.packets)
                .unwrap_or(std::cmp::Ordering::Equal)
        })?;
        let all: f64 = loads.iter().sum();
        Some((all, side, fullest.number, loads.len() as u32, uneven))
    });
    let most = uneven.max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, (link, side), number, count, most)) = most else {
        return "no device has several queues with packets now".to_owned();
    };
    let flows = watched.sockets.moving_beyond_this_host(span) as u32;
    let equal = counted(flows, "equal flow");
    let words = format!("{link} {side}: queue {number} has {most:.1} times the mean of {count}");
    match chance(flows, count, SEED) {
        Some(chance) if most > chance.most => format!(
            "{words}, more than random hashing of {equal} gives (up to {:.1})",
            chance.most
        ),
        Some(chance) => format!(
            "{words}; random hashing of {equal} gives up to {:.1}",
            chance.most
        ),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::host::{Fact, FactValue};

    use super::super::super::tests::sample;
    use super::*;

    fn watched(packets: &[i64]) -> Watched {
        of_devices(&[("eth0", packets)])
    }

    fn of_devices(devices: &[(&str, &[i64])]) -> Watched {
        let mut watched = Watched::default();
        for (at_ns, turn) in [(0, 0), (1_000_000_000, 1)] {
            let mut samples = Vec::new();
            for (device, packets) in devices {
                let queue = |(number, packets): (usize, &i64)| {
                    let subject = format!("queue:{device}:rx:{number}");
                    sample(&subject, Metric::QueueRxPackets, at_ns, turn * packets)
                };
                samples.extend(packets.iter().enumerate().map(queue));
            }
            watched.take(at_ns, &samples);
        }
        watched
    }

    #[test]
    fn a_device_that_rests_says_nothing_of_the_one_that_works() {
        let watched = of_devices(&[("eth0", &[3, 0, 0, 0]), ("eth1", &[400, 200, 100, 100])]);
        let page = page(&watched, &Snapshot::default(), Span::PerSecond);
        let verdict = page.verdict.unwrap();
        assert_eq!(verdict, "eth1 rx: queue 0 has 2.0 times the mean of 4");
    }

    #[test]
    fn the_fullest_queue_is_named_with_its_excess() {
        let page = page(
            &watched(&[100, 700, 0, 0]),
            &Snapshot::default(),
            Span::PerSecond,
        );
        assert_eq!(page.table.rows.len(), 4);
        let share = linerate_model::analysis::TableCell::Number(87.5, Unit::Percent);
        assert_eq!(page.table.rows[1][2], share);
        let verdict = page.verdict.unwrap();
        assert_eq!(verdict, "eth0 rx: queue 1 has 3.5 times the mean of 4");
    }

    #[test]
    fn queues_that_the_card_does_not_use_are_no_part_of_the_mean() {
        let in_use = |side: &str, count| Fact {
            name: format!("link.eth0.{side}_queues"),
            value: FactValue::Number(count, Unit::Count),
        };
        let facts = Snapshot {
            facts: vec![in_use("rx", 2.0), in_use("tx", 1.0)],
        };
        let page = page(&watched(&[100, 300, 0, 0]), &facts, Span::PerSecond);
        assert_eq!(page.table.rows.len(), 2);
        let verdict = page.verdict.unwrap();
        assert_eq!(verdict, "eth0 rx: queue 1 has 1.5 times the mean of 2");
    }

    #[test]
    fn one_queue_and_none_have_no_balance() {
        let verdict = |packets: &[i64]| {
            let page = page(&watched(packets), &Snapshot::default(), Span::PerSecond);
            page.verdict.unwrap()
        };
        assert_eq!(verdict(&[]), "no device here counts by queue");
        assert!(verdict(&[5]).starts_with("no device has several queues"));
        assert!(verdict(&[0, 0]).starts_with("no device has several queues"));
    }
}
