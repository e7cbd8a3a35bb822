//! What is measured next: the trials of the plan, then those that have to be repeated, then further
//! blocks of the experiments whose verdicts are open.
//!
//! 1. Trials that are due are done in the plan's order. Blocks of an experiment whose verdicts are
//!    decided are due no longer, nor are those after the first for which there is no time.
//! 2. A trial that may not be averaged, or that something disturbed, is repeated at the end with its
//!    cell in its block, so that no block lacks a cell. Invalid ones come first.
//! 3. What would only fail again is not repeated: a level that the kernel caps, a part that a host
//!    refuses, a repeat that fails for the very reason of the first.
//!    Nor is a trial of a search repeated, which measures the level further itself.
//! 4. Then each experiment that is open has one block more, if the whole block fits into the time; those with
//!    the fewest blocks first.
//! 5. When nothing is left, whoever proves what was measured is asked for more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use linerate_model::experiment::Experiment;
use linerate_model::number;
use linerate_model::plan::{LeftOut, Plan, Repeat, Spoilt, Stage, Trial};
use linerate_model::reason::{Disturbance, Reason, RepeatReason};
use linerate_model::{Nanos, TrialId};

/// How often a trial is repeated at the most.
const REPEATS_MAX: usize = 2;
/// Where no time is given, repeats take one trial in so many, and those of disturbed trials always: a
/// host that never rests would have everything done twice…
const REPEATS_PART: usize = 10;
/// …or this many of a small plan.
const REPEATS_FEW: usize = 3;
/// How much longer traffic goes on before the window of a trial that repeats one whose rate still rose,
/// and the longest that it does.
const RISING_FACTOR: u64 = 4;
const WARM_UP_MAX: Nanos = Nanos::from_s(3);

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate<'a> {
    /// It may be averaged.
    Valid,
    /// It may not, for this reason, which may be gone the next time.
    Passing(&'a Reason),
    /// It may not, and will not the next time.
    Lasting,
}

/// What is measured once nothing else is left to do.
#[derive(Debug, Clone, PartialEq)]
pub enum More {
    /// An experiment that the next plan has beyond this one, with its trials: those of the first block are due.
    Experiment(Box<Experiment>, Vec<Trial>),
    /// Another block of it, by its name.
    Block(String),
}

/// What is to be done once more.
#[derive(Debug, Clone, PartialEq)]
struct Again {
    trial: Trial,
    why: RepeatReason,
}

/// What is to be done, and what came of the rest.
#[derive(Debug)]
pub(super) struct Agenda {
    due: VecDeque<Trial>,
    invalid: VecDeque<Again>,
    disturbed: VecDeque<Again>,
    /// The experiments that another block may still decide: all before the first look, and none
    /// again that was once decided.
    open: Option<BTreeSet<String>>,
    /// Repeats that may still be made.
    repeats_left: usize,
    /// Repeats of trials that only their numbers spoil that may still be asked for.
    spoilt_left: usize,
    /// How long traffic went on before the windows of trials that are over.
    warm_ups: BTreeMap<TrialId, Nanos>,
    /// The last trial that was due from the start: those that are taken up fitted then.
    planned: TrialId,
    next_id: u32,
}

impl Agenda {
    /// Returns the agenda of `plan`.
    pub fn new(plan: &Plan, repeats: Repeats) -> Self {
        let planned = plan.trials.len();
        let last = plan.trials.iter().chain(&plan.optional);
        let few = (planned / REPEATS_PART).max(REPEATS_FEW);
        let (repeats_left, spoilt_left) = match repeats {
            Repeats::None => (0, 0),
            Repeats::Few => (few, few),
            Repeats::WhileThereIsTime => (planned, few),
        };
        Self {
            due: plan.trials.iter().cloned().collect(),
            invalid: VecDeque::new(),
            disturbed: VecDeque::new(),
            open: None,
            repeats_left,
            spoilt_left,
            warm_ups: BTreeMap::new(),
            planned: plan
                .trials
                .iter()
                .map(|trial| trial.id)
                .max()
                .unwrap_or(TrialId(0)),
            next_id: last.map(|trial| trial.id.0).max().unwrap_or(0) + 1,
        }
    }

    /// Returns the trials that are due.
    pub fn due(&self) -> impl Iterator<Item = &Trial> {
        self.due.iter()
    }

    /// Returns how many trials wait for being repeated, of those that may be.
    pub fn waiting(&self) -> usize {
        let waiting = self.invalid.len() + self.disturbed.len();
        waiting.min(self.repeats_left)
    }

    /// Returns whether [`Agenda::poll`] would return a trial.
    pub fn has_next(&self, plan: &Plan, fits: impl Fn(&[Trial]) -> bool) -> bool {
        let mut again = self.invalid.iter().chain(&self.disturbed);
        let is_repeated = |again: &Again| fits(std::slice::from_ref(&again.trial));
        !self.due.is_empty()
            || (self.repeats_left > 0 && again.any(is_repeated))
            || !self.next_blocks(plan, fits).is_empty()
    }

    /// Returns whether `trial` was the last of its round; those that repeat belong to none.
    pub fn ends_round(&self, plan: &Plan, trial: &Trial) -> bool {
        let repeats = plan.repeats.iter().any(|repeat| repeat.trial == trial.id);
        let next = self.due.front();
        !repeats && next.is_none_or(|next| next.replicate > trial.replicate)
    }

    /// Takes up how long traffic went on before the window of a trial: long paths take more than is asked for.
    pub fn handle_warm_up(&mut self, trial: TrialId, warm_up: Nanos) {
        self.warm_ups.insert(trial, warm_up);
    }

    /// Takes up what became of `trial`.
    pub fn handle_over(&mut self, plan: &Plan, trial: &Trial, fate: Fate<'_>) {
        if let Fate::Passing(why) = fate {
            self.repeat(plan, trial, why);
        }
    }

    /// Asks for a repeat of `trial`, if that may end otherwise; returns whether it did.
    fn repeat(&mut self, plan: &Plan, trial: &Trial, why: &Reason) -> bool {
        if is_searched(plan, trial) || needs_others(plan, trial) {
            return false;
        }
        let before: Vec<&Repeat> = repeats_of(plan, trial.id);
        let is_same = before.last().is_some_and(|last| match &last.why {
            RepeatReason::Invalid(last) => is_same(last, why),
            _ => false,
        });
        let may_help = !is_same && before.len() < REPEATS_MAX;
        if may_help {
            let why = RepeatReason::Invalid(why.clone());
            self.invalid.push_back(Again {
                trial: trial.clone(),
                why,
            });
        }
        may_help
    }

    /// Takes up which trials are spoilt by what only their numbers show.
    pub fn handle_spoilt(&mut self, plan: &Plan, trials: Vec<Spoilt>) {
        for Spoilt { trial: id, why } in trials {
            let mut waiting = self.invalid.iter().chain(&self.disturbed);
            let is_known = waiting.any(|again| again.trial.id == id)
                || plan.repeats.iter().any(|repeat| repeat.of == id);
            let own = plan.trials.iter().find(|own| own.id == id);
            let Some(own) = own.filter(|_| !is_known) else {
                continue;
            };
            match why {
                RepeatReason::Disturbed(by) => self.handle_disturbed(plan, own, by),
                // A cell may be spoilt in each block: the rest of the time is for verdicts.
                RepeatReason::Invalid(why) if self.spoilt_left > 0 => {
                    self.spoilt_left -= usize::from(self.repeat(plan, own, &why));
                }
                RepeatReason::Invalid(_) => {}
                // Only a bundle tells so, of a run that is over.
                RepeatReason::Told(_) => {}
            }
        }
    }

    /// Repeats what was disturbed once, and where the rate still rose with more traffic before its window.
    fn handle_disturbed(&mut self, plan: &Plan, own: &Trial, by: Disturbance) {
        let is_repeat = plan.repeats.iter().any(|repeat| repeat.trial == own.id);
        if needs_others(plan, own) || is_searched(plan, own) || is_repeat || self.spoilt_left == 0 {
            return;
        }
        let mut trial = own.clone();
        if matches!(by, Disturbance::Rising(_)) {
            let warm_up = &mut trial.timing.warm_up;
            let had = self.warm_ups.get(&own.id).copied().unwrap_or(*warm_up);
            let more = Nanos((had.0 * RISING_FACTOR).min(WARM_UP_MAX.0));
            // Who asks for none wants to see the rise, and after the same time it would rise again.
            if more <= had {
                return;
            }
            *warm_up = more;
        }
        self.spoilt_left -= 1;
        let why = RepeatReason::Disturbed(by);
        self.disturbed.push_back(Again { trial, why });
    }

    /// Takes up which experiments are open: what is due of others is not done, which `plan` then says.
    pub fn handle_open(&mut self, plan: &mut Plan, open: Vec<String>) {
        let was_open = |name: &String| self.open.as_ref().is_none_or(|open| open.contains(name));
        let open: BTreeSet<String> = open.into_iter().filter(was_open).collect();
        let is_open = |trial: &Trial| open.contains(&trial.experiment);
        let (due, decided): (VecDeque<_>, VecDeque<_>) = self.due.drain(..).partition(is_open);
        self.due = due;
        self.put_off(plan, decided, |blocks| {
            format!("its verdicts were decided after {blocks}")
        });
        self.open = Some(open);
    }

    /// Makes the next plan of this one: the trials of stages that fit become due; of one that does not, the plan says
    /// so.
    pub fn handle_stages(
        &mut self,
        plan: &mut Plan,
        stages: Vec<(Stage, Vec<Trial>)>,
        fits: impl Fn(&[Trial]) -> bool,
    ) {
        for (stage, trials) in stages {
            if !fits(&trials) {
                let known = plan.experiment(&stage.experiment);
                plan.left_out.push(LeftOut {
                    chapter: known.and_then(|experiment| experiment.chapter),
                    what: format!("{}: further levels", stage.experiment),
                    why: "no time was left".to_owned(),
                });
                continue;
            }
            let last = trials.iter().map(|trial| trial.id.0).max().unwrap_or(0);
            self.next_id = self.next_id.max(last + 1);
            plan.trials.extend(trials.iter().cloned());
            self.due.extend(trials);
            plan.stages.push(stage);
        }
    }

    /// Makes the next plan of this one: the next block of what is asked for is due, further ones are optional.
    pub fn handle_more(&mut self, plan: &mut Plan, more: More) {
        let name = match more {
            More::Block(name) => name,
            More::Experiment(experiment, trials) => {
                let last = trials.iter().map(|trial| trial.id.0).max().unwrap_or(0);
                self.next_id = self.next_id.max(last + 1);
                plan.optional.extend(trials);
                plan.experiments.push((*experiment).clone());
                experiment.name
            }
        };
        let own = plan.optional.iter().filter(|it| it.experiment == name);
        let next = own.map(|trial| trial.replicate).min();
        let is_next = |it: &Trial| it.experiment == name && Some(it.replicate) == next;
        let (due, optional): (Vec<_>, Vec<_>) = plan.optional.drain(..).partition(is_next);
        plan.optional = optional;
        plan.trials.extend(due.iter().cloned());
        self.due.extend(due);
    }

    /// Returns the next trial, moved to the trials of `plan`, if there is one that is due or `fits`.
    pub fn poll(&mut self, plan: &mut Plan, fits: impl Fn(&[Trial]) -> bool) -> Option<Trial> {
        if let Some(next) = self.due.pop_front() {
            return Some(next);
        }
        if let Some(repeat) = self.next_repeat(plan, &fits) {
            return Some(repeat);
        }
        self.take_up_blocks(plan, fits);
        self.due.pop_front()
    }

    /// Where a block of the plan begins, leaves out the experiments whose block does not fit any more, which `plan`
    /// then says: traffic may go on before its windows for longer than the plan knew, and hosts may have been waited
    /// for. The first block is done whatever it takes: without it there is nothing to tell.
    pub fn handle_time(&mut self, plan: &mut Plan, fits: impl Fn(&[Trial]) -> bool) {
        if !self.begins_block(plan) {
            return;
        }
        let next = self.due.front().map(|trial| trial.replicate);
        let (mut taken, mut late) = (Vec::new(), BTreeSet::new());
        for Experiment { name, .. } in &plan.experiments {
            let before = taken.len();
            let is_of_block =
                |trial: &&Trial| Some(trial.replicate) == next && trial.experiment == *name;
            taken.extend(self.due.iter().filter(is_of_block).cloned());
            if !fits(&taken) {
                taken.truncate(before);
                late.insert(name.clone());
            }
        }
        let names = || {
            plan.experiments
                .iter()
                .map(|own| own.name.clone())
                .collect()
        };
        // What is said to be left out is not taken up again.
        self.open
            .get_or_insert_with(names)
            .retain(|name| !late.contains(name));
        let is_late = |trial: &Trial| late.contains(&trial.experiment);
        let (left, due) = self.due.drain(..).partition(is_late);
        self.due = due;
        self.put_off(plan, left, |blocks| {
            format!("no time was left after {blocks}")
        });
    }

    /// Gives up the trials that are `gone`, as `left_out` then says in the plan: none of them is done or repeated any more.
    pub fn give_up(&mut self, plan: &mut Plan, left_out: LeftOut, gone: impl Fn(&Trial) -> bool) {
        let (dropped, due): (VecDeque<Trial>, _) = self.due.drain(..).partition(&gone);
        self.due = due;
        for waiting in [&mut self.invalid, &mut self.disturbed] {
            waiting.retain(|again| !gone(&again.trial));
        }
        plan.trials.retain(|trial| !dropped.contains(trial));
        plan.optional.retain(|trial| !gone(trial));
        plan.left_out.push(left_out);
    }

    /// Returns `trial` and those that are due at the same time.
    pub fn with_its_step(&mut self, trial: Trial) -> Vec<Trial> {
        let others = self
            .due
            .iter()
            .take_while(|other| is_of_step(&trial, other))
            .count();
        let others: Vec<Trial> = self.due.drain(..others).collect();
        std::iter::once(trial).chain(others).collect()
    }

    /// Whether the next trial that is due is of the plan's own and of a later block than the one before it.
    fn begins_block(&self, plan: &Plan) -> bool {
        let Some(next) = self.due.front().filter(|next| next.id <= self.planned) else {
            return false;
        };
        let at = plan.trials.iter().position(|trial| trial.id == next.id);
        let before = at.and_then(|at| plan.trials[..at].last());
        before.is_some_and(|before| before.replicate < next.replicate)
    }

    /// Moves what is due no longer to what is optional, and says why of each experiment.
    fn put_off(&self, plan: &mut Plan, trials: VecDeque<Trial>, why: impl Fn(String) -> String) {
        for experiment in &plan.experiments {
            let of_experiment = |trial: &&Trial| trial.experiment == experiment.name;
            let Some(first) = trials.iter().find(of_experiment) else {
                continue;
            };
            plan.left_out.push(LeftOut {
                chapter: experiment.chapter,
                what: format!("{}: further blocks", experiment.name),
                why: why(number::counted(first.replicate - 1, "block")),
            });
        }
        plan.trials.retain(|trial| !trials.contains(trial));
        plan.optional.extend(trials);
        plan.optional.sort_by_key(|trial| trial.id);
    }

    fn next_repeat(&mut self, plan: &mut Plan, fits: impl Fn(&[Trial]) -> bool) -> Option<Trial> {
        while self.repeats_left > 0 {
            let invalid = self.invalid.pop_front();
            let again = invalid.or_else(|| self.disturbed.pop_front())?;
            if !fits(std::slice::from_ref(&again.trial)) {
                continue;
            }
            let trial = self.take_up(plan, again);
            // Those of one round that wait go on at the same time again.
            let is_beside = |again: &Again| is_of_step(&trial, &again.trial);
            let (beside, others) = self.invalid.drain(..).partition(is_beside);
            self.invalid = others;
            for again in beside {
                if self.repeats_left > 0 {
                    let trial = self.take_up(plan, again);
                    self.due.push_back(trial);
                }
            }
            return Some(trial);
        }
        None
    }

    /// Makes the repeat of a trial one of the plan's trials.
    fn take_up(&mut self, plan: &mut Plan, again: Again) -> Trial {
        let trial = Trial {
            id: TrialId(self.next_id),
            ..again.trial
        };
        self.repeats_left -= 1;
        self.next_id += 1;
        plan.repeats.push(Repeat {
            trial: trial.id,
            of: again.trial.id,
            why: again.why,
        });
        plan.trials.push(trial.clone());
        trial
    }

    /// Makes one block more of each open experiment due, as far as they fit together.
    fn take_up_blocks(&mut self, plan: &mut Plan, fits: impl Fn(&[Trial]) -> bool) {
        let taken = self.next_blocks(plan, fits);
        plan.optional.retain(|trial| !taken.contains(trial));
        plan.trials.extend(taken.iter().cloned());
        self.due.extend(taken);
    }

    fn next_blocks(&self, plan: &Plan, fits: impl Fn(&[Trial]) -> bool) -> Vec<Trial> {
        let is_open = |name: &String| self.open.as_ref().is_none_or(|open| open.contains(name));
        let next = |name: &String| {
            let mut own = plan.optional.iter();
            let first = own.find(|trial| trial.experiment == *name)?;
            Some((first.replicate, name.clone()))
        };
        // What proves goes on when that is asked for.
        let experiments = plan.experiments.iter().filter(|own| !own.is_proof());
        let names = experiments.map(|experiment| &experiment.name);
        let mut blocks: Vec<(u32, String)> = names
            .filter(|name| is_open(name))
            .filter_map(next)
            .collect();
        let mut taken: Vec<Trial> = Vec::new();
        // Of experiments with as many blocks the plan's first.
        while let Some(at) = (0..blocks.len()).min_by_key(|at| blocks[*at].0) {
            let (replicate, name) = blocks.remove(at);
            let before = taken.len();
            let is_of_block =
                |trial: &&Trial| trial.replicate == replicate && trial.experiment == name;
            taken.extend(plan.optional.iter().filter(is_of_block).cloned());
            if !fits(&taken) {
                taken.truncate(before);
            }
        }
        taken
    }
}

/// What limits how many trials are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// None are.
    None,
    /// Some, since nobody said how long it may take.
    Few,
    /// Time is.
    WhileThereIsTime,
}

/// Whether `trial` belongs to a search, which measures a level further itself where valid trials are too few.
fn is_searched(plan: &Plan, trial: &Trial) -> bool {
    let experiment = plan.experiment(&trial.experiment);
    experiment.is_some_and(|experiment| experiment.search.is_some())
}

/// Whether `trial` measures nothing without what goes on beside it: it is of a pattern whose pairs all meet at once. In a
/// pattern of several rounds each pair has its devices for itself.
fn needs_others(plan: &Plan, trial: &Trial) -> bool {
    let experiment = plan.experiment(&trial.experiment);
    let pairs = experiment.and_then(|experiment| experiment.pairs.as_ref());
    trial.step != 0 && pairs.is_none_or(|pairs| pairs.rounds.len() < 2)
}

/// Whether two trials may not be averaged for the same reason, whatever the numbers in it are.
fn is_same(one: &Reason, other: &Reason) -> bool {
    match (one, other) {
        (Reason::Unshared(one), Reason::Unshared(other)) => {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        }
        (Reason::Beyond { .. }, Reason::Beyond { .. })
        | (Reason::NoExchange, Reason::NoExchange) => true,
        _ => one == other,
    }
}

/// Returns the repeats that led to the trial `id`, the first one first.
fn repeats_of(plan: &Plan, id: TrialId) -> Vec<&Repeat> {
    let mut chain = Vec::new();
    let mut at = id;
    while let Some(repeat) = plan.repeats.iter().find(|repeat| repeat.trial == at) {
        chain.insert(0, repeat);
        at = repeat.of;
    }
    chain
}

/// Returns whether trials that take `each` beside their phases fit into `left`; anything does where
/// nobody said how long it may take.
pub(super) fn fit(trials: &[Trial], each: Nanos, left: Option<Nanos>) -> bool {
    let take = |trial: &Trial| trial.timing.total().0 + each.0;
    left.is_none_or(|left| in_turn(trials.iter()).map(take).sum::<u64>() <= left.0)
}

/// Returns of trials that go on at the same time the first.
pub(super) fn in_turn<'t>(
    trials: impl Iterator<Item = &'t Trial>,
) -> impl Iterator<Item = &'t Trial> {
    let mut before: Option<&Trial> = None;
    trials.filter(move |trial| {
        let is_same = before
            .replace(trial)
            .is_some_and(|before| is_of_step(before, trial));
        !is_same
    })
}

/// Whether two trials go on at the same time.
fn is_of_step(one: &Trial, other: &Trial) -> bool {
    one.step != 0
        && (&one.experiment, one.replicate, one.step)
            == (&other.experiment, other.replicate, other.step)
}

#[cfg(test)]
mod tests {
    use linerate_model::experiment::{Cell, Prediction, Timing};
    use linerate_model::limiter::Limiter;
    use linerate_model::pairs::{Pairs, Pattern};
    use linerate_model::workload::{Direction, Workload};

    use linerate_model::reason::Unshared;

    use super::*;

    const TIMING: Timing = Timing {
        settle: Nanos(0),
        warm_up: Nanos::from_ms(100),
        measure: Nanos::from_ms(900),
        drain: Nanos(0),
    };

    fn experiment(name: &str) -> Experiment {
        let workload = Workload::stream(Direction::ToServer);
        Experiment {
            title: name.to_owned(),
            ..Experiment::plain(name, workload, TIMING, 3)
        }
    }

    /// A plan of the experiments `a` and `b`, with one trial a block: three are due, two optional.
    fn plan() -> Plan {
        let trial = |(id, (replicate, name)): (u32, (u32, &str))| Trial {
            id: TrialId(id),
            experiment: name.to_owned(),
            cell: Cell::new(),
            replicate,
            seed: 0,
            workload: Workload::stream(Direction::ToServer),
            beside: Vec::new(),
            hosts: Vec::new(),
            step: 0,
            timing: TIMING,
        };
        let rounds = (1..=5).flat_map(|replicate| [(replicate, "a"), (replicate, "b")]);
        let mut trials: Vec<Trial> = (1..).zip(rounds).map(trial).collect();
        let optional = trials.split_off(6);
        Plan {
            experiments: vec![experiment("a"), experiment("b")],
            trials,
            seed: 1,
            estimate: Nanos(0),
            budget: None,
            left_out: Vec::new(),
            optional,
            repeats: Vec::new(),
            stages: Vec::new(),
            margins: Default::default(),
        }
    }

    /// Does everything that fits, with what becomes of each trial; returns their numbers.
    fn all<'a>(agenda: &mut Agenda, plan: &mut Plan, fate: impl Fn(u32) -> Fate<'a>) -> Vec<u32> {
        let mut done = Vec::new();
        while let Some(trial) = agenda.poll(plan, |_| true) {
            done.push(trial.id.0);
            agenda.handle_over(plan, &trial, fate(trial.id.0));
            assert!(agenda.has_next(plan, |_| true) || agenda.waiting() == 0);
        }
        assert!(!agenda.has_next(plan, |_| true));
        done
    }

    #[test]
    fn pairs_of_a_round_are_repeated_at_the_same_time() {
        let spoilt = Reason::NoServer;
        for (rounds, expected) in [
            (2, vec![vec![1, 2, 3], vec![7, 8]]),
            (1, vec![vec![1, 2, 3]]),
        ] {
            let mut plan = plan();
            let pattern = Pattern::Mesh;
            let rounds = vec![Vec::new(); rounds];
            plan.experiments[0].pairs = Some(Pairs { pattern, rounds });
            plan.trials.truncate(3);
            plan.optional.clear();
            for trial in &mut plan.trials {
                trial.experiment = "a".to_owned();
                (trial.replicate, trial.step) = (1, 1);
            }
            let mut agenda = Agenda::new(&plan, Repeats::WhileThereIsTime);
            agenda.next_id = 7;
            let mut done = Vec::new();
            while let Some(trial) = agenda.poll(&mut plan, |_| true) {
                let step = agenda.with_its_step(trial);
                for trial in step.iter().filter(|trial| [1, 3].contains(&trial.id.0)) {
                    agenda.handle_over(&plan, trial, Fate::Passing(&spoilt));
                }
                let ids = step.iter().map(|trial| trial.id.0);
                done.push(ids.collect::<Vec<u32>>());
            }
            assert_eq!(done, expected);
        }
    }

    #[test]
    fn a_trial_that_may_not_be_averaged_is_repeated_in_its_block() {
        let mut plan = plan();
        let mut agenda = Agenda::new(&plan, Repeats::WhileThereIsTime);
        let done = all(&mut agenda, &mut plan, |id| match id {
            2 => Fate::Passing(&Reason::NoServer),
            5 => Fate::Lasting,
            _ => Fate::Valid,
        });
        assert_eq!(done, [1, 2, 3, 4, 5, 6, 11, 7, 8, 9, 10]);
        let repeat = &plan.trials[6];
        assert_eq!((repeat.experiment.as_str(), repeat.replicate), ("b", 1));
        let why = RepeatReason::Invalid(Reason::NoServer);
        let (trial, of) = (TrialId(11), TrialId(2));
        assert_eq!(plan.repeats, [Repeat { trial, of, why }]);
        assert!(
            plan.optional.is_empty(),
            "all are open until someone says otherwise"
        );
    }

    #[test]
    fn what_fails_again_is_not_repeated_for_ever() {
        let check = |fate: fn(u32) -> Fate<'static>, repeats, expected: &[u32]| {
            let mut plan = Plan {
                optional: Vec::new(),
                ..plan()
            };
            let mut agenda = Agenda::new(&plan, repeats);
            let done = all(&mut agenda, &mut plan, fate);
            assert_eq!(&done[6..], expected);
        };
        let once: fn(u32) -> Fate<'static> = |id| match id {
            1 | 7.. => Fate::Passing(&Reason::NoServer),
            _ => Fate::Valid,
        };
        check(once, Repeats::WhileThereIsTime, &[7]);
        let ever: fn(u32) -> Fate<'static> = |id| match id {
            1 => Fate::Passing(&Reason::Interrupted),
            7 => Fate::Passing(&Reason::NoServer),
            8 => Fate::Passing(&Reason::Unshared(Unshared::Idle { idle: 1, of: 1 })),
            _ => Fate::Valid,
        };
        check(ever, Repeats::WhileThereIsTime, &[7, 8]);
        check(
            |_| Fate::Passing(&Reason::NoServer),
            Repeats::Few,
            &[7, 8, 9],
        );
        check(|_| Fate::Passing(&Reason::NoServer), Repeats::None, &[]);
    }

    #[test]
    fn what_only_its_numbers_spoil_is_repeated_once_for_each_reason() {
        let mut plan = Plan {
            optional: Vec::new(),
            ..plan()
        };
        let mut agenda = Agenda::new(&plan, Repeats::WhileThereIsTime);
        let why = |idle| RepeatReason::Invalid(Reason::Unshared(Unshared::Idle { idle, of: 4 }));
        let mut done = Vec::new();
        while let Some(trial) = agenda.poll(&mut plan, |_| true) {
            done.push(trial.id.0);
            agenda.handle_over(&plan, &trial, Fate::Valid);
            // The second trial is found out, and so is each that repeats it.
            let spoilt = done
                .iter()
                .filter(|id| [2, 7, 8].contains(*id))
                .map(|id| Spoilt {
                    trial: TrialId(*id),
                    why: why(*id as usize),
                });
            agenda.handle_spoilt(&plan, spoilt.collect());
        }
        assert_eq!(done, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(plan.repeats[0].why, why(2));
    }

    #[test]
    fn experiments_with_the_fewest_blocks_go_on_first() {
        let mut plan = plan();
        // All blocks of `a` but the last are done, two of `b`.
        let done = |trial: &Trial| trial.experiment == "a" || trial.replicate < 3;
        let all: Vec<Trial> = plan
            .trials
            .drain(..)
            .chain(plan.optional.drain(..))
            .collect();
        (plan.trials, plan.optional) = all
            .into_iter()
            .partition(|trial| done(trial) && trial.id.0 != 9);
        let mut agenda = Agenda::new(&plan, Repeats::None);
        let due = plan.trials.len();
        let fits = |trials: &[Trial]| trials.len() < 2;
        let mut order = Vec::new();
        while let Some(trial) = agenda.poll(&mut plan, fits) {
            order.push((trial.experiment, trial.replicate));
        }
        let further: Vec<(&str, u32)> = order[due..]
            .iter()
            .map(|(name, replicate)| (name.as_str(), *replicate))
            .collect();
        assert_eq!(further, [("b", 3), ("b", 4), ("a", 5), ("b", 5)]);
    }

    #[test]
    fn planned_blocks_without_time_are_left_out_but_for_the_first() {
        // Time for three trials of the six.
        let done = |time: usize| {
            let mut plan = plan();
            plan.optional.clear();
            let mut agenda = Agenda::new(&plan, Repeats::None);
            let mut done: Vec<u32> = Vec::new();
            loop {
                let left = time.saturating_sub(done.len());
                agenda.handle_time(&mut plan, |trials| trials.len() <= left);
                let Some(trial) = agenda.poll(&mut plan, |_| false) else {
                    break;
                };
                done.push(trial.id.0);
            }
            let why: Vec<String> = plan.left_out.into_iter().map(|left| left.why).collect();
            (done, why, plan.optional.len())
        };
        let none = String::from("no time was left after 1 block");
        let (one, both) = (vec![none.clone()], vec![none.clone(), none]);
        assert_eq!(done(6), (vec![1, 2, 3, 4, 5, 6], vec![], 0));
        assert_eq!(done(4).0, [1, 2, 3, 4]);
        assert_eq!(
            done(3),
            (
                vec![1, 2, 3],
                [one, vec!["no time was left after 2 blocks".to_owned()]].concat(),
                3
            )
        );
        assert_eq!(done(0), (vec![1, 2], both, 4));
    }

    #[test]
    fn a_repeat_of_a_rising_trial_has_more_traffic_before_it_or_is_none() {
        let check = |asked_ms, had_ms: Option<u64>, expected_ms: Option<u64>| {
            let mut plan = plan();
            plan.trials[0].timing.warm_up = Nanos::from_ms(asked_ms);
            let mut agenda = Agenda::new(&plan, Repeats::Few);
            if let Some(had_ms) = had_ms {
                agenda.handle_warm_up(TrialId(1), Nanos::from_ms(had_ms));
            }
            let why = RepeatReason::Disturbed(Disturbance::Rising(1.3));
            let trial = TrialId(1);
            agenda.handle_spoilt(&plan, vec![Spoilt { trial, why }]);
            let again = agenda.disturbed.pop_front();
            let warm_up = again.map(|again| again.trial.timing.warm_up);
            assert_eq!(
                warm_up,
                expected_ms.map(Nanos::from_ms),
                "{asked_ms}, {had_ms:?}"
            );
        };
        check(100, None, Some(400));
        // The path's round trips took longer than what was asked for.
        check(150, Some(700), Some(2800));
        check(150, Some(1000), Some(3000));
        check(150, Some(4000), None);
        // The start belongs to what is to be seen.
        check(0, Some(0), None);
    }

    #[test]
    fn what_is_not_repeated_takes_no_part_of_the_allowance() {
        let mut plan = plan();
        let mut agenda = Agenda::new(&plan, Repeats::Few);
        let why = |idle| RepeatReason::Invalid(Reason::Unshared(Unshared::Idle { idle, of: 4 }));
        let all = agenda.spoilt_left;
        plan.repeats.push(Repeat {
            trial: TrialId(2),
            of: TrialId(99),
            why: why(1),
        });
        for _ in 0..5 {
            let trial = TrialId(2);
            agenda.handle_spoilt(&plan, vec![Spoilt { trial, why: why(2) }]);
        }
        assert_eq!((agenda.spoilt_left, agenda.waiting()), (all, 0));
    }

    #[test]
    fn decided_experiments_stop_and_open_ones_go_on() {
        let mut plan = plan();
        let mut agenda = Agenda::new(&plan, Repeats::WhileThereIsTime);
        let mut done = Vec::new();
        let fits = |trials: &[Trial]| trials.len() < 2;
        while agenda.has_next(&plan, fits) {
            let trial = agenda.poll(&mut plan, fits).expect("there is one");
            done.push(trial.id.0);
            if trial.replicate == 2 && agenda.ends_round(&plan, &trial) {
                agenda.handle_open(&mut plan, vec!["a".to_owned()]);
                for by in [Disturbance::Rising(1.3), Disturbance::Unaccounted(0.1)] {
                    let trial = TrialId(1);
                    let why = RepeatReason::Disturbed(by);
                    agenda.handle_spoilt(&plan, vec![Spoilt { trial, why }]);
                }
            }
        }
        assert_eq!(agenda.poll(&mut plan, fits), None);
        // The third block of `b` is not done, those of `a` are, and one that was disturbed again.
        assert_eq!(done, [1, 2, 3, 4, 5, 11, 7, 9]);
        let left: Vec<u32> = plan.optional.iter().map(|trial| trial.id.0).collect();
        assert_eq!(left, [6, 8, 10]);
        assert_eq!(plan.left_out[0].what, "b: further blocks");
        assert_eq!(
            plan.left_out[0].why,
            "its verdicts were decided after 2 blocks"
        );
        let in_plan: Vec<u32> = plan.trials.iter().map(|trial| trial.id.0).collect();
        assert_eq!(in_plan, done);
        assert_eq!(plan.trials[5].timing.warm_up, Nanos::from_ms(400));
    }

    #[test]
    fn a_block_is_done_whole_or_not_at_all() {
        let plan = plan();
        let trials = &plan.trials[..3];
        let check = |left, expected| {
            let each = Nanos::from_ms(100);
            assert_eq!(fit(trials, each, left), expected);
        };
        check(None, true);
        check(Some(Nanos::from_ms(3300)), true);
        check(Some(Nanos::from_ms(3299)), false);
    }

    #[test]
    fn what_is_asked_for_when_nothing_is_left_goes_on_block_by_block() {
        let mut plan = plan();
        plan.optional.clear();
        let mut agenda = Agenda::new(&plan, Repeats::None);
        while agenda.poll(&mut plan, |_| true).is_some() {}
        let first = plan.trials[0].clone();
        let trial = |(id, replicate): (u32, u32)| Trial {
            id: TrialId(id),
            experiment: "c".to_owned(),
            replicate,
            ..first.clone()
        };
        let trials = [(20, 1), (21, 1), (22, 2), (23, 3)].map(trial).to_vec();
        let proof = Experiment {
            predicted: vec![Prediction {
                limiter: Limiter::PathRate,
                effect: None,
            }],
            ..experiment("c")
        };
        let mut next = |more: Option<More>| {
            if let Some(more) = more {
                agenda.handle_more(&mut plan, more);
            }
            let trial = agenda.poll(&mut plan, |_| true)?;
            assert_eq!(plan.trial(trial.id), Some(&trial));
            Some(trial.id.0)
        };
        let block = || Some(More::Block("c".to_owned()));
        assert_eq!(
            next(Some(More::Experiment(Box::new(proof), trials))),
            Some(20)
        );
        assert_eq!(next(None), Some(21));
        assert_eq!(next(None), None);
        assert_eq!(next(block()), Some(22));
        assert_eq!(next(None), None);
        assert_eq!(next(block()), Some(23));
        assert_eq!(next(block()), None);
    }
}
