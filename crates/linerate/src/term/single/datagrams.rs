//! What became of datagrams: lines of the final block.

use linerate_analyze::single::SingleTrial;
use linerate_model::unit::Unit;

use super::result::of;
use crate::term::labelled;

/// The places that lose datagrams, in the order in which these pass them, with their responses.
const PLACES: &[(&str, &str)] = &[
    ("refused by the sender's queue", "lost_sender_queue"),
    ("in the sender's qdiscs", "lost_sender_qdisc"),
    ("in the sender's devices", "lost_sender_device"),
    ("in the receiver's devices", "lost_receiver_device"),
    ("in the receiver's backlog", "lost_receiver_backlog"),
    ("with wrong checksums", "lost_checksum"),
    ("in the receive buffer", "lost_receive_buffer"),
    ("not located", "lost_not_located"),
];

/// Those that are queueing disciplines, which have a name.
const QDISCS: [&str; 2] = ["lost_sender_queue", "lost_sender_qdisc"];

/// Prints loss, order and jitter, where they were read.
pub(super) fn print(trial: &SingleTrial<'_>) {
    let count = |name: &str| of(trial, name).filter(|count| *count > 0.0);
    let whole = |count: f64| Unit::Count.display(count.round());
    if let (Some(share), Some(sent), Some(received)) = (
        of(trial, "loss_share"),
        of(trial, "datagrams_sent"),
        of(trial, "datagrams_received"),
    ) {
        let mut words = format!(
            "{} of {} datagrams ({})",
            whole((sent - received).max(0.0)),
            whole(sent),
            Unit::Percent.display(100.0 * share)
        );
        let places: Vec<String> = PLACES
            .iter()
            .filter_map(|(place, name)| {
                let lost = whole(count(name)?);
                let qdisc = trial.dropping_qdiscs.first();
                let qdisc = qdisc.filter(|_| QDISCS.contains(name));
                let which = qdisc.map_or(String::new(), |qdisc| format!(" ({qdisc})"));
                Some(format!("{lost} {place}{which}"))
            })
            .collect();
        if !places.is_empty() {
            words += &format!(": {}", places.join(", "));
        }
        labelled("lost", &words);
    }
    if let Some(unanswered) = count("requests_unanswered") {
        labelled("unanswered", &format!("{} requests", whole(unanswered)));
    }
    let order = [
        ("late", count("datagrams_late")),
        ("twice", count("datagrams_duplicate")),
    ];
    let order: Vec<String> = order
        .into_iter()
        .filter_map(|(word, count)| Some(format!("{} {word}", whole(count?))))
        .collect();
    if !order.is_empty() {
        labelled("order", &order.join(", "));
    }
    if let Some(jitter) = of(trial, "jitter_ns") {
        labelled("jitter", &Unit::Nanoseconds.display(jitter));
    }
}
