//! `linerate report`: render a bundle again from its stored data, or show it as it was seen live.

use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_analyze::groups::Reduced;
use linerate_analyze::proof;
use linerate_model::plan::Plan;
use linerate_model::run::{Recording, server_program};
use linerate_report::Extent;

use super::execute;
use super::run::failure_of;
use crate::args::{ReplayForm, ReportArgs, ReportFormat};
use crate::exit::{CmdResult, Exit, Failure};
use crate::term::progress::PlanProgress;
use crate::term::single::{self, Conclusion, Form, Output};
use crate::{browser, bundle, meant, term};

/// Runs the command.
pub fn report(args: &ReportArgs) -> CmdResult {
    if let Some(path) = &args.flame {
        return flame(&args.bundle, path);
    }
    if let Some(form) = args.replay {
        return replay(args, form);
    }
    check(args)?;
    let recording = bundle::read(&args.bundle)?;
    let reduced = Reduced::of(&recording);
    let analysis = || {
        let analysis = linerate_analyze::analyze_reduced(&reduced, args.published);
        bundle::with_captures(analysis, &recording, &args.bundle)
    };
    let extent = if args.full {
        Extent::Full
    } else {
        Extent::Answer
    };
    let html = || linerate_report::html(&analysis(), extent);
    let text = match args.format {
        ReportFormat::Html if args.out.is_none() => {
            let file = if args.full || args.published {
                linerate_store::write_report(&args.bundle, &html())?
            } else {
                // As it is kept, with its results beside it.
                bundle::write(&args.bundle, &reduced, &analysis())?
            };
            return told(&file);
        }
        ReportFormat::Pdf => {
            let file = args.out.clone().unwrap_or_else(|| {
                let file = args.bundle.join("report.pdf");
                // A link of that name in a bundle of somebody else would lead elsewhere.
                let _ = std::fs::remove_file(&file);
                file
            });
            browser::print(&html(), &file)?;
            return told(&file);
        }
        ReportFormat::Html => html(),
        ReportFormat::Markdown => linerate_report::markdown(&analysis(), extent),
        ReportFormat::Json => linerate_report::json(&analysis()),
        ReportFormat::Csv => linerate_store::results_csv(&reduced.outcomes()),
    };
    let form = match args.format {
        ReportFormat::Json => Form::Json,
        _ => Form::Text,
    };
    write(&text, form, args.out.as_deref())?;
    Ok(Exit::Ok)
}

/// Says where the report is.
fn told(file: &Path) -> CmdResult {
    term::line(&file.display().to_string());
    Ok(Exit::Ok)
}

/// Refuses what would have no effect, or none that anybody wants.
fn check(args: &ReportArgs) -> CmdResult<()> {
    let of_replay = [
        ("--interval", args.interval.is_some()),
        ("--all-flows", args.all_flows),
        ("--sum-only", args.sum_only),
        ("--verbose", args.verbose),
    ];
    if args.replay.is_none() {
        let rather = "add --replay in place of what writes a report";
        meant::check_idle(&of_replay, "--replay", rather)?;
    }
    let is_csv = args.format == ReportFormat::Csv;
    let has_all = is_csv || args.format == ReportFormat::Json;
    let idle = [
        ("--full", args.full && has_all),
        ("--published", args.published && is_csv),
    ];
    if let Some((flag, _)) = idle.into_iter().find(|(_, is_idle)| *is_idle) {
        let error = anyhow!("{flag} has no effect with this --format");
        return Err(Failure::usage(error).next("leave it out, or render a page or Markdown"));
    }
    if args.format == ReportFormat::Pdf && args.out.as_deref() == Some(Path::new("-")) {
        let error = anyhow!("a PDF is not written to standard output");
        return Err(Failure::usage(error).next("name a file with --out"));
    }
    Ok(())
}

/// Shows a run as it was seen live.
fn replay(args: &ReportArgs, form: ReplayForm) -> CmdResult {
    let whole = bundle::read(&args.bundle)?;
    let recording = proof::measured(&whole);
    let plan = &recording.document.plan;
    if !is_one_measurement(plan) {
        return replay_several(args, form, &recording);
    }
    let runs = plan.trials.len() as u32;
    let has_groups = plan.experiments.iter().any(|it| !it.beside.is_empty());
    if has_groups
        && !matches!(
            form,
            ReplayForm::Text | ReplayForm::Json | ReplayForm::JsonStream
        )
    {
        let error = anyhow!(
            "{} has groups, which this form knows not",
            args.bundle.display()
        );
        return Err(Failure::usage(error).next("show it with --replay=json"));
    }
    if let Some(trial) = plan.trials.first().filter(|_| form == ReplayForm::Iperf3) {
        let next = "show it with --replay=json";
        let foreign: Option<String> = server_program(&recording.document.hosts).clone().into();
        meant::check_iperf3_server(foreign.as_deref(), next)?;
        meant::check_iperf3_document(&trial.workload, &trial.timing, runs, [next; 2])?;
    }
    let output = Output {
        form: meant::replayed(form),
        iperf3: form == ReplayForm::Iperf3,
        rate_unit: None,
        interval: meant::interval(args.interval, form == ReplayForm::Text, runs)?,
        all_flows: args.all_flows,
        sum_only: args.sum_only,
        verbose: args.verbose,
    };
    let mut reader = single::reader(output, runs..=runs);
    linerate_controller::replay(&recording, &mut |event| {
        single::show(&mut *reader, event);
    });
    let views = linerate_analyze::groups::views(&recording);
    let proofs = single::proofs(&whole);
    let shown = output.of_result();
    let mut results = single::of_groups(&recording, &views, &proofs, shown).into_iter();
    let Some(result) = results.next() else {
        return Err(Failure::failed(anyhow!("nothing was measured")));
    };
    let beside: Vec<_> = results.collect();
    let level = result.trust.level;
    // In which way a host failed is not kept: then what to do next is told in general.
    let failed = match bundle::exit_of(&recording, level, false) {
        exit @ Exit::Failed => failure_of(&recording.document, &result, exit, None).err(),
        _ => None,
    };
    let why = failed.as_ref().map(ToString::to_string);
    reader.conclude(&Conclusion {
        whole: &whole,
        recording: &recording,
        single: &result,
        beside: &beside,
        peer: None,
        error: failed.as_ref(),
        failure: why.as_deref().or(recording.document.cut_short.as_deref()),
    });
    Ok(Exit::Ok)
}

/// Shows a run of several measurements as it was seen live.
fn replay_several(args: &ReportArgs, form: ReplayForm, recording: &Recording) -> CmdResult {
    let plan = &recording.document.plan;
    let loaded = linerate_analyze::loaded::loaded(recording);
    let is_of_levels = linerate_plan::is_single(plan);
    let has_document = loaded.is_some() || is_of_levels;
    if form != ReplayForm::Text && !(has_document && form == ReplayForm::Json) {
        let error = anyhow!("{} holds several measurements", args.bundle.display());
        return Err(Failure::usage(error).next("show it as text, or see --format json"));
    }
    if args.interval.is_some() || args.all_flows || args.sum_only || args.verbose {
        let error = anyhow!(
            "{} holds several measurements: --interval, --all-flows, --sum-only and --verbose are for one",
            args.bundle.display()
        );
        return Err(Failure::usage(error).next("leave them out"));
    }
    if let Some(loaded) = loaded {
        if form == ReplayForm::Text {
            term::loaded::heading(&recording.document);
        }
        super::loaded::show(&loaded, meant::replayed(form));
        return Ok(Exit::Ok);
    }
    let mut progress = PlanProgress::new(plan);
    linerate_controller::replay(recording, &mut |event| progress.take(event));
    progress.clear();
    if is_of_levels {
        let compared = linerate_analyze::compared::levels(recording);
        super::levels::show(&compared, meant::replayed(form));
    } else {
        let analysis = bundle::analysis(&Reduced::of(recording), &args.bundle);
        execute::show(recording, &analysis, &args.bundle.join("report.html"));
    }
    Ok(Exit::Ok)
}

/// Returns whether nothing is varied: what `linerate run HOST` plans.
fn is_one_measurement(plan: &Plan) -> bool {
    matches!(plan.experiments.as_slice(), [one] if one.factors.is_empty())
}

/// Writes the stacks of all profiles.
fn flame(bundle: &Path, path: &Path) -> CmdResult {
    let recording = bundle::read(bundle)?;
    if recording.profiles.is_empty() {
        let error = anyhow!("there is no profile in {}", bundle.display());
        return Err(Failure::failed(error).next("measure again with --profile"));
    }
    let stacks = linerate_analyze::collapsed(&recording);
    write(&stacks, Form::Text, Some(path))?;
    Ok(Exit::Ok)
}

/// Writes into a file, or to standard output, where a reader that has seen enough is no failure.
fn write(text: &str, form: Form, path: Option<&Path>) -> CmdResult<()> {
    if let Some(path) = path.filter(|path| *path != Path::new("-")) {
        let written = std::fs::write(path, text);
        return Ok(written.with_context(|| format!("cannot write {}", path.display()))?);
    }
    match term::file(text, form) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Failure::failed),
    }
}
