//! Where the packets of a flow come in.

use linerate_model::run::Incoming;

use super::Shared;
use crate::sys::socket::{self, SO_INCOMING_CPU, SO_INCOMING_NAPI_ID};

/// Returns where the last packet of `flow` came in.
///
/// Two system calls, made once when the flow is over. A place of connections has no socket of its
/// own that packets came to.
pub(crate) fn incoming(flow: &Shared) -> Incoming {
    if flow.config.traffic.is_placed() {
        return Incoming::default();
    }
    let number = |option| u32::try_from(socket::read(flow.fd(), option).ok()?).ok();
    Incoming {
        // -1 until a packet has come.
        cpu: number(SO_INCOMING_CPU),
        // 0 for none.
        napi: number(SO_INCOMING_NAPI_ID).filter(|&napi| napi > 0),
    }
}
