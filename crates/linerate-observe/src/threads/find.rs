//! Which directory below `/proc/self/task` is the thread with a given id.
//!
//! A thread knows its id in its own pid namespace (gettid); procfs names threads by their ids in
//! the pid namespace of its mount, which in a lab host or container may be an outer one. The
//! `NSpid` line of `status` lists the ids from the mount's namespace inwards, so its last number
//! is what gettid returned. Cases:
//! 1. `task/TID` exists and its `NSpid` ends in TID, or there is no such line (Linux before 4.1):
//!    it is the thread.
//! 2. Otherwise the thread is the one whose `NSpid` ends in TID.
//! 3. `/proc/self` leads nowhere when the mount belongs to a namespace that does not hold us:
//!    nothing can be read, and the reason says so.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sys::file::read_text;

/// Returns the directory of our threads, or why there is none.
pub(super) fn own_tasks(proc_root: &Path) -> Result<PathBuf, String> {
    let tasks = proc_root.join("self/task");
    match fs::metadata(&tasks) {
        Ok(_) => Ok(tasks),
        Err(error) => Err(format!(
            "{}: {error}; the mount may belong to another pid namespace",
            tasks.display()
        )),
    }
}

/// Returns the directory of the thread that calls itself `tid`.
pub(super) fn task_dir(proc_root: &Path, tid: i32) -> Result<PathBuf, String> {
    let tasks = own_tasks(proc_root)?;
    let named = tasks.join(tid.to_string());
    if named.exists() && own_id(&named).is_none_or(|own| own == tid) {
        return Ok(named);
    }
    fs::read_dir(&tasks)
        .map_err(|error| format!("{}: {error}", tasks.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|task| own_id(task) == Some(tid))
        .ok_or_else(|| format!("{}: no thread {tid}", tasks.display()))
}

/// Returns the id that the thread itself sees; absent when the kernel does not say.
fn own_id(task: &Path) -> Option<i32> {
    let status = read_text(&task.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}
