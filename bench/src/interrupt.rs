//! Ctrl-C: the run that goes on is the last, and labs and cgroups are removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Takes note of SIGINT and SIGTERM from now on.
pub fn watch() -> anyhow::Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second one ends the program as if it were not watched.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag))?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

/// Fails once there was one.
pub fn check() -> anyhow::Result<()> {
    let interrupted = INTERRUPTED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed));
    anyhow::ensure!(!interrupted, "interrupted");
    Ok(())
}
