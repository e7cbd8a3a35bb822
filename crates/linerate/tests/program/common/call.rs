//! One call of the program.
//!
//! Every call carries a mark in its environment, which its children inherit; so whatever it left
//! running is found again, in whatever namespace it is.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
/// Longest that any call of a test may take.
const DEADLINE: Duration = Duration::from_secs(90);
/// Longest that children may take to be gone after their parent: the agents of a lab are killed
/// with it, and a busy machine takes its time.
const GONE_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// Where calls keep what outlives them: one key for all agents of these tests, so that whoever met
/// one knows the next at the same address.
pub const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/kept");
/// The variable that carries the mark.
const MARK: &str = "LINERATE_TEST_MARK";

/// A call that has not begun.
pub struct Call {
    command: Command,
    mark: String,
}

/// A call under way.
pub struct Going {
    child: Running,
    mark: String,
    out: Reading,
    err: Reading,
}

/// What a call said and how it ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code; 128 and its number for a signal.
    pub code: i32,
    /// Standard output as it was printed; what it says in words is asked by [`Said::shows`].
    pub out: String,
    /// Standard error, what was wrapped to fit a line joined again.
    pub err: String,
    /// Standard error as it was printed.
    pub err_lines: String,
    mark: String,
}

/// A process that outlives no test, not even one that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Reading {
    text: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

/// Returns a call of the program with these words.
pub fn linerate<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Call {
    let mut call = Call::of(PROGRAM);
    call.command.args(words);
    call
}

impl Call {
    /// Returns a call of any program.
    pub fn of(program: impl Into<OsString>) -> Self {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut command = Command::new(program.into());
        command
            .env(MARK, &mark)
            .env("NO_COLOR", "1")
            .env_remove("LINERATE_TOKEN")
            .env("XDG_STATE_HOME", KEPT)
            .env("XDG_CONFIG_HOME", KEPT)
            .stdin(Stdio::null());
        Self { command, mark }
    }

    /// Adds words.
    pub fn words<S: AsRef<std::ffi::OsStr>>(mut self, words: &[S]) -> Self {
        self.command.args(words);
        self
    }

    /// Sets a variable.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Going {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program can be started");
        let out = Reading::of(child.stdout.take().expect("it is piped"));
        let err = Reading::of(child.stderr.take().expect("it is piped"));
        Going {
            child: Running(child),
            mark: self.mark,
            out,
            err,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Said {
        self.start().end()
    }
}

impl Reading {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&text);
        let thread = std::thread::spawn(move || {
            let mut room = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut room) {
                into.lock()
                    .expect("no reader panics")
                    .extend_from_slice(&room[..count]);
            }
        });
        Self { text, thread }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("no reader panics")).into_owned()
    }

    fn whole(self) -> String {
        self.thread.join().expect("no reader panics");
        String::from_utf8_lossy(&self.text.lock().expect("no reader panics")).into_owned()
    }
}

impl Going {
    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Returns what it said on standard error so far.
    pub fn err(&self) -> String {
        unwrapped(&self.err.so_far())
    }

    /// Waits until it has said `words` on standard output or error; fails when it ends before.
    pub fn wait_for(&mut self, words: &str) {
        let said = |going: &Going| {
            going.out.so_far().contains(words)
                || on_one_line(&going.out.so_far()).contains(words)
                || unwrapped(&going.err.so_far()).contains(words)
        };
        let deadline = Instant::now() + DEADLINE;
        while !said(self) {
            let ended = self.child.0.try_wait().expect("it is our child").is_some();
            let over = ended || Instant::now() > deadline;
            assert!(
                !over || said(self),
                "did not say `{words}`:\n{}\n{}",
                self.out.so_far(),
                self.err.so_far()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.0.id() as i32), signal).expect("it is our child");
    }

    /// Kills it without a warning.
    pub fn kill(mut self) -> Said {
        self.child.0.kill().expect("it is our child");
        self.end()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.0.try_wait().expect("it is our child") {
                break status;
            }
            if Instant::now() > deadline {
                panic!(
                    "not over after {DEADLINE:?}:\n{}\n{}",
                    self.out.so_far(),
                    self.err.so_far()
                );
            }
            std::thread::sleep(LOOK);
        };
        let err_lines = self.err.whole();
        Said {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            out: self.out.whole(),
            err: unwrapped(&err_lines),
            err_lines,
            mark: self.mark,
        }
    }
}

impl Said {
    /// Returns whether standard output has these words, wherever its lines end: where they do depends on
    /// the numbers and reasons before, which a busy machine has more of.
    pub fn shows(&self, words: &str) -> bool {
        on_one_line(&self.out).contains(words)
    }

    /// The same of standard output and standard error: which of them has a reason depends on whether
    /// there is a result.
    pub fn tells(&self, words: &str) -> bool {
        self.shows(words) || on_one_line(&self.err).contains(words)
    }

    /// Returns whether it measured: that numbers are not to be trusted, or that edges of the window were
    /// read late, is a busy machine's doing, not the program's.
    pub fn is_measured(&self) -> bool {
        matches!(self.code, 0 | 3) || self.was_read_late()
    }

    /// Returns whether it says that a host read an edge of the window too late, as a busy one does.
    pub fn was_read_late(&self) -> bool {
        // Where lines of a terminal wrap says nothing.
        let said = format!("{} {}", self.out, self.err);
        let said: Vec<&str> = said.split_whitespace().collect();
        said.join(" ").contains(" late, more than a tenth of it")
    }

    /// Asserts that it ended with `code`, that its standard error has all `words`, and that
    /// nothing of it is left.
    #[track_caller]
    pub fn failed(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "exit code\n{}\n{}", self.out, self.err);
        for word in words {
            assert!(
                self.err.contains(word),
                "no `{word}` on standard error:\n{}\n{}",
                self.err,
                self.out
            );
        }
        self.left_nothing();
        self
    }

    /// Asserts that it succeeded and that nothing of it is left.
    #[track_caller]
    pub fn done(self) -> Self {
        self.failed(0, &[])
    }

    /// Asserts that no process that it started is left; a namespace without a process or a mount
    /// is gone by itself.
    #[track_caller]
    pub fn left_nothing(&self) {
        let deadline = Instant::now() + GONE_DEADLINE;
        loop {
            let left = marked(&self.mark);
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "left running: {left:?}");
            std::thread::sleep(LOOK);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        assert!(!mounts.contains("linerate"), "left mounted: {mounts}");
    }
}

/// Joins lines that go on, which are indented.
fn unwrapped(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("  ") {
            Some(rest) if joined.ends_with('\n') => {
                joined.pop();
                joined.push(' ');
                joined.push_str(rest.trim_start_matches(' '));
            }
            _ => joined.push_str(line),
        }
    }
    joined
}

/// Returns the words of a text with one space between them.
pub fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn words_are_found_wherever_a_line_is_folded() {
    let said = Said {
        code: 1,
        out: "trust       this agent\n            allows 50\n".into(),
        err: unwrapped("error: cannot\n    be done\nnext: wait\n"),
        err_lines: String::new(),
        mark: String::new(),
    };
    assert!(said.shows("this agent allows 50") && !said.shows("be done"));
    assert!(said.tells("cannot be done"));
    assert_eq!(said.err, "error: cannot be done\nnext: wait\n");
}

/// Returns the processes whose environment carries `mark`, with their command lines.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc is there").flatten() {
        let path = entry.path();
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|variable| variable == wanted.as_bytes()) {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("{} {line}", entry.file_name().display()));
        }
    }
    found
}
