//! The threads that carry frames between the two halves of a link.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::{Passage, PassageConfig};
use crate::sys::packet::{BATCH_FRAMES_MAX, Batch, PacketSocket};
use crate::sys::process::sharpen_timers;

/// How long to leave a receiver alone that is full: a tenth of what its ring of 256 full-size
/// frames lasts at 2.5 Gbit/s.
const BACK_OFF_NS: u64 = 100_000;

/// Steps without a pause after which a thread counts and looks for its end: with batches of few frames
/// some milliseconds.
const BUSY_STEPS_MAX: u32 = 256;

/// What a relay does to the frames of one link, in each direction.
pub(crate) struct RelayConfig {
    /// Name of the link's host, for thread names and errors.
    pub host: String,
    /// The way from the host, and that to it.
    pub ways: [PassageConfig; 2],
    /// The host's half of the link.
    pub near: PacketSocket,
    /// The switch's half of the link.
    pub far: PacketSocket,
}

/// Why a relay could not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the thread that delays the frames of host `{host}`")]
pub struct RelayError {
    host: String,
    #[source]
    source: io::Error,
}

/// What became of the frames of one direction.
#[derive(Debug, Default)]
struct Tally {
    forwarded: AtomicU64,
    lost: AtomicU64,
    duplicated: AtomicU64,
    reordered: AtomicU64,
    dropped: AtomicU64,
}

/// The two threads of one link; dropping it stops them.
#[derive(Debug)]
pub(crate) struct Relay {
    host: String,
    stop: Option<PipeWriter>,
    threads: Vec<JoinHandle<()>>,
    tallies: [Arc<Tally>; 2],
}

/// What became of the frames of one link with a relay, both directions together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayCount {
    /// The link's host.
    pub host: String,
    /// Frames passed on.
    pub forwarded: u64,
    /// Frames lost on purpose.
    pub lost: u64,
    /// Frames sent twice on purpose.
    pub duplicated: u64,
    /// Frames that others overtook on purpose.
    pub reordered: u64,
    /// Frames dropped because the relay was too late or too full: not wanted.
    pub dropped: u64,
}

impl Relay {
    /// Starts the threads.
    pub(crate) fn start(config: RelayConfig) -> Result<Self, RelayError> {
        let host = config.host.clone();
        Self::try_start(config).map_err(|source| RelayError { host, source })
    }

    fn try_start(config: RelayConfig) -> io::Result<Self> {
        // The reading end is seen as hung up when the writing end is closed.
        let (watch, stop) = io::pipe()?;
        let watch = Arc::new(watch);
        let near = Arc::new(config.near);
        let far = Arc::new(config.far);
        let tallies = [Arc::new(Tally::default()), Arc::new(Tally::default())];
        let mut relay = Self {
            host: config.host,
            stop: Some(stop),
            threads: Vec::new(),
            tallies: tallies.clone(),
        };
        let ends = [(&near, &far, "up"), (&far, &near, "down")];
        for ((way, (from, to, name)), tally) in config.ways.iter().zip(ends).zip(tallies) {
            let pump = Pump {
                from: Arc::clone(from),
                to: Arc::clone(to),
                watch: Arc::clone(&watch),
                passage: Passage::new(way),
                batch: Batch::new(way.frame_bytes_max),
                overflow: 0,
                refused: 0,
                send_from_ns: 0,
                busy_steps: 0,
                tally,
            };
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{}", relay.host))
                .spawn(move || pump.run())?;
            relay.threads.push(thread);
        }
        Ok(relay)
    }

    /// Returns what became of the frames so far.
    pub(crate) fn count(&self) -> RelayCount {
        let sum = |field: fn(&Tally) -> &AtomicU64| {
            let load = |tally: &Arc<Tally>| field(tally).load(Ordering::Relaxed);
            self.tallies.iter().map(load).sum()
        };
        RelayCount {
            host: self.host.clone(),
            forwarded: sum(|tally| &tally.forwarded),
            lost: sum(|tally| &tally.lost),
            duplicated: sum(|tally| &tally.duplicated),
            reordered: sum(|tally| &tally.reordered),
            dropped: sum(|tally| &tally.dropped),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A relay thread that panicked has nothing left to clean up.
            let _ended = thread.join();
        }
    }
}

/// One direction of a link.
struct Pump {
    from: Arc<PacketSocket>,
    to: Arc<PacketSocket>,
    watch: Arc<PipeReader>,
    passage: Passage,
    batch: Batch,
    overflow: u64,
    refused: u64,
    /// Before this instant nothing is sent, because the receiver was full.
    send_from_ns: u64,
    /// Steps since it last counted and looked for the end.
    busy_steps: u32,
    tally: Arc<Tally>,
}

impl Pump {
    /// Carries frames until the relay stops or a device is gone.
    fn run(mut self) {
        // Refused only by a seccomp filter; then delays are up to 50 µs longer.
        let _sharp = sharpen_timers();
        while self.step().is_ok() {}
    }

    /// Sends what is due, takes in what has come, and waits if there was neither. Under frames without end it
    /// counts and looks for the end now and then.
    fn step(&mut self) -> io::Result<()> {
        let sent = self.send_due()?;
        let received = self.from.receive(&mut self.batch)?;
        if received > 0 {
            let now_ns = now_ns();
            for frame in self.batch.frames() {
                self.passage.handle_frame(now_ns, frame);
            }
        }
        self.busy_steps += 1;
        let is_idle = sent == 0 && received == 0;
        if is_idle || self.busy_steps >= BUSY_STEPS_MAX {
            self.busy_steps = 0;
            self.publish()?;
            let timeout = if is_idle {
                self.idle_time()
            } else {
                Some(TimeSpec::from_duration(Duration::ZERO))
            };
            self.wait(timeout)?;
        }
        Ok(())
    }

    /// Sends one batch of the frames that are due; returns how many left the line.
    fn send_due(&mut self) -> io::Result<usize> {
        let now_ns = now_ns();
        if now_ns < self.send_from_ns {
            return Ok(0);
        }
        self.passage.poll(now_ns);
        let due = self.passage.poll_frames(now_ns).take(BATCH_FRAMES_MAX);
        let released = match self.to.send(due) {
            Ok(sent) => {
                let tally = &self.tally.forwarded;
                tally.fetch_add(sent as u64, Ordering::Relaxed);
                sent
            }
            // The receiver's ring is full: the frame is still here and waits with the others.
            Err(error) if is_one_of(&error, &[libc::ENOBUFS, libc::EAGAIN]) => {
                self.send_from_ns = now_ns + BACK_OFF_NS;
                0
            }
            // The frame at the front cannot be sent, for instance longer than the MTU.
            Err(error) if is_one_of(&error, &[libc::EMSGSIZE, libc::EINVAL]) => {
                self.refused += 1;
                1
            }
            Err(error) => return Err(error),
        };
        self.passage.release(released);
        Ok(released)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.overflow += self.from.take_overflow()?;
        let happened = self.passage.happened();
        let tell = |tally: &AtomicU64, count| tally.store(count, Ordering::Relaxed);
        let dropped = self.overflow + self.refused + happened.dropped;
        tell(&self.tally.dropped, dropped);
        tell(&self.tally.lost, happened.lost);
        tell(&self.tally.duplicated, happened.duplicated);
        tell(&self.tally.reordered, happened.reordered);
        Ok(())
    }

    /// Returns how long there is nothing to send; absent where that is until a frame comes.
    fn idle_time(&self) -> Option<TimeSpec> {
        let due_ns = self.passage.poll_due_ns()?.max(self.send_from_ns);
        let left_ns = due_ns.saturating_sub(now_ns());
        Some(TimeSpec::from_duration(Duration::from_nanos(left_ns)))
    }

    /// Waits for a frame or for the end, which is an error of its own, so long at the most.
    fn wait(&self, timeout: Option<TimeSpec>) -> io::Result<()> {
        let mut fds = [
            PollFd::new(self.from.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.watch.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut fds, timeout, None) {
            Err(nix::errno::Errno::EINTR) => return Ok(()),
            result => result?,
        };
        if fds[1].any() == Some(true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

fn is_one_of(error: &io::Error, codes: &[i32]) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// Reads CLOCK_MONOTONIC.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
