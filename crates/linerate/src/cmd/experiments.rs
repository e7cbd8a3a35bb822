//! Experiments on hosts or in a lab made for them, for `study` and `run --experiment`.

use linerate_controller::{HostSpec, Inventories, Placing, Repeats, RunRequest, WarmUp};
use linerate_lab::spec::MTU_BYTES_MAX;
use linerate_model::Nanos;
use linerate_model::plan::Plan;
use linerate_observe::ObserveConfig;
use linerate_plan::{Draft, Hosts, LabKnobs, PlanError, PlanRequest};

use super::lab_fleet::Refused;
use super::{execute, lab_fleet};
use crate::bundle::{self, Moment};
use crate::exit::{CmdResult, Exit, Failure};
use crate::meant::{self, Experiments, LAB_CLIENTS};
use crate::{hosts, interrupt, peer, term};

/// The first block after which it is asked which verdicts are open: with two there is no spread to
/// speak of.
const FIRST_LOOK: u32 = 3;
/// The rate of the built-in lab's links, for plans without hosts.
const LAB_LINK_BPS: u64 = 1_000_000_000;
/// Time between samples of a plan's trials.
const SAMPLE_INTERVAL: Nanos = Nanos::from_ms(100);
/// Time between looks at a running trial; each costs every host a request.
const LOOK_INTERVAL: Nanos = Nanos::from_ms(250);
/// A budget that is proposed is a multiple of so many seconds, 5 % more than the least: the next call
/// measures the round trip anew, and the least is another.
const BUDGET_STEP_S: u64 = 5;
/// How long others may expect what has no budget to take.
const EXPECTED: Nanos = Nanos::from_s(600);

/// Hands the hosts that were asked for to `measure`.
pub fn on_hosts(
    asked: &Experiments,
    measure: impl FnOnce(Vec<HostSpec>, Refused) -> CmdResult,
) -> CmdResult {
    if let Some(lab) = &asked.lab {
        return lab_fleet::in_lab(lab, linerate_plan::knob_levels(&asked.drafts), measure);
    }
    let (mut specs, _peer) = peer::specs(&asked.hosts)?;
    for spec in &mut specs {
        spec.memory_copy = asked.study;
    }
    measure(specs, Refused::new())
}

/// Plans the experiments but for what the hosts of a lab `refused`, and executes the plan, or shows it where no more is
/// asked for.
pub fn measure(asked: &Experiments, specs: Vec<HostSpec>, refused: &Refused) -> CmdResult {
    if let Some(directory) = &asked.directory {
        bundle::check_new(directory)?;
    }
    let stop = interrupt::flag()?;
    let moment = Moment::now();
    let (run, seed) = bundle::new_run(&moment, asked.seed)?;
    let expected = asked.budget.unwrap_or(EXPECTED);
    let request = hosts::admit_request(&run, &asked.label, &asked.hosts, expected);
    let fleet = hosts::gather(specs, &request, Inventories::First, &stop)?;
    let knobs = asked.lab.as_ref().map(|_| LabKnobs {
        refused: refused.clone(),
        ..LabKnobs::default()
    });
    let known = Hosts {
        knobs,
        ..hosts::plan_hosts(&fleet)
    };
    let plan = plan_of(asked, seed, known)?;
    if asked.dry_run {
        return show(&plan);
    }
    let kind = match asked
        .drafts
        .first()
        .map(|draft| draft.experiment.pairs.is_some())
    {
        _ if asked.study => "study",
        Some(true) => "fleet",
        _ => "run",
    };
    let directory = bundle::directory(asked.directory.as_deref(), kind, &moment);
    let (server_cpus, client_cpus) = match &asked.lab {
        Some(_) => lab_fleet::cpus(),
        None => (Vec::new(), Vec::new()),
    };
    let budget = plan.budget;
    let request = RunRequest {
        run,
        asked: match asked.seed {
            Some(_) => meant::typed(),
            None => format!("{} --seed {seed}", meant::typed()),
        },
        study: asked.study,
        plan,
        sample_interval: SAMPLE_INTERVAL,
        look_interval: LOOK_INTERVAL,
        placing: if server_cpus.is_empty() {
            hosts::placing()
        } else {
            Placing::AsAsked
        },
        server_cpus,
        client_cpus,
        workers_max: None,
        started_utc: moment.rfc3339,
        warm_up: WarmUp::RoundTrips,
        time: budget.map(|budget| Nanos(budget.0.saturating_sub(PlanRequest::OVERHEAD_ONCE.0))),
        repeats: match budget {
            Some(_) => Repeats::WhileThereIsTime,
            None => Repeats::Few,
        },
        every: None,
        in_step: asked.in_step,
        first_look: FIRST_LOOK,
    };
    // A first look is to be short; what has no budget has no time to spare.
    let prove = (asked.study && !asked.quick && budget.is_some()).then_some(meant::PROVE);
    let gate = (&asked.gate, prove);
    execute::run(&request, fleet, &directory, gate, &stop)
}

/// Plans the experiments for hosts of a lab that is not made, and shows the plan.
pub fn show_for_lab(asked: &Experiments) -> CmdResult {
    if let Some(lab) = &asked.lab {
        lab.spec.check("the lab").map_err(Failure::usage)?;
    }
    let (_, seed) = bundle::new_run(&Moment::now(), asked.seed)?;
    let hosts = this_machine(LAB_CLIENTS, &asked.drafts);
    let exit = show(&plan_of(asked, seed, hosts)?)?;
    if let Some(lab) = &asked.lab {
        term::lab::show_links(&lab.spec.hosts);
    }
    Ok(exit)
}

/// Prints a plan.
pub fn show(plan: &Plan) -> CmdResult {
    let power = linerate_analyze::power(plan);
    let text = linerate_plan::describe(plan, power.as_deref());
    term::line(text.trim_end());
    Ok(Exit::Ok)
}

fn plan_of(asked: &Experiments, seed: u64, hosts: Hosts) -> CmdResult<Plan> {
    let hosts = match &asked.lab {
        Some(lab) => lab_fleet::settled(lab, hosts)?,
        None => hosts,
    };
    let within = |budget| {
        let request = PlanRequest::within(budget, seed, hosts.clone());
        match (asked.study, asked.quick) {
            (_, true) => linerate_plan::fitting(&asked.drafts, &request),
            (true, false) => linerate_plan::yielding(&asked.drafts, &request),
            (false, false) => linerate_plan::plan(&asked.drafts, &request),
        }
    };
    let plan = match within(asked.budget) {
        Err(PlanError::Budget { least, .. }) if asked.may_take_longer => within(Some(least)),
        plan => plan,
    };
    let mut plan = plan.map_err(|error| offer_quick(refused(error), asked.study))?;
    for experiment in &mut plan.experiments {
        experiment.probes = experiment.probes.and(asked.probes);
    }
    plan.margins = asked.margins;
    Ok(plan)
}

/// Adds to what to do about a budget that is too small that a study has a shorter form.
fn offer_quick(mut failure: Failure, is_study: bool) -> Failure {
    if let Some(next) = failure.next.as_mut().filter(|_| is_study) {
        *next += "; or take a first look of 30 s: --quick instead of --budget";
    }
    failure
}

/// Says what to do about a plan that cannot be made.
pub fn refused(error: PlanError) -> Failure {
    let next = match &error {
        PlanError::Budget { least, .. } => {
            let seconds = (least.0 / 1_000_000_000 * 21 / 20 + 1).next_multiple_of(BUDGET_STEP_S);
            Some(format!(
                "give it a little more than that: --budget {seconds}s"
            ))
        }
        _ => None,
    };
    Failure::usage(error).maybe(next)
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
    let losses = linerate_plan::link_losses(drafts).into_keys().collect();
    Hosts {
        knobs: Some(LabKnobs {
            mtu_bytes_max: MTU_BYTES_MAX,
            ..LabKnobs::default()
        }),
        link_bps: Some(LAB_LINK_BPS),
        ..hosts::plan_hosts_of(&[&facts], clients, losses)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    /// The plan of `line` for a host that is `round_trip` away.
    fn planned(line: &str, round_trip: Nanos) -> CmdResult<Plan> {
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Study(args) = cli.command else {
            panic!("{line} is no study");
        };
        let hosts = Hosts {
            clients: 1,
            round_trip,
            ..Hosts::default()
        };
        plan_of(&meant::study(&args)?, 1, hosts)
    }

    #[test]
    fn a_budget_that_is_proposed_is_enough_where_the_round_trip_is_a_little_longer() {
        let refused = planned("linerate study h --budget 1s", Nanos::from_ms(10));
        let failure = refused.map(|plan| plan.estimate).unwrap_err();
        let next = failure.next.unwrap();
        let proposed = next.split("--budget ").nth(1).unwrap();
        let line = format!(
            "linerate study h --budget {}",
            proposed.split(';').next().unwrap()
        );
        planned(&line, Nanos(10_500_000)).unwrap();
    }

    #[test]
    fn round_trips_take_part_of_the_time_and_more_of_it_where_nobody_set_it() {
        let cells = |plan: &Plan| plan.trials.len();
        let near = planned("linerate study h", Nanos(0)).unwrap();
        let far = planned("linerate study h", Nanos::from_ms(15)).unwrap();
        assert!(cells(&far) < cells(&near), "fewer trials fit");
        assert!(far.estimate <= Nanos::from_s(300), "{}", far.estimate);

        let farther = planned("linerate study h", Nanos::from_ms(100)).unwrap();
        let (least, most) = (Nanos::from_s(300), Nanos::from_s(600));
        assert!(farther.estimate > least, "{}", farther.estimate);
        assert!(farther.estimate < most, "{}", farther.estimate);
        assert_eq!(farther.budget, Some(farther.estimate));
        let quick = planned("linerate study h --quick", Nanos::from_ms(100)).unwrap();
        assert!(
            2 * quick.estimate.0 < farther.estimate.0,
            "{}",
            quick.estimate
        );

        let delayed = planned("linerate study --lab --lab-delay 25ms", Nanos(0)).unwrap();
        assert!(cells(&delayed) < cells(&near), "{}", delayed.estimate);

        let refused = planned("linerate study h --budget 3m", Nanos::from_ms(100));
        let failure = refused.map(|plan| plan.estimate).unwrap_err();
        let next = failure.next.unwrap();
        assert!(next.contains("--budget"), "{next}");
    }
}
