//! What can be changed in one run without a right on the hosts, and what that does to the number if a limiter holds it.
//!
//! What it does is what a limiter is, said of the change before anybody makes it: twice as many flows have twice the windows, and
//! the same path. Of a limiter that stands in no list nobody can say: more flows beside other programs have more of the CPUs, or
//! not.
//!
//! What is not here says no more, or says it wrongly: half the flows tell apart what twice as many do; a lower rate shortens a round trip
//! wherever a host or the path queues; the other direction has other hosts' buffers and another path.

use linerate_model::Bytes;
use linerate_model::experiment::{AUTO, Effect, Factor, Level};
use linerate_model::host::Snapshot;
use linerate_model::limiter::Limiter;
use linerate_model::manner::{ReceiveBy, Transport};
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::workload::{Direction, FLOWS_MAX, STREAM_MESSAGE_BYTES_DEFAULT, Workload};

/// A socket buffer that is larger than what most paths ask for, and a segment that is smaller than what they carry.
const BUFFER: Bytes = Bytes(4 << 20);
const SMALL_SEGMENT_BYTES: u32 = 1208;
/// A write from which on the call is little of what it costs: copying 16 KiB takes several times as long as a call.
const SHORT_WRITE_MAX: Bytes = Bytes(16 << 10);
/// The congestion control that is tried in place of those that take loss for a full path.
const OTHER_CONGESTION: &str = "bbr";

/// A change of one run as a program makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What changes.
    pub factor: Factor,
    /// What it is, and what it becomes.
    pub levels: [Level; 2],
    /// The traffic after it.
    pub workload: Workload,
}

/// A change of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// Twice as many flows.
    Flows,
    /// Large socket buffers, or none set where they were.
    Buffers,
    /// Another congestion control.
    Congestion,
    /// Nagle's algorithm off.
    NoDelay,
    /// No rate of our own.
    Unpaced,
    /// The receiver's kernel throws payload away.
    Discard,
    /// Small segments.
    Segments,
    /// Long writes in the place of short ones.
    Writes,
}

use Effect::{Grows, MayGrow, Stays};
use Toggle::{Buffers, Congestion, Discard, Flows, NoDelay, Segments, Unpaced, Writes};

macro_rules! held_by {
    ($($toggle:ident grows [$($grows:ident)*] may_grow [$($may:ident)*] stays [$($stays:ident)*];)*) => {
        /// Returns the limiters that hold a number that a change makes grow, one that may grow, and one that stays.
        fn held_by(toggle: Toggle) -> [&'static [Limiter]; 3] {
            match toggle {
                $($toggle => [&[$(Limiter::$grows,)*], &[$(Limiter::$may,)*], &[$(Limiter::$stays,)*]],)*
            }
        }
    };
}

// A program that pauses holds the number for a share of the time. Between pauses something else does, which a change may raise,
// and a larger buffer carries on in a pause.
held_by! {
    Flows
        grows [ReceiverWindow SendBuffer CongestionWindow Pacing Generator RoundTrip NagleDelayedAck Timeouts]
        may_grow []
        stays [LinkRate PathRate];
    Buffers
        grows [ReceiverWindow SendBuffer]
        may_grow []
        stays [LinkRate PathRate CongestionWindow Pacing RoundTrip NagleDelayedAck Timeouts];
    // Another algorithm may stop where the first did.
    Congestion
        grows []
        may_grow [CongestionWindow]
        stays [ReceiverWindow SendBuffer Pacing RoundTrip NagleDelayedAck];
    NoDelay
        grows [NagleDelayedAck]
        may_grow []
        stays [LinkRate PathRate ReceiverWindow SendBuffer CongestionWindow SlowReader Application HostDrops Pacing Generator Cpu
            OtherPrograms CpuQuota RoundTrip];
    Unpaced
        grows [Pacing]
        may_grow []
        stays [LinkRate PathRate ReceiverWindow SendBuffer CongestionWindow SlowReader Application HostDrops Generator Cpu
            OtherPrograms CpuQuota RoundTrip NagleDelayedAck Timeouts];
    // The full CPU may be one of the sender. Where the hosts' work is most of a round trip, a window is carried more often by a
    // receiver that does less.
    Discard
        grows []
        may_grow [Cpu]
        stays [LinkRate PathRate Pacing RoundTrip NagleDelayedAck];
    Segments
        grows [NothingArrives]
        may_grow []
        stays [ReceiverWindow SendBuffer SlowReader Application Pacing RoundTrip NagleDelayedAck];
    // Fewer calls for the same payload; the full CPU may be the receiver's. The kernel joins short writes to full segments. A rate
    // that was asked for is kept message by message, and a short window holds few long ones.
    Writes
        grows []
        may_grow [Generator Cpu]
        stays [LinkRate PathRate];
}

impl Toggle {
    /// All of them, those first that tell most apart and cost least.
    pub const ALL: [Self; 8] = [
        Flows, Buffers, Congestion, NoDelay, Unpaced, Discard, Segments, Writes,
    ];

    /// Returns what it does to a number that `limiter` holds, where that follows from what the limiter is.
    pub fn effect(self, limiter: Limiter) -> Option<Effect> {
        let mut all = [Grows, MayGrow, Stays].into_iter().zip(held_by(self));
        let (effect, _) = all.find(|(_, limiters)| limiters.contains(&limiter))?;
        Some(effect)
    }

    /// Returns the flags that make the change of `workload`, where it can be made of it.
    pub fn flags(self, workload: &Workload) -> Option<String> {
        let is_tcp = workload.manner.transport == Transport::Tcp;
        let is_stream = workload.traffic.is_stream();
        let more = workload.connections.saturating_mul(2);
        match self {
            Flows => (more <= FLOWS_MAX).then(|| format!("-P {more}")),
            Buffers if !is_tcp => None,
            Buffers if workload.options.socket_buffer.is_some() => Some("no -w".to_owned()),
            Buffers => Some(format!("-w {}M", BUFFER.0 >> 20)),
            Congestion if !is_tcp => None,
            Congestion if workload.options.congestion.as_deref() == Some(OTHER_CONGESTION) => {
                Some("-C cubic".to_owned())
            }
            Congestion => Some(format!("-C {OTHER_CONGESTION}")),
            NoDelay => (is_tcp && workload.options.nagle != Some(false)).then(|| "-N".to_owned()),
            Unpaced => {
                let is_paced =
                    workload.manner.rate_bps.is_some() || workload.options.pacing_bps.is_some();
                is_paced.then(|| "no rate".to_owned())
            }
            Discard => (is_tcp && is_stream && workload.manner.receive == ReceiveBy::Copy)
                .then(|| "--rx discard".to_owned()),
            Segments => is_tcp.then(|| format!("-M {SMALL_SEGMENT_BYTES}")),
            Writes => {
                let (_, own) = workload.traffic.stream().filter(|_| is_tcp)?;
                let is_short = own < SHORT_WRITE_MAX && workload.manner.sizes.is_none();
                // Short writes that wait for nothing are short segments, whose headers take part of a link.
                let is_joined = workload.options.nagle != Some(false);
                (is_short && is_joined)
                    .then(|| format!("-l {}K", STREAM_MESSAGE_BYTES_DEFAULT.0 >> 10))
            }
        }
    }

    /// Returns what it changes.
    pub fn factor(self) -> Factor {
        match self {
            Flows => Factor::Connections,
            Buffers => Factor::SocketBuffer,
            Congestion => Factor::Congestion,
            NoDelay => Factor::Nagle,
            Unpaced => Factor::Rate,
            Discard => Factor::Receive,
            Segments => Factor::MssBytes,
            Writes => Factor::MessageBytes,
        }
    }

    /// Returns the one that changes `factor`.
    pub fn of(factor: Factor) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|toggle| toggle.factor() == factor)
    }

    /// Returns whether it changes nothing but what a limiter is itself: more flows have more of all that each flow has, and a
    /// receiver that copies nothing or a sender that calls less has more CPU for all that it does, whatever held the number for most
    /// of the time.
    pub fn is_of_one(self) -> bool {
        !matches!(self, Flows | Discard | Writes)
    }

    /// Returns the one limiter that it takes away, where there is a number, and changes nothing else.
    pub fn raises(self) -> Option<Limiter> {
        match held_by(self) {
            [&[limiter], &[], _] if self.is_of_one() => Some(limiter),
            _ => None,
        }
        .filter(|limiter| *limiter != Limiter::NothingArrives)
    }

    /// Returns the change of `workload` between `hosts`, where it can be made there and is one.
    pub fn change(self, workload: &Workload, hosts: &[HostRecord]) -> Option<Change> {
        self.flags(workload)?;
        let mut changed = workload.clone();
        let auto = || Level::Word(AUTO.to_owned());
        let levels = match self {
            Flows => {
                changed.connections *= 2;
                [workload, &changed].map(|it| Level::Count(it.connections.into()))
            }
            Buffers => {
                let own = workload.options.socket_buffer;
                changed.options.socket_buffer = match own {
                    Some(own) => autotuned_exceeds(own, hosts)
                        .is_none_or(|exceeds| exceeds)
                        .then_some(None)?,
                    None => Some(larger_buffer(hosts)?),
                };
                [own, changed.options.socket_buffer].map(|it| it.map_or_else(auto, Level::Size))
            }
            Congestion => {
                let own = match &workload.options.congestion {
                    Some(own) => own.clone(),
                    None => own_congestion(workload, hosts)?.to_owned(),
                };
                // What a host does not list its kernel may load; one that refuses spoils the trials of the change alone.
                let lacks = |host: &HostRecord| {
                    let names = "sysctl.net.ipv4.tcp_available_congestion_control";
                    let names = host.snapshot.text(names);
                    names.is_some_and(|names| {
                        !names.split_whitespace().any(|it| it == OTHER_CONGESTION)
                    })
                };
                if own == OTHER_CONGESTION || senders(workload, hosts).any(lacks) {
                    return None;
                }
                changed.options.congestion = Some(OTHER_CONGESTION.to_owned());
                [own, OTHER_CONGESTION.to_owned()].map(Level::Word)
            }
            NoDelay => {
                changed.options.nagle = Some(false);
                [true, false].map(Level::Switch)
            }
            Unpaced => {
                let own = workload.manner.rate_bps.or(workload.options.pacing_bps)?;
                (changed.manner.rate_bps, changed.options.pacing_bps) = (None, None);
                [Level::Rate(own), auto()]
            }
            Discard => {
                changed.manner.receive = ReceiveBy::Discard;
                ["copy", "discard"].map(|word| Level::Word(word.to_owned()))
            }
            Segments => {
                let own = workload.options.mss_bytes;
                if own.is_some_and(|own| own <= SMALL_SEGMENT_BYTES) {
                    return None;
                }
                changed.options.mss_bytes = Some(SMALL_SEGMENT_BYTES);
                let size = |bytes: u32| Level::Size(Bytes(bytes.into()));
                [own.map_or_else(auto, size), size(SMALL_SEGMENT_BYTES)]
            }
            Writes => {
                let (direction, own) = workload.traffic.stream()?;
                changed.traffic = Workload::stream(direction).traffic;
                [own, STREAM_MESSAGE_BYTES_DEFAULT].map(Level::Size)
            }
        };
        changed.check().ok()?;
        Some(Change {
            factor: self.factor(),
            levels,
            workload: changed,
        })
    }

    /// Returns the first that `workload` may be changed by and that does different things to a number held by `one` and by
    /// `other`, with its flags and what it does to each.
    pub fn separating(
        one: Limiter,
        other: Limiter,
        workload: &Workload,
    ) -> Option<(String, [Effect; 2])> {
        Self::ALL.into_iter().find_map(|toggle| {
            let effects = [toggle.effect(one)?, toggle.effect(other)?];
            let [one, other] = effects.map(|effect| effect == Stays);
            (one != other).then_some(())?;
            Some((toggle.flags(workload)?, effects))
        })
    }
}

/// Returns the most that the kernel of a host lets receive and send buffers grow to by itself.
fn grown_bytes(snapshot: &Snapshot) -> Option<[f64; 2]> {
    let most = |name: &str| snapshot.most_of_three(&format!("sysctl.net.ipv4.{name}"));
    Some([most("tcp_rmem")?, most("tcp_wmem")?])
}

/// Returns whether autotuned buffers of all hosts grow beyond `own`, of which the kernel takes the double (socket(7)); absent
/// where that is not known of one.
pub fn autotuned_exceeds(own: Bytes, hosts: &[HostRecord]) -> Option<bool> {
    let exceeds = |host: &HostRecord| {
        let mut grown = grown_bytes(&host.snapshot)?.into_iter();
        Some(grown.all(|grown| grown > 2.0 * own.0 as f64))
    };
    let known: Vec<Option<bool>> = hosts.iter().map(exceeds).collect();
    if known.contains(&Some(false)) {
        return Some(false);
    }
    known.iter().all(Option::is_some).then_some(true)
}

/// Returns a socket buffer that all hosts grant and that is larger than what they grow theirs to.
fn larger_buffer(hosts: &[HostRecord]) -> Option<Bytes> {
    let granted = |snapshot: &Snapshot| {
        let most = |name: &str| snapshot.number(&format!("sysctl.net.core.{name}"));
        Some(most("rmem_max")?.min(most("wmem_max")?))
    };
    let of_host = |host: &HostRecord| {
        let [receive, send] = grown_bytes(&host.snapshot)?;
        Some((granted(&host.snapshot)?, receive.max(send)))
    };
    let all: Vec<(f64, f64)> = hosts.iter().map(of_host).collect::<Option<_>>()?;
    let granted = all.iter().map(|(granted, _)| *granted);
    let bytes = granted.reduce(f64::min)?.min(BUFFER.0 as f64);
    let is_larger = all.iter().all(|(_, grown)| 2.0 * bytes > *grown);
    is_larger.then_some(Bytes(bytes as u64))
}

/// Returns the hosts that send payload: both ends where it goes both ways.
fn senders<'h>(
    workload: &Workload,
    hosts: &'h [HostRecord],
) -> impl Iterator<Item = &'h HostRecord> {
    let part = match workload.traffic.direction() {
        Some(Direction::ToServer) => Some(HostPart::Client),
        Some(Direction::FromServer) => Some(HostPart::Server),
        Some(Direction::Both) | None => None,
    };
    let mut hosts = hosts.iter();
    std::iter::from_fn(move || hosts.find(|host| part.is_none_or(|part| host.part == part)))
}

/// Returns the congestion control of sockets that ask for none, where all that send have the same.
fn own_congestion<'h>(workload: &Workload, hosts: &'h [HostRecord]) -> Option<&'h str> {
    let own = |host: &'h HostRecord| host.snapshot.text("sysctl.net.ipv4.tcp_congestion_control");
    let mut names = senders(workload, hosts).map(own);
    let first = names.next()??;
    names.all(|other| other == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use linerate_model::host::{Fact, FactValue};
    use linerate_model::unit::Unit;
    use linerate_model::workload::Traffic;
    use linerate_truth::recording::MadeRun;

    use super::*;

    #[test]
    fn a_window_and_a_path_differ_by_more_flows() {
        let workload = Workload::stream(Direction::ToServer);
        let separating = Toggle::separating(Limiter::ReceiverWindow, Limiter::PathRate, &workload);
        assert_eq!(separating, Some(("-P 2".to_owned(), [Grows, Stays])));
        // Each of them has twice as much with twice the flows: a larger buffer helps but one.
        let separating = Toggle::separating(
            Limiter::ReceiverWindow,
            Limiter::CongestionWindow,
            &workload,
        );
        assert_eq!(separating, Some(("-w 4M".to_owned(), [Grows, Stays])));
    }

    #[test]
    fn a_program_that_pauses_says_nothing_of_what_carries_between_its_pauses() {
        for limiter in [Limiter::Application, Limiter::SlowReader] {
            for toggle in [Flows, Buffers, Congestion, Discard] {
                assert_eq!(toggle.effect(limiter), None, "{limiter:?} {toggle:?}");
            }
        }
    }

    #[test]
    fn a_window_says_nothing_of_a_receiver_that_shortens_the_round_trip() {
        use Limiter::{CongestionWindow, ReceiverWindow, SendBuffer};
        for limiter in [ReceiverWindow, SendBuffer, CongestionWindow] {
            assert_eq!(Discard.effect(limiter), None, "{limiter:?}");
        }
    }

    #[test]
    fn a_rate_and_nagles_algorithm_are_taken_away_alone() {
        let raised = Toggle::ALL.map(|toggle| (toggle, toggle.raises()));
        let raised: Vec<_> = raised.into_iter().filter(|it| it.1.is_some()).collect();
        let (rate, nagle) = (Some(Limiter::Pacing), Some(Limiter::NagleDelayedAck));
        assert_eq!(raised.len(), 2, "{raised:?}");
        assert!(raised.contains(&(Unpaced, rate)) && raised.contains(&(NoDelay, nagle)));
    }

    #[test]
    fn short_writes_of_a_stream_are_made_long_and_no_others() {
        let bytes = |bytes| Traffic::Stream {
            direction: Direction::FromServer,
            message_bytes: Bytes(bytes),
        };
        let changed = |traffic, transport| {
            let mut workload = Workload::stream(Direction::FromServer);
            (workload.traffic, workload.manner.transport) = (traffic, transport);
            Some(Writes.change(&workload, &[])?.workload.traffic)
        };
        let long = Workload::stream(Direction::FromServer).traffic;
        assert_eq!(changed(bytes(64), Transport::Tcp), Some(long));
        assert_eq!(changed(bytes(16 << 10), Transport::Tcp), None);
        assert_eq!(changed(bytes(64), Transport::Udp), None);
        let mut at_once = Workload::stream(Direction::FromServer);
        at_once.traffic = bytes(64);
        at_once.options.nagle = Some(false);
        assert_eq!(Writes.change(&at_once, &[]), None);
        // A path carries what it carries, a CPU that is full does not.
        let effects =
            [Limiter::PathRate, Limiter::Cpu, Limiter::Pacing].map(|it| Writes.effect(it));
        assert_eq!(effects, [Some(Stays), Some(MayGrow), None]);
    }

    /// Server and client with these facts of their kernels.
    fn hosts(facts: &[(&str, &str)]) -> Vec<HostRecord> {
        let mut hosts = MadeRun::new(1, None).recording.document.hosts;
        for host in &mut hosts {
            host.snapshot
                .facts
                .extend(facts.iter().map(|(name, text)| Fact {
                    name: format!("sysctl.net.{name}"),
                    value: match text.parse() {
                        Ok(number) => FactValue::Number(number, Unit::Bytes),
                        Err(_) => FactValue::Text((*text).to_owned()),
                    },
                }));
        }
        hosts
    }

    #[test]
    fn a_buffer_is_larger_only_where_it_is_granted_and_exceeds_what_autotuning_reaches() {
        let workload = Workload::stream(Direction::ToServer);
        let larger = |rmem_max: &str| {
            let hosts = hosts(&[
                ("core.rmem_max", rmem_max),
                ("core.wmem_max", "8388608"),
                ("ipv4.tcp_rmem", "4096 131072 6291456"),
                ("ipv4.tcp_wmem", "4096 16384 4194304"),
            ]);
            Buffers
                .change(&workload, &hosts)?
                .workload
                .options
                .socket_buffer
        };
        assert_eq!(larger("212992"), None);
        // Twice 3 MiB are as much as autotuning reaches.
        assert_eq!(larger("3145728"), None);
        assert_eq!(larger("3500000"), Some(Bytes(3_500_000)));
        assert_eq!(larger("16777216"), Some(BUFFER));
        assert_eq!(Buffers.change(&workload, &hosts(&[])), None);

        let mut workload = workload;
        workload.options.socket_buffer = Some(Bytes(65_536));
        let change = Buffers
            .change(&workload, &hosts(&[]))
            .expect("it is left to the kernel");
        assert_eq!(change.workload.options.socket_buffer, None);
    }

    #[test]
    fn another_congestion_control_is_one_that_the_sender_has_and_does_not_use() {
        let mut workload = Workload::stream(Direction::ToServer);
        let available = |names| ("ipv4.tcp_available_congestion_control", names);
        let both = hosts(&[
            available("reno cubic bbr"),
            ("ipv4.tcp_congestion_control", "cubic"),
        ]);
        let change = Congestion.change(&workload, &both).expect("bbr is there");
        assert_eq!(
            change.levels,
            ["cubic", "bbr"].map(|name| Level::Word(name.to_owned()))
        );
        let mut lacking = both.clone();
        for host in &mut lacking {
            if host.part == HostPart::Server {
                host.snapshot = Snapshot { facts: Vec::new() };
            }
        }
        assert_eq!(Congestion.change(&workload, &lacking), Some(change));
        workload.options.congestion = Some(OTHER_CONGESTION.to_owned());
        assert_eq!(Congestion.change(&workload, &both), None);
        workload.options.congestion = None;
        let none = hosts(&[
            available("reno cubic"),
            ("ipv4.tcp_congestion_control", "cubic"),
        ]);
        assert_eq!(Congestion.change(&workload, &none), None);
        let unknown = hosts(&[available("reno cubic bbr")]);
        assert_eq!(Congestion.change(&workload, &unknown), None);
    }
}
