//! What of the host is changed for a trial, by whom that may be asked, and that one trial does it at a time.
//!
//! 1. Only the host of a lab is changed: one whose agent the lab started, in a network namespace that is not the
//!    machine's first. On every other host the change would last beyond this process if that were killed.
//! 2. Only a run that has the host to itself changes it, and never a caller without a token.
//! 3. A trial waits until what the one before it changed is put back: otherwise it would be measured with that,
//!    and put back to it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::reason::with_causes;
use linerate_model::run::Admission;
use linerate_model::workload::Setting;
use linerate_tune::{Changed, Host};

use super::{Caller, Core};
use crate::api::{Changes, Refusal, RefusalCode, refuse};
use crate::sync::lock;

/// How long a trial waits for the one before it, which was ended and looks at that every 50 ms.
const PUT_BACK_WAIT: Duration = Duration::from_secs(2);
/// Time between two looks.
const PUT_BACK_LOOK: Duration = Duration::from_millis(2);

/// Whether a trial has changed the host.
#[derive(Debug, Default)]
pub(super) struct Tuning(Arc<AtomicBool>);

/// What a trial has changed; dropping it puts everything back.
#[derive(Debug)]
pub(super) struct Tuned {
    changed: Changed,
    _turn: Turn,
}

/// That nobody else changes the host; given back after the changes are, as fields are dropped in their order.
#[derive(Debug)]
struct Turn(Arc<AtomicBool>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Tuned {
    /// Returns each knob as it was asked for and as it was read back.
    pub(super) fn settings(&self) -> &[Setting] {
        self.changed.settings()
    }

    /// Puts everything back; returns what could not be.
    pub(super) fn put_back(mut self) -> Vec<String> {
        self.changed.put_back()
    }
}

impl Core {
    /// Makes the `changes` that a trial asks for, if it does, once those of the trial before it are put back.
    pub(super) fn tune(
        &self,
        caller: &Caller,
        lease: &str,
        changes: Option<&Changes>,
    ) -> Result<Option<Tuned>, Refusal> {
        if let Some(changes) = changes {
            self.check_changes(caller, lease, changes)?;
        }
        let Some(changes) = changes else {
            self.wait_until(|flag| !flag.load(Ordering::Acquire))?;
            return Ok(None);
        };
        self.wait_until(|flag| !flag.swap(true, Ordering::AcqRel))?;
        let turn = Turn(Arc::clone(&self.tuning.0));
        let host = Host {
            root: Path::new("/"),
            device: changes.device.as_deref(),
            cpus: &linerate_observe::cpus_allowed(Path::new("/proc")),
        };
        let changed = linerate_tune::change(&host, &changes.levels);
        let changed = changed.map_err(|error| refuse(RefusalCode::Limited, with_causes(&error)))?;
        Ok(Some(Tuned {
            changed,
            _turn: turn,
        }))
    }

    /// Refuses changes of a host that is not a lab's, and those of whoever may not.
    fn check_changes(
        &self,
        caller: &Caller,
        lease: &str,
        changes: &Changes,
    ) -> Result<(), Refusal> {
        let names: Vec<&str> = changes.levels.keys().map(|factor| factor.name()).collect();
        let names = names.join(", ");
        if !self.config.lab || !linerate_tune::is_own_network(Path::new("/")) {
            let error = format!("{names}: this is host-wide, and only hosts of a lab are changed");
            let next = "vary it with --lab; on this host, set it by hand and measure each level";
            return Err(Refusal {
                next: Some(next.to_owned()),
                ..refuse(RefusalCode::Limited, error)
            });
        }
        if caller.is_stranger() {
            let error = format!("{names}: this is host-wide, and not for callers without a token");
            return Err(refuse(RefusalCode::Unauthorized, error));
        }
        let leases = lock(&self.leases);
        let admission = leases.find(lease).map(|lease| lease.asked.admission);
        if !matches!(admission, Some(Admission::Exclusive | Admission::Queued)) {
            let error = format!("{names}: this is host-wide, and the run shares the host");
            return Err(refuse(RefusalCode::Limited, error));
        }
        Ok(())
    }

    /// Waits until what the trial before has changed is put back, which `is_free` asks of the flag.
    fn wait_until(&self, is_free: impl Fn(&AtomicBool) -> bool) -> Result<(), Refusal> {
        let deadline = Instant::now() + PUT_BACK_WAIT;
        while !is_free(&self.tuning.0) {
            if Instant::now() > deadline {
                let error = "another trial has changed this host, and it is not put back yet";
                return Err(refuse(RefusalCode::Busy, error));
            }
            std::thread::sleep(PUT_BACK_LOOK);
        }
        Ok(())
    }
}
