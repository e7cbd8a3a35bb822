//! Every experiment file that comes with the program can be read and planned.

use std::fs;
use std::path::Path;

use linerate_model::Nanos;
use linerate_model::experiment::{Factor, Level};
use linerate_plan::{
    Draft, Hosts, LabKnobs, PlanRequest, built_in, describe, plan, read_experiment, study, yielding,
};

fn request(budget: Option<Nanos>) -> PlanRequest {
    PlanRequest {
        budget,
        seed: 7,
        hosts: Hosts {
            clients: 5,
            link_losses_ppm: vec![0, 1000, 10_000],
            rmem_max: Some(4 << 20),
            wmem_max: Some(4 << 20),
            congestion: vec!["cubic".to_owned(), "bbr".to_owned(), "reno".to_owned()],
            congestion_unless_asked: None,
            knobs: Some(LabKnobs {
                mtu_bytes_max: 9000,
                ..LabKnobs::default()
            }),
            round_trip: Nanos(0),
            cpus_max: None,
            link_bps: Some(1_000_000_000),
        },
        further_blocks: 0,
        overhead_per_trial: Nanos::from_ms(250),
        overhead_per_flow: Nanos(0),
        overhead_once: Nanos::from_s(5),
    }
}

fn files() -> Vec<(String, Draft)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the experiments")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let text = fs::read_to_string(&path).expect("a text");
            let draft = read_experiment(&text, &name).unwrap_or_else(|error| panic!("{error}"));
            (name, draft)
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn every_file_is_built_in() {
    let names = |drafts: &mut dyn Iterator<Item = Draft>| {
        let mut names: Vec<String> = drafts.map(|draft| draft.experiment.name).collect();
        names.sort();
        names
    };
    let files = names(&mut files().into_iter().map(|(_, draft)| draft));
    assert_eq!(names(&mut built_in().into_iter()), files);
}

#[test]
fn every_file_can_be_read_and_planned() {
    let files = files();
    assert!(files.len() >= 6, "{}", files.len());
    for (name, draft) in &files {
        let plan = plan(std::slice::from_ref(draft), &request(None))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!plan.trials.is_empty(), "{name}");
        assert!(
            describe(&plan, Some(&[])).contains(&draft.experiment.name),
            "{name}"
        );
    }
}

#[test]
fn the_study_fits_its_budgets() {
    // Where a trial takes so long around its phases, three minutes have two blocks of some.
    for (minutes, blocks) in [(3, 2), (5, 3), (30, 3), (240, 3)] {
        let request = request(Some(Nanos::from_s(minutes * 60)));
        let plan = yielding(&study(), &request).expect("a plan");
        println!("{}", describe(&plan, Some(&[])));
        assert!(plan.estimate <= Nanos::from_s(minutes * 60));
        for experiment in &plan.experiments {
            assert!(experiment.replicates >= blocks, "{}", experiment.name);
            println!(
                "{minutes} min: {} {} trials, {} replicates of {}",
                experiment.name,
                plan.trials
                    .iter()
                    .filter(|t| t.experiment == experiment.name)
                    .count(),
                experiment.replicates,
                experiment.timing.measure,
            );
        }
    }
}

#[test]
fn three_minutes_are_spent_on_what_they_can_decide() {
    // As `study` asks: a tenth is kept for further blocks and repeats.
    let request = PlanRequest {
        further_blocks: 6,
        overhead_per_trial: Nanos::from_ms(100),
        overhead_per_flow: Nanos(0),
        overhead_once: Nanos::from_s(4),
        ..request(Some(Nanos::from_s(180)))
    };
    let plan = yielding(&study(), &request).expect("a plan");
    assert!(plan.estimate <= Nanos::from_s(162), "{}", plan.estimate);
    let trials = |name: &str| {
        let own = plan.trials.iter().filter(|trial| trial.experiment == name);
        own.count()
    };
    // Eight payloads by two, five messages by four: 24 and 30 pairs in three blocks. Two curves of five buffers
    // and three controls in four.
    let expected = [
        ("latency", 48),
        ("small-messages", 60),
        ("socket-buffer", 64),
    ];
    for (name, count) in expected {
        assert_eq!(trials(name), count, "{name}");
    }
}

#[test]
fn what_gives_way_is_named_and_more_time_measures_more() {
    let of = |minutes: u64| {
        let request = PlanRequest {
            further_blocks: 6,
            overhead_per_trial: Nanos::from_ms(100),
            ..request(Some(Nanos::from_s(minutes * 60)))
        };
        yielding(&study(), &request).expect("a plan")
    };
    let all: Vec<String> = study()
        .into_iter()
        .map(|draft| draft.experiment.name)
        .collect();
    let mut before = 0;
    for minutes in [3, 4, 5, 15] {
        let plan = of(minutes);
        let is_there = |name: &String| plan.experiment(name).is_some();
        let is_named = |name: &String| plan.left_out.iter().any(|left| left.what == *name);
        assert!(
            all.iter().all(|name| is_there(name) != is_named(name)),
            "{minutes}"
        );
        let there = all.iter().filter(|name| is_there(name)).count();
        assert!(there >= before, "{minutes}");
        before = there;
    }
    assert_eq!(before, all.len());
    // What everybody asks first stays.
    let three = of(3);
    for name in [
        "latency",
        "socket-buffer",
        "small-messages",
        "split-request",
    ] {
        assert!(three.experiment(name).is_some(), "{name}");
    }
}

#[test]
fn an_experiment_of_knobs_alone_is_left_out_where_hosts_are_not_changed() {
    let real = PlanRequest {
        hosts: Hosts {
            knobs: None,
            ..request(None).hosts
        },
        ..request(None)
    };
    let plan = plan(&study(), &real).expect("a plan");
    let why = |name: &str| {
        let mut left = plan.left_out.iter();
        left.find(|left| left.what == name).map(|left| &*left.why)
    };
    for name in ["offloads", "moderation", "transmit-queues"] {
        assert!(plan.experiment(name).is_none(), "{name}");
        assert!(why(name).is_some_and(|why| !why.is_empty()), "{name}");
    }
    // Others are measured with the hosts as they are.
    let sizes = plan.experiment("transfer-size").expect("it is there");
    assert_eq!(sizes.levels(Factor::Mtu), [Level::Word("auto".to_owned())]);
    assert!(sizes.levels(Factor::MessageBytes).len() > 1);
}
