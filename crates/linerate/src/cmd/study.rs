//! `linerate study`: characterise a server, on real hosts or in the built-in lab.

use anyhow::Context;
use linerate_controller::{HostSpec, Inventories};
use linerate_model::Nanos;
use linerate_model::finding::TrustLevel;
use linerate_model::plan::Plan;
use linerate_model::probe::Probes;
use linerate_observe::ObserveConfig;
use linerate_plan::{Draft, Hosts, PlanRequest};

use super::execute::{self, Execution, Placement};
use super::lab_fleet::{self, CLIENTS};
use crate::args::StudyArgs;
use crate::bundle::{self, Moment};
use crate::exit::{CmdResult, Failure, Outcome};
use crate::{hosts, interrupt, meant, term};

/// What a trial takes beyond its phases: clocks, preparing, notice, results. Measured in the lab
/// on two CPUs; the progress bar learns the real one.
pub const OVERHEAD_PER_TRIAL: Nanos = Nanos::from_ms(100);
/// What a run takes beyond its trials: hosts, inventory, analysis, report.
pub const OVERHEAD_ONCE: Nanos = Nanos::from_s(4);

/// The time of a quick look.
const QUICK: Nanos = Nanos::from_s(30);
/// The fewest blocks of its chapters: with two there is no spread to speak of.
const QUICK_BLOCKS: u32 = 3;
/// Blocks of an experiment beyond those planned, where its verdicts are open and time is left. With
/// 9 instead of 3 the smallest effect that is found is little more than half as large.
const FURTHER_BLOCKS: u32 = 6;

/// Runs the command.
pub fn study(args: &StudyArgs) -> CmdResult {
    let drafts = linerate_plan::study();
    if args.lab {
        in_lab(args, &drafts)
    } else {
        on_hosts(args, &drafts)
    }
}

/// Measures once or, where that is asked for, the same several times.
fn measure(args: &StudyArgs, drafts: &[Draft], specs: Vec<HostSpec>, asked: &str) -> CmdResult {
    let Some(times) = args.aa else {
        return once(args, drafts, specs, asked);
    };
    let directory = bundle::directory(args.out.as_deref(), "aa", &Moment::now());
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))
        .map_err(|error| Failure::failed(error).next("name another directory with --out"))?;
    let mut analyses = Vec::new();
    let mut worst = Outcome::Ok;
    let mut failure = None;
    for number in 1..=times {
        let own = directory.join(number.to_string());
        let one = StudyArgs {
            aa: None,
            out: Some(own.clone()),
            seed: args.seed.map(|seed| seed.wrapping_add(u64::from(number))),
            ..args.clone()
        };
        // What the studies before it say is not lost with one that fails.
        match once(&one, drafts, specs.clone(), asked) {
            Ok(ended) => worst = worse(worst, ended),
            Err(error) => failure = Some(error),
        }
        if failure.is_some() || worst == Outcome::Interrupted {
            break;
        }
        analyses.push(linerate_analyze::analyze(&bundle::read(&own)?));
        term::line("");
    }
    let agreement = linerate_analyze::agreement(&analyses);
    term::line(linerate_report::terminal(&agreement, term::width(), term::color()).trim_end());
    if let Some(failure) = failure {
        return Err(failure);
    }
    let trust = agreement.trust.map(|trust| trust.level);
    Ok(match trust {
        Some(TrustLevel::DoNotUse) => worse(worst, Outcome::Untrustworthy),
        _ => worst,
    })
}

/// Returns the outcome that says more against a number.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let grave = |outcome| match outcome {
        Outcome::Ok => 0,
        Outcome::Untrustworthy => 1,
        Outcome::Usage => 2,
        Outcome::Failed | Outcome::Program(_) => 3,
        Outcome::Interrupted => 4,
    };
    if grave(other) > grave(one) {
        other
    } else {
        one
    }
}

fn in_lab(args: &StudyArgs, drafts: &[Draft]) -> CmdResult {
    if args.dry_run {
        let (_, seed) = bundle::new_run(&Moment::now(), args.seed)?;
        let hosts = lab_fleet::settled(&args.lab_link, this_machine(CLIENTS, drafts))?;
        let plan = study_plan(args, drafts, seed, hosts)?;
        term::line(linerate_plan::describe(&plan).trim_end());
        return Ok(Outcome::Ok);
    }
    let asked = format!("linerate study --lab{}", args.lab_link.words());
    lab_fleet::in_lab(&args.lab_link, drafts, |specs| {
        measure(args, drafts, specs, &asked)
    })
}

fn on_hosts(args: &StudyArgs, drafts: &[Draft]) -> CmdResult {
    let host = args.host.as_deref().unwrap_or_default();
    let mut specs = hosts::specs(&meant::hosts(Some(host), &args.fleet, None))?;
    for spec in &mut specs {
        spec.memory_copy = true;
    }
    measure(args, drafts, specs, &format!("linerate study {host}"))
}

fn once(args: &StudyArgs, drafts: &[Draft], specs: Vec<HostSpec>, asked: &str) -> CmdResult {
    let stop = interrupt::flag()?;
    let moment = Moment::now();
    let (run, seed) = bundle::new_run(&moment, args.seed)?;
    let admission = meant::hosts(None, &args.fleet, None).admission;
    let request = hosts::admit_request(&run, asked, admission, budget(args));
    let fleet = hosts::gather(specs, &request, Inventories::First, &stop)?;
    let hosts = match args.lab {
        true => lab_fleet::settled(&args.lab_link, hosts::plan_hosts(&fleet))?,
        false => hosts::plan_hosts(&fleet),
    };
    let mut plan = study_plan(args, drafts, seed, hosts)?;
    for experiment in &mut plan.experiments {
        experiment.probes = experiment.probes.and(Probes {
            sample_rate: args.sample_rate,
            capture: args.capture.options(),
            ..Probes::default()
        });
    }
    plan.margins = args.margins.margins();
    if args.dry_run {
        term::line(linerate_plan::describe(&plan).trim_end());
        return Ok(Outcome::Ok);
    }
    let execution = Execution {
        run,
        asked: format!(
            "{asked} {}{} --seed {seed}",
            match args.quick {
                true => "--quick".to_owned(),
                false => format!("--budget {}", budget_words(args.budget)),
            },
            args.margins.words(),
        ),
        study: true,
        plan,
        directory: bundle::directory(args.out.as_deref(), "study", &moment),
        moment,
        placement: if args.lab {
            lab_fleet::placement()
        } else {
            Placement::default()
        },
        stop,
    };
    execute::run(execution, fleet)
}

/// Returns the time that the study may take.
fn budget(args: &StudyArgs) -> Nanos {
    if args.quick { QUICK } else { args.budget }
}

fn study_plan(args: &StudyArgs, drafts: &[Draft], seed: u64, hosts: Hosts) -> CmdResult<Plan> {
    if !args.quick {
        return make_plan(drafts, Some(args.budget), seed, hosts);
    }
    let request = request(Some(QUICK), seed, hosts);
    linerate_plan::fitting(drafts, QUICK_BLOCKS, &request).map_err(Failure::usage)
}

/// Makes a plan, or says why it cannot be made.
pub fn make_plan(
    drafts: &[Draft],
    budget: Option<Nanos>,
    seed: u64,
    hosts: Hosts,
) -> CmdResult<Plan> {
    let request = request(budget, seed, hosts);
    linerate_plan::plan(drafts, &request).map_err(|error| {
        let next = match &error {
            linerate_plan::PlanError::Budget { least, .. } => {
                let seconds = least.0.div_ceil(1_000_000_000);
                Some(format!("give it at least that: --budget {seconds}s"))
            }
            _ => None,
        };
        Failure {
            next,
            ..Failure::usage(error)
        }
    })
}

fn request(budget: Option<Nanos>, seed: u64, hosts: Hosts) -> PlanRequest {
    PlanRequest {
        budget,
        seed,
        hosts,
        further_blocks: match budget {
            Some(_) => FURTHER_BLOCKS,
            None => 0,
        },
        overhead_per_trial: OVERHEAD_PER_TRIAL,
        overhead_once: OVERHEAD_ONCE,
    }
}

/// Returns what a plan needs to know of hosts that are namespaces of this machine.
pub fn this_machine(clients: u32, drafts: &[Draft]) -> Hosts {
    let facts = linerate_observe::facts(&ObserveConfig {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        lab: true,
        host_wide: true,
        threads: Vec::new(),
    });
    let whole = |name: &str| facts.number(name).map(|number| number as u64);
    let congestion = facts.text("sysctl.net.ipv4.tcp_available_congestion_control");
    Hosts {
        clients,
        link_losses_ppm: linerate_plan::link_losses(drafts).into_keys().collect(),
        rmem_max: whole("sysctl.net.core.rmem_max"),
        wmem_max: whole("sysctl.net.core.wmem_max"),
        congestion: congestion
            .map(|names| names.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        congestion_unless_asked: None,
    }
}

/// Returns a budget as it would be typed.
fn budget_words(budget: Nanos) -> String {
    let seconds = budget.0 / 1_000_000_000;
    match (seconds % 3600, seconds % 60) {
        (0, _) if seconds > 0 => format!("{}h", seconds / 3600),
        (_, 0) if seconds > 0 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}
