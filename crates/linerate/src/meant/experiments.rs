//! Experiments: what the flags of `linerate study` and of `linerate run --experiment` come to.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use linerate_model::Nanos;
use linerate_model::experiment::{Cell, Experiment, Factor, Level};
use linerate_model::fleet::{FleetFile, InStep};
use linerate_model::manner::{Named, Transport};
use linerate_model::margin::Margins;
use linerate_model::probe::Probes;
use linerate_plan::{Draft, SEARCH_REPLICATES_MIN, SearchError, Single};

use super::lab::{self, LabAsked, lab};
use super::measurement::{WITHOUT_PEER, timing};
use super::{check_peer, check_tls};
use crate::args::{FleetRunArgs, GateArgs, RunArgs, StudyArgs};
use crate::exit::{CmdResult, Failure};
use crate::gate::Gate;
use crate::hosts::{ForeignServer, HostsAsked};
use crate::shell::{quoted, quoted_path};
use crate::term;
use crate::workload::workload;

/// The time of a study of which no other is asked for.
const USUAL: Nanos = Nanos::from_s(300);
/// The time of a quick look.
const QUICK: Nanos = Nanos::from_s(30);

/// Most cells of an experiment that are held against what a server of another program can do: more than chapters and files have
/// trials, and read within a moment.
const CELLS_LOOKED_AT: usize = 10_000;

/// Experiments as meant: the whole study, or those of a file.
#[derive(Clone)]
pub struct Experiments {
    /// The experiments.
    pub drafts: Vec<Draft>,
    /// Whether they are the whole study.
    pub study: bool,
    /// Whether only what the time is enough for is done of them.
    pub quick: bool,
    /// What was asked, as hosts are told it.
    pub label: String,
    /// Time that they may take.
    pub budget: Option<Nanos>,
    /// Whether they may take longer where even their least does: nobody asked for that time, and a
    /// path of 100 ms takes a study six minutes.
    pub may_take_longer: bool,
    /// Seed of the order of trials; random where none is asked for.
    pub seed: Option<u64>,
    /// What is looked at beside the traffic.
    pub probes: Probes,
    /// What is the same.
    pub margins: Margins,
    /// Between whom, where not in a lab.
    pub hosts: HostsAsked,
    /// The lab to make, where one is asked for.
    pub lab: Option<LabAsked>,
    /// How the hosts of a fleet begin at the same moment.
    pub in_step: InStep,
    /// Directory of the bundle; named after the time where none is asked for.
    pub directory: Option<PathBuf>,
    /// Whether only the plan is made.
    pub dry_run: bool,
    /// What its result is held against.
    pub gate: Gate,
}

/// Returns the study that the flags mean.
pub fn study(args: &StudyArgs) -> CmdResult<Experiments> {
    lab::check(&args.lab_link, args.lab.is_some(), "linerate study --lab")?;
    check_tls(&args.fleet.tls)?;
    let hosts = super::hosts(args.host.as_deref(), &args.fleet, None);
    let usual = if args.quick { QUICK } else { USUAL };
    let drafts = if args.quick {
        linerate_plan::quick_look()
    } else {
        linerate_plan::study()
    };
    Ok(Experiments {
        study: true,
        quick: args.quick,
        label: match args.lab {
            Some(preset) => format!("linerate study{}", lab::words(preset, &args.lab_link)),
            None => format!("linerate study {}", quoted(&hosts.server)),
        },
        budget: args.budget.or(Some(usual)),
        may_take_longer: args.budget.is_none(),
        seed: args.seed,
        probes: Probes {
            sample_rate: args.sample_rate,
            capture: args.capture.options(),
            ..Probes::default()
        },
        margins: args.margins.margins(),
        hosts,
        lab: (args.lab).map(|preset| lab(preset, &args.lab_link, &drafts)),
        in_step: InStep::default(),
        directory: args.out.clone(),
        dry_run: args.dry_run,
        gate: gate_of(&args.gate, &drafts)?,
        drafts,
    })
}

/// Returns the experiment `draft` of a fleet as the flags of `linerate fleet run` mean it.
pub fn of_fleet(
    args: &FleetRunArgs,
    fleet: &FleetFile,
    draft: Draft,
    seed: u64,
) -> CmdResult<Experiments> {
    let file = &args.fleet.file;
    check_tls(&args.fleet.hosts.tls)?;
    let drafts = vec![draft];
    Ok(Experiments {
        study: false,
        quick: false,
        label: format!("linerate fleet run --fleet {}", quoted_path(file)),
        budget: args.budget,
        may_take_longer: false,
        seed: Some(seed),
        probes: Probes::default(),
        margins: args.margins.margins(),
        hosts: super::fleet_hosts(&args.fleet, fleet)?,
        lab: None,
        in_step: fleet.in_step,
        directory: args.out.clone(),
        dry_run: args.dry_run,
        gate: gate_of(&args.gate, &drafts)?,
        drafts,
    })
}

/// Returns the experiment `draft` of `file` as the flags of `linerate run` mean it.
pub fn experiment(args: &RunArgs, file: &Path, draft: Draft) -> CmdResult<Experiments> {
    of_run(
        args,
        &format!("linerate run --experiment {}", quoted_path(file)),
        draft,
    )
}

/// Returns the search for where `condition` stops to hold.
pub fn searched(args: &RunArgs, condition: &str) -> CmdResult<Experiments> {
    let (workload, factors) = (workload(args)?, args.given.varied());
    let asked = (condition, args.plan.resolution.as_str());
    let search = linerate_plan::search(asked, &workload, &factors).map_err(|error| {
        let next = match error {
            SearchError::Ends => "give two levels of one flag, as in -w 8K,4M or -b 10M,1G",
            SearchError::Condition(_) => {
                "say it as 'loss < 0.1%' or 'throughput > 95% of auto'; docs/reference/responses.md lists the responses"
            }
            SearchError::Resolution => "give --resolution as in 5%",
        };
        Failure::usage(anyhow!("--search '{condition}': {error}")).next(next)
    })?;
    let replicates = args.time.runs.unwrap_or(SEARCH_REPLICATES_MIN);
    if replicates < SEARCH_REPLICATES_MIN {
        let error = anyhow!("--runs is {replicates}, which says too little of a level");
        return Err(Failure::usage(error).next(format!("give {SEARCH_REPLICATES_MIN} or more")));
    }
    let asked = Single {
        workload,
        factors,
        timing: timing(args, None)?,
        replicates: replicates..=replicates,
        seed: 0,
    };
    let label = format!("linerate run --search {}", quoted(condition));
    of_run(args, &label, linerate_plan::searched(asked, search))
}

/// Returns what `typed`, of the flags of `linerate run`, means: the experiment `draft`.
fn of_run(args: &RunArgs, typed: &str, draft: Draft) -> CmdResult<Experiments> {
    lab::check(
        &args.plan.lab_link,
        args.plan.lab.is_some(),
        &format!("{typed} --lab"),
    )?;
    check_peer(&args.peer)?;
    check_tls(&args.fleet.tls)?;
    let preset = args.plan.lab;
    let lab_words = preset.map_or(String::new(), |preset| {
        lab::words(preset, &args.plan.lab_link)
    });
    let hosts = super::hosts(args.host.as_deref(), &args.fleet, Some(&args.peer));
    let draft = match &hosts.foreign {
        Some(foreign) => beside(foreign, draft)?,
        None => draft,
    };
    let drafts = vec![draft];
    Ok(Experiments {
        study: false,
        quick: false,
        label: format!("{typed}{lab_words}"),
        budget: args.plan.budget,
        may_take_longer: false,
        seed: args.plan.seed,
        probes: args.observe.probes(),
        margins: args.margins.margins(),
        hosts,
        lab: preset.map(|preset| lab(preset, &args.plan.lab_link, &drafts)),
        in_step: InStep::default(),
        directory: args.output.out.clone(),
        dry_run: false,
        gate: gate_of(&args.gate, &drafts)?,
        drafts,
    })
}

/// Returns what the results of `drafts` are held against.
fn gate_of(args: &GateArgs, drafts: &[Draft]) -> CmdResult<Gate> {
    let gate = super::gate::gate(args)?;
    super::gate::check_groups(&gate, drafts.iter().map(|draft| &draft.experiment))?;
    Ok(gate)
}

/// Returns an experiment with the phases that a test of a server of another program has, and says so where it has
/// others; refuses one of which such a server can do nothing.
fn beside(foreign: &ForeignServer, mut draft: Draft) -> CmdResult<Draft> {
    let experiment = &mut draft.experiment;
    let udp = Level::Word(Transport::Udp.word().to_owned());
    let transport = if experiment.levels(Factor::Transport).contains(&udp) {
        Transport::Udp
    } else {
        experiment.workload.manner.transport
    };
    let fitting = foreign.fitting(&experiment.timing, transport);
    let is_other = std::mem::replace(&mut experiment.timing, fitting) != fitting;
    if let Some(why) = why_impossible(foreign, experiment) {
        let (name, program) = (&experiment.name, foreign.program());
        let error = anyhow!(
            "nothing of the experiment {name} can be measured with --peer {program}: {program} {why}"
        );
        return Err(Failure::usage(error).next(WITHOUT_PEER));
    }
    if is_other {
        term::note(&format!(
            "{}: the warm-up is {}, and there is no drain",
            foreign.phases(),
            fitting.warm_up
        ));
    }
    Ok(draft)
}

/// Returns why a server of another program can do nothing of an experiment, if it cannot; what no host can do is
/// refused with the plan.
fn why_impossible(foreign: &ForeignServer, experiment: &Experiment) -> Option<String> {
    let mut first = None;
    for cell in cells(experiment).take(CELLS_LOOKED_AT) {
        let workload = experiment.workload_of(&cell).ok();
        match workload.map(|one| foreign.check(&one, &experiment.timing)) {
            Some(Ok(())) => return None,
            Some(Err(why)) => first = first.or(Some(why)),
            None => {}
        }
    }
    first
}

/// Returns what an experiment may measure: each level of a factor with each of the others.
fn cells(experiment: &Experiment) -> impl Iterator<Item = Cell> + '_ {
    let factors = &experiment.factors;
    let count = factors.iter().fold(1, |count: usize, (_, levels)| {
        count.saturating_mul(levels.len())
    });
    (0..count).map(|number| {
        let mut left = number;
        let level = |(factor, levels): &(Factor, Vec<Level>)| {
            let level = levels[left % levels.len()].clone();
            left /= levels.len();
            (*factor, level)
        };
        factors.iter().map(level).collect()
    })
}
