//! The control messages of netperf, as spoken since release 2.7.0.
//!
//! Both ends send `Message`s of one size over a control connection: 164 words of 32 bits. Since 2.5.0 a
//! client carries out all its tests by one kind of message, `OmniRequest`; the server answers where the
//! payload goes (`OmniResponse`) and, once the test is over, what it counted (`OmniResults`). How the
//! payload moves is the business of whoever owns the sockets.

/// Addresses in four words.
mod address;
/// One message: words and texts at their places.
mod message;
/// What the client asks for.
mod omni;
/// What kinds of messages a client sends.
mod request;
/// Where the payload goes.
mod response;
/// What the server counted.
mod results;

pub use message::{MESSAGE_BYTES, Message, NOTHING_SAID};
pub use omni::{Interval, Length, OmniError, OmniRequest, OmniTransport, Way};
pub use request::Request;
pub use response::{
    OmniResponse, UNKNOWN_REQUEST, calibrated, debug_answer, is_debug_answer, is_omni_answer,
    refused,
};
pub use results::{CpuMethod, CpuShares, OmniResults};

/// The bits of [`OmniRequest::flags`] and [`OmniResponse::flags`] that mean something here.
pub mod flag {
    /// TCP_NODELAY on the server's socket.
    pub const NO_DELAY: u32 = 1;
    /// A connection for each transaction.
    pub const CONNECTS: u32 = 4;
    /// How busy the server's CPUs are is wanted.
    pub const MEASURES_CPU: u32 = 8;
    /// The name of the server's congestion control is wanted.
    pub const NAMES_CONGESTION: u32 = 0x20;
}
