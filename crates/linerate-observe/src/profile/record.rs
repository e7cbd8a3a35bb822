//! A sample's record as the kernel writes it, as a function of bytes.

use crate::bytes::u64_at;

/// PERF_RECORD_LOST and PERF_RECORD_SAMPLE.
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// The lowest three bits of `misc` say in which mode the CPU was; 2 is user mode.
const MODE_BITS: u16 = 7;
const MODE_USER: u16 = 2;
/// Numbers from here on are no addresses but say what the following addresses are of.
const CONTEXT_FIRST: u64 = u64::MAX - 4094;
/// PERF_CONTEXT_KERNEL.
const CONTEXT_KERNEL: u64 = u64::MAX - 127;
/// Callers believed in; the kernel's own limit is 127 (kernel.perf_event_max_stack).
const CHAIN_MAX: usize = 1024;

/// What a record says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// Where a CPU was.
    Look(Look<'a>),
    /// So many looks found no room.
    Lost(u64),
}

/// Where a CPU was at an instant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look<'a> {
    /// Whether it was in user mode.
    pub(super) is_user: bool,
    /// Address of the instruction.
    pub(super) address: u64,
    /// Process and thread, 0 for a CPU's idle thread.
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// CLOCK_MONOTONIC.
    pub(super) at_ns: u64,
    /// Return addresses inside the kernel, the innermost first, each of 8 bytes.
    chain: &'a [u8],
}

impl Look<'_> {
    /// Returns the addresses inside the kernel, the innermost first.
    pub(super) fn kernel_addresses(&self) -> impl Iterator<Item = u64> {
        let mut in_kernel = false;
        let words = self.chain.chunks_exact(8).map(|word| u64_at(word, 0));
        words.flatten().filter(move |&word| {
            if word >= CONTEXT_FIRST {
                in_kernel = word == CONTEXT_KERNEL;
                return false;
            }
            in_kernel
        })
    }
}

/// Reads a record; one of another kind, or cut off, says nothing.
pub(super) fn record(kind: u32, misc: u16, body: &[u8]) -> Option<Record<'_>> {
    match kind {
        RECORD_LOST => Some(Record::Lost(u64_at(body, 8)?)),
        RECORD_SAMPLE => {
            let length = usize::try_from(u64_at(body, 32)?).ok()?;
            let chain = body.get(40..)?;
            let length = length.min(CHAIN_MAX);
            Some(Record::Look(Look {
                is_user: misc & MODE_BITS == MODE_USER,
                address: u64_at(body, 0)?,
                pid: u64_at(body, 8)? as u32 as i32,
                tid: (u64_at(body, 8)? >> 32) as i32,
                at_ns: u64_at(body, 16)?,
                chain: chain.get(..length * 8)?,
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The body of a sample, as the fields asked for lie in it.
    fn body(address: u64, pid: u32, tid: u32, at_ns: u64, chain: &[u64]) -> Vec<u8> {
        let words = [
            address,
            u64::from(tid) << 32 | u64::from(pid),
            at_ns,
            3,
            chain.len() as u64,
        ];
        let words = words.iter().chain(chain);
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_sample_is_where_who_when_and_whence() {
        let kernel = [CONTEXT_KERNEL, 0xffff_0010, 0xffff_0200, u64::MAX - 511, 77];
        let body = body(0xffff_0010, 100, 102, 5_000, &kernel);
        let Some(Record::Look(look)) = record(RECORD_SAMPLE, 1, &body) else {
            panic!("a sample");
        };
        assert_eq!((look.pid, look.tid, look.at_ns), (100, 102, 5_000));
        assert!(!look.is_user);
        let chain: Vec<u64> = look.kernel_addresses().collect();
        assert_eq!(
            chain,
            [0xffff_0010, 0xffff_0200],
            "user addresses are left out"
        );
    }

    #[test]
    fn a_sample_of_user_mode_has_no_chain() {
        let body = body(0x5555_0000, 100, 100, 1, &[]);
        let Some(Record::Look(look)) = record(RECORD_SAMPLE, 2 | 1 << 14, &body) else {
            panic!("a sample");
        };
        assert!(look.is_user);
        assert_eq!(look.address, 0x5555_0000);
        assert_eq!(look.kernel_addresses().count(), 0);
    }

    #[test]
    fn what_was_lost_is_counted_and_the_rest_is_passed_over() {
        let lost: Vec<u8> = [9_u64, 41].iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(record(RECORD_LOST, 0, &lost), Some(Record::Lost(41)));
        assert_eq!(record(RECORD_LOST, 0, &lost[..15]), None);
        assert_eq!(record(1, 0, &lost), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind in 0..12_u32, misc: u16, body: Vec<u8>, length: u64) {
            let mut made = body.clone();
            made.resize(32, 0);
            made.extend(length.to_ne_bytes());
            made.extend(&body);
            for bytes in [&body, &made] {
                if let Some(Record::Look(look)) = record(kind, misc, bytes) {
                    prop_assert!(look.kernel_addresses().count() <= CHAIN_MAX);
                }
            }
        }
    }
}
