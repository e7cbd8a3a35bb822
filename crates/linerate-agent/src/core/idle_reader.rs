//! Readings of the host that no request waits for.
//!
//! A reading of all observers takes some 0.7 ms of a CPU, and a request that comes to that CPU meanwhile waits for it.
//! At 100 readings per second over loopback (two CPUs, 14 B each way, interleaved) the p99.9 was 390 to 1300 µs, 26 to
//! 50 µs with readings that step back for whoever wants their CPU, and 50 to 94 µs of a bare ping-pong. So:
//!
//! 1. A thread of its own makes them, since one that stepped back needs a privilege to return, and the edges of
//!    the window are read in time whatever else wants the CPU.
//! 2. It has observers of its own, and hands over what it read: nobody waits for a lock of a thread that may
//!    have no CPU for long.
//! 3. Who asks says when an answer comes too late to be of use: what is under way then is thrown away.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use linerate_engine as engine;
use linerate_model::sample::Sample;
use linerate_observe::ObserveConfig;

/// Reads the host while nobody else wants the CPU.
pub(super) struct IdleReader {
    asked: SyncSender<()>,
    read: Receiver<Vec<Sample>>,
    /// The reading that is under way, if there is one.
    under_way: Option<UnderWay>,
}

/// What becomes of a reading that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnderWay {
    Wanted,
    TooLate,
}

impl IdleReader {
    /// Returns one for the observers of `config`; none where there can be no thread.
    pub(super) fn open(config: ObserveConfig) -> Option<Self> {
        let (asked, questions) = sync_channel(1);
        let (answers, read) = sync_channel(1);
        let thread = Builder::new().name("idle-reader".to_owned());
        // It ends by itself once nobody can ask.
        thread
            .spawn(move || serve(&config, &questions, &answers))
            .ok()?;
        Some(Self {
            asked,
            read,
            under_way: None,
        })
    }

    /// Asks for a reading, unless one is under way; returns whether one may come.
    pub(super) fn ask(&mut self) -> bool {
        if self.under_way.is_some() {
            return true;
        }
        let is_asked = self.asked.try_send(()).is_ok();
        self.under_way = is_asked.then_some(UnderWay::Wanted);
        is_asked
    }

    /// Appends what was read since it was asked for; returns whether that was anything.
    pub(super) fn take(&mut self, out: &mut Vec<Sample>) -> bool {
        let Ok(samples) = self.read.try_recv() else {
            return false;
        };
        let is_wanted = self.under_way.take() == Some(UnderWay::Wanted);
        if is_wanted {
            out.extend(samples);
        }
        is_wanted
    }

    /// Throws away the reading that is under way: a later one of others comes before it.
    pub(super) fn forget(&mut self) {
        self.under_way = self.under_way.map(|_| UnderWay::TooLate);
    }
}

fn serve(config: &ObserveConfig, questions: &Receiver<()>, answers: &SyncSender<Vec<Sample>>) {
    if engine::run_when_idle().is_err() {
        return;
    }
    let mut observers = linerate_observe::observers(config);
    while questions.recv().is_ok() {
        let mut samples = Vec::new();
        for observer in &mut observers {
            observer.sample(&mut samples);
        }
        if answers.send(samples).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn opened() -> IdleReader {
        let config = ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: false,
            host_wide: true,
            threads: Vec::new(),
        };
        IdleReader::open(config).expect("a thread")
    }

    /// Takes what comes while `is_awaited` of what `take` returns and of the reader.
    fn follow(reader: &mut IdleReader, is_awaited: fn(bool, &IdleReader) -> bool) -> Vec<Sample> {
        let (mut out, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(60));
        while Instant::now() < deadline {
            let taken = reader.take(&mut out);
            if !is_awaited(taken, reader) {
                return out;
            }
            std::thread::yield_now();
        }
        panic!("nothing was read in a minute");
    }

    #[test]
    fn what_was_asked_for_comes_once() {
        let mut reader = opened();
        assert!(reader.ask() && reader.ask());
        assert!(!follow(&mut reader, |taken, _| !taken).is_empty());
        assert!(!reader.take(&mut Vec::new()));
    }

    #[test]
    fn what_comes_too_late_is_thrown_away() {
        let mut reader = opened();
        assert!(reader.ask());
        reader.forget();
        let late = follow(&mut reader, |_, reader| reader.under_way.is_some());
        assert_eq!(late, []);
        assert!(reader.ask());
        assert!(!follow(&mut reader, |taken, _| !taken).is_empty());
    }
}
