//! Experiment files: what is understood, and what is refused with line, key and allowed values.

use std::collections::BTreeMap;

use linerate_model::experiment::{Cell, DesignKind, Experiment, Factor, Level};
use linerate_model::manner::Sizes;
use linerate_model::workload::{Direction, Traffic};
use linerate_model::{Bytes, Nanos};
use linerate_plan::{ReadError, read_experiment};

/// A file with every section; the cases below change one line of it.
const FILE: &str = r#"format = 1
name = "example"
chapter = 3
title = "Example"
question = "What is it good for?"
method = "By example."
response = "throughput_bps"

[workload]
kind = "stream"
direction = "from-server"
message_bytes = "32KiB"
nagle = false

[factors]
socket_buffer = ["16KiB", 65536]
load = [{ clients = 1, connections = 1 }, { connections = 10, clients = 5 }]

[design]
kind = "one-at-a-time"
baseline = { socket_buffer = "64KiB", connections = 1, clients = 1 }
replicates = 5

[timing]
settle = "0ms"
warm_up = "150ms"
measure = "1s"
drain = "50ms"

[budget]
weight = 2
replicates = [2, 10]
measure = ["400ms", "10s"]
core.socket_buffer = ["64KiB"]
"#;

#[test]
fn what_must_stand_there_is_said_in_the_words_of_the_file() {
    let number = "it must be a whole number from 0";
    check("replicates = 5", "replicates = \"x\"", &["line 22", number]);
    check("replicates = 5", "replicates = -1", &[number]);
    check("chapter = 3", "chapter = true", &[number]);
    check(
        "name = \"example\"",
        "name = 7",
        &["it must be text in quotes"],
    );
    check(
        "measure = \"1s\"",
        "measure = true",
        &["it must be a duration"],
    );
    check(
        "measure = \"1s\"",
        "measure = \"99999999h\"",
        &["too large"],
    );
    // A level that makes no workload is named with its line.
    let levels = "connections = [1, 100000]\nload = [{ clients = 1 }, { clients = 5 }]";
    let load = "load = [{ clients = 1, connections = 1 }, { connections = 10, clients = 5 }]";
    check(
        load,
        levels,
        &["line 17: `factors.connections` is 100000", "1 to 20000"],
    );
}

#[test]
fn groups_go_on_beside_the_workload() {
    let with = |group: &str| {
        let text = FILE.replace("[factors]", &format!("{group}\n[factors]"));
        read_experiment(&text, "example.toml")
    };
    let probe = "[[group]]\nname = \"probe\"\n[group.workload]\nkind = \"rr\"\nconnections = 4\n";
    let draft = with(probe).expect("a draft");
    let [group] = draft.experiment.beside.as_slice() else {
        panic!("{:?}", draft.experiment.beside);
    };
    assert_eq!(group.name, "probe");
    assert_eq!(group.workload.connections, 4);
    let from = |hosts: &str| {
        let named = format!("name = \"probe\"\n{hosts}\n");
        with(&probe.replace("name = \"probe\"\n", &named))
    };
    let of = |hosts: &str| {
        let experiment = from(hosts).expect("a draft").experiment;
        let flows = experiment.beside[0].workload.flows().into_iter();
        flows.map(|flow| flow.from).collect::<Vec<_>>()
    };
    assert_eq!(of("from = \"client 2\"\nto = \"server\""), [2, 2, 2, 2]);
    assert_eq!(of("from = [\"client 3\", \"client 1\"]"), [3, 1, 3, 1]);
    for none in [
        "from = \"server\"",
        "to = \"client 1\"",
        "from = \"client\"",
        "from = 2",
    ] {
        from(none).expect_err(none);
    }
    let refused = |group: &str, words: &str| {
        let told = with(group).expect_err("no group").to_string();
        assert!(told.contains(words), "{told}");
    };
    refused(&probe.replace("probe", "stream"), "`stream`");
    refused(&probe.replace("rr", "bulk"), "bulk");
    refused(&probe.replace("connections", "colour"), "colour");
    refused(&format!("{probe}transport = \"unix\"\n"), "probe");
}

#[test]
fn a_factor_may_be_of_a_group() {
    let with = |factors: &str| {
        let group = "[[group]]\nname = \"probe\"\n[group.workload]\nkind = \"rr\"\n";
        let text = FILE.replace("[factors]", &format!("{group}\n[factors]\n{factors}"));
        let text = text.replace("\"one-at-a-time\"", "\"full\"");
        let lines = text.lines().filter(|line| !line.starts_with("baseline"));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        read_experiment(&text, "example.toml")
    };
    let experiment = with("\"probe.connections\" = [1, 8]")
        .expect("a draft")
        .experiment;
    let factor = Factor::named("probe.connections").expect("it is one");
    let levels = [Level::Count(1), Level::Count(8)];
    assert_eq!(experiment.factors[0], (factor, levels.to_vec()));
    // The trials of each level differ in the group alone.
    let of = |level: &Level| {
        let cell = Cell::from([(factor, level.clone())]);
        let beside = experiment.beside_of(&cell).expect("groups");
        let own = experiment.workload_of(&cell).expect("a workload");
        (own == experiment.workload, beside[0].workload.connections)
    };
    assert_eq!(levels.each_ref().map(of), [(true, 1), (true, 8)]);
    let refused = |factors: &str, words: &str| {
        let told = with(factors).expect_err("no factor").to_string();
        assert!(told.contains(words), "{told}");
    };
    refused("\"prob.connections\" = [1, 8]", "prob.connections");
    refused("\"probe.mtu\" = [1500, 9000]", "probe.mtu");
    refused("\"probe.nonsense\" = [1, 2]", "probe.nonsense");
    refused("\"probe.direction\" = [\"both\"]", "probe.direction");
    refused("probe.connections = [1, 8]", "in quotes");
    let twice = "\"probe.payload_bytes\" = [1, 8]\n\"probe.request_bytes\" = [1, 8]";
    refused(twice, "probe.payload_bytes");
}

/// The rate may be a level, and may be a group's.
#[test]
fn requests_at_a_rate_have_nagle_off_unless_it_is_asked_for() {
    let check = |keys: &str, factors: &str, expected: [Option<bool>; 2]| {
        let text = format!(
            "format = 1\nname = \"x\"\ntitle = \"X\"\nquestion = \"What?\"\n\
             design = {{ kind = \"full\", replicates = 1 }}\n\
             timing = {{ settle = \"0s\", warm_up = \"0s\", measure = \"1s\", drain = \"0s\" }}\n\
             [workload]\nkind = \"rr\"\n{keys}\n[factors]\n{factors}\n\
             [[group]]\nname = \"probe\"\n[group.workload]\nkind = \"rr\"\n{keys}\n"
        );
        let draft = read_experiment(&text, "x.toml").unwrap_or_else(|error| panic!("{error}"));
        let experiment = draft.experiment;
        let (factor, levels) = &experiment.factors[0];
        let cell = Cell::from([(*factor, levels[0].clone())]);
        let own = experiment.workload_of(&cell).expect("a workload");
        let beside = experiment.beside_of(&cell).expect("groups");
        let found = [own.options.nagle, beside[0].workload.options.nagle];
        assert_eq!(found, expected, "{keys} {factors}");
    };
    let on = "connections = [1, 2]";
    check("requests_per_s = 100", on, [Some(false); 2]);
    check("requests_per_s = 100\nnagle = true", on, [Some(true); 2]);
    check("in_flight = 64", on, [None; 2]);
    check("", "requests_per_s = [100, 200]", [Some(false), None]);
    check(
        "",
        "\"probe.requests_per_s\" = [100, 200]",
        [None, Some(false)],
    );
    let both = "requests_per_s = 100";
    check(both, "nagle = [true, false]", [Some(true), Some(false)]);
}

#[test]
fn every_section_is_understood() {
    let draft = read_experiment(FILE, "example.toml").expect("a draft");
    let experiment = &draft.experiment;
    assert_eq!(experiment.name, "example");
    assert_eq!(experiment.chapter, Some(3));
    let traffic = Traffic::Stream {
        direction: Direction::FromServer,
        message_bytes: Bytes(32 << 10),
    };
    assert_eq!(experiment.workload.traffic, traffic);
    assert_eq!(experiment.workload.options.nagle, Some(false));
    assert_eq!(experiment.workload.options.delayed_ack, None);
    let size = |kib: u64| Level::Size(Bytes(kib << 10));
    let factors = vec![
        (Factor::SocketBuffer, vec![size(16), size(64)]),
        (Factor::Connections, vec![Level::Count(1), Level::Count(10)]),
        (Factor::Clients, vec![Level::Count(1), Level::Count(5)]),
    ];
    assert_eq!(experiment.factors, factors);
    assert_eq!(
        experiment.linked,
        vec![vec![Factor::Connections, Factor::Clients]]
    );
    assert_eq!(experiment.design, DesignKind::OneAtATime);
    assert_eq!(
        experiment.baseline.get(&Factor::SocketBuffer),
        Some(&size(64))
    );
    assert_eq!(experiment.replicates, 5);
    assert_eq!(experiment.timing.warm_up, Nanos::from_ms(150));
    assert_eq!(draft.budget.weight, 2);
    assert_eq!(draft.budget.replicates, (2, 10));
    assert_eq!(
        draft.budget.measure,
        (Nanos::from_ms(400), Nanos::from_s(10))
    );
    assert_eq!(
        draft.budget.core,
        BTreeMap::from([(Factor::SocketBuffer, vec![size(64)])])
    );
}

#[test]
fn what_may_be_left_out_gets_its_documented_value() {
    let text = r#"
        format = 1
        name = "short"
        title = "Short"
        question = "Enough?"
        workload = { kind = "rr", payload_bytes = 40 }
        design = { kind = "full", replicates = 3 }
        timing = { settle = "0s", warm_up = "100ms", measure = "1s", drain = "0s" }
    "#;
    let draft = read_experiment(text, "short.toml").expect("a draft");
    let experiment = &draft.experiment;
    let traffic = Traffic::Rr {
        request_bytes: Bytes(40),
        response_bytes: Bytes(40),
        request_writes: 1,
    };
    assert_eq!(experiment.workload.traffic, traffic);
    assert_eq!(
        (experiment.workload.connections, experiment.workload.clients),
        (1, 1)
    );
    assert_eq!(experiment.response, "transactions_per_s");
    assert_eq!(experiment.factors, Vec::new());
    assert_eq!(draft.budget.weight, 1);
    assert_eq!(draft.budget.replicates, (3, 3));
    assert_eq!(draft.budget.measure, (Nanos::from_s(1), Nanos::from_s(1)));
}

#[test]
fn what_names_no_response_is_about_what_its_connections_are_for() {
    let read = |kind: &str, response: &str| {
        let text = format!(
            r#"
            format = 1
            name = "short"
            title = "Short"
            question = "Enough?"
            {response}
            workload = {{ kind = "{kind}" }}
            design = {{ kind = "full", replicates = 3 }}
            timing = {{ settle = "0s", warm_up = "100ms", measure = "1s", drain = "0s" }}
            "#
        );
        let draft = read_experiment(&text, "short.toml");
        draft.map(|draft| draft.experiment.response)
    };
    assert_eq!(read("crr", "").as_deref(), Ok("connections_per_s"));
    let transactions = read("crr", "response = \"transactions_per_s\"");
    assert_eq!(transactions.as_deref(), Ok("transactions_per_s"));
    assert_eq!(read("idle", "").as_deref(), Ok("connections_held"));
    let refused = read("idle", "response = \"throughput_bps\"").unwrap_err();
    assert!(
        refused.to_string().contains("one of `connections_held`"),
        "{refused}"
    );
}

#[test]
fn factors_keep_the_order_of_the_file() {
    let text = FILE
        .replace("[factors]", "[factors]\nnagle = [true, false]")
        .replace("baseline = {", "baseline = { nagle = true,");
    let draft = read_experiment(&text, "example.toml").expect("a draft");
    let order: Vec<Factor> = draft
        .experiment
        .factors
        .iter()
        .map(|entry| entry.0)
        .collect();
    let expected = [
        Factor::Nagle,
        Factor::SocketBuffer,
        Factor::Connections,
        Factor::Clients,
    ];
    assert_eq!(order, expected);
}

/// Checks that [`FILE`] with `from` replaced by `to` is refused in a message with all `parts`.
fn check(from: &str, to: &str, parts: &[&str]) {
    assert!(FILE.contains(from), "`{from}` is not in the file");
    let error = read_experiment(&FILE.replace(from, to), "example.toml").expect_err(to);
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    assert!(text.starts_with("cannot read example.toml"), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{text}` lacks `{part}`");
    }
}

#[test]
fn spelling_mistakes_are_told_with_line_and_allowed_keys() {
    check(
        "chapter = 3",
        "chaptre = 3",
        &["line 3", "chaptre", "`chapter`", "`title`"],
    );
    check(
        "nagle = false",
        "nagel = false",
        &["line 13", "nagel", "`nagle`"],
    );
    check("weight = 2", "wait = 2", &["line 31", "wait", "`weight`"]);
    check(
        "kind = \"stream\"",
        "kind = \"steam\"",
        &["line 10", "steam", "`stream`", "`rr`"],
    );
    check(
        "\"from-server\"",
        "\"out\"",
        &["line 11", "out", "to-server, from-server"],
    );
    check(
        "one-at-a-time",
        "one-at-a-tme",
        &["line 20", "`one-at-a-time`", "`full`"],
    );
    check(
        "socket_buffer = [\"16",
        "socket_bufer = [\"16",
        &["line 16", "socket_bufer", "nagle"],
    );
    check("title = \"Example\"", "", &["missing field `title`"]);
    check("[design]", "[desing]", &["line 19", "desing", "`design`"]);
    check("chapter = 3", "chapter = ", &["line 3"]);
}

#[test]
fn values_that_cannot_be_are_told_with_what_is_allowed() {
    check(
        "\"example\"",
        "\"My test\"",
        &["line 2", "`name` is `My test`", "a-z, 0-9 and -"],
    );
    check(
        "throughput_bps",
        "speed",
        &["line 7", "`speed`", "throughput_bps", "stall_max_ns"],
    );
    check(
        "throughput_bps",
        "transactions_per_s",
        &["line 7", "one of `throughput_bps`"],
    );
    check("\"150ms\"", "150", &["line 26", "text with its unit"]);
    check("\"150ms\"", "\"150\"", &["line 26", "has no unit", "ms"]);
    check("\"150ms\"", "\"-150ms\"", &["line 26", "negative"]);
    check(
        "measure = \"1s\"",
        "measure = \"1ms\"",
        &["`timing.measure` is 1 ms", "100 ms to 24 h"],
    );
    check(
        "replicates = 5",
        "replicates = 0",
        &["`design.replicates` is 0", "1 to 1000"],
    );
    check(
        "weight = 2",
        "weight = 0",
        &["`budget.weight` is 0", "1 to 100"],
    );
    check(
        "[2, 10]",
        "[10, 2]",
        &["`budget.replicates` is 2", "10 to 1000"],
    );
    check("[2, 10]", "[2]", &["line 32"]);
    check(
        "\"400ms\", \"10s\"",
        "\"10s\", \"1s\"",
        &["`budget.measure` is 1 s", "10 s to"],
    );
    check(
        "[\"64KiB\"]",
        "[\"48KiB\"]",
        &["budget.core.socket_buffer", "16 KiB, 64 KiB"],
    );
    check("65536", "-5", &["line 16", "`factors.socket_buffer` is -5"]);
    check(
        "65536",
        "\"many\"",
        &["line 16", "\"many\"", "a size such as"],
    );
    check(
        "65536",
        "true",
        &["line 16", "`factors.socket_buffer` is true", "a size"],
    );
    check(
        "65536",
        "\"16K\"",
        &["line 16", "twice", "different levels"],
    );
    check(
        "[\"16KiB\", 65536]",
        "\"16KiB\"",
        &["line 16", "a list of levels"],
    );
    check("[\"16KiB\", 65536]", "[]", &["line 16", "1 to 1000 levels"]);
    check(
        "{ clients = 1, conn",
        "{ klients = 1, conn",
        &["line 17", "klients", "clients"],
    );
    check(
        "{ clients = 1, conn",
        "{ conn",
        &["line 17", "tables that all set the same"],
    );
    check(
        "clients = 5 }",
        "clients = \"5\" }",
        &["factors.load.clients", "a whole number"],
    );
    check(
        "load = [",
        "connections = [1]\nload = [",
        &["line 18", "set by `connections` as well"],
    );
    check(
        "socket_buffer = \"64KiB\", con",
        "con",
        &["line 19", "absent", "16 KiB, 64 KiB"],
    );
    check(
        "= \"64KiB\", con",
        "= \"48KiB\", con",
        &["is 48 KiB", "16 KiB, 64 KiB"],
    );
    check(
        "baseline = {",
        "baseline = { nagle = true,",
        &["baseline.nagle", "not a factor"],
    );
    check(
        "one-at-a-time",
        "full",
        &["line 21", "a full design has no baseline"],
    );
    check(
        "direction = \"from",
        "request_bytes = 5\n#",
        &["line 11", "belongs to kind `rr`"],
    );
    check("format = 1", "format = 2", &["format 2", "format 1"]);
}

#[test]
fn losses_are_shares_in_steps_of_a_millionth() {
    let lossy = |loss: &str| {
        let text = FILE
            .replace("[factors]", &format!("[factors]\nlink_loss = [{loss}]"))
            .replace("baseline = {", "baseline = { link_loss = 0,");
        read_experiment(&text, "example.toml")
    };
    let draft = lossy("0, 0.001, 0.000001, 0.5").expect("a draft");
    let levels = &draft.experiment.factors[0];
    let ppm = [0, 1000, 1, 500_000].map(Level::Ppm).to_vec();
    assert_eq!(*levels, (Factor::LinkLoss, ppm));
    let words: Vec<String> = levels.1.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["0 %", "0.1 %", "0.0001 %", "50 %"]);
    for bad in ["0, 0.6", "0, 1", "0, -0.1", "0, 0.0000001", "0, \"1 %\""] {
        let error = lossy(bad).expect_err(bad).to_string();
        assert!(error.contains("`factors.link_loss` is"), "{bad}: {error}");
        assert!(error.contains("a share from 0 to 0.5"), "{bad}: {error}");
    }
    let fixed = |loss: &str| {
        let text = FILE.replace("nagle = false", &format!("link_loss = {loss}"));
        read_experiment(&text, "example.toml")
    };
    let draft = fixed("0.01").expect("a draft");
    assert_eq!(draft.experiment.workload.link_loss_ppm, Some(10_000));
    let error = fixed("0.7").expect_err("too much").to_string();
    assert!(error.contains("`workload.link_loss` is 0.7"), "{error}");
}

#[test]
fn cells_that_make_no_workload_are_told() {
    check(
        "clients = 5 }",
        "clients = 50 }",
        &["connections 10, clients 50", "clients is 50"],
    );
    check(
        "65536",
        "65536, \"2GiB\"",
        &[
            "line 16: `factors.socket_buffer` is 2147483648",
            "1024 to 1073741824",
        ],
    );
    check(
        "\"from-server\"",
        "\"both\"",
        &["with direction `both`", "2 to"],
    );
}

#[test]
fn a_newer_format_is_refused_before_its_keys_are() {
    let error = read_experiment("format = 2\nwonder = true", "new.toml").expect_err("newer");
    assert!(
        matches!(error, ReadError::Format { found: 2, .. }),
        "{error}"
    );
}

#[test]
fn designs_without_end_are_refused() {
    let numbers = |last: u64| (1..=last).collect::<Vec<_>>();
    let text = format!(
        r#"
        format = 1
        name = "vast"
        title = "Vast"
        question = "How long has this taken?"
        workload = {{ kind = "stream" }}
        factors = {{ connections = {:?}, message_bytes = {:?} }}
        design = {{ kind = "full", replicates = 1 }}
        timing = {{ settle = "0s", warm_up = "0s", measure = "1s", drain = "0s" }}
        "#,
        numbers(500),
        numbers(200)
    );
    let error = read_experiment(&text, "vast.toml").expect_err("too many");
    assert!(error.to_string().contains("100000 cells"), "{error}");
    assert!(error.to_string().contains("at most 10000 cells"), "{error}");
}

#[test]
fn the_example_of_the_reference_is_understood() {
    let page = include_str!("../../../docs/reference/experiment.md");
    let start = page.find("```toml\n").expect("an example") + "```toml\n".len();
    let example = page[start..].split("```").next().expect("its end");
    let draft = read_experiment(example, "experiment.md").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(draft.experiment.factors.len(), 3);
}

/// A file whose `[workload]` and `[factors]` are these.
fn of(workload: &str, factors: &str) -> String {
    format!(
        "format = 1\nname = \"x\"\ntitle = \"X\"\nquestion = \"What?\"\n[workload]\n{workload}\n\
         [factors]\n{factors}\n[design]\nkind = \"full\"\nreplicates = 1\n\
         [timing]\nsettle = \"0ms\"\nwarm_up = \"0ms\"\nmeasure = \"1s\"\ndrain = \"0ms\"\n"
    )
}

#[test]
fn the_manner_of_traffic_is_read_and_varied() {
    let text = of(
        "kind = \"stream\"\ntransport = \"mptcp\"\nreceive = \"discard\"\nrate = \"1Gbit\"",
        "send = [\"copy\", \"vmsplice\"]\nbatch = [1, 16]",
    );
    let draft = read_experiment(&text, "x.toml").expect("it can be");
    let manner = &draft.experiment.workload.manner;
    assert_eq!(manner.rate_bps, Some(1_000_000_000));
    assert_eq!(draft.experiment.factors.len(), 2);
    let text = of(
        "kind = \"stream\"\ntransport = \"udp\"\nrate = \"1Mbit\"\nburst = 10\n\
         sizes = { kind = \"uniform\", low = 64, high = \"1K\" }",
        "batch = [1, 16]",
    );
    let draft = read_experiment(&text, "x.toml").expect("it can be");
    let manner = &draft.experiment.workload.manner;
    let uniform = Sizes::Uniform {
        low: Bytes(64),
        high: Bytes(1024),
    };
    assert_eq!((manner.burst, manner.sizes.as_ref()), (10, Some(&uniform)));
    let text = of("kind = \"rr\"\nin_flight = 16", "batch = [1, 4, 16]");
    let draft = read_experiment(&text, "x.toml").expect("a call joins what is under way");
    assert_eq!(draft.experiment.factors.len(), 1);
    let text = of(
        "kind = \"rr\"\nthink = \"5ms\"",
        "in_flight = [1, 32]\npayload_bytes = [\"netpipe:1..64\"]",
    );
    let draft = read_experiment(&text, "x.toml").expect("it can be");
    assert_eq!(draft.experiment.factors[1].1.len(), 22, "1 to 67 B");
    assert_eq!(
        draft.experiment.workload.manner.think,
        Some(Nanos::from_ms(5))
    );
    let text = of(
        "kind = \"rr\"\nsteps = [\"send 256\", \"server spin 50us\", \"receive 1K\", \"pause 1ms\"]",
        "nagle = [true, false]",
    );
    let workload = read_experiment(&text, "x.toml")
        .expect("it can be")
        .experiment
        .workload;
    assert_eq!(workload.traffic.exchange(), Some((Bytes(256), Bytes(1024))));
    assert_eq!(workload.manner.steps.map(|steps| steps.len()), Some(4));
}

#[test]
fn manners_that_cannot_be_name_what_can() {
    let check = |workload: &str, factors: &str, said: &[&str]| {
        let error = read_experiment(&of(workload, factors), "x.toml").expect_err("it cannot be");
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        for word in said {
            assert!(text.contains(word), "no `{word}` in: {text}");
        }
    };
    let connections = "connections = [1]";
    check(
        "kind = \"rr\"\nbatch = 4",
        connections,
        &["requests that are in flight", "in_flight"],
    );
    check(
        "kind = \"crr\"\nbatch = 4",
        connections,
        &["workload.batch", "`stream`", "`rr`"],
    );
    check(
        "kind = \"stream\"\ntransport = \"udp\"\nwait = \"uring\"\nsend = \"vmsplice\"",
        "message_bytes = [64]",
        &["send is for tcp, mptcp, unix", "does nothing with udp"],
    );
    check(
        "kind = \"crr\"\nin_flight = 4",
        connections,
        &["workload.in_flight", "`rr`"],
    );
    check(
        "kind = \"stream\"",
        "send = [\"fast\"]",
        &["factors.send", "vmsplice"],
    );
    check(
        "kind = \"stream\"",
        "rate = [\"1Q\"]",
        &["factors.rate", "100Mbit"],
    );
    check(
        "kind = \"rr\"\nreceive_low_water = \"4KiB\"",
        "payload_bytes = [1, 2]",
        &["workload.receive_low_water", "`stream`"],
    );
    let sizes = "sizes = { kind = \"list\", bytes = [64, 65] }";
    check(
        &format!("kind = \"stream\"\nmessage_bytes = 64\n{sizes}"),
        connections,
        &["workload.sizes", "`message_bytes`"],
    );
    check(
        &format!("kind = \"rr\"\n{sizes}"),
        "payload_bytes = [1, 2]",
        &["workload.sizes", "`payload_bytes`"],
    );
    check(
        &format!("kind = \"crr\"\n{sizes}"),
        connections,
        &["workload.sizes", "`stream` or `rr`"],
    );
    let steps = "kind = \"rr\"\nsteps = [\"send 1\", \"receive 1\", \"receive 1\"]";
    check(
        &format!("{steps}\nrequest_bytes = 1"),
        connections,
        &["workload.steps", "`request_bytes`"],
    );
    check(
        steps,
        "payload_bytes = [1, 2]",
        &["workload.steps", "`payload_bytes`"],
    );
    check(steps, "in_flight = [1, 2]", &["steps", "no in_flight"]);
    check(
        steps,
        "transport = [\"tcp\", \"udp\"]",
        &["steps is for tcp, mptcp, unix"],
    );
    for odd in ["\"sleep 1ms\"", "1", "\"send 1\", \"receive\""] {
        check(
            &format!("kind = \"rr\"\nsteps = [{odd}]"),
            connections,
            &["workload.steps", "\"send 256\""],
        );
    }
    check(
        "kind = \"rr\"\nsteps = []",
        connections,
        &["request_bytes is 0"],
    );
    check(
        "kind = \"crr\"\nsteps = [\"send 1\"]",
        connections,
        &["workload.steps", "`rr`"],
    );
    check("kind = \"stream\"\nburst = 10", connections, &["burst"]);
    check(
        "kind = \"stream\"",
        "in_flight = [2]",
        &["in_flight", "no meaning"],
    );
    check(
        "kind = \"rr\"",
        "payload_bytes = [\"netpipe:8..1\"]",
        &["factors.payload_bytes", "netpipe:1..8M"],
    );
    check(
        "kind = \"crr\"\ntransport = \"udp\"",
        connections,
        &["udp is for stream, rr, and does nothing with crr"],
    );
}

/// Reads the experiment of a file with this workload, these factors and this design.
fn experiment(workload: &str, factors: &str, design: &str) -> Result<Experiment, ReadError> {
    let text = format!(
        r#"
        format = 1
        name = "example"
        title = "Example"
        question = "What matters?"
        workload = {{ {workload} }}
        timing = {{ settle = "0s", warm_up = "100ms", measure = "1s", drain = "100ms" }}
        [factors]
        {factors}
        [design]
        {design}
        "#
    );
    read_experiment(&text, "example.toml").map(|draft| draft.experiment)
}

#[test]
fn a_bisection_is_one_scale_with_two_ends_and_a_condition() {
    let read = |factors: &str, design: &str| {
        experiment(
            r#"kind = "stream", transport = "udp", message_bytes = 1000"#,
            factors,
            design,
        )
    };
    let rates = "rate = [\"10M\", \"1G\"]";
    let design =
        "kind = \"bisection\"\nreplicates = 3\ncondition = \"loss < 0.1%\"\nresolution = \"1%\"";
    let found = read(rates, design).unwrap_or_else(|error| panic!("{error}"));
    let search = found.search.unwrap();
    assert_eq!(
        (&*search.condition, search.resolution),
        ("loss < 0.1%", 0.01)
    );
    let refused = |factors: &str, design: &str, key: &str| {
        let error = read(factors, design).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    };
    refused("rate = [\"10M\", \"1G\", \"2G\"]", design, "factors");
    refused("rate = [\"1G\", \"10M\"]", design, "factors");
    refused(
        "direction = [\"to-server\", \"from-server\"]",
        design,
        "factors",
    );
    refused(rates, &design.replace("= 3", "= 2"), "design.replicates");
    refused(rates, &design.replace("1%", "x"), "condition");
    refused(
        rates,
        &design.replace("\"1%\"", "\"0\""),
        "design.resolution",
    );
    refused(
        rates,
        &design.replace("loss <", "rtt_p50 <").replace("0.1%", "1ms"),
        "rtt_p50 < 1ms",
    );
    refused(
        rates,
        "kind = \"full\"\nreplicates = 3\nresolution = \"1%\"",
        "design.resolution",
    );
    refused(
        rates,
        "kind = \"bisection\"\nreplicates = 3\nresolution = \"1%\"",
        "design.condition",
    );
    // What a condition is relative to is a level of the factor.
    let relative =
        |level: &str| design.replace("loss < 0.1%", &format!("throughput > 95% of {level}"));
    let buffers = "socket_buffer = [\"8KiB\", \"4MiB\"]";
    let control = |level: &str| {
        let found = read(buffers, &relative(level)).unwrap_or_else(|error| panic!("{error}"));
        found.search_control().unwrap()[&Factor::SocketBuffer].clone()
    };
    assert_eq!(control("auto"), Level::Word("auto".to_owned()));
    assert_eq!(control("1MiB"), Level::Size(Bytes(1 << 20)));
    refused(buffers, &relative("fast"), "fast");
    refused(rates, &relative("auto"), "rate is auto");
    let given = format!("{design}\ncontrol = {{ levels = {{ rate = \"10M\" }}, times = 2 }}");
    refused(rates, &given, "design.control");
}

#[test]
fn whole_plots_are_factors_with_those_linked_to_them() {
    let with = |more: &str| {
        let text = FILE.replace("replicates = 5\n", &format!("replicates = 5\n{more}\n"));
        read_experiment(&text, "example.toml").map(|draft| draft.experiment)
    };
    let read = with("whole_plots = [\"clients\"]").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.whole_plots, [Factor::Connections, Factor::Clients]);
    for (more, word) in [
        ("whole_plots = [\"nagle\"]", "`nagle`"),
        ("whole_plots = [\"colour\"]", "colour"),
        (
            "whole_plots = [\"clients\"]\ncontrol = { levels = { socket_buffer = \"64KiB\" }, times = 2 }",
            "design.whole_plots",
        ),
    ] {
        let error = with(more).expect_err("refused").to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn fractions_are_of_two_levels_and_a_power_of_two_that_tells_them_apart() {
    let factors = "nagle = [true, false]\ndelayed_ack = [true, false]\nconnections = [1, 4]\nmessage_bytes = [100, 1460]";
    let read = |factors: &str, design: &str| {
        experiment(
            r#"kind = "stream""#,
            factors,
            &format!("{design}\nreplicates = 5"),
        )
    };
    let design = |runs: u32| format!("kind = \"fractional\"\nruns = {runs}");
    let read_well = read(factors, &design(8)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read_well.design, DesignKind::Fractional { runs: 8 });
    let refused = |factors: &str, design: &str, words: &[&str]| {
        let error = read(factors, design).expect_err("refused").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    for runs in [0, 2, 4, 7, 16, 64] {
        refused(factors, &design(runs), &["design.runs", "8"]);
    }
    refused(factors, "kind = \"fractional\"", &["design.runs", "absent"]);
    refused(
        factors,
        "kind = \"full\"\nruns = 8",
        &["design.runs", "left out"],
    );
    refused(
        &factors.replace("[1, 4]", "[1, 2, 4]"),
        &design(8),
        &["connections", "two levels"],
    );
    refused(
        "nagle = [true, false]\nconnections = [1, 4]",
        &design(4),
        &["three factors"],
    );
    let control = "\ncontrol = { levels = { nagle = true }, times = 2 }";
    refused(factors, &(design(8) + control), &["design.control"]);
    let baseline = "\nbaseline = { nagle = true }";
    refused(
        factors,
        &(design(8) + baseline),
        &["fractional design has no baseline"],
    );
}

#[test]
fn a_refinement_is_one_scale_that_rises_and_has_room_for_more_levels() {
    let read = |factors: &str, design: &str| experiment(r#"kind = "stream""#, factors, design);
    let buffers = "socket_buffer = [\"16KiB\", \"64KiB\", \"1MiB\"]";
    let design = "kind = \"refinement\"\nreplicates = 3\nlevels = 8\nresolution = \"10%\"";
    let found = read(buffers, design).unwrap_or_else(|error| panic!("{error}"));
    let refinement = found.refinement.expect("it is one");
    assert_eq!((refinement.levels, refinement.resolution), (8, 0.1));
    assert_eq!(found.search, None);
    let refused = |factors: &str, design: &str, key: &str| {
        let error = read(factors, design).expect_err("refused").to_string();
        assert!(error.contains(key), "{error}");
    };
    refused("socket_buffer = [\"64KiB\", \"16KiB\"]", design, "factors");
    refused("socket_buffer = [\"64KiB\", \"auto\"]", design, "factors");
    refused("nagle = [true, false]", design, "factors");
    refused(
        &format!("{buffers}\nnagle = [true, false]"),
        design,
        "factors",
    );
    refused(buffers, &design.replace("= 8", "= 3"), "design.levels");
    refused(buffers, &design.replace("levels = 8", ""), "design.levels");
    refused(buffers, &design.replace("= 3", "= 2"), "design.replicates");
    refused(buffers, &design.replace("10%", "0"), "design.resolution");
    refused(
        buffers,
        &format!("{design}\ncondition = \"loss < 1%\""),
        "design.condition",
    );
    refused(
        buffers,
        &format!("{design}\nwhole_plots = [\"socket_buffer\"]"),
        "design.whole_plots",
    );
    refused(
        buffers,
        "kind = \"full\"\nreplicates = 3\nlevels = 8",
        "design.levels",
    );
}

#[test]
fn a_latin_hypercube_has_as_many_levels_of_each_factor_and_enough_to_tell_them_apart() {
    let sizes = "message_bytes = [64, 512, 4096, 32768]";
    let connections = "connections = [1, 2, 4, 8]";
    let read = |factors: &str, more: &str| {
        experiment(
            r#"kind = "stream""#,
            factors,
            &format!("kind = \"latin-hypercube\"\nreplicates = 5\n{more}"),
        )
    };
    let both = format!("{sizes}\n{connections}");
    let found = read(&both, "").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.design, DesignKind::LatinHypercube);
    for (factors, more, key) in [
        (
            format!("{sizes}\nconnections = [1, 2, 4]"),
            "",
            "connections",
        ),
        (
            format!("{sizes}\nconnections = [8, 4, 2, 1]"),
            "",
            "connections",
        ),
        (
            format!("{sizes}\nconnections = [0, 1, 2, 3]"),
            "",
            "connections",
        ),
        (
            "message_bytes = [1, 2, 3]\nconnections = [1, 2, 3]".to_owned(),
            "",
            "4 or more",
        ),
        (format!("{sizes}\nnagle = [true, false]"), "", "nagle"),
        (
            both.clone(),
            "control = { levels = { connections = 1 }, times = 2 }",
            "design.control",
        ),
        (
            both.clone(),
            "whole_plots = [\"connections\"]",
            "design.whole_plots",
        ),
    ] {
        let error = read(&factors, more).expect_err("refused").to_string();
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn what_suffices_is_asked_of_scales_of_the_experiment() {
    let with = |more: &str| {
        let text = FILE.replace("replicates = 5\n", &format!("replicates = 5\n{more}\n"));
        read_experiment(&text, "example.toml").map(|draft| draft.experiment)
    };
    let read = with("suffices = [\"connections\"]").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.suffices, [Factor::Connections]);
    assert!(read.asks_what_suffices(Factor::Connections));
    // That of a socket buffer is always asked.
    assert!(with("").is_ok_and(|read| read.asks_what_suffices(Factor::SocketBuffer)));
    for (more, word) in [
        ("suffices = [\"nagle\"]", "`nagle`"),
        ("suffices = [\"colour\"]", "colour"),
    ] {
        let error = with(more).expect_err(more).to_string();
        assert!(
            error.contains("design.suffices") && error.contains(word),
            "{error}"
        );
        assert!(error.contains("line "), "{error}");
    }
}

#[test]
fn a_rate_is_a_share_of_the_link_up_to_all_of_it() {
    let read = |level: &str| {
        let text = FILE.replace("[factors]\n", &format!("[factors]\nrate = [\"{level}\"]\n"));
        let base = format!("baseline = {{ rate = \"{level}\", ");
        let text = text.replace("baseline = { ", &base);
        read_experiment(&text, "example.toml").map(|draft| draft.experiment)
    };
    let known = read("12.5%").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(known.levels(Factor::Rate), [Level::Ppm(125_000)]);
    for level in ["0%", "101%", "-1%", "half%"] {
        let error = read(level).expect_err(level).to_string();
        assert!(error.contains("factors.rate"), "{error}");
    }
}
