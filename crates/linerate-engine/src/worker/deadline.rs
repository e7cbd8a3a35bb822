//! Ends waits that have no limit of their own, at the limit of the schedule or at an abort.
//!
//! A single flow of one request at a time waits in every call. With SO_RCVTIMEO the kernel arms a timer
//! for each of these waits and takes it down again, which over loopback is 1 % of a transaction. So
//! such a socket has no limit for a wait, and one thread beside the workers, which sleeps until the
//! whole trial is over, shuts it down then: the call returns, and nothing that came before is lost.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use linerate_model::manner::{Transport, WaitBy};
use linerate_model::workload::Traffic;

use crate::flow::{FlowConfig, Shared};
use crate::schedule::Control;
use crate::sys::clock::now_ns;
use crate::sys::socket;

/// Name of the thread.
pub(super) const NAME: &str = "deadline";
/// Its stack: it makes three kinds of calls.
const STACK_BYTES: usize = 64 << 10;

/// The thread that ends waits without a limit of their own.
#[derive(Debug)]
pub(super) struct Deadline {
    dismissed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Returns whether a flow that is alone on its worker waits without a limit, since this thread has it.
pub(super) fn watches(config: &FlowConfig) -> bool {
    let manner = &config.manner;
    matches!(config.traffic, Traffic::Rr { .. })
        && manner.transport != Transport::Udp
        && manner.wait == WaitBy::Auto
        && manner.in_flight == 1
        && !manner.rests_between_requests()
}

impl Deadline {
    /// Starts the thread for `flows`.
    pub(super) fn start(control: &Arc<Control>, flows: Vec<Arc<Shared>>) -> io::Result<Self> {
        let dismissed = Arc::new(AtomicBool::new(false));
        let (control, seen) = (Arc::clone(control), Arc::clone(&dismissed));
        let thread = Builder::new()
            .name(NAME.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || watch(&control, &flows, &seen))?;
        Ok(Self { dismissed, thread })
    }

    /// Lets the thread look at the limit again, which has moved.
    pub(super) fn wake(&self) {
        self.thread.thread().unpark();
    }

    /// Ends the thread.
    pub(super) fn dismiss(self) {
        self.dismissed.store(true, Relaxed);
        self.wake();
        // It does not panic, and if it did there would be nothing left to do.
        let _ = self.thread.join();
    }
}

fn watch(control: &Control, flows: &[Arc<Shared>], dismissed: &AtomicBool) {
    while !dismissed.load(Relaxed) {
        let left_ns = control.limit_ns().saturating_sub(now_ns());
        if left_ns == 0 {
            // An error means that the connection is gone, and the wait with it.
            return flows.iter().for_each(|flow| {
                let _ = socket::shutdown(flow.socket(), Shutdown::Both);
            });
        }
        std::thread::park_timeout(Duration::from_nanos(left_ns));
    }
}
