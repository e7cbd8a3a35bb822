//! The lines of `/proc/interrupts`, as a function of bytes.
//!
//! The first line names the CPUs that are online (`CPU0 CPU2 …`); each further line has a name, a
//! colon, a number for each of them, and what the interrupt is (show_interrupts in
//! kernel/irq/proc.c). Lines with a word for a name are the architecture's own and are passed over.

use crate::text::{complete_lines, words};

/// One numbered interrupt.
pub(super) struct Line<'a> {
    pub(super) irq: u32,
    counts: &'a [u8],
    pub(super) total: u64,
}

impl Line<'_> {
    /// Returns the numbers of the line, in the order of the CPUs.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        words(self.counts).map(|word| digits(word, 0).0)
    }
}

/// Reads the numbers of the CPUs in the order of the columns into `cpus`, and hands every numbered
/// line to `handle`. Returns how many numbered lines made sense.
pub(super) fn parse<'a>(
    text: &'a [u8],
    cpus: &mut Vec<u32>,
    mut handle: impl FnMut(&Line<'a>, &[u32]),
) -> usize {
    cpus.clear();
    let mut lines = complete_lines(text);
    let heading = lines.next().unwrap_or_default();
    cpus.extend(words(heading).filter_map(cpu_of));
    let mut understood = 0;
    for line in lines.filter_map(|line| read(line, cpus.len())) {
        understood += 1;
        handle(&line, cpus);
    }
    understood
}

fn cpu_of(word: &[u8]) -> Option<u32> {
    let number = crate::text::number(word.strip_prefix(b"CPU")?)?;
    u32::try_from(number).ok()
}

/// Reads one line: absent when it has no number for a name, or not a number for each CPU.
fn read(line: &[u8], cpus: usize) -> Option<Line<'_>> {
    let line = line.trim_ascii_start();
    let (irq, at) = digits(line, 0);
    if at == 0 || line.get(at) != Some(&b':') {
        return None;
    }
    let begin = at + 1;
    let (mut at, mut total) = (begin, 0_u64);
    for _ in 0..cpus {
        while line.get(at) == Some(&b' ') {
            at += 1;
        }
        let (count, end) = digits(line, at);
        if end == at || line.get(end).is_some_and(|byte| *byte != b' ') {
            return None;
        }
        total = total.wrapping_add(count);
        at = end;
    }
    Some(Line {
        irq: u32::try_from(irq).ok()?,
        counts: &line[begin..at],
        total,
    })
}

/// Reads digits from `at` on; returns the number and where they end.
fn digits(line: &[u8], at: usize) -> (u64, usize) {
    let (mut number, mut end) = (0_u64, at);
    while let Some(digit) = line.get(end).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        end += 1;
    }
    (number, end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<(u32, Vec<u64>, u64)> {
        let (mut cpus, mut all) = (Vec::new(), Vec::new());
        parse(text.as_bytes(), &mut cpus, |line, cpus| {
            assert_eq!(line.counts().count(), cpus.len());
            all.push((line.irq, line.counts().collect(), line.total));
        });
        all
    }

    #[test]
    fn numbered_lines_are_read() {
        let text = "           CPU0       CPU2       \n \
                    24:          1         30  IO-APIC   5-edge      ACPI:Ged\n\
                    139: 4000000000 4000000000 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
                    LOC:   56795310   61191329   Local timer interrupts\n\
                    ERR:          0\n";
        assert_eq!(
            found(text),
            [
                (24, vec![1, 30], 31),
                (139, vec![4_000_000_000, 4_000_000_000], 8_000_000_000),
            ]
        );
    }

    #[test]
    fn the_columns_are_the_cpus_of_the_heading() {
        let mut cpus = Vec::new();
        let mut seen = Vec::new();
        parse(b" CPU0 CPU7\n1: 2 3 x\n", &mut cpus, |_, cpus| {
            seen = cpus.to_vec()
        });
        assert_eq!(seen, [0, 7]);
    }

    #[test]
    fn odd_and_cut_lines_are_passed_over() {
        let text = "CPU0 CPU1\n1: 2\n2: 3 x y\n3: 4 5\n4: 6 7z\n5 6 7\n6: 1 1";
        assert_eq!(found(text), [(3, vec![4, 5], 9)]);
        assert_eq!(found("").len(), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>, lines in "(CPU[0-9] ?){0,4}\n([0-9]{1,22}:? ?){0,9}\n") {
            parse(&text, &mut Vec::new(), |line, _| { line.counts().count(); });
            parse(lines.as_bytes(), &mut Vec::new(), |line, _| { line.counts().count(); });
        }
    }
}
