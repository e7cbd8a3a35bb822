//! Zero-copy sends that the kernel copied all the same.
//!
//! MSG_ZEROCOPY lends pages to the kernel, which copies them where the packet does not leave
//! through a device that can read them: on loopback, on veth, and with packet sockets listening
//! (Documentation/networking/msg_zerocopy.rst, "Deferred Copies"). It then costs more than a plain
//! send.

use linerate_model::TrialId;
use linerate_model::finding::Caution;

use super::caution::of_shares;
use super::found::{About, Found};
use crate::dataset::Dataset;
use crate::words;

/// Share of calls from which on it matters.
const COPIED_SHARE_MIN: f64 = 0.01;

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Found<'static>> {
    let copied: Vec<(TrialId, f64)> = dataset
        .recording
        .flows
        .iter()
        .filter_map(|flow| Some((flow.trial, flow.zero_copy?.copied_share()?)))
        .filter(|(_, share)| *share >= COPIED_SHARE_MIN)
        .collect();
    finding(&copied).into_iter().collect()
}

fn finding(copied: &[(TrialId, f64)]) -> Option<Found<'static>> {
    let what = "share of MSG_ZEROCOPY sends that the kernel copied";
    let mut evidence = of_shares(what, copied)?;
    evidence.trials.sort_unstable();
    evidence.trials.dedup();
    Some(Found::caution(
        About::Run,
        Caution::ZeroCopy,
        format!(
            "MSG_ZEROCOPY fell back to copying for {} of the data.",
            words::percent(evidence.estimate.value)
        ),
        "Loopback, veth and devices without scatter-gather always copy, and lending the pages then \
         costs more than a plain send. Send with -Z=vmsplice, or let -Z choose; across a network card \
         MSG_ZEROCOPY may still save the copy.",
        evidence,
    ))
}
