//! The numbers of errors, as they go over the wire.

use std::fmt;

/// The number of an error of iperf3.
///
/// A server that gives up sends it after the state 0xFE; the client prints its own words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
    /// The duration is out of range.
    pub const DURATION: Code = Code(5);
    /// Too many streams.
    pub const STREAMS: Code = Code(6);
    /// The block size is out of range.
    pub const BLOCK_SIZE: Code = Code(7);
    /// The socket buffer is too large.
    pub const BUFFER_SIZE: Code = Code(8);
    /// The MSS is too large.
    pub const MSS: Code = Code(10);
    /// The time to omit is out of range.
    pub const OMIT: Code = Code(12);
    /// The burst is too large.
    pub const BURST: Code = Code(15);
    /// SCTP is not available.
    pub const NO_SCTP: Code = Code(18);
    /// The block size of datagrams is out of range.
    pub const UDP_BLOCK_SIZE: Code = Code(20);
    /// The type of service is out of range.
    pub const TOS: Code = Code(21);
    /// The rate asked for is above the server's limit.
    pub const TOTAL_RATE: Code = Code(27);
    /// The duration asked for is above the server's limit.
    pub const DURATION_ABOVE_MAXIMUM: Code = Code(37);
    /// A message that makes no sense now.
    pub const MESSAGE: Code = Code(110);
    /// The parameters could not be read.
    pub const RECEIVE_PARAMETERS: Code = Code(114);
    /// The results could not be read.
    pub const RECEIVE_RESULTS: Code = Code(117);
    /// The server was interrupted.
    pub const SERVER_TERMINATED: Code = Code(120);
    /// The congestion control could not be set.
    pub const SET_CONGESTION: Code = Code(134);
    /// User or password is wrong, or the clocks disagree.
    pub const AUTHENTICATION: Code = Code(142);
    /// The server's own guard against tests without end.
    pub const SERVER_DURATION_EXPIRED: Code = Code(160);
    /// A stream could not be prepared.
    pub const PREPARE_STREAM: Code = Code(201);
    /// A stream did not arrive.
    pub const STREAM_ACCEPT: Code = Code(204);
    /// The results name a stream that is not there.
    pub const STREAM_ID: Code = Code(208);

    /// Returns what the number means, in a few words, if it is known.
    pub fn meaning(self) -> Option<&'static str> {
        let words = match self {
            Code(0) => "no error",
            Code::DURATION => "the duration is out of range (at most 86400 s)",
            Code::STREAMS => "too many streams (at most 128)",
            Code::BLOCK_SIZE => "the block size is out of range (at most 1 MiB)",
            Code::BUFFER_SIZE => "the socket buffer is too large (at most 512 MiB)",
            Code::MSS => "the MSS is too large (at most 32767)",
            Code::OMIT => "the time to omit is out of range (at most 600 s)",
            Code(13) => "an option that the server does not have",
            Code::BURST => "the burst is too large (at most 1000 blocks)",
            Code::NO_SCTP => "the server has no SCTP",
            Code::UDP_BLOCK_SIZE => "the block size of datagrams is out of range (16 to 65507)",
            Code::TOS => "the type of service is out of range (0 to 255)",
            Code::TOTAL_RATE => "the rate asked for is above the server's limit",
            Code::DURATION_ABOVE_MAXIMUM => "the duration asked for is above the server's limit",
            Code(106) => "the cookie could not be read",
            Code(109) => "the control connection was closed",
            Code::MESSAGE => "a control message that makes no sense now",
            Code::RECEIVE_PARAMETERS => "the parameters could not be read",
            Code::RECEIVE_RESULTS => "the results could not be read",
            Code(119) => "the client was interrupted",
            Code::SERVER_TERMINATED => "the server was interrupted",
            Code(121) => "the server is busy",
            Code(122) => "TCP_NODELAY could not be set",
            Code(123) => "the MSS could not be set",
            Code(124) => "the socket buffers could not be set",
            Code::SET_CONGESTION => "the congestion control could not be set",
            Code::AUTHENTICATION => "authentication failed",
            Code(144) => "no data arrived in time",
            Code::SERVER_DURATION_EXPIRED => "the test took longer than it said",
            Code(200) => "a stream could not be made",
            Code::PREPARE_STREAM => "a stream could not be prepared",
            Code::STREAM_ACCEPT => "a stream did not arrive",
            Code::STREAM_ID => "the results name an unknown stream",
            _ => return None,
        };
        Some(words)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some(words) => write!(f, "{words} (iperf3's error {})", self.0),
            None => write!(f, "iperf3's error {}", self.0),
        }
    }
}
