//! Ctrl-C, and a terminal that is gone: the first asks for an end with what was measured, a later one ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Signals within this time are one wish: timeout(1), for one, signals its child and then the
/// group that the child is in.
const SAME_WISH: Duration = Duration::from_millis(500);

/// The flag, where there is something to end in order.
static RAISED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Why standard output takes no more, where it has a reader.
static UNPRINTED: OnceLock<std::io::Error> = OnceLock::new();

/// Ends the program since standard output takes no more: as Ctrl-C does where it measures, so that hosts are
/// freed and what was measured is kept. A reader that left has seen enough; anything else is a failure.
pub fn not_printed(error: std::io::Error) {
    let has_reader = error.kind() != std::io::ErrorKind::BrokenPipe;
    if has_reader {
        let _ = UNPRINTED.set(error);
    }
    match RAISED.get() {
        Some(raised) => raised.store(true, Ordering::Relaxed),
        None if has_reader => {}
        None => std::process::exit(1),
    }
}

/// Returns why not all could be printed.
pub fn unprinted() -> Option<&'static std::io::Error> {
    UNPRINTED.get()
}

/// Returns whether who started this process had it ignore the end of the terminal, as nohup(1) does.
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// Returns the flag that SIGINT, SIGTERM and the end of the terminal raise.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::clone(RAISED.get_or_init(Arc::default));
    let raised = Arc::clone(&flag);
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !outlives_terminal() {
        signals.add_signal(SIGHUP)?;
    }
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
