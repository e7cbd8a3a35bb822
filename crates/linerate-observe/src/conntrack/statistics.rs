//! The statistics of connection tracking by netlink, for kernels without `/proc/net/stat`.
//!
//! ctnetlink answers a message a CPU (IPCTNL_MSG_CT_GET_STATS_CPU), with numbers in network byte
//! order; those of types and attributes are in include/uapi/linux/netfilter/nfnetlink_conntrack.h.
//! It needs CAP_NET_ADMIN, as all of nfnetlink does.

use std::io;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::attributes::each_attribute;
use crate::readout::Readout;
use crate::sys::netlink::{NetlinkSocket, Question};

/// NFNL_SUBSYS_CTNETLINK in the upper byte, IPCTNL_MSG_CT_GET_STATS_CPU in the lower.
const CT_GET_STATS_CPU: u16 = 1 << 8 | 4;
/// Length of struct nfgenmsg, in bytes.
const HEADER_BYTES: usize = 4;

/// The counters wanted, by attribute (CTA_STATS_…).
const WANTED: [(u16, Metric); 4] = [
    (9, Metric::ConntrackInsertFailed),
    (10, Metric::ConntrackDrop),
    (11, Metric::ConntrackEarlyDrop),
    (4, Metric::ConntrackInvalid),
];

/// Asks for the statistics of the network namespace in which it was opened.
pub(super) struct Statistics {
    socket: NetlinkSocket,
    question: Question,
}

impl Statistics {
    /// Opens a socket and asks once, since only the answer tells whether that is allowed.
    pub(super) fn open() -> io::Result<Self> {
        let mut statistics = Self {
            socket: NetlinkSocket::open(NETLINK_NETFILTER)?,
            question: Question::list(CT_GET_STATS_CPU, &[0; HEADER_BYTES]),
        };
        statistics.read()?;
        Ok(statistics)
    }

    /// Appends the sums over all CPUs.
    pub(super) fn sample(&mut self, out: &mut Vec<Sample>) -> io::Result<()> {
        Readout::halfway(out, |readout| {
            for (metric, sum) in self.read()? {
                sum.into_iter()
                    .for_each(|sum| readout.push(metric, Subject::Host, sum));
            }
            Ok(())
        })
    }

    /// Returns the sum of each counter that the kernel has.
    fn read(&mut self) -> io::Result<[(Metric, Option<i64>); 4]> {
        let mut sums = WANTED.map(|(_, metric)| (metric, None));
        self.socket.ask(&mut self.question, |kind, payload| {
            if kind == CT_GET_STATS_CPU {
                add(payload, &mut sums);
            }
        })?;
        Ok(sums)
    }
}

/// Adds the counters of one CPU.
fn add(payload: &[u8], sums: &mut [(Metric, Option<i64>); 4]) {
    let attributes = payload.get(HEADER_BYTES..).unwrap_or_default();
    each_attribute(attributes, |kind, value| {
        let place = WANTED.iter().position(|(wanted, _)| *wanted == kind);
        if let (Some(place), Some(bytes)) = (place, value.first_chunk()) {
            let count = i64::from(u32::from_be_bytes(*bytes));
            let sum = &mut sums[place].1;
            *sum = Some(sum.unwrap_or(0).saturating_add(count));
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::attribute;

    #[test]
    fn cpus_are_summed() {
        let cpu = |counters: &[(u16, u32)]| {
            let counters = counters.iter();
            let attributes =
                counters.flat_map(|(kind, count)| attribute(*kind, &count.to_be_bytes()));
            // AF_UNSPEC, version 0, the number of the CPU.
            [0, 0, 0, 1]
                .into_iter()
                .chain(attributes)
                .collect::<Vec<u8>>()
        };
        let mut sums = WANTED.map(|(_, metric)| (metric, None));
        add(&cpu(&[(2, 9), (4, 10), (9, 16), (10, 1)]), &mut sums);
        add(&cpu(&[(4, 1), (9, 1), (10, 0x0100_0000)]), &mut sums);
        let expected = [
            (Metric::ConntrackInsertFailed, Some(17)),
            (Metric::ConntrackDrop, Some(0x0100_0001)),
            (Metric::ConntrackEarlyDrop, None),
            (Metric::ConntrackInvalid, Some(11)),
        ];
        assert_eq!(sums, expected);
    }

    #[test]
    fn netlink_and_the_file_say_the_same() {
        let file = || {
            let text = std::fs::read("/proc/thread-self/net/stat/nf_conntrack").ok()?;
            let mut sums = Vec::new();
            super::super::totals(&text, &mut |_, sum| sums.push(sum));
            Some(sums)
        };
        let Some(before) = file() else { return };
        // Not allowed to every user.
        let Ok(mut statistics) = Statistics::open() else {
            return;
        };
        let sums = statistics.read().expect("an answer");
        let after = file().expect("the file is still there");
        for (at, (metric, sum)) in sums.iter().enumerate() {
            let sum = sum.expect("every kernel has these");
            assert!((before[at]..=after[at]).contains(&sum), "{}", metric.name());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload: Vec<u8>) {
            let mut sums = WANTED.map(|(_, metric)| (metric, Some(i64::MAX)));
            add(&payload, &mut sums);
        }
    }
}
