//! The frames on their way: held in order until their delay has passed.
//!
//! A pure value: instants come in as arguments, frames are copied in and lent out. Memory is
//! taken once, when the line is made.

use std::collections::VecDeque;

/// Frames in flight on one direction of a link, oldest first.
///
/// The bytes lie in one ring; a frame is never split, so the end of the ring may stay unused.
#[derive(Debug)]
pub struct Line {
    delay_ns: u64,
    ring: Box<[u8]>,
    /// Where the next frame would be written.
    head: usize,
    frames: VecDeque<Frame>,
    frames_max: usize,
    dropped: u64,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    due_ns: u64,
    start: usize,
    length: usize,
}

impl Line {
    /// Returns an empty line that holds at most `bytes_max` bytes and `frames_max` frames.
    pub fn new(delay_ns: u64, bytes_max: usize, frames_max: usize) -> Self {
        Self {
            delay_ns,
            ring: vec![0; bytes_max].into_boxed_slice(),
            head: 0,
            frames: VecDeque::with_capacity(frames_max),
            frames_max,
            dropped: 0,
        }
    }

    /// Takes in a frame that arrived at `now_ns`; tells whether there was room.
    pub fn handle_frame(&mut self, now_ns: u64, bytes: &[u8]) -> bool {
        let Some(start) = self.place(bytes.len()) else {
            self.dropped += 1;
            return false;
        };
        self.ring[start..start + bytes.len()].copy_from_slice(bytes);
        self.head = start + bytes.len();
        self.frames.push_back(Frame {
            due_ns: now_ns + self.delay_ns,
            start,
            length: bytes.len(),
        });
        true
    }

    /// Returns when the oldest frame is due.
    pub fn poll_due_ns(&self) -> Option<u64> {
        self.frames.front().map(|frame| frame.due_ns)
    }

    /// Lends the frames that are due at `now_ns`, oldest first.
    pub fn poll_frames(&self, now_ns: u64) -> impl Iterator<Item = &[u8]> {
        self.frames
            .iter()
            .take_while(move |frame| frame.due_ns <= now_ns)
            .map(|frame| &self.ring[frame.start..frame.start + frame.length])
    }

    /// Gives up the `count` oldest frames, once they are sent.
    pub fn release(&mut self, count: usize) {
        self.frames.drain(..count.min(self.frames.len()));
        if self.frames.is_empty() {
            self.head = 0;
        }
    }

    /// Returns how many frames found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns where a frame of `length` bytes fits without touching one that is held.
    fn place(&self, length: usize) -> Option<usize> {
        if self.frames.len() >= self.frames_max {
            return None;
        }
        let Some(oldest) = self.frames.front() else {
            return (length <= self.ring.len()).then_some(0);
        };
        if self.head > oldest.start {
            // Held bytes lie in the middle: try behind them, then before them.
            if self.head + length <= self.ring.len() {
                return Some(self.head);
            }
            return (length < oldest.start).then_some(0);
        }
        // The newest frames have wrapped: the gap lies between them and the oldest.
        (self.head + length < oldest.start).then_some(self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(line: &Line, now_ns: u64) -> Vec<Vec<u8>> {
        line.poll_frames(now_ns).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn a_frame_leaves_after_its_delay_and_not_before() {
        let mut line = Line::new(5_000, 1 << 12, 16);
        assert_eq!(line.poll_due_ns(), None);
        assert!(line.handle_frame(100, b"first"));
        assert!(line.handle_frame(200, b"second"));
        assert_eq!(line.poll_due_ns(), Some(5_100));
        assert!(due(&line, 5_099).is_empty());
        assert_eq!(due(&line, 5_100), [b"first".to_vec()]);
        line.release(1);
        assert_eq!(line.poll_due_ns(), Some(5_200));
        assert_eq!(due(&line, 9_999), [b"second".to_vec()]);
    }

    #[test]
    fn a_full_line_drops_and_counts() {
        let mut line = Line::new(10, 100, 3);
        assert!(line.handle_frame(0, &[1; 60]));
        assert!(!line.handle_frame(0, &[2; 60]), "no room in bytes");
        assert!(line.handle_frame(0, &[3; 20]));
        assert!(line.handle_frame(0, &[4; 20]));
        assert!(!line.handle_frame(0, &[5; 0]), "no room in frames");
        assert_eq!(line.dropped(), 2);
    }

    #[test]
    fn order_and_content_survive_many_laps() {
        // Lengths that do not divide the ring, so frames wrap at ever new places.
        let mut line = Line::new(7, 1000, 64);
        let mut sent = 0u64;
        let mut received = 0u64;
        let length_of = |number: u64| 40 + (number * 37 % 150) as usize;
        for now in 0..5_000u64 {
            if line.handle_frame(now, &vec![sent as u8; length_of(sent)]) {
                sent += 1;
            }
            let frames = due(&line, now);
            for frame in &frames {
                assert_eq!(frame, &vec![received as u8; length_of(received)]);
                received += 1;
            }
            line.release(frames.len());
        }
        assert!(received > 3_000, "only {received} frames came through");
        assert!(line.dropped() > 0, "the ring was never full");
    }
}
