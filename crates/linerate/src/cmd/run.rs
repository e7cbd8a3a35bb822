//! `linerate run`: one measurement, or an experiment file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_agent::foreign::iperf3_peer::Iperf3Peer;
use linerate_analyze::precision::Precision;
use linerate_controller::{
    Audience, Fleet, Inventories, Judgement, Placing, Progress, Recorder, Repeats, RunRequest,
    WarmUp, execute,
};
use linerate_model::capture::CaptureOutcome;
use linerate_model::experiment::Timing;
use linerate_model::finding::{FindingKind, Limiter};
use linerate_model::plan::Plan;
use linerate_model::run::Recording;
use linerate_model::unit::significant;
use linerate_model::{Bytes, Nanos};

use super::execute::{Execution, Placement};
use super::lab_fleet;
use super::study;
use crate::args::{RateFormat, RunArgs};
use crate::bundle::{self, Moment};
use crate::exit::{CmdResult, Failure, Outcome};
use crate::term::single::SingleLines;
use crate::workload::{not_possible, rate_note, workload};
use crate::{hosts, interrupt, iperf3, peer, term};

/// Shortest time between interval lines, and between samples.
const INTERVAL_MIN: Nanos = Nanos::from_ms(100);
/// Measurements beyond this are sampled once a second.
const LONG: Nanos = Nanos::from_s(600);
/// What `-t 0` means before Ctrl-C: a day less the phases around it.
const UNTIL_STOPPED: Nanos = Nanos::from_s(86_000);
/// How long a volume may take: less than agents allow a caller without their token.
const VOLUME_TIME: Nanos = Nanos::from_s(3500);
/// Quiet time before each of several measurements.
const SETTLE: Nanos = Nanos::from_ms(20);
/// Traffic after the window, so that a reading at its end that is late still sees the same rate: at
/// most this, which is ten times what a sampler is late on a busy machine…
const DRAIN_MAX: Nanos = Nanos::from_ms(50);
/// …and no more than this part of a short window. A reading that is even later averages in as much
/// silence at the most.
const DRAIN_PART: u64 = 500;
/// How long before the stop code may be read that comes after it: when hosts are looked at for the last
/// time before.
const AHEAD_NS: i64 = 50_000_000;
/// Longest measurement that can be asked for.
const TIME_S_MAX: f64 = 86_000.0;
/// Traffic that is not counted at the start when nothing else is asked for.
const OMIT_S: f64 = 0.2;
/// How CPUs are named.
const AFFINITY: &str = "name them as 0:2:4 or 0-3, and those of the server after a comma";
/// Most repetitions: far more than an interval gets narrower by.
const RUNS_MAX: u32 = 1000;

/// Runs the command.
pub fn run(args: &RunArgs) -> CmdResult {
    match &args.plan.experiment {
        Some(file) => experiment(args, file),
        None if args.margins.words().is_empty() => measure(args),
        None => {
            let error = anyhow!("{} has nothing to compare", args.margins.words().trim());
            Err(Failure::usage(error).next("add --experiment FILE, or leave it out"))
        }
    }
}

fn experiment(args: &RunArgs, file: &Path) -> CmdResult {
    let draft = super::plan::read(file)?;
    let asked = format!("linerate run --experiment {}", file.display());
    if !args.plan.lab {
        let (specs, _peer) = peer::specs(args)?;
        return execute_experiment(args, &draft, specs, &asked);
    }
    let asked = format!("{asked} --lab{}", args.plan.lab_link.words());
    let drafts = std::slice::from_ref(&draft);
    lab_fleet::in_lab(&args.plan.lab_link, drafts, |specs| {
        execute_experiment(args, &draft, specs, &asked)
    })
}

fn execute_experiment(
    args: &RunArgs,
    draft: &linerate_plan::Draft,
    specs: Vec<linerate_controller::HostSpec>,
    asked: &str,
) -> CmdResult {
    let stop = interrupt::flag()?;
    let moment = Moment::now();
    let (run, seed) = bundle::new_run(&moment, args.plan.seed)?;
    let expected = args.plan.budget.unwrap_or(Nanos::from_s(600));
    let request = hosts::admit_request(&run, asked, &args.fleet, expected);
    let fleet = hosts::gather(specs, &request, Inventories::First, &stop)?;
    let drafts = std::slice::from_ref(draft);
    let hosts = match args.plan.lab {
        true => lab_fleet::settled(&args.plan.lab_link, hosts::plan_hosts(&fleet))?,
        false => hosts::plan_hosts(&fleet),
    };
    let mut plan = study::make_plan(drafts, args.plan.budget, seed, hosts)?;
    plan.margins = args.margins.margins();
    for experiment in &mut plan.experiments {
        experiment.probes = experiment.probes.and(args.observe.probes());
    }
    let execution = Execution {
        run,
        asked: format!("{asked}{} --seed {seed}", args.margins.words()),
        study: false,
        plan,
        directory: bundle::directory(args.output.out.as_deref(), "run", &moment),
        moment,
        placement: if args.plan.lab {
            lab_fleet::placement()
        } else {
            Placement::default()
        },
        stop,
    };
    super::execute::run(execution, fleet)
}

fn measure(args: &RunArgs) -> CmdResult {
    let interval = interval(args)?;
    let workload = workload(args)?;
    let (client_cpus, server_cpus) = cpus(args.place.affinity.as_deref())?;
    peer::check(args, &workload)?;
    if args.fleet.clients.is_empty() {
        hosts::check_this_host(&workload, &client_cpus)?;
    }
    let placing = match args.place.affinity {
        Some(_) => Placing::AsAsked,
        None => hosts::placing(),
    };
    if args.output.format == Some(RateFormat::Iperf3) {
        iperf3::check(&workload, *args.time.repetitions().end())?;
    }
    let timing = peer::timing(args, timing(args)?);
    for (flag, runs) in [
        ("--runs", args.time.runs),
        ("--runs-max", args.time.runs_max),
    ] {
        if !(1..=RUNS_MAX).contains(&runs) {
            let error = anyhow!("{flag} is {runs}, but must be 1 to {RUNS_MAX}");
            return Err(Failure::usage(error));
        }
    }
    if let Some(note) = rate_note(args, &workload) {
        term::note(&note);
    }
    if args.observe.capture.capture.is_some() && args.output.out.is_none() {
        let error = anyhow!("--capture keeps its files in a bundle");
        return Err(Failure::usage(error).next("name a directory for it: --out DIR"));
    }
    let moment = Moment::now();
    let (run, seed) = bundle::new_run(&moment, args.plan.seed)?;
    let plan = linerate_plan::single(workload, timing, args.time.repetitions(), seed)
        .map_err(Failure::usage)?;
    let host = args.host.as_deref().unwrap_or_default();
    let (specs, foreign) = peer::specs(args)?;
    let stop = interrupt::flag()?;
    let request = hosts::admit_request(
        &run,
        &format!("linerate run {host}"),
        &args.fleet,
        plan.estimate,
    );
    // Reading the command line is over.
    linerate_agent::give_back_text();
    let fleet =
        hosts::gather(specs, &request, inventories(args), &stop).inspect_err(|failure| {
            if args.output.format == Some(RateFormat::Iperf3) {
                iperf3::print_failure(args.output.json_stream, &failure.to_string());
            }
        })?;
    check_buffers(args.socket.window, &fleet)?;
    let request = RunRequest {
        run,
        asked: std::env::args()
            .skip(1)
            .fold("linerate".to_owned(), |all, word| all + " " + &word),
        study: false,
        plan: for_clients(plan, fleet.clients(), args)?,
        sample_interval: sample_interval(timing.measure, interval),
        look_interval: if interval.0 == 0 {
            Nanos::from_s(1)
        } else {
            interval
        }
        .min(match foreign {
            Some(_) => peer::LOOK_MAX,
            None => Nanos(u64::MAX),
        }),
        server_cpus,
        client_cpus,
        placing,
        workers_max: args.place.workers,
        started_utc: moment.rfc3339,
        warm_up: match args.time.omit {
            Some(_) => WarmUp::AsAsked,
            None => WarmUp::RoundTrips,
        },
        time: None,
        repeats: Repeats::None,
        first_look: *args.time.repetitions().start(),
    };
    execute_single(args, &request, fleet, interval, &stop, foreign.as_ref())
}

/// Flows from which on their first windows may take a line longer than the time before the window: of
/// three, at 10 Mbit/s.
const FLOWS_THAT_QUEUE: u32 = 3;

/// Returns when hosts are asked what they have: buffers are held against it, captures need the link's
/// name, what comes before the window of many streams follows from its rate, and what is on the disk of a
/// run that is killed should tell whose it was.
fn inventories(args: &RunArgs) -> Inventories {
    let is_needed = args.socket.window.is_some()
        || args.observe.capture.capture.is_some()
        || args.traffic.parallel >= FLOWS_THAT_QUEUE;
    match is_needed || args.output.out.is_some() {
        true => Inventories::First,
        false => Inventories::Underway,
    }
}

/// Deals the flows to the clients there are.
fn for_clients(mut plan: Plan, clients: u32, args: &RunArgs) -> CmdResult<Plan> {
    for trial in plan.trials.iter_mut().chain(&mut plan.optional) {
        trial.workload.clients = clients.min(args.traffic.parallel);
        trial.workload.check().map_err(not_possible)?;
    }
    for experiment in &mut plan.experiments {
        experiment.workload.clients = clients.min(args.traffic.parallel);
        experiment.probes = args.observe.probes();
    }
    Ok(plan)
}

fn execute_single(
    args: &RunArgs,
    request: &RunRequest,
    mut fleet: Fleet,
    interval: Nanos,
    stop: &Arc<AtomicBool>,
    peer: Option<&Iperf3Peer>,
) -> CmdResult {
    let document = request.document(&fleet);
    let mut lines = SingleLines::new(args, interval);
    lines.start(&document);
    let mut recorder = match &args.output.out {
        None => Recorder::memory(&document),
        Some(directory) => Recorder::bundle(directory, &document)
            .map_err(|error| Failure::failed(error).next("name another directory with --out"))?,
    };
    let wanted = args.time.wanted();
    let mut judge = |recording: &Recording| {
        let results = linerate_analyze::precision::results(recording);
        let is_open = wanted.is_some_and(|wanted| !wanted.is_met(&results));
        let experiments = recording.document.plan.experiments.iter();
        let open = experiments.filter(|_| is_open);
        Judgement {
            open: open.map(|experiment| experiment.name.clone()).collect(),
            disturbed: Vec::new(),
        }
    };
    let audience = Audience {
        judge: match wanted.is_some() {
            true => Some(&mut judge),
            false => None,
        },
        watch: &mut |event| match event {
            Progress::Begins { trial, over, .. } => lines.begins(trial, over),
            Progress::Look {
                trial,
                at_ns,
                samples,
            } => {
                lines.look(samples);
                let stop_ns = (trial.timing.measure.0 + trial.timing.drain.0) as i64;
                if (stop_ns - AHEAD_NS..stop_ns).contains(&at_ns) {
                    // What makes the result of it all.
                    linerate_agent::read_text_ahead();
                }
            }
            Progress::Note(text) => term::note(text),
            Progress::Over { .. } => {}
        },
    };
    let result = execute(request, &mut fleet, &mut recorder, stop, audience);
    drop(fleet);
    linerate_agent::give_back_text();
    let mut document = result?;
    bundle::ended(&mut document);
    let recording = match (recorder.finish(&document)?, &args.output.out) {
        (Some(recording), _) => recording,
        (None, Some(directory)) => bundle::report(directory)?.0,
        (None, None) => return Err(Failure::failed(anyhow!("the run was not taken down"))),
    };
    // The final lines show no intervals, and those of thousands of flows are most of a document.
    let shown = match args.output.json || args.output.json_stream {
        true => interval,
        false => Nanos(0),
    };
    let single = linerate_analyze::single::single(&recording, shown);
    let outcome = deserved(&recording, &single, stop.load(Ordering::Relaxed));
    let result = match outcome {
        Outcome::Failed | Outcome::Interrupted => failure_of(&recording, &single, outcome),
        outcome => Ok(outcome),
    };
    let failure = match &result {
        Err(failure) => Some(failure.to_string()),
        Ok(Outcome::Interrupted) => Some("interrupt - the client has terminated".to_owned()),
        Ok(_) => None,
    };
    lines.end(&recording, &single, peer, failure.as_deref());
    if let Some(directory) = &args.output.out {
        term::note(&format!("report in {}", directory.display()));
        if args.output.format != Some(RateFormat::Iperf3) {
            captures(&recording, directory);
        }
    }
    match (result, args.time.wanted()) {
        (Ok(outcome @ (Outcome::Ok | Outcome::Untrustworthy)), Some(wanted)) => {
            determined(&recording, wanted, args.output.format)?;
            Ok(outcome)
        }
        (result, _) => result,
    }
}

/// Says whether the result is as narrow as was asked for; a failure if it is not.
fn determined(
    recording: &Recording,
    wanted: Precision,
    format: Option<RateFormat>,
) -> CmdResult<()> {
    let results = linerate_analyze::precision::results(recording);
    let percent = |share: f64| format!("±{} %", significant(100.0 * share));
    let reached = wanted.reached(&results);
    let words = format!(
        "{} at {} % confidence after {} valid runs",
        reached.map_or_else(|| "no interval".to_owned(), percent),
        significant(100.0 * wanted.confidence),
        results.len(),
    );
    let asked = percent(wanted.half_share);
    if wanted.is_met(&results) {
        if format != Some(RateFormat::Iperf3) {
            term::note(&format!("determined to {asked}: {words}"));
        }
        return Ok(());
    }
    Err(Failure {
        outcome: Outcome::Untrustworthy,
        ..Failure::failed(anyhow!("not determined to {asked}: {words}"))
            .next("measure longer (-t), repeat more (--runs-max), or find out what disturbs it")
    })
}

/// Says what each host captured, and where it is.
fn captures(recording: &Recording, directory: &Path) {
    for capture in &recording.captures {
        let host = &capture.host;
        term::note(&match &capture.outcome {
            CaptureOutcome::Missing(why) => format!("nothing captured at {host}: {why}"),
            CaptureOutcome::Taken(taken) => {
                let mut text = format!("captured at {host}: {} frames", taken.frames);
                if taken.dropped > 0 {
                    text.push_str(&format!(", {} more lost by the ring", taken.dropped));
                }
                if let Some(why) = &taken.ended {
                    text.push_str(&format!(", ended early as {why}"));
                }
                if let Some(path) = linerate_store::capture_path(directory, capture) {
                    text.push_str(&format!(", in {}", path.display()));
                }
                text
            }
        });
    }
}

/// Says on standard error why nothing was measured, where nothing was, or why not all of it.
fn failure_of(
    recording: &Recording,
    single: &linerate_analyze::single::Single<'_>,
    outcome: Outcome,
) -> CmdResult {
    let invalid = single.trials.iter().map(|trial| trial.invalid.as_deref());
    let Some(why) = invalid.reduce(|first, next| first.and(next)).flatten() else {
        return match &recording.document.cut_short {
            Some(why) if outcome == Outcome::Failed => {
                Err(Failure::failed(anyhow!("{why}")).next("what was measured before is kept"))
            }
            _ => Ok(outcome),
        };
    };
    let error = anyhow!("nothing was measured: {why}");
    let failure = Failure {
        outcome,
        ..Failure::failed(error)
    };
    if outcome == Outcome::Interrupted {
        return Err(failure.next("let it run longer, or measure for less time with -t"));
    }
    // An agent that refuses its part has not measured anything, and will not the next time.
    let mut hosts = recording.document.hosts.iter();
    let is_foreign = hosts.any(|host| host.foreign.is_some());
    if why.contains(" refused: ") && !why.contains("the window began") && !is_foreign {
        return Err(Failure {
            outcome: Outcome::Usage,
            ..failure.next("ask for what that host can do, or change what it names there")
        });
    }
    let lost = why.contains("the agent at") || why.contains("no agent answers");
    Err(failure.next(match lost {
        true => "see whether `linerate serve` still runs there, and measure again",
        false => "mend what it names, and measure again",
    }))
}

/// Returns the exit code of a single measurement: a saturated generator spoils its trust.
fn deserved(
    recording: &Recording,
    single: &linerate_analyze::single::Single<'_>,
    interrupted: bool,
) -> Outcome {
    let outcome = bundle::outcome(recording, single.trust.level, interrupted);
    let mut told = single.findings.iter().chain(&single.cautions);
    let generator = told.any(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => is_of_cpus(limiter),
        _ => false,
    });
    let unread = single
        .trials
        .iter()
        .any(|trial| trial.lost_unread().is_some());
    match outcome {
        Outcome::Ok if generator || unread => Outcome::Untrustworthy,
        other => other,
    }
}

/// Whether a limiter says that our own workers had no time left, whoever had it.
fn is_of_cpus(limiter: Limiter) -> bool {
    matches!(
        limiter,
        Limiter::Generator | Limiter::Cpu | Limiter::OtherPrograms | Limiter::CpuQuota
    )
}

fn interval(args: &RunArgs) -> CmdResult<Nanos> {
    if args.output.interval == 0.0 {
        return Ok(Nanos(0));
    }
    if !(0.1..=3600.0).contains(&args.output.interval) {
        let error = anyhow!(
            "--interval is {}, but must be 0 or 0.1 to 3600 s",
            args.output.interval
        );
        return Err(Failure::usage(error));
    }
    // Whole tenths, since that is when samples are taken.
    let interval = Nanos((args.output.interval * 10.0).round() as u64 * INTERVAL_MIN.0);
    if let Some(rate) = args.observe.sample_rate
        && rate.interval() > interval
    {
        return Err(Failure::usage(anyhow!(
            "--interval is {interval}, but --sample-rate {} samples every {}",
            u32::from(rate),
            rate.interval()
        )));
    }
    Ok(interval)
}

/// Returns the time between samples: tenths of a second, and seconds in long measurements, so that
/// an hour's samples fit the memory; never longer than the interval lines want.
fn sample_interval(measure: Nanos, interval: Nanos) -> Nanos {
    let fitting = match measure > LONG {
        true => Nanos::from_s(1),
        false => INTERVAL_MIN,
    };
    match interval.0 {
        0 => fitting,
        _ => fitting.min(interval),
    }
}

fn timing(args: &RunArgs) -> CmdResult<Timing> {
    let seconds = |what: &str, value: f64, low: f64| {
        if value.is_finite() && (low..=TIME_S_MAX).contains(&value) {
            return Ok(Nanos((value * 1e9) as u64));
        }
        Err(Failure::usage(anyhow!(
            "{what} is {value}, but must be {low} to {TIME_S_MAX} s"
        )))
    };
    let measure = match args.time.time {
        0.0 => UNTIL_STOPPED,
        time => seconds("--time", time, 0.1)?,
    };
    let by_volume = args.rate.bytes.is_some() || args.rate.blockcount.is_some();
    let measure = if by_volume { VOLUME_TIME } else { measure };
    let omit = args
        .time
        .omit
        .unwrap_or(if by_volume { 0.0 } else { OMIT_S });
    let warm_up = seconds("--omit", omit, 0.0)?;
    Ok(Timing {
        // Before the first there is nothing that would have to settle.
        settle: match args.time.repetitions().end() {
            1 => Nanos(0),
            _ => SETTLE,
        },
        warm_up,
        measure,
        drain: Nanos(measure.0 / DRAIN_PART).min(DRAIN_MAX),
    })
}

/// Splits `LOCAL[,REMOTE]`, each a list such as `0:2:4` or `0-3:8`.
fn cpus(text: Option<&str>) -> CmdResult<(Vec<u32>, Vec<u32>)> {
    let Some(text) = text.filter(|text| *text != "none") else {
        return Ok((Vec::new(), Vec::new()));
    };
    let list = |part: &str| -> CmdResult<Vec<u32>> {
        let mut cpus = Vec::new();
        for word in part.split(':').filter(|word| !word.is_empty()) {
            cpus.extend(linerate_observe::cpu_range(word).ok_or_else(|| {
                let error = anyhow!("`{word}` in --affinity {text} is not a CPU number");
                Failure::usage(error).next(AFFINITY)
            })?);
        }
        Ok(cpus)
    };
    let (local, remote) = text.split_once(',').unwrap_or((text, ""));
    Ok((list(local)?, list(remote)?))
}

/// Refuses a buffer that a host would silently cap, naming the sysctl.
fn check_buffers(window: Option<Bytes>, fleet: &Fleet) -> CmdResult<()> {
    let Some(window) = window else { return Ok(()) };
    for member in fleet.members() {
        for name in ["net.core.wmem_max", "net.core.rmem_max"] {
            let most = member.record.snapshot.number(&format!("sysctl.{name}"));
            if let Some(most) = most.filter(|most| window.0 as f64 > *most) {
                let host = &member.record.name;
                let error = anyhow!(
                    "a buffer of {} B on {host}: {name} = {most} caps it",
                    window.0
                );
                return Err(Failure::usage(error).next(format!(
                    "ask for at most {most} B, or raise it there: sysctl -w {name}={}",
                    window.0
                )));
            }
        }
    }
    Ok(())
}
