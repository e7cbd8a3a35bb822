//! Delay and loss: frames of one link pass through this process.
//!
//! A link that delays or loses is cut in two. The host's end of the wire is a packet socket
//! here, the switch's port another, and a `Relay` carries frames between them, one thread for
//! each direction. `Line` and `Loss` hold the rules, without clock or socket.

mod line;
mod loss;
mod pump;

pub use line::Line;
pub use loss::Loss;
pub(crate) use pump::{Relay, RelayConfig, RelayWay};
pub use pump::{RelayCount, RelayError};
