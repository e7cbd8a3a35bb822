//! Flow → receive queue → interrupt → CPUs → NUMA node, from a host's facts.
//!
//! A socket tells the NAPI that its last packet came through; the facts `queue.DEV.rx.N.*` tell which
//! receive queue that NAPI serves, and where the queue's interrupt goes.

use std::fmt;

use linerate_model::fact::{OfQueue, QueueFact};
use linerate_model::host::{FactValue, Snapshot};
use linerate_model::run::Incoming;
use linerate_model::sample::QueueKind;

/// A receive queue, and where it is served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueOfFlow<'s> {
    /// Its device.
    pub(crate) device: &'s str,
    /// Its number on that device.
    pub(crate) number: u32,
    /// Its interrupt; absent where it has none, as on veth.
    pub(crate) irq: Option<u32>,
    /// The CPUs that the interrupt goes to, as a list.
    pub(crate) cpus: Option<&'s str>,
    /// The NUMA node of the first of them.
    pub(crate) node: Option<u32>,
}

impl fmt::Display for QueueOfFlow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rx {}", self.device, self.number)
    }
}

/// Returns the receive queue that `incoming` names; absent where no packet came through a NAPI, and
/// where the host does not tell which queue that one serves.
pub(crate) fn queue_of(snapshot: &Snapshot, incoming: Incoming) -> Option<QueueOfFlow<'_>> {
    let napi = f64::from(incoming.napi?);
    let is_it =
        |value: &FactValue| matches!(value, FactValue::Number(number, _) if *number == napi);
    let facts = snapshot.facts.iter().filter(|fact| is_it(&fact.value));
    // One NAPI may serve a transmit queue, too; only the receive queue is told.
    let mut queues = facts.filter_map(|fact| QueueFact::named(&fact.name));
    let queue = queues.find(|queue| queue.side == QueueKind::Rx && queue.what == OfQueue::Napi)?;
    let of = |what| QueueFact { what, ..queue }.to_string();
    let whole = |what| snapshot.number(&of(what)).map(|number| number as u32);
    Some(QueueOfFlow {
        device: queue.device,
        number: queue.number,
        irq: whole(OfQueue::Irq),
        cpus: snapshot.text(&of(OfQueue::Cpus)),
        node: whole(OfQueue::Node),
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Fact;
    use linerate_model::unit::Unit;

    use super::*;

    fn snapshot() -> Snapshot {
        let number = |name: &str, value| (name.to_owned(), FactValue::Number(value, Unit::None));
        let facts = [
            number("queue.eth0.10.tx.1.napi", 8194.0),
            number("queue.eth0.10.rx.1.napi", 8194.0),
            number("queue.eth0.10.rx.1.irq", 38.0),
            (
                "queue.eth0.10.rx.1.cpus".to_owned(),
                FactValue::Text("3".to_owned()),
            ),
            number("queue.eth0.10.rx.1.node", 1.0),
            number("queue.veth0.rx.0.napi", 8195.0),
            (
                "queue.veth0.rx.0.irq".to_owned(),
                FactValue::Missing("its interrupt is not reported".to_owned()),
            ),
            number("link.eth0.rx_queues", 8196.0),
        ]
        .map(|(name, value)| Fact { name, value })
        .to_vec();
        Snapshot { facts }
    }

    fn check(napi: Option<u32>, expected: Option<(&str, u32, Option<u32>)>) {
        let snapshot = snapshot();
        let found = queue_of(&snapshot, Incoming { cpu: None, napi })
            .map(|queue| (queue.device, queue.number, queue.irq));
        assert_eq!(found, expected, "{napi:?}");
    }

    #[test]
    fn a_flow_leads_to_the_queue_of_its_napi() {
        check(Some(8194), Some(("eth0.10", 1, Some(38))));
        check(Some(8195), Some(("veth0", 0, None)));
        check(Some(8196), None);
        check(None, None);
        let snapshot = snapshot();
        let incoming = Incoming {
            cpu: Some(0),
            napi: Some(8194),
        };
        let queue = queue_of(&snapshot, incoming).expect("its NAPI is known");
        assert_eq!(queue.to_string(), "eth0.10 rx 1");
        assert_eq!((queue.cpus, queue.node), (Some("3"), Some(1)));
    }
}
