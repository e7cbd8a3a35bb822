//! The lines of `/proc/net/softnet_stat`, as a function of bytes.
//!
//! Hexadecimal words without names (softnet_seq_show in net/core/net-procfs.c): taken off, dropped,
//! out of budget, and from Linux 5.10 on, as the thirteenth, the CPU. Before, lines are counted,
//! which is right where all CPUs are online.

use crate::text::{complete_lines, words};

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) cpu: u32,
    /// Packets dropped because its backlog was full.
    pub(super) dropped: u32,
    /// Times that it stopped with more to come.
    pub(super) squeezed: u32,
}

const DROPPED: usize = 1;
const SQUEEZED: usize = 2;
const CPU: usize = 12;

/// Hands every line that makes sense to `push`.
pub(super) fn parse(text: &[u8], mut push: impl FnMut(Line)) {
    for (nth, line) in complete_lines(text).enumerate() {
        let word = |at: usize| words(line).nth(at);
        let number = |at: usize| word(at).and_then(hexadecimal);
        let cpu = match word(CPU) {
            Some(cpu) => hexadecimal(cpu),
            None => u32::try_from(nth).ok(),
        };
        if let (Some(dropped), Some(squeezed), Some(cpu)) = (number(DROPPED), number(SQUEEZED), cpu)
        {
            push(Line {
                cpu,
                dropped,
                squeezed,
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

    fn check(text: &str, expect: &[(u32, u32, u32)]) {
        let mut found = Vec::new();
        parse(text.as_bytes(), |line| {
            found.push((line.cpu, line.dropped, line.squeezed));
        });
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn cpus_are_named_or_counted() {
        let zeros = "0 0 0 0 0 0 0 0 0";
        check(
            &format!("1 2a 3 {zeros} 00000000 0 0\n1 1 1 {zeros} 00000007 0 0\n"),
            &[(0, 42, 3), (7, 1, 1)],
        );
        check("1 2 3\n4 ffffffff 6\n", &[(0, 2, 3), (1, u32::MAX, 6)]);
    }

    #[test]
    fn odd_and_cut_lines_give_what_is_certain() {
        check("1 2 3\n4 x 6\n7 8\n\n1 2 3", &[(0, 2, 3)]);
        check("1 +2 3\n1 100000000 3\n", &[]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>, lines in "([0-9a-fx]{0,9} ?){0,30}\n") {
            parse(&text, |_| {});
            parse(lines.as_bytes(), |_| {});
        }
    }
}
