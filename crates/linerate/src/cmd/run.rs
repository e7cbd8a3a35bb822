//! `linerate run`: one measurement, or an experiment file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_agent::foreign::iperf3_peer::Iperf3Peer;
use linerate_analyze::groups::{Known, Reduced};
use linerate_analyze::precision::Precision;
use linerate_analyze::single::Single;
use linerate_controller::{Audience, Fleet, Judgement, RunEvent};
use linerate_model::capture::CaptureOutcome;
use linerate_model::number;
use linerate_model::plan::Plan;
use linerate_model::reason::{HostFailure, Reason};
use linerate_model::run::{Recording, RunDocument};
use linerate_model::unit::significant;
use linerate_model::workload::Workload;
use linerate_model::{Bytes, Nanos};
use linerate_plan::Hosts;

use super::execute::{Driven, drive};
use super::experiments;
use super::prove::{Aside, Prover};
use crate::args::RunArgs;
use crate::bundle;
use crate::exit::{CmdResult, Exit, Failure, OF_INTERRUPTED, OF_REFUSED};
use crate::gate::Verdicts;
use crate::meant::{self, Measurement};
use crate::term::explained::Story;
use crate::term::single::{self, Conclusion, Form, Reader};
use crate::workload::not_possible;
use crate::{hosts, interrupt, peer, term};

/// How long before the stop code may be read that comes after it: when hosts are looked at for the last
/// time before.
const AHEAD_NS: i64 = 50_000_000;

/// Runs the command.
pub fn run(args: &RunArgs) -> CmdResult {
    let mut concluded = false;
    let result = run_as_asked(args, &mut concluded);
    if let Err(failure) = &result
        && !concluded
    {
        let (form, iperf3) = meant::form(args);
        single::print_failure(form, iperf3, failure);
    }
    result
}

/// Runs it; `concluded` says whether the result was shown, with what failed of it.
fn run_as_asked(args: &RunArgs, concluded: &mut bool) -> CmdResult {
    meant::check_evict(&args.fleet, &args.peer)?;
    let asked = match (&args.plan.experiment, &args.plan.search) {
        (Some(file), _) => meant::experiment(args, file, super::plan::read(file)?)?,
        (None, Some(condition)) => meant::searched(args, condition)?,
        (None, None) => return measure(meant::measurement(args)?, concluded),
    };
    experiments::on_hosts(&asked, |specs, refused| {
        experiments::measure(&asked, specs, &refused)
    })
}

fn measure(mut asked: Measurement, concluded: &mut bool) -> CmdResult {
    let (specs, foreign) = peer::specs(&asked.hosts)?;
    let server = specs.first().and_then(|server| server.data_address);
    let stop = interrupt::flag()?;
    let label = format!("linerate run {}", asked.hosts.server);
    let (run, expected) = (&asked.request.run, asked.request.plan.estimate);
    let request = hosts::admit_request(run, &label, &asked.hosts, expected);
    // Reading the command line is over.
    linerate_agent::give_back_text();
    let fleet = hosts::gather(specs, &request, asked.inventories, &stop)?;
    check_buffers(asked.window, &fleet)?;
    check_levels(&asked.request.plan, &fleet)?;
    if let Some(server) = server.filter(|_| asked.fits_datagrams.contains(&true)) {
        fit_datagrams(&mut asked, server, &fleet);
    }
    deal(
        &mut asked.request.plan,
        fleet.clients().min(asked.clients_max),
    )?;
    if asked.varies {
        return super::levels::measure(&asked, fleet, &stop);
    }
    if asked.is_loaded {
        return super::loaded::measure(&asked, fleet, &stop, concluded);
    }
    let mut reader = single::reader(asked.output, asked.runs.clone());
    if asked.is_story {
        reader = Box::new(Story(reader));
    }
    let followed = follow(&asked, fleet, &stop, &mut *reader)?;
    *concluded = true;
    conclude(&asked, followed, &stop, &mut *reader, foreign.as_ref())
}

/// Refuses a buffer that a host would silently cap, naming the sysctl.
fn check_buffers(window: Option<Bytes>, fleet: &Fleet) -> CmdResult<()> {
    let Some(window) = window else { return Ok(()) };
    for member in fleet.members() {
        let (record, window) = (&member.record, window.0);
        let most_of = |name: &'static str| {
            let most = record.snapshot.number(&format!("sysctl.{name}"))?;
            (window as f64 > most).then_some((name, most))
        };
        let caps = ["net.core.wmem_max", "net.core.rmem_max"].map(most_of);
        let caps: Vec<(&str, f64)> = caps.into_iter().flatten().collect();
        let Some(least) = caps.iter().map(|(_, most)| *most).reduce(f64::min) else {
            continue;
        };
        let both = |of: &dyn Fn(&(&str, f64)) -> String, between| {
            caps.iter().map(of).collect::<Vec<_>>().join(between)
        };
        let found = both(&|(name, most)| format!("{name} = {most}"), " and ");
        let raised = both(&|(name, _)| format!("{name}={window}"), " ");
        let (caps_it, it) = match caps.len() {
            1 => ("caps", "it"),
            _ => ("cap", "both"),
        };
        let error = anyhow!(
            "a buffer of {window} B on {}: {found} {caps_it} it",
            record.name
        );
        return Err(Failure::usage(error).next(format!(
            "ask for at most {least} B, or raise {it} there: `sysctl -w {raised}`"
        )));
    }
    Ok(())
}

/// Refuses levels that a host does not have.
///
/// Of a congestion control the first trial says so: the sender alone needs it, and its kernel may load what it does not list yet.
fn check_levels(plan: &Plan, fleet: &Fleet) -> CmdResult<()> {
    let hosts = Hosts {
        congestion: Vec::new(),
        ..hosts::plan_hosts(fleet)
    };
    let mut experiments = plan.experiments.iter();
    match experiments.find_map(|one| hosts.lacking(&one.factors)) {
        Some((factor, level, why)) => {
            let error = anyhow!("{factor} cannot be {level} here: {why}");
            Err(Failure::usage(error).next("leave that level out, or change there what it names"))
        }
        None => Ok(()),
    }
}

/// Gives datagrams the size that fits the path, and a volume of so many of them what these carry.
fn fit_datagrams(asked: &mut Measurement, server: SocketAddr, fleet: &Fleet) {
    let most = hosts::datagram_bytes_max(&asked.hosts, server, fleet);
    let count = asked.blockcount;
    for (at, workload) in workloads(&mut asked.request.plan) {
        if !asked.fits_datagrams.get(at).is_some_and(|fits| *fits) {
            continue;
        }
        workload.fit_datagrams(most);
        if let (Some(count), Some((_, size))) = (count, workload.traffic.stream()) {
            workload.manner.bytes_max = Some(Bytes(count.saturating_mul(size.0)));
        }
    }
}

/// Deals the flows to the clients there are.
fn deal(plan: &mut Plan, clients: u32) -> CmdResult<()> {
    for (_, workload) in workloads(plan) {
        workload.clients = clients.min(workload.connections);
    }
    let mut trials = plan.trials.iter().chain(&plan.optional);
    trials.try_for_each(|trial| {
        let mut workloads = trial.workloads();
        workloads.try_for_each(|workload| workload.check().map_err(not_possible))
    })
}

/// Returns the workloads wherever a plan has them, each with the number of its group.
fn workloads(plan: &mut Plan) -> impl Iterator<Item = (usize, &mut Workload)> {
    let trials = plan.trials.iter_mut().chain(&mut plan.optional);
    let of_trials = trials.map(|trial| (&mut trial.workload, &mut trial.beside));
    let experiments = plan.experiments.iter_mut();
    let of_experiments = experiments.map(|one| (&mut one.workload, &mut one.beside));
    of_trials.chain(of_experiments).flat_map(|(first, beside)| {
        let beside = beside.iter_mut().map(|group| &mut group.workload);
        std::iter::once(first).chain(beside).enumerate()
    })
}

/// Measures, and shows what happens as it happens; returns what was recorded, and in which way a host did not
/// do its part, if one did not.
fn follow(
    asked: &Measurement,
    fleet: Fleet,
    stop: &AtomicBool,
    reader: &mut dyn Reader,
) -> CmdResult<(Driven, Option<HostFailure>)> {
    let mut narrow = asked
        .precision
        .map(|wanted| move |recording: &Recording| judge_precision(recording, wanted));
    let mut prover = asked.prove.map(Prover::new);
    let mut known = Known::default();
    let mut prove = prover
        .as_mut()
        .map(|prover| |recording: &Recording, left| prover.more(recording, left, &mut known));
    let mut aside = Aside::default();
    let mut failed = None;
    let audience = Audience {
        judge: narrow.as_mut().map(|judge| judge as _),
        prove: prove.as_mut().map(|prove| prove as _),
        watch: &mut |event| {
            if aside.takes(event) {
                return;
            }
            single::show(reader, event);
            read_ahead(event);
            if let RunEvent::TrialEnded { evidence, .. } = event {
                let why = evidence.record.validity.reason();
                failed = failed.or(why.and_then(Reason::host_failure));
            }
        },
    };
    let directory = asked.directory.as_deref();
    let driven = drive(&asked.request, fleet, directory, stop, audience)?;
    if let Some(why) = prover.as_ref().and_then(Prover::left_open) {
        term::note(&format!("--prove ended because {why}"));
    }
    Ok((driven, failed))
}

/// Returns whether a result needs more runs to be as narrow as is `wanted`.
fn judge_precision(recording: &Recording, wanted: Precision) -> Judgement {
    let results = linerate_analyze::precision::results(recording);
    let is_open = !wanted.is_settled(&results);
    let experiments = recording.document.plan.experiments.iter();
    let open = experiments.filter(|_| is_open);
    Judgement {
        open: open.map(|experiment| experiment.name.clone()).collect(),
        ..Judgement::default()
    }
}

/// Shows the result, with what failed of it, and writes the report of what was kept.
fn conclude(
    asked: &Measurement,
    (driven, failed): (Driven, Option<HostFailure>),
    stop: &AtomicBool,
    reader: &mut dyn Reader,
    peer: Option<&Iperf3Peer>,
) -> CmdResult {
    let whole = &driven.recording;
    let measured = linerate_analyze::proof::measured(whole);
    let recording = &*measured;
    let views = linerate_analyze::groups::views(recording);
    let proofs = single::proofs(whole);
    let shown = asked.output.of_result();
    let mut singles = single::of_groups(recording, &views, &proofs, shown).into_iter();
    let Some(mut single) = singles.next() else {
        return Err(Failure::failed(anyhow!("nothing was measured")));
    };
    let beside: Vec<Single<'_>> = singles.collect();
    let level = single.trust.level;
    let is_interrupted = stop.load(Ordering::Relaxed);
    let exit = bundle::exit_of(recording, level, is_interrupted);
    let kept = asked
        .directory
        .as_deref()
        .filter(|_| driven.unkept.is_none());
    let result = match (driven.unkept, exit) {
        (Some(failure), _) => Err(failure),
        (None, Exit::Failed | Exit::Interrupted) => {
            failure_of(&recording.document, &single, exit, failed)
        }
        // Numbers that cannot be are none: no line of the result is there to say why.
        (None, exit) if is_empty(&single) => failure_of(&recording.document, &single, exit, failed),
        (None, exit) => Ok(exit),
    };
    let is_whole = matches!(result, Ok(Exit::Ok | Exit::Untrustworthy));
    let wanted = asked.precision.filter(|_| is_whole);
    let determined = wanted.map(|wanted| determined(recording, wanted));
    let (result, determined) = match determined.transpose() {
        Ok(words) => (result, words),
        Err(failure) => (Err(failure), None),
    };
    let verdicts = match &result {
        Ok(_) => asked.gate.judge(recording),
        Err(_) => Verdicts::default(),
    };
    let result = result.map(|exit| verdicts.exit(exit));
    single.comparison.clone_from(&verdicts.compared);
    single.conditions.clone_from(&verdicts.conditions);
    let failure = match &result {
        Err(failure) => Some(failure.to_string()),
        Ok(_) if is_interrupted => Some("interrupt - the client has terminated".to_owned()),
        Ok(_) => None,
    };
    // The lines of the result say why they are not valid, and what to do.
    let is_told = asked.output.form == Form::Text
        && !asked.is_story
        && !asked.output.iperf3
        && kept.is_some() == asked.directory.is_some()
        && single.trials.iter().all(|trial| trial.invalid.is_some())
        && !is_empty(&single);
    reader.conclude(&Conclusion {
        whole,
        recording,
        single: &single,
        beside: &beside,
        peer,
        error: result.as_ref().err(),
        failure: failure.as_deref(),
    });
    for line in verdicts.lines() {
        match asked.output.form {
            Form::Text if !asked.output.iperf3 => term::text(&line),
            // The document has it.
            Form::Json | Form::JsonStream if !asked.output.iperf3 => {}
            _ => term::note(&line),
        }
    }
    if let Some(directory) = kept {
        let reduced = Reduced::of(whole);
        let analysis = bundle::analysis(&reduced, directory);
        let report = super::execute::report(directory, &reduced, &analysis)?;
        term::note(&format!("report in {}", report.display()));
        if !asked.output.iperf3 {
            captures(recording, directory);
        }
    }
    if let Some(words) = determined.filter(|_| !asked.output.iperf3) {
        term::note(&words);
    }
    result.map_err(|failure| {
        if is_told {
            said(failure, &single)
        } else {
            failure
        }
    })
}

/// Returns a failure without what the result has said.
fn said(failure: Failure, single: &Single<'_>) -> Failure {
    Failure {
        exit: failure.exit,
        next: failure.next.filter(|_| single.next.is_none()),
        ..Failure::failed(anyhow!("the measurement is not valid"))
    }
}

/// Whether nothing at all was measured.
fn is_empty(single: &Single<'_>) -> bool {
    single.trials.iter().all(|trial| trial.responses.is_empty())
}

/// Reads code that is soon needed, beside traffic that still goes on.
fn read_ahead(event: &RunEvent<'_>) {
    if let RunEvent::Samples { trial, at_ns, .. } = event {
        let stop_ns = (trial.timing.measure.0 + trial.timing.drain.0) as i64;
        if (stop_ns - AHEAD_NS..stop_ns).contains(at_ns) {
            // What makes the result of it all.
            linerate_agent::read_text_ahead();
        }
    }
}

/// Says that the result is as narrow as was asked for; a failure if it is not.
fn determined(recording: &Recording, wanted: Precision) -> CmdResult<String> {
    let results = linerate_analyze::precision::results(recording);
    let percent = |share: f64| format!("±{} %", significant(100.0 * share));
    // Of what was reached two digits say enough.
    let rounded = |share: f64| format!("±{}", number::percent(share));
    let reached = wanted.reached(&results);
    let time = linerate_analyze::precision::time_of_runs(recording);
    let words = format!(
        "{} at {} % confidence, by {} within {}",
        reached.map_or_else(|| "no interval".to_owned(), rounded),
        significant(100.0 * wanted.confidence),
        number::counted(results.len(), "valid run"),
        time.unwrap_or(Nanos(0)),
    );
    let asked = percent(wanted.half_share);
    if wanted.is_met(&results) {
        return Ok(format!("determined to {asked}: {words}"));
    }
    Err(Failure {
        exit: Exit::Untrustworthy,
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
                let frames = number::counted(taken.frames, "frame");
                let mut text = format!("captured at {host}: {frames}");
                if taken.dropped > 0 {
                    text.push_str(&format!(
                        ", {} more dropped by the capture ring",
                        taken.dropped
                    ));
                }
                if let Some(why) = &taken.ended {
                    text.push_str(&format!(", ended early because {why}"));
                }
                if let Some(path) = linerate_store::capture_path(directory, capture) {
                    text.push_str(&format!(", in {}", path.display()));
                }
                text
            }
        });
    }
}

/// Says on standard error why nothing was measured, where nothing was, or why not all of it; `failed` is
/// in which way a host did not do its part, if one did not.
pub(super) fn failure_of(
    document: &RunDocument,
    single: &Single<'_>,
    exit: Exit,
    failed: Option<HostFailure>,
) -> CmdResult {
    let invalid = single.trials.iter().map(|trial| trial.invalid.as_deref());
    let Some(why) = invalid.reduce(|first, next| first.and(next)).flatten() else {
        return match &document.cut_short {
            Some(why) if exit == Exit::Failed => Err(Failure::failed(anyhow!("{why}"))
                .next("measure again when the host answers and is free")),
            _ => Ok(exit),
        };
    };
    let is_empty = is_empty(single);
    let what = if is_empty {
        "nothing was measured"
    } else {
        "the measurement is not valid"
    };
    let failure = Failure {
        exit,
        ..Failure::failed(anyhow!("{what}: {why}"))
    };
    if exit == Exit::Interrupted {
        return Err(failure.next(OF_INTERRUPTED));
    }
    let are_agents = document.hosts.iter().all(|host| host.program.is_agent());
    Err(match failed {
        // An agent that refuses its part has not measured anything, and will not the next time.
        Some(HostFailure::Refused) if are_agents => Failure {
            exit: Exit::Usage,
            ..failure.next(OF_REFUSED)
        },
        Some(HostFailure::Lost | HostFailure::Gone) => failure
            .next("measure again; if no agent answers, check whether `linerate serve` runs there"),
        Some(HostFailure::Silent) => failure.next(
            "check the path for loss and delay: it carries control requests and answers, too",
        ),
        // The result says what to do.
        _ if !is_empty && single.next.is_some() => failure,
        _ => failure.next("fix the cause above and run again"),
    })
}
