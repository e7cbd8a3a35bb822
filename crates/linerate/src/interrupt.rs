//! Ctrl-C: the first asks for an end with what was measured, a later one ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Signals within this time are one wish: timeout(1), for one, signals its child and then the
/// group that the child is in.
const SAME_WISH: Duration = Duration::from_millis(500);

/// The flag, where there is something to end in order.
static RAISED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Ends the program since nobody reads what it prints: as Ctrl-C does where it measures, so that hosts are
/// freed and what was measured is kept.
pub fn nobody_reads() {
    match RAISED.get() {
        Some(raised) => raised.store(true, Ordering::Relaxed),
        None => std::process::exit(1),
    }
}

/// Returns the flag that SIGINT and SIGTERM raise.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::clone(RAISED.get_or_init(Arc::default));
    let raised = Arc::clone(&flag);
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            let first = *first.get_or_insert_with(Instant::now);
            if raised.swap(true, Ordering::Relaxed) && first.elapsed() > SAME_WISH {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
        }
    });
    Ok(flag)
}
