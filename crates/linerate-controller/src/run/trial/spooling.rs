//! What the hosts of a trial tell, taken out of memory where that has no room for it.

use std::path::Path;
use std::sync::Arc;

use linerate_model::samples::Samples;
use linerate_store::Spool;

/// Samples of all hosts that memory holds, 100 MB at the most: those of a thousand hosts with 64 CPUs come to as many in two
/// seconds. Tests have runs of seconds on hosts that tell little.
const HELD_MAX: usize = if cfg!(test) { 100 } else { 20 << 20 };

/// Where samples go that memory has no room for.
pub(crate) struct Spooling<'a> {
    /// The bundle; without one all is kept in memory.
    bundle: Option<&'a Path>,
    spool: Option<Arc<Spool>>,
}

impl<'a> Spooling<'a> {
    /// Returns what keeps samples beside `bundle`, once there are too many.
    pub fn new(bundle: Option<&'a Path>) -> Self {
        Self {
            bundle,
            spool: None,
        }
    }

    /// Takes what hosts told out of memory, if it is too much together. What the disk does not take stays, and is heard of when
    /// the trial is stored.
    pub fn relieve(&mut self, told: Vec<&mut Samples>) {
        let held: usize = told.iter().map(|samples| samples.held()).sum();
        let Some(bundle) = self.bundle.filter(|_| held > HELD_MAX) else {
            return;
        };
        if self.spool.is_none() {
            self.spool = Spool::new(bundle).ok();
        }
        let Some(spool) = &self.spool else { return };
        for samples in told {
            if samples.held() > 0 && spool.take(samples).is_err() {
                return;
            }
        }
    }
}
