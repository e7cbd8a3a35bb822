//! Which interrupt, CPUs and NUMA node serve each queue of the data link.

use std::collections::BTreeMap;

use linerate_model::analysis::{Table, TableCell};
use linerate_model::fact::{IrqFact, OfIrq, OfQueue, QueueFact};
use linerate_model::host::{FactValue, Snapshot};
use linerate_model::sample::QueueKind;
use linerate_model::unit::Unit;

use super::draw::unless_empty;

/// The columns of [`served`].
pub(super) const SERVED: [&str; 4] = ["Interrupt", "Its name", "CPUs", "NUMA node"];

/// Returns the table of the queues of `link`; absent where nobody tells of any.
///
/// `flows` are the flow ends that came by each receive queue, where their sockets told.
pub(super) fn queues(
    snapshot: &Snapshot,
    link: &str,
    flows: &BTreeMap<u32, usize>,
) -> Option<Table> {
    let facts = snapshot.facts.iter();
    let of_link = facts
        .filter_map(|fact| QueueFact::named(&fact.name))
        .filter(|queue| queue.device == link && queue.what == OfQueue::Irq);
    let mut queues: Vec<(QueueKind, u32)> =
        of_link.map(|queue| (queue.side, queue.number)).collect();
    queues.sort_unstable();
    let row = |&(side, number): &(QueueKind, u32)| {
        let mut row = vec![TableCell::Text(format!("{side} {number}"))];
        row.extend(served(snapshot, link, side, number));
        if !flows.is_empty() {
            row.push(match side {
                QueueKind::Rx => {
                    let flows = flows.get(&number).copied().unwrap_or(0);
                    TableCell::Number(flows as f64, Unit::Count)
                }
                QueueKind::Tx => TableCell::Text("–".to_owned()),
            });
        }
        row
    };
    let mut columns = vec!["Queue"];
    columns.extend(SERVED);
    if !flows.is_empty() {
        columns.push("Flows of all trials");
    }
    unless_empty(Table::new(
        "Queues of the link",
        columns,
        queues.iter().map(row),
    ))
}

/// Returns where a queue is served: its interrupt, that one's name, CPUs and NUMA node.
pub(super) fn served(
    snapshot: &Snapshot,
    link: &str,
    side: QueueKind,
    number: u32,
) -> [TableCell; SERVED.len()] {
    let of = |what| {
        let fact = QueueFact {
            device: link,
            side,
            number,
            what,
        };
        fact.to_string()
    };
    let irq = snapshot.number(&of(OfQueue::Irq)).map(|number| IrqFact {
        irq: number as u32,
        what: OfIrq::Action,
    });
    [
        cell(snapshot, &of(OfQueue::Irq)),
        TableCell::of(
            irq.and_then(|action| snapshot.text(&action.to_string())),
            "it has no interrupt of its own",
        ),
        cell(snapshot, &of(OfQueue::Cpus)),
        cell(snapshot, &of(OfQueue::Node)),
    ]
}

fn cell(snapshot: &Snapshot, name: &str) -> TableCell {
    snapshot
        .value(name)
        .map_or_else(|| TableCell::Absent("not read".to_owned()), fact_cell)
}

/// Returns the cell of a fact.
pub(super) fn fact_cell(value: &FactValue) -> TableCell {
    match value {
        FactValue::Number(number, Unit::None) => TableCell::Text(number.to_string()),
        FactValue::Number(number, unit) => TableCell::Number(*number, *unit),
        FactValue::Text(text) => TableCell::Text(text.clone()),
        FactValue::Missing(reason) => TableCell::Absent(reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Fact;

    use super::*;

    #[test]
    fn queues_are_in_order_and_say_what_is_not_known() {
        let number = |name: &str, value| (name.to_owned(), FactValue::Number(value, Unit::None));
        let text = |name: &str, text: &str| (name.to_owned(), FactValue::Text(text.to_owned()));
        let missing = "queue.eth0.tx.0.irq".to_owned();
        let facts = [
            text("irq.38.action", "eth0-rx-2"),
            number("queue.eth0.rx.10.irq", 46.0),
            text("queue.eth0.rx.2.cpus", "3"),
            number("queue.eth0.rx.2.irq", 38.0),
            number("queue.eth0.rx.2.node", 1.0),
            (missing, FactValue::Missing("not reported".to_owned())),
            number("queue.eth1.rx.0.irq", 50.0),
        ]
        .map(|(name, value)| Fact { name, value })
        .to_vec();
        let snapshot = Snapshot { facts };
        let table = queues(&snapshot, "eth0", &BTreeMap::new()).expect("queues");
        let text = |text: &str| TableCell::Text(text.to_owned());
        let first: Vec<_> = table.rows.iter().map(|row| row[0].clone()).collect();
        assert_eq!(first, [text("rx 2"), text("rx 10"), text("tx 0")]);
        assert_eq!(
            table.rows[0][1..],
            [text("38"), text("eth0-rx-2"), text("3"), text("1")]
        );
        assert!(matches!(&table.rows[2][1], TableCell::Absent(why) if why == "not reported"));
        assert!(queues(&Snapshot::default(), "eth0", &BTreeMap::new()).is_none());
        let flows = BTreeMap::from([(10, 7)]);
        let table = queues(&snapshot, "eth0", &flows).expect("queues");
        let last: Vec<_> = table.rows.iter().map(|row| row[5].clone()).collect();
        let number = |flows| TableCell::Number(flows, Unit::Count);
        assert_eq!(last, [number(0.0), number(7.0), text("–")]);
    }
}
