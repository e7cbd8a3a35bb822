//! What the documents say is held against the program: the generated references are those of this
//! code, links lead somewhere, and the README's commands are the ones that CI runs.
//!
//! `LINERATE_REGENERATE=1 cargo test -p linerate --test reference` writes the references anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use linerate_model::metric::{Kind, Metric};
use linerate_model::parameter::PARAMETERS;
use linerate_model::unit::Unit;

/// Writes the references instead of comparing them.
const REGENERATE: &str = "LINERATE_REGENERATE";

fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors()
        .nth(2)
        .expect("the crate lies two folders below the workspace")
        .to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Holds the file at `path` against what it should be.
fn hold(path: &str, expected: &str) {
    if std::env::var_os(REGENERATE).is_some_and(|value| value == "1") {
        let path = root().join(path);
        std::fs::write(&path, expected).expect("the reference can be written");
        return;
    }
    let found = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    if found == expected {
        return;
    }
    let differs = |(at, (found, expected)): (usize, (&str, &str))| {
        (found != expected).then(|| format!("line {}:\n  {found}\n  {expected}", at + 1))
    };
    let lines = found.lines().zip(expected.lines()).enumerate();
    let first = lines.into_iter().find_map(differs);
    panic!(
        "{path} is not what the code says; write it anew with\n  \
         {REGENERATE}=1 cargo test -p linerate --test reference\n{}",
        first.unwrap_or_else(|| "one is longer than the other".to_owned())
    );
}

/// Returns the unit of a stored value in words.
fn unit_words(unit: Unit) -> &'static str {
    match unit {
        Unit::BitsPerSecond => "bits per second",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "nanoseconds",
        Unit::PerSecond => "per second",
        Unit::Count => "count",
        Unit::Ratio => "ratio",
        Unit::Percent => "percent",
        Unit::Cpus => "CPUs",
        Unit::None => "none",
    }
}

/// Returns the heading of the part of the catalogue that a metric belongs to.
fn family(metric: Metric) -> (&'static str, &'static str) {
    let prefix = metric.name().split('_').next().unwrap_or_default();
    match prefix {
        "app" => (
            "Flows, as the generator counts them",
            "`flow:N:client`, `flow:N:server`. Counted beside the system call; nothing is \
             estimated.",
        ),
        "tcp" if metric.name().starts_with("tcp_host_") => (
            "All TCP sockets of a host, by sock_diag",
            "`host`: the network namespace. What a socket counted stays in the totals when it \
             ends, by the kernel's events of sockets that end. Data segments per ACK are \
             `tcp_host_data_segs_out` by `tcp_host_acks_in`, bytes per segment \
             `tcp_host_bytes_sent` by `tcp_host_data_segs_out`. Where the kernel takes more than \
             1 ms for its list of sockets, it is asked less often than every 100 ms, and the \
             observer says so.",
        ),
        "memory" | "pressure" => (
            "Memory and pressure, from `/proc/meminfo`, `/proc/net/sockstat` and `/proc/pressure`",
            "`host`: the whole machine, also in a network namespace.",
        ),
        "cgroup" => (
            "The control group that limits CPU time, from `cpu.stat`",
            "`host`: the group of the agent's process or one around it, that with the tightest quota.",
        ),
        "numa" => (
            "NUMA nodes, from `/sys/devices/system/node`",
            "`node:N`. A page is that of the machine, 4 KiB as a rule.",
        ),
        "conntrack" => (
            "Connection tracking, from `/proc/sys/net/netfilter` and `/proc/net/stat/nf_conntrack`",
            "`host`: the network namespace.",
        ),
        "thermal" => (
            "Frequency and temperature, from `/sys/devices/system/cpu` and `/sys/class/thermal`",
            "`cpu:N`, and `host` for the zone. Absent where a hypervisor hides them.",
        ),
        "udp" => (
            "All UDP sockets of a host, by sock_diag",
            "`host`: the network namespace.",
        ),
        "tcp" => (
            "Flows, from TCP_INFO",
            "`flow:N:client`, `flow:N:server`. Read with `getsockopt(TCP_INFO)` on both ends at \
             every sample; the names after the kernel's are those of `include/uapi/linux/tcp.h`.",
        ),
        "cpu" => (
            "CPUs, from `/proc/stat`",
            "`cpu:N`. The kernel counts ticks; they are stored as nanoseconds. Hosts that are \
             namespaces of one machine all show that machine's CPUs.",
        ),
        "thread" => (
            "The generator's own threads, from `/proc/self/task`",
            "`thread:NAME`. This is how a saturated generator is noticed.",
        ),
        "link" => (
            "Network devices, by netlink",
            "`link:NAME`, from `IFLA_STATS64`.",
        ),
        "softnet" => (
            "The queues between devices and protocols, from `/proc/net/softnet_stat`",
            "`cpu:N`. Of the whole machine, so hosts that are namespaces of one machine all show \
             the same.",
        ),
        "softirq" | "hardirq" => (
            "Time in interrupts, measured",
            "`cpu:N`, by programs on the tracepoints of their entries and exits; with `--irq-time` \
             only. Of the whole machine.",
        ),
        "perf" => (
            "Hardware counters",
            "`cpu:N`, or `thread:NAME` where the CPUs' may not be read; absent on machines without, \
             as most virtual ones.",
        ),
        "profile" => (
            "Where the CPUs were found",
            "`host`, from a clock that looks 999 times a second of each CPU's time; with `--profile` \
             only.",
        ),
        "queue" => (
            "Queues of network devices",
            "`queue:NAME:rx:N`, `queue:NAME:tx:N`, by netdev-genl where the driver tells the kernel, \
             else by the driver's own statistics (`ethtool -S`).",
        ),
        "irq" => (
            "Interrupts, from `/proc/interrupts`",
            "`irq:N` for those of network devices, `cpu:N`, `host`. Of the whole machine; the facts \
             `irq.N.…` say which device and queue an interrupt belongs to.",
        ),
        "qdisc" => (
            "Queueing disciplines, by netlink",
            "`qdisc:NAME:HANDLE`, from `TCA_STATS2`; one without a handle is named by the class \
             that it hangs at (`qdisc:eth0:0:1`), the root by `0:`. A parent counts what its \
             children count once more.",
        ),
        _ => (
            "Protocol counters, from `/proc/net/snmp` and `/proc/net/netstat`",
            "`host`: one set for each network namespace. The names after the kernel's are those of \
             the two files.",
        ),
    }
}

fn metrics_page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         Every sample in a bundle has one of these names in its `metric` column. A name never \
         changes once\nit is released. This page is generated from the catalogue in\n\
         [`crates/linerate-model/src/metric.rs`](../../crates/linerate-model/src/metric.rs), and a \
         test holds it\nagainst the code.\n\n\
         A **counter** grows from an arbitrary start, so only differences of two readings mean \
         something: the\nvalue over the measured window is that of the first reading at or after its \
         end minus that of the\nfirst reading at or after its begin. A **gauge** is a value at its \
         instant.\n",
    );
    let mut heading = "";
    for &metric in Metric::ALL {
        let (family, subject) = family(metric);
        if family != heading {
            heading = family;
            let _ = write!(
                page,
                "\n## {family}\n\nSubject: {subject}\n\n| metric | kind | unit | meaning |\n|---|---|---|---|\n"
            );
        }
        let kind = match metric.kind() {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let (name, unit, help) = (metric.name(), unit_words(metric.unit()), metric.help());
        let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {help} |");
    }
    page
}

#[test]
fn metrics_are_those_of_the_catalogue() {
    let mut seen = BTreeSet::new();
    let mut last = "";
    for &metric in Metric::ALL {
        let (family, _) = family(metric);
        assert!(
            family == last || seen.insert(family),
            "the catalogue returns to \u{201c}{family}\u{201d} with {}",
            metric.name()
        );
        last = family;
    }
    hold("docs/reference/metrics.md", &metrics_page());
}

/// Returns the words between backticks in `text`.
fn ticked(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn keys_of_a_workload_are_those_of_the_catalogue() {
    let page = read("docs/reference/experiment.md");
    let between = |from: &str, to: &str| {
        let after = page.split_once(from).map_or("", |(_, after)| after);
        after.split_once(to).map_or("", |(text, _)| text).to_owned()
    };
    let keys = || PARAMETERS.iter().filter(|parameter| parameter.is_key());
    let table = between("## `[workload]`", "\n## ");
    let rows = table.lines().filter_map(|row| row.strip_prefix("| `"));
    let told: BTreeSet<&str> = rows
        .filter_map(|row| row.split(" |").next())
        .flat_map(|names| names.split("`, `"))
        .map(|name| name.trim_end_matches('`'))
        .collect();
    let known = keys().map(|parameter| parameter.key).chain(["kind"]);
    assert_eq!(told, known.collect(), "the table of [workload]");
    let fixed = between("Every key of `[workload]` but ", "can be a factor");
    let known = keys().filter(|parameter| parameter.factor.is_none());
    let known = known.map(|parameter| parameter.key).chain(["kind"]);
    assert_eq!(ticked(&fixed), known.collect(), "what can be no factor");
}

#[test]
fn the_api_document_is_that_of_the_agent() {
    const PATH: &str = "docs/reference/openapi.json";
    let document = linerate_agent::api::openapi::document();
    // Its layout is nobody's business: compared as a value.
    let found = std::fs::read_to_string(root().join(PATH)).unwrap_or_default();
    if serde_json::from_str(&found).ok() == Some(document.clone()) {
        return;
    }
    let mut text = serde_json::to_string_pretty(&document).expect("a JSON value");
    text.push('\n');
    hold(PATH, &text);
}

/// Returns every Markdown file of the project.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    let top = std::fs::read_dir(root()).expect("the workspace");
    pages.extend(top.map(|entry| entry.expect("an entry").path()));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of documents") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                pages.push(path);
            }
        }
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// Returns the targets of the links and pictures in `text`, code blocks left out.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|after| after.split(')').next())
        .map(str::to_owned)
        .collect()
}

/// Returns the identifiers that headings of `text` get in GitHub's dialect.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words
                .chars()
                .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
            kept.map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut faults = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for link in links(&text) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap_or(&page).join(file),
            };
            if !target.exists() {
                faults.push(format!("{} → {link}", page.display()));
                continue;
            }
            let is_page = target
                .extension()
                .is_some_and(|extension| extension == "md");
            if is_page && !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).expect("a page");
                if !anchors(&text).contains(anchor) {
                    faults.push(format!("{} → {link}: no such heading", page.display()));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "links without target:\n{}",
        faults.join("\n")
    );
}

/// How a word between backticks begins that names a file of the project.
const PLACES: [&str; 5] = ["crates/", "docs/", "experiments/", "bench/", ".ci/"];

#[test]
fn files_that_pages_name_exist() {
    let mut faults = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        let prose: String = text.split("```").step_by(2).collect();
        for word in prose.split('`').skip(1).step_by(2) {
            let is_place = PLACES.iter().any(|place| word.starts_with(place));
            let is_plain = !word.contains([' ', '*', '{', '<', '…', 'N']);
            if is_place && is_plain && !root().join(word.split(':').next().unwrap_or(word)).exists()
            {
                faults.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "files that are not there:\n{}",
        faults.join("\n")
    );
}

/// The two commands with which the README begins.
const STUDY: &str = "cargo run --release -- study --lab";
const TEST: &str = "cargo test --workspace";

#[test]
fn ci_runs_the_commands_of_the_readme() {
    let (readme, ci) = (read("README.md"), read(".ci/run"));
    let in_blocks: Vec<&str> = readme
        .split("```")
        .skip(1)
        .step_by(2)
        .flat_map(str::lines)
        .map(|line| line.split('#').next().unwrap_or(line).trim())
        .collect();
    for command in [STUDY, TEST] {
        assert!(in_blocks.contains(&command), "README.md shows `{command}`");
        assert!(ci.contains(command), ".ci/run uses `{command}`");
    }
}
