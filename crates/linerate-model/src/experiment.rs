//! A question as a document: workload, factors, design, timing.
//!
//! These are the checked types; the text that a person writes is read by the plan room.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fraction::Fraction;
use crate::group_name::GroupName;
use crate::knob::{KNOBS, Knob};
use crate::limiter::Limiter;
use crate::pairs::{Pair, Pairs};
use crate::parameter::{self, PARAMETERS, Parameter};
use crate::probe::Probes;
use crate::unit::{BitsPerSec, Bytes, Nanos, Unit};
use crate::workload::{Group, Workload, WorkloadError};

/// Something varied on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Factor {
    /// Flows in total.
    Connections,
    /// Client hosts that take part.
    Clients,
    /// Which way bulk payload goes.
    Direction,
    /// Send and receive buffer of both ends.
    SocketBuffer,
    /// Bytes of each send call of a stream.
    MessageBytes,
    /// Bytes of a request; with `payload_bytes` request and response are set together.
    RequestBytes,
    /// Bytes of a response.
    ResponseBytes,
    /// Bytes of request and response alike.
    PayloadBytes,
    /// Send calls that a request is split over.
    RequestWrites,
    /// Nagle's algorithm at both ends.
    Nagle,
    /// Delayed acknowledgements at both ends.
    DelayedAck,
    /// Congestion control algorithm.
    Congestion,
    /// Maximum segment size.
    MssBytes,
    /// What carries the payload: `tcp`, `mptcp`, `unix`, `udp`.
    Transport,
    /// How bulk payload is sent: `copy`, `auto`, `vmsplice`, `msg_zerocopy`, `sendfile`.
    Send,
    /// How bulk payload is received: `copy`, `discard`.
    Receive,
    /// How workers wait: `auto`, `epoll`, `uring`, `spin`.
    Wait,
    /// Messages of a stream, or datagrams, that one send call carries.
    Batch,
    /// Datagrams that the kernel cuts one buffer into (UDP_SEGMENT).
    Segments,
    /// Requests of a flow that may be under way.
    InFlight,
    /// Requests that each flow begins a second, open loop.
    RequestsPerS,
    /// Payload that each sending end sends a second, by our pacer.
    Rate,
    /// Frames that the clients' links lose on purpose; only a lab has such links.
    LinkLoss,
    /// CPUs that the workers of each end are confined to.
    Cpus,
    /// Which two hosts of a fleet have the flows.
    Pair,
    /// Largest IP packet of the device of the data network, at both ends. The first knob.
    Mtu,
    /// TCP segmentation by the device, at both ends.
    Tso,
    /// Segmentation of other traffic, or in software, on the way to the device, at both ends.
    Gso,
    /// Merging of received packets, at both ends.
    Gro,
    /// Packets of the device are taken by threads of the kernel instead of softirqs.
    ThreadedNapi,
    /// Received packets are spread over CPUs in software.
    Rps,
    /// Bytes of a TCP socket that may wait below it.
    TcpLimitOutputBytes,
    /// Congestion control of sockets that ask for none.
    CongestionDefault,
    /// Most bytes that TCP's receive buffer grows to.
    TcpRmemMax,
    /// Most bytes that TCP's send buffer grows to.
    TcpWmemMax,
    /// Most bytes of a GSO aggregate.
    GsoMaxSize,
    /// Receive and transmit queues.
    Queues,
    /// Transmit queues.
    TxQueues,
    /// Queueing discipline at the root of the device.
    Qdisc,
    /// Microseconds that an interrupt waits for further packets.
    CoalescingUs,
    /// Least RTO of TCP, microseconds: no acknowledgement is delayed for longer.
    TcpRtoMinUs,
    /// Any of those of a workload, of a group beside it: `probe.connections`.
    #[serde(untagged)]
    Beside(GroupFactor),
}

/// A parameter of a group beside the workload, as a factor: `probe.connections`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct GroupFactor {
    group: GroupName,
    /// Its place among the parameters of a workload.
    at: u8,
}

impl GroupFactor {
    /// Returns `factor` of `group`; absent for what is no parameter of a workload.
    pub fn new(group: GroupName, factor: Factor) -> Option<Self> {
        let is_own = |it: &Parameter| it.factor.is_some_and(|known| known.0 == factor);
        let at = u8::try_from(PARAMETERS.iter().position(is_own)?).ok()?;
        Some(Self { group, at })
    }

    /// Returns the group.
    pub fn group(self) -> GroupName {
        self.group
    }

    /// Returns what varies of it.
    pub fn parameter(self) -> &'static Parameter {
        &PARAMETERS[usize::from(self.at)]
    }

    /// Returns the same of the experiment's own workload.
    pub fn factor(self) -> Option<Factor> {
        Some(self.parameter().factor?.0)
    }
}

impl fmt::Display for GroupFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.group, self.parameter().key)
    }
}

impl From<GroupFactor> for String {
    fn from(of: GroupFactor) -> Self {
        of.to_string()
    }
}

impl TryFrom<String> for GroupFactor {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match Factor::named(&name) {
            Some(Factor::Beside(of)) => Ok(of),
            _ => Err(format!("`{name}` is no factor")),
        }
    }
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// On or off.
    Switch(bool),
    /// A number of things.
    Count(u64),
    /// A size.
    Size(Bytes),
    /// A word: a direction, an algorithm.
    Word(String),
    /// A rate, whole bits per second.
    Rate(u64),
    /// A share, in parts per million.
    Ppm(u32),
}

impl Level {
    /// Returns the pair of hosts that it is; absent for other levels.
    pub fn pair(&self) -> Option<Pair> {
        match self {
            Self::Word(word) => Pair::try_from(word.clone()).ok(),
            _ => None,
        }
    }
}

impl From<&Pair> for Level {
    fn from(pair: &Pair) -> Self {
        Self::Word(pair.to_string())
    }
}

/// One combination of levels, one per factor of its experiment.
pub type Cell = BTreeMap<Factor, Level>;

/// The phases of every trial of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Quiet time before traffic starts.
    pub settle: Nanos,
    /// Traffic that is not counted, so that windows and buffers reach their working point.
    pub warm_up: Nanos,
    /// Traffic that is counted.
    pub measure: Nanos,
    /// Traffic after the measured window, so that no end stops inside another's window.
    pub drain: Nanos,
}

impl Timing {
    /// What measuring until it is stopped means before that: a day less the phases around it.
    pub const UNTIL_STOPPED: Nanos = Nanos::from_s(86_000);

    /// Whether being stopped is how the measurement is meant to end.
    pub fn is_until_stopped(&self) -> bool {
        self.measure >= Self::UNTIL_STOPPED
    }

    /// Returns the length of one trial, phases only.
    pub fn total(&self) -> Nanos {
        Nanos(self.settle.0 + self.warm_up.0 + self.measure.0 + self.drain.0)
    }
}

/// How levels are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DesignKind {
    /// The baseline, and each level of each factor with the others at the baseline.
    OneAtATime,
    /// Every combination.
    Full,
    /// So many of all combinations of factors with two levels.
    Fractional {
        /// How many: a power of two.
        runs: u32,
    },
    /// A block has each level of each factor once, and its own random combinations of them (McKay, Beckman and Conover, "A
    /// comparison of three methods for selecting values of input variables", Technometrics 21, 1979).
    LatinHypercube,
}

impl DesignKind {
    /// Returns the word that files have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::OneAtATime => "one-at-a-time",
            Self::Full => "full",
            Self::Fractional { .. } => "fractional",
            Self::LatinHypercube => "latin-hypercube",
        }
    }
}

/// The cells that others are held against: each comparison with them has their error, so that a block has several
/// trials of each (Dunnett, "A multiple comparison procedure for comparing several treatments with a control", 1955).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Control {
    /// The levels that make a cell one of them.
    pub levels: Cell,
    /// The trials that a block has of each.
    pub times: u32,
}

impl Control {
    /// Returns whether `cell` is one of them.
    pub fn is(&self, cell: &Cell) -> bool {
        let has = |(factor, level)| cell.get(factor) == Some(level);
        self.levels.iter().all(has)
    }
}

/// How levels are added between the two of a scale until all trials of one keep a condition and none of the next does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Search {
    /// The condition, as it was typed: `loss < 0.1%`, `throughput > 95% of auto`.
    pub condition: String,
    /// By what share of the smaller the two levels may differ in the end: 0.01.
    pub resolution: f64,
    /// The level that the condition is relative to, which each block measures too; absent of a condition that stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Level>,
}

/// How levels are added to a scale where the response changes most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refinement {
    /// How many levels there are in the end, those of the file included.
    pub levels: u32,
    /// By what share of the smaller two neighbours may differ with nothing measured between them: 0.05.
    pub resolution: f64,
}

/// A checked experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// Short identifier, unique in a plan: `socket-buffer`.
    pub name: String,
    /// Chapter of the study that it belongs to, if any.
    pub chapter: Option<u32>,
    /// Heading for people.
    pub title: String,
    /// The question, as one sentence.
    pub question: String,
    /// How it is answered, for the report.
    pub method: String,
    /// What does not vary; factors overwrite parts of it.
    pub workload: Workload,
    /// The groups that go on beside it in every trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Group>,
    /// The factors with their levels, in the order of the document.
    pub factors: Vec<(Factor, Vec<Level>)>,
    /// Groups of factors whose levels go together: the first level of one only with the first of
    /// the others, and so on. 10 connections come from 5 clients, 1 connection from 1.
    #[serde(default)]
    pub linked: Vec<Vec<Factor>>,
    /// What shares of the link's rate are of, once the hosts are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bps: Option<u64>,
    /// How levels are combined.
    pub design: DesignKind,
    /// Level of each factor in a one-at-a-time design's centre.
    pub baseline: Cell,
    /// What the other cells are held against, where that is measured more often than they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// The factors whose levels change as seldom as can be: the cells of a block that share a combination of their levels
    /// come one after the other, as one whole plot (Yates, "Complex experiments", 1935).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_plots: Vec<Factor>,
    /// The scales of which it asks for the smallest level that does as well as the largest, beside the socket buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suffices: Vec<Factor>,
    /// Blocks: times each cell is measured, but for those of the control.
    pub replicates: u32,
    /// Phases of every trial.
    pub timing: Timing,
    /// The response that the experiment is about: `throughput_bps`, `transactions_per_s`.
    pub response: String,
    /// What is looked at beyond what every trial shows.
    #[serde(default, skip_serializing_if = "Probes::is_none")]
    pub probes: Probes,
    /// What is searched for between the two levels of its one factor, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How its one factor is refined, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refinement>,
    /// Which hosts measure with which, where all of a fleet do; its first factor is then the pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
    /// What changing its one factor does to the number by each limiter that may hold it, the one that was named first; written
    /// before it is measured. None where it proves nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicted: Vec<Prediction>,
}

/// What a change does to a number that one limiter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The limiter.
    pub limiter: Limiter,
    /// What the change does; absent where that does not follow from what the limiter is.
    pub effect: Option<Effect>,
}

/// What a change does to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It grows, by as much as nothing else holds it.
    Grows,
    /// It grows where the change reaches what holds it, which is not certain: that it stays says nothing.
    MayGrow,
    /// It stays.
    Stays,
}

/// A level that its factor cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// The level is of the wrong kind.
    #[error("{factor} cannot be `{level}`: expected {expected}")]
    Kind {
        /// The factor.
        factor: Factor,
        /// The level given.
        level: Level,
        /// What its levels look like.
        expected: String,
    },
    /// The factor does not apply to the workload's traffic.
    #[error("{factor} has no meaning for this kind of traffic")]
    Traffic {
        /// The factor.
        factor: Factor,
    },
    /// No group has the name that the factor says.
    #[error("{factor} is of a group that the experiment does not have: `{group}`")]
    Group {
        /// The factor.
        factor: Factor,
        /// The group that it names.
        group: GroupName,
    },
    /// The workload that results is impossible.
    #[error("the levels make an impossible workload")]
    Workload(#[from] WorkloadError),
}

/// The level of a factor at which nothing is set: the host does as it always does.
pub const AUTO: &str = "auto";

impl Factor {
    /// Returns whether `level` of it is compared with others by name, and not seen as a place on a scale: words, switches,
    /// losses that are made, and whatever a host is set to.
    pub fn compares_by_name(self, level: &Level) -> bool {
        let is_name = match level {
            Level::Switch(_) | Level::Word(_) => true,
            // Shares of the link's rate are a scale.
            Level::Ppm(_) => self != Factor::Rate,
            _ => false,
        };
        is_name || self.knob().is_some()
    }

    /// Returns every factor but those of groups, which have names that their file gives them.
    pub fn all() -> impl Iterator<Item = Factor> {
        let knobs = KNOBS.iter().map(|knob| &knob.parameter);
        let factors = PARAMETERS.iter().chain(knobs);
        factors.filter_map(|parameter| Some(parameter.factor?.0))
    }

    /// Returns the factor called `name`, if there is one.
    pub fn named(name: &str) -> Option<Factor> {
        match name.split_once('.') {
            None => Self::all().find(|factor| factor.name() == name),
            Some((group, name)) => Self::named(name)?.of(GroupName::new(group)?),
        }
    }

    /// Returns the same of a group; absent for a knob, which is the host's, and for what is a group's already.
    pub fn of(self, group: GroupName) -> Option<Factor> {
        GroupFactor::new(group, self).map(Factor::Beside)
    }

    /// Returns the group that it is of, where that is not the experiment's own, and what it is there.
    pub fn beside(self) -> Option<(GroupName, Factor)> {
        match self {
            Factor::Beside(of) => Some((of.group(), of.factor()?)),
            _ => None,
        }
    }

    /// Returns the parameter that it varies: of a workload, or of a knob.
    pub fn parameter(self) -> &'static Parameter {
        if let Factor::Beside(of) = self {
            return of.parameter();
        }
        let knobs = KNOBS.iter().map(|knob| &knob.parameter);
        let mut all = PARAMETERS.iter().chain(knobs);
        let own = all.find(|parameter| parameter.factor.is_some_and(|known| known.0 == self));
        own.expect("the catalogues have an entry for every factor, which their test holds")
    }

    /// Returns the knob that it is, where it is one.
    pub fn knob(self) -> Option<&'static Knob> {
        let is_own = |knob: &&Knob| knob.parameter.factor.is_some_and(|known| known.0 == self);
        KNOBS.iter().find(is_own)
    }

    /// Returns the name that documents carry.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Factor::Beside(of) => Cow::Owned(of.to_string()),
            own => Cow::Borrowed(own.parameter().key),
        }
    }

    /// Returns the words for a legend or a column.
    pub fn title(self) -> Cow<'static, str> {
        let title = self.parameter().factor.map_or("", |(_, title)| title);
        match self {
            Factor::Beside(of) => Cow::Owned(format!("{title} of {}", of.group())),
            _ => Cow::Borrowed(title),
        }
    }

    /// Overwrites the part of `workload` that this factor stands for, the group's own for one of a group; a knob has none.
    pub fn apply(self, level: &Level, workload: &mut Workload) -> Result<(), LevelError> {
        let parameter = self.parameter();
        if !parameter.kinds.contains(&workload.traffic.kind()) {
            return Err(LevelError::Traffic { factor: self });
        }
        let kind = || LevelError::Kind {
            factor: self,
            level: level.clone(),
            expected: parameter.expected(),
        };
        if self.knob().is_some() {
            if !parameter.takes(level) {
                return Err(kind());
            }
            return Ok(parameter::check_level(parameter, level)?);
        }
        parameter.write(level, workload).ok_or_else(kind)
    }
}

/// Returns the words for factors that are linked, or for one.
pub fn joined_titles(factors: &[Factor]) -> String {
    let titles: Vec<_> = factors.iter().map(|factor| factor.title()).collect();
    titles.join(" / ")
}

impl Search {
    /// How often a level is measured at the most, each time with the replicates of the design.
    pub const LOOKS_MAX: u32 = 3;

    /// Returns how many levels halve the way from `low` to `high` until neighbours differ by no more than the
    /// resolution; both are above zero.
    pub fn steps(&self, low: f64, high: f64) -> u32 {
        let parts = (high / low).ln() / self.resolution.ln_1p();
        parts.max(1.0).log2().ceil() as u32
    }

    /// Returns how many levels are measured at the most: both ends, and twice the steps, since around levels that
    /// noise does not let decide the search goes on to both sides.
    pub fn levels_max(&self, low: f64, high: f64) -> u32 {
        2 + 2 * self.steps(low, high)
    }
}

impl Experiment {
    /// Returns that of one cell: nothing varies, nothing is asked, and the response is the headline of the workload.
    pub fn plain(name: &str, workload: Workload, timing: Timing, replicates: u32) -> Self {
        Self {
            name: name.to_owned(),
            chapter: None,
            title: String::new(),
            question: String::new(),
            method: String::new(),
            response: workload.traffic.kind().about().headline.to_owned(),
            workload,
            beside: Vec::new(),
            factors: Vec::new(),
            linked: Vec::new(),
            link_bps: None,
            design: DesignKind::Full,
            baseline: Cell::new(),
            control: None,
            whole_plots: Vec::new(),
            suffices: Vec::new(),
            replicates,
            timing,
            probes: Probes::default(),
            search: None,
            refinement: None,
            pairs: None,
            predicted: Vec::new(),
        }
    }

    /// Returns what is searched for: the search, its factor, and the ends of the scale as numbers.
    pub fn searched(&self) -> Option<(&Search, Factor, [f64; 2])> {
        let search = self.search.as_ref()?;
        let (factor, levels) = self.factors.first()?;
        let [low, high] = levels.as_slice() else {
            return None;
        };
        Some((search, *factor, [low.as_number()?, high.as_number()?]))
    }

    /// Returns the cell that the condition of its search is relative to, where it is to one.
    pub fn search_control(&self) -> Option<Cell> {
        let level = self.search.as_ref()?.control.clone()?;
        let (factor, _) = self.factors.first()?;
        Some(Cell::from([(*factor, level)]))
    }

    /// Returns whether it proves what limits another measurement.
    pub fn is_proof(&self) -> bool {
        !self.predicted.is_empty()
    }

    /// Returns whether its levels follow from what was measured of others: they were measured one after the other.
    pub fn is_adaptive(&self) -> bool {
        self.search.is_some() || self.refinement.is_some()
    }

    /// Returns the levels of `factor`; none where it does not vary.
    pub fn levels(&self, factor: Factor) -> &[Level] {
        let found = self.factors.iter().find(|(known, _)| *known == factor);
        found.map_or(&[], |(_, levels)| levels)
    }

    /// Returns the factors in their order, those that are linked together.
    pub fn factor_groups(&self) -> Vec<Vec<Factor>> {
        let mut groups: Vec<Vec<Factor>> = Vec::new();
        for (factor, _) in &self.factors {
            if groups.iter().any(|group| group.contains(factor)) {
                continue;
            }
            let linked = self.linked.iter().find(|linked| linked.contains(factor));
            groups.push(linked.cloned().unwrap_or_else(|| vec![*factor]));
        }
        groups
    }

    /// Returns the fraction that the design is, with the groups of factors that it varies, by number; absent of other
    /// designs, and where so little varies that all combinations are measured.
    pub fn fraction(&self) -> Option<(Fraction, Vec<Vec<Factor>>)> {
        let DesignKind::Fractional { runs } = self.design else {
            return None;
        };
        let varies = |group: &Vec<Factor>| self.levels(group[0]).len() == 2;
        let groups = self.factor_groups().into_iter().filter(varies);
        let groups: Vec<Vec<Factor>> = groups.collect();
        Some((Fraction::of(groups.len(), runs)?, groups))
    }

    /// Returns whether its cells are some of all combinations, chosen together: none of them stands for another, and none is
    /// left out alone.
    pub fn is_of_some_cells(&self) -> bool {
        let is_drawn = matches!(
            self.design,
            DesignKind::Fractional { .. } | DesignKind::LatinHypercube
        );
        is_drawn || self.pairs.is_some()
    }

    /// Returns how many trials of `cell` a block has.
    pub fn times(&self, cell: &Cell) -> u32 {
        let control = self.control.as_ref().filter(|control| control.is(cell));
        control.map_or(1, |control| control.times)
    }

    /// Returns whether it asks for the smallest level of `factor` that does as well as the largest.
    pub fn asks_what_suffices(&self, factor: Factor) -> bool {
        factor == Factor::SocketBuffer || self.suffices.contains(&factor)
    }

    /// Returns the levels that make the whole plot of `cell`. The pairs of a round are one, with all else that they have in
    /// common; the first of them stands for all.
    pub fn plot_of(&self, cell: &Cell) -> Cell {
        if let Some(pairs) = &self.pairs {
            let pair = cell.get(&Factor::Pair).and_then(Level::pair);
            let mut rounds = pairs.rounds.iter();
            let round = pair.and_then(|pair| rounds.find(|round| round.contains(&pair)));
            let mut plot = cell.clone();
            plot.extend(round.and_then(|round| Some((Factor::Pair, round.first()?.into()))));
            return plot;
        }
        let levels = self.whole_plots.iter();
        let levels = levels.filter_map(|factor| Some((*factor, cell.get(factor)?.clone())));
        levels.collect()
    }

    /// Returns the workload of `cell`: the experiment's own with every level applied, checked.
    pub fn workload_of(&self, cell: &Cell) -> Result<Workload, LevelError> {
        let mut workload = self.workload.clone();
        for (factor, level) in cell.iter().filter(|(factor, _)| factor.beside().is_none()) {
            match level {
                // It says who has the flows, and nothing of them.
                _ if *factor == Factor::Pair => {}
                // A cell has its connections before their rate.
                Level::Ppm(ppm) if *factor == Factor::Rate => {
                    let flows = u64::from(workload.connections.max(1));
                    let all = self.link_bps.map(|bps| bps / 1_000_000 * u64::from(*ppm));
                    workload.manner.rate_bps = all.map(|bps| bps / flows);
                }
                _ => factor.apply(level, &mut workload)?,
            }
        }
        workload.choose_nagle();
        workload.check()?;
        parameter::check_knobs(cell.keys(), &workload)?;
        Ok(workload)
    }

    /// Returns the groups beside the workload in a trial of `cell`.
    pub fn beside_of(&self, cell: &Cell) -> Result<Vec<Group>, LevelError> {
        let mut groups = self.beside.clone();
        for (factor, level) in cell {
            let Some((name, own)) = factor.beside() else {
                continue;
            };
            let mut named = groups.iter_mut();
            let group = named.find(|group| group.name == name.as_str());
            let group = group.ok_or(LevelError::Group {
                factor: *factor,
                group: name,
            })?;
            own.apply(level, &mut group.workload)?;
        }
        let workloads = groups.iter_mut().map(|group| &mut group.workload);
        workloads.for_each(Workload::choose_nagle);
        Ok(groups)
    }
}

/// Returns what `cell` asks of the hosts themselves: the levels of its knobs, but those at which nothing is set.
pub fn changes(cell: &Cell) -> Cell {
    let is_change =
        |(factor, level): &(&Factor, &Level)| factor.knob().is_some() && !level.is_auto();
    let changes = cell.iter().filter(is_change);
    changes
        .map(|(factor, level)| (*factor, level.clone()))
        .collect()
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Switch(true) => f.write_str("on"),
            Level::Switch(false) => f.write_str("off"),
            Level::Count(count) => write!(f, "{count}"),
            // People say 1460 bytes, not 1.426 KiB.
            Level::Size(size) if size.0 < 10_240 && size.0 % 1024 != 0 => {
                write!(f, "{} B", size.0)
            }
            Level::Size(size) => write!(f, "{size}"),
            Level::Word(word) => f.write_str(word),
            Level::Rate(bps) => write!(f, "{}", BitsPerSec(*bps as f64)),
            Level::Ppm(ppm) => f.write_str(&Unit::Percent.display(f64::from(*ppm) / 1e4)),
        }
    }
}

impl Level {
    /// Returns whether nothing is set at it.
    pub fn is_auto(&self) -> bool {
        matches!(self, Level::Word(word) if word == AUTO)
    }

    /// Returns the level as a position on an axis, where it has one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Level::Ppm(ppm) => Some(f64::from(*ppm) / 1e6),
            other => other.whole().map(|number| number as f64),
        }
    }

    /// Returns the level of the same kind that counts `number`; absent of a switch or a word.
    pub fn with_whole(&self, number: u64) -> Option<Level> {
        match self {
            Level::Count(_) => Some(Level::Count(number)),
            Level::Rate(_) => Some(Level::Rate(number)),
            Level::Size(_) => Some(Level::Size(Bytes(number))),
            Level::Ppm(_) => u32::try_from(number).ok().map(Level::Ppm),
            Level::Switch(_) | Level::Word(_) => None,
        }
    }

    /// Returns the number of what it counts, where it has one: bytes, bits per second, parts
    /// per million.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Level::Count(number) | Level::Rate(number) => Some(*number),
            Level::Size(size) => Some(size.0),
            Level::Ppm(ppm) => Some((*ppm).into()),
            Level::Switch(_) | Level::Word(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_of_a_group_is_written_and_read_by_its_name() {
        let name = GroupName::new("a-name-of-16-let").expect("a name");
        assert_eq!(name.as_str(), "a-name-of-16-let");
        let factor = Factor::Connections.of(name).expect("a factor of a group");
        let cell = Cell::from([
            (Factor::Connections, Level::Count(2)),
            (factor, Level::Count(8)),
        ]);
        let written = serde_json::to_value(&cell).expect("it is plain data");
        let expected = serde_json::json!({
            "connections": { "count": 2 },
            "a-name-of-16-let.connections": { "count": 8 },
        });
        assert_eq!(written, expected);
        let text = written.to_string();
        assert_eq!(
            serde_json::from_str::<Cell>(&text).expect("it was written"),
            cell
        );
        assert_eq!(factor.beside(), Some((name, Factor::Connections)));
        for none in [
            "connection",
            "A.connections",
            "probe.mtu",
            "a.b.connections",
            ".nagle",
        ] {
            assert_eq!(Factor::named(none), None, "{none}");
            let text = format!("\"{none}\"");
            serde_json::from_str::<Factor>(&text).expect_err(none);
        }
    }
}
