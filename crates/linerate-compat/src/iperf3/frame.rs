//! Texts with their length before them.

/// Bytes of the length.
const HEAD_BYTES: usize = 4;
/// The longest text of parameters; the limit of iperf3's own server.
pub const PARAMETERS_BYTES_MAX: usize = 8192;
/// The longest text of a client's results: 256 streams (128 each way) of 250 bytes are 64 KiB, and
/// a server keeps this much for every stranger who sends so much.
pub const CLIENT_RESULTS_BYTES_MAX: usize = 1 << 20;
/// The longest text of a server's results.
///
/// What makes them long is the server's own output: 128 streams with a line of 90 bytes each, every
/// 0.1 s for 10 minutes, are 66 MiB; every second for an hour, 40 MiB. 16 MiB hold every test that
/// somebody looks at, and bound what a server that misbehaves makes us keep.
pub const RESULTS_BYTES_MAX: usize = 16 << 20;

/// Why a text cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a text of {announced} bytes is announced, the limit is {limit}")]
pub struct FrameError {
    /// What the length said.
    pub announced: usize,
    /// The most that is taken.
    pub limit: usize,
}

/// Returns `text` with its length before it.
///
/// A text of 4 GiB or more has no frame; nothing here makes one, and it would be cut.
pub fn encode(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + text.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&text[..length as usize]);
    bytes
}

/// Takes up one text, in slices that are cut anywhere.
///
/// Memory grows with what has arrived, not with what was announced.
#[derive(Debug, Clone)]
pub struct FrameDecoder {
    limit: usize,
    head: [u8; HEAD_BYTES],
    head_taken: usize,
    text: Vec<u8>,
}

impl FrameDecoder {
    /// Returns a decoder of one text of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            head: [0; HEAD_BYTES],
            head_taken: 0,
            text: Vec::new(),
        }
    }

    /// Takes the next bytes of the stream and returns how many of them belong to this text, and
    /// the text once it is complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<u8>>), FrameError> {
        let head = bytes.len().min(HEAD_BYTES - self.head_taken);
        self.head[self.head_taken..self.head_taken + head].copy_from_slice(&bytes[..head]);
        self.head_taken += head;
        if self.head_taken < HEAD_BYTES {
            return Ok((head, None));
        }
        let announced = u32::from_be_bytes(self.head) as usize;
        if announced > self.limit {
            return Err(FrameError {
                announced,
                limit: self.limit,
            });
        }
        let rest = &bytes[head..];
        let body = rest.len().min(announced - self.text.len());
        self.text.extend_from_slice(&rest[..body]);
        let complete = self.text.len() == announced;
        Ok((
            head + body,
            complete.then(|| std::mem::take(&mut self.text)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_arrives_in_any_pieces() {
        let mut bytes = encode(b"{\"tcp\":true}");
        bytes.extend_from_slice(&[4, 16]);
        for piece in 1..bytes.len() {
            let mut decoder = FrameDecoder::new(100);
            let mut taken = 0;
            let text = loop {
                let next = &bytes[taken..(taken + piece).min(bytes.len())];
                let (used, text) = decoder.feed(next).unwrap();
                taken += used;
                if let Some(text) = text {
                    break text;
                }
            };
            assert_eq!(text, b"{\"tcp\":true}");
            assert_eq!(&bytes[taken..], [4, 16]);
        }
    }

    #[test]
    fn a_long_text_is_refused_at_its_length() {
        let mut decoder = FrameDecoder::new(10);
        let error = FrameError {
            announced: 0x0100_0000,
            limit: 10,
        };
        assert_eq!(decoder.feed(&[1, 0, 0]), Ok((3, None)));
        assert_eq!(decoder.feed(&[0]), Err(error));
    }

    #[test]
    fn an_empty_text_is_a_text() {
        let mut decoder = FrameDecoder::new(10);
        assert_eq!(decoder.feed(&[0, 0, 0, 0, 9]), Ok((4, Some(Vec::new()))));
    }
}
