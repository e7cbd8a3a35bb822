//! One measurement: what the flags of `linerate run` come to.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::anyhow;
use linerate_agent::foreign::NETPERF;
use linerate_agent::foreign::iperf3_peer::parameters_of;
use linerate_analyze::precision::Precision;
use linerate_controller::{Inventories, Placing, Repeats, RunRequest, WarmUp};
use linerate_model::experiment::{Factor, Level, LevelError, Timing};
use linerate_model::fleet::InStep;
use linerate_model::plan::Trial;
use linerate_model::workload::Workload;
use linerate_model::{Bytes, Nanos};
use linerate_plan::{PlanError, Single};

use super::prove::prove;
use super::{groups, lab};
use crate::args::{OF_IPERF3, RATE_UNITS, RunArgs};
use crate::bundle::{self, Moment};
use crate::exit::{CmdResult, Failure};
use crate::gate::Gate;
use crate::hosts::{self, ForeignServer, HostsAsked};
use crate::term;
use crate::term::single::{Form, Output, RateUnit};
use crate::workload::{not_possible, rate_note, workload};

/// Shortest time between interval lines, and between samples.
const INTERVAL_MIN: Nanos = Nanos::from_ms(100);
/// Measurements beyond this are sampled once a second.
const LONG: Nanos = Nanos::from_s(600);
/// Longest time between looks beside a server of another program: one that gives up is heard of by
/// then, and what this host measures after it is no measurement.
const FOREIGN_LOOK_MAX: Nanos = Nanos::from_ms(100);
/// How long a volume may take: less than agents allow a caller without their token.
const VOLUME_TIME: Nanos = Nanos::from_s(3500);
/// Quiet time before each of several measurements.
const SETTLE: Nanos = Nanos::from_ms(20);
/// Quiet time before the traffic to a server of another program.
const FOREIGN_SETTLE: Nanos = Nanos::from_ms(100);
/// Traffic after the window, so that a reading at its end that is late still sees the same rate: at
/// most this, which is ten times what a sampler is late on a busy machine…
const DRAIN_MAX: Nanos = Nanos::from_ms(50);
/// …and no more than this part of a short window. A reading that is even later averages in as much
/// silence at the most.
const DRAIN_PART: u64 = 500;
/// Longest measurement that can be asked for.
const TIME_S_MAX: f64 = 86_000.0;
/// Traffic that is not counted at the start when nothing else is asked for.
const OMIT_S: f64 = 0.2;
/// How CPUs are named.
const AFFINITY: &str = "name them as 0:2:4 or 0-3, and those of the server after a comma";
/// Flows from which on their first windows may take a line longer than the time before the window: of
/// three, at 10 Mbit/s.
const FLOWS_THAT_QUEUE: u32 = 3;
/// What to do about what servers of other programs cannot.
pub(super) const WITHOUT_PEER: &str = "run `linerate serve` there and leave out --peer";
/// Most repetitions: far more than an interval gets narrower by.
const RUNS_MAX: u32 = 1000;

/// One measurement as meant.
pub struct Measurement {
    /// What is measured and how, by one client.
    pub request: RunRequest,
    /// Most clients that there are flows for.
    pub clients_max: u32,
    /// How often: at least, and at the most.
    pub runs: RangeInclusive<u32>,
    /// What is asked of the interval of the result.
    pub precision: Option<Precision>,
    /// How long changes may take after it that prove what limits it; absent where none are made.
    pub prove: Option<Nanos>,
    /// Whether levels are compared.
    pub varies: bool,
    /// What its result is held against.
    pub gate: Gate,
    /// Socket buffers that were asked for.
    pub window: Option<Bytes>,
    /// Whether the datagrams of each group are to have the size that fits the path.
    pub fits_datagrams: Vec<bool>,
    /// How many messages a volume was asked for as.
    pub blockcount: Option<u64>,
    /// Between whom.
    pub hosts: HostsAsked,
    /// When these are asked what they have.
    pub inventories: Inventories,
    /// How it is shown.
    pub output: Output,
    /// Whether people are shown what limits it and why, in the place of its lines.
    pub is_story: bool,
    /// Directory of the bundle, where one is kept.
    pub directory: Option<PathBuf>,
    /// Whether it is a probe alone and beside bulk.
    pub is_loaded: bool,
}

/// Returns what the flags mean, or refuses what they contradict.
pub fn measurement(args: &RunArgs) -> CmdResult<Measurement> {
    let margins = args.margins.words();
    let is_compared = !args.given.varied().is_empty() || args.gate.baseline.is_some();
    if !margins.is_empty() && !is_compared {
        let error = anyhow!("{} has nothing to compare", margins.trim());
        return Err(Failure::usage(error)
            .next("add --experiment FILE or --baseline BUNDLE, or leave it out"));
    }
    lab::check(
        &args.plan.lab_link,
        args.plan.lab.is_some(),
        "linerate study --lab",
    )?;
    super::check_peer(&args.peer)?;
    super::check_tls(&args.fleet.tls)?;
    let interval = interval_of(args)?;
    let gate = super::gate::gate(&args.gate)?;
    let workload = workload(args)?;
    let with = groups::beside(args)?;
    let beside = groups::named(&workload, &with)?;
    let probe = groups::probe(args, &workload)?;
    let (client_cpus, server_cpus) = cpus(args.place.affinity.as_deref())?;
    let hosts = super::hosts(args.host.as_deref(), &args.fleet, Some(&args.peer));
    let foreign = hosts.foreign.as_ref();
    let timing = timing(args, foreign)?;
    if let Some(foreign) = foreign {
        check_foreign(foreign, &workload, &timing)?;
        let server = format!("a server of {}", foreign.program());
        check_one_group(args, &server, WITHOUT_PEER)?;
    }
    let workloads = std::iter::once(&workload).chain(with.iter().map(|(_, workload)| workload));
    let clients_max = workloads.map(|workload| workload.connections).max();
    let output = output(args, interval);
    if output.form == Form::Csv {
        check_one_group(
            args,
            "--csv, whose rows are of one kind,",
            "use -J or --json-stream",
        )?;
    }
    let factors = args.given.varied();
    let runs = if factors.is_empty() {
        args.time.repetitions()
    } else {
        check_one_group(args, "a comparison of levels", "give one level")?;
        blocks(args, &factors)?
    };
    if gate.baseline.is_some() {
        check_one_group(args, "a comparison with other runs", "measure it alone")?;
    }
    let prove = prove(args, foreign.map(|_| WITHOUT_PEER))?;
    if output.iperf3 {
        let flag = match (args.time.precision, args.time.confidence) {
            (Some(_), _) => "--precision",
            (None, Some(_)) => "-I",
            (None, None) => "--runs",
        };
        let instead = "use -J without --format iperf3";
        let next_of_runs = format!("leave out {flag}, or {instead}");
        check_one_group(args, "a document of iperf3", instead)?;
        check_iperf3_server(foreign.map(ForeignServer::program), instead)?;
        check_iperf3_document(&workload, &timing, *runs.end(), [instead, &next_of_runs])?;
    }
    check_runs(args)?;
    let with_first = std::iter::once((args, &workload));
    let all = with_first.chain(with.iter().map(|(args, workload)| (args, workload)));
    for note in all.filter_map(|(args, workload)| rate_note(args, workload)) {
        term::note(&note);
    }
    let probes = args.observe.probes();
    if probes.capture.is_some() && args.output.out.is_none() {
        let error = anyhow!("--capture keeps its files in a bundle");
        return Err(Failure::usage(error).next("name a directory for it: --out DIR"));
    }
    if let Some(directory) = &args.output.out {
        bundle::check_new(directory)?;
    }
    let moment = Moment::now();
    let (run, seed) = bundle::new_run(&moment, args.plan.seed)?;
    let plan = match &probe {
        None => linerate_plan::single(Single {
            workload,
            factors: factors.clone(),
            timing,
            replicates: runs.clone(),
            seed,
        }),
        Some(probe) => linerate_plan::loaded(probe, &workload, timing, *runs.start(), seed),
    };
    let mut plan = plan.map_err(no_plan)?;
    for experiment in &mut plan.experiments {
        experiment.probes = probes;
        experiment.beside.extend(beside.iter().cloned());
    }
    plan.margins = args.margins.margins();
    let every = every(args, &timing)?;
    if let Some(every) = every {
        plan.estimate = Nanos(every.0 * u64::from(runs.start() - 1) + timing.total().0);
    }
    for trial in plan.trials.iter_mut().chain(&mut plan.optional) {
        trial.beside.extend(beside.iter().cloned());
    }
    super::gate::check_groups(&gate, &plan.experiments)?;
    if hosts.clients.is_empty() {
        // Each level, not each repetition of it.
        let first_block = plan.trials.iter().filter(|trial| trial.replicate == 1);
        first_block
            .flat_map(Trial::workloads)
            .try_for_each(|workload| hosts::check_this_host(workload, &client_cpus))?;
    }
    let all_args = || std::iter::once(args).chain(with.iter().map(|(args, _)| args));
    let request = RunRequest {
        run,
        asked: super::typed(),
        study: false,
        plan,
        sample_interval: sample_interval(timing.measure, interval),
        look_interval: look_interval(interval, foreign),
        server_cpus,
        client_cpus,
        placing: match args.place.affinity {
            Some(_) => Placing::AsAsked,
            None => hosts::placing(),
        },
        workers_max: args.place.workers,
        started_utc: moment.rfc3339,
        warm_up: match args.time.omit {
            Some(_) => WarmUp::AsAsked,
            None => WarmUp::RoundTrips,
        },
        time: None,
        repeats: Repeats::None,
        first_look: *runs.start(),
        every,
        in_step: InStep::default(),
    };
    Ok(Measurement {
        request,
        clients_max: match (fewest(&factors), with.is_empty()) {
            (Some(fewest), _) => fewest,
            (None, true) => args.traffic.parallel,
            (None, false) => clients_max.unwrap_or(1),
        },
        runs,
        precision: args.time.wanted(),
        prove,
        window: largest_buffer(&factors)
            .into_iter()
            .chain(all_args().filter_map(|args| args.socket.window))
            .max(),
        varies: !factors.is_empty(),
        gate,
        // The probe comes before what the flags ask for.
        fits_datagrams: probe
            .iter()
            .map(|_| false)
            .chain(all_args().map(fits_datagrams))
            .collect(),
        blockcount: args.rate.blockcount,
        hosts,
        inventories: inventories(args),
        is_story: args.output.story && output.form == Form::Text,
        output,
        directory: args.output.out.clone(),
        is_loaded: probe.is_some(),
    })
}

/// Says in the words of flags why there is no plan.
fn no_plan(error: PlanError) -> Failure {
    match error {
        PlanError::Workload(source)
        | PlanError::Level {
            cause: LevelError::Workload(source),
            ..
        } => not_possible(source),
        other => Failure::usage(other),
    }
}

/// Returns the fewest flows that are asked for, where their number varies.
fn fewest(factors: &[(Factor, Vec<Level>)]) -> Option<u32> {
    let (_, levels) = factors
        .iter()
        .find(|(factor, _)| *factor == Factor::Connections)?;
    let least = levels.iter().filter_map(Level::whole).min()?;
    u32::try_from(least).ok()
}

/// Returns the largest socket buffer that is asked for, where it varies.
fn largest_buffer(factors: &[(Factor, Vec<Level>)]) -> Option<Bytes> {
    let (_, levels) = factors
        .iter()
        .find(|(factor, _)| *factor == Factor::SocketBuffer)?;
    levels.iter().filter_map(Level::whole).max().map(Bytes)
}

/// Returns how many blocks of levels are measured, at least and, where trials of some are invalid, at the most; or refuses what shows one measurement only.
fn blocks(args: &RunArgs, factors: &[(Factor, Vec<Level>)]) -> CmdResult<RangeInclusive<u32>> {
    let idle = [
        ("--precision", args.time.precision.is_some()),
        ("-I", args.time.confidence.is_some()),
        ("--json-stream", args.output.json_stream),
        ("--csv", args.output.csv),
        (
            "--format iperf3",
            args.output.format.as_deref() == Some(OF_IPERF3),
        ),
    ];
    if let Some((flag, _)) = idle.into_iter().find(|(_, is_given)| *is_given) {
        let error = anyhow!("{flag} is for one measurement, and levels are compared");
        return Err(Failure::usage(error).next("give one level, or use -J and --runs"));
    }
    let cells = factors.iter().map(|(_, levels)| levels.len() as u32);
    let cells = cells.fold(1, u32::saturating_mul);
    let usual = || linerate_analyze::compared::blocks_min(cells);
    // Who says how many has so many.
    let spare = |blocks: u32| blocks + blocks / 2;
    Ok(match args.time.runs {
        Some(blocks) => blocks..=blocks,
        None => usual()..=spare(usual()),
    })
}

/// Returns whether datagrams are asked for, and no size of them.
fn fits_datagrams(args: &RunArgs) -> bool {
    let traffic = &args.traffic;
    traffic.udp && traffic.length.is_none() && traffic.size_mix.is_none()
}

/// Refuses groups where `what` knows one kind of traffic only.
fn check_one_group(args: &RunArgs, what: &str, next: &str) -> CmdResult<()> {
    let flag = match (args.groups.loaded, args.groups.with.is_empty()) {
        (true, _) => "--loaded",
        (_, false) => "--with",
        _ => return Ok(()),
    };
    let error = anyhow!("{what} knows no groups ({flag})");
    Err(Failure::usage(error).next(next))
}

/// Returns when hosts are asked what they have: buffers are held against it, captures need the link's
/// name, changes are held against what they grant, levels against what it can, datagrams between other hosts are to fit the links, what comes before the window of many streams follows from its rate, each of several runs is
/// explained when it is over, and what is on the disk of a
/// run that is killed should tell whose it was.
fn inventories(args: &RunArgs) -> Inventories {
    let is_needed = args.socket.window.is_some()
        || args.observe.capture.capture.is_some()
        || args.traffic.parallel >= FLOWS_THAT_QUEUE
        || fits_datagrams(args) && !args.fleet.clients.is_empty()
        || *args.time.repetitions().end() > 1
        || args.time.prove.is_some()
        || !args.given.varied().is_empty()
        || !args.groups.with.is_empty()
        || args.groups.loaded;
    if is_needed || args.output.out.is_some() {
        Inventories::First
    } else {
        Inventories::Underway
    }
}

fn interval_of(args: &RunArgs) -> CmdResult<Nanos> {
    let interval = interval(
        args.output.interval,
        form(args).0 == Form::Text,
        *args.time.repetitions().end(),
    )?;
    match args.observe.sample_rate {
        Some(rate) if interval.0 > 0 && rate.interval() > interval => Err(Failure::usage(anyhow!(
            "--interval is {interval}, but --sample-rate {} samples every {}",
            u32::from(rate),
            rate.interval()
        ))),
        _ => Ok(interval),
    }
}

/// Returns the time between interval lines: whole tenths, since that is when samples are taken. Several runs
/// are shown to people as a table of them, unless they ask for intervals.
pub fn interval(asked: Option<f64>, is_text: bool, runs: u32) -> CmdResult<Nanos> {
    let several = is_text && runs > 1;
    match asked.unwrap_or(if several { 0.0 } else { 1.0 }) {
        0.0 => Ok(Nanos(0)),
        seconds @ 0.1..=3600.0 => {
            let (tenths, whole) = (seconds * 10.0, (seconds * 10.0).round());
            if (tenths - whole).abs() > 1e-6 {
                let error = anyhow!(
                    "--interval is {seconds} s, but samples are taken at tenths of a second"
                );
                let (less, more) = (tenths.floor() / 10.0, tenths.ceil() / 10.0);
                return Err(Failure::usage(error).next(format!("use -i {less} or -i {more}")));
            }
            Ok(Nanos(whole as u64 * INTERVAL_MIN.0))
        }
        seconds => Err(Failure::usage(anyhow!(
            "--interval is {seconds}, but must be 0 or 0.1 to 3600 s"
        ))),
    }
}

/// Returns the time between samples: tenths of a second, and seconds in long measurements, so that
/// an hour's samples fit the memory; never longer than the interval lines want.
fn sample_interval(measure: Nanos, interval: Nanos) -> Nanos {
    let fitting = if measure > LONG {
        Nanos::from_s(1)
    } else {
        INTERVAL_MIN
    };
    match interval.0 {
        0 => fitting,
        _ => fitting.min(interval),
    }
}

fn look_interval(interval: Nanos, foreign: Option<&ForeignServer>) -> Nanos {
    let shown = match interval.0 {
        0 => Nanos::from_s(1),
        _ => interval,
    };
    match foreign {
        Some(_) => shown.min(FOREIGN_LOOK_MAX),
        None => shown,
    }
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

/// Refuses what can be asked of agents only.
fn check_foreign(foreign: &ForeignServer, workload: &Workload, timing: &Timing) -> CmdResult<()> {
    foreign.check(workload, timing).map_err(|why| {
        let error = anyhow!("{} {why}", foreign.program());
        Failure::usage(error).next(WITHOUT_PEER)
    })
}

/// Refuses a document of iperf3 where its server is `foreign`, whose counts are of other phases.
pub fn check_iperf3_server(foreign: Option<&str>, next: &str) -> CmdResult<()> {
    match foreign {
        Some(NETPERF) => {
            let error = anyhow!("a document of iperf3 is of servers of iperf3 and of linerate");
            Err(Failure::usage(error).next(next))
        }
        _ => Ok(()),
    }
}

/// Refuses what iperf3's documents have no words for; says `next` what to do, and of several runs `next_of_runs`.
pub fn check_iperf3_document(
    workload: &Workload,
    timing: &Timing,
    runs: u32,
    [next, next_of_runs]: [&str; 2],
) -> CmdResult<()> {
    if !workload.traffic.is_stream() {
        let error = anyhow!("iperf3's documents know only streams, no request/response");
        return Err(Failure::usage(error).next(next));
    }
    if let Err(why) = parameters_of(workload, timing) {
        let error = anyhow!("a document of iperf3 cannot tell this: it {why}");
        return Err(Failure::usage(error).next(next));
    }
    if runs > 1 {
        let error = anyhow!("a document of iperf3 holds one measurement, not {runs}");
        return Err(Failure::usage(error).next(next_of_runs));
    }
    Ok(())
}

/// Returns how failures are told, before anything else is known.
pub fn form(args: &RunArgs) -> (Form, bool) {
    let output = output(args, Nanos(0));
    (output.form, output.iperf3)
}

fn output(args: &RunArgs, interval: Nanos) -> Output {
    let output = &args.output;
    Output {
        form: match (output.json, output.json_stream, output.csv) {
            (true, ..) => Form::Json,
            (_, true, _) => Form::JsonStream,
            (.., true) => Form::Csv,
            _ => Form::Text,
        },
        iperf3: output.format.as_deref() == Some(OF_IPERF3),
        rate_unit: output.format.as_deref().and_then(rate_unit),
        all_flows: output.all_flows,
        sum_only: output.sum_only,
        verbose: output.verbose,
        interval,
    }
}

/// Returns the unit that `-f` asks for; a choice of documents is none.
fn rate_unit(format: &str) -> Option<RateUnit> {
    let mut units = RATE_UNITS.into_iter();
    let (_, name, bits_per_second) = units.find(|(prefix, ..)| *prefix == format)?;
    Some(RateUnit {
        name,
        bits_per_second,
    })
}

/// Returns the phases. A server of another program has them as iperf3 does: what is counted ends with
/// the sending, and nothing is left out at the start unless that is asked for.
pub(super) fn timing(args: &RunArgs, foreign: Option<&ForeignServer>) -> CmdResult<Timing> {
    let seconds = |what: &str, value: f64, low: f64| {
        if value.is_finite() && (low..=TIME_S_MAX).contains(&value) {
            return Ok(Nanos((value * 1e9) as u64));
        }
        Err(Failure::usage(anyhow!(
            "{what} is {value}, but must be {low} to {TIME_S_MAX} s"
        )))
    };
    let measure = match args.time.time {
        0.0 => Timing::UNTIL_STOPPED,
        time => seconds("--time", time, 0.1)?,
    };
    let by_volume = args.rate.bytes.is_some() || args.rate.blockcount.is_some();
    let measure = if by_volume { VOLUME_TIME } else { measure };
    let omit_default = match foreign {
        None if !by_volume => OMIT_S,
        _ => 0.0,
    };
    let omit = args.time.omit.unwrap_or(omit_default);
    let is_iperf3 = matches!(foreign, Some(ForeignServer::Iperf3 { .. }));
    if is_iperf3 && omit.fract() != 0.0 {
        let error = anyhow!("--omit is {omit} s, but iperf3 omits whole seconds only");
        let (less, more) = (omit.floor(), omit.ceil());
        return Err(Failure::usage(error).next(format!("use -O {less} or -O {more}")));
    }
    Ok(Timing {
        settle: match args.time.repetitions().end() {
            // Over TCP such a server begins with the traffic; over UDP it waits for it.
            _ if foreign.is_some() && !args.traffic.udp => FOREIGN_SETTLE,
            // Before the first there is nothing that would have to settle.
            1 if !args.groups.loaded => Nanos(0),
            _ => SETTLE,
        },
        warm_up: seconds("--omit", omit, 0.0)?,
        measure,
        drain: match foreign {
            Some(_) => Nanos(0),
            None => Nanos(measure.0 / DRAIN_PART).min(DRAIN_MAX),
        },
    })
}

/// Returns the time from the begin of a repetition to that of the next, which is longer than one takes.
fn every(args: &RunArgs, timing: &Timing) -> CmdResult<Option<Nanos>> {
    let Some(seconds) = args.time.every else {
        return Ok(None);
    };
    if *args.time.repetitions().end() == 1 {
        let error = anyhow!("--every has no effect on one run");
        return Err(Failure::usage(error).next("say how many: --runs 10, or --precision 2%"));
    }
    let least = timing.total().as_s();
    if (least..=TIME_S_MAX).contains(&seconds) {
        return Ok(Some(Nanos((seconds * 1e9) as u64)));
    }
    Err(Failure::usage(anyhow!(
        "--every is {seconds}, but must be {least} to {TIME_S_MAX} s: one run takes {}",
        timing.total()
    )))
}

fn check_runs(args: &RunArgs) -> CmdResult<()> {
    let least = *args.time.repetitions().start();
    let most = args.time.runs_max;
    if most.is_some() && args.time.wanted().is_none() {
        let error = anyhow!("--runs-max has no effect without --precision or -I");
        return Err(
            Failure::usage(error).next("ask for an interval, as in --precision 2%, or use --runs")
        );
    }
    for (flag, low, runs) in [
        ("--runs", 1, args.time.runs.unwrap_or(1)),
        ("--runs-max", least, most.unwrap_or(RUNS_MAX)),
    ] {
        if !(low..=RUNS_MAX).contains(&runs) {
            let error = anyhow!("{flag} is {runs}, but must be {low} to {RUNS_MAX}");
            return Err(Failure::usage(error));
        }
    }
    Ok(())
}
