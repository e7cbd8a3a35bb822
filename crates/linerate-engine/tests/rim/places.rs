//! Opening pairs of places.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use linerate_engine::{AtDoor, Calls, Door, Flow, FlowConfig, HelloBytes, await_calls, connect};

use super::rig::DEADLINE;

/// Returns the connections that come to a listener for the places of one trial; others are closed.
pub fn calls(listener: &TcpListener) -> Arc<Calls> {
    let listener = listener.try_clone().unwrap();
    listener.set_nonblocking(true).unwrap();
    // As the owner of a listener does: what one worker gives away, another may be there for.
    let owner: Arc<OnceLock<Weak<Calls>>> = Arc::default();
    let workers = AtomicUsize::new(0);
    let calls = Arc::clone(&owner);
    let tell = move |what: AtDoor| match what {
        AtDoor::Opens => _ = workers.fetch_add(1, Relaxed),
        AtDoor::Leaves => _ = workers.fetch_sub(1, Relaxed),
        AtDoor::Other(socket) => {
            let others = workers.load(Relaxed) > 1;
            let calls = calls.get().and_then(Weak::upgrade).filter(|_| others);
            if let Some((calls, hello)) = calls.zip(read_hello(&socket)) {
                calls.hand_in(socket, hello);
            }
        }
    };
    let door = Door {
        listener: listener.into(),
        tell: Box::new(tell),
    };
    let calls = Calls::new(Some(door)).unwrap();
    owner.set(Arc::downgrade(&calls)).unwrap();
    calls
}

/// Returns the first words of a connection, if they are there.
fn read_hello(socket: &OwnedFd) -> Option<HelloBytes> {
    let mut hello = [0; 32];
    let mut stream = TcpStream::from(socket.try_clone().ok()?);
    (stream.read(&mut hello).ok()? == hello.len()).then_some(hello)
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
