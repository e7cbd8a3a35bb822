//! The cookie: what names a test on all its connections.

use std::fmt;

/// Bytes of a cookie on the wire: 36 characters and a NUL.
pub const COOKIE_BYTES: usize = 37;
/// The letters that clients pick from: 32, so that five random bits pick one.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What the client made up to name its test.
///
/// Compared in full, it tells which test a data connection belongs to. It is no secret between
/// users of one host and no protection on a network that others read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES - 1]);

impl Cookie {
    /// Returns the cookie that 36 random bytes make; the low five bits of each are used.
    pub fn from_random(random: [u8; COOKIE_BYTES - 1]) -> Self {
        Self(random.map(|byte| ALPHABET[usize::from(byte & 31)]))
    }

    /// Returns whether a connection that begins with `byte` may be one of iperf3.
    ///
    /// Lower case and digits: no method of HTTP and no native connection begins so.
    pub fn may_begin_with(byte: u8) -> bool {
        ALPHABET.contains(&byte)
    }

    /// Reads a cookie off the wire.
    ///
    /// Any printable characters are taken, since programs that speak this protocol without being
    /// iperf3 pick from other alphabets.
    pub fn decode(bytes: &[u8; COOKIE_BYTES]) -> Option<Self> {
        let (letters, end) = bytes.split_first_chunk()?;
        let is_cookie = letters.iter().all(u8::is_ascii_graphic) && end == [0];
        is_cookie.then_some(Self(*letters))
    }

    /// Returns the bytes that go on the wire.
    pub fn encode(&self) -> [u8; COOKIE_BYTES] {
        let mut bytes = [0; COOKIE_BYTES];
        bytes[..COOKIE_BYTES - 1].copy_from_slice(&self.0);
        bytes
    }

    /// Returns its characters.
    pub fn as_str(&self) -> &str {
        // Only printable ASCII gets in.
        std::str::from_utf8(&self.0).unwrap_or("")
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_of_a_client_is_taken_and_given_back() {
        let sent = b"hqd2b2ozpwujhujpr67yzx4riilqixr4xgdz\0";
        let cookie = Cookie::decode(sent).unwrap();
        assert_eq!(cookie.as_str(), "hqd2b2ozpwujhujpr67yzx4riilqixr4xgdz");
        assert_eq!(&cookie.encode(), sent);
        assert!(Cookie::may_begin_with(sent[0]));
    }

    #[test]
    fn random_bytes_become_letters_of_the_alphabet() {
        let cookie = Cookie::from_random(std::array::from_fn(|at| (at * 37) as u8));
        assert_eq!(Cookie::decode(&cookie.encode()).as_ref(), Some(&cookie));
        assert!(cookie.as_str().bytes().all(Cookie::may_begin_with));
        let all: Vec<u8> = (0..=255)
            .filter(|&byte| Cookie::may_begin_with(byte))
            .collect();
        assert_eq!(all.len(), 32);
        assert!(!all.iter().any(|byte| b"LGPDHO\x16".contains(byte)));
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut bytes = Cookie::from_random([1; 36]).encode();
        bytes[36] = b'a';
        assert_eq!(Cookie::decode(&bytes), None);
        bytes[36] = 0;
        bytes[3] = 0;
        assert_eq!(Cookie::decode(&bytes), None);
    }
}
