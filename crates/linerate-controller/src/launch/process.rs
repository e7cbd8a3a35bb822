//! A program of this host that keeps an agent elsewhere: what it says, and its end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest line that is kept whole.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// Most of a log that is kept: an agent has two lines of a hundred bytes for a run.
const LOG_BYTES_MAX: usize = 64 << 10;
/// The same for each of many agents with a log in common.
const LOG_BYTES_EACH: usize = 4 << 10;
/// Lines of a log that a message repeats.
const TOLD_LINES: usize = 3;
/// Lines of standard output that wait to be read.
const LINES_WAITING: usize = 16;
/// Time between looks at a process that is to end.
const LOOK: Duration = Duration::from_millis(5);
/// How long the last of a log may come after the end of who wrote it.
const LOG_LATE: Duration = Duration::from_millis(500);
/// How long a program may take that is asked to end by a signal: `srun` gives its allocation back.
const TERMINATE: Duration = Duration::from_secs(5);

/// A program that was started.
pub(super) struct Process {
    child: Child,
    lines: Receiver<String>,
    log: Log,
    reader: Option<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

/// What comes of waiting for a line.
pub(super) enum Heard {
    /// A line of standard output.
    Line(String),
    /// There are no more.
    Over,
    /// None came in time.
    Late,
}

/// What was said on standard error, the end of it.
#[derive(Clone)]
pub(super) struct Log {
    /// Its lines, and how many bytes they are.
    kept: Arc<Mutex<(VecDeque<String>, usize)>>,
    bytes_max: usize,
}

impl Log {
    /// Returns the log of so many agents.
    fn of(agents: usize) -> Self {
        Self {
            kept: Arc::default(),
            bytes_max: LOG_BYTES_MAX.max(agents * LOG_BYTES_EACH),
        }
    }

    /// Keeps what comes from `stderr` until it ends.
    pub(super) fn keep(&self, stderr: impl Read + Send + 'static) -> JoinHandle<()> {
        let log = self.clone();
        std::thread::spawn(move || lines_of(stderr, |line| log.add(line)))
    }

    fn add(&self, line: String) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, bytes) = &mut *kept;
        *bytes += line.len() + 1;
        lines.push_back(line);
        while *bytes > self.bytes_max {
            let Some(first) = lines.pop_front() else {
                break;
            };
            *bytes -= first.len() + 1;
        }
        true
    }

    /// Returns what is kept.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.iter().flat_map(|line| [line, "\n"]).collect()
    }
}

impl Process {
    /// Starts `command`, which reads from `stdin` and has so many agents.
    pub(super) fn start(
        command: &mut Command,
        stdin: Stdio,
        agents: usize,
    ) -> std::io::Result<Self> {
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C is for this program, which ends a run in order; its launchers end with it.
        let mut child = command.process_group(0).spawn()?;
        let log = Log::of(agents);
        let reader = child.stderr.take().map(|stderr| log.keep(stderr));
        let (said, lines) = sync_channel(LINES_WAITING);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || lines_of(stdout, |line| said.send(line).is_ok()));
        }
        Ok(Self {
            child,
            lines,
            log,
            reader,
            status: None,
        })
    }

    /// Writes to its standard input, which stays open.
    pub(super) fn tell(&mut self, text: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            // Who does not read has ended, and that says more.
            let _ = std::io::Write::write_all(stdin, text.as_bytes());
        }
    }

    /// Waits for a line.
    pub(super) fn hear(&self, until: Instant) -> Heard {
        match self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Disconnected) => Heard::Over,
            Err(RecvTimeoutError::Timeout) => Heard::Late,
        }
    }

    /// Returns whether it has ended.
    pub(super) fn is_over(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Ends its standard input.
    pub(super) fn hang_up(&mut self) {
        self.child.stdin = None;
    }

    /// Ends its standard input and waits for its end, which it is asked for at `until` and soon made to come to;
    /// returns its exit code, if it had one.
    pub(super) fn end(&mut self, until: Instant) -> Option<i32> {
        self.hang_up();
        if !self.await_end(until) {
            self.terminate();
        }
        if !self.await_end(until.max(Instant::now()) + TERMINATE) {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
        if let Some(reader) = self.reader.take() {
            // Who inherited its standard error may keep it open.
            let until = Instant::now() + LOG_LATE;
            while !reader.is_finished() && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
        }
        self.status.and_then(|status| status.code())
    }

    /// Waits for its end and returns whether it came.
    fn await_end(&mut self, until: Instant) -> bool {
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        self.is_over()
    }

    /// Asks it to end. It was not waited for, so that its number is its own.
    fn terminate(&self) {
        let number = self.child.id().try_into().map(Pid::from_raw);
        // Who is gone already needs no signal.
        let _ = number.map(|number| kill(number, Signal::SIGTERM));
    }

    /// Returns what it said on standard error.
    pub(super) fn said(&self) -> String {
        self.log.text()
    }

    /// Returns where that is kept, for others that belong to it.
    pub(super) fn log(&self) -> Log {
        self.log.clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.end(Instant::now());
        }
    }
}

/// Hands over lines until there are no more, or `take` has enough.
fn lines_of(from: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match from
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let text = String::from_utf8_lossy(&line);
        if !take(text.trim_end().to_owned()) {
            return;
        }
    }
}

/// Returns the last lines of a log, on one line.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ")
}
