//! struct tcp_info of include/uapi/linux/tcp.h, whatever its length.
//!
//! Fields were only ever added at the end, so a field is present if the kernel wrote that far.
//! The list below is the whole knowledge of the layout: metric, offset in bytes, width, factor.

use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

use linerate_model::metric::{Kind, Metric};
use linerate_model::setting;

use crate::sys::socket;

/// Width of a field.
#[derive(Debug, Clone, Copy)]
enum Width {
    /// One bit of a byte.
    Bit(u8),
    U16,
    U32,
    U64,
}
use Width::{Bit, U16, U32, U64};

/// One field: what it is, where it lies, and what its unit is in ours.
pub(crate) struct Field {
    metric: Metric,
    offset: usize,
    width: Width,
    factor: u64,
}

/// Microseconds to nanoseconds.
const US: u64 = 1_000;
/// Bytes to bits.
const BITS: u64 = 8;

const fn field(metric: Metric, offset: usize, width: Width, factor: u64) -> Field {
    Field {
        metric,
        offset,
        width,
        factor,
    }
}

/// Every field that has a metric, by offset. The last ones came with Linux 4.9 (delivery_rate),
/// 4.10 (busy_time and the two limits), 4.18 (delivered, delivered_ce), 4.19 (bytes_sent, dsack_dups, reord_seen),
/// 5.4 (snd_wnd), 6.2 (rcv_wnd) and 6.7 (total_rto).
pub(crate) const FIELDS: &[Field] = &[
    field(Metric::TcpAppLimited, 7, Bit(0), 1),
    field(Metric::TcpSndMss, 16, U32, 1),
    field(Metric::TcpRcvMss, 20, U32, 1),
    field(Metric::TcpUnacked, 24, U32, 1),
    field(Metric::TcpPmtu, 60, U32, 1),
    field(Metric::TcpRtt, 68, U32, US),
    field(Metric::TcpRttVar, 72, U32, US),
    field(Metric::TcpCwnd, 80, U32, 1),
    field(Metric::TcpRcvSpace, 96, U32, 1),
    field(Metric::TcpRetrans, 100, U32, 1),
    field(Metric::TcpPacingRate, 104, U64, BITS),
    field(Metric::TcpBytesAcked, 120, U64, 1),
    field(Metric::TcpBytesReceived, 128, U64, 1),
    field(Metric::TcpSegsOut, 136, U32, 1),
    field(Metric::TcpSegsIn, 140, U32, 1),
    field(Metric::TcpNotSent, 144, U32, 1),
    field(Metric::TcpMinRtt, 148, U32, US),
    field(Metric::TcpDataSegsIn, 152, U32, 1),
    field(Metric::TcpDataSegsOut, 156, U32, 1),
    field(Metric::TcpDeliveryRate, 160, U64, BITS),
    field(Metric::TcpBusy, 168, U64, US),
    field(Metric::TcpRwndLimited, 176, U64, US),
    field(Metric::TcpSndbufLimited, 184, U64, US),
    field(Metric::TcpDelivered, 192, U32, 1),
    field(Metric::TcpDeliveredCe, 196, U32, 1),
    field(Metric::TcpBytesSent, 200, U64, 1),
    field(Metric::TcpBytesRetrans, 208, U64, 1),
    field(Metric::TcpDsackDups, 216, U32, 1),
    field(Metric::TcpReordSeen, 220, U32, 1),
    field(Metric::TcpSndWnd, 228, U32, 1),
    field(Metric::TcpRcvWnd, 232, U32, 1),
    field(Metric::TcpTimeouts, 240, U16, 1),
];

impl Field {
    /// Returns how many bits a counter has that may have none left in a trial: one of 32 bits counts the
    /// segments of 83 minutes at 10 Gbit/s, of 8 at 100.
    const fn narrow_bits(&self) -> Option<u32> {
        match (self.metric.kind(), self.width) {
            (Kind::Counter, U16) => Some(16),
            (Kind::Counter, U32) => Some(32),
            _ => None,
        }
    }
}

/// How many such counters there are.
const NARROW: usize = {
    let (mut at, mut count) = (0, 0);
    while at < FIELDS.len() {
        count += FIELDS[at].narrow_bits().is_some() as usize;
        at += 1;
    }
    count
};

/// Where the narrow counters of one connection stand, in 64 bits, so that they go on where the kernel's
/// begin anew.
///
/// A step of less than half of what the counter holds is one forward; readings are 10 s apart at the most,
/// in which no connection moves 2³¹ segments. Anything else is a counter that fell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Widened([u64; NARROW]);

impl Widened {
    /// Calls `each` with every field that the kernel wrote and that has a value now, wide.
    pub(crate) fn for_each(&mut self, kernel: &[u8], mut each: impl FnMut(Metric, i64)) {
        let mut stands = self.0.iter_mut();
        for field in FIELDS {
            let stand = field
                .narrow_bits()
                .and_then(|bits| Some((bits, stands.next()?)));
            let Some(value) = value(kernel, field) else {
                continue;
            };
            let value = match stand {
                None => value,
                Some((bits, stand)) => {
                    *stand = widened(*stand, value.unsigned_abs(), bits);
                    i64::try_from(*stand).unwrap_or(i64::MAX)
                }
            };
            each(field.metric, value);
        }
    }
}

/// Returns where a counter of `bits` bits that stood at `before` stands when the kernel says `raw`.
fn widened(before: u64, raw: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let step = raw.wrapping_sub(before) & mask;
    if step < 1 << (bits - 1) {
        before + step
    } else {
        (before & !mask) | raw
    }
}

/// Where the bits of what both ends agreed on lie, and what they say (TCPI_OPT_* of the same header).
const OPTIONS_OFFSET: usize = 5;
const OPTIONS: &[(u8, &str)] = &[
    (1, "timestamps"),
    (2, setting::SACK),
    (4, setting::WINDOW_SCALING),
    (8, "ECN"),
];

/// Returns what the handshake agreed on, in words; absent when the kernel did not say.
pub(crate) fn options(kernel: &[u8]) -> Option<String> {
    let bits = kernel.get(OPTIONS_OFFSET)?;
    let agreed = OPTIONS.iter().filter(|(bit, _)| bits & bit != 0);
    let words: Vec<&str> = agreed.map(|(_, words)| *words).collect();
    Some(if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(", ")
    })
}

/// Returns one field, if the kernel wrote it and it has a value now.
pub(crate) fn field_of(kernel: &[u8], metric: Metric) -> Option<i64> {
    FIELDS
        .iter()
        .find(|field| field.metric == metric)
        .and_then(|field| value(kernel, field))
}

/// Asks the kernel for one value of a connection, a time in nanoseconds.
pub(crate) fn ask_ns(fd: RawFd, metric: Metric) -> Option<u64> {
    let mut room = [0; socket::TCP_INFO_BYTES_MAX];
    let written = socket::tcp_info(fd, &mut room).ok()?;
    u64::try_from(field_of(&room[..written], metric)?).ok()
}

/// Returns how many segments the kernel has sent again for a TCP socket; absent where it does not tell.
pub fn retransmissions(socket: BorrowedFd<'_>) -> Option<u64> {
    ask_ns(socket.as_raw_fd(), Metric::TcpRetrans)
}

/// Whether the other end has ended the stream, which tcpi_bytes_received has as one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It has not.
    Open,
    /// Its FIN has come.
    Come,
    /// Nothing is left of the connection: its FIN has come, unless it ended by an error.
    Closed,
}

/// Returns what tcpi_state says of the other end's FIN (include/net/tcp_states.h).
pub(crate) fn stream_end(kernel: &[u8]) -> StreamEnd {
    const CLOSE: u8 = 7;
    const CLOSE_WAIT: u8 = 8;
    const LAST_ACK: u8 = 9;
    const CLOSING: u8 = 11;
    match kernel.first() {
        Some(&(CLOSE_WAIT | LAST_ACK | CLOSING)) => StreamEnd::Come,
        Some(&CLOSE) => StreamEnd::Closed,
        _ => StreamEnd::Open,
    }
}

fn value(kernel: &[u8], field: &Field) -> Option<i64> {
    let at = field.offset;
    let (raw, unset) = match field.width {
        Bit(bit) => (u64::from((kernel.get(at)? >> bit) & 1), u64::MAX),
        U16 => {
            let bytes = kernel.get(at..at + 2)?.try_into().ok()?;
            (u64::from(u16::from_ne_bytes(bytes)), u64::MAX)
        }
        U32 => {
            let bytes = kernel.get(at..at + 4)?.try_into().ok()?;
            (u64::from(u32::from_ne_bytes(bytes)), u64::from(u32::MAX))
        }
        U64 => {
            let bytes = kernel.get(at..at + 8)?.try_into().ok()?;
            (u64::from_ne_bytes(bytes), u64::MAX)
        }
    };
    // All ones is "no limit" for the pacing rate and "not measured yet" for the smallest RTT: no
    // value at all. A counter of 32 bits that passes through this one value loses one sample.
    if raw == unset {
        return None;
    }
    i64::try_from(raw.saturating_mul(field.factor)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A struct of `bytes` bytes in which each aligned 32-bit word holds its own offset.
    fn made(bytes: usize) -> Vec<u8> {
        (0..bytes as u32)
            .step_by(4)
            .flat_map(u32::to_ne_bytes)
            .collect()
    }

    #[test]
    fn fields_are_found_where_the_kernel_writes_them() {
        let kernel = made(280);
        let check = |metric, expect| assert_eq!(field_of(&kernel, metric), Some(expect));
        check(Metric::TcpSndMss, 16);
        check(Metric::TcpRtt, 68_000);
        check(Metric::TcpMinRtt, 148_000);
        check(Metric::TcpSndWnd, 228);
        check(Metric::TcpRcvWnd, 232);
        check(Metric::TcpDeliveredCe, 196);
        check(Metric::TcpDsackDups, 216);
        if cfg!(target_endian = "little") {
            check(Metric::TcpTimeouts, 240);
        }
        // Two words, the low one first on this little-endian layout.
        if cfg!(target_endian = "little") {
            check(Metric::TcpBytesAcked, (124 << 32) | 120);
        }
        assert_eq!(field_of(&kernel, Metric::CpuUser), None);
    }

    #[test]
    fn counters_go_on_where_the_kernel_begins_them_anew() {
        let mut widened = Widened::default();
        let mut check = |metric, raw: u32, expect: i64| {
            let field = FIELDS.iter().find(|field| field.metric == metric);
            let field = field.expect("it is one of them");
            let mut kernel = vec![0; 280];
            let bytes = match field.width {
                U16 => raw.to_ne_bytes()[..2].to_vec(),
                _ => raw.to_ne_bytes().to_vec(),
            };
            kernel[field.offset..][..bytes.len()].copy_from_slice(&bytes);
            let mut seen = None;
            widened.for_each(&kernel, |other, value| {
                seen = seen.or((other == metric).then_some(value));
            });
            assert_eq!(seen, Some(expect), "{} of {raw}", metric.name());
        };
        const ROUND: i64 = 1 << 32;
        for metric in [Metric::TcpSegsOut, Metric::TcpDelivered] {
            // Once around, and beyond where it began.
            for (raw, expect) in [
                (1_000_000_000, 1_000_000_000),
                (3_000_000_000, 3_000_000_000),
                (500_000_000, ROUND + 500_000_000),
                (2_000_000_000, ROUND + 2_000_000_000),
                (4_000_000_000, ROUND + 4_000_000_000),
                (0, 2 * ROUND),
                (7, 2 * ROUND + 7),
            ] {
                check(metric, raw, expect);
            }
        }
        // One that falls was not around: it is that of another connection.
        check(Metric::TcpDataSegsIn, 2_000_000_000, 2_000_000_000);
        check(Metric::TcpDataSegsIn, 9, 9);
        // A value stays as it is.
        for cwnd in [u32::MAX - 1, 10] {
            check(Metric::TcpCwnd, cwnd, cwnd.into());
        }
        if cfg!(target_endian = "little") {
            for (raw, expect) in [(30_000, 30_000), (60_000, 60_000), (5, 65_541)] {
                check(Metric::TcpTimeouts, raw, expect);
            }
        }
    }

    #[test]
    fn every_tcp_metric_of_the_catalogue_has_a_field() {
        for metric in Metric::ALL {
            let known = FIELDS.iter().any(|field| field.metric == *metric);
            let name = metric.name();
            let of_a_flow = name.starts_with("tcp_") && !name.starts_with("tcp_host_");
            assert_eq!(of_a_flow, known, "{name}");
        }
    }

    #[test]
    fn an_older_kernel_has_fewer_fields() {
        // Linux 4.2 wrote 136 bytes, up to and including tcpi_bytes_received.
        let mut seen = Vec::new();
        Widened::default().for_each(&made(136), |metric, _| seen.push(metric));
        assert_eq!(seen.last(), Some(&Metric::TcpBytesReceived));
        Widened::default().for_each(&[], |metric, _| panic!("{} from nothing", metric.name()));
        assert_eq!(options(&[]), None);
    }

    #[test]
    fn bits_are_told_in_words() {
        let mut kernel = made(280);
        (kernel[5], kernel[7]) = (0b0111, 0b1110);
        assert_eq!(
            options(&kernel).as_deref(),
            Some("timestamps, SACK, window scaling")
        );
        assert_eq!(field_of(&kernel, Metric::TcpAppLimited), Some(0));
        (kernel[5], kernel[7]) = (0, 1);
        assert_eq!(options(&kernel).as_deref(), Some("none"));
        assert_eq!(field_of(&kernel, Metric::TcpAppLimited), Some(1));
    }

    #[test]
    fn all_ones_is_no_value() {
        let mut kernel = made(280);
        kernel[104..112].fill(0xff);
        kernel[148..152].fill(0xff);
        assert_eq!(field_of(&kernel, Metric::TcpPacingRate), None);
        assert_eq!(field_of(&kernel, Metric::TcpMinRtt), None);
    }
}
