//! The `cpuN` lines of `/proc/stat`, as a function of bytes.

use crate::text::{complete_lines, number, words};

/// Modes taken from a line: user nice system idle iowait irq softirq steal guest.
///
/// The tenth, guest_nice, is in nice already.
pub(super) const MODES: usize = 9;
/// Modes that every kernel since 2.6 has; later ones were added at the end of the line.
const MODES_MIN: usize = 4;

/// What a reading held.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// CPUs whose line was understood.
    pub(super) cpus: u32,
    /// Lines of CPUs that were not.
    pub(super) odd_lines: u32,
}

/// Hands every mode of every CPU to `push` as CPU, mode and ticks.
///
/// A line that is not understood gives nothing at all. A line cut off at the end of the text is
/// not counted as odd, and gives nothing either.
pub(super) fn parse(text: &[u8], mut push: impl FnMut(u32, usize, u64)) -> Read {
    let mut read = Read {
        cpus: 0,
        odd_lines: 0,
    };
    // The lines of the CPUs come first; behind them is a long list of interrupts.
    let lines = complete_lines(text).take_while(|line| line.starts_with(b"cpu"));
    for line in lines.filter(|line| !line.starts_with(b"cpu ")) {
        match parse_line(line) {
            Some((cpu, ticks, modes)) => {
                read.cpus += 1;
                for (mode, &ticks) in ticks.iter().take(modes).enumerate() {
                    push(cpu, mode, ticks);
                }
            }
            None => read.odd_lines += 1,
        }
    }
    read
}

/// Reads `cpu3 1 2 3 4 …` as the CPU, its ticks and how many of them the line had.
fn parse_line(line: &[u8]) -> Option<(u32, [u64; MODES], usize)> {
    let mut words = words(line);
    let cpu = number(words.next()?.strip_prefix(b"cpu")?)?;
    let mut ticks = [0; MODES];
    let mut modes = 0;
    for (slot, word) in ticks.iter_mut().zip(words) {
        *slot = number(word)?;
        modes += 1;
    }
    (modes >= MODES_MIN).then_some((u32::try_from(cpu).ok()?, ticks, modes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &[(u32, &[u64])], odd_lines: u32) {
        let mut lines: Vec<(u32, Vec<u64>)> = Vec::new();
        let read = parse(text.as_bytes(), |cpu, mode, ticks| {
            if mode == 0 {
                lines.push((cpu, Vec::new()));
            }
            let line = lines.last_mut().expect("mode 0 comes first");
            assert_eq!(line.1.len(), mode);
            line.1.push(ticks);
        });
        let expect: Vec<(u32, Vec<u64>)> =
            expect.iter().map(|(cpu, t)| (*cpu, t.to_vec())).collect();
        assert_eq!(lines, expect, "{text:?}");
        assert_eq!(read.odd_lines, odd_lines, "{text:?}");
        assert_eq!(read.cpus as usize, expect.len(), "{text:?}");
    }

    #[test]
    fn lines_of_kernels_old_and_new() {
        let new = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu7 0 0 0 1\nintr 5 5\n";
        check(
            new,
            &[(0, &[1, 2, 3, 4, 5, 6, 7, 8, 9]), (7, &[0, 0, 0, 1])],
            0,
        );
        check("", &[], 0);
        check("intr 1 2 3\ncpu0 1 2 3 4\n", &[], 0);
    }

    #[test]
    fn odd_lines_give_nothing_and_are_counted() {
        check(
            "cpu0 1 2 x 4\ncpux 1 2 3 4\ncpu1 5 6 7 8\n",
            &[(1, &[5, 6, 7, 8])],
            2,
        );
        check("cpu0 1 2 3\ncpu0\ncpufreq 1 2 3 4\n", &[], 3);
        check("cpu0 1 2 3 -4\ncpu4294967296 1 2 3 4\n", &[], 2);
    }

    #[test]
    fn a_cut_line_gives_nothing() {
        check("cpu0 1 2 3 4\ncpu1 5 6 7 8", &[(0, &[1, 2, 3, 4])], 0);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in "(cpu[0-9 a-z]{0,12}\n?){0,8}", tail: Vec<u8>) {
            let bytes = [text.as_bytes(), &tail].concat();
            parse(&bytes, |_, mode, _| assert!(mode < MODES));
        }
    }
}
