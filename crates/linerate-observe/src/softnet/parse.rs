//! The lines of `/proc/net/softnet_stat`, as a function of bytes.
//!
//! Hexadecimal words without names (softnet_seq_show in net/core/net-procfs.c): taken off, dropped,
//! out of budget, six that are always 0, received for other CPUs (RPS), dropped by the flow limit;
//! from Linux 5.10 on the backlog's length and the CPU. Before, lines are counted, which is right
//! where all CPUs are online.

use crate::text::{complete_lines, words};

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) cpu: u32,
    /// The counters, in the order of [`COUNTERS`]; absent where the kernel has no such word.
    pub(super) counters: [Option<u32>; COUNTERS.len()],
    /// Packets that wait in its backlog.
    pub(super) backlog: Option<u32>,
}

/// The places of the counters in a line: processed, dropped, squeezed, received_rps, flow_limit.
pub(super) const COUNTERS: [usize; 5] = [0, DROPPED, SQUEEZED, 9, 10];
const DROPPED: usize = 1;
const SQUEEZED: usize = 2;
const BACKLOG: usize = 11;
const CPU: usize = 12;
/// Most words of a line looked at.
const WORDS: usize = CPU + 1;

/// Hands every line that makes sense to `push`: it must say what was dropped and squeezed.
pub(super) fn parse(text: &[u8], mut push: impl FnMut(Line)) {
    for (nth, line) in complete_lines(text).enumerate() {
        let mut numbers = [None; WORDS];
        let mut count = 0;
        for (number, word) in numbers.iter_mut().zip(words(line)) {
            *number = hexadecimal(word);
            count += 1;
        }
        let cpu = match count {
            WORDS => numbers[CPU],
            _ => u32::try_from(nth).ok(),
        };
        if let (Some(cpu), Some(_), Some(_)) = (cpu, numbers[DROPPED], numbers[SQUEEZED]) {
            push(Line {
                cpu,
                counters: COUNTERS.map(|place| numbers[place]),
                backlog: numbers[BACKLOG].filter(|_| count == WORDS),
            });
        }
    }
}

fn hexadecimal(word: &[u8]) -> Option<u32> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The CPU, its counters, its backlog.
    type Found = (u32, [Option<u32>; 5], Option<u32>);

    fn check(text: &str, expect: &[Found]) {
        let mut found = Vec::new();
        parse(text.as_bytes(), |line| {
            found.push((line.cpu, line.counters, line.backlog));
        });
        assert_eq!(found, expect, "{text:?}");
    }

    fn first(processed: u32, dropped: u32, squeezed: u32) -> [Option<u32>; 5] {
        [Some(processed), Some(dropped), Some(squeezed), None, None]
    }

    #[test]
    fn cpus_are_named_or_counted() {
        let zeros = "0 0 0 0 0 0";
        check(
            &format!("1 2a 3 {zeros} 9 a b 00000000 0 0\n1 1 1 {zeros} 0 0 0 00000007 0 0\n"),
            &[
                (0, [1, 42, 3, 9, 10].map(Some), Some(11)),
                (7, [1, 1, 1, 0, 0].map(Some), Some(0)),
            ],
        );
        check(
            "1 2 3\n4 ffffffff 6\n",
            &[(0, first(1, 2, 3), None), (1, first(4, u32::MAX, 6), None)],
        );
    }

    #[test]
    fn odd_and_cut_lines_give_what_is_certain() {
        check("1 2 3\n4 x 6\n7 8\n\n1 2 3", &[(0, first(1, 2, 3), None)]);
        check("1 +2 3\n1 100000000 3\n", &[]);
        check(
            "y 2 3\n",
            &[(0, [None, Some(2), Some(3), None, None], None)],
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>, lines in "([0-9a-fx]{0,9} ?){0,30}\n") {
            parse(&text, |_| {});
            parse(lines.as_bytes(), |_| {});
        }
    }
}
