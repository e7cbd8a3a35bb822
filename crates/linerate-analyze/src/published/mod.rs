//! Published figures to draw beside ours: Sun Fire 6800 (2003), AlphaServer ES40 (2001) and Sun Fire X4270 (2009).
//!
//! The tables are copied as printed, units in the column heads. Some printed numbers do not agree
//! with their own formula and stay as they are.

/// The system of most tables, and their year.
pub(crate) const SUN_FIRE: &str = "Sun Fire 6800, 2003";

/// A published table with its column heads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    text: &'static str,
}

/// TCP request/response rate, one connection: Sun Fire 6800, Solaris 8, 1 GbE.
pub(crate) const TCP_RR: Published = Published {
    text: include_str!("sunfire6800-tcp-rr.csv"),
};
/// One-way stream of small messages with Nagle and delayed ACK, the same system.
pub(crate) const NAGLE_ON: Published = Published {
    text: include_str!("sunfire6800-nagle-on.csv"),
};
/// The same without Nagle, delayed ACK on and off.
pub(crate) const NAGLE_OFF: Published = Published {
    text: include_str!("sunfire6800-nagle-off.csv"),
};
/// Share of CPU time in user mode and in copying, by message size, the same system.
pub(crate) const CPU_SHARE: Published = Published {
    text: include_str!("sunfire6800-cpu-share.csv"),
};
/// Bulk stream against transfer size, socket buffer and MTU: AlphaServer ES40, Tru64, 1 GbE.
pub(crate) const TRU64_STREAM: Published = Published {
    text: include_str!("tru64-es40-tcp-stream.csv"),
};

/// The system of the table of many connections, and its year.
pub(crate) const NEHALEM: &str = "Sun Fire X4270, 2009";
/// Bulk stream on many connections: Sun Fire X4270, four ports of 10 GbE.
pub(crate) const NEHALEM_TCP: Published = Published {
    text: include_str!("nehalem-x4270-tcp.csv"),
};

impl Published {
    /// Returns pairs of the numbers in columns `x` and `y`, of the rows in which every column of
    /// `filter` has the text given.
    pub(crate) fn pairs(self, x: &str, y: &str, filter: &[(&str, &str)]) -> Vec<(f64, f64)> {
        let mut lines = self.text.lines();
        let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| heads.iter().position(|head| *head == name);
        lines
            .filter_map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let cell = |name: &str| cells.get(column(name)?).copied();
                let kept = filter.iter().all(|(name, text)| cell(name) == Some(*text));
                let number = |name: &str| cell(name)?.parse::<f64>().ok();
                kept.then(|| number(x).zip(number(y)))?
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_every_table_is_read() {
        let rr = |ack| {
            TCP_RR.pairs(
                "payload_bytes",
                "transactions_per_s",
                &[("delayed_ack", ack)],
            )
        };
        assert_eq!(rr("on")[0], (4.0, 6978.0));
        assert_eq!((rr("on").len(), rr("off").len()), (7, 7));
        let on = NAGLE_ON.pairs("message_bytes", "mbit_per_s", &[]);
        assert_eq!(on.len(), 4);
        assert_eq!(on[1], (250.0, 181.56));
        let off = NAGLE_OFF.pairs("payload_bytes", "packets_per_s", &[("delayed_ack", "off")]);
        assert_eq!((off.len(), off[0]), (4, (60.0, 39010.0)));
        let copy = CPU_SHARE.pairs("payload_bytes", "copy_percent", &[]);
        assert_eq!((copy.len(), copy[5]), (6, (1460.0, 7.0)));
        let filter = [("transfer_bytes", "65536"), ("mtu_bytes", "1500")];
        let bulk = TRU64_STREAM.pairs("socket_buffer_bytes", "mbit_per_s", &filter);
        assert_eq!(bulk.len(), 4);
        let many = |way| NEHALEM_TCP.pairs("connections", "mbit_per_s", &[("direction", way)]);
        assert_eq!((many("tx").len(), many("rx")[1]), (5, (32.0, 32127.24)));
        assert_eq!(
            TCP_RR.pairs("no_such_column", "transactions_per_s", &[]),
            []
        );
    }
}
