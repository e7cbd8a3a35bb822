//! Entries on their way to whoever keeps the log, which may take its time, or stop: nobody who has something
//! to tell waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::LogEntry;
use crate::sync::lock;

/// Entries that wait: as many as are told in four minutes of the most that there is to tell.
const WAITING_MAX: usize = 256;
/// Stack of the thread that writes: a line of text.
const STACK_BYTES: usize = 256 << 10;

/// Takes an entry of the log; may block.
pub(crate) type Write = Box<dyn Fn(&LogEntry) + Send>;

/// A bounded queue, and a thread that writes what is in it, made with the first entry: an agent becomes
/// another user while it has one thread.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    write: Mutex<Option<Write>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<LogEntry>,
    /// Entries that found no room since the last that was written.
    dropped: u64,
    is_writing: bool,
    is_over: bool,
}

impl Queue {
    pub(crate) fn new(write: Write) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
            write: Mutex::new(Some(write)),
        }
    }

    /// Takes up an entry, or counts it where there is no room; never waits for who reads them.
    pub(crate) fn push(&self, entry: LogEntry) {
        if let Some(write) = lock(&self.write).take() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("log".to_owned());
            // Without a thread there is no log; what there would be to say of it has nowhere to go.
            let _ = thread
                .stack_size(STACK_BYTES)
                .spawn(move || shared.write_all(&write));
        }
        let mut state = lock(&self.shared.state);
        if state.waiting.len() == WAITING_MAX {
            state.dropped += 1;
        } else {
            state.waiting.push_back(entry);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits until all is written, for `most` at the longest.
    pub(crate) fn flush(&self, most: Duration) {
        let state = lock(&self.shared.state);
        let is_busy = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        drop(
            self.shared
                .changed
                .wait_timeout_while(state, most, is_busy)
                .map(|waited| waited.0),
        );
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        lock(&self.shared.state).is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Writes entries until there will be no more; the body of the thread.
    fn write_all(&self, write: &Write) {
        while let Some(entry) = self.next() {
            write(&entry);
        }
    }

    /// Waits for an entry; what found no room is told once all that waited is written.
    fn next(&self) -> Option<LogEntry> {
        let mut state = lock(&self.state);
        state.is_writing = false;
        self.changed.notify_all();
        loop {
            let dropped = state.dropped;
            let entry = state.waiting.pop_front().or_else(|| {
                state.dropped = 0;
                (dropped > 0).then_some(LogEntry::Dropped { entries: dropped })
            });
            if entry.is_some() {
                state.is_writing = true;
                return entry;
            }
            if state.is_over {
                return None;
            }
            state = match self.changed.wait(state) {
                Ok(state) => state,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;

    #[test]
    fn nobody_waits_for_a_reader_who_stopped_and_what_was_dropped_is_told() {
        // Each write hands over its entry, and so waits until it is read.
        let (written, read) = sync_channel(0);
        let queue = Queue::new(Box::new(move |entry| {
            let _ = written.send(entry.clone());
        }));
        let entry = |entries| LogEntry::Dropped { entries };
        queue.push(entry(0));
        let beyond = 40;
        // One is being written, or about to be.
        for number in 1..=(WAITING_MAX + beyond) as u64 {
            queue.push(entry(number));
        }
        // It gives up after its time, since nobody reads.
        queue.flush(Duration::from_millis(1));
        let mut told = Vec::new();
        while let Ok(entry) = read.recv_timeout(Duration::from_secs(20)) {
            let LogEntry::Dropped { entries } = entry else {
                panic!("{entry:?}");
            };
            told.push(entries);
            if told.len() >= WAITING_MAX && entries < told.len() as u64 / 2 {
                break;
            }
        }
        let dropped = told.pop().expect("what was dropped is told last");
        assert!(told.is_sorted() && told[0] == 0, "{told:?}");
        // All are accounted for, whether the first left the queue before the rest came or not.
        assert_eq!(
            told.len() as u64 + dropped,
            (WAITING_MAX + beyond + 1) as u64
        );
        assert!(dropped >= beyond as u64, "{dropped}");
        queue.push(entry(7));
        assert_eq!(read.recv().expect("it goes on"), entry(7));
        drop(queue);
        assert!(read.recv().is_err(), "the thread ends with the queue");
    }

    #[test]
    fn what_waits_is_written_before_the_end() {
        let (written, read) = channel();
        let queue = Queue::new(Box::new(move |entry| {
            let _ = written.send(entry.clone());
        }));
        for entries in 0..100 {
            queue.push(LogEntry::Dropped { entries });
        }
        queue.flush(Duration::from_secs(60));
        assert_eq!(read.try_iter().count(), 100);
    }
}
