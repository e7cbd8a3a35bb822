//! Looks at a running trial, until every host has handed in its results.

use std::mem::take;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_model::Nanos;
use linerate_model::reason::Reason;
use linerate_model::samples::Samples;

use super::participant::Participant;
use super::{Attempt, Spooling, TrafficEnd};
use crate::event::RunEvent;

/// How long after an interval's end its reading has been made, on all but the busiest hosts.
const READ_NS: u64 = 20_000_000;
/// How long before the window hosts are looked at: what they have read until then is not handed over inside it,
/// on a link that may be the one that is measured.
const LOOK_BEFORE_NS: u64 = 50_000_000;
/// How long before the stop hosts are looked at for the last time: most of what there is has been taken
/// over then, and does not keep them from reading the end of the window and from draining.
const LAST_LOOK_NS: u64 = 20_000_000;
/// How long an agent may hold its answer back from the stop on, until its flows have drained: no longer
/// than the stop flag goes unseen elsewhere.
const END_WAIT: Nanos = Nanos::from_ms(50);
/// Time between looks from the stop on at agents that do not wait: an eighth of what it has taken since,
/// within these.
const LOOK_AT_END_NS: (u64, u64) = (300_000, 5_000_000);
/// Longest time between looks at a trial that a volume ends: nobody knows when that will be.
const VOLUME_LOOK: Nanos = Nanos::from_ms(50);
/// Longest time between looks, however seldom lines are wanted: agents take a run of which they hear nothing
/// for 20 s for gone, which its quiet time before the start may be, too.
const LOOK_NS_MAX: u64 = 5_000_000_000;
/// Longest sleep between two looks at the stop flag.
const STOP_LOOK: Duration = Duration::from_millis(50);
/// How long after the stop a trial may take to hand in its results: receivers drain for 2 to 6 s, the
/// agent gives up after 10 s.
const OVERTIME_NS: u64 = 12_000_000_000;

/// How far following a trial has come.
struct Following<'t, 'a> {
    attempt: &'t mut Attempt<'a>,
    end: TrafficEnd,
    stop_ns: u64,
    look_ns: u64,
    /// How it ended, once it has.
    ended: Option<Result<TrafficEnd, Reason>>,
}

impl<'a> Attempt<'a> {
    /// Takes over samples of all `attempts` that have begun until every host has handed in its results, and then what it
    /// captured. A host that does not answer is asked until [`OVERTIME_NS`] after the end of the traffic: the measured path
    /// may be that of the answers. Hosts of trials that go on at the same time are looked at at the same time.
    pub(super) fn follow(
        attempts: &mut [Self],
        begun: Vec<Result<(), Reason>>,
        mut spooling: Spooling<'_>,
        watch: &mut dyn FnMut(&RunEvent<'_>),
    ) -> Vec<Result<TrafficEnd, Reason>> {
        let with_begun = attempts.iter_mut().zip(begun);
        let mut all: Vec<Following<'_, 'a>> = with_begun
            .map(|(attempt, begun)| Following::of(attempt, begun))
            .collect();
        while let Some(look_ns) = all
            .iter()
            .filter(|one| one.ended.is_none())
            .map(|one| one.look_ns)
            .min()
        {
            look_at(&mut all, look_ns, watch);
            let attempts = all.iter_mut().map(|one| &mut one.attempt.participants);
            let gathered = attempts.flatten().map(|one| &mut one.gathered.samples);
            spooling.relieve(gathered.collect());
        }
        let ended = all.into_iter().map(|one| one.ended);
        ended
            .map(|ended| ended.unwrap_or(Ok(TrafficEnd::Planned)))
            .collect()
    }
}

/// Looks at the hosts of those of `all` whose turn it is at `look_ns`, takes over what they have, and shows it.
fn look_at(all: &mut [Following<'_, '_>], look_ns: u64, watch: &mut dyn FnMut(&RunEvent<'_>)) {
    let mut due: Vec<_> = all
        .iter_mut()
        .filter(|one| one.ended.is_none() && one.look_ns <= look_ns)
        .collect();
    let Some(first) = due.first() else { return };
    let fleet = first.attempt.fleet;
    let clock = &fleet.clock;
    let is_planned = due.iter().any(|one| one.end == TrafficEnd::Planned);
    if is_planned && first.attempt.is_interrupted_before(look_ns) {
        for one in &mut due {
            one.interrupt();
        }
        due.retain(|one| one.ended.is_none());
    }
    if let Some(first) = due.first() {
        first.attempt.sleep_until(look_ns);
    }
    // Taking over the readings of thousands of flows takes seconds on a busy machine, which
    // is no delay of the hosts.
    let looked_ns = clock.now_ns();
    let hosts = due.iter_mut().flat_map(|one| {
        let wait = if looked_ns >= one.stop_ns {
            END_WAIT
        } else {
            Nanos(0)
        };
        let at = one.attempt.at;
        let unfinished = one.attempt.participants.iter_mut();
        let unfinished = unfinished.filter(|one| !one.gathered.is_finished);
        unfinished.map(move |host| (host, at, wait))
    });
    let hosts: Vec<_> = hosts.collect();
    clock.together(hosts, |(host, at, wait)| host.look(clock, &at, wait));
    for one in due {
        one.attempt.show(watch);
        one.handle_look(looked_ns);
    }
}

impl<'t, 'a> Following<'t, 'a> {
    fn of(attempt: &'t mut Attempt<'a>, begun: Result<(), Reason>) -> Self {
        let stop_ns = attempt.at.stop_ns;
        let now_ns = attempt.fleet.clock.now_ns();
        let mut following = Self {
            end: TrafficEnd::Planned,
            stop_ns,
            look_ns: 0,
            ended: begun.err().map(Err),
            attempt,
        };
        let first_ns = following.next(following.attempt.at.start_ns);
        following.look_ns = first_ns.min(now_ns + LOOK_NS_MAX);
        following
    }

    fn is_by_volume(&self) -> bool {
        self.attempt.trial.workload.manner.bytes_max.is_some()
    }

    /// Returns when hosts that were looked at at `now_ns` are looked at again.
    fn next(&self, now_ns: u64) -> u64 {
        let asked = self.attempt.run.request.look_interval;
        let interval = if self.is_by_volume() {
            asked.min(VOLUME_LOOK)
        } else {
            asked
        };
        let next_ns = next_look(now_ns, self.attempt.at.begin_ns, interval, self.stop_ns);
        next_ns.min(now_ns + LOOK_NS_MAX)
    }

    /// Ends the traffic, since the user has seen enough.
    fn interrupt(&mut self) {
        if self.end == TrafficEnd::Planned {
            self.end_as(TrafficEnd::Interrupted, Reason::Interrupted);
        }
    }

    /// Ends the traffic for `why`, if its numbers are worth keeping.
    fn end_as(&mut self, end: TrafficEnd, why: Reason) {
        let is_lost = matches!(end, TrafficEnd::Lost(_));
        match self.attempt.end_now(why) {
            Ok(stop_ns) if is_lost => self.stop_ns = self.stop_ns.min(stop_ns),
            Ok(stop_ns) => self.stop_ns = stop_ns,
            Err(why) => {
                self.ended = Some(Err(why));
                return;
            }
        }
        self.end = end;
    }

    /// Takes up what a look at `looked_ns` brought.
    fn handle_look(&mut self, looked_ns: u64) {
        let now_ns = self.attempt.fleet.clock.now_ns();
        self.attempt.give_up(self.stop_ns + OVERTIME_NS, looked_ns);
        let forsaken = self.attempt.forsaken();
        if let Some(why) = forsaken.filter(|_| self.end == TrafficEnd::Planned) {
            self.end_as(TrafficEnd::Forsaken(why.clone()), why);
        }
        let lost = self.attempt.lost();
        let is_new = self.ended.is_none() && !matches!(self.end, TrafficEnd::Lost(_));
        if let Some(why) = lost.filter(|_| is_new) {
            self.end_as(TrafficEnd::Lost(why.clone()), why);
        }
        let mut hosts = self.attempt.participants.iter();
        if self.ended.is_none() && hosts.all(|one| one.gathered.is_finished) {
            self.attempt.fetch_captures();
            let is_all_sent = self.is_by_volume() && now_ns < self.attempt.at.stop_ns;
            self.ended = Some(Ok(match self.end.clone() {
                TrafficEnd::Planned if is_all_sent => TrafficEnd::AllSent,
                end => end,
            }));
        }
        self.look_ns = self.next(now_ns);
    }
}

impl Attempt<'_> {
    /// Shows what is new at all hosts.
    fn show(&mut self, watch: &mut dyn FnMut(&RunEvent<'_>)) {
        // All hosts at once: what one host says alone would look like a gap in the others.
        let news = self.participants.iter_mut();
        let news: Vec<Samples> = news.map(|one| take(&mut one.gathered.news)).collect();
        watch(&RunEvent::Samples {
            trial: self.trial,
            at_ns: self.fleet.clock.now_ns() as i64 - self.at.begin_ns as i64,
            hosts: &news,
        });
        // Moved, not copied: the readings of thousands of flows are megabytes.
        for (participant, news) in self.participants.iter_mut().zip(news) {
            participant.gathered.samples.append(news);
        }
    }

    fn fetch_captures(&mut self) {
        let captured = self
            .participants
            .iter_mut()
            .filter(|one| one.gathered.capture.is_some());
        let clock = &self.fleet.clock;
        clock.together(captured, Participant::fetch_capture);
    }

    /// Waits for the instant of the next look; returns true if the user interrupts before.
    fn is_interrupted_before(&self, instant_ns: u64) -> bool {
        loop {
            if self.run.stop.load(Ordering::Relaxed) {
                return true;
            }
            if self.fleet.clock.now_ns() >= instant_ns {
                return false;
            }
            self.sleep_until(instant_ns);
        }
    }

    /// Sleeps until the instant, but no longer than until the stop flag should be looked at.
    fn sleep_until(&self, instant_ns: u64) {
        let left = instant_ns.saturating_sub(self.fleet.clock.now_ns());
        let clock = &self.fleet.clock;
        clock.sleep(Duration::from_nanos(left).min(STOP_LOOK));
    }

    /// Ends the traffic of a trial that goes on no longer, if its numbers are worth keeping: a single
    /// measurement has no others. Returns the instant at which it stopped.
    fn end_now(&mut self, why: Reason) -> Result<u64, Reason> {
        let now_ns = self.fleet.clock.now_ns();
        let plan = &self.run.request.plan;
        let has_others = plan.trials.len() + plan.optional.len() > 1;
        if has_others || now_ns <= self.at.begin_ns {
            return Err(why);
        }
        let unfinished = self
            .participants
            .iter_mut()
            .filter(|one| !one.gathered.is_finished);
        let clock = &self.fleet.clock;
        // One that cannot be told ends in time, and whether it still answers is seen by looking.
        clock.together(unfinished, |one| drop(one.agent.stop()));
        Ok(now_ns)
    }

    /// Waits no longer for hosts that have not handed in their results by then; all were asked at
    /// `looked_ns`, and what those that answer hand over may take its time.
    fn give_up(&mut self, overtime_ns: u64, looked_ns: u64) {
        let now_ns = self.fleet.clock.now_ns();
        for one in &mut self.participants {
            let since_ns = if one.is_silent() { now_ns } else { looked_ns };
            if !one.gathered.is_finished && since_ns > overtime_ns {
                one.give_up(Nanos(OVERTIME_NS));
            }
        }
    }

    /// Returns why not all came that hosts measured, if it did not.
    fn lost(&self) -> Option<Reason> {
        let mut participants = self.participants.iter();
        participants.find_map(|one| one.gathered.lost.clone())
    }

    /// Returns why a server that is no agent gave up, if one did.
    fn forsaken(&self) -> Option<Reason> {
        let mut participants = self.participants.iter();
        participants.find_map(|one| one.gathered.forsook.clone())
    }
}

/// Returns when hosts that were looked at at `now_ns` are looked at again: when they have read the end
/// of an interval of the window, so that its line is shown as it ends.
fn next_look(now_ns: u64, begin_ns: u64, interval: Nanos, stop_ns: u64) -> u64 {
    let last_ns = stop_ns.saturating_sub(LAST_LOOK_NS);
    if now_ns < last_ns {
        let (read_ns, interval_ns) = (begin_ns + READ_NS, interval.0.max(1));
        // In the warm-up, too, which may be longer than an interval.
        let since_ns = now_ns as i64 - read_ns as i64;
        let left_ns = interval_ns - since_ns.rem_euclid(interval_ns as i64) as u64;
        let before_ns = begin_ns.saturating_sub(LOOK_BEFORE_NS);
        let last_ns = if now_ns < before_ns {
            before_ns
        } else {
            last_ns
        };
        return (now_ns + left_ns).min(last_ns);
    }
    if now_ns < stop_ns {
        return stop_ns;
    }
    let (least, most) = LOOK_AT_END_NS;
    now_ns + ((now_ns - stop_ns) / 8).clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_leave_the_end_of_the_window_alone_and_become_rarer_after_it() {
        const MS: u64 = 1_000_000;
        // A window from 200 ms on with a stop after 1202 ms.
        let (begin_ns, stop_ns) = (200 * MS, 1_202 * MS);
        let check = |now_ms: u64, expected_us: u64| {
            let next_ns = next_look(now_ms * MS, begin_ns, Nanos::from_ms(250), stop_ns);
            assert_eq!(next_ns, expected_us * 1_000, "after {now_ms} ms");
        };
        check(0, 150_000);
        check(150, 220_000);
        check(219, 220_000);
        check(220, 470_000);
        check(471, 720_000);
        check(980, 1_182_000);
        check(1_182, 1_202_000);
        check(1_202, 1_202_300);
        check(1_203, 1_203_300);
        check(1_206, 1_206_500);
        check(1_300, 1_305_000);
        let late_ns = next_look(100 * MS, 5_000 * MS, Nanos::from_s(1), 9_000 * MS);
        assert_eq!(late_ns, 1_020 * MS, "a long warm-up");
        let at_once = next_look(3, 0, Nanos::from_s(1), 10 * MS);
        assert_eq!(at_once, 10 * MS, "a trial shorter than that has one look");
    }
}
