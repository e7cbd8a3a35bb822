//! What became of datagrams: lines of the final block.

use linerate_analyze::single::{OneWay, SingleTrial};
use linerate_model::number;
use linerate_model::response::name;
use linerate_model::unit::Unit;

use super::result::{list, of};
use crate::term::labelled;

/// The places that lose datagrams, in the order in which these pass them, with their responses.
const PLACES: &[(&str, &str)] = &[
    ("refused by the sender's queue", name::LOST_SENDER_QUEUE),
    ("in the sender's qdiscs", name::LOST_SENDER_QDISC),
    ("in the sender's devices", name::LOST_SENDER_DEVICE),
    ("in the receiver's devices", name::LOST_RECEIVER_DEVICE),
    ("in the receiver's backlog", name::LOST_BACKLOG),
    ("in the receiver's qdiscs", name::LOST_RECEIVER_QDISC),
    (
        "in the receiver's reassembly of fragments",
        name::LOST_REASSEMBLY,
    ),
    (
        "not delivered by the receiver's IP (packet filter)",
        name::LOST_RECEIVER_IP,
    ),
    ("with wrong checksums", name::LOST_CHECKSUM),
    ("in the receive buffer", name::LOST_RECEIVE_BUFFER),
    ("not located", name::LOST_NOT_LOCATED),
];

/// Those that are queueing disciplines, which have a name.
const QDISCS: [&str; 2] = [name::LOST_SENDER_QUEUE, name::LOST_SENDER_QDISC];

/// Prints loss, order and jitter, where they were read.
pub(super) fn print(trial: &SingleTrial<'_>) {
    let count = |name: &str| of(trial, name).filter(|count| *count > 0.0);
    let whole = |count: f64| Unit::Count.display(count.round());
    if let (Some(share), Some(sent), Some(received)) = (
        of(trial, name::LOSS_SHARE),
        of(trial, name::DATAGRAMS_SENT),
        of(trial, name::DATAGRAMS_RECEIVED),
    ) {
        let mut words = format!(
            "{} of {} of the whole trial ({})",
            whole((sent - received).max(0.0)),
            number::counted(sent.round() as u64, "datagram"),
            number::percent(share)
        );
        let places = PLACES.iter().filter_map(|(place, name)| {
            let lost = whole(count(name)?);
            let qdisc = trial
                .dropping_qdiscs
                .first()
                .filter(|_| QDISCS.contains(name));
            let which = qdisc.map_or(String::new(), |qdisc| format!(" ({qdisc})"));
            Some(format!("{lost} {place}{which}"))
        });
        if let Some(places) = list(places, ", ") {
            words += &format!(": {places}");
        }
        labelled("lost", &words);
    }
    if let Some(unanswered) = count(name::UNANSWERED) {
        let unanswered = number::counted(unanswered.round() as u64, "request");
        labelled("unanswered", &unanswered);
    }
    let order = [
        ("late", count(name::LATE)),
        ("twice", count(name::DUPLICATES)),
    ]
    .into_iter()
    .filter_map(|(word, count)| Some(format!("{} {word}", whole(count?))));
    if let Some(order) = list(order, ", ") {
        labelled("order", &order);
    }
    if let Some(jitter) = of(trial, name::JITTER) {
        labelled("jitter", &Unit::Nanoseconds.display(jitter));
    }
    for way in &trial.one_way {
        labelled("one way", &one_way(way));
    }
}

fn one_way(way: &OneWay) -> String {
    let time = |us: f64| Unit::Nanoseconds.display(us * 1e3);
    let direction = way.direction.in_words();
    if !way.known {
        let open = time(way.uncertainty_us);
        return format!(
            "{direction}: not known, it is shorter than the {open} that the clocks leave open"
        );
    }
    // Hosts with one clock know it exactly.
    let open = match way.uncertainty_us {
        us if us > 0.0 => format!(" ± {}", time(us)),
        _ => String::new(),
    };
    format!(
        "{direction}: {}{open} in the mean ({} to {})",
        time(way.mean_us),
        time(way.shortest_us),
        time(way.longest_us)
    )
}
