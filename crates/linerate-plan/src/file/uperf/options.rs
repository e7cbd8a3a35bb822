//! What a flowop does, and what it has in `options`.
//!
//! Every option that uperf knows is taken, passed over because it changes nothing of what is measured, or refused by
//! its name: [`PASSED_OVER`] and [`REFUSED`] are the lists.

use std::ops::Range;

use linerate_model::Nanos;
use linerate_model::manner::Transport;

use super::reading::{Reading, Word};
use crate::file::error::ReadError;

/// The most options of a flowop, and the longest, both as in uperf.
const OPTIONS_MAX: usize = 100;
const OPTION_CHARS_MAX: usize = 99;
/// The largest number of operations that a flowop may repeat.
const COUNT_MAX: u64 = u32::MAX as u64;

/// Options that change nothing of what is measured, and why.
const PASSED_OVER: &[(&str, &str)] = &[
    ("idle", "a pause is idle"),
    ("non_blocking", "sockets never block here"),
    ("port", "data goes over linerate's own port"),
    ("timeout", "every wait has a limit here"),
    (
        "canfail",
        "a trial whose connections fail is not valid here",
    ),
];
/// Options of other systems and transports.
const REFUSED: &[(&str, &str)] = &[
    ("encaps", "encapsulation in UDP"),
    ("stack", "a TCP stack of FreeBSD"),
    ("bblog", "a log of FreeBSD's TCP"),
    ("engine", "TLS"),
    ("cipher", "TLS"),
    ("method", "TLS"),
    ("dir", "files"),
    ("nfiles", "files"),
    ("repeat", "a repetition"),
    ("batch_size", "SCTP"),
    (
        "localhost",
        "an address to send from (give --bind in its place)",
    ),
];
/// What is wrong with a random size that only one end draws.
pub(super) const RANDOM: &str = "a random size where the other end answers with another size";
/// Transports of uperf that no workload has.
const OTHER_PROTOCOLS: &[&str] = &["sctp", "ssl", "vsock", "rds", "udapl"];

/// What a flowop does, as the master sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Connect,
    Accept,
    Disconnect,
    Write,
    Read,
    Think,
    Nop,
}

/// Bytes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Bytes(u64),
    /// Between two, both included.
    Random(u64, u64),
}

/// The options of a flowop that mean something.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) size: Option<Amount>,
    /// Bytes of an operation at the other end.
    pub(super) remote_size: Option<u64>,
    pub(super) count: u64,
    pub(super) transport: Transport,
    pub(super) connection: u64,
    pub(super) remote_host: Option<String>,
    pub(super) window_bytes: Option<u64>,
    pub(super) has_nodelay: bool,
    pub(super) congestion: Option<String>,
    pub(super) pause: Option<Nanos>,
    /// Whether it keeps a CPU busy.
    pub(super) is_busy: bool,
    /// Options that were passed over, each with the reason.
    pub(super) passed_over: Vec<(&'static str, &'static str)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size: None,
            remote_size: None,
            count: 1,
            transport: Transport::Tcp,
            connection: 0,
            remote_host: None,
            window_bytes: None,
            has_nodelay: false,
            congestion: None,
            pause: None,
            is_busy: false,
            passed_over: Vec::new(),
        }
    }
}

impl Act {
    /// Returns what the type `kind` of a flowop does.
    pub(super) fn of(reading: &Reading<'_>, kind: &Word) -> Result<Self, ReadError> {
        Ok(match kind.text.as_str() {
            "connect" => Act::Connect,
            "accept" => Act::Accept,
            "disconnect" => Act::Disconnect,
            "write" | "send" => Act::Write,
            "read" | "recv" => Act::Read,
            "think" => Act::Think,
            "nop" => Act::Nop,
            "sendfile" | "sendfilev" => {
                let wrong = format!(
                    "{} is not possible: files are no part of a workload",
                    kind.text
                );
                return Err(reading.spot("flowop.type", kind.at.clone()).wrong(&wrong));
            }
            other => {
                let wrong = format!(
                    "unknown type `{other}`, expected one of `connect`, `accept`, `disconnect`, `write`, `send`, `read`, \
                     `recv`, `think`, `nop`"
                );
                return Err(reading.spot("flowop.type", kind.at.clone()).wrong(&wrong));
            }
        })
    }
}

impl Options {
    /// Reads the options that stand at `at`.
    pub(super) fn of(reading: &Reading<'_>, at: Range<usize>) -> Result<Self, ReadError> {
        let mut options = Self::default();
        for (number, (at, token)) in tokens(reading.source.text, at).enumerate() {
            let spot = reading.spot("options", at.clone());
            if number == OPTIONS_MAX {
                return Err(spot.wrong(&format!("it has more than {OPTIONS_MAX} options")));
            }
            if token.chars().count() > OPTION_CHARS_MAX {
                let wrong = format!("an option of more than {OPTION_CHARS_MAX} characters");
                return Err(spot.wrong(&wrong));
            }
            options.take(reading, at, &token.to_ascii_lowercase())?;
        }
        Ok(options)
    }

    fn take(
        &mut self,
        reading: &Reading<'_>,
        at: Range<usize>,
        token: &str,
    ) -> Result<(), ReadError> {
        let (name, value) = token
            .split_once('=')
            .map_or((token, None), |(name, value)| (name, Some(value)));
        let wrong = |message: String| Err(reading.spot(name, at.clone()).wrong(&message));
        if name.starts_with("sctp_") {
            return wrong(format!("{name} is for SCTP, which no workload has"));
        }
        if let Some((_, what)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return wrong(format!("{name} is not possible: {what}"));
        }
        if let Some(passed_over) = PASSED_OVER.iter().find(|(known, _)| *known == name) {
            self.passed_over.push(*passed_over);
            return Ok(());
        }
        let flag = match (name, value) {
            ("tcp_nodelay", None) => Some(&mut self.has_nodelay),
            ("busy", None) => Some(&mut self.is_busy),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            return Ok(());
        }
        let Some(value) = value else {
            return wrong(format!("unknown option `{name}`"));
        };
        let word = |text: &str| Word {
            key: name.to_owned(),
            text: text.to_owned(),
            at: at.clone(),
        };
        if name == "remotehost" {
            // Which host is meant stands on the command line; here it counts which ones are the same.
            let host = reading.looked_up(word(value)).map(|word| word.text);
            self.remote_host =
                Some(host.unwrap_or_else(|_| value.trim_start_matches('$').to_owned()));
            return Ok(());
        }
        let word = reading.looked_up(word(value))?;
        match name {
            "size" => self.size = Some(amount(reading, &word)?),
            "rsize" => self.remote_size = Some(reading.number(&word, 1, u32::MAX.into())?),
            "count" => self.count = reading.number(&word, 1, COUNT_MAX)?,
            "conn" => self.connection = reading.number(&word, 1, COUNT_MAX)?,
            "wndsz" => self.window_bytes = Some(reading.number(&word, 1, u32::MAX.into())?),
            "duration" => self.pause = Some(reading.time(&word)?),
            "cc" => self.congestion = Some(word.text),
            "protocol" => self.transport = transport(reading, &word)?,
            _ => return wrong(format!("unknown option `{name}`")),
        }
        Ok(())
    }
}

/// Returns the words between blanks in the part `at` of `text`, each with its place.
fn tokens(text: &str, at: Range<usize>) -> impl Iterator<Item = (Range<usize>, &str)> {
    let part = text.get(at.clone()).unwrap_or_default();
    part.split_ascii_whitespace().map(move |token| {
        let from = at.start + (token.as_ptr() as usize - part.as_ptr() as usize);
        (from..from + token.len(), token)
    })
}

fn transport(reading: &Reading<'_>, word: &Word) -> Result<Transport, ReadError> {
    let spot = reading.spot("protocol", word.at.clone());
    match word.text.as_str() {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        other if OTHER_PROTOCOLS.contains(&other) => Err(spot.wrong(&format!(
            "protocol {other} is not possible: give tcp or udp"
        ))),
        other => Err(spot.value(format!("`{other}`"), "tcp or udp")),
    }
}

/// Returns the bytes of `word`: a number, or `rand(min,max)`.
fn amount(reading: &Reading<'_>, word: &Word) -> Result<Amount, ReadError> {
    let most = u32::MAX.into();
    let between = word
        .text
        .strip_prefix("rand(")
        .and_then(|rest| rest.strip_suffix(')'));
    let Some((low, high)) = between.and_then(|between| between.split_once(',')) else {
        return reading.number(word, 1, most).map(Amount::Bytes);
    };
    let part = |text: &str| Word {
        key: word.key.clone(),
        text: text.trim().to_owned(),
        at: word.at.clone(),
    };
    let low = reading.number(&part(low), 1, most)?;
    let high = reading.number(&part(high), low, most)?;
    Ok(Amount::Random(low, high))
}
