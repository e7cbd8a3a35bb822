//! Clients of other programs at the host's desk.
//!
//! Each one's test is a run of its own, shared with others. None has a token to show, so the limits for strangers
//! are theirs, wherever they call from.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_model::RunId;
use linerate_model::number::counted;
use linerate_model::run::Admission;

use crate::api::AdmitRequest;
use crate::core::{Caller, Core};

/// How often a place at the desk is kept; a lease lasts 20 s. A test whose lease was taken back ends as late.
pub(super) const RENEW_NS: u64 = 500_000_000;

/// A test's place at the desk; given back when it is dropped.
pub(super) struct Claim {
    core: Arc<Core>,
    key: String,
    program: &'static str,
}

impl Claim {
    /// Asks the desk for a place beside other shared runs, for a client of `program`.
    pub(super) fn new(core: &Arc<Core>, program: &'static str, peer: SocketAddr) -> Option<Self> {
        let asked = core.admit(&guest(), Some(peer.ip()), &request(program, peer));
        Some(Self {
            core: Arc::clone(core),
            key: asked.ok()?.lease,
            program,
        })
    }

    /// Keeps the place; returns whether it still is one.
    pub(super) fn renew(&self) -> bool {
        self.core.renew(&self.key).is_ok()
    }

    /// Notes that payload flows.
    pub(super) fn note_traffic(&self, transport: &str, flows: usize) {
        let (program, flows) = (self.program, counted(flows, "flow"));
        let what = format!("{transport} of {program}, {flows}");
        self.core.note_traffic(&self.key, what);
    }

    /// Notes that the test failed.
    pub(super) fn note_failure(&self, why: &str) {
        self.core.note_failure(&self.key, why);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A lease that has ended by itself is gone already.
        let _ = self.core.leave(&self.key);
    }
}

/// Returns whether a client of `program` would have a place now.
pub(super) fn would_admit(core: &Core, program: &'static str, peer: SocketAddr) -> bool {
    core.would_admit(&guest(), Some(peer.ip()), &request(program, peer))
}

/// Returns who a client is to the desk: whoever calls, it has no token.
fn guest() -> Caller {
    Caller::Stranger(String::new())
}

/// Returns what a client asks of the desk.
fn request(program: &str, peer: SocketAddr) -> AdmitRequest {
    AdmitRequest {
        run: RunId(program.to_owned()),
        label: format!("{program} client at {}", peer.ip().to_canonical()),
        admission: Admission::Shared,
        expected: None,
        evict: false,
    }
}
