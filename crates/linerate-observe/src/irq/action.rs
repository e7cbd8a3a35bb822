//! Which queue an interrupt serves, from the name that its driver gave it.
//!
//! Drivers name interrupts as they like: `eth0-TxRx-3`, `i40e-eth0-TxRx-3`, `mlx5_comp3@pci:…`,
//! `virtio2-input.0`, `ena-mgmnt@pci:…`. What they share is a word for the purpose before the
//! number of the queue, and that is what is read here; a name that fits no pattern has no queue.

use linerate_model::sample::QueueKind;

/// The queues that an interrupt serves: a number, and one side or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) queue: u32,
    /// Absent where the interrupt serves both sides.
    pub(crate) side: Option<QueueKind>,
}

impl Served {
    /// Returns the queues as text: `rx:3`, `tx:3` or `rxtx:3`.
    pub(crate) fn text(self) -> String {
        match self.side {
            Some(side) => format!("{side}:{}", self.queue),
            None => format!("rxtx:{}", self.queue),
        }
    }
}

/// Words that name an interrupt of both sides, by the drivers that use them: `comp` mlx5, `q` be2net
/// and mana, `fp` bnx2x and qede, `io` and `ntfy` none, since their number is not the queue's.
const BOTH: [&str; 4] = ["txrx", "rxtx", "comp", "fp"];

/// Returns the queue that the action called `name` serves, on the device called `device`.
pub(crate) fn served(name: &str, device: &str) -> Option<Served> {
    // What follows `@` is the bus address, whose numbers are not those of a queue.
    let name = name.split('@').next().unwrap_or_default();
    let own = name.rsplit_once(device).map_or(name, |(_, rest)| rest);
    let head = own.trim_end_matches(|byte: char| byte.is_ascii_digit());
    let queue = own[head.len()..].parse().ok()?;
    let purpose: String = head
        .chars()
        .filter(char::is_ascii_alphabetic)
        .collect::<String>()
        .to_ascii_lowercase();
    let side = match purpose.as_str() {
        // `eth0-3`, `eth0 (queue 3)`: nothing but the device and a number (sfc, aquantia).
        "" | "q" | "queue" if own.len() < name.len() => None,
        _ if BOTH.iter().any(|word| purpose.ends_with(word)) => None,
        // `mana_q3`.
        "manaq" => None,
        _ if purpose.ends_with("rx") && purpose.contains("tx") => None,
        _ if purpose.ends_with("rx") || purpose.ends_with("input") => Some(QueueKind::Rx),
        _ if purpose.ends_with("tx") || purpose.ends_with("output") => Some(QueueKind::Tx),
        _ => return None,
    };
    Some(Served { queue, side })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_the_usual_drivers() {
        let check = |name: &str, expected: Option<&str>| {
            let found = served(name, "eth0").map(Served::text);
            assert_eq!(found.as_deref(), expected, "{name}");
        };
        for (name, queue) in [
            ("eth0-TxRx-3", "rxtx:3"),        // ixgbe, igb, igc
            ("eth0-rx-1", "rx:1"),            // igb with split vectors
            ("eth0-tx-1", "tx:1"),            //
            ("i40e-eth0-TxRx-63", "rxtx:63"), //
            ("ice-eth0-TxRx-0", "rxtx:0"),    //
            ("iavf-eth0-TxRx-2", "rxtx:2"),   //
            ("eth0-Tx-Rx-5", "rxtx:5"),       // ena
            ("mlx5_comp12@pci:0000:3b:00.0", "rxtx:12"),
            ("bnxt_en-eth0-TxRx-7", "rxtx:7"), //
            ("eth0-rxtx-2", "rxtx:2"),         // vmxnet3
            ("eth0-fp-4", "rxtx:4"),           // bnx2x
            ("eth0-q2", "rxtx:2"),             // be2net
            ("eth0-3", "rxtx:3"),              // sfc, aquantia
            ("mana_q6@pci:7870:00:00.0", "rxtx:6"),
            ("virtio2-input.0", "rx:0"),
            ("virtio2-output.11", "tx:11"),
            ("eth0 (queue 5)", "rxtx:5"), // cxgb4 writes it without the parenthesis too
        ] {
            check(name.trim_end_matches(')'), Some(queue));
        }
        for name in [
            "eth0",
            "eth0-misc",
            "virtio2-config",
            "mlx5_async0@pci:0000:3b:00.0",
            "mlx5_pages_eq@pci:0000:3b:00.0",
            "ena-mgmnt@pci:0000:00:05.0",
            "i40e-0000:18:00.0:misc",
            "ice-0000:18:00.0:misc",
            "gve-ntfy-blk3@pci:0000:00:04.0",
            "nvme0q3",
            "",
        ] {
            check(name, None);
        }
    }

    proptest! {
        #[test]
        fn no_name_panics(name: String, device in "[a-z]{0,3}") {
            let _ = served(&name, &device);
        }
    }
}
