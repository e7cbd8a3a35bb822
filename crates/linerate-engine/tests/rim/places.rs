//! Opening pairs of places.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use linerate_engine::{Calls, Door, Flow, FlowConfig, HelloBytes, await_calls, connect};

use super::rig::DEADLINE;

/// Returns the connections that come to a listener for the places of one trial; others are closed.
pub fn calls(listener: &TcpListener) -> Arc<Calls> {
    let listener = listener.try_clone().unwrap();
    listener.set_nonblocking(true).unwrap();
    let door = Door {
        listener: listener.into(),
        tell: Box::new(drop),
    };
    Calls::new(Some(door)).unwrap()
}

/// Opens both ends of a place whose connections go to `peer` and come in at `calls`.
pub fn place(
    near: FlowConfig,
    far: FlowConfig,
    peer: SocketAddr,
    calls: &Arc<Calls>,
) -> (Flow, Flow) {
    let hello = hello(near.flow.0);
    let near = connect(near, peer, None, &hello, DEADLINE).unwrap();
    (near, await_calls(far, hello, calls).unwrap())
}

/// Returns what the connections of a flow say first.
pub fn hello(flow: u32) -> HelloBytes {
    [flow as u8 + 1; 32]
}
