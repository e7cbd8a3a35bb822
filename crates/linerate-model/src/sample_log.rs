//! Samples in the order in which they were read, in little memory, for those who hand them over.

use std::collections::VecDeque;

use crate::metric::Metric;
use crate::packed::{fold, put, take, unfold};
use crate::sample::{Sample, Subject};

/// Samples of one block: the least that is forgotten at once.
const BLOCK_SAMPLES: usize = 4096;

/// Samples in the order in which they were added, of which the first can be forgotten.
#[derive(Debug, Default)]
pub struct SampleLog {
    blocks: VecDeque<Block>,
    /// Number of the first sample of the first block.
    first: usize,
    /// Number of the next sample to be added.
    next: usize,
    bytes: usize,
}

/// Up to [`BLOCK_SAMPLES`] samples, each as the metric's place in the catalogue, doubled, plus one
/// where subject and instant are those of the sample before; else the length of the subject as
/// text, the text, and the instant's distance; the value.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    count: usize,
    last: Option<(Subject, u64)>,
}

impl Block {
    fn push(&mut self, sample: &Sample) {
        let last = self.last.as_ref();
        let same = last
            .is_some_and(|(subject, at_ns)| *subject == sample.subject && *at_ns == sample.at_ns);
        put(
            &mut self.bytes,
            (sample.metric as u64) << 1 | u64::from(same),
        );
        if !same {
            let before_ns = last.map_or(0, |(_, at_ns)| *at_ns);
            let text = sample.subject.to_string();
            put(&mut self.bytes, text.len() as u64);
            self.bytes.extend(text.as_bytes());
            let distance = sample.at_ns.wrapping_sub(before_ns).cast_signed();
            put(&mut self.bytes, fold(distance));
            self.last = Some((sample.subject.clone(), sample.at_ns));
        }
        put(&mut self.bytes, fold(sample.value));
        self.count += 1;
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        let (mut rest, mut subject, mut at_ns) = (self.bytes.as_slice(), Subject::Host, 0_u64);
        std::iter::from_fn(move || {
            let head = take(&mut rest)?;
            if head & 1 == 0 {
                let length = take(&mut rest)? as usize;
                let (text, after) = rest.split_at_checked(length)?;
                rest = after;
                subject = std::str::from_utf8(text).ok()?.parse().ok()?;
                at_ns = at_ns.wrapping_add(unfold(take(&mut rest)?).cast_unsigned());
            }
            Some(Sample {
                metric: *Metric::ALL.get((head >> 1) as usize)?,
                subject: subject.clone(),
                at_ns,
                value: unfold(take(&mut rest)?),
            })
        })
    }
}

impl SampleLog {
    /// Adds a sample.
    pub fn push(&mut self, sample: &Sample) {
        if self
            .blocks
            .back()
            .is_none_or(|last| last.count >= BLOCK_SAMPLES)
        {
            if let Some(full) = self.blocks.back_mut() {
                full.bytes.shrink_to_fit();
            }
            self.blocks.push_back(Block::default());
        }
        if let Some(block) = self.blocks.back_mut() {
            let before = block.bytes.len();
            block.push(sample);
            self.bytes += block.bytes.len() - before;
            self.next += 1;
        }
    }

    /// Returns the bytes that the samples take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns up to `most` samples from number `from` on, and whether there are more. Asking for
    /// it says that those before have arrived, so they are forgotten, whole blocks at a time.
    pub fn hand_over(&mut self, from: usize, most: usize) -> (Vec<Sample>, bool) {
        if from > self.next {
            // A number that was never handed out.
            return (Vec::new(), false);
        }
        while let Some(block) = self.blocks.front() {
            if self.first + block.count > from {
                break;
            }
            self.bytes -= block.bytes.len();
            self.first += block.count;
            self.blocks.pop_front();
        }
        let Some(skipped) = from.checked_sub(self.first) else {
            // One that is forgotten.
            return (Vec::new(), false);
        };
        let all = self.blocks.iter().flat_map(Block::samples);
        let samples: Vec<Sample> = all.skip(skipped).take(most).collect();
        let more = from + samples.len() < self.next;
        (samples, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FlowId;
    use crate::sample::End;

    fn sample(number: u64) -> Sample {
        Sample {
            metric: Metric::ALL[number as usize % Metric::ALL.len()],
            subject: match number % 7 {
                0 => Subject::Host,
                1 => Subject::Link("eth0:1".to_owned()),
                _ => Subject::Flow(FlowId(number as u32 / 30), End::Server),
            },
            at_ns: u64::MAX - number / 5,
            value: match number % 3 {
                0 => i64::MIN + number as i64,
                _ => number as i64 * 1000,
            },
        }
    }

    #[test]
    fn what_is_handed_over_is_what_was_added_and_can_be_asked_for_again() {
        let mut log = SampleLog::default();
        let all: Vec<Sample> = (0..20_000).map(sample).collect();
        all.iter().for_each(|sample| log.push(sample));
        assert_eq!(log.hand_over(0, 5), (all[..5].to_vec(), true));
        assert_eq!(
            log.hand_over(0, 5),
            (all[..5].to_vec(), true),
            "a lost answer"
        );
        assert_eq!(log.hand_over(5, 9_000), (all[5..9_005].to_vec(), true));
        assert_eq!(log.hand_over(9_005, 20_000), (all[9_005..].to_vec(), false));
        assert_eq!(log.hand_over(20_001, 1), (Vec::new(), false), "never there");
        assert_eq!(log.hand_over(20_000, 1), (Vec::new(), false));
        assert_eq!(log.bytes(), 0);
        assert_eq!(log.hand_over(3, 1), (Vec::new(), false), "forgotten");
        log.push(&all[0]);
        assert_eq!(log.hand_over(20_000, 9), (all[..1].to_vec(), false));
    }
}
