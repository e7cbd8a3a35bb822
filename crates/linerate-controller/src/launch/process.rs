//! A program of this host that keeps an agent elsewhere: what it says, and its end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest line that is kept whole.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// Most of a log that is kept: an agent has two lines of a hundred bytes for a run.
const LOG_BYTES_MAX: usize = 64 << 10;
/// Lines of a log that a message repeats.
const TOLD_LINES: usize = 3;
/// Lines of standard output that wait to be read.
const LINES_WAITING: usize = 16;
/// Time between looks at a process that is to end.
const LOOK: Duration = Duration::from_millis(5);
/// How long the last of a log may come after the end of who wrote it.
const LOG_LATE: Duration = Duration::from_millis(500);

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
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<(VecDeque<String>, usize)>>);

impl Log {
    /// Keeps what comes from `stderr` until it ends.
    pub(super) fn keep(&self, stderr: impl Read + Send + 'static) -> JoinHandle<()> {
        let log = self.clone();
        std::thread::spawn(move || lines_of(stderr, |line| log.add(line)))
    }

    fn add(&self, line: String) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, bytes) = &mut *kept;
        *bytes += line.len() + 1;
        lines.push_back(line);
        while *bytes > LOG_BYTES_MAX {
            let Some(first) = lines.pop_front() else {
                break;
            };
            *bytes -= first.len() + 1;
        }
        true
    }

    /// Returns what is kept.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.iter().flat_map(|line| [line, "\n"]).collect()
    }
}

impl Process {
    /// Starts `command`, which reads from `stdin`.
    pub(super) fn start(command: &mut Command, stdin: Stdio) -> std::io::Result<Self> {
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C is for this program, which ends a run in order; its launchers end with it.
        let mut child = command.process_group(0).spawn()?;
        let log = Log::default();
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

    /// Ends its standard input and waits for its end, which it is made to come to at `until`; returns its exit code,
    /// if it had one.
    pub(super) fn end(&mut self, until: Instant) -> Option<i32> {
        self.hang_up();
        while !self.is_over() {
            if Instant::now() >= until {
                let _ = self.child.kill();
                self.status = self.child.wait().ok();
                break;
            }
            std::thread::sleep(LOOK);
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
