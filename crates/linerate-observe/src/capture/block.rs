//! The frames in one block of the ring, from its bytes alone (`struct tpacket_block_desc`, `struct
//! tpacket3_hdr`).

use crate::bytes::{u16_at, u32_at};

/// `h1.num_pkts` of the block's header.
const COUNT_AT: usize = 12;
/// `h1.offset_to_first_pkt`.
const FIRST_AT: usize = 16;
/// A frame's header, of which the fields read here are the first.
const HEADER_BYTES: usize = 48;
/// `tp_status`: a VLAN tag was taken off, and its type is there too.
const STATUS_VLAN: u32 = 1 << 4;
const STATUS_VLAN_TYPE: u32 = 1 << 6;
/// The type where the kernel does not tell: IEEE 802.1Q.
const TYPE_8021Q: u16 = 0x8100;
/// `sll_pkttype` of a frame that this host sent.
const OUTGOING: u8 = 4;
/// Where `sll_pkttype` stands behind the frame's header, which is padded to 16 bytes.
const KIND_AT: usize = HEADER_BYTES + 10;

/// One frame as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When, in nanoseconds since 1970, on the kernel's wall clock.
    pub at_unix_ns: u64,
    /// Its length on the wire; for a superframe, as it was handed to the device.
    pub length: u32,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// The VLAN tag that the kernel or the device took off: type and tag.
    pub vlan: Option<(u16, u16)>,
    /// Whether this host sent it.
    pub is_outgoing: bool,
}

/// Returns the frames of a block; one that contradicts itself ends them.
pub(super) fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let count = u32_at(block, COUNT_AT).unwrap_or(0);
    let mut at = u32_at(block, FIRST_AT).map(|at| at as usize);
    (0..count).map_while(move |_| {
        let from = block.get(at?..)?;
        let next = u32_at(from, 0)? as usize;
        // The last one has no next.
        at = (next > 0).then(|| at.unwrap_or(0) + next);
        frame(from)
    })
}

fn frame(from: &[u8]) -> Option<Frame<'_>> {
    let kept = u32_at(from, 12)? as usize;
    let status = u32_at(from, 20)?;
    let begin = usize::from(u16_at(from, 24)?);
    let vlan = (status & STATUS_VLAN != 0).then(|| {
        let kind = u16_at(from, 36).filter(|_| status & STATUS_VLAN_TYPE != 0);
        Some((kind.unwrap_or(TYPE_8021Q), u32_at(from, 32)? as u16))
    });
    Some(Frame {
        at_unix_ns: u64::from(u32_at(from, 4)?) * 1_000_000_000 + u64::from(u32_at(from, 8)?),
        length: u32_at(from, 16)?,
        bytes: from.get(begin..begin.checked_add(kept)?)?,
        vlan: vlan.flatten(),
        is_outgoing: *from.get(KIND_AT)? == OUTGOING,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a block with these frames: payload, and a VLAN tag if any.
    fn block(frames: &[(&[u8], Option<u16>)]) -> Vec<u8> {
        let mut block = vec![0; 48];
        block[COUNT_AT..COUNT_AT + 4].copy_from_slice(&(frames.len() as u32).to_ne_bytes());
        block[FIRST_AT..FIRST_AT + 4].copy_from_slice(&48_u32.to_ne_bytes());
        for (at, (bytes, vlan)) in frames.iter().enumerate() {
            let length = (80 + bytes.len()).next_multiple_of(16);
            let mut one = vec![0; length];
            let is_last = at + 1 == frames.len();
            let next = if is_last { 0 } else { length as u32 };
            let status = vlan.map_or(1, |_| 1 | STATUS_VLAN);
            let words = [next, 1_700_000_000, 5, bytes.len() as u32, 2000, status];
            for (place, word) in words.into_iter().enumerate() {
                one[4 * place..4 * place + 4].copy_from_slice(&word.to_ne_bytes());
            }
            one[24..26].copy_from_slice(&80_u16.to_ne_bytes());
            let tag = u32::from(vlan.unwrap_or(0));
            one[32..36].copy_from_slice(&tag.to_ne_bytes());
            one[KIND_AT] = OUTGOING;
            one[80..80 + bytes.len()].copy_from_slice(bytes);
            block.extend(one);
        }
        block
    }

    #[test]
    fn frames_are_those_that_the_kernel_put_there() {
        let block = block(&[(b"first", None), (b"second one", Some(7))]);
        let frames: Vec<_> = frames(&block).collect();
        assert_eq!(frames.len(), 2);
        assert_eq!((frames[0].bytes, frames[0].vlan), (&b"first"[..], None));
        assert_eq!(frames[1].vlan, Some((TYPE_8021Q, 7)));
        assert_eq!(frames[1].at_unix_ns, 1_700_000_000_000_000_005);
        assert_eq!((frames[1].length, frames[1].is_outgoing), (2000, true));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(mut bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..300_usize) {
            let whole = block(&[(b"abc", None), (b"def", Some(1))]);
            // Pure noise, and a true block with noise in it.
            prop_assert!(frames(&bytes).take(1000).count() <= 1000);
            bytes.extend(&whole);
            let mut damaged = whole;
            if let (Some(byte), Some(noise)) = (damaged.get_mut(at), bytes.get(at)) {
                *byte ^= noise;
            }
            prop_assert!(frames(&damaged).take(1000).all(|frame| frame.bytes.len() <= damaged.len()));
        }
    }
}
