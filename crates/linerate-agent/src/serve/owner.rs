//! Whose run a control connection serves: the kernel closes the connections of a controller that
//! was killed, and its run need not hold the host until its lease ends by itself.

use std::sync::{Arc, Mutex};

use crate::core::Core;
use crate::session::leases::Disconnection;
use crate::sync::lock;

/// Requests of a run from which on a connection is one that its controller keeps. Scripts and
/// proxies may open one for each request, and their closing says nothing.
const REQUESTS_KEPT: u32 = 2;

/// The run of one control connection; a connection that is cut off by us leaves the run its time.
pub(super) struct Owner {
    core: Arc<Core>,
    run: Mutex<Option<Served>>,
}

/// What a connection has carried.
struct Served {
    lease: String,
    requests: u32,
}

impl Owner {
    /// Returns the owner of a connection that has carried nothing.
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            run: Mutex::new(None),
        }
    }

    /// Notes a request for `path`; those of `/v1/runs/{lease}` are a run's.
    pub(super) fn note_request(&self, path: &str) {
        let lease = path.strip_prefix("/v1/runs/").unwrap_or_default();
        let lease = lease.split('/').next().unwrap_or_default();
        if lease.is_empty() {
            return;
        }
        let mut run = lock(&self.run);
        if let Some(served) = run.as_mut().filter(|served| served.lease == lease) {
            served.requests += 1;
            return;
        }
        // One run after another on a connection: the first has not hung up.
        if let Some(other) = run.take() {
            self.core
                .disconnected(&other.lease, Disconnection::Expected);
        }
        *run = self.core.connected(lease).then(|| Served {
            lease: lease.to_owned(),
            requests: 1,
        });
    }

    /// Notes that the other end closed the connection.
    pub(super) fn note_hang_up(&self) {
        self.end(|served| {
            if served.requests >= REQUESTS_KEPT {
                Disconnection::HungUp
            } else {
                Disconnection::Expected
            }
        });
    }

    fn end(&self, ending: impl FnOnce(&Served) -> Disconnection) {
        let run = lock(&self.run).take();
        if let Some(served) = run {
            self.core.disconnected(&served.lease, ending(&served));
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.end(|_| Disconnection::Expected);
    }
}
