//! The catalogue of knobs: host-wide settings that an experiment can vary, each said here once.
//!
//! A knob is a factor as a parameter of a workload is, but nothing of a workload is written by it: it
//! changes the host for everyone, for the length of a trial, and is put back. So it is varied only where
//! hosts were made for the run, in a lab.
//!
//! What carries a knob out (`linerate-tune`) finds by its place what to read and to write.

use crate::experiment::Factor;
use crate::parameter::{NETWORK, Parameter, Shape, TCP, of_host};
use crate::unit::Nanos;
use crate::workload::SOCKET_BUFFER_BYTES_MAX;

/// A host-wide setting that can be varied and put back.
#[derive(Debug)]
pub struct Knob {
    /// Its name in experiment files, what its levels look like, and the factor that it is.
    pub parameter: Parameter,
    /// Where on a host it stands.
    pub place: Place,
    /// How long the host takes after a change: the settle phase of a trial that sets it is no shorter.
    pub settle: Nanos,
}

/// Where on a host a knob stands, and how far it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A file below `/proc/sys` of the host's network namespace.
    Sysctl(&'static str),
    /// One of the numbers in such a file, from 0; the others stay.
    SysctlField(&'static str, usize),
    /// A file of the device of the data network, below `/sys/class/net/DEVICE`.
    Device(&'static str),
    /// The CPUs of every receive queue of that device, `queues/rx-*/rps_cpus`.
    ReceiveQueues,
    /// A feature of that device, as `ethtool -K` calls it.
    Feature(Feature),
    /// A number that the driver of that device keeps.
    Number(Number),
    /// The largest GSO aggregate of that device, of IPv4 and of others.
    Aggregate,
    /// The queueing discipline at the root of that device.
    Discipline,
}

/// A number that the driver of a device keeps, as `ethtool` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Microseconds that an interrupt waits for further packets: `rx-usecs`.
    ReceiveCoalescing,
    /// Receive and transmit queues.
    Queues,
    /// Transmit queues; of a driver that has them combined with receive queues, both.
    TransmitQueues,
}

/// A feature of a device that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// TCP segmentation offload.
    Tso,
    /// Generic segmentation offload.
    Gso,
    /// Generic receive offload.
    Gro,
}

/// Least MTU that a knob sets: below it a device loses its IPv6 addresses (RFC 8200), which nobody would put back.
const MTU_BYTES_MIN: u64 = 1280;
/// The usual size of jumbo frames.
const MTU_BYTES_MAX: u64 = 9000;
/// Least GSO aggregate: the kernel's own least is the longest headers and a byte, which is no aggregate.
const GSO_BYTES_MIN: u64 = 4096;
/// Largest GSO aggregate: eight of 64 KiB (`GSO_MAX_SIZE` in include/linux/netdevice.h).
const GSO_BYTES_MAX: u64 = 8 * 65_535;
/// Most queues of a device that are asked for: as many as are looked at.
const QUEUES_MAX: u64 = 1024;
/// Longest wait of an interrupt for further packets: a second, longer than any driver takes.
const COALESCING_US_MAX: u64 = 1_000_000;
/// Longest least RTO: TCP's longest of all, 120 s (`TCP_RTO_MAX_SEC`).
const RTO_MIN_US_MAX: u64 = 120_000_000;
/// How long a change of a device takes to be felt: frames that are on their way are sent by then.
const DEVICE_SETTLE: Nanos = Nanos::from_ms(20);

/// All knobs.
#[rustfmt::skip]
pub const KNOBS: &[Knob] = &[
    knob(of_host("mtu", NETWORK, Shape::SizeOrAuto).factor(Factor::Mtu, "MTU").within(MTU_BYTES_MIN, MTU_BYTES_MAX),
        Place::Device("mtu"), DEVICE_SETTLE),
    knob(of_host("tso", TCP, Shape::SwitchOrAuto).factor(Factor::Tso, "TSO"),
        Place::Feature(Feature::Tso), DEVICE_SETTLE),
    knob(of_host("gso", NETWORK, Shape::SwitchOrAuto).factor(Factor::Gso, "GSO"),
        Place::Feature(Feature::Gso), DEVICE_SETTLE),
    knob(of_host("gro", NETWORK, Shape::SwitchOrAuto).factor(Factor::Gro, "GRO"),
        Place::Feature(Feature::Gro), DEVICE_SETTLE),
    knob(of_host("threaded_napi", NETWORK, Shape::SwitchOrAuto).factor(Factor::ThreadedNapi, "threaded NAPI"),
        Place::Device("threaded"), DEVICE_SETTLE),
    knob(of_host("rps", NETWORK, Shape::SwitchOrAuto).factor(Factor::Rps, "RPS"),
        Place::ReceiveQueues, DEVICE_SETTLE),
    knob(of_host("tcp_limit_output_bytes", TCP, Shape::SizeOrAuto)
        .factor(Factor::TcpLimitOutputBytes, "TCP output limit").within(1024, i32::MAX as u64),
        Place::Sysctl("net/ipv4/tcp_limit_output_bytes"), Nanos(0)),
    knob(of_host("congestion_default", TCP, Shape::Name).factor(Factor::CongestionDefault, "default congestion control"),
        Place::Sysctl("net/ipv4/tcp_congestion_control"), Nanos(0)),
    knob(of_host("tcp_rmem_max", TCP, Shape::SizeOrAuto).factor(Factor::TcpRmemMax, "most receive buffer")
        .within(4096, SOCKET_BUFFER_BYTES_MAX.0),
        Place::SysctlField("net/ipv4/tcp_rmem", 2), Nanos(0)),
    knob(of_host("tcp_wmem_max", TCP, Shape::SizeOrAuto).factor(Factor::TcpWmemMax, "most send buffer")
        .within(4096, SOCKET_BUFFER_BYTES_MAX.0),
        Place::SysctlField("net/ipv4/tcp_wmem", 2), Nanos(0)),
    knob(of_host("gso_max_size", NETWORK, Shape::SizeOrAuto).factor(Factor::GsoMaxSize, "GSO size")
        .within(GSO_BYTES_MIN, GSO_BYTES_MAX), Place::Aggregate, DEVICE_SETTLE),
    knob(of_host("queues", NETWORK, Shape::CountOrAuto).factor(Factor::Queues, "queues").within(1, QUEUES_MAX),
        Place::Number(Number::Queues), DEVICE_SETTLE),
    knob(of_host("tx_queues", NETWORK, Shape::CountOrAuto).factor(Factor::TxQueues, "transmit queues")
        .within(1, QUEUES_MAX), Place::Number(Number::TransmitQueues), DEVICE_SETTLE),
    knob(of_host("qdisc", NETWORK, Shape::Name).factor(Factor::Qdisc, "qdisc"), Place::Discipline, DEVICE_SETTLE),
    knob(of_host("coalescing_us", NETWORK, Shape::CountOrAuto).factor(Factor::CoalescingUs, "rx-usecs")
        .within(0, COALESCING_US_MAX), Place::Number(Number::ReceiveCoalescing), DEVICE_SETTLE),
    knob(of_host("tcp_rto_min_us", TCP, Shape::CountOrAuto)
        .factor(Factor::TcpRtoMinUs, "tcp_rto_min_us").within(1, RTO_MIN_US_MAX),
        Place::Sysctl("net/ipv4/tcp_rto_min_us"), Nanos(0)),
];

const fn knob(parameter: Parameter, place: Place, settle: Nanos) -> Knob {
    Knob {
        parameter,
        place,
        settle,
    }
}

impl Place {
    /// Returns whether it is that of a device rather than of a whole network namespace.
    pub fn is_of_device(self) -> bool {
        match self {
            Place::Device(_) | Place::ReceiveQueues | Place::Feature(_) => true,
            Place::Number(_) | Place::Aggregate | Place::Discipline => true,
            Place::Sysctl(_) | Place::SysctlField(..) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Cell, Level, changes};
    use crate::manner::Transport;
    use crate::parameter;
    use crate::unit::Bytes;
    use crate::workload::{Direction, Workload};

    #[test]
    fn every_knob_is_the_factor_that_it_says() {
        for knob in KNOBS {
            let (factor, title) = knob.parameter.factor.expect("a knob is a factor");
            let found = factor.knob().expect("it is a knob");
            assert_eq!(found.parameter.key, knob.parameter.key);
            assert!(!title.is_empty());
        }
        let parameters = Factor::all().filter(|factor| factor.knob().is_none());
        assert_eq!(parameters.last(), Some(Factor::Pair));
    }

    #[test]
    fn a_knob_writes_nothing_of_a_workload_and_takes_levels_within_its_range() {
        let plain = Workload::stream(Direction::ToServer);
        let check = |factor: Factor, level: Level, is_taken: bool| {
            let mut workload = plain.clone();
            assert_eq!(
                factor.apply(&level, &mut workload).is_ok(),
                is_taken,
                "{factor} {level}"
            );
            assert_eq!(workload, plain);
        };
        let auto = || Level::Word("auto".to_owned());
        check(Factor::Mtu, Level::Size(Bytes(9000)), true);
        check(Factor::Mtu, auto(), true);
        check(Factor::Mtu, Level::Size(Bytes(100)), false);
        check(Factor::Mtu, Level::Size(Bytes(65_000)), false);
        check(Factor::Mtu, Level::Switch(true), false);
        check(Factor::Gro, Level::Switch(false), true);
        check(Factor::Gro, auto(), true);
        check(Factor::Gro, Level::Size(Bytes(1)), false);
        check(
            Factor::CongestionDefault,
            Level::Word("reno".to_owned()),
            true,
        );
        check(Factor::Qdisc, Level::Word("fq".to_owned()), true);
        check(Factor::GsoMaxSize, Level::Size(Bytes(65_536)), true);
        check(Factor::GsoMaxSize, Level::Size(Bytes(1)), false);
        check(Factor::TcpRtoMinUs, Level::Count(5000), true);
        check(Factor::TcpRtoMinUs, auto(), true);
        check(Factor::TcpRtoMinUs, Level::Count(0), false);
        check(Factor::CoalescingUs, Level::Size(Bytes(50)), false);
    }

    #[test]
    fn a_knob_that_would_do_nothing_is_refused() {
        let check = |factor: Factor, level: Level, change: fn(&mut Workload), is_taken: bool| {
            let mut workload = Workload::stream(Direction::ToServer);
            change(&mut workload);
            let cell = Cell::from([(factor, level)]);
            let told = parameter::check_knobs(cell.keys(), &workload);
            assert_eq!(told.is_ok(), is_taken, "{factor}: {told:?}");
        };
        let reno = || Level::Word("reno".to_owned());
        let size = || Level::Size(Bytes(65_536));
        let over_udp: fn(&mut Workload) = |workload| workload.manner.transport = Transport::Udp;
        check(Factor::Tso, Level::Switch(true), |_| {}, true);
        check(Factor::Tso, Level::Switch(true), over_udp, false);
        check(Factor::Gro, Level::Switch(true), over_udp, true);
        check(Factor::CongestionDefault, reno(), |_| {}, true);
        check(
            Factor::CongestionDefault,
            reno(),
            |workload| workload.options.congestion = Some("cubic".to_owned()),
            false,
        );
        check(Factor::TcpRmemMax, size(), |_| {}, true);
        check(
            Factor::TcpRmemMax,
            size(),
            |workload| workload.options.socket_buffer = Some(Bytes(4096)),
            false,
        );
    }

    #[test]
    fn what_is_left_as_it_is_and_what_is_of_the_workload_is_no_change() {
        let cell = Cell::from([
            (Factor::Connections, Level::Count(2)),
            (Factor::Mtu, Level::Word("auto".to_owned())),
            (Factor::Tso, Level::Switch(false)),
        ]);
        assert_eq!(
            changes(&cell),
            Cell::from([(Factor::Tso, Level::Switch(false))])
        );
    }
}
