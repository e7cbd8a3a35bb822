//! Flows over Unix sockets: a listener for each trial, with a name of the abstract namespace.
//!
//! Every user of this host can see and connect to such a name, so it says nothing: the trial's
//! cookie, which the hello carries, tells our flows from others' connections.

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_model::hex;
use linerate_model::manner::Transport;
use socket2::SockRef;

use super::flows::take_up;
use super::slot::TrialSlot;
use crate::api::{Refusal, RefusalCode, refuse};
use crate::serve::hello::{HELLO_BYTES, Hello};
use crate::sync::lock;

/// How long the listener waits for the next connection before it looks whether the trial goes on.
const LOOK: Duration = Duration::from_millis(50);
/// How long a connection may take to say whose it is. A client of ours says it in the call after
/// the connect, so that nobody else keeps the others waiting for long.
const HELLO_DEADLINE: Duration = Duration::from_millis(100);

/// Listens for the flows of `slot` until all have come or the trial is over; returns the name.
pub(super) fn listen(slot: &Arc<TrialSlot>) -> Result<String, Refusal> {
    let failed = |error: &dyn std::fmt::Display| {
        refuse(
            RefusalCode::Internal,
            format!("listen on a Unix socket: {error}"),
        )
    };
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| failed(&error))?;
    let name = format!("linerate-{}", hex::encode(&number));
    let address = SocketAddr::from_abstract_name(&name).map_err(|error| failed(&error))?;
    let listener = UnixListener::bind_addr(&address).map_err(|error| failed(&error))?;
    // SO_RCVTIMEO bounds accepting as well (unix(7) has it from socket(7)).
    SockRef::from(&listener)
        .set_read_timeout(Some(LOOK))
        .map_err(|error| failed(&error))?;
    let slot = Arc::clone(slot);
    let thread = std::thread::Builder::new().name("unix".to_owned());
    thread
        .spawn(move || accept_all(&slot, &listener))
        .map_err(|error| failed(&error))?;
    Ok(name)
}

fn accept_all(slot: &TrialSlot, listener: &UnixListener) {
    while is_gathering(slot) {
        match listener.accept() {
            // A connection that is not ours is closed by being dropped.
            Ok((stream, _)) => {
                let _ = take_up_stream(slot, stream);
            }
            Err(error) if is_early(&error) => {}
            // No files are left: those that are open have to be closed first.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

fn is_early(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn is_gathering(slot: &TrialSlot) -> bool {
    let gathered = lock(&slot.gathered);
    gathered.session.state().is_gathering() && !slot.abort.load(Ordering::Relaxed)
}

fn take_up_stream(slot: &TrialSlot, mut stream: UnixStream) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    stream.set_nonblocking(false).map_err(text)?;
    stream
        .set_read_timeout(Some(HELLO_DEADLINE))
        .map_err(text)?;
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).map_err(text)?;
    let hello = Hello::decode(&bytes).ok_or("not a linerate data connection")?;
    if hello.cookie != slot.cookie {
        return Err("the connection is of another trial".to_owned());
    }
    take_up(slot, hello, stream.into(), Transport::Unix)
}
