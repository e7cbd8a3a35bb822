//! What one direction of a link does to its frames.
//!
//! Each frame, in this order: it is lost or not; it comes once or twice; each of these is held back or not
//! until others have passed; it waits for the jitter and then for the delay. What is not asked for is not
//! there, and costs a frame one comparison.
//!
//! A pure value: instants come in as arguments, frames are copied in and lent out.

use super::{Chance, Jitter, Line, Reorder};

/// The longest time that a frame which is held back waits for others, where they have no time of their own:
/// ten times what three full frames take at 100 Mbit/s.
pub const REORDER_WAIT_NS_MIN: u64 = 4_000_000;

/// What a [`Passage`] does.
#[derive(Debug, Clone, PartialEq)]
pub struct PassageConfig {
    /// How long a frame is on its way.
    pub delay_ns: u64,
    /// How much longer at the most.
    pub jitter_ns: u64,
    /// The probability that a frame is lost.
    pub loss: f64,
    /// That it comes twice.
    pub duplicate: f64,
    /// That others overtake it.
    pub reorder: f64,
    /// How long it waits for them.
    pub reorder_wait_ns: u64,
    /// Where the sequences of what happens start.
    pub seed: u64,
    /// Longest frame.
    pub frame_bytes_max: usize,
    /// Most bytes on their way.
    pub held_bytes_max: usize,
    /// Most frames on their way.
    pub held_frames_max: usize,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Passage {
    loss: Chance,
    duplicate: Chance,
    reorder: Option<Reorder>,
    tail: Tail,
}

/// What every frame that goes on passes: jitter and delay.
#[derive(Debug)]
struct Tail {
    jitter: Option<Jitter>,
    line: Line,
}

/// What became of the frames of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Happened {
    /// Lost on purpose.
    pub lost: u64,
    /// Sent twice on purpose.
    pub duplicated: u64,
    /// Overtaken on purpose.
    pub reordered: u64,
    /// Without room.
    pub dropped: u64,
}

impl Passage {
    /// Returns a passage without frames.
    pub fn new(config: &PassageConfig) -> Self {
        // Each thing that may happen has a sequence of its own: the same frames are lost whatever else happens.
        let seed = |thing: u64| config.seed ^ (thing << 32);
        Self {
            loss: Chance::new(config.loss, seed(0)),
            duplicate: Chance::new(config.duplicate, seed(1)),
            reorder: (config.reorder > 0.0).then(|| {
                let (wait_ns, bytes_max) = (config.reorder_wait_ns, config.frame_bytes_max);
                Reorder::new(config.reorder, seed(2), wait_ns, bytes_max)
            }),
            tail: Tail {
                jitter: (config.jitter_ns > 0).then(|| Jitter::new(config.jitter_ns, seed(3))),
                line: Line::new(
                    config.delay_ns,
                    config.held_bytes_max,
                    config.held_frames_max,
                ),
            },
        }
    }

    /// Takes in a frame that came at `now_ns`.
    pub fn handle_frame(&mut self, now_ns: u64, bytes: &[u8]) {
        if self.loss.handle_frame() {
            return;
        }
        if self.duplicate.handle_frame() {
            self.pass(now_ns, bytes);
        }
        self.pass(now_ns, bytes);
    }

    fn pass(&mut self, now_ns: u64, bytes: &[u8]) {
        let tail = &mut self.tail;
        match &mut self.reorder {
            None => tail.handle_frame(now_ns, bytes),
            Some(reorder) => {
                reorder.handle_frame(now_ns, bytes, |bytes| tail.handle_frame(now_ns, bytes));
            }
        }
    }

    /// Lets go of what has been held back long enough at `now_ns`.
    pub fn poll(&mut self, now_ns: u64) {
        if let Some(reorder) = &mut self.reorder {
            reorder.poll_frames(now_ns, |bytes| self.tail.handle_frame(now_ns, bytes));
        }
    }

    /// Returns when there is something to do next.
    pub fn poll_due_ns(&self) -> Option<u64> {
        let held_back = self.reorder.as_ref().and_then(Reorder::poll_due_ns);
        let line = self.tail.line.poll_due_ns();
        line.into_iter().chain(held_back).min()
    }

    /// Lends the frames that are due at `now_ns`, in the order in which they leave.
    pub fn poll_frames(&self, now_ns: u64) -> impl Iterator<Item = &[u8]> {
        self.tail.line.poll_frames(now_ns)
    }

    /// Gives up the `count` frames that left first.
    pub fn release(&mut self, count: usize) {
        self.tail.line.release(count);
    }

    /// Returns what became of the frames so far.
    pub fn happened(&self) -> Happened {
        Happened {
            lost: self.loss.count(),
            duplicated: self.duplicate.count(),
            reordered: self.reorder.as_ref().map_or(0, Reorder::overtaken),
            dropped: self.tail.line.dropped(),
        }
    }
}

impl Tail {
    fn handle_frame(&mut self, now_ns: u64, bytes: &[u8]) {
        let until_ns = match &mut self.jitter {
            None => now_ns,
            Some(jitter) => jitter.handle_frame(now_ns),
        };
        self.line.handle_frame(until_ns, bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const FRAMES: u64 = 50_000;
    const PLAIN: PassageConfig = PassageConfig {
        delay_ns: 10_000,
        jitter_ns: 0,
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        reorder_wait_ns: 1_000_000,
        seed: 1,
        frame_bytes_max: 8,
        held_bytes_max: 1 << 20,
        held_frames_max: 1 << 16,
    };

    /// Returns the frames that leave, each with the instant, of some that come 100 ns apart; and what happened.
    fn through(config: &PassageConfig) -> (Vec<(u64, u64)>, Happened) {
        let mut passage = Passage::new(config);
        let mut left = Vec::new();
        let mut leave = |passage: &mut Passage, now_ns: u64| {
            passage.poll(now_ns);
            let frames = passage.poll_frames(now_ns);
            let numbers =
                frames.map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")));
            let numbers: Vec<u64> = numbers.collect();
            passage.release(numbers.len());
            left.extend(numbers.into_iter().map(|number| (now_ns, number)));
        };
        for number in 0..FRAMES {
            let now_ns = number * 100;
            leave(&mut passage, now_ns);
            passage.handle_frame(now_ns, &number.to_ne_bytes());
        }
        while let Some(due_ns) = passage.poll_due_ns() {
            leave(&mut passage, due_ns);
        }
        let happened = passage.happened();
        (left, happened)
    }

    #[test]
    fn what_was_not_asked_for_does_not_happen() {
        let (left, happened) = through(&PLAIN);
        assert_eq!(happened, Happened::default());
        let expected = (0..FRAMES).map(|number| (number * 100 + PLAIN.delay_ns, number));
        assert!(left.into_iter().eq(expected));
    }

    #[test]
    fn everything_together_is_what_each_is_alone() {
        let all = PassageConfig {
            jitter_ns: 5_000,
            loss: 0.02,
            duplicate: 0.03,
            reorder: 0.05,
            ..PLAIN
        };
        let (left, happened) = through(&all);
        let mut times = BTreeMap::<u64, u64>::new();
        for (_, number) in &left {
            *times.entry(*number).or_default() += 1;
        }
        let twice = times.values().filter(|times| **times == 2).count() as u64;
        assert_eq!(FRAMES - times.len() as u64, happened.lost);
        assert_eq!(twice, happened.duplicated);
        assert_eq!(left.len() as u64, FRAMES - happened.lost + twice);
        let check = |count: u64, probability: f64, of: f64| {
            let mean = probability * of;
            let sigma = (mean * (1.0 - probability)).sqrt();
            assert!(
                (count as f64 - mean).abs() < 5.0 * sigma,
                "{count} of {of}, not {probability}"
            );
        };
        let kept = (FRAMES - happened.lost) as f64;
        check(happened.lost, 0.02, FRAMES as f64);
        check(happened.duplicated, 0.03, kept);
        check(happened.reordered, 0.05, left.len() as f64);
        // The same frames are lost as without the rest.
        let (alone, happened_alone) = through(&PassageConfig {
            loss: 0.02,
            ..PLAIN
        });
        assert_eq!(happened_alone.lost, happened.lost);
        assert!(alone.iter().map(|(_, number)| number).eq(times.keys()));
    }

    #[test]
    fn jitter_keeps_the_order_and_its_bounds() {
        let (left, _) = through(&PassageConfig {
            jitter_ns: 5_000,
            ..PLAIN
        });
        assert!(left.iter().map(|(_, number)| *number).eq(0..FRAMES));
        // A frame leaves when this looks, each 100 ns.
        let waits = left
            .iter()
            .map(|(at_ns, number)| at_ns - number * 100 - PLAIN.delay_ns);
        assert!(waits.clone().all(|wait_ns| wait_ns < 5_000 + 100));
        assert!(
            waits.clone().any(|wait_ns| wait_ns < 200)
                && waits.clone().any(|wait_ns| wait_ns > 4_000)
        );
    }
}
