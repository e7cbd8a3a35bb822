//! Which sockets are wanted: a small language, read once and held against rows.
//!
//! ```text
//! any  = all { "or" all }
//! all  = one { "and" one }
//! one  = "not" one | "(" any ")" | term
//! term = ("sport" | "dport" | "port") NUMBER ["-" NUMBER]
//!      | ("src" | "dst" | "addr") ADDRESS ["/" LENGTH]
//!      | "state" STATE | "uid" NUMBER | "process" NAME | "pid" NUMBER
//! ```
//!
//! Words are separated by spaces. The source is this host's end. `state connected` is every state
//! but `listen`, `time-wait` and `close`. The kernel leaves out sockets in states that cannot
//! match; the rest is decided here.

use std::ops::RangeInclusive;
use std::str::{FromStr, SplitWhitespace};

use linerate_model::network::Network;
use linerate_model::socket::{SocketRow, SocketState};

use super::process::Processes;

/// Deepest nesting of parentheses and `not`; a filter of a person has two or three.
const DEPTH_MAX: usize = 32;

/// Which sockets are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketFilter(Wanted);

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Any(Vec<Wanted>),
    All(Vec<Wanted>),
    Not(Box<Wanted>),
    Port(Side, RangeInclusive<u16>),
    Address(Side, Network),
    /// One of the states of the mask.
    State(u32),
    Uid(u32),
    Process(String),
    Pid(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Local,
    Remote,
    Either,
}

/// Why a text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Something is expected where the text ends.
    #[error("the filter ends where {expected} is expected")]
    Ends {
        /// What is expected.
        expected: &'static str,
    },
    /// A word is not what is expected at its place.
    #[error("`{word}` in the filter is not {expected}")]
    Unexpected {
        /// The word.
        word: String,
        /// What is expected.
        expected: &'static str,
    },
    /// Parentheses are nested too deep.
    #[error("the filter nests deeper than {DEPTH_MAX}")]
    TooDeep,
}

impl SocketFilter {
    /// Returns the states that can match, as a mask of `1 << state`: every matching socket is in
    /// one of them, though not every socket in one of them matches.
    pub fn states(&self) -> u32 {
        self.0.states()
    }

    /// Tells whether a socket is wanted; of a process it is only if `processes` knows that.
    pub fn matches(&self, row: &SocketRow, processes: &Processes) -> bool {
        self.0.matches(row, processes)
    }
}

impl FromStr for SocketFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = Words {
            rest: spaced.split_whitespace(),
            next: None,
            depth: 0,
        };
        words.advance();
        if words.next.is_none() {
            return Ok(Self(Wanted::All(Vec::new())));
        }
        let wanted = words.any()?;
        match words.next {
            None => Ok(Self(wanted)),
            Some(word) => Err(unexpected(word, "`and`, `or` or its end")),
        }
    }
}

fn every_state() -> u32 {
    SocketState::ALL.iter().map(|(_, state)| state.bit()).sum()
}

/// The states of connections.
fn connected_states() -> u32 {
    let others = [
        SocketState::Listen,
        SocketState::TimeWait,
        SocketState::Close,
    ];
    others
        .iter()
        .fold(every_state(), |mask, state| mask & !state.bit())
}

impl Wanted {
    fn states(&self) -> u32 {
        match self {
            Wanted::Any(parts) => parts.iter().fold(0, |mask, part| mask | part.states()),
            Wanted::All(parts) => parts
                .iter()
                .fold(every_state(), |mask, part| mask & part.states()),
            Wanted::State(mask) => *mask,
            // Of `not`, only a state itself says which states are left.
            Wanted::Not(part) => match **part {
                Wanted::State(mask) => every_state() & !mask,
                _ => every_state(),
            },
            _ => every_state(),
        }
    }

    fn matches(&self, row: &SocketRow, processes: &Processes) -> bool {
        let owner = || processes.of_inode(row.inode);
        match self {
            Wanted::Any(parts) => parts.iter().any(|part| part.matches(row, processes)),
            Wanted::All(parts) => parts.iter().all(|part| part.matches(row, processes)),
            Wanted::Not(part) => !part.matches(row, processes),
            Wanted::Port(side, ports) => {
                side.either(row, |address| ports.contains(&address.port()))
            }
            Wanted::Address(side, network) => side.either(row, |address| network.has(address.ip())),
            Wanted::State(mask) => mask & row.state.bit() != 0,
            Wanted::Uid(uid) => row.uid == *uid,
            Wanted::Process(name) => owner().is_some_and(|owner| owner.name == *name),
            Wanted::Pid(pid) => owner().is_some_and(|owner| owner.pid == *pid),
        }
    }
}

impl Side {
    fn either(self, row: &SocketRow, holds: impl Fn(std::net::SocketAddr) -> bool) -> bool {
        match self {
            Side::Local => holds(row.local),
            Side::Remote => holds(row.remote),
            Side::Either => holds(row.local) || holds(row.remote),
        }
    }
}

fn unexpected(word: &str, expected: &'static str) -> FilterError {
    FilterError::Unexpected {
        word: word.to_owned(),
        expected,
    }
}

/// The words that are left, the next one looked at.
struct Words<'a> {
    rest: SplitWhitespace<'a>,
    next: Option<&'a str>,
    depth: usize,
}

impl<'a> Words<'a> {
    fn advance(&mut self) -> Option<&'a str> {
        let word = self.next;
        self.next = self.rest.next();
        word
    }

    fn take(&mut self, expected: &'static str) -> Result<&'a str, FilterError> {
        self.advance().ok_or(FilterError::Ends { expected })
    }

    /// Takes the next word as a value, or says what was expected.
    fn value<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FilterError> {
        let word = self.take(expected)?;
        read(word).ok_or_else(|| unexpected(word, expected))
    }

    fn any(&mut self) -> Result<Wanted, FilterError> {
        let mut parts = vec![self.all()?];
        while self.next == Some("or") {
            self.advance();
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Wanted::Any))
    }

    fn all(&mut self) -> Result<Wanted, FilterError> {
        let mut parts = vec![self.one()?];
        while self.next == Some("and") {
            self.advance();
            parts.push(self.one()?);
        }
        Ok(one_or(parts, Wanted::All))
    }

    fn one(&mut self) -> Result<Wanted, FilterError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(FilterError::TooDeep);
        }
        let wanted = match self.take("a term")? {
            "not" => Wanted::Not(Box::new(self.one()?)),
            "(" => {
                let inner = self.any()?;
                self.value("`)`", |word| (word == ")").then_some(()))?;
                inner
            }
            word => self.term(word)?,
        };
        self.depth -= 1;
        Ok(wanted)
    }

    fn term(&mut self, word: &str) -> Result<Wanted, FilterError> {
        const PORT: &str = "a port or two with `-` between them";
        const ADDRESS: &str = "an address, with `/` and a length for a network";
        let side = match word {
            "sport" | "src" => Side::Local,
            "dport" | "dst" => Side::Remote,
            _ => Side::Either,
        };
        match word {
            "sport" | "dport" | "port" => Ok(Wanted::Port(side, self.value(PORT, ports)?)),
            "src" | "dst" | "addr" => {
                let network = |text: &str| text.replace(['[', ']'], "").parse().ok();
                Ok(Wanted::Address(side, self.value(ADDRESS, network)?))
            }
            "state" => Ok(Wanted::State(self.value(
                "a state such as `established`, `listen` or `connected`",
                state_mask,
            )?)),
            "uid" => Ok(Wanted::Uid(self.value("a number", |it| it.parse().ok())?)),
            "pid" => Ok(Wanted::Pid(self.value("a number", |it| it.parse().ok())?)),
            "process" => Ok(Wanted::Process(self.take("a name")?.to_owned())),
            _ => Err(unexpected(
                word,
                "one of sport, dport, port, src, dst, addr, state, uid, process, pid",
            )),
        }
    }
}

fn one_or(mut parts: Vec<Wanted>, several: fn(Vec<Wanted>) -> Wanted) -> Wanted {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            several(parts)
        }
    }
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

fn state_mask(name: &str) -> Option<u32> {
    match name {
        "connected" => Some(connected_states()),
        _ => SocketState::ALL
            .iter()
            .find_map(|(known, state)| (*known == name).then(|| state.bit())),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::socket::{CongestionName, Protocol};
    use proptest::prelude::*;

    use super::super::process::Process;
    use super::*;

    fn row() -> SocketRow {
        SocketRow {
            protocol: Protocol::Tcp,
            state: SocketState::Established,
            local: "10.1.2.3:40000".parse().expect("an address"),
            remote: "192.0.2.7:5201".parse().expect("an address"),
            link_index: 0,
            cookie: 1,
            uid: 1000,
            inode: 42,
            receive_queue: 0,
            send_queue: 0,
            memory: None,
            congestion: CongestionName::default(),
            tcp: None,
        }
    }

    fn processes() -> Processes {
        let process = Process {
            pid: 77,
            name: "iperf3".to_owned(),
        };
        Processes {
            owners: [(42, process)].into(),
        }
    }

    fn check(filter: &str, expect: bool) {
        let filter: SocketFilter = filter.parse().expect("a filter");
        assert_eq!(filter.matches(&row(), &processes()), expect, "{filter:?}");
    }

    #[test]
    fn terms_are_held_against_a_row() {
        check("", true);
        check("dport 5201", true);
        check("sport 5201", false);
        check("port 5201", true);
        check("sport 30000-50000", true);
        check("dst 192.0.2.0/24", true);
        check("dst 192.0.2.7", true);
        check("dst 192.0.3.0/24", false);
        check("addr 10.0.0.0/8", true);
        check("src ::/0", false);
        check("src 0.0.0.0/0", true);
        check("state established", true);
        check("state connected", true);
        check("state listen", false);
        check("uid 1000", true);
        check("process iperf3", true);
        check("process iperf", false);
        check("pid 77", true);
        check("dport 5201 and dst 10.0.0.0/8", false);
        check("dport 5201 and dst 10.0.0.0/8 or uid 1000", true);
        check("dport 5201 and (dst 10.0.0.0/8 or uid 1)", false);
        check("not (dport 80 or dport 443)", true);
        check("not not port 1", false);
    }

    #[test]
    fn what_is_no_filter_is_told_by_its_word() {
        let check = |filter: &str, expect: &str| {
            let error = filter.parse::<SocketFilter>().expect_err(filter);
            assert!(error.to_string().contains(expect), "{error}");
        };
        check("dport", "ends where a port");
        check("dport x", "`x` in the filter is not a port");
        check("dport 70000", "`70000`");
        check("dport 9-3", "`9-3`");
        check("dst 10.0.0.0/33", "`10.0.0.0/33`");
        check("host 10.0.0.1", "`host` in the filter is not one of sport");
        check("port 1 port 2", "`port` in the filter is not `and`");
        check("(port 1", "ends where `)`");
        check("port 1 and", "ends where a term");
        check("state up", "`up`");
        check(&"(".repeat(99), "deeper than 32");
    }

    #[test]
    fn the_kernel_leaves_out_states_that_cannot_match() {
        let states = |filter: &str| filter.parse::<SocketFilter>().map(|it| it.states());
        let bit = SocketState::bit;
        let established = bit(SocketState::Established);
        assert_eq!(states("port 1"), Ok(every_state()));
        assert_eq!(states("port 1 and state established"), Ok(established));
        let either = established | bit(SocketState::Listen);
        assert_eq!(states("state established or state listen"), Ok(either));
        assert_eq!(states("state established or port 1"), Ok(every_state()));
        let others = every_state() & !bit(SocketState::Listen);
        assert_eq!(states("not state listen"), Ok(others));
        assert_eq!(states("not (port 1 and state listen)"), Ok(every_state()));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, words in "((not|and|or|port|dst|\\(|\\)|1|::1/8) ?){0,20}") {
            let _ = text.parse::<SocketFilter>();
            let _ = words.parse::<SocketFilter>();
        }

        /// What matches is in a state that the kernel is asked for.
        #[test]
        fn the_mask_leaves_nothing_out(words in "(not )?(state (listen|established|connected)|dport 5201)( (and|or) (not )?state (listen|established)){0,4}") {
            let filter: SocketFilter = words.parse().expect("a filter");
            for (_, state) in SocketState::ALL {
                let row = SocketRow { state, ..row() };
                let matches = filter.matches(&row, &Processes::default());
                prop_assert!(!matches || filter.states() & state.bit() != 0);
            }
        }
    }
}
