//! Observers and facts on recorded and made roots of procfs and sysfs.
//!
//! Each root holds what it should come to: `samples.txt`, worked out from its files by other means
//! than this crate and in ticks of 10 ms, and the facts and availabilities are in the cases here.
//! Devices are not in a root, since they are asked by netlink.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::host::{Availability, FactValue};
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use linerate_observe::{ObserveConfig, Observer, facts, observers};

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/roots")
        .join(name)
}

fn config_of(root: &Path, threads: &[(&str, i32)]) -> ObserveConfig {
    ObserveConfig {
        proc_root: root.join("proc"),
        sys_root: root.join("sys"),
        lab: false,
        host_wide: true,
        threads: threads
            .iter()
            .map(|(name, tid)| ((*name).to_owned(), *tid))
            .collect(),
    }
}

fn observers_of_files(config: &ObserveConfig) -> Vec<Box<dyn Observer>> {
    let mut all = observers(config);
    all.retain(|observer| observer.availability().observer != "link");
    all
}

fn sample(observers: &mut [Box<dyn Observer>]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for observer in observers {
        observer.sample(&mut samples);
    }
    samples
}

/// What an availability should be: the observer, and part of what it misses and notes.
type Expected<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

fn agrees(text: &Option<String>, part: Option<&str>) -> bool {
    match (text, part) {
        (Some(text), Some(part)) => text.contains(part),
        (None, None) => true,
        _ => false,
    }
}

fn check_availability(found: &[Availability], expect: &[Expected<'_>]) {
    assert_eq!(found.len(), expect.len());
    for (found, (observer, missing, note)) in found.iter().zip(expect) {
        assert_eq!(found.observer, *observer);
        assert!(agrees(&found.missing, *missing), "{found:?}");
        assert!(agrees(&found.note, *note), "{found:?}");
    }
}

fn check(name: &str, threads: &[(&str, i32)], availability: &[Expected<'_>]) {
    let root = root(name);
    let mut observers = observers_of_files(&config_of(&root, threads));
    let samples = sample(&mut observers);
    let mut lines: Vec<_> = samples
        .iter()
        .map(|s| format!("{} {} {}", s.subject, s.metric.name(), s.value))
        .collect();
    lines.sort();
    let expect = fs::read_to_string(root.join("samples.txt")).expect("samples.txt of the root");
    for (line, expect) in lines.iter().zip(expect.lines()) {
        assert_eq!(line, expect, "{name}");
    }
    assert_eq!(lines.len(), expect.lines().count(), "{name}");

    let found: Vec<_> = observers.iter().map(|o| o.availability()).collect();
    check_availability(&found, availability);
}

const SOFTIRQ: Option<&str> = Some("soft interrupt time is sampled at the tick");

#[test]
fn a_recorded_host_of_two_cpus() {
    check(
        "recorded-2-cpus",
        &[("main", 4242)],
        &[
            ("cpu", None, SOFTIRQ),
            ("threads", None, None),
            ("netstat", None, None),
        ],
    );
}

#[test]
fn a_made_host_of_64_cpus() {
    let threads: Vec<_> = (0..8).map(|i| (format!("worker-{i}"), 1000 + i)).collect();
    let threads: Vec<_> = threads.iter().map(|(n, tid)| (n.as_str(), *tid)).collect();
    check(
        "made-64-cpus",
        &threads,
        &[
            ("cpu", None, SOFTIRQ),
            ("threads", None, None),
            ("netstat", None, None),
        ],
    );
}

#[test]
fn a_made_host_with_an_offline_cpu_and_missing_files() {
    check(
        "made-offline-arm",
        &[("main", 7), ("gone", 8)],
        &[
            ("cpu", None, SOFTIRQ),
            ("threads", None, Some("thread gone: ")),
            ("netstat", None, Some("netstat: No such file")),
        ],
    );
}

#[test]
fn odd_and_cut_files_give_what_is_certain() {
    check(
        "made-odd",
        &[("worker-0", 5), ("worker-1", 6)],
        &[
            ("cpu", None, Some("stat: 1 lines not understood")),
            ("threads", None, Some("task/5/stat: not understood")),
            ("netstat", None, Some("snmp: no OutSegs, InErrs, OutRsts")),
        ],
    );
}

#[test]
fn a_thread_is_found_by_the_id_that_it_sees() {
    check(
        "made-outer-pid-namespace",
        &[("main", 7)],
        &[
            ("cpu", Some("stat: No such file"), SOFTIRQ),
            ("threads", None, None),
            ("netstat", Some("snmp: No such file"), None),
        ],
    );
}

#[test]
fn an_empty_root_gives_reasons_and_no_samples() {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let config = config_of(empty.path(), &[]);
    let mut observers = observers_of_files(&config);
    assert_eq!(sample(&mut observers), []);
    let found: Vec<_> = observers.iter().map(|o| o.availability()).collect();
    check_availability(
        &found,
        &[
            ("cpu", Some("No such file"), SOFTIRQ),
            ("threads", Some("another pid namespace"), None),
            ("netstat", Some("No such file"), None),
        ],
    );
    for fact in facts(&config).facts {
        let of_the_root = !fact.name.starts_with("link.");
        let missing = matches!(fact.value, FactValue::Missing(_));
        assert!(missing || !of_the_root, "{fact:?}");
    }
}

#[test]
fn a_caller_without_a_token_sees_our_threads_only() {
    let config = ObserveConfig {
        host_wide: false,
        ..config_of(&root("recorded-2-cpus"), &[("main", 4242)])
    };
    let mut observers = observers(&config);
    let found: Vec<_> = observers.iter().map(|o| o.availability()).collect();
    let token = Some("needs the agent's token");
    check_availability(
        &found,
        &[
            ("cpu", token, None),
            ("threads", None, None),
            ("netstat", token, None),
            ("link", token, None),
        ],
    );
    let samples = sample(&mut observers);
    assert_eq!(samples.len(), 5);
    let ours = Subject::Thread("main".to_owned());
    assert!(samples.iter().all(|sample| sample.subject == ours));
    let snapshot = facts(&config);
    assert!(snapshot.value("kernel.release").is_some());
    let refused = FactValue::Missing("needs the agent's token".to_owned());
    assert!(snapshot.facts.iter().all(|fact| fact.value == refused));
}

#[test]
fn a_lab_host_says_that_its_cpus_are_shared() {
    let config = ObserveConfig {
        lab: true,
        ..config_of(&root("recorded-2-cpus"), &[])
    };
    let found = linerate_observe::availabilities(&config);
    assert_eq!(found.len(), 4);
    let note = found[0].note.as_deref().unwrap_or_default();
    assert!(note.contains("shared by every host of the lab"), "{note}");
}

/// A root of one file, which a test writes again between readings.
struct Changing(tempfile::TempDir);

impl Changing {
    fn new(stat: &str) -> Self {
        let changing = Self(tempfile::tempdir().expect("a temporary directory"));
        fs::create_dir(changing.0.path().join("proc")).expect("a directory");
        changing.write(stat);
        changing
    }

    fn write(&self, stat: &str) {
        fs::write(self.0.path().join("proc/stat"), stat).expect("a file");
    }

    fn cpu_observer(&self) -> Vec<Box<dyn Observer>> {
        let mut all = observers(&config_of(self.0.path(), &[]));
        all.retain(|observer| observer.availability().observer == "cpu");
        all
    }
}

fn idle_ns(samples: &[Sample]) -> Vec<i64> {
    let idle = samples.iter().filter(|s| s.metric == Metric::CpuIdle);
    idle.map(|sample| sample.value).collect()
}

#[test]
fn counters_that_go_backwards_are_stored_as_read() {
    let changing = Changing::new("cpu0 1 2 3 500 5 6 7 8 9 0\n");
    let mut observer = changing.cpu_observer();
    assert_eq!(idle_ns(&sample(&mut observer)), [5_000_000_000]);
    changing.write("cpu0 1 2 3 499 5 6 7 8 9 0\n");
    assert_eq!(idle_ns(&sample(&mut observer)), [4_990_000_000]);
    assert_eq!(observer[0].availability().missing, None);
}

#[test]
fn a_reading_that_fails_in_the_middle_is_absent_and_told() {
    let changing = Changing::new("cpu0 1 2 3 4\ncpu1 1 2 3 4\n");
    let mut observer = changing.cpu_observer();
    assert_eq!(idle_ns(&sample(&mut observer)).len(), 2);
    changing.write("");
    assert_eq!(sample(&mut observer), []);
    changing.write("cpu0 1 2 3 4\n");
    assert_eq!(idle_ns(&sample(&mut observer)).len(), 1);

    let availability = observer[0].availability();
    assert_eq!(availability.missing, None);
    let note = availability.note.unwrap_or_default();
    assert!(note.contains("1 of 3 readings were not complete"), "{note}");
    assert!(note.contains("no CPU in it"), "{note}");
}

#[test]
fn a_file_longer_than_the_first_buffer_is_read_whole() {
    let long: String = (0..2000).map(|n| format!("cpu{n} {n} 0 0 {n}\n")).collect();
    assert!(long.len() > 32 << 10);
    let changing = Changing::new(&long);
    let idle: Vec<i64> = (0..2000).map(|n| n * 10_000_000).collect();
    assert_eq!(idle_ns(&sample(&mut changing.cpu_observer())), idle);
}

fn check_facts(name: &str, expect: &[(&str, FactValue)]) {
    let snapshot = facts(&config_of(&root(name), &[]));
    for (fact, value) in expect {
        match (snapshot.value(fact), value) {
            (Some(FactValue::Missing(reason)), FactValue::Missing(part)) => {
                assert!(reason.contains(part), "{name}: {fact}: {reason}");
            }
            (found, value) => assert_eq!(found, Some(value), "{name}: {fact}"),
        }
    }
}

use linerate_model::unit::Unit::{Bytes, Count};

fn text(text: &str) -> FactValue {
    FactValue::Text(text.to_owned())
}

fn missing(part: &str) -> FactValue {
    FactValue::Missing(part.to_owned())
}

#[test]
fn facts_of_a_recorded_host() {
    check_facts(
        "recorded-2-cpus",
        &[
            ("kernel.release", text("6.18.44-fc-v657")),
            ("host.name", text("recorded")),
            ("clocksource", text("tsc")),
            ("cpu.model", text("AMD EPYC")),
            ("cpu.mhz", FactValue::Number(2596.122, Count)),
            ("cpu.online", FactValue::Number(2.0, Count)),
            ("cpu.l1d_bytes", FactValue::Number(49_152.0, Bytes)),
            ("cpu.l2_bytes", FactValue::Number(1_048_576.0, Bytes)),
            ("cpu.l3_bytes", FactValue::Number(33_554_432.0, Bytes)),
            ("numa.nodes", FactValue::Number(1.0, Count)),
            (
                "memory.total_bytes",
                FactValue::Number(25_276_510_208.0, Bytes),
            ),
            ("virtualisation", text("hypervisor flag of the CPU")),
            ("limit.nofile", FactValue::Number(20_000.0, Count)),
            (
                "sysctl.net.core.rmem_max",
                FactValue::Number(4_194_304.0, Bytes),
            ),
            ("sysctl.net.ipv4.tcp_rmem", text("4096 131072 33554432")),
            ("sysctl.net.ipv4.tcp_congestion_control", text("bbr")),
            (
                "sysctl.net.ipv4.tcp_available_congestion_control",
                text("reno bbr cubic"),
            ),
            ("sysctl.net.ipv4.tcp_timestamps", text("1")),
        ],
    );
}

#[test]
fn facts_of_another_architecture() {
    check_facts(
        "made-offline-arm",
        &[
            ("cpu.model", text("implementer 0x41 part 0xd0c")),
            ("cpu.mhz", FactValue::Number(3000.0, Count)),
            ("cpu.online", FactValue::Number(3.0, Count)),
            ("cpu.l3_bytes", missing("no cache of level 3")),
            (
                "virtualisation",
                text("product Example Systems PowerServe 9000"),
            ),
            ("limit.nofile", text("unlimited")),
            ("memory.total_bytes", missing("No such file")),
        ],
    );
}

#[test]
fn facts_of_odd_files_are_missing_with_the_reason() {
    check_facts(
        "made-odd",
        &[
            ("kernel.release", text("6.1.0")),
            ("cpu.model", missing("no `model name`")),
            ("cpu.online", missing("`0-` is not a list of numbers")),
            ("memory.total_bytes", missing("no MemTotal in kB")),
            (
                "virtualisation",
                missing("neither a CPU flag nor firmware tells"),
            ),
            ("limit.nofile", missing("no limit of open files")),
            ("sysctl.net.core.rmem_max", missing("empty")),
            ("sysctl.net.core.wmem_max", missing("`-` is not a number")),
            ("sysctl.net.ipv4.tcp_sack", missing("No such file")),
        ],
    );
}

#[test]
fn facts_are_sorted_by_name() {
    let snapshot = facts(&config_of(&root("recorded-2-cpus"), &[]));
    assert!(snapshot.facts.is_sorted_by(|a, b| a.name < b.name));
}
