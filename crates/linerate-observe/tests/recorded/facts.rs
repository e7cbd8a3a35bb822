//! Facts: what a root says, with the unit, and why the rest is missing.

use linerate_model::host::FactValue;
use linerate_model::unit::Unit::{Bytes, Count};
use linerate_observe::facts;

use crate::{config_of, root};

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
            ("kernel.release", text("6.18.44")),
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
            (
                "virtualisation.hides",
                text(
                    "hardware counters: cycles and cache misses are not counted; clock frequency; \
                     temperature and throttling; NUMA nodes, if there are several",
                ),
            ),
            ("virtualisation.devices", missing("No such file")),
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
            ("irq.38.link", text("eth0")),
            ("irq.38.action", text("virtio2-input.0")),
            ("irq.38.queue", text("rx:0")),
            ("irq.38.cpus", text("0-1")),
            ("irq.38.effective_cpus", text("1")),
            ("irq.38.node", missing("no NUMA node")),
            ("irq.37.queue", missing("contains no queue")),
            ("irq.39.queue", text("tx:0")),
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
                missing("neither a CPU flag nor firmware reports one"),
            ),
            ("limit.nofile", missing("no limit of open files")),
            ("sysctl.net.core.rmem_max", missing("empty")),
            ("sysctl.net.core.wmem_max", missing("`-` is not a number")),
            ("sysctl.net.ipv4.tcp_sack", missing("No such file")),
        ],
    );
}

fn check_virtualisation(cpuinfo: &str, firmware: &[(&str, &str)], expect: &FactValue) {
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut files = vec![("proc/cpuinfo", cpuinfo)];
    files.extend(firmware);
    for (file, text) in files {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    let snapshot = facts(&config_of(root.path(), &[]));
    assert_eq!(snapshot.value("virtualisation"), Some(expect), "{cpuinfo}");
}

#[test]
fn virtualisation_is_what_the_signs_say() {
    let product = ("sys/class/dmi/id/product_name", "Standard PC\n");
    let xen = ("sys/hypervisor/type", "xen\n");
    let flags = "flags\t\t: fpu vme\n";
    let virtual_flags = "flags\t\t: fpu hypervisor vme\n";
    check_virtualisation(flags, &[product], &text("none"));
    check_virtualisation(
        virtual_flags,
        &[product],
        &text("hypervisor flag of the CPU; product Standard PC"),
    );
    check_virtualisation(flags, &[xen], &text("hypervisor xen"));
}

#[test]
fn facts_are_sorted_by_name() {
    let snapshot = facts(&config_of(&root("recorded-2-cpus"), &[]));
    assert!(snapshot.facts.is_sorted_by(|a, b| a.name < b.name));
}
