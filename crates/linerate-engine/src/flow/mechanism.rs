//! By which calls bulk payload moves: what cannot be, what was chosen, and how that is told.

use linerate_model::manner::{Manner, ReceiveBy, SendBy, Transport};
use linerate_model::workload::{MESSAGE_BYTES_MAX, Part, Setting, Traffic};

use crate::flow::{FlowConfig, probe, settings};
use crate::measure::counters::Counts;
use crate::sys::zerocopy::Completions;

/// Why calls carry several messages that nobody asked for: see
/// [`linerate_model::manner::stream_batch`].
const CHOSEN_BATCH: &str = "chosen: as fast as it goes, without a size";

/// Returns what keeps a stream over TCP, MPTCP or a Unix socket from running as configured.
pub(super) fn check_stream(config: &FlowConfig, message_bytes: u64) -> Option<&'static str> {
    let manner = &config.manner;
    let largest = manner
        .sizes
        .as_ref()
        .map_or(message_bytes, |sizes| sizes.largest().0);
    let rules = [
        (message_bytes == 0, "message_bytes is 0"),
        (
            largest.saturating_mul(manner.batch.into()) > MESSAGE_BYTES_MAX.0,
            "the messages of one call (`batch` times the largest) are more than 64 MiB",
        ),
        (
            manner.requests_per_s.is_some() || manner.think.is_some() || manner.in_flight != 1,
            "a stream has no requests: `requests_per_s`, `think` and `in_flight` are for them",
        ),
        (
            manner.segments != 1 || manner.gro || manner.short_numbers,
            "`segments`, `gro` and `short_numbers` are for datagrams",
        ),
        (
            manner.burst > 1 && manner.rate_bps.is_none(),
            "a burst is part of a rate, and there is none",
        ),
        (
            manner.transport == Transport::Unix && manner.receive_low_water.is_some(),
            "`receive_low_water` is of TCP and MPTCP: a Unix socket wakes for every send",
        ),
        (
            manner.transport == Transport::Unix && manner.receive == ReceiveBy::Discard,
            "Unix sockets cannot discard what they receive: receive by copying",
        ),
        (
            manner.transport != Transport::Tcp && manner.send == SendBy::MsgZerocopy,
            "MSG_ZEROCOPY works with TCP only: send by vmsplice, or by copying",
        ),
    ];
    rules.into_iter().find(|rule| rule.0).map(|rule| rule.1)
}

/// Returns what keeps traffic that is no stream from moving as configured.
pub(super) fn check_other(manner: &Manner) -> Option<&'static str> {
    if manner.send != SendBy::Copy || manner.receive != ReceiveBy::Copy {
        return Some("only a stream can be sent or received other than by copying");
    }
    if manner.bytes_max.is_some() {
        return Some("only a stream ends after so many bytes");
    }
    if manner.receive_low_water.is_some() {
        return Some("only the receiver of a stream can sleep until `receive_low_water` has come");
    }
    let paced = manner.rate_bps.is_some();
    paced.then_some("only a stream has a rate in bits; `requests_per_s` is that of requests")
}

/// Returns how this end sends, which is never [`SendBy::Auto`], and the settings that tell it.
///
/// Choosing takes up to 30 ms the first time.
pub(super) fn choose(config: &FlowConfig) -> (SendBy, Vec<Setting>) {
    let manner = &config.manner;
    if !matches!(config.traffic, Traffic::Stream { .. }) || manner.transport == Transport::Udp {
        return (SendBy::Copy, Vec::new());
    }
    if config.part == Part::Receiver {
        let by = receive_name(manner.receive).to_owned();
        let requested = (manner.receive != ReceiveBy::Copy).then(|| by.clone());
        return (
            SendBy::Copy,
            vec![settings::plain("receive", requested, Some(by))],
        );
    }
    let (by, granted) = match manner.send {
        SendBy::Auto => {
            let choice = probe::choice(manner.transport);
            (
                choice.by,
                format!("{} ({})", send_name(choice.by), choice.reason),
            )
        }
        by if manner.batch_is_chosen => {
            let batch = manner.batch;
            let granted = format!(
                "{}, {batch} messages a call ({CHOSEN_BATCH})",
                send_name(by)
            );
            (by, granted)
        }
        by => (by, send_name(by).to_owned()),
    };
    let requested = (manner.send != SendBy::Copy).then(|| send_name(manner.send).to_owned());
    (by, vec![settings::plain("send", requested, Some(granted))])
}

/// Returns how payload was sent, for the setting's effective value.
pub(crate) fn sent(by: SendBy, counts: &Counts, completions: Option<Completions>) -> String {
    let mut text = format!(
        "{}, {}",
        send_name(by),
        a_call(counts.bytes_sent, counts.calls)
    );
    if let Some(Completions { done, copied }) = completions {
        let share = copied as f64 / done.max(1) as f64 * 100.0;
        text += &format!(", copied by the kernel after all: {share:.0} % of {done} calls");
    }
    text
}

/// Returns how payload was received, for the setting's effective value.
pub(crate) fn received(by: ReceiveBy, counts: &Counts) -> String {
    format!(
        "{}, {}",
        receive_name(by),
        a_call(counts.bytes_received, counts.calls)
    )
}

/// Returns the mean size of a call, in words.
fn a_call(bytes: u64, calls: u64) -> String {
    let mean = bytes as f64 / calls.max(1) as f64;
    if mean < 10_000.0 {
        return format!("{mean:.0} B a call");
    }
    format!("{:.0} KiB a call", mean / 1024.0)
}

/// Returns the name of a way to send.
pub(super) fn send_name(by: SendBy) -> &'static str {
    match by {
        SendBy::Copy => "send",
        SendBy::Auto => "auto",
        SendBy::Vmsplice => "vmsplice",
        SendBy::MsgZerocopy => "MSG_ZEROCOPY",
        SendBy::Sendfile => "sendfile",
    }
}

fn receive_name(by: ReceiveBy) -> &'static str {
    match by {
        ReceiveBy::Copy => "recv",
        ReceiveBy::Discard => "discard (MSG_TRUNC)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_with_its_numbers() {
        let counts = Counts {
            bytes_sent: 3 << 20,
            bytes_received: 1000,
            calls: 6,
            ..Counts::default()
        };
        let completions = Completions { done: 8, copied: 2 };
        assert_eq!(
            sent(SendBy::Vmsplice, &counts, None),
            "vmsplice, 512 KiB a call"
        );
        assert_eq!(
            sent(SendBy::MsgZerocopy, &counts, Some(completions)),
            "MSG_ZEROCOPY, 512 KiB a call, copied by the kernel after all: 25 % of 8 calls"
        );
        assert_eq!(
            received(ReceiveBy::Discard, &counts),
            "discard (MSG_TRUNC), 167 B a call"
        );
    }
}
