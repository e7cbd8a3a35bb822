//! Outcomes with their levels, as every later step reads them.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Experiment, Factor, Level};
use linerate_model::finding::{Estimate, Evidence, EvidenceList};
use linerate_model::histogram::Histogram;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::response::is_share;
use linerate_model::run::{FlowRecord, HostPart, HostRecord, Recording, share_a_kernel};
use linerate_model::unit::Unit;
use linerate_model::wire::Wire;
use linerate_model::workload::{Direction, Workload};

use crate::compare::interval::{median_or_range, quantile_interval, student_t_interval};
use crate::compare::noise::Noise;
use crate::diagnose::verdict::Verdict;
use crate::precision::of_runs;
use crate::proof::Proofs;
use crate::reduce::{
    Floors, HALVES_SHARE_MAX, Outcome, Together, Values, by_trial, describe, name, note_unread,
    one_way, outcomes, outcomes_one_way, pooled_latency,
};
use crate::verdicts::{self, Verdicts};
use crate::wire_use::Path;
use crate::words;

/// A recording with everything that was reduced from it.
pub(crate) struct Dataset<'a> {
    /// The recording.
    pub(crate) recording: &'a Recording,
    /// All outcomes, in the order of execution.
    pub(crate) outcomes: Vec<Outcome>,
    /// The cells that were tried, by experiment in the plan's order, then by levels.
    pub(crate) cells: Vec<CellOutcomes<'a>>,
    /// The links.
    pub(crate) path: Path,
    /// Whether figures of other systems stand beside what was measured.
    pub(crate) published: bool,
    /// What is added to the number of a trial for each further group; absent where trials have one.
    pub(crate) step: Option<u32>,
    /// Trials of several groups as a whole.
    pub(crate) together: Vec<Together>,
    /// What was changed after the measurement to prove what limits it, and what that did.
    pub(crate) proofs: Proofs,
    /// What the comparisons of the whole report decide, once asked for.
    verdicts: OnceCell<Verdicts>,
    /// The shortest round trips, once asked for.
    floors: OnceCell<Floors>,
}

/// The outcomes of one cell.
pub(crate) struct CellOutcomes<'a> {
    /// Its experiment.
    pub(crate) experiment: &'a Experiment,
    /// Its levels.
    pub(crate) cell: Cell,
    /// Its traffic.
    pub(crate) workload: Workload,
    /// Outcomes that may be averaged, in the order of execution.
    pub(crate) valid: Vec<Outcome>,
    /// Outcomes that may not.
    pub(crate) invalid: Vec<Outcome>,
    /// Latency of the transactions of each valid outcome.
    latencies: Vec<Histogram>,
    /// What is known of the noise from all cells of the experiment.
    siblings: Rc<Siblings>,
    /// What its responses cannot exceed.
    bounds: Bounds,
    /// Estimates of responses, once asked for: several chapters and rules ask for the same.
    estimates: RefCell<BTreeMap<String, Option<Estimate>>>,
    /// What limits it, once asked for.
    pub(crate) limiter: OnceCell<Option<Verdict>>,
}

/// What no response of a cell exceeds.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// Payload that the links carry.
    limit_bps: Option<f64>,
    /// CPUs of the host that CPU time is counted on.
    cpus: Option<f64>,
    /// Payload of a full-size segment.
    segment_bytes: Option<f64>,
}

/// Values of all cells of an experiment, and the noise that they show.
#[derive(Default)]
struct Siblings {
    /// By response, the values of each cell with their places in the order of execution.
    values: BTreeMap<String, Vec<Vec<(u32, f64)>>>,
    /// The noise of a response with its form for a number of replicates, once asked for.
    known: RefCell<BTreeMap<String, Option<Rc<Noise>>>>,
    forms: RefCell<BTreeMap<(String, usize), (f64, f64)>>,
}

impl Siblings {
    fn of<'o>(cells: impl Iterator<Item = &'o Vec<Outcome>>) -> Self {
        let mut values: BTreeMap<String, Vec<Vec<(u32, f64)>>> = BTreeMap::new();
        for valid in cells {
            let names: BTreeSet<&String> =
                valid.iter().flat_map(|it| it.responses.keys()).collect();
            for name in names {
                let value = |outcome: &Outcome| Some((outcome.place, outcome.value(name)?));
                let of_cell = valid.iter().filter_map(value);
                values
                    .entry(name.clone())
                    .or_default()
                    .push(of_cell.collect());
            }
        }
        Self {
            values,
            ..Self::default()
        }
    }

    fn noise(&self, response: &str) -> Option<Rc<Noise>> {
        let mut known = self.known.borrow_mut();
        let pooled = || {
            let cells = self.values.get(response)?;
            Noise::pooled(cells.iter().map(Vec::as_slice)).map(Rc::new)
        };
        known
            .entry(response.to_owned())
            .or_insert_with(pooled)
            .clone()
    }

    /// Whether no other cell has the response.
    fn is_alone(&self, response: &str) -> bool {
        let cells = self.values.get(response);
        cells.is_some_and(|cells| cells.len() == 1)
    }

    fn form(&self, response: &str, noise: &Noise, n: usize) -> (f64, f64) {
        let mut forms = self.forms.borrow_mut();
        *forms
            .entry((response.to_owned(), n))
            .or_insert_with(|| noise.form(n))
    }
}

impl<'a> Dataset<'a> {
    /// Returns the experiments, in the plan's order.
    pub(crate) fn experiments(&self) -> &'a [Experiment] {
        &self.recording.document.plan.experiments
    }

    /// Returns the hosts.
    pub(crate) fn hosts(&self) -> &'a [HostRecord] {
        &self.recording.document.hosts
    }

    /// Returns all trials, in the order of execution.
    pub(crate) fn trials(&self) -> Vec<TrialId> {
        self.outcomes.iter().map(|outcome| outcome.trial).collect()
    }

    /// Returns the trials whose datagrams are longer than a packet of the path, with its framing and their bytes.
    pub(crate) fn cut_datagrams(&self) -> impl Iterator<Item = (TrialId, Wire, u64)> {
        self.outcomes.iter().filter_map(|outcome| {
            let planned = self.recording.document.plan.trial(outcome.trial)?;
            let path = self.path.with(&planned.cell);
            let (wire, bytes) = path.cut_datagram(&planned.workload)?;
            Some((outcome.trial, wire, bytes))
        })
    }

    /// Returns the outcomes that may be averaged.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &Outcome> + Clone {
        self.outcomes.iter().filter(|outcome| outcome.is_valid())
    }

    /// Returns the cells that have any of these.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &CellOutcomes<'a>> {
        self.cells.iter().filter(|cell| !cell.valid.is_empty())
    }

    /// Returns what was recorded of the flows of a cell's trials that may be averaged.
    pub(crate) fn flows_of(
        &self,
        cell: &CellOutcomes<'_>,
    ) -> impl Iterator<Item = &'a FlowRecord> + use<'a> {
        let trials = cell.trials();
        let flows = self.recording.flows.iter();
        flows.filter(move |flow| trials.contains(&flow.trial))
    }

    /// Returns the CPUs of the host that CPU time is counted on.
    pub(crate) fn cpus(&self) -> Option<f64> {
        cpus(self.recording)
    }

    /// Returns how many trials there are among these, each counted once, however many groups it has.
    pub(crate) fn count(&self, trials: impl IntoIterator<Item = TrialId>) -> usize {
        let once = |trial: TrialId| self.step.map_or(trial.0, |step| trial.0 % step);
        trials
            .into_iter()
            .map(once)
            .collect::<BTreeSet<u32>>()
            .len()
    }

    /// Returns how many trials the plan has.
    pub(crate) fn planned(&self) -> usize {
        self.count(
            self.recording
                .document
                .plan
                .trials
                .iter()
                .map(|trial| trial.id),
        )
    }

    /// Returns how many trials were done.
    pub(crate) fn done(&self) -> usize {
        self.count(self.outcomes.iter().map(|outcome| outcome.trial))
    }

    /// Returns how many of them are invalid: those of which a group may not be averaged.
    pub(crate) fn invalid(&self) -> usize {
        let invalid = self.outcomes.iter().filter(|outcome| !outcome.is_valid());
        self.count(invalid.map(|outcome| outcome.trial))
    }

    /// Reduces `recording` and sorts the outcomes into cells.
    pub(crate) fn new(recording: &'a Recording) -> Self {
        Self::of(recording, outcomes(recording))
    }

    /// Sorts the outcomes of `recording` into cells.
    pub(crate) fn of(recording: &'a Recording, outcomes: Vec<Outcome>) -> Self {
        let plan = &recording.document.plan;
        let path = Path::new(&recording.document.hosts);
        let flows = by_trial(recording);
        let mut cells = Vec::new();
        for experiment in &plan.experiments {
            let own = outcomes
                .iter()
                .filter(|it| it.experiment == experiment.name);
            let mut sorted: BTreeMap<&Cell, (Vec<Outcome>, Vec<Outcome>)> = BTreeMap::new();
            for outcome in own {
                let (valid, invalid) = sorted.entry(&outcome.cell).or_default();
                let side = if outcome.is_valid() { valid } else { invalid };
                side.push(outcome.clone());
            }
            let siblings = Rc::new(Siblings::of(sorted.values().map(|(valid, _)| valid)));
            for (cell, (valid, invalid)) in sorted {
                let first = valid.first().or(invalid.first());
                let Some(trial) = first.and_then(|outcome| plan.trial(outcome.trial)) else {
                    continue;
                };
                let workload = trial.workload.clone();
                let path = path.with(cell);
                cells.push(CellOutcomes {
                    latencies: latencies(&flows, &valid),
                    siblings: Rc::clone(&siblings),
                    bounds: Bounds {
                        // Both ways, ACKs take room that only measured frames tell.
                        limit_bps: (path.limit_bps(&workload, None, None))
                            .filter(|_| !workload.goes_both_ways()),
                        cpus: cpus(recording),
                        segment_bytes: path.segment_bytes(&workload),
                    },
                    experiment,
                    cell: cell.clone(),
                    workload,
                    valid,
                    invalid,
                    estimates: RefCell::default(),
                    limiter: OnceCell::new(),
                });
            }
        }
        Self {
            recording,
            outcomes,
            cells,
            path,
            published: false,
            step: None,
            together: Vec::new(),
            proofs: Proofs::default(),
            verdicts: OnceCell::new(),
            floors: OnceCell::new(),
        }
    }

    /// Returns the shortest round trip of each client over all trials.
    pub(crate) fn floors(&self) -> &Floors {
        self.floors.get_or_init(|| Floors::of(self.recording))
    }

    /// Returns the links as they are while the hosts have the levels of `cell`.
    pub(crate) fn path_of(&self, cell: &CellOutcomes<'_>) -> Path {
        self.path.with(&cell.cell)
    }

    /// Returns the payload that the links carry in segments and with ACKs as those of `cell` were.
    pub(crate) fn limit_bps(&self, cell: &CellOutcomes<'_>) -> Option<f64> {
        let payload = cell.mean(name::PAYLOAD_PER_SEGMENT);
        let per_ack = cell.mean(name::SEGMENTS_PER_ACK);
        self.path_of(cell)
            .limit_bps(&cell.workload, payload, per_ack)
    }

    /// Returns `cell`, whose payload goes both ways, as those of each of `ways`: to be diagnosed.
    pub(crate) fn one_way(
        &self,
        cell: &CellOutcomes<'a>,
        ways: [Direction; 2],
    ) -> Option<[CellOutcomes<'a>; 2]> {
        let mut valid = [Vec::new(), Vec::new()];
        for whole in &cell.valid {
            let outcomes = outcomes_one_way(self.recording, whole, ways)?;
            let pairs = valid.iter_mut().zip(outcomes);
            pairs.for_each(|(valid, outcome)| valid.push(outcome));
        }
        let [first, second] = valid;
        let path = self.path_of(cell);
        let of = |way, valid| {
            let workload = one_way(&cell.workload, way);
            CellOutcomes {
                valid,
                bounds: Bounds {
                    limit_bps: path.limit_bps(&workload, None, None),
                    ..cell.bounds
                },
                workload,
                ..cell.bare()
            }
        };
        Some([of(ways[0], first), of(ways[1], second)])
    }

    /// Returns the cells of the experiment called `name`.
    pub(crate) fn cells_of(&self, name: &str) -> Vec<&CellOutcomes<'a>> {
        self.cells
            .iter()
            .filter(|cell| cell.experiment.name == name)
            .collect()
    }

    /// Returns the cell of the experiment called `name` that has most of what `of` reads, and how much.
    pub(crate) fn most(
        &self,
        name: &str,
        of: impl Fn(&CellOutcomes<'_>) -> Option<f64>,
    ) -> Option<(&CellOutcomes<'a>, f64)> {
        let cells = self.cells_of(name).into_iter();
        let known = cells.filter_map(|cell| Some((cell, of(cell)?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the cell that differs from `cell` in `factor` only, which has that `level`.
    pub(crate) fn beside(
        &self,
        cell: &CellOutcomes<'_>,
        factor: Factor,
        level: Level,
    ) -> Option<&CellOutcomes<'a>> {
        let mut wanted = cell.cell.clone();
        wanted.insert(factor, level);
        self.cell(&cell.experiment.name, &wanted)
    }

    /// Returns a cell of the experiment called `name`.
    pub(crate) fn cell(&self, name: &str, levels: &Cell) -> Option<&CellOutcomes<'a>> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.experiment.name == name && cell.cell == *levels)
    }

    /// Returns the experiments of a chapter.
    pub(crate) fn experiments_of(&self, chapter: u32) -> impl Iterator<Item = &'a Experiment> {
        let experiments = self.experiments().iter();
        experiments.filter(move |experiment| experiment.chapter == Some(chapter))
    }

    /// Returns whether `cell` shows the host as it is: none of its levels is a burden that the
    /// experiment itself puts on it.
    ///
    /// Small buffers, segments cut short, another congestion control than the hosts', losses on purpose and floods of datagrams or of small segments,
    /// which are there to fill the CPUs, show what would be; chapters tell of them, no finding does. Full segments are
    /// no flood. What shares its trial with other groups is not the host's best.
    pub(crate) fn is_as_it_is(&self, cell: &CellOutcomes<'_>) -> bool {
        cell.experiment.beside.is_empty() && self.is_unburdened(cell)
    }

    /// Returns whether none of the levels of `cell` is a burden that the experiment itself puts on the host.
    pub(crate) fn is_unburdened(&self, cell: &CellOutcomes<'_>) -> bool {
        let is_burden =
            |factor| cell.experiment.levels(factor).len() > 1 && cell.number(factor).is_some();
        // Where the hosts were measured as they are, too.
        let is_changed = |(factor, level): (&Factor, &Level)| {
            let mut levels = cell.experiment.levels(*factor).iter();
            factor.knob().is_some() && !level.is_auto() && levels.any(Level::is_auto)
        };
        let has_full_segments = || {
            let payload = cell.mean(name::PAYLOAD_PER_SEGMENT);
            let most = cell.mean(name::SEND_MSS);
            payload
                .zip(most)
                .is_some_and(|(payload, most)| payload >= FULL_SEGMENT_SHARE_MIN * most)
        };
        let asks_for_packets = cell.workload.manner.transport == Transport::Udp
            || (cell.experiment.response == name::DATA_SEGMENTS && !has_full_segments());
        let is_flood = self.recording.document.study
            && asks_for_packets
            && cell.workload.manner.rate_bps.is_none();
        let is_foreign = match (cell.level(Factor::Congestion), self.own_congestion()) {
            (Some(Level::Word(level)), Some(own)) => level != own,
            _ => false,
        };
        !is_burden(Factor::SocketBuffer)
            && !is_foreign
            && !cell.cell.iter().any(is_changed)
            && !is_burden(Factor::MssBytes)
            && !is_burden(Factor::Rate)
            && cell.workload.link_loss_ppm.unwrap_or(0) == 0
            && !is_flood
    }

    /// Returns the congestion control of every host, any of which may send; absent where they differ or one is unknown.
    pub(crate) fn own_congestion(&self) -> Option<&'a str> {
        let own =
            |host: &'a HostRecord| host.snapshot.text("sysctl.net.ipv4.tcp_congestion_control");
        let mut hosts = self.hosts().iter().map(own);
        let first = hosts.next()??;
        hosts.all(|other| other == Some(first)).then_some(first)
    }

    /// Returns what the comparisons of the whole report decide.
    pub(crate) fn verdicts(&self) -> &Verdicts {
        self.verdicts.get_or_init(|| verdicts::decide(self))
    }

    /// Returns whether nothing is varied: what `linerate run HOST` plans.
    pub(crate) fn is_one_measurement(&self) -> bool {
        matches!(self.experiments(), [one] if one.factors.is_empty())
    }

    /// Returns the clients of the run.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &'a HostRecord> {
        let hosts = self.hosts().iter();
        hosts.filter(|host| host.part == HostPart::Client)
    }

    /// Returns whether the ends of a flow may share a CPU: in a lab, over loopback, and between other
    /// namespaces of one machine.
    pub(crate) fn is_one_machine(&self) -> bool {
        let server = self.recording.document.server();
        let address = server.map(|host| host.data_address.parse());
        let loopback = matches!(address, Some(Ok::<std::net::IpAddr, _>(ip)) if ip.is_loopback());
        self.is_lab() || loopback || share_a_kernel(self.hosts())
    }

    /// Returns whether all hosts are namespaces of one machine.
    pub(crate) fn is_lab(&self) -> bool {
        self.hosts().iter().any(|host| host.lab)
    }
}

/// Part of a whole segment's payload from which on segments are whole: the last of a message may be short.
const FULL_SEGMENT_SHARE_MIN: f64 = 0.9;

/// Responses that are quantiles of the latency.
const LATENCY_QUANTILES: &[(&str, f64)] = &[
    (name::RTT_P50, 0.5),
    (name::RTT_P99, 0.99),
    (name::RTT_P999, 0.999),
];

/// Those of them that a few bad milliseconds of one trial rule.
pub(crate) const TAILS: [&str; 2] = [name::RTT_P99, name::RTT_P999];

/// Returns the latencies of each of `valid` that has any.
fn latencies(flows: &BTreeMap<TrialId, Vec<&FlowRecord>>, valid: &[Outcome]) -> Vec<Histogram> {
    let of_trial = |outcome: &Outcome| {
        let pooled = pooled_latency(flows.get(&outcome.trial)?);
        (pooled.count() > 0).then_some(pooled)
    };
    valid.iter().filter_map(of_trial).collect()
}

/// What is told in CPUs that need not be the server's.
const NOT_OF_SERVER: [&str; 5] = [
    name::CPU_PER_GBIT,
    name::CLIENT_WORKERS,
    name::OTHERS_THERE,
    name::OTHERS_THERE_USER,
    name::QUOTA,
];

/// Returns the CPUs of the server, which are everybody's in a lab.
fn cpus(recording: &Recording) -> Option<f64> {
    recording.document.server()?.snapshot.number("cpu.online")
}

impl<'a> CellOutcomes<'a> {
    /// Returns the cell with its invalid outcomes in place of valid ones, if it has no others: to be
    /// diagnosed, never averaged.
    pub(crate) fn of_invalid(&self) -> Option<CellOutcomes<'a>> {
        let has_none = self.valid.is_empty() && !self.invalid.is_empty();
        has_none.then(|| CellOutcomes {
            valid: self.invalid.clone(),
            ..self.bare()
        })
    }

    /// Returns the cell without what was measured of it.
    fn bare(&self) -> CellOutcomes<'a> {
        CellOutcomes {
            experiment: self.experiment,
            cell: self.cell.clone(),
            workload: self.workload.clone(),
            valid: Vec::new(),
            invalid: Vec::new(),
            latencies: Vec::new(),
            siblings: Rc::default(),
            bounds: Bounds::default(),
            estimates: RefCell::default(),
            limiter: OnceCell::new(),
        }
    }

    /// Returns what limits it, once that was asked for.
    pub(crate) fn known_limiter(&self) -> Option<Limiter> {
        let verdict = self.limiter.get()?.as_ref()?;
        Some(verdict.limiter)
    }

    /// Returns mean and interval of what `derive` computes of each valid outcome.
    pub(crate) fn derived(
        &self,
        unit: Unit,
        derive: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<Estimate> {
        let values: Vec<f64> = self.valid.iter().filter_map(derive).collect();
        student_t_interval(&values, unit)
    }

    /// Returns the latencies of the transactions of all valid outcomes together.
    pub(crate) fn latency(&self) -> Histogram {
        let mut all = Histogram::default();
        self.latencies.iter().for_each(|one| all.merge(one));
        all
    }

    /// Returns the valid values of a response.
    pub(crate) fn values(&self, response: &str) -> Vec<f64> {
        let values = self
            .valid
            .iter()
            .filter_map(|outcome| outcome.value(response));
        values.collect()
    }

    /// Returns mean and interval of a response over the valid outcomes.
    ///
    /// The interval knows of the noise of all cells of the experiment, and ends where what is measured
    /// cannot be. A quantile that some trials have too few transactions for is taken of the
    /// transactions of all trials together; of others in the tail it is the median of the trials, which one
    /// bad trial does not rule.
    pub(crate) fn estimate(&self, response: &str) -> Option<Estimate> {
        let known = self.estimates.borrow().get(response).copied();
        let estimate = known.unwrap_or_else(|| {
            let estimate = self.estimated(response);
            let mut estimates = self.estimates.borrow_mut();
            estimates.insert(response.to_owned(), estimate);
            estimate
        });
        if estimate.is_none() {
            self.note_unread(response);
        }
        estimate
    }

    fn note_unread(&self, response: &str) {
        if let Some(outcome) = self.valid.first() {
            note_unread(outcome, response);
        }
    }

    fn estimated(&self, response: &str) -> Option<Estimate> {
        let values = self.values(response);
        let share = LATENCY_QUANTILES.iter().find(|(name, _)| *name == response);
        if let Some((_, share)) = share
            && values.len() < self.valid.len()
        {
            let trials: Vec<&Histogram> = self.latencies.iter().collect();
            return quantile_interval(&trials, *share);
        }
        if TAILS.contains(&response) {
            return median_or_range(&values, describe(response).unit);
        }
        let unit = describe(response).unit;
        if self.siblings.is_alone(response) {
            return Some(self.bounded(response, of_runs(&values, unit)?, &values));
        }
        let plain = student_t_interval(&values, unit)?;
        let noise = self.siblings.noise(response);
        // Of values that are all the same the noise of other cells says nothing; times are rounded to those of a
        // histogram, and may be alike by that.
        let is_exact = plain.unit != Unit::Nanoseconds && plain.low.is_none();
        let known = noise
            .filter(|_| values.len() > 2 && !is_exact && values.iter().all(|value| *value > 0.0));
        let estimate = known.map_or(plain, |noise| {
            let form = self.siblings.form(response, &noise, values.len());
            noise.widen(&values, form, plain)
        });
        Some(self.bounded(response, estimate, &values))
    }

    /// Returns the noise of a response over all cells of the experiment.
    pub(crate) fn noise(&self, response: &str) -> Option<Rc<Noise>> {
        self.siblings.noise(response)
    }

    /// Cuts an interval at what the response cannot exceed.
    fn bounded(&self, response: &str, estimate: Estimate, values: &[f64]) -> Estimate {
        let most = match estimate.unit {
            Unit::Ratio if is_share(response) => Some(1.0),
            Unit::Cpus if !NOT_OF_SERVER.contains(&response) => self.bounds.cpus,
            Unit::BitsPerSecond if response == name::THROUGHPUT => self.bounds.limit_bps,
            Unit::Bytes if response == name::PAYLOAD_PER_SEGMENT => self.bounds.segment_bytes,
            _ => None,
        };
        // A value above the bound was let pass by the rule that refuses it; it stays inside.
        let high = estimate.high.map(|high| {
            most.map_or(high, |most| {
                values.iter().copied().fold(most, f64::max).min(high)
            })
        });
        // What has no width says nothing of where other trials lie.
        let (low, high) = if estimate.low == high {
            (None, None)
        } else {
            (estimate.low, high)
        };
        Estimate {
            low,
            high,
            ..estimate
        }
    }

    /// Returns the mean of a response over the valid outcomes.
    pub(crate) fn mean(&self, response: &str) -> Option<f64> {
        self.estimate(response).map(|estimate| estimate.value)
    }

    /// Returns the sum of a response over the valid outcomes; absent when one has none.
    pub(crate) fn sum(&self, response: &str) -> Option<f64> {
        let values = self.valid.iter().map(|outcome| outcome.value(response));
        let sum = (!self.valid.is_empty()).then(|| values.sum::<Option<f64>>())?;
        if sum.is_none() {
            self.note_unread(response);
        }
        sum
    }

    /// Returns mean and interval of the response that the experiment is about.
    pub(crate) fn main(&self) -> Option<Estimate> {
        self.estimate(&self.experiment.response)
    }

    /// Returns that the rate of the cell was still rising or falling at the end of its windows, where
    /// all of several trials agree in it.
    pub(crate) fn trend(&self) -> Option<&'static str> {
        let halves = self.values(name::HALVES);
        let all = |is_so: fn(f64) -> bool| {
            halves.len() == self.valid.len()
                && halves.len() >= 2
                && halves.iter().all(|half| is_so(*half))
        };
        if all(|half| half > 1.0 + HALVES_SHARE_MAX) {
            Some("still rising")
        } else if all(|half| half < 1.0 - HALVES_SHARE_MAX) {
            Some("still falling")
        } else {
            None
        }
    }

    /// Returns the trials that may be averaged.
    pub(crate) fn trials(&self) -> Vec<TrialId> {
        self.valid.iter().map(|outcome| outcome.trial).collect()
    }

    /// Returns a response as a piece of evidence, if it was read.
    pub(crate) fn evidence(&self, what: impl Into<String>, response: &str) -> Option<Evidence> {
        Some(Evidence {
            what: what.into(),
            estimate: self.estimate(response)?,
            trials: self.trials(),
        })
    }

    /// Returns what a claim rests on, as words and response; the first must have been read.
    pub(crate) fn proof(&self, pieces: &[(&str, &str)]) -> Option<EvidenceList> {
        self.proof_with(pieces, [])
    }

    /// Returns the same with what was `computed` behind the first.
    pub(crate) fn proof_with<'w>(
        &self,
        pieces: &[(&str, &str)],
        computed: impl IntoIterator<Item = (&'w str, Estimate)>,
    ) -> Option<EvidenceList> {
        let (first, more) = pieces.split_first()?;
        let evidence = |(what, response): &(&str, &str)| self.evidence(*what, response);
        let computed = computed.into_iter().map(|(what, estimate)| Evidence {
            what: what.to_owned(),
            estimate,
            trials: self.trials(),
        });
        let more = more.iter().filter_map(evidence);
        let more = computed.chain(more).collect();
        Some(EvidenceList::new(evidence(first)?, more))
    }

    /// Returns the level of `factor`.
    pub(crate) fn level(&self, factor: Factor) -> Option<&Level> {
        self.cell.get(&factor)
    }

    /// Returns the level of `factor` as a number.
    pub(crate) fn number(&self, factor: Factor) -> Option<f64> {
        self.level(factor)?.as_number()
    }

    /// Returns the bytes of one send call of a stream.
    pub(crate) fn message_bytes(&self) -> Option<u64> {
        let (_, message_bytes) = self.workload.traffic.stream()?;
        Some(message_bytes.0)
    }

    /// Returns whether the traffic is request and response.
    pub(crate) fn is_rr(&self) -> bool {
        self.workload.traffic.is_transactional()
    }
}

impl Values for CellOutcomes<'_> {
    fn value(&self, response: &str) -> Option<f64> {
        self.mean(response)
    }
}

/// Returns those of `cells` of which a response is known, with it, the least first.
pub(crate) fn by_value<'c, 'd: 'c, 'a: 'd>(
    cells: impl IntoIterator<Item = &'c &'d CellOutcomes<'a>>,
    response: &str,
) -> Vec<(&'d CellOutcomes<'a>, Estimate)> {
    let known = cells
        .into_iter()
        .filter_map(|cell| Some((*cell, cell.estimate(response)?)));
    let mut known: Vec<_> = known.collect();
    known.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    known
}

/// Returns the factors that differ between `cells`, without `clients` where it follows from
/// `connections`.
pub(crate) fn varied(cells: &[&CellOutcomes<'_>]) -> Vec<Factor> {
    let levels = |factor: &Factor| -> BTreeSet<Option<&Level>> {
        cells.iter().map(|cell| cell.level(*factor)).collect()
    };
    let all: BTreeSet<Factor> = cells
        .iter()
        .flat_map(|cell| cell.cell.keys().copied())
        .collect();
    let mut factors: Vec<Factor> = all
        .into_iter()
        .filter(|factor| levels(factor).len() > 1)
        .collect();
    if factors.contains(&Factor::Connections)
        && follows(cells, Factor::Connections, Factor::Clients)
    {
        factors.retain(|factor| *factor != Factor::Clients);
    }
    factors
}

/// Returns whether each level of `leader` always comes with the same level of `follower`.
fn follows(cells: &[&CellOutcomes<'_>], leader: Factor, follower: Factor) -> bool {
    let pairs: BTreeSet<_> = cells
        .iter()
        .map(|cell| (cell.level(leader), cell.level(follower)))
        .collect();
    let leaders: BTreeSet<_> = cells.iter().map(|cell| cell.level(leader)).collect();
    pairs.len() == leaders.len()
}

/// Cells that differ in one factor only (and in what follows from it).
pub(crate) struct CellGroup<'d, 'a> {
    /// Those of the shared levels that differ between groups, in words; empty for a single group.
    pub(crate) words: String,
    /// The cells by level of the factor, ascending.
    pub(crate) cells: Vec<&'d CellOutcomes<'a>>,
}

/// Returns `cells` grouped so that only `x` differs inside a group, in order of the other levels.
pub(crate) fn groups<'d, 'a>(cells: &[&'d CellOutcomes<'a>], x: Factor) -> Vec<CellGroup<'d, 'a>> {
    let names: Vec<Factor> = varied(cells)
        .into_iter()
        .filter(|factor| *factor != x)
        .collect();
    let tied = x == Factor::Connections && follows(cells, x, Factor::Clients);
    let mut groups: BTreeMap<Cell, Vec<&'d CellOutcomes<'a>>> = BTreeMap::new();
    for cell in cells {
        let mut others = cell.cell.clone();
        others.remove(&x);
        if tied {
            others.remove(&Factor::Clients);
        }
        groups.entry(others).or_default().push(cell);
    }
    let group = |(others, mut cells): (Cell, Vec<&'d CellOutcomes<'a>>)| {
        cells.sort_by_key(|cell| cell.level(x).cloned());
        let words = words::cell(&others, &names);
        CellGroup { words, cells }
    };
    groups.into_iter().map(group).collect()
}
