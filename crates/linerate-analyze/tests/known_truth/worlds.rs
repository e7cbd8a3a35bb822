//! Tables of worlds: what each is, what must be concluded of it, and in which words. And how worlds are made.

use std::borrow::Borrow;

use linerate_model::host::Fact;

use crate::prelude::*;

pub(crate) const MS: i64 = 1_000_000;
/// The rate of a link.
pub(crate) const GIGABIT: Option<f64> = Some(1e9);

/// Something that is like another but for these fields.
macro_rules! like {
    (@set $like:ident, $field:ident) => { $like.$field = $field };
    (@set $like:ident, $($field:ident).+, $value:expr) => { $like.$($field).+ = $value };
    ($base:expr; $($($field:ident).+ $(: $value:expr)?),+ $(,)?) => {{
        let mut like = $base.clone();
        $(like!(@set like, $($field).+ $(, $value)?);)+
        like
    }};
}

/// Asserts that a text has words, has `no` others, `begins` or `ends` with some.
macro_rules! says {
    ($text:expr; $($($how:ident)? $words:literal),+) => {
        $crate::worlds::says(&$text, &[$((concat!($(stringify!($how))?), $words)),+])
    };
}

/// Asserts what is named in each world, a table of `limiter: world, words…`: this limiter and no other, `none`, or any but
/// one that is `not` to be named. Claim and explanation have the words; what has `no` before it they have not; the `claim`
/// alone, what is given as a reason (`why`), what to do (`action`) and what is `next` (or not: `no_next`) are asked for by
/// their names. The link's rate is not known but where it is said (`over`).
macro_rules! worlds {
    (@told none) => { $crate::worlds::Told::Nothing };
    (@told not $limiter:ident) => { $crate::worlds::Told::AnyBut(linerate_model::limiter::Limiter::$limiter) };
    (@told $limiter:ident) => { $crate::worlds::Told::Only(linerate_model::limiter::Limiter::$limiter) };
    (over $rate:expr; $($(#[doc = $what:literal])* $($told:ident)+: $world:expr $(, $($how:ident)? $words:literal)*;)+) => {
        $crate::worlds::check(vec![$($crate::worlds::Row {
            what: concat!($($what,)* " [", stringify!($world), "]"),
            run: $crate::worlds::World::made($world, $rate),
            told: worlds!(@told $($told)+),
            words: vec![$((concat!($(stringify!($how))?), $words)),*],
        }),+])
    };
    ($($rows:tt)+) => { worlds! { over None; $($rows)+ } };
}

/// The same over links of 1 Gbit/s.
macro_rules! gigabit {
    ($($rows:tt)+) => { worlds! { over Some(1e9); $($rows)+ } };
}

/// What must be concluded of a world.
#[derive(Debug)]
pub(crate) enum Told {
    Only(Limiter),
    Nothing,
    AnyBut(Limiter),
}

/// How words are looked for, and the words.
type Words = (&'static str, &'static str);

/// A row of a table of worlds.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) run: MadeRun,
    pub(crate) told: Told,
    pub(crate) words: Vec<Words>,
}

impl Row {
    /// Returns what is wrong with what is concluded.
    fn failure(&self) -> Option<String> {
        let found = limiters(&self.run.recording);
        let named: Vec<Limiter> = found.iter().map(|(limiter, _)| *limiter).collect();
        let is_told = match self.told {
            Told::Only(limiter) => named == [limiter],
            Told::Nothing => named.is_empty(),
            Told::AnyBut(limiter) => !named.contains(&limiter),
        };
        let (claim, why, action) = match found.first() {
            Some((_, first)) => (&*first.claim, &*first.explanation, first.action.as_deref()),
            None => ("", "", None),
        };
        let has = |(how, words): &&Words| match *how {
            "claim" | "begins" => says_so(how, words, claim),
            "why" => why.contains(words),
            "action" => action.is_some_and(|action| action.contains(words)),
            "next" => next_of(&self.run).contains(words),
            "no_next" => !next_of(&self.run).contains(words),
            how => says_so(how, words, &format!("{claim} {why}")),
        };
        let missing: Vec<_> = self.words.iter().filter(|words| !has(words)).collect();
        let is_right = is_told && missing.is_empty();
        (!is_right).then(|| {
            let (what, told) = (self.what, &self.told);
            format!("{what}: {told:?}, {missing:?} of {named:?}: {claim} {why} {action:?}")
        })
    }
}

/// Asserts that all rows are as they must be, and says which are not.
#[track_caller]
pub(crate) fn check(rows: Vec<Row>) {
    let wrong: Vec<String> = rows.iter().filter_map(Row::failure).collect();
    assert!(
        wrong.is_empty(),
        "{} of {} worlds:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

fn says_so(how: &str, words: &str, text: &str) -> bool {
    match how {
        "" | "claim" => text.contains(words),
        "no" => !text.contains(words),
        "begins" => text.starts_with(words),
        "ends" => text.ends_with(words),
        other => unreachable!("nothing is looked for by {other}"),
    }
}

#[track_caller]
pub(crate) fn says(text: &impl AsRef<str>, words: &[Words]) {
    let text = text.as_ref();
    for (how, words) in words {
        assert!(says_so(how, words, text), "{how} {words:?}: {text}");
    }
}

/// What makes a recording, over links of `rate` unless it has its own: three trials of a stream or of another workload.
pub(crate) trait World {
    fn made(self, rate: Option<f64>) -> MadeRun;
}

impl World for MadeRun {
    fn made(self, _: Option<f64>) -> MadeRun {
        self
    }
}

impl World for Truth {
    fn made(self, rate: Option<f64>) -> MadeRun {
        thrice(rate, stream(), &self)
    }
}

impl World for &Truth {
    fn made(self, rate: Option<f64>) -> MadeRun {
        thrice(rate, stream(), self)
    }
}

impl<T: Borrow<Truth>> World for (Workload, T) {
    fn made(self, rate: Option<f64>) -> MadeRun {
        thrice(rate, self.0, self.1.borrow())
    }
}

impl<T: Borrow<Truth>> World for (&Workload, T) {
    fn made(self, rate: Option<f64>) -> MadeRun {
        thrice(rate, self.0.clone(), self.1.borrow())
    }
}

/// Trials of an experiment on a workload, with as many clients as it has.
pub(crate) fn trials(rate: Option<f64>, workload: Workload, truths: &[Truth]) -> MadeRun {
    let mut run = MadeRun::new(workload.clients, rate);
    run.experiment("one", None, workload);
    run.cell(&[], truths);
    run
}

/// An experiment on a workload, or a chapter of the study, without trials.
pub(crate) fn begun(bps: Option<f64>, name: &str, chapter: Option<u32>, of: Workload) -> MadeRun {
    let mut run = MadeRun::new(1, bps);
    run.experiment(name, chapter, of);
    run
}

/// The same of a study.
pub(crate) fn studied(bps: Option<f64>, name: &str, chapter: Option<u32>, of: Workload) -> MadeRun {
    let mut run = begun(bps, name, chapter, of);
    run.recording.document.study = true;
    run
}

/// One trial.
pub(crate) fn once(rate: Option<f64>, workload: Workload, truth: &Truth) -> MadeRun {
    trials(rate, workload, std::slice::from_ref(truth))
}

/// Three trials that are alike.
pub(crate) fn thrice(rate: Option<f64>, workload: Workload, truth: &Truth) -> MadeRun {
    trials(rate, workload, &[0; 3].map(|_| truth.clone()))
}

/// Three trials over a path of unknown rate.
pub(crate) fn run(workload: Workload, truth: &Truth) -> MadeRun {
    thrice(None, workload, truth)
}

/// Datagrams of `bytes`, at a rate where one is asked for.
pub(crate) fn datagrams(rate_bps: Option<u64>, bytes: u64) -> Workload {
    let workload = like!(stream(); manner.transport: Transport::Udp, manner.rate_bps: rate_bps);
    sized(workload, bytes)
}

/// A stream in messages of `bytes`.
pub(crate) fn sized(mut workload: Workload, bytes: u64) -> Workload {
    if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
        *message_bytes = Bytes(bytes);
    }
    workload
}

/// Requests in so many writes.
pub(crate) fn written_in(mut workload: Workload, writes: u32) -> Workload {
    if let Traffic::Rr { request_writes, .. } = &mut workload.traffic {
        *request_writes = writes;
    }
    workload
}

/// All limiters that are named, the load generator, which is a caution, among them.
pub(crate) fn limiters(recording: &Recording) -> Vec<(Limiter, Finding)> {
    let limiter = |finding: Finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding)),
        _ => None,
    };
    crate::told(recording)
        .into_iter()
        .filter_map(limiter)
        .collect()
}

/// The finding or caution whose name ends so.
pub(crate) fn found(recording: &Recording, id: &str) -> Option<Finding> {
    let mut told = crate::told(recording).into_iter();
    told.find(|finding| finding.id.ends_with(id))
}

/// The chapter of this name.
#[track_caller]
pub(crate) fn chapter<'a>(analysis: &'a Analysis, id: &str) -> &'a Chapter {
    let mut chapters = analysis.chapters.iter();
    let found = chapters.find(|chapter| chapter.id == id);
    found.expect("the chapter exists")
}

/// What a chapter answers.
#[track_caller]
pub(crate) fn answer_of(analysis: &Analysis, id: &str) -> String {
    chapter(analysis, id).answer.clone().expect("an answer")
}

/// The limiter among the findings.
pub(crate) fn limiter_of(run: &MadeRun) -> Option<(Limiter, Finding)> {
    let mut findings = analyze(&run.recording).findings.into_iter();
    findings.find_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding)),
        _ => None,
    })
}

/// Returns the finding that names `expected`.
#[track_caller]
pub(crate) fn named(run: &MadeRun, expected: Limiter) -> Finding {
    let (limiter, finding) = limiter_of(run).expect("a limiter is named");
    assert_eq!(limiter, expected, "{}", finding.claim);
    finding
}

/// Returns what to do next.
pub(crate) fn next_of(run: &MadeRun) -> String {
    crate::as_single(&run.recording).next.unwrap_or_default()
}

/// What tests change of a recording.
pub(crate) trait Change {
    /// Adds three trials that are alike.
    fn alike(&mut self, levels: &[(Factor, Level)], truth: &Truth);
    /// Leaves the samples that are to be kept.
    fn keep(&mut self, is_kept: impl Fn(&TrialSample) -> bool);
    /// Takes out a counter of flows, for a test that counts itself.
    fn forget(&mut self, metric: Metric) {
        self.keep(|it| it.metric != metric || !matches!(it.subject, Subject::Flow(..)));
    }
    /// Changes each sample.
    fn change(&mut self, how: impl FnMut(&mut TrialSample));
    /// Changes what was read of a metric.
    fn set(&mut self, metric: Metric, value: impl Fn(&TrialSample) -> i64) {
        self.change(|sample| {
            if sample.metric == metric {
                sample.value = value(sample);
            }
        });
    }
    /// Puts what was read, and when, into each trial.
    fn put(&mut self, host: &str, subject: &Subject, metric: Metric, readings: &[(i64, i64)]);
    /// Has a counter of `host` grow by `amount` in the window of each trial.
    fn grow(&mut self, host: &str, subject: &Subject, metric: Metric, amount: i64) {
        let readings = [(50_000, 7), (1_000_050_000, 7 + amount)];
        self.put(host, subject, metric, &readings);
    }
    /// Has a time of `host` grow by a share of the window.
    fn spend(&mut self, host: &str, subject: &Subject, metric: Metric, share: f64) {
        self.grow(host, subject, metric, (share * 1e9) as i64);
    }
    /// Has a host tell a fact.
    fn tell(&mut self, host: &str, name: &str, value: FactValue);
    /// Has both hosts tell it.
    fn both_tell(&mut self, name: &str, value: FactValue) {
        self.tell("server", name, value.clone());
        self.tell("client1", name, value);
    }
    /// Says what the ends of each flow counted: the sender these, the receiver `received`.
    fn count(&mut self, sent: u64, received: Datagrams);
}

impl Change for MadeRun {
    fn alike(&mut self, levels: &[(Factor, Level)], truth: &Truth) {
        self.cell(levels, &[truth.clone(), truth.clone(), truth.clone()]);
    }

    fn keep(&mut self, is_kept: impl Fn(&TrialSample) -> bool) {
        let samples = std::mem::take(&mut self.recording.samples);
        self.recording.samples = samples.iter().filter(is_kept).collect();
    }

    fn change(&mut self, mut how: impl FnMut(&mut TrialSample)) {
        let samples = std::mem::take(&mut self.recording.samples);
        let changed = samples.iter().map(|mut sample| {
            how(&mut sample);
            sample
        });
        self.recording.samples = changed.collect();
    }

    fn put(&mut self, host: &str, subject: &Subject, metric: Metric, readings: &[(i64, i64)]) {
        let trials: Vec<TrialId> = self.recording.trials.iter().map(|it| it.trial).collect();
        for trial in trials {
            read(&mut self.recording, trial, host, subject, metric, readings);
        }
    }

    fn tell(&mut self, host: &str, name: &str, value: FactValue) {
        let mut hosts = self.recording.document.hosts.iter_mut();
        let host = hosts.find(|record| record.name == HostName::from(host));
        let facts = &mut host.expect("a host of the run").snapshot.facts;
        facts.retain(|fact| fact.name != name);
        let name = name.to_owned();
        facts.push(Fact { name, value });
        facts.sort_by(|a, b| a.name.cmp(&b.name));
    }

    fn count(&mut self, sent: u64, received: Datagrams) {
        for flow in &mut self.recording.flows {
            flow.outcome.datagrams = Some(Box::new(match flow.part {
                Part::Sender => like!(Datagrams::default(); sent),
                _ => like!(received; announced: Some(sent)),
            }));
        }
    }
}

/// Adds what was read in one trial, and when.
pub(crate) fn read(
    recording: &mut Recording,
    trial: TrialId,
    host: &str,
    subject: &Subject,
    metric: Metric,
    readings: &[(i64, i64)],
) {
    let samples = readings.iter().map(|&(at_ns, value)| TrialSample {
        trial,
        host: HostName::from(host),
        subject: subject.clone(),
        metric,
        at_ns,
        value,
    });
    recording.samples.extend(samples);
}

pub(crate) fn text(text: &str) -> FactValue {
    FactValue::Text(text.to_owned())
}

pub(crate) fn number(value: f64) -> FactValue {
    FactValue::Number(value, Unit::Count)
}

/// A worker's thread.
pub(crate) fn worker(number: u32) -> Subject {
    Subject::Thread(format!("worker-{number}"))
}

/// What is received of datagrams: so many of the first so many, and what the socket dropped.
pub(crate) fn received(received: u64, highest: u64, dropped: u64) -> Datagrams {
    like!(Datagrams::default(); received, highest, socket_drops: Some(dropped))
}
