//! Observers: each root holds in `samples.txt` what it must come to.
//!
//! Devices are not in a root, since they are asked by netlink.

use std::fs;

use linerate_model::host::{Availability, FactValue};
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use linerate_observe::{ObserveConfig, Observer, facts, observers};

use crate::{config_of, root};

/// Observers that ask the kernel by other ways than files: of a root they know nothing.
const OF_NO_FILES: [&str; 6] = ["link", "qdisc", "tcp", "udp", "perf", "queue"];

fn observers_of_files(config: &ObserveConfig) -> Vec<Box<dyn Observer>> {
    let mut all = observers(config);
    all.retain(|observer| !OF_NO_FILES.contains(&observer.availability().observer.as_str()));
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

const NO_INTERRUPTS: Option<&str> = Some("no network device with interrupts");
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
            ("softnet", None, None),
            ("irq", None, None),
            ("memory", None, None),
            ("cgroup", Some("no control group"), None),
            ("numa", None, Some("one node")),
            ("conntrack", None, None),
            ("thermal", Some("a hypervisor hides them"), None),
            ("hwmon", Some("a hypervisor hides them"), None),
            ("counters", None, Some("snmp6: No such file")),
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
            ("softnet", None, None),
            ("irq", Some("interrupts: No such file"), NO_INTERRUPTS),
            ("memory", Some("meminfo: No such file"), None),
            ("cgroup", Some("no control group"), None),
            ("numa", None, None),
            ("conntrack", Some("no connection tracking"), None),
            ("thermal", None, None),
            ("hwmon", None, None),
            ("counters", None, None),
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
            ("softnet", Some("softnet_stat: No such file"), None),
            ("irq", Some("interrupts: No such file"), NO_INTERRUPTS),
            ("memory", Some("No such file"), None),
            ("cgroup", Some("no control group"), None),
            ("numa", Some("no node"), None),
            ("conntrack", Some("no connection tracking"), None),
            ("thermal", Some("a hypervisor hides them"), None),
            ("hwmon", Some("a hypervisor hides them"), None),
            ("counters", None, Some("netstat: No such file")),
        ],
    );
}

#[test]
fn odd_and_cut_files_give_what_is_certain() {
    check(
        "made-odd",
        &[("worker-0", 5), ("worker-1", 6)],
        &[
            ("cpu", None, Some("stat: 1 line not understood")),
            ("threads", None, Some("task/5/stat: not understood")),
            (
                "netstat",
                None,
                Some("snmp: no OutSegs, InErrs, OutRsts, InDatagrams"),
            ),
            ("softnet", Some("softnet_stat: No such file"), None),
            ("irq", Some("interrupts: No such file"), NO_INTERRUPTS),
            (
                "memory",
                Some("meminfo: not understood"),
                Some("pressure/cpu: No such file"),
            ),
            ("cgroup", Some("no control group"), None),
            ("numa", Some("no node"), None),
            ("conntrack", Some("no connection tracking"), None),
            ("thermal", Some("a hypervisor hides them"), None),
            ("hwmon", Some("a hypervisor hides them"), None),
            ("counters", None, Some("snmp6: No such file")),
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
            ("softnet", Some("softnet_stat: No such file"), None),
            ("irq", Some("interrupts: No such file"), NO_INTERRUPTS),
            ("memory", Some("No such file"), None),
            ("cgroup", Some("no control group"), None),
            ("numa", Some("no node"), None),
            ("conntrack", Some("no connection tracking"), None),
            ("thermal", Some("a hypervisor hides them"), None),
            ("hwmon", Some("a hypervisor hides them"), None),
            ("counters", Some("snmp: No such file"), None),
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
            ("softnet", Some("No such file"), None),
            ("irq", Some("interrupts: No such file"), NO_INTERRUPTS),
            ("memory", Some("No such file"), None),
            ("cgroup", Some("no control group"), None),
            ("numa", Some("no node"), None),
            ("conntrack", Some("no connection tracking"), None),
            ("thermal", Some("a hypervisor hides them"), None),
            ("hwmon", Some("a hypervisor hides them"), None),
            ("counters", Some("No such file"), None),
        ],
    );
    for fact in facts(&config).facts {
        // Devices and their queues come by netlink, whatever the root.
        let by_netlink = ["link.", "queue."];
        let of_the_root = !by_netlink
            .iter()
            .any(|prefix| fact.name.starts_with(prefix));
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
            ("softnet", token, None),
            ("link", token, None),
            ("qdisc", token, None),
            ("tcp", token, None),
            ("udp", token, None),
            ("perf", token, None),
            ("irq", token, None),
            ("memory", token, None),
            ("cgroup", token, None),
            ("numa", token, None),
            ("conntrack", token, None),
            ("thermal", token, None),
            ("hwmon", token, None),
            ("queue", token, None),
            ("counters", token, None),
        ],
    );
    let samples = sample(&mut observers);
    assert_eq!(samples.len(), 6);
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
    assert!(note.contains("not complete: 1 of 3 readings"), "{note}");
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

/// Writes counters as `/proc/net/snmp`, `netstat` and `snmp6` show them.
fn write_counters(root: &std::path::Path, tcp: [i64; 3], dropped: u64, packets: u64) {
    let net = root.join("proc/self/net");
    fs::create_dir_all(&net).expect("a directory");
    let [sent_again, established, limit] = tcp;
    let files = [
        (
            "snmp",
            format!(
                "Tcp: MaxConn RetransSegs CurrEstab\nTcp: {limit} {sent_again} {established}\n"
            ),
        ),
        (
            "netstat",
            format!("TcpExt: TCPRcvQDrop\nTcpExt: {dropped}\n"),
        ),
        ("snmp6", format!("Ip6InReceives {packets}\n")),
    ];
    for (name, text) in files {
        fs::write(net.join(name), text).expect("a file");
    }
}

#[test]
fn protocol_counters_that_moved_between_the_edges_are_told_by_name() {
    let root = tempfile::tempdir().expect("a temporary directory");
    write_counters(root.path(), [3, 5, -1], 0, 10);
    let mut all = observers(&config_of(root.path(), &[]));
    all.retain(|observer| observer.availability().observer == "counters");
    let [observer] = all.as_mut_slice() else {
        panic!("one observer");
    };
    let edge = |observer: &mut Box<dyn Observer>| {
        let mut samples = Vec::new();
        observer.sample_edge(&mut samples);
        let of = |s: &Sample| (s.subject.to_string(), s.at_ns, s.value);
        assert!(samples.iter().all(|s| s.metric == Metric::ProtocolCounter));
        samples.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(edge(observer), [], "the begin is kept until the end");
    write_counters(root.path(), [9, 4, -1], 0, 10);
    let mut between = Vec::new();
    observer.sample(&mut between);
    assert_eq!(between, [], "nothing is read between the edges");
    write_counters(root.path(), [10, 2, -1], 0, 25);
    let moved = edge(observer);
    let values: Vec<_> = moved.iter().map(|(name, _, at)| (&**name, *at)).collect();
    assert_eq!(
        values,
        [
            ("counter:Ip6InReceives", 10),
            ("counter:Ip6InReceives", 25),
            ("counter:Tcp.CurrEstab", 5),
            ("counter:Tcp.CurrEstab", 2),
            ("counter:Tcp.RetransSegs", 3),
            ("counter:Tcp.RetransSegs", 10),
        ]
    );
    let instants: Vec<u64> = moved.iter().map(|(_, at_ns, _)| *at_ns).collect();
    assert!(instants[0] < instants[1]);
    assert!(instants.chunks(2).all(|pair| pair == &instants[..2]));
    assert_eq!(edge(observer), [], "nothing moved since");
}
