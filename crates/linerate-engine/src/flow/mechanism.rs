//! By which calls bulk payload moves: what was chosen, and how that is told.

use linerate_model::manner::{ReceiveBy, SendBy, Transport};
use linerate_model::run::ZeroCopyCount;
use linerate_model::setting::name;
use linerate_model::workload::{Part, Setting};

use crate::flow::{FlowConfig, probe};
use crate::measure::counters::Counts;

/// Why calls carry several messages that nobody asked for: see
/// [`linerate_model::workload::Workload::stream_batch`].
const CHOSEN_BATCH: &str = "chosen, as no rate and no size are given";

/// Returns how this end sends, which is never [`SendBy::Auto`], and the settings that tell it.
///
/// Choosing takes up to 30 ms the first time.
pub(super) fn choose(config: &FlowConfig) -> (SendBy, Vec<Setting>) {
    let manner = &config.manner;
    if !config.traffic.is_stream() || manner.transport == Transport::Udp {
        return (SendBy::Copy, Vec::new());
    }
    if config.part == Part::Receiver {
        let by = receive_name(manner.receive).to_owned();
        let requested = (manner.receive != ReceiveBy::Copy).then(|| by.clone());
        return (
            SendBy::Copy,
            vec![Setting::granted(name::RECEIVE, requested, Some(by))],
        );
    }
    let (by, why) = match manner.send {
        SendBy::Auto => {
            let choice = probe::choice(manner.transport);
            (choice.by, Some(choice.reason))
        }
        by => (by, manner.batch_is_chosen.then(|| CHOSEN_BATCH.to_owned())),
    };
    let mut granted = send_name(by).to_owned();
    if manner.batch_is_chosen && manner.send != SendBy::Auto {
        let batch = manner.batch;
        granted += &format!(", {batch} messages per call");
    }
    let requested = (manner.send != SendBy::Copy).then(|| send_name(manner.send).to_owned());
    let said = Setting::granted(name::SEND, requested, Some(granted));
    (by, vec![said.because(why)])
}

/// Returns how payload was sent, for the setting's effective value.
pub(crate) fn sent_words(by: SendBy, counts: &Counts, zero_copy: Option<ZeroCopyCount>) -> String {
    let mut text = format!(
        "{}, {}",
        send_name(by),
        a_call(counts.bytes_sent, counts.calls)
    );
    if let Some(calls) = zero_copy
        && let Some(share) = calls.copied_share()
    {
        let (percent, done) = (share * 100.0, calls.done);
        text += &format!(", copied by the kernel after all: {percent:.0} % of {done} calls");
    }
    text
}

/// Returns how payload was received, for the setting's effective value.
pub(crate) fn received_words(by: ReceiveBy, counts: &Counts) -> String {
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
        return format!("{mean:.0} B per call");
    }
    format!("{:.0} KiB per call", mean / 1024.0)
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
        let calls = ZeroCopyCount { done: 8, copied: 2 };
        assert_eq!(
            sent_words(SendBy::Vmsplice, &counts, None),
            "vmsplice, 512 KiB per call"
        );
        assert_eq!(
            sent_words(SendBy::MsgZerocopy, &counts, Some(calls)),
            "MSG_ZEROCOPY, 512 KiB per call, copied by the kernel after all: 25 % of 8 calls"
        );
        assert_eq!(
            sent_words(SendBy::MsgZerocopy, &counts, Some(ZeroCopyCount::default())),
            "MSG_ZEROCOPY, 512 KiB per call"
        );
        assert_eq!(
            received_words(ReceiveBy::Discard, &counts),
            "discard (MSG_TRUNC), 167 B per call"
        );
    }
}
