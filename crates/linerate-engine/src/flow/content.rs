//! What flows send that do not copy: one constant payload for the whole process.
//!
//! It is made when the first such flow is opened, not when the trial starts: a huge page may take
//! the kernel tens of milliseconds to find. It goes when the last such flow has gone.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use linerate_model::manner::SendBy;

use crate::sys::pages::{HUGE_PAGE_BYTES, Pages};
use crate::sys::splice::MemoryFile;

/// Constant payload: two huge pages, so that a pipe is filled from one while the peer still holds
/// references to the other.
const BYTES: usize = 2 * HUGE_PAGE_BYTES;

static PAGES: Mutex<Weak<Pages>> = Mutex::new(Weak::new());
static FILE: Mutex<Weak<MemoryFile>> = Mutex::new(Weak::new());

/// What a sender that does not copy takes its payload from.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// The worker's own buffer, which the kernel copies.
    Copied,
    /// Pages that the kernel sends as they are.
    Pages(Arc<Pages>),
    /// A file in memory.
    File(Arc<MemoryFile>),
}

impl Content {
    /// Returns what sending `by` needs.
    pub(super) fn of(by: SendBy) -> io::Result<Self> {
        Ok(match by {
            SendBy::Copy | SendBy::Auto => Content::Copied,
            SendBy::Vmsplice | SendBy::MsgZerocopy => {
                Content::Pages(shared(&PAGES, || Pages::new(BYTES))?)
            }
            SendBy::Sendfile => Content::File(shared(&FILE, || {
                let pages = shared(&PAGES, || Pages::new(BYTES))?;
                MemoryFile::new(pages.as_slice())
            })?),
        })
    }
}

/// Returns the one value of a kind, made if there is none.
fn shared<T>(place: &Mutex<Weak<T>>, make: impl FnOnce() -> io::Result<T>) -> io::Result<Arc<T>> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = place.upgrade() {
        return Ok(value);
    }
    let value = Arc::new(make()?);
    *place = Arc::downgrade(&value);
    Ok(value)
}
