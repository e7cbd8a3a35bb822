//! Which frames others overtake.
//!
//! A frame is held back with a fixed probability until three others have passed it that were not held back
//! themselves. Three is what TCP takes for a loss (RFC 5681, 3.2). Where fewer come it goes when its time is
//! over, so that the last of an exchange is late and not lost.
//!
//! A pure value: instants come in as arguments. Memory is taken once.

use std::collections::VecDeque;

use super::Chance;

/// Frames that pass one that is held back.
const OVERTAKERS: u64 = 3;
/// Most frames that are held back at once; with half of all the chance that so many wait is below
/// 0.0001, and one more is then let through.
const WAITING_MAX: usize = 16;

/// Frames of one direction that are held back, the oldest first.
#[derive(Debug)]
pub struct Reorder {
    chance: Chance,
    wait_ns: u64,
    waiting: VecDeque<Waiting>,
    /// Room for more.
    spare: Vec<Vec<u8>>,
    /// Frames that were let through.
    passed: u64,
    overtaken: u64,
}

#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    /// It goes when so many were let through, or then.
    passed: u64,
    due_ns: u64,
}

impl Reorder {
    /// Returns a sequence that holds back a share of `probability`, each frame, of up to `frame_bytes_max` bytes,
    /// for `wait_ns` at the most.
    pub fn new(probability: f64, seed: u64, wait_ns: u64, frame_bytes_max: usize) -> Self {
        let room = || Vec::with_capacity(frame_bytes_max);
        Self {
            chance: Chance::new(probability, seed),
            wait_ns,
            waiting: VecDeque::with_capacity(WAITING_MAX),
            spare: std::iter::repeat_with(room).take(WAITING_MAX).collect(),
            passed: 0,
            overtaken: 0,
        }
    }

    /// Takes in a frame that came at `now_ns`: hands it to `pass`, and behind it those that it was the last to
    /// overtake, or holds it back.
    pub fn handle_frame(&mut self, now_ns: u64, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        if self.chance.handle_frame()
            && let Some(mut room) = self.spare.pop()
        {
            room.clear();
            room.extend_from_slice(bytes);
            self.waiting.push_back(Waiting {
                bytes: room,
                passed: self.passed + OVERTAKERS,
                due_ns: now_ns + self.wait_ns,
            });
            return;
        }
        pass(bytes);
        self.passed += 1;
        let passed = self.passed;
        while let Some(waiting) = self.take_oldest_if(|one| one.passed <= passed) {
            self.overtaken += 1;
            pass(&waiting.bytes);
            self.spare.push(waiting.bytes);
        }
    }

    /// Hands to `pass` what has waited long enough at `now_ns`.
    pub fn poll_frames(&mut self, now_ns: u64, mut pass: impl FnMut(&[u8])) {
        while let Some(waiting) = self.take_oldest_if(|one| one.due_ns <= now_ns) {
            // It was overtaken by those that came since.
            let left = waiting.passed - self.passed;
            self.overtaken += u64::from(left < OVERTAKERS);
            pass(&waiting.bytes);
            self.spare.push(waiting.bytes);
        }
    }

    fn take_oldest_if(&mut self, goes: impl FnOnce(&Waiting) -> bool) -> Option<Waiting> {
        let goes = self.waiting.front().is_some_and(goes);
        if goes { self.waiting.pop_front() } else { None }
    }

    /// Returns when the oldest has waited long enough.
    pub fn poll_due_ns(&self) -> Option<u64> {
        self.waiting.front().map(|waiting| waiting.due_ns)
    }

    /// Returns how many frames came behind others that had come after them.
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_NS: u64 = 1000;

    fn number_of(bytes: &[u8]) -> u64 {
        u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
    }

    /// Returns the numbers of frames, one each ns, in the order in which they pass.
    fn order(probability: f64, seed: u64, frames: u64) -> (Vec<u64>, u64) {
        let mut reorder = Reorder::new(probability, seed, WAIT_NS, 8);
        let mut order = Vec::new();
        for number in 0..frames {
            let pass = |bytes: &[u8]| order.push(number_of(bytes));
            reorder.handle_frame(number, &number.to_ne_bytes(), pass);
        }
        reorder.poll_frames(frames + WAIT_NS, |bytes| order.push(number_of(bytes)));
        (order, reorder.overtaken())
    }

    #[test]
    fn three_others_pass_what_is_held_back() {
        let frames = 100_000;
        for (probability, seed) in [(0.001, 1), (0.01, 2), (0.1, 3), (0.5, 4)] {
            let (order, overtaken) = order(probability, seed, frames);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(
                sorted.into_iter().eq(0..frames),
                "none is lost, none comes twice"
            );
            // RFC 4737, 3.3: a frame is reordered where one with a higher number came before it.
            let mut highest = 0;
            let is_late = |number: &&u64| {
                let is_late = **number < highest;
                highest = highest.max(**number);
                is_late
            };
            let late = order.iter().filter(is_late).count() as f64;
            let mean = probability * frames as f64;
            let sigma = (mean * (1.0 - probability)).sqrt();
            assert!(
                (late - mean).abs() < 5.0 * sigma + 3.0,
                "p {probability}, seed {seed}: {late}"
            );
            assert_eq!(overtaken as f64, late, "p {probability}, seed {seed}");
        }
        // Held back by itself it has exactly three more before it.
        let (order, _) = order(0.001, 1, frames);
        let moved = (order.iter().zip(0..)).filter(|(number, at)| **number + 3 == *at);
        assert!(moved.count() > 50);
    }

    #[test]
    fn nothing_moves_at_zero_and_a_seed_repeats() {
        assert!(order(0.0, 1, 100).0.into_iter().eq(0..100));
        assert_eq!(order(0.1, 7, 1000), order(0.1, 7, 1000));
        assert_ne!(order(0.1, 7, 1000), order(0.1, 8, 1000));
    }

    #[test]
    fn the_last_frame_goes_when_its_time_is_over() {
        let mut reorder = Reorder::new(1.0, 1, WAIT_NS, 8);
        let mut passed = 0;
        reorder.handle_frame(5, b"alone", |_| passed += 1);
        assert_eq!((passed, reorder.poll_due_ns()), (0, Some(5 + WAIT_NS)));
        reorder.poll_frames(4 + WAIT_NS, |_| panic!("it waits"));
        let mut came = Vec::new();
        reorder.poll_frames(5 + WAIT_NS, |bytes| came = bytes.to_vec());
        assert_eq!(came, b"alone");
        assert_eq!((reorder.poll_due_ns(), reorder.overtaken()), (None, 0));
    }
}
