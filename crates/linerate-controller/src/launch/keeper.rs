//! What keeps an agent: a program for it alone, or a task of one that keeps others, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::process::Process;
use super::tasks::{ended_tasks, said_by};

/// What keeps an agent.
pub(super) struct Keeper {
    process: Arc<Mutex<Process>>,
    /// Its number among those that the program keeps.
    task: Option<u32>,
}

impl Keeper {
    /// Returns what keeps one agent.
    pub(super) fn of(process: Process) -> Self {
        Self {
            process: Arc::new(Mutex::new(process)),
            task: None,
        }
    }

    /// Returns what keeps the agent that is `task` of `process`.
    pub(super) fn task(process: &Arc<Mutex<Process>>, task: u32) -> Self {
        Self {
            process: Arc::clone(process),
            task: Some(task),
        }
    }

    /// Returns whether the agent has ended.
    pub(super) fn is_over(&self) -> bool {
        let mut process = self.locked();
        let of_task = |task: u32| ended_tasks(&process.said()).contains(&task);
        self.task.is_some_and(of_task) || process.is_over()
    }

    /// Tells it to end, and all that the program keeps.
    pub(super) fn hang_up(&self) {
        self.locked().hang_up();
    }

    /// Waits for the end of the program, which it is asked for at `until`.
    pub(super) fn end(&self, until: Instant) {
        self.locked().end(until);
    }

    /// Returns what the agent said.
    pub(super) fn said(&self) -> String {
        let said = self.locked().said();
        match self.task {
            None => said,
            Some(task) => said_by(&said, task),
        }
    }

    fn locked(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
