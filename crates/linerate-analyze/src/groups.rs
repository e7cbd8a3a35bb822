//! A recording whose trials have several groups, seen as one of each group.
//!
//! A group is the unit of analysis: its view has its workload, its flows and what was read of them, so that all that
//! reduces and explains works as it does for one workload. What is the host's as a whole – CPUs, devices, threads,
//! protocol counters, profiles – belongs to no group alone, and is absent from a view where other groups ran.
//!
//! 1. Flows of a view are numbered from zero on, as `Workload::flows` makes them.
//! 2. A host tells the latencies of a group by one of its flows. Without a flow they are those of a host that has one
//!    group only, the trial's first; or, as once recorded, those of the only group that makes transactions.
//! 3. What varies of the view's own group is called there as of a workload alone, and what varies of another by that
//!    group's name: `probe.connections` of the trial is `connections` of the probe, and `connections` is
//!    `stream.connections` to it.
//! 4. The links carry all groups together: above what they carry, no group's number is believed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use linerate_model::experiment::{Cell, Control, Experiment, Factor};
use linerate_model::group::{self, GroupName};
use linerate_model::plan::{Plan, Repeat, Trial};
use linerate_model::run::{FlowOutcome, FlowRecord, Recording, Validity};
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::workload::{Group, Workload};
use linerate_model::{FlowId, TrialId};

use crate::proof::{self, Proofs};
use crate::reduce::{self, Outcome};

/// A recording as one of its groups has it.
#[derive(Debug, Clone)]
pub struct View {
    /// The group's name.
    pub name: String,
    /// The names of those that go on beside it.
    pub beside: Vec<String>,
    /// What was recorded of it.
    pub recording: Recording,
}

/// What of a trial is whose group's.
#[derive(Debug, Clone)]
pub struct Lens {
    /// One trial for each group, with that group's workload alone.
    trials: Vec<Trial>,
    /// The number of the first flow of each group, and that behind the last.
    firsts: Vec<u32>,
    /// The group that latencies without a flow belong to, where that is certain.
    transacts: Option<usize>,
}

impl Lens {
    /// Returns that of `trial`.
    pub fn of(trial: &Trial) -> Self {
        let workloads: Vec<&Workload> = trial.workloads().collect();
        let mut firsts = vec![0];
        for workload in &workloads {
            firsts.push(firsts.last().unwrap_or(&0) + workload.connections);
        }
        let transacts = |at: &usize| workloads[*at].traffic.is_transactional();
        let mut transactional = (0..workloads.len()).filter(transacts);
        let transacts = match (transactional.next(), transactional.next()) {
            (Some(0), _) => Some(0),
            (Some(only), None) => Some(only),
            _ => None,
        };
        let names: Vec<&str> = trial.group_names().collect();
        let alone = |(at, workload): (usize, &&Workload)| Trial {
            experiment: experiment_name(&trial.experiment, at, names[at]),
            workload: (*workload).clone(),
            beside: Vec::new(),
            cell: seen_cell(&trial.cell, names[at], names[0]),
            ..trial.clone()
        };
        Self {
            trials: workloads.iter().enumerate().map(alone).collect(),
            firsts,
            transacts,
        }
    }

    /// Returns the trial as each group has it, in order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Returns the number that a flow has in the view of group `at`, if it is that group's.
    fn flow(&self, at: usize, flow: FlowId) -> Option<FlowId> {
        let (first, end) = (*self.firsts.get(at)?, *self.firsts.get(at + 1)?);
        (first..end)
            .contains(&flow.0)
            .then(|| FlowId(flow.0 - first))
    }

    /// Returns a sample as the view of group `at` has it, if it belongs there.
    pub fn sample(&self, at: usize, sample: TrialSample) -> Option<TrialSample> {
        let subject = match &sample.subject {
            _ if self.trials.len() == 1 => return Some(sample),
            Subject::Flow(flow, end) => Subject::Flow(self.flow(at, *flow)?, *end),
            Subject::Latency(Some(flow), about) => {
                self.flow(at, *flow)?;
                Subject::Latency(None, *about)
            }
            Subject::Latency(None, _) if self.transacts == Some(at) => sample.subject.clone(),
            _ => return None,
        };
        Some(TrialSample { subject, ..sample })
    }
}

/// Returns the name that an experiment has in the view of one of its groups.
pub(crate) fn experiment_name(experiment: &str, at: usize, group: &str) -> String {
    match at {
        0 => experiment.to_owned(),
        _ => format!("{experiment}-{group}"),
    }
}

/// Returns `factor` of a trial whose first group is `first` as the view of `group` has it.
fn seen(factor: Factor, group: &str, first: &str) -> Factor {
    if group == first {
        return factor;
    }
    match factor.beside() {
        Some((name, own)) if name.as_str() == group => own,
        Some(_) => factor,
        // A knob is the hosts', and so everybody's.
        None => GroupName::new(first)
            .and_then(|first| factor.of(first))
            .unwrap_or(factor),
    }
}

/// Returns the levels of a trial whose first group is `first` as the view of `group` has them.
pub(crate) fn seen_cell(cell: &Cell, group: &str, first: &str) -> Cell {
    let levels = cell.iter();
    levels
        .map(|(factor, level)| (seen(*factor, group, first), level.clone()))
        .collect()
}

/// Returns whether a trial of `recording` has several groups. Those of a view have one, and only its experiments say
/// what went on beside it.
fn are_several(recording: &Recording) -> bool {
    let mut trials = recording.document.plan.trials.iter();
    trials.any(|trial| !trial.beside.is_empty())
}

/// Whether a plan is a probe alone, and the same beside bulk.
pub(crate) fn is_loaded(plan: &Plan) -> bool {
    let Some((alone, beside)) = plan.experiments.split_first() else {
        return false;
    };
    let is_beside = |one: &Experiment| one.beside.len() == 1 && one.workload == alone.workload;
    let is_fixed = plan.experiments.iter().all(|it| it.factors.is_empty());
    is_fixed && alone.beside.is_empty() && !beside.is_empty() && beside.iter().all(is_beside)
}

/// Returns `recording` as each of its groups has it, in their order; none where every trial has one group.
pub fn views(recording: &Recording) -> Vec<View> {
    if !are_several(recording) {
        return Vec::new();
    }
    let plan = &recording.document.plan;
    let lenses: BTreeMap<TrialId, Lens> = plan
        .trials
        .iter()
        .map(|trial| (trial.id, Lens::of(trial)))
        .collect();
    let most = plan.experiments.iter().map(|it| 1 + it.beside.len()).max();
    let mut views: Vec<View> = (0..most.unwrap_or(0))
        .map(|at| view(recording, &lenses, at))
        .collect();
    refuse_beyond(&mut views);
    views
}

/// Returns all views as one recording, whose trials have numbers of their own for each further group, with what is
/// added to them for it; absent where every trial has one group.
pub(crate) fn spread(recording: &Recording) -> Option<(Recording, u32)> {
    let mut views = views(recording).into_iter();
    let mut all = views.next()?.recording;
    let most = recording.document.plan.trials.iter().map(|it| it.id.0);
    let step = 10_u32.pow(most.max().unwrap_or(0).max(1).ilog10() + 1);
    for (at, view) in (1..).zip(views) {
        let mut more = view.recording;
        let moved = |id: TrialId| TrialId(id.0 + at * step);
        for trial in &mut more.document.plan.trials {
            trial.id = moved(trial.id);
        }
        for experiment in &mut more.document.plan.experiments {
            let numbers = format!("Its trials have their numbers plus {}.", at * step);
            experiment.method = format!("{} {numbers}", experiment.method).trim().to_owned();
        }
        more.trials
            .iter_mut()
            .for_each(|it| it.trial = moved(it.trial));
        more.flows
            .iter_mut()
            .for_each(|it| it.trial = moved(it.trial));
        let repeats = more.document.plan.repeats.into_iter();
        all.document.plan.repeats.extend(repeats.map(|it| Repeat {
            trial: moved(it.trial),
            of: moved(it.of),
            ..it
        }));
        all.document
            .plan
            .experiments
            .extend(more.document.plan.experiments);
        all.document.plan.trials.extend(more.document.plan.trials);
        all.trials.extend(more.trials);
        all.flows.extend(more.flows);
        for sample in more.samples.iter() {
            all.samples.push(TrialSample {
                trial: moved(sample.trial),
                ..sample
            });
        }
    }
    Some((all, step))
}

/// Returns the outcome of every recorded trial, in the order of execution; of trials with several groups one for each
/// group, whose experiment is then that group's.
pub fn outcomes(recording: &Recording) -> Vec<Outcome> {
    Reduced::of(recording).outcomes()
}

/// A recording with the outcomes of its trials, from which all else follows.
pub struct Reduced<'r> {
    recorded: &'r Recording,
    /// All views as one, where trials have several groups, and what is added to the numbers of trials for a further one.
    spread: Option<(Recording, u32)>,
    /// What was measured, where trials after it prove what limits it.
    measured: Option<Recording>,
    /// Of the trials as they are spread, or of those that measured.
    outcomes: Vec<Outcome>,
    /// Of the trials that prove what limits them.
    proving: Vec<Outcome>,
}

/// Outcomes of trials that were reduced before, by trial and group.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<(TrialId, u32), Outcome>);

impl<'r> Reduced<'r> {
    /// Reduces all trials of `recorded`.
    pub fn of(recorded: &'r Recording) -> Self {
        Self::with(recorded, &mut Known::default())
    }

    /// Reduces those that are not `known` yet, and notes them there; of the others `recorded` needs no samples.
    pub fn with(recorded: &'r Recording, known: &mut Known) -> Self {
        let spread = spread(recorded);
        let (all, step) = match &spread {
            Some((all, step)) => (all, *step),
            None => (recorded, u32::MAX),
        };
        let key = |id: TrialId| (TrialId(id.0 % step), id.0 / step);
        let outcomes = reduce::each(all, |trial| {
            let before = known.0.get(&key(trial.id)).cloned();
            let numbered = |outcome| Outcome {
                trial: trial.id,
                ..outcome
            };
            Some(before.map(numbered).ok_or(trial))
        });
        let new = outcomes
            .iter()
            .map(|outcome| (key(outcome.trial), outcome.clone()));
        known.0.extend(new);
        let outcomes = reduce::in_order(all, outcomes);
        let plan = &recorded.document.plan;
        let proves = |outcome: &Outcome| {
            let experiment = plan.experiment(&outcome.experiment);
            experiment.is_some_and(Experiment::is_proof)
        };
        let (proving, outcomes) = outcomes.into_iter().partition(proves);
        let measured = |whole: &Recording| match proof::measured(whole) {
            Cow::Owned(measured) => Some(measured),
            Cow::Borrowed(_) => None,
        };
        Self {
            recorded,
            spread: spread.map(|(all, step)| (measured(&all).unwrap_or(all), step)),
            measured: measured(recorded),
            outcomes,
            proving,
        }
    }

    /// Returns the recording as it was recorded.
    pub fn recorded(&self) -> &'r Recording {
        self.recorded
    }

    /// Returns the recording whose trials have one group each.
    pub(crate) fn recording(&self) -> &Recording {
        let measured = self.measured.as_ref().unwrap_or(self.recorded);
        self.spread.as_ref().map_or(measured, |(all, _)| all)
    }

    /// Returns what was changed after the measurement to prove what limits it, and what that did.
    pub fn proofs(&self) -> Proofs {
        proof::proofs_of(&self.recorded.document.plan, &self.proving)
    }

    /// Returns what is added to the numbers of trials for a further group, where there are several.
    pub(crate) fn step(&self) -> Option<u32> {
        Some(self.spread.as_ref()?.1)
    }

    /// Returns the recording of what was changed, if anything was.
    pub(crate) fn proving(&self) -> Option<Recording> {
        self.measured.as_ref()?;
        Some(proof::proving(self.recorded))
    }

    /// Returns the outcomes of [`Self::proving`].
    pub(crate) fn proving_outcomes(&self) -> &[Outcome] {
        &self.proving
    }

    /// Returns the outcomes, with the numbers that trials were recorded with.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let own = |outcome: &Outcome| Outcome {
            trial: self
                .step()
                .map_or(outcome.trial, |step| TrialId(outcome.trial.0 % step)),
            ..outcome.clone()
        };
        let all = self.outcomes.iter().chain(&self.proving);
        all.map(own).collect()
    }

    /// Returns the outcomes of [`Self::recording`].
    pub(crate) fn spread_outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

fn view(recording: &Recording, lenses: &BTreeMap<TrialId, Lens>, at: usize) -> View {
    let mut document = recording.document.clone();
    let plan = &mut document.plan;
    let first = plan.experiments.iter().find(|it| it.beside.len() >= at);
    let (name, beside) = first.map_or((String::new(), Vec::new()), |it| {
        let mut names = names(it);
        let name = names.remove(at);
        (name, names)
    });
    plan.experiments.retain(|it| it.beside.len() >= at);
    for experiment in &mut plan.experiments {
        *experiment = of_group(experiment, at);
    }
    let seen = |trial: &Trial| Lens::of(trial).trials.get(at).cloned();
    plan.trials = plan.trials.iter().filter_map(seen).collect();
    plan.optional = plan.optional.iter().filter_map(seen).collect();
    let own: BTreeSet<TrialId> = plan.trials.iter().map(|trial| trial.id).collect();
    plan.repeats.retain(|repeat| own.contains(&repeat.trial));
    let mut trials = recording.trials.clone();
    trials.retain(|record| own.contains(&record.trial));
    let flow = |record: &FlowRecord| {
        let flow = lenses.get(&record.trial)?.flow(at, record.flow)?;
        Some(FlowRecord {
            outcome: FlowOutcome {
                flow,
                ..record.outcome.clone()
            },
            ..record.clone()
        })
    };
    let mut samples = Samples::default();
    for trial in &own {
        let Some(lens) = lenses.get(trial) else {
            continue;
        };
        if lens.trials.len() == 1 {
            samples.append(recording.samples.copied(*trial));
            continue;
        }
        let of_trial = recording.samples.of_trial(*trial);
        let seen = of_trial.filter_map(|sample| lens.sample(at, sample));
        seen.for_each(|sample| samples.push(sample));
    }
    let is_alone = |trial: TrialId| {
        lenses
            .get(&trial)
            .is_some_and(|lens| lens.trials.len() == 1)
    };
    let mut profiles = recording.profiles.clone();
    profiles.retain(|profile| at == 0 && is_alone(profile.trial));
    let mut captures = recording.captures.clone();
    captures.retain(|_| at == 0);
    View {
        name,
        beside,
        recording: Recording {
            document,
            trials,
            flows: recording.flows.iter().filter_map(flow).collect(),
            samples,
            profiles,
            captures,
            events: recording.events.clone(),
            damage: recording.damage.clone(),
        },
    }
}

fn names(experiment: &Experiment) -> Vec<String> {
    group::names(&experiment.workload, &experiment.beside)
        .map(str::to_owned)
        .collect()
}

/// Returns `experiment` as one of its groups has it; the others stay `beside` it, so that nobody takes it for alone.
fn of_group(experiment: &Experiment, at: usize) -> Experiment {
    if experiment.beside.is_empty() {
        return experiment.clone();
    }
    let names = names(experiment);
    let workloads = experiment.beside.iter().map(|group| &group.workload);
    let workloads: Vec<&Workload> = std::iter::once(&experiment.workload)
        .chain(workloads)
        .collect();
    let mut beside: Vec<Group> = names
        .iter()
        .zip(&workloads)
        .map(|(name, workload)| Group {
            name: name.clone(),
            workload: (*workload).clone(),
        })
        .collect();
    let own = beside.remove(at);
    let factor = |factor: Factor| seen(factor, &own.name, &names[0]);
    let factors = experiment.factors.iter();
    let linked = experiment.linked.iter();
    let control = experiment.control.clone();
    let others: Vec<&str> = beside.iter().map(|group| &*group.name).collect();
    let headline = own.workload.traffic.kind().about().headline;
    Experiment {
        name: experiment_name(&experiment.name, at, &own.name),
        title: format!(
            "{}: {} next to {}",
            experiment.title,
            own.name,
            others.join(", ")
        ),
        factors: factors
            .map(|(it, levels)| (factor(*it), levels.clone()))
            .collect(),
        linked: linked
            .map(|linked| linked.iter().map(|it| factor(*it)).collect())
            .collect(),
        baseline: seen_cell(&experiment.baseline, &own.name, &names[0]),
        control: control.map(|control| Control {
            levels: seen_cell(&control.levels, &own.name, &names[0]),
            ..control
        }),
        workload: own.workload,
        response: match at {
            0 => experiment.response.clone(),
            _ => headline.to_owned(),
        },
        beside,
        ..experiment.clone()
    }
}

/// Refuses trials whose groups carried more together than the links do.
fn refuse_beyond(views: &mut [View]) {
    let Some((first, others)) = views.split_first() else {
        return;
    };
    let further = others
        .iter()
        .flat_map(|view| &view.recording.document.plan.trials);
    let several: BTreeSet<TrialId> = further.map(|trial| trial.id).collect();
    let of_several = |trial: &Trial| several.contains(&trial.id);
    let outcomes: Vec<Vec<Outcome>> = views
        .iter()
        .map(|view| {
            reduce::each(&view.recording, |trial| {
                of_several(trial).then_some(Err(trial))
            })
        })
        .collect();
    let mut refused = BTreeMap::new();
    for record in &first.recording.trials {
        let groups = views.iter().zip(&outcomes);
        let of_trial = groups.filter_map(|(view, outcomes)| {
            let trial = view.recording.document.plan.trial(record.trial)?;
            let outcome = outcomes.iter().find(|it| it.trial == record.trial)?;
            Some((trial, outcome))
        });
        let of_trial: Vec<_> = of_trial.collect();
        let hosts = &first.recording.document.hosts;
        if of_trial.len() > 1
            && let Some(why) = reduce::beyond_together(hosts, record.window(), &of_trial)
        {
            refused.insert(record.trial, why);
        }
    }
    for view in views {
        for record in &mut view.recording.trials {
            if let Some(why) = refused.get(&record.trial)
                && record.validity == Validity::Valid
            {
                record.validity = Validity::Invalid(why.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::experiment::{Level, Timing};
    use linerate_model::metric::Metric;
    use linerate_model::sample::End;
    use linerate_model::workload::{Direction, Kind};
    use linerate_model::{HostName, Nanos};

    use super::*;

    fn trial(beside: &[(&str, Workload)]) -> Trial {
        let second = Nanos::from_s(1);
        let group = |(name, workload): &(&str, Workload)| Group {
            name: (*name).to_owned(),
            workload: workload.clone(),
        };
        Trial {
            id: TrialId(1),
            experiment: "x".to_owned(),
            cell: Cell::new(),
            replicate: 1,
            seed: 0,
            workload: Workload {
                connections: 2,
                ..Workload::stream(Direction::ToServer)
            },
            beside: beside.iter().map(group).collect(),
            hosts: Vec::new(),
            step: 0,
            timing: Timing {
                settle: second,
                warm_up: second,
                measure: second,
                drain: second,
            },
        }
    }

    fn sample(subject: Subject) -> TrialSample {
        TrialSample {
            trial: TrialId(1),
            host: HostName::from("client1"),
            subject,
            metric: Metric::AppBytesReceived,
            at_ns: 0,
            value: 1,
        }
    }

    #[test]
    fn a_group_sees_its_own_flows_and_nothing_of_the_host() {
        let lens = Lens::of(&trial(&[("probe", Workload::of(Kind::Rr))]));
        let seen = |at, subject| lens.sample(at, sample(subject)).map(|it| it.subject);
        let flow = |number| Subject::Flow(FlowId(number), End::Client);
        assert_eq!(seen(0, flow(1)), Some(flow(1)));
        assert_eq!(seen(1, flow(1)), None);
        assert_eq!(seen(0, flow(2)), None);
        assert_eq!(seen(1, flow(2)), Some(flow(0)));
        assert_eq!(seen(1, flow(3)), None);
        for whole in [
            Subject::Host,
            Subject::Cpu(0),
            Subject::Thread("worker-0".to_owned()),
        ] {
            assert_eq!((seen(0, whole.clone()), seen(1, whole)), (None, None));
        }
        // Only one group makes transactions: those whose latency the host tells.
        let latency = Subject::Latency(None, None);
        assert_eq!(seen(0, latency.clone()), None);
        assert_eq!(seen(1, latency.clone()), Some(latency));
    }

    #[test]
    fn a_group_sees_what_varies_of_it_as_its_own() {
        let level = Level::Count(8);
        let cell = |names: &[&str]| -> Cell {
            let named = |name: &&str| Factor::named(name).expect("it is one");
            names
                .iter()
                .map(|name| (named(name), level.clone()))
                .collect()
        };
        let varied = Trial {
            cell: cell(&["connections", "a.connections", "b.nagle", "mtu"]),
            ..trial(&[("a", Workload::of(Kind::Rr)), ("b", Workload::of(Kind::Rr))])
        };
        let seen: Vec<Cell> = Lens::of(&varied)
            .trials
            .into_iter()
            .map(|it| it.cell)
            .collect();
        let expected = [
            varied.cell,
            cell(&["stream.connections", "connections", "b.nagle", "mtu"]),
            cell(&["stream.connections", "a.connections", "nagle", "mtu"]),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn latencies_of_two_groups_are_told_by_a_flow_of_each() {
        let probe = || Workload::of(Kind::Rr);
        let lens = Lens::of(&trial(&[("a", probe()), ("b", probe())]));
        let whose = |flow: Option<u32>| -> Vec<usize> {
            let latency = || sample(Subject::Latency(flow.map(FlowId), None));
            let is_own = |at: &usize| lens.sample(*at, latency()).is_some();
            (0..3).filter(is_own).collect()
        };
        assert_eq!(whose(Some(2)), [1]);
        assert_eq!(whose(Some(3)), [2]);
        assert!(whose(None).is_empty());
        let seen = lens.sample(2, sample(Subject::Latency(Some(FlowId(3)), None)));
        assert_eq!(
            seen.map(|it| it.subject),
            Some(Subject::Latency(None, None))
        );
    }

    #[test]
    fn one_group_sees_all_there_is() {
        let lens = Lens::of(&trial(&[]));
        let all = sample(Subject::Cpu(0));
        assert_eq!(lens.sample(0, all.clone()), Some(all));
    }
}
