//! Plans: designs, blocks, budgets, and what hosts cannot do.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::experiment::{Cell, Factor, Level, Timing, changes};
use linerate_model::manner::Transport;
use linerate_model::plan::Plan;
use linerate_model::workload::{Direction, Workload};
use linerate_model::{Bytes, Nanos};
use linerate_plan::{
    Draft, Hosts, LabKnobs, PlanError, PlanRequest, Single, describe, extension, fitting,
    link_losses, plan, read_experiment, single, study, yielding,
};
use proptest::prelude::*;

/// Returns the draft of a stream experiment with these sections.
fn draft(factors: &str, design: &str, budget: &str) -> Draft {
    let text = format!(
        r#"
        format = 1
        name = "example"
        title = "Example"
        question = "What is it good for?"
        workload = {{ kind = "stream" }}
        timing = {{ settle = "0s", warm_up = "100ms", measure = "1s", drain = "100ms" }}
        [factors]
        {factors}
        [design]
        {design}
        {budget}
        "#
    );
    read_experiment(&text, "example.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a request without limits: 250 ms around each trial, 2 s around all.
fn request(budget: Option<Nanos>) -> PlanRequest {
    PlanRequest {
        budget,
        seed: 42,
        hosts: Hosts {
            clients: 5,
            link_bps: Some(1_000_000_000),
            ..Hosts::default()
        },
        further_blocks: 0,
        overhead_per_trial: Nanos::from_ms(250),
        overhead_per_flow: Nanos(0),
        overhead_once: Nanos::from_s(2),
    }
}

/// Returns the cells of `plan` as text, sorted.
fn cells(plan: &Plan) -> BTreeSet<String> {
    plan.trials.iter().map(|trial| words(&trial.cell)).collect()
}

fn words(cell: &Cell) -> String {
    let words: Vec<String> = cell
        .iter()
        .map(|(factor, level)| format!("{factor}={level}"))
        .collect();
    words.join(" ")
}

#[test]
fn a_full_design_has_every_combination() {
    let draft = draft(
        "nagle = [true, false]\nload = [{ connections = 1, clients = 1 }, { connections = 10, clients = 5 }]",
        "kind = \"full\"\nreplicates = 3",
        "",
    );
    let plan = plan(&[draft], &request(None)).expect("a plan");
    let expected = [
        "connections=1 clients=1 nagle=off",
        "connections=1 clients=1 nagle=on",
        "connections=10 clients=5 nagle=off",
        "connections=10 clients=5 nagle=on",
    ];
    assert_eq!(cells(&plan), expected.map(str::to_owned).into());
    assert_eq!(plan.trials.len(), 12);
    let trial = plan
        .trials
        .iter()
        .find(|trial| words(&trial.cell) == expected[2])
        .expect("there");
    assert_eq!(
        (trial.workload.connections, trial.workload.clients),
        (10, 5)
    );
    assert_eq!(trial.workload.options.nagle, Some(false));
}

#[test]
fn one_at_a_time_has_the_baseline_once() {
    let draft = draft(
        "nagle = [true, false]\nconnections = [1, 2, 4]",
        "kind = \"one-at-a-time\"\nreplicates = 4\nbaseline = { nagle = true, connections = 2 }",
        "",
    );
    let plan = plan(&[draft], &request(None)).expect("a plan");
    let expected = [
        "connections=1 nagle=on",
        "connections=2 nagle=off",
        "connections=2 nagle=on",
        "connections=4 nagle=on",
    ];
    assert_eq!(cells(&plan), expected.map(str::to_owned).into());
    assert_eq!(plan.trials.len(), 16);
}

#[test]
fn what_is_compared_gets_the_blocks_that_decide_it() {
    let sections = |design: &str| {
        draft(
            "connections = [1, 2, 4, 8, 16]\nnagle = [true, false]",
            design,
            "[budget]\nreplicates = [2, 9]\nmeasure = [\"1s\", \"1s\"]\ncore = { connections = [2, 16] }",
        )
    };
    // A block has one pair of trials that differ in Nagle only: five are needed, and come before more levels.
    let one =
        "kind = \"one-at-a-time\"\nreplicates = 4\nbaseline = { nagle = true, connections = 2 }";
    let trials_of_the_least = |replicates: u64| 4 * replicates;
    let budget = |replicates| Nanos::from_ms(2000 + trials_of_the_least(replicates) * 1450);
    let planned = |design: &str, replicates| {
        let plan = plan(&[sections(design)], &request(Some(budget(replicates)))).expect("a plan");
        (plan.experiments[0].replicates, cells(&plan).len())
    };
    assert_eq!(planned(one, 3), (3, 4));
    assert_eq!(planned(one, 5), (5, 4));
    assert_eq!(planned(one, 7), (5, 5));
    // Of a full design each level of the other factor has a pair: three blocks are enough of three.
    let full = "kind = \"full\"\nreplicates = 4";
    let text = planned(full, 6);
    assert_eq!(text.0, 3, "{text:?}");
}

#[test]
fn whole_plots_change_as_seldom_as_can_be_in_an_order_of_each_block() {
    let design = |more: &str| format!("kind = \"full\"\nreplicates = 20\n{more}");
    let factors = "gro = [true, false]\nnagle = [true, false]\nconnections = [1, 2, 4]";
    let of = |seed: u64, more: &str| {
        let mut request = request(None);
        request.seed = seed;
        request.hosts.knobs = Some(LabKnobs {
            mtu_bytes_max: 1500,
            refused: Vec::new(),
        });
        plan(&[draft(factors, &design(more), "")], &request).expect("a plan")
    };
    let split = of(42, "whole_plots = [\"gro\"]");
    let (mut firsts, mut inner) = (BTreeSet::new(), BTreeSet::new());
    for block in split.trials.chunks(12) {
        let levels: Vec<&Level> = block
            .iter()
            .map(|trial| &trial.cell[&Factor::Gro])
            .collect();
        let changes = levels.windows(2).filter(|two| two[0] != two[1]).count();
        assert_eq!(changes, 1, "{levels:?}");
        let cells: BTreeSet<&Cell> = block.iter().map(|trial| &trial.cell).collect();
        assert_eq!(cells.len(), 12);
        firsts.insert(levels[0].clone());
        let inside = block[..6].iter().map(|trial| {
            let mut cell = trial.cell.clone();
            cell.remove(&Factor::Gro);
            words(&cell)
        });
        inner.insert(inside.collect::<Vec<String>>());
    }
    assert_eq!(firsts.len(), 2);
    assert!(inner.len() > 15, "{}", inner.len());
    assert_eq!(split, of(42, "whole_plots = [\"gro\"]"));
    assert_ne!(split.trials, of(43, "whole_plots = [\"gro\"]").trials);
    assert!(describe(&split, Some(&[])).contains("whole plots"));
    // The order of what has none is what it always was of this seed.
    let plain = of(42, "");
    let changes = plain
        .trials
        .windows(2)
        .filter(|two| two[0].cell[&Factor::Gro] != two[1].cell[&Factor::Gro]);
    assert!(changes.count() > 60);
}

const SCREENED: &str = "nagle = [true, false]\ndelayed_ack = [true, false]\nsocket_buffer = [\"64KiB\", \"1MiB\"]\n\
    load = [{ connections = 1, clients = 1 }, { connections = 10, clients = 5 }]\n\
    message_bytes = [100, 1460]";

#[test]
fn a_fraction_has_as_many_balanced_combinations_as_asked() {
    let design = "kind = \"fractional\"\nruns = 8\nreplicates = 5";
    let made = plan(&[draft(SCREENED, design, "")], &request(None)).expect("a plan");
    assert_eq!((made.trials.len(), cells(&made).len()), (40, 8));
    for factor in [
        Factor::Nagle,
        Factor::SocketBuffer,
        Factor::Clients,
        Factor::MessageBytes,
    ] {
        let first = &made.trials[0].cell[&factor];
        let same = made
            .trials
            .iter()
            .filter(|trial| trial.cell[&factor] == *first);
        assert_eq!(same.count(), 20, "{factor}");
    }
    let text = describe(&made, Some(&[]));
    assert!(
        text.contains("resolution III") && text.contains("is aliased with"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    // No budget takes a level out.
    let least = plan(
        &[draft(SCREENED, design, "")],
        &request(Some(Nanos::from_s(70))),
    )
    .expect("a plan");
    assert_eq!(cells(&least), cells(&made));
}

#[test]
fn a_fraction_of_what_hosts_can_do_is_one_of_the_factors_that_are_left() {
    let design = "kind = \"fractional\"\nruns = 8\nreplicates = 5";
    let mut request = request(None);
    request.hosts.rmem_max = Some(100_000);
    let made = plan(&[draft(SCREENED, design, "")], &request).expect("a plan");
    assert_eq!(cells(&made).len(), 8);
    // Of four factors in eight runs no main effect is alike an interaction of two.
    assert!(
        describe(&made, Some(&[])).contains("resolution IV"),
        "{}",
        describe(&made, Some(&[]))
    );
    assert_eq!(made.left_out.len(), 1);
}

#[test]
fn the_estimate_is_the_sum() {
    // 4 trials of 1.2 s and 0.25 s around each, and 2 s around all.
    let draft = draft(
        "nagle = [true, false]",
        "kind = \"full\"\nreplicates = 2",
        "",
    );
    let plan = plan(&[draft], &request(None)).expect("a plan");
    assert_eq!(plan.estimate, Nanos::from_ms(4 * 1450 + 2000));
}

#[test]
fn orders_differ_between_blocks_and_seeds() {
    let order = |plan: &Plan, block: u32| -> Vec<String> {
        let trials = plan.trials.iter().filter(|trial| trial.replicate == block);
        trials.map(|trial| words(&trial.cell)).collect()
    };
    let one = plan(&study(), &request(None)).expect("a plan");
    let mut other = request(None);
    other.seed += 1;
    let two = plan(&study(), &other).expect("a plan");
    assert_ne!(order(&one, 1), order(&one, 2));
    assert_ne!(order(&one, 1), order(&two, 1));
    let seeds: BTreeSet<u64> = one.trials.iter().map(|trial| trial.seed).collect();
    assert_eq!(seeds.len(), one.trials.len());
}

#[test]
fn the_order_of_an_experiment_does_not_depend_on_the_others() {
    let all = plan(&study(), &request(None)).expect("a plan");
    let last = study().pop().expect("a chapter");
    let alone = plan(std::slice::from_ref(&last), &request(None)).expect("a plan");
    let part = all
        .trials
        .iter()
        .filter(|t| t.experiment == last.experiment.name);
    let order = |trial: &linerate_model::plan::Trial| (words(&trial.cell), trial.seed);
    let part: Vec<_> = part.map(order).collect();
    assert_eq!(part, alone.trials.iter().map(order).collect::<Vec<_>>());
}

#[test]
fn a_seed_gives_the_same_order_in_every_version() {
    // The first block of this plan as the first version made it. Reports name the seed so that a
    // plan can be made again; a change here breaks that promise.
    let draft = draft(
        "connections = [1, 2, 3, 4, 5, 6]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let plan = plan(&[draft], &request(None)).expect("a plan");
    let order: Vec<u32> = plan
        .trials
        .iter()
        .map(|trial| trial.workload.connections)
        .collect();
    assert_eq!(order, [5, 1, 3, 6, 4, 2]);
}

/// Levels, replicates and window of an experiment with sixteen buffers, in a budget of `seconds`.
fn fitted(seconds: u64) -> Result<(Vec<String>, u32, Nanos), PlanError> {
    let sizes: Vec<String> = (1..=9).map(|kib| format!("\"{kib}KiB\"")).collect();
    let draft = draft(
        &format!("socket_buffer = [{}]", sizes.join(", ")),
        "kind = \"full\"\nreplicates = 3",
        "[budget]\nreplicates = [2, 5]\nmeasure = [\"550ms\", \"2s\"]\ncore.socket_buffer = [\"2KiB\"]",
    );
    let plan = plan(&[draft], &request(Some(Nanos::from_s(seconds))))?;
    let experiment = &plan.experiments[0];
    let levels = experiment.factors[0]
        .1
        .iter()
        .map(ToString::to_string)
        .collect();
    Ok((levels, experiment.replicates, experiment.timing.measure))
}

#[test]
fn a_budget_buys_replicates_then_levels_then_replicates_then_length() {
    // A trial at its shortest takes 0.1 + 0.55 + 0.1 + 0.25 = 1 s, and 2 s go once.
    let check = |seconds: u64, levels: &[u32], replicates: u32, measure: Nanos| {
        let levels: Vec<String> = levels.iter().map(|kib| format!("{kib} KiB")).collect();
        assert_eq!(
            fitted(seconds),
            Ok((levels, replicates, measure)),
            "{seconds} s"
        );
    };
    let shortest = Nanos::from_ms(550);
    check(8, &[1, 2, 9], 2, shortest);
    check(11, &[1, 2, 9], 3, shortest);
    // The widest gap is between 2 and 9 KiB; its middle, the lower of two, comes in first.
    check(14, &[1, 2, 5, 9], 3, shortest);
    check(17, &[1, 2, 5, 7, 9], 3, shortest);
    check(29, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 3, shortest);
    check(38, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 4, shortest);
    check(47, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 5, shortest);
    // 45 trials: 45 s more make each window 1 s longer, in whole hundredths.
    check(92, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 5, Nanos::from_ms(1550));
    check(10_000, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 5, Nanos::from_s(2));
}

#[test]
fn a_budget_below_the_least_is_refused_with_what_it_takes() {
    let error = fitted(7).expect_err("too short");
    let budget = PlanError::Budget {
        budget: Nanos::from_s(7),
        least: Nanos::from_s(8),
    };
    assert_eq!(error, budget);
    assert_eq!(
        error.to_string(),
        "the plan needs at least 8 s, more than its budget of 7 s"
    );
}

#[test]
fn what_a_budget_leaves_out_is_said() {
    let plan = plan(&study(), &request(Some(Nanos::from_s(180)))).expect("a plan");
    let direction = plan
        .left_out
        .iter()
        .find(|left| left.what.contains("direction from-server"));
    let left = direction.expect("the other direction");
    assert_eq!(left.chapter, Some(3));
    assert!(left.why.contains("budget of 3 min"), "{}", left.why);
}

/// Returns the plan of a congestion, buffer and clients experiment on `hosts`.
fn on(hosts: Hosts) -> Result<Plan, PlanError> {
    let draft = draft(
        "congestion = [\"cubic\", \"bbr\"]\nsocket_buffer = [\"64KiB\", \"256KiB\"]\n\
         load = [{ connections = 1, clients = 1 }, { connections = 10, clients = 5 }]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let mut request = request(None);
    request.hosts = hosts;
    plan(&[draft], &request)
}

fn hosts() -> Hosts {
    Hosts {
        clients: 5,
        rmem_max: Some(212_992),
        wmem_max: Some(1 << 30),
        congestion: vec!["reno".to_owned(), "cubic".to_owned()],
        ..Hosts::default()
    }
}

#[test]
fn levels_that_cannot_run_are_left_out_with_the_reason() {
    let plan = on(hosts()).expect("a plan");
    let expected = [
        "connections=1 clients=1 socket_buffer=64 KiB congestion=cubic",
        "connections=10 clients=5 socket_buffer=64 KiB congestion=cubic",
    ];
    assert_eq!(cells(&plan), expected.map(str::to_owned).into());
    let told: Vec<(&str, &str)> = plan
        .left_out
        .iter()
        .map(|left| (left.what.as_str(), left.why.as_str()))
        .collect();
    let algorithms = "net.ipv4.tcp_available_congestion_control = reno cubic lacks it on some host";
    let expected = [
        ("example: congestion bbr", algorithms),
        (
            "example: socket_buffer 256 KiB",
            "net.core.rmem_max = 212992 caps it",
        ),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        plan.experiments[0].factors[1].1,
        [Level::Size(Bytes(65_536))]
    );
}

#[test]
fn the_first_level_that_hosts_lack_is_named() {
    let word = |name: &str| Level::Word(name.to_owned());
    let factors = |name| [(Factor::Congestion, vec![word("cubic"), word(name)])];
    assert_eq!(hosts().lacking(&factors("reno")), None);
    let factors = factors("bbr");
    let lacking = hosts().lacking(&factors).expect("bbr is not there");
    assert_eq!((lacking.0, lacking.1), (Factor::Congestion, &word("bbr")));
    assert!(lacking.2.contains("= reno cubic"), "{}", lacking.2);
}

#[test]
fn levels_of_one_reason_are_told_once_in_any_order() {
    let draft = draft(
        "socket_buffer = [\"256KiB\", \"1MiB\", \"260KiB\", \"64KiB\"]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let mut request = request(None);
    request.hosts = Hosts {
        wmem_max: Some(300_000),
        ..hosts()
    };
    let plan = plan(&[draft], &request).expect("a plan");
    let told: Vec<&str> = plan
        .left_out
        .iter()
        .map(|left| left.what.as_str())
        .collect();
    let once: BTreeSet<&str> = told.iter().copied().collect();
    assert_eq!((told.len(), once.len()), (2, 2), "{told:?}");
}

#[test]
fn losses_on_purpose_need_links_that_are_there_for_them() {
    let draft = draft(
        "link_loss = [0, 0.001, 0.01]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let drafts = [draft];
    let losses = link_losses(&drafts);
    assert_eq!(losses, BTreeMap::from([(0, 1), (1000, 1), (10_000, 1)]));
    let mut request = request(None);
    let real = plan(&drafts, &request).expect("a plan");
    assert_eq!(cells(&real), ["link_loss=0 %".to_owned()].into());
    let [left] = real.left_out.as_slice() else {
        panic!("{:?}", real.left_out);
    };
    assert_eq!(left.what, "example: link_loss 0.1 %, 1 %");
    assert_eq!(left.why, "only the links of a lab (--lab) can inject loss");
    request.hosts.link_losses_ppm = losses.into_keys().collect();
    let lab = plan(&drafts, &request).expect("a plan");
    assert_eq!(lab.left_out, []);
    let asked: BTreeSet<_> = lab
        .trials
        .iter()
        .map(|trial| trial.workload.link_loss_ppm)
        .collect();
    assert_eq!(asked, BTreeSet::from([Some(0), Some(1000), Some(10_000)]));
}

#[test]
fn a_lab_has_clients_enough_for_every_loss() {
    let draft = draft(
        "load = [{ connections = 4, clients = 2, link_loss = 0 }, \
          { connections = 4, clients = 3, link_loss = 0.5 }]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    assert_eq!(
        link_losses(&[draft]),
        BTreeMap::from([(0, 3), (500_000, 3)])
    );
}

#[test]
fn both_limits_are_named_when_both_cap() {
    let mut hosts = hosts();
    hosts.wmem_max = Some(100_000);
    let plan = on(hosts).expect("a plan");
    let why = &plan.left_out[1].why;
    assert_eq!(
        why,
        "net.core.rmem_max = 212992 and net.core.wmem_max = 100000 cap it"
    );
}

#[test]
fn fewer_clients_are_used_and_said() {
    let mut hosts = hosts();
    hosts.clients = 2;
    let plan = on(hosts).expect("a plan");
    let clients: BTreeSet<u32> = plan
        .trials
        .iter()
        .map(|trial| trial.workload.clients)
        .collect();
    assert_eq!(clients, BTreeSet::from([1, 2]));
    let left = plan.left_out.last().expect("told");
    assert_eq!(left.what, "example: connections 10, clients 5");
    assert_eq!(
        left.why,
        "there are only 2 clients; measured with 2 instead"
    );
}

#[test]
fn clients_that_become_equal_are_measured_once() {
    let draft = draft(
        "load = [{ connections = 10, clients = 5 }, { connections = 10, clients = 10 }]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let plan = plan(&[draft], &request(None)).expect("a plan");
    assert_eq!(plan.trials.len(), 1);
    assert_eq!(plan.trials[0].workload.clients, 5);
}

#[test]
fn an_experiment_whose_fixed_part_cannot_run_is_left_out_as_a_whole() {
    let check = |change: fn(&mut Draft), why: &str| {
        let mut drafts = study();
        change(&mut drafts[0]);
        let mut request = request(None);
        request.hosts = hosts();
        let plan = plan(&drafts, &request).expect("a plan of the others");
        assert!(plan.experiment("latency").is_none());
        let left = plan
            .left_out
            .iter()
            .find(|left| left.what == "latency")
            .expect("told");
        assert_eq!(left.why, why);
        assert_eq!(left.chapter, Some(1));
    };
    check(
        |draft| draft.experiment.workload.options.socket_buffer = Some(Bytes(1 << 20)),
        "its socket buffer is 1 MiB, and net.core.rmem_max = 212992 caps it",
    );
    check(
        |draft| draft.experiment.workload.options.congestion = Some("bbr".to_owned()),
        "its congestion control is bbr, and net.ipv4.tcp_available_congestion_control = \
         reno cubic lacks it on some host",
    );
}

#[test]
fn a_plan_of_nothing_is_refused_with_the_reasons() {
    let mut hosts = hosts();
    hosts.rmem_max = Some(4096);
    let error = on(hosts).expect_err("nothing");
    let text = error.to_string();
    assert!(
        text.contains("no level of socket_buffer can run here"),
        "{text}"
    );
    let mut none = request(None);
    none.hosts.clients = 0;
    assert_eq!(plan(&study(), &none), Err(PlanError::NoClients));
    let mut twice = study();
    twice.extend(study());
    let error = plan(&twice, &request(None)).expect_err("names");
    assert!(error.to_string().contains("`latency`"), "{error}");
}

#[test]
fn a_single_measurement_is_a_plan_of_one_cell() {
    let timing = Timing {
        settle: Nanos(0),
        warm_up: Nanos::from_s(1),
        measure: Nanos::from_s(10),
        drain: Nanos::from_ms(100),
    };
    let workload = Workload::stream(Direction::FromServer);
    let asked = Single {
        workload: workload.clone(),
        factors: Vec::new(),
        timing,
        replicates: 3..=5,
        seed: 1,
    };
    let plan = single(asked.clone()).expect("a plan");
    assert_eq!((plan.trials.len(), plan.optional.len()), (3, 2));
    let all = plan.trials.iter().chain(&plan.optional);
    assert!(all.clone().map(|trial| trial.id.0).eq(1..=5));
    assert!(
        all.clone()
            .all(|trial| trial.workload == workload && trial.cell.is_empty())
    );
    assert_eq!(plan.estimate, Nanos::from_ms(33_300));
    assert_eq!(plan.experiments[0].response, "throughput_bps");
    let impossible = Workload {
        connections: 0,
        ..workload
    };
    assert!(matches!(
        single(Single {
            workload: impossible,
            ..asked
        }),
        Err(PlanError::Workload(_))
    ));
}

#[test]
fn the_text_of_a_plan_fits_a_terminal() {
    let mut capped = request(Some(Nanos::from_s(150)));
    capped.hosts = hosts();
    let text = describe(&yielding(&study(), &capped).expect("a plan"), Some(&[]));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line, line.trim_end());
    }
    for part in [
        "Socket buffer (socket-buffer)",
        "rmem_max = 212992 caps it",
        "budget 2 min 30 s",
    ] {
        // Lines are broken where they are full.
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(part), "{part}\n{text}");
    }
}

/// What measuring costs, overhead included.
fn total(plan: &Plan) -> u64 {
    plan.trials
        .iter()
        .map(|trial| trial.timing.total().0 + 250_000_000)
        .sum::<u64>()
        + 2_000_000_000
}

fn shorter(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_plan_keeps_its_promises(seconds in 1.0..20_000.0f64, seed in any::<u64>()) {
        let mut asked = request(Some(shorter(seconds)));
        asked.seed = seed;
        let plan = match plan(&study(), &asked) {
            Ok(plan) => plan,
            Err(PlanError::Budget { budget, least }) => {
                prop_assert!(least > budget);
                asked.budget = Some(least);
                plan(&study(), &asked).expect("the least fits")
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        prop_assert!(plan.estimate <= asked.budget.expect("given"));
        prop_assert_eq!(plan.estimate.0, total(&plan));
        prop_assert_eq!(&plan, &linerate_plan::plan(&study(), &asked).expect("again"));
        for (at, trial) in plan.trials.iter().enumerate() {
            prop_assert_eq!(trial.id.0 as usize, at + 1);
        }
        for experiment in &plan.experiments {
            let mut blocks: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
            let mut counts: BTreeMap<(u32, String), u32> = BTreeMap::new();
            for trial in plan.trials.iter().filter(|t| t.experiment == experiment.name) {
                let own = (trial.replicate, words(&trial.cell));
                let count = counts.entry(own).or_default();
                *count += 1;
                prop_assert!(*count <= experiment.times(&trial.cell));
                blocks.entry(trial.replicate).or_default().insert(words(&trial.cell));
            }
            prop_assert_eq!(blocks.len(), experiment.replicates as usize);
            let first = &blocks[&1];
            prop_assert!(blocks.values().all(|block| block == first), "blocks hold the same cells");
            let count: u32 = counts.values().sum();
            let is_control = |cell: &&String| cell.contains("socket_buffer=auto");
            let controls = first.iter().filter(is_control).count() as u32;
            let more = controls * experiment.control.as_ref().map_or(0, |it| it.times - 1);
            let block = first.len() as u32 + more;
            prop_assert_eq!(count, block * experiment.replicates, "each cell as often as it has times");
        }
    }

    #[test]
    fn more_time_never_measures_less(spare in 0.0..20_000.0f64, more in 0.0..200.0f64) {
        let Err(PlanError::Budget { least, .. }) = plan(&study(), &request(Some(Nanos(1)))) else {
            return Err(TestCaseError::fail("a nanosecond is enough"));
        };
        let budget = |seconds| Nanos(least.0 + shorter(seconds).0);
        let less = plan(&study(), &request(Some(budget(spare)))).expect("a plan");
        let more = plan(&study(), &request(Some(budget(spare + more)))).expect("a plan");
        prop_assert!(more.trials.len() >= less.trials.len());
        prop_assert!(total(&more) >= total(&less));
        for (less, more) in less.experiments.iter().zip(&more.experiments) {
            for ((factor, less), (_, more)) in less.factors.iter().zip(&more.factors) {
                prop_assert!(less.iter().all(|level| more.contains(level)), "{}", factor);
            }
        }
    }
}

#[test]
fn the_factors_of_a_plan_are_those_measured() {
    let plan = plan(&study(), &request(Some(Nanos::from_s(180)))).expect("a plan");
    for experiment in &plan.experiments {
        for (factor, levels) in &experiment.factors {
            let used: BTreeSet<&Level> = plan
                .trials
                .iter()
                .filter(|trial| trial.experiment == experiment.name)
                .filter_map(|trial| trial.cell.get(factor))
                .collect();
            assert_eq!(used, levels.iter().collect(), "{factor}");
        }
    }
    assert_eq!(
        plan.experiments[1].linked,
        vec![vec![Factor::Connections, Factor::Clients]]
    );
}

#[test]
fn knobs_are_varied_in_a_lab_only_and_give_their_trials_time_to_settle() {
    let draft = draft(
        "mtu = [\"auto\", 1500, 9000]\ngro = [true]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let drafts = [draft];
    let mut request = request(None);
    let PlanError::Nothing { left_out } = plan(&drafts, &request).expect_err("nothing is left")
    else {
        panic!("another reason");
    };
    let whats: Vec<&str> = left_out.iter().map(|left| &*left.what).collect();
    assert_eq!(whats[0], "example: mtu 1500 B, 9000 B");
    assert!(left_out[0].why.contains("host-wide") && left_out[0].why.contains("--lab"));
    let lab = |mtu_bytes_max| {
        Some(LabKnobs {
            mtu_bytes_max,
            ..LabKnobs::default()
        })
    };
    request.hosts.knobs = lab(1500);
    let short = plan(&drafts, &request).expect("a plan");
    assert_eq!(short.left_out.len(), 1);
    assert_eq!(short.left_out[0].what, "example: mtu 9000 B");
    let mut tried = lab(9000).expect("a lab");
    let gro = (Factor::Gro, Level::Switch(true));
    tried.refused = vec![(gro.0, gro.1, "the device says no".to_owned())];
    request.hosts.knobs = Some(tried);
    let PlanError::Nothing { left_out } = plan(&drafts, &request).expect_err("no level is left")
    else {
        panic!("another reason");
    };
    assert_eq!(left_out[0].why, "the device says no");
    request.hosts.knobs = lab(9000);
    let whole = plan(&drafts, &request).expect("a plan");
    assert_eq!((whole.left_out.len(), whole.trials.len()), (0, 3));
    for trial in &whole.trials {
        assert_eq!(trial.workload, whole.experiments[0].workload);
        let asked = changes(&trial.cell);
        assert_eq!(asked.get(&Factor::Gro), Some(&Level::Switch(true)));
        let is_auto = trial.cell[&Factor::Mtu].is_auto();
        assert_eq!(asked.contains_key(&Factor::Mtu), !is_auto);
        let settle = Factor::Gro.knob().expect("a knob").settle;
        assert!(trial.timing.settle >= settle);
    }
}

#[test]
fn a_congestion_control_is_set_where_none_is_asked_for() {
    let check = |factors: &str, expected: &[&str], fixed: Option<&str>| {
        let mut request = request(None);
        request.hosts = Hosts {
            congestion_unless_asked: Some("cubic".to_owned()),
            ..hosts()
        };
        let plan = plan(
            &[draft(factors, "kind = \"full\"\nreplicates = 1", "")],
            &request,
        )
        .expect("a plan");
        let used: BTreeSet<&str> = plan
            .trials
            .iter()
            .map(|trial| trial.workload.options.congestion.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(used, expected.iter().copied().collect(), "{factors}");
        let own = &plan.experiments[0].workload.options.congestion;
        assert_eq!(own.as_deref(), fixed, "{factors}");
        let told = describe(&plan, Some(&[])).contains("congestion control cubic");
        assert_eq!(told, fixed.is_some(), "{factors}");
    };
    check("connections = [1, 2]", &["cubic"], Some("cubic"));
    check(
        r#"congestion = ["reno", "cubic"]"#,
        &["cubic", "reno"],
        None,
    );
    check(r#"transport = ["tcp", "unix"]"#, &["-", "cubic"], None);
    check(r#"congestion_default = ["auto"]"#, &["-"], None);
    let plan = plan(&study(), &request(None)).expect("a plan");
    let own = |name: &str| plan.experiment(name).expect("it is a chapter");
    assert_eq!(own("socket-buffer").workload.options.congestion, None);
}

#[test]
fn a_quick_look_has_as_many_chapters_as_fit_and_says_which_do_not() {
    let mut request = request(Some(Nanos::from_s(30)));
    request.overhead_per_trial = Nanos::from_ms(100);
    assert!(matches!(
        plan(&study(), &request),
        Err(PlanError::Budget { .. })
    ));
    let quick = fitting(&study(), &request).expect("something fits");
    assert!(quick.estimate <= Nanos::from_s(30));
    assert!(!quick.experiments.is_empty());
    assert!(quick.experiments.iter().all(|own| own.replicates >= 3));
    for draft in study() {
        let name = &draft.experiment.name;
        let is_told = quick.left_out.iter().any(|left| left.what == *name);
        assert!(is_told != quick.experiment(name).is_some(), "{name}");
    }

    // What nothing fits into is told the least that is enough for one of them.
    request.budget = Some(Nanos::from_s(1));
    let Err(PlanError::Budget { least, .. }) = fitting(&study(), &request) else {
        panic!("1 s is enough");
    };
    request.budget = Some(least);
    let one = fitting(&study(), &request).expect("the least fits");
    assert_eq!(one.experiments.len(), 1, "{:?}", one.experiments);
}

#[test]
fn a_block_of_a_latin_hypercube_has_each_level_once_and_blocks_differ() {
    let factors = "message_bytes = [64, 512, 4096, 32768]\nconnections = [1, 2, 4, 8]";
    let design = "kind = \"latin-hypercube\"\nreplicates = 6";
    let draft = draft(factors, design, "[budget]\nreplicates = [2, 6]");
    let whole = plan(std::slice::from_ref(&draft), &request(None)).unwrap();
    assert_eq!(whole.trials.len(), 6 * 4);
    let mut blocks = Vec::new();
    for block in 1..=6 {
        let own = whole.trials.iter().filter(|trial| trial.replicate == block);
        let cells: BTreeSet<Cell> = own.map(|trial| trial.cell.clone()).collect();
        for factor in [Factor::MessageBytes, Factor::Connections] {
            let levels: BTreeSet<&Level> = cells.iter().map(|cell| &cell[&factor]).collect();
            assert_eq!(levels.len(), 4, "{cells:?}");
        }
        blocks.push(cells);
    }
    blocks.sort();
    blocks.dedup();
    assert!(blocks.len() > 1, "{blocks:?}");
    // The same request gives the same plan; a budget takes blocks, no levels.
    assert_eq!(
        whole,
        plan(std::slice::from_ref(&draft), &request(None)).unwrap()
    );
    let short = plan(&[draft], &request(Some(Nanos::from_s(20)))).unwrap();
    assert_eq!(short.trials.len() % 4, 0);
}

/// A search for a rate.
fn bisection() -> Draft {
    draft(
        "rate = [\"10M\", \"1G\"]",
        "kind = \"bisection\"\nreplicates = 3\ncondition = \"throughput > 1M\"\nresolution = \"1%\"",
        "",
    )
}

#[test]
fn a_search_begins_with_both_ends_and_its_estimate_has_what_follows() {
    let plan = plan(&[bisection()], &request(None)).unwrap();
    assert_eq!(plan.trials.len(), 6);
    assert_eq!(cells(&plan).len(), 2);
    assert!(plan.stages.is_empty() && plan.optional.is_empty());
    // A hundred times in steps of 1 %: 463, which nine halvings reach; both ends, and once more to confirm.
    let each = Nanos::from_ms(1200 + 250).0;
    assert_eq!(plan.estimate.0, 3 * (2 + 9 + 1) * each + Nanos::from_s(2).0);
}

#[test]
fn a_plan_says_where_one_datagram_is_more_than_the_loss_that_is_searched_for() {
    let says = |measure: u64| {
        let mut search = bisection();
        let experiment = &mut search.experiment;
        experiment.workload.manner.transport = Transport::Udp;
        let (_, size) = experiment.workload.traffic.stream_mut().expect("a stream");
        *size = Bytes(1250);
        experiment.timing.measure = Nanos::from_ms(measure);
        let found = experiment.search.as_mut().expect("a search");
        found.condition = "loss < 0.1%".to_owned();
        let plan = plan(&[search], &request(None)).unwrap();
        describe(&plan, None)
    };
    // 10 Mbit/s are 1000 datagrams of 1250 B in a second.
    assert!(says(300).contains("300 datagrams"), "{}", says(300));
    assert!(!says(1000).contains("datagrams"), "{}", says(1000));
}

#[test]
fn a_search_adds_a_stage_after_all_that_was_planned_and_the_same_one_again() {
    let plan = plan(&[bisection()], &request(None)).unwrap();
    let level = Level::Rate(100_000_000);
    let experiment = &plan.experiments[0];
    let (stage, trials) = extension(&plan, experiment, &level).unwrap().unwrap();
    let ids: Vec<u32> = stage.trials.iter().map(|id| id.0).collect();
    assert_eq!(ids, [7, 8, 9]);
    let blocks: Vec<u32> = trials.iter().map(|trial| trial.replicate).collect();
    assert_eq!(blocks, [4, 5, 6]);
    assert!(trials.iter().all(|trial| trial.cell == stage.cell));
    assert_eq!(stage.cell[&Factor::Rate], level);
    let rates = trials
        .iter()
        .map(|trial| Factor::Rate.parameter().read(&trial.workload));
    assert!(rates.into_iter().all(|rate| rate == Some(level.clone())));
    assert_eq!(
        extension(&plan, experiment, &level).unwrap().unwrap(),
        (stage, trials)
    );
}

#[test]
fn each_block_of_a_relative_search_has_the_level_that_its_condition_names() {
    let draft = draft(
        "socket_buffer = [\"8KiB\", \"4MiB\"]",
        "kind = \"bisection\"\nreplicates = 3\ncondition = \"throughput > 95% of auto\"\nresolution = \"100%\"",
        "",
    );
    let plan = plan(&[draft], &request(None)).unwrap();
    let experiment = &plan.experiments[0];
    let auto = experiment.search_control().unwrap();
    let level = Level::Size(linerate_model::Bytes(64 << 10));
    let (stage, trials) = extension(&plan, experiment, &level).unwrap().unwrap();
    assert_eq!((plan.trials.len(), trials.len()), (9, 6));
    assert_eq!(stage.cell[&Factor::SocketBuffer], level);
    for trial in plan.trials.iter().chain(&trials) {
        let all = plan.trials.iter().chain(&trials);
        let block = all.filter(|other| other.replicate == trial.replicate);
        assert_eq!(block.filter(|other| other.cell == auto).count(), 1);
        let sent = Factor::SocketBuffer.parameter().read(&trial.workload);
        let is_auto = trial.cell == auto;
        assert_eq!(
            sent == trial.cell.get(&Factor::SocketBuffer).cloned(),
            !is_auto,
            "{sent:?}"
        );
    }
    // Nine halvings of the way, and once more to confirm, each beside the other level; that and both ends at first.
    let each = Nanos::from_ms(1200 + 250).0;
    let steps = u64::from(
        experiment
            .searched()
            .unwrap()
            .0
            .steps(8e3 * 1.024, 4.0 * 1024.0 * 1024.0),
    );
    assert_eq!(
        plan.estimate.0,
        3 * (3 + 2 * (steps + 1)) * each + Nanos::from_s(2).0
    );
}

#[test]
fn a_stage_of_a_search_over_a_knob_has_its_time_to_settle() {
    let mut request = request(None);
    request.hosts.knobs = Some(LabKnobs {
        mtu_bytes_max: 9000,
        ..LabKnobs::default()
    });
    let draft = draft(
        "mtu = [1500, 9000]",
        "kind = \"bisection\"\nreplicates = 3\ncondition = \"throughput > 1M\"\nresolution = \"1%\"",
        "",
    );
    let plan = plan(&[draft], &request).unwrap();
    let mut experiment = plan.experiments[0].clone();
    experiment.timing.settle = Nanos(0);
    let level = Level::Size(linerate_model::Bytes(4000));
    let (_, trials) = extension(&plan, &experiment, &level).unwrap().unwrap();
    let settle = Factor::Mtu.knob().expect("a knob").settle;
    assert!(trials.iter().all(|trial| trial.timing.settle == settle));
}

#[test]
fn more_cpus_than_a_host_has_are_left_out() {
    let mut request = request(None);
    request.hosts.cpus_max = Some(2);
    let draft = draft("cpus = [1, 2, 4]", "kind = \"full\"\nreplicates = 1", "");
    let plan = plan(&[draft], &request).unwrap();
    assert_eq!(plan.trials.len(), 2);
    assert_eq!(plan.left_out.len(), 1);
    assert!(
        plan.left_out[0].why.contains("2 CPUs"),
        "{:?}",
        plan.left_out
    );
    let cpus = plan.trials.iter().map(|trial| trial.workload.manner.cpus);
    let cpus: BTreeSet<Option<u32>> = cpus.collect();
    assert_eq!(cpus, BTreeSet::from([Some(1), Some(2)]));
}

#[test]
fn a_share_of_the_links_rate_is_a_rate_of_each_flow_once_the_link_is_known() {
    let draft = draft(
        "connections = [1, 4]\nrate = [\"25%\", \"100%\", \"10M\"]",
        "kind = \"full\"\nreplicates = 1",
        "",
    );
    let mut asked = request(None);
    asked.hosts.link_bps = Some(1_000_000_000);
    let found = plan(std::slice::from_ref(&draft), &asked).expect("a plan");
    let rate = |connections: u32, level: Level| {
        let mut trials = found.trials.iter();
        let is_it = |trial: &&linerate_model::plan::Trial| {
            trial.workload.connections == connections && trial.cell[&Factor::Rate] == level
        };
        trials
            .find(is_it)
            .expect("a trial")
            .workload
            .manner
            .rate_bps
    };
    assert_eq!(rate(1, Level::Ppm(250_000)), Some(250_000_000));
    assert_eq!(rate(4, Level::Ppm(250_000)), Some(62_500_000));
    assert_eq!(rate(4, Level::Ppm(1_000_000)), Some(250_000_000));
    assert_eq!(rate(4, Level::Rate(10_000_000)), Some(10_000_000));
    // Where no host tells its link, shares of it are left out.
    asked.hosts.link_bps = None;
    let found = plan(&[draft], &asked).expect("a plan");
    assert_eq!(found.trials.len(), 2);
    assert!(!found.left_out.is_empty());
}
