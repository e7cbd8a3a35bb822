//! What of the host is changed for a trial, and that one trial does it at a time.
//!
//! A trial waits until what the one before it changed is put back: otherwise it would be measured with that, and
//! put back to it. Who may ask for changes is said in `limits`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::reason::with_causes;
use linerate_model::workload::Setting;
use linerate_tune::{Changed, Target};

use crate::api::{Changes, Refusal, RefusalCode, refuse};

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

impl Tuning {
    /// Makes the `changes` that a trial asks for, if it does, once those of the trial before it are put back.
    pub(super) fn change(&self, changes: Option<&Changes>) -> Result<Option<Tuned>, Refusal> {
        let Some(changes) = changes else {
            self.wait_until(|flag| !flag.load(Ordering::Acquire))?;
            return Ok(None);
        };
        self.wait_until(|flag| !flag.swap(true, Ordering::AcqRel))?;
        let turn = Turn(Arc::clone(&self.0));
        let target = Target {
            root: Path::new("/"),
            device: changes.device.as_deref(),
            cpus: &linerate_observe::cpus_allowed(Path::new("/proc")),
        };
        let changed = linerate_tune::change(&target, &changes.levels);
        let changed = changed.map_err(|error| refuse(RefusalCode::Limited, with_causes(&error)))?;
        Ok(Some(Tuned {
            changed,
            _turn: turn,
        }))
    }

    /// Waits until what the trial before has changed is put back, which `is_free` asks of the flag.
    fn wait_until(&self, is_free: impl Fn(&AtomicBool) -> bool) -> Result<(), Refusal> {
        let deadline = Instant::now() + PUT_BACK_WAIT;
        while !is_free(&self.0) {
            if Instant::now() > deadline {
                let error = "another trial has changed this host, and it is not put back yet";
                return Err(refuse(RefusalCode::Busy, error));
            }
            std::thread::sleep(PUT_BACK_LOOK);
        }
        Ok(())
    }
}
