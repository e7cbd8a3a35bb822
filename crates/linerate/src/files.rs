//! How many files this process may have open: a flow is one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit on open files as far as this user may.
///
/// The usual soft limit of 1024 exists for programs that use select(2), which this one does not.
/// Where it cannot be raised, a trial with too many flows is refused and says so.
pub fn raise_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
