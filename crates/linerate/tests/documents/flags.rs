//! What the reference says of the flags of a trial: one as it may be, what it rests on, what to do about it.

use linerate_model::flag::{Because, Note, TrialFlag};
use linerate_model::reason::{Reason, Unshared};
use linerate_model::shortfall::{RequestCount, Shortfall, Unread};
use linerate_model::{Bytes, HostName, Nanos};

/// A flag for the reference.
pub struct Known {
    /// One of its kind.
    pub example: TrialFlag,
    /// What it rests on, without a full stop.
    pub needs: &'static str,
    /// What to do about it, without a full stop.
    pub action: &'static str,
}

/// Returns the flags that a trial may have, each with an example.
pub fn known() -> impl Iterator<Item = Known> {
    let host = || HostName::from("server");
    let examples = [
        TrialFlag::Saturated(0.99),
        TrialFlag::ShortOfCpu {
            ran: 0.4,
            waited: 0.5,
        },
        TrialFlag::OtherPrograms {
            cpus: 0.8,
            in_lab: false,
        },
        TrialFlag::OtherTraffic {
            host: host(),
            device: "eth0".to_owned(),
            is_sent: false,
            share: 0.12,
        },
        TrialFlag::Damaged {
            host: host(),
            segments: 18,
        },
        TrialFlag::Stolen(0.07),
        TrialFlag::Unaccounted(0.05),
        TrialFlag::Unsteady {
            halves: 0.85,
            steady_after_ns: None,
        },
        TrialFlag::Unshared {
            how: Unshared::Unfair {
                flows: 2,
                fairness: 0.61,
                fairness_min: 0.8,
            },
            because: Because::RoundTrips {
                least_ns: 1e6,
                most_ns: 5e6,
            },
        },
        TrialFlag::Buffered {
            beyond_bytes: -1_048_576.0,
            share: Some(0.02),
        },
        TrialFlag::ReadApart {
            beyond_bytes: 104_857_600.0,
            share: Some(0.03),
        },
        TrialFlag::HeldBack(0.024),
        TrialFlag::Silent {
            from: Nanos(2_300_000_000),
            length: Nanos(1_700_000_000),
            share: 0.425,
        },
        TrialFlag::UnreadAtReceiver { host: host() },
        TrialFlag::Acknowledged {
            program: "iperf3".to_owned(),
        },
        TrialFlag::FellShort {
            host: host(),
            first: Shortfall::Requests(RequestCount {
                due: 1000,
                sent: 900,
            }),
            others: 0,
        },
        TrialFlag::StillUnread(Unread {
            streams: 3,
            of: 100,
            bytes: Bytes(1_048_576),
        }),
        TrialFlag::Shared {
            host: host(),
            runs: 1,
        },
        TrialFlag::Uncovered(0.9),
        TrialFlag::Interrupted(Nanos(2_000_000_000)),
        TrialFlag::GivenUp {
            why: Box::new(Reason::ServerGaveUp("the server gave it up".to_owned())),
            after: Nanos(2_000_000_000),
        },
        TrialFlag::Partial {
            why: Box::new(Reason::Told("host server: no answer".to_owned())),
            kept: Nanos(2_000_000_000),
            of: Nanos(5_000_000_000),
        },
        TrialFlag::Noted {
            host: host(),
            note: Note::Words("no profile: …".to_owned()),
        },
    ];
    examples.into_iter().map(|example| {
        let (needs, action) = words(&example);
        Known {
            example,
            needs,
            action,
        }
    })
}

/// Returns what it rests on, and what to do about it.
fn words(flag: &TrialFlag) -> (&'static str, &'static str) {
    match flag {
        TrialFlag::Interrupted(_) => ("an interrupt within the window", "let it end"),
        TrialFlag::GivenUp { .. } => ("the other program ended it", "look at that program's log"),
        TrialFlag::Partial { .. } => (
            "a host that delivered only part of what it measured",
            "check that host; the rest of the window counts",
        ),
        TrialFlag::Shared { .. } => (
            "other runs on the host, as its agent reports",
            "leave `--shared` out",
        ),
        TrialFlag::Noted { .. } => ("a note of the host's agent", "what the note says"),
        TrialFlag::FellShort { .. } => (
            "requests that were due and not sent, connections that failed, or a volume that was not sent whole",
            "a lower rate, or more flows",
        ),
        TrialFlag::StillUnread(_) => (
            "what both ends of each stream counted in all phases, and what socket buffers hold at the most",
            "none: the window was over; fewer flows, or a line that is less crowded, end in time",
        ),
        TrialFlag::Unshared { .. } => (
            "Jain's index of the flows below its bound, and what explains it",
            "a longer window, or what is named as the cause",
        ),
        TrialFlag::Unsteady { .. } => (
            "halves of the window that differ by more than 5 %",
            "a longer warm-up (`-O`) or window (`-t`)",
        ),
        TrialFlag::Buffered { .. } => (
            "what TCP received in the window against what receive calls returned",
            "none: the number is TCP's; a longer window makes the difference small",
        ),
        TrialFlag::ReadApart { .. } => (
            "the same, against what receive buffers hold (tcp_rmem, `-w`)",
            "none: the number is TCP's; a machine that is less busy reads both at one time",
        ),
        TrialFlag::HeldBack(_) => (
            "what TCP received in order against the segments that came",
            "a longer warm-up (`-O`), or a longer window",
        ),
        TrialFlag::Silent { .. } => (
            "what is unacknowledged, or was sent as datagrams, against what arrived from reading to reading",
            "look for a link that was down or a path that changed, then measure again",
        ),
        TrialFlag::Acknowledged { .. } => (
            "a server of another program",
            "an agent on the server, for the receiver's own count",
        ),
        TrialFlag::Uncovered(_) => (
            "the first and last reading of the window",
            "a machine that is less busy, or a longer window",
        ),
        TrialFlag::Saturated(_) => (
            "CPU time of the busiest worker",
            "`-P`, `--workers`, larger messages, `-Z`: the number is a lower bound",
        ),
        TrialFlag::ShortOfCpu { .. } => (
            "time that a worker waited for a CPU (schedstat)",
            "stop other programs, or pin (`-A`)",
        ),
        TrialFlag::OtherPrograms { .. } => (
            "CPU time of the machine beyond idle and linerate's threads",
            "stop other programs",
        ),
        TrialFlag::OtherTraffic { .. } => (
            "bytes of the device against those of the flows",
            "stop other traffic",
        ),
        TrialFlag::Damaged { .. } => (
            "`Tcp: InCsumErrors` of /proc/net/snmp, of all the host's traffic",
            "look for what damages: cable, device, a middlebox, or a broken offload (`ethtool -K`)",
        ),
        TrialFlag::Stolen(_) => (
            "steal of /proc/stat",
            "a quieter host below, or a machine of its own",
        ),
        TrialFlag::Unaccounted(_) => (
            "time in which no mode of /proc/stat grew, of CPUs that were idle for less: ticks lose it of others",
            "compare several trials: what all of them miss, the kernel does not count",
        ),
        TrialFlag::UnreadAtReceiver { .. } => (
            "no reading of the receiver",
            "a token, or an agent that may observe",
        ),
        TrialFlag::Told(_) => ("what the bundle says", "what it says"),
    }
}
