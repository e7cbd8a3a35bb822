//! Captures that a thread reads and unpacks ahead of who follows their connections. With full-size frames, in the
//! page cache, that takes 0.6 of the time on two CPUs and 1.05 on one (docs/performance-notes.md).

use std::io::{self, Read};
use std::sync::mpsc::channel;

use linerate_trace::capture::{Block, CaptureError, Input, NextPiece, Reader};

/// Blocks beside the one that is looked at: one that is read to, one that comes back, and two so that neither side
/// waits for the other.
const BLOCKS_AHEAD: usize = 4;

/// Opens a capture, read ahead; where there is no thread to be had, read when it is wanted.
///
/// The thread ends at the end of the input or at its first failure, or with the read behind which nobody asks any
/// more; until then it keeps `input`.
pub fn reader(input: impl Read + Send + 'static) -> Result<Reader<'static>, CaptureError> {
    Reader::read_by(input, begin)
}

fn begin(input: Input<'static>) -> NextPiece<'static> {
    let (give, given) = channel::<Input<'static>>();
    let (empty, to_fill) = channel::<Block>();
    let (fill, filled) = channel();
    let read = move || {
        let Ok(mut input) = given.recv() else { return };
        while let Ok(block) = to_fill.recv() {
            let piece = input.read(block);
            let is_last = !piece.as_ref().is_ok_and(|piece| !piece.is_empty());
            if fill.send(piece).is_err() || is_last {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("read ahead".to_owned());
    if thread.spawn(read).is_err() {
        return input.when_wanted();
    }
    // The thread waits for both; behind the end nobody wants a block.
    let _ = give.send(input);
    for _ in 0..BLOCKS_AHEAD {
        let _ = empty.send(Block::default());
    }
    Box::new(move |spare| {
        if let Some(block) = spare {
            let _ = empty.send(block);
        }
        // Behind the end and a failure nobody asks; any other end of the thread must not pass for the input's.
        let gone = || io::Error::other("the thread that read it is gone");
        filled.recv().unwrap_or_else(|_| Err(gone()))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Result};
    use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
    use std::time::Duration;

    use super::*;

    /// A capture of so many frames of 1500 bytes.
    fn capture(frames: u32) -> Vec<u8> {
        let head = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 65_535, 1];
        let mut bytes: Vec<u8> = head.into_iter().flat_map(u32::to_le_bytes).collect();
        for at in 0..frames {
            let head = [1_700_000_000, at, 1500, 1500];
            bytes.extend(head.into_iter().flat_map(u32::to_le_bytes));
            bytes.extend((0..1500).map(|byte| (byte ^ at) as u8));
        }
        bytes
    }

    /// What comes of all frames, and what is wrong with the capture.
    fn read_all(reader: &mut Reader<'_>) -> (Vec<(u64, u64)>, Option<String>) {
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame() {
            let sum = frame.bytes.iter().map(|byte| u64::from(*byte)).sum();
            frames.push((frame.time_ns, sum));
        }
        (frames, reader.damage().map(ToString::to_string))
    }

    #[test]
    fn what_is_read_ahead_is_the_same() {
        let whole = capture(3000);
        for end in [whole.len(), whole.len() - 1000, 1000] {
            let bytes = whole[..end].to_vec();
            let mut ahead = reader(Cursor::new(bytes.clone())).expect("a capture");
            let mut direct = Reader::new(&bytes[..]).expect("a capture");
            let (frames, damage) = read_all(&mut ahead);
            assert_eq!((frames.clone(), damage.clone()), read_all(&mut direct));
            assert_eq!(frames.len(), (end - 24) / 1516);
            assert_eq!(damage.is_some(), end < whole.len());
        }
    }

    /// An input that fails behind its bytes in a way of its own; dropped, it lets go what it holds.
    struct Broken {
        bytes: Cursor<Vec<u8>>,
        end: fn() -> Result<usize>,
        _held: Option<Sender<()>>,
    }

    fn broken(frames: u32, end: fn() -> Result<usize>, held: Option<Sender<()>>) -> Broken {
        Broken {
            bytes: Cursor::new(capture(frames)),
            end,
            _held: held,
        }
    }

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            match self.bytes.read(buffer)? {
                0 => (self.end)(),
                count => Ok(count),
            }
        }
    }

    #[test]
    fn a_failure_is_told_behind_what_was_read() {
        let fails: fn() -> Result<usize> = || Err(io::Error::other("the disk is gone"));
        let breaks: fn() -> Result<usize> = || panic!("broken on purpose");
        for (end, why) in [
            (fails, "the disk is gone"),
            (breaks, "the thread that read it is gone"),
        ] {
            let input = broken(1000, end, None);
            let (frames, damage) = read_all(&mut reader(input).expect("a capture"));
            assert_eq!(frames.len(), 1000);
            let damage = damage.expect("it failed");
            assert!(damage.contains(why), "{damage}");
        }
    }

    #[test]
    fn who_does_not_read_on_ends_the_thread() {
        let (held, ended) = channel();
        let input = broken(20_000, || Ok(0), Some(held));
        let mut reader = reader(input).expect("a capture");
        assert!(reader.next_frame().is_some());
        drop(reader);
        let end = ended.recv_timeout(Duration::from_secs(60));
        assert_eq!(end, Err(RecvTimeoutError::Disconnected));
    }
}
