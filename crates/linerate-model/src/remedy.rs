//! What raises a number that a limiter holds down, in general: nothing of it was measured on a host.

use crate::finding::Limiter;

/// What raises a number that a limiter holds down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// What raises it, as a part of a sentence without its full stop.
    pub raises: &'static str,
    /// What to do, one imperative sentence without its full stop.
    pub action: &'static str,
    /// What that costs, or may do elsewhere, one sentence without its full stop.
    pub cost: &'static str,
    /// How to take it back, one sentence or command without a full stop.
    pub undo: &'static str,
    /// The command that measures it: with both settings in one run, or before and after.
    pub measure: &'static str,
}

impl Remedy {
    /// Returns when its command is to be run: one that compares both settings, or that searches and keeps what it
    /// finds in a bundle, once; one whose flags are the change next to the same without them, any other before
    /// and after.
    pub fn when(&self) -> String {
        let changes = CHANGES.iter().find(|flag| self.measure.contains(*flag));
        match changes {
            // A bundle that is there is not written again.
            _ if ["--experiment", "--out"]
                .iter()
                .any(|once| self.measure.contains(once)) =>
            {
                String::new()
            }
            Some(flag) => format!(", and the same without {flag}"),
            None => ", before and after".to_owned(),
        }
    }
}

/// Flags that make the change which their command measures.
const CHANGES: [&str; 5] = [
    "-C bbr",
    "--rx discard",
    "-P 4",
    "--in-flight 16",
    "-M 1208",
];

/// Where nothing is changed, there is nothing to take back.
const NOTHING: &str = "Nothing is changed";

impl Limiter {
    /// Returns what raises a number that it limits.
    pub fn remedy(self) -> Remedy {
        let remedy = |raises, action, cost, undo, measure| Remedy {
            raises,
            action,
            cost,
            undo,
            measure,
        };
        match self {
            Limiter::LinkRate => remedy(
                "larger frames or a faster link raise it, buffers and CPUs do not",
                "Use larger frames (MTU 9000), or a faster link",
                "Every host and switch port of the path has to support them",
                "ip link set dev DEVICE mtu 1500, on both hosts",
                "linerate run HOST --runs 5",
            ),
            Limiter::PathRate => remedy(
                "find the slowest link or shaper on the path",
                "Find the slowest link or shaper on the path",
                "None: this only searches",
                NOTHING,
                "linerate run HOST --runs 5",
            ),
            Limiter::ReceiverWindow => remedy(
                "a larger receive buffer raises it",
                "Raise the maximum of net.ipv4.tcp_rmem on the receiver, or leave SO_RCVBUF unset; where \
                 windows are not scaled, turn on net.ipv4.tcp_window_scaling at both ends",
                "Memory of up to that size for each connection",
                "sysctl -w with the values that were printed before",
                "linerate run HOST --experiment socket-buffer",
            ),
            Limiter::SendBuffer => remedy(
                "a larger send buffer raises it",
                "Raise the maximum of net.ipv4.tcp_wmem on the sender, or leave SO_SNDBUF unset",
                "Memory of up to that size for each connection",
                "sysctl -w with the values that were printed before",
                "linerate run HOST --experiment socket-buffer",
            ),
            Limiter::CongestionWindow => remedy(
                "less loss, or a congestion control that tolerates it, raises it",
                "Find where segments are lost, or use a congestion control that tolerates it (-C bbr); without \
                 loss, measure for longer",
                "Such a control may take bandwidth from others on the path",
                "sysctl -w net.ipv4.tcp_congestion_control with the name that was printed before",
                "linerate run HOST -C bbr --runs 5",
            ),
            Limiter::SlowReader => remedy(
                "the receiving program has to read faster",
                "Make the receiving program read faster: larger reads, or less work between them",
                "Work on that program",
                "Its previous version",
                "linerate run HOST --rx discard --runs 5",
            ),
            Limiter::HostDrops => remedy(
                "longer queues in the host that drops, or fewer bursts, raise it",
                "Make the queue that drops longer (qdisc, txqueuelen, net.core.netdev_max_backlog)",
                "Memory, and a longer round trip while it is full",
                "tc, ip link or sysctl with the values that were printed before",
                "linerate run HOST --runs 5",
            ),
            Limiter::Pacing => remedy(
                "the requested rate, or TCP's own pacing, is the limit",
                "Set a higher rate or none; where bbr paces by itself, try another congestion control (-C cubic)",
                "More load on the path",
                "The previous flags",
                "linerate run HOST --runs 5",
            ),
            Limiter::Generator => remedy(
                "it is a lower bound of what the host can do",
                "Measure with fewer calls or more flows, to see what the host can do",
                "None: only the measurement changes",
                NOTHING,
                "linerate run HOST -P 4 --runs 5",
            ),
            Limiter::Cpu => remedy(
                "more or faster CPUs, or less work per byte, raise it",
                "Give the traffic more CPUs or less work per byte: larger frames, offloads, fewer copies",
                "CPUs that other programs then lack",
                "ethtool -K and the affinities with the previous values",
                "linerate run HOST --profile --runs 5",
            ),
            Limiter::OtherPrograms => remedy(
                "measure again while nothing else runs",
                "Measure again while nothing else runs, or pin other programs to other CPUs",
                "The other programs have to stop, or to share fewer CPUs",
                "Start them again",
                "linerate run HOST --runs 5",
            ),
            Limiter::CpuQuota => remedy(
                "a larger CPU quota raises it",
                "Raise the quota of the control group (cpu.max), or of the virtual machine",
                "CPU time that others then lack",
                "cpu.max with the previous value",
                "linerate run HOST --runs 5",
            ),
            Limiter::RoundTrip => remedy(
                "more requests at a time raise it, or a shorter path and faster wake-ups",
                "Keep more requests in flight, or poll instead of sleeping",
                "Requests wait for each other, or a CPU polls all the time",
                "One request at a time",
                "linerate run HOST --rr --in-flight 16 --runs 5",
            ),
            Limiter::NagleDelayedAck => remedy(
                "TCP_NODELAY, or one write per request, ends the wait",
                "In programs that write a request in pieces, set TCP_NODELAY or write it at once",
                "More and smaller segments where it writes little at a time",
                "Leave TCP_NODELAY unset",
                "linerate run HOST --experiment split-request",
            ),
            Limiter::Timeouts => remedy(
                "less loss raises it",
                "Find where segments are lost",
                "None: this only searches",
                NOTHING,
                "linerate run HOST --rr --capture --out run.bundle",
            ),
            Limiter::Application => remedy(
                "the measured program itself has to answer faster",
                "Make the measured program answer faster",
                "Work on that program",
                "Its previous version",
                "linerate run HOST --rr --runs 5",
            ),
            Limiter::NothingArrives => remedy(
                "find where the path drops segments",
                "Find where the path drops segments: its MTU, or a firewall",
                "None: this only searches",
                NOTHING,
                "linerate run HOST -M 1208",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_compared_with_what_lacks_its_change() {
        let when = |limiter: Limiter| limiter.remedy().when();
        assert_eq!(when(Limiter::NagleDelayedAck), "");
        assert_eq!(
            when(Limiter::Timeouts),
            "",
            "its bundle can be written once"
        );
        assert_eq!(
            when(Limiter::CongestionWindow),
            ", and the same without -C bbr"
        );
        assert_eq!(when(Limiter::LinkRate), ", before and after");
        for limiter in [
            Limiter::SlowReader,
            Limiter::Generator,
            Limiter::RoundTrip,
            Limiter::NothingArrives,
        ] {
            let said = when(limiter);
            assert!(
                said.starts_with(", and the same without -"),
                "{limiter:?}{said}"
            );
        }
    }
}
