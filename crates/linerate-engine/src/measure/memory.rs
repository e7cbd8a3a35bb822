//! How fast this host copies memory: the ceiling of every copying path, STREAM's "copy".

use std::hint::black_box;
use std::time::Duration;

use crate::sys::buffer::PageBuffer;
use crate::sys::clock::now_ns;

/// Source and destination together: 64 MiB, more than the cache that one CPU of current x86 and
/// ARM servers can fill alone (16 to 32 MiB a complex on AMD; a monolithic 60 MiB on Intel), and
/// little enough for a process that must stay below 150 MB.
const COPY_BYTES: usize = 32 << 20;
/// Copies go in pieces this large, so that a short length is kept.
const PIECE_BYTES: usize = 1 << 20;

/// Returns how many bytes per second one thread reads and writes when it copies for `length`.
///
/// Every copied byte counts twice, once as read and once as written, as STREAM counts it
/// (McCalpin 1995); the fetch of the destination line that a plain store causes is not counted.
/// At least one piece is copied, however short `length` is.
pub fn memory_copy_bytes_per_s(length: Duration) -> f64 {
    let source = PageBuffer::new(COPY_BYTES);
    let mut destination = PageBuffer::new(COPY_BYTES);
    let began_ns = now_ns();
    let end_ns = began_ns.saturating_add(length.as_nanos() as u64);
    let mut copied_bytes = 0_u64;
    let pieces = COPY_BYTES / PIECE_BYTES;
    for piece in (0..pieces).cycle() {
        let range = piece * PIECE_BYTES..(piece + 1) * PIECE_BYTES;
        black_box(&mut destination.as_mut_slice()[range.clone()])
            .copy_from_slice(black_box(&source.as_slice()[range]));
        copied_bytes += PIECE_BYTES as u64;
        if now_ns() >= end_ns {
            break;
        }
    }
    let elapsed_s = (now_ns() - began_ns).max(1) as f64 / 1e9;
    2.0 * copied_bytes as f64 / elapsed_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_rate() {
        let rate = memory_copy_bytes_per_s(Duration::from_millis(10));
        // Slower than 10 MB/s or faster than 10 TB/s is no memory of this century.
        assert!((1e7..1e13).contains(&rate), "{rate}");
    }
}
