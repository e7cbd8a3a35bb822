//! What the documents say is held against the program: the generated references are those of this
//! code, links lead somewhere, and the README's commands are the ones that CI runs.
//!
//! `LINERATE_REGENERATE=1 cargo test -p linerate --test documents reference` writes the references anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use linerate_model::metric::{Kind, Metric};
use linerate_model::parameter::{Gives, PARAMETERS};
use linerate_model::unit::Unit;

use crate::{linerate, output, root};

/// Writes the references instead of comparing them.
const REGENERATE: &str = "LINERATE_REGENERATE";

pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the pages that users read, by their paths in the repository.
pub fn pages_of_users() -> Vec<String> {
    let mut pages = Vec::new();
    for folder in ["docs/guide", "docs/guide/limiters"] {
        let guide = std::fs::read_dir(root().join(folder)).expect("the guide");
        let names = guide.map(|entry| entry.expect("an entry").file_name());
        pages.extend(names.map(|name| format!("{folder}/{}", name.to_string_lossy())));
    }
    pages.retain(|page| page.ends_with(".md"));
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

/// Holds the file at `path` against what it should be, by the tests of that name.
pub fn hold(path: &str, expected: &str, tests: &str) {
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
         {REGENERATE}=1 cargo test -p linerate --test documents {tests}\n{}",
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
            "`flow:N:client`, `flow:N:server`. Counted next to the system call; nothing is \
             estimated.",
        ),
        "tcp" if metric.name().starts_with("tcp_host_") => (
            "All TCP sockets of a host, by sock_diag",
            "`host`: the network namespace. What a socket counted stays in the totals when it \
             ends, by the kernel's events of sockets that end. Data segments per ACK are \
             `tcp_host_data_segs_out` by `tcp_host_acks_in`, bytes per segment \
             `tcp_host_bytes_sent` by `tcp_host_data_segs_out`. Where the kernel takes more than \
             1 ms for its list of sockets, the list is read less often than every 100 ms, and the \
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
             every sample; the names after the kernel's are those of `include/uapi/linux/tcp.h`. Of MPTCP \
             they are the first subflow's, so counters are absent where there are more, but for the bytes \
             received and acknowledged, which MPTCP counts itself.",
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
            "`host`, from samples of each CPU, 999 per second; with `--profile` only.",
        ),
        "queue" => (
            "Queues of network devices",
            "`queue:NAME:rx:N`, `queue:NAME:tx:N`, by netdev-genl where the driver reports them, \
             else by the driver's own statistics (`ethtool -S`).",
        ),
        "irq" => (
            "Interrupts, from `/proc/interrupts`",
            "`irq:N` for those of network devices, `cpu:N`, `host`. Of the whole machine; the facts \
             `irq.N.…` say which device and queue an interrupt belongs to.",
        ),
        "qdisc" => (
            "Qdiscs, by netlink",
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
         end minus that of the\nfirst reading at or after its start. A **gauge** is a value at its \
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
    hold("docs/reference/metrics.md", &metrics_page(), "reference");
}

/// Returns a table cell's text without what would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn responses_page() -> String {
    let mut page = String::from(
        "# Responses\n\n\
         What a trial came to: the keys of `trials[].responses` in `linerate run -J`, the column `response` \
         of\n`results.parquet`, and what an experiment may be about. A name ends in its unit. One that does not \
         apply\nto the traffic, or was not observed, is absent. Generated from \
         `crates/linerate-model/src/response.rs`.\n\n\
         | response | unit | meaning |\n|---|---|---|\n",
    );
    for (name, unit, title) in linerate_model::response::CATALOGUE {
        let (unit, title) = (unit_words(*unit), cell(title));
        let _ = writeln!(page, "| `{name}` | {unit} | {title} |");
    }
    page
}

#[test]
fn responses_are_those_of_the_catalogue() {
    hold(
        "docs/reference/responses.md",
        &responses_page(),
        "reference",
    );
}

fn counters_page() -> String {
    let mut page = String::from(
        "# Protocol counters\n\n\
         What the kernel's counters of IP, TCP and UDP mean, by the kernel's names (`nstat -az`), as reports \
         say it.\nAll others that changed are shown without a meaning. Counters of drops, errors or \
         retransmissions\ncome first. Generated from `crates/linerate-analyze/src/counters/known.tsv`.\n",
    );
    let mut heading = "";
    for counter in linerate_analyze::known_counters() {
        let of_it = if counter.trouble {
            "Drops, errors and retransmissions"
        } else {
            "All others"
        };
        if of_it != heading {
            heading = of_it;
            let _ = write!(page, "\n## {heading}\n\n| counter | counts |\n|---|---|\n");
        }
        let _ = writeln!(page, "| `{}` | {} |", counter.name, cell(counter.meaning));
    }
    page
}

#[test]
fn counters_are_those_that_are_known() {
    hold("docs/reference/counters.md", &counters_page(), "reference");
}

fn findings_page() -> String {
    let mut page = String::from(
        "# Findings\n\n\
         Every finding and caution that a report or `linerate run -J` may have (`findings[].id`, \
         `cautions[].id`),\nand every flag of a trial. An identifier begins with the experiment that it is \
         about, or with `run`;\ncautions of a host's counters have neither. `N` is a number, `HOST` a host. \
         Generated from\n`crates/linerate-analyze/src/diagnose/known.rs`, \
         `crates/linerate-model/src/limiter.rs` and `crates/linerate/tests/documents/flags.rs`.\n\n\
         ## What limits a number\n\n\
         One at the most for each cell. The whole rule, how to confirm it\nwithout linerate and what not to be fooled by: [what limits a \
         number](../guide/limiters/README.md).\n\n\
         | id | limiter | needs | what to do, measured by |\n|---|---|---|---|\n",
    );
    for (limiter, known) in linerate_analyze::known_limiters() {
        let (id, title) = (known.id, known.title);
        let guide = limiter.page().replace("docs/", "../");
        let (needs, action) = (cell(known.needs), cell(known.action));
        let measure = limiter.remedy().measure;
        let _ = writeln!(
            page,
            "| `EXPERIMENT/limiter/{id}` | [{title}]({guide}) | {needs} | {action}; \
             `{measure}` |"
        );
    }
    let mut table = |title: &str, about: &str, prefix: &str, all: &[linerate_analyze::Known]| {
        let _ = write!(
            page,
            "\n## {title}\n\n{about}\n\n| id | says | needs | what to do |\n|---|---|---|---|\n"
        );
        for known in all {
            let (title, needs, action) = (cell(known.title), cell(known.needs), cell(known.action));
            let needs = if Metric::ALL.iter().any(|metric| metric.name() == needs) {
                format!("growth of [`{needs}`](metrics.md) in a trial")
            } else {
                needs
            };
            let id = known.id;
            let _ = writeln!(page, "| `{prefix}{id}` | {title} | {needs} | {action} |");
        }
    };
    table(
        "Other findings",
        "A plateau's identifier ends in `/N`, an effect's in the name of the factor.",
        "EXPERIMENT/",
        linerate_analyze::known_findings(),
    );
    let cautions: Vec<_> = linerate_analyze::known_cautions().collect();
    table(
        "Cautions",
        "Reasons to trust a number less. Those about one host end in `/HOST`, those about a setting in `/N`. The \
         limiter\n`generator` is one, too: the number is then a lower bound.",
        "…caution/",
        &cautions,
    );
    page.push_str(
        "\n## Flags of a trial\n\n\
         What to know of a trial that counts all the same: `trials[].flags`, in words, with the numbers of \
         the trial.\n\n\
         | for example | needs | what to do |\n|---|---|---|\n",
    );
    for known in crate::flags::known() {
        let (words, needs, action) = (known.example.to_string(), known.needs, known.action);
        let _ = writeln!(page, "| {} | {needs} | {action} |", cell(&words));
    }
    page
}

#[test]
fn findings_are_those_of_the_catalogues() {
    hold("docs/reference/findings.md", &findings_page(), "reference");
}

/// A name that no code makes is no finding.
#[test]
fn every_caution_of_the_reference_is_made_somewhere() {
    let folder = root().join("crates/linerate-analyze/src/diagnose");
    let files = std::fs::read_dir(folder).expect("the folder of rules");
    let paths = files.map(|entry| entry.expect("an entry").path());
    let sources: String = paths
        .filter(|path| !path.ends_with("known.rs") && !path.ends_with("found.rs"))
        .map(|path| std::fs::read_to_string(path).expect("a source"))
        .collect();
    let known = include_str!("../../../linerate-analyze/src/diagnose/known.rs");
    let named = known.split("Caution::").skip(1);
    let names: Vec<&str> = named
        .filter_map(|rest| rest.split(".id()").next())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let made = format!("Caution::{name}");
        let mut uses = sources.split(&made).skip(1);
        let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
        assert!(uses.any(is_whole), "{name}");
    }
}

/// What a remedy tells to type is no usage error: nobody answers at that address.
#[test]
fn commands_of_remedies_are_understood() {
    for (limiter, _) in linerate_analyze::known_limiters() {
        let command = limiter.remedy().measure;
        let words = command.strip_prefix("linerate ").expect("one of ours");
        let words: Vec<&str> = words
            .split(' ')
            .map(|word| if word == "HOST" { "127.0.0.1:1" } else { word })
            .collect();
        let said = linerate(&words);
        let error = String::from_utf8_lossy(&said.stderr);
        let is_refused = said.status.code() == Some(1) && error.contains("127.0.0.1:1");
        assert!(is_refused, "{}: {error}", said.status);
    }
}

/// The subcommands, in the order of the help text, with those of `lab`.
const COMMANDS: [&str; 27] = [
    "",
    "study",
    "serve",
    "run",
    "watch",
    "plan",
    "report",
    "compare",
    "capacity",
    "explain",
    "trace",
    "fleet",
    "fleet check",
    "fleet run",
    "fleet sbatch",
    "lab",
    "lab up",
    "lab list",
    "lab exec",
    "lab down",
    "token",
    "token add",
    "token list",
    "token remove",
    "schema",
    "completions",
    "man",
];

fn cli_page() -> String {
    let mut page = String::from(
        "# The command line\n\n\
         The help texts, as the program prints them. `linerate man DIR` writes them as man pages; [one \
         measurement](../guide/run.md)\nhas flags by purpose, with examples.\n",
    );
    for command in COMMANDS {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = output(&words);
        let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        let wide = lines.iter().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{command} --help fits 80 columns");
        let name = format!("linerate {command}");
        let _ = write!(
            page,
            "\n## {}\n\n```text\n{}\n```\n",
            name.trim_end(),
            lines.join("\n")
        );
    }
    page
}

#[test]
fn the_command_line_is_that_of_the_help_texts() {
    let help = output(&["--help"]);
    for command in COMMANDS
        .iter()
        .filter(|command| !command.is_empty() && !command.contains(' '))
    {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command}: {help}"
        );
    }
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  ") && !line.starts_with("  help"));
    let count = COMMANDS
        .iter()
        .filter(|command| !command.is_empty() && !command.contains(' '))
        .count();
    // What a command does may go on in a second line.
    let listed = listed.filter(|line| !line.starts_with("   "));
    assert_eq!(listed.count(), count, "a new command: {help}");
    hold("docs/reference/cli.md", &cli_page(), "reference");
}

#[test]
fn each_command_has_a_man_page_with_all_that_belongs_there() {
    let folder = tempfile::tempdir().expect("the temporary directory can be written");
    let dir = folder.path().display().to_string();
    output(&["man", &dir]);
    for command in COMMANDS {
        let parts = std::iter::once("linerate").chain(command.split_whitespace());
        let page = format!("{}.1", parts.collect::<Vec<_>>().join("-"));
        let text = std::fs::read_to_string(folder.path().join(&page)).expect("it is written");
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXAMPLES",
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "SEE ALSO",
        ] {
            let heads = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
            let count = heads.iter().map(|head| text.matches(head.as_str()).count());
            assert_eq!(count.sum::<usize>(), 1, "{page}, {section}: {text}");
        }
        let (_, examples) = text.split_once(".SH EXAMPLES\n").expect("the section");
        let (examples, _) = examples.split_once(".SH").expect("one after it");
        let examples: Vec<&str> = examples
            .lines()
            .filter_map(|line| line.strip_prefix("\\fB"))
            .collect();
        assert!(!examples.is_empty(), "{page}");
        for example in examples {
            let plain = example.trim_end_matches("\\fR").replace("\\-", "-");
            for typed in plain.split("; ") {
                let typed = typed.split(" > ").next().expect("the command");
                // What follows `exec` is another program's.
                let words = typed.split_whitespace().skip(1);
                let words = words.take_while(|word| *word != "exec");
                // What is typed is read before the help is shown.
                output(&words.chain(["--help"]).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn shells_complete_each_command() {
    for shell in ["bash", "zsh", "fish"] {
        let text = output(&["completions", shell]);
        for command in COMMANDS {
            let name = command.split_whitespace().next_back().unwrap_or("linerate");
            assert!(text.contains(name), "{shell}: {name}");
        }
    }
    let text = output(&["completions", "bash"]);
    let bash = |words: &[&str]| {
        let said = Command::new("bash").args(words).output();
        let said = said.expect("bash is here");
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).expect("words")
    };
    bash(&["-n", "-c", &text]);
    // As bash asks: what can follow the program's name.
    let ask = "COMP_WORDS=(linerate ''); COMP_CWORD=1; _linerate linerate '' linerate; printf '%s\\n' ${COMPREPLY[@]}";
    let said = bash(&["-c", &format!("{text}\n{ask}")]);
    let said: Vec<&str> = said.lines().collect();
    for command in COMMANDS.iter().filter(|command| !command.contains(' ')) {
        assert!(
            command.is_empty() || said.contains(command),
            "{command}: {said:?}"
        );
    }
}

#[test]
fn every_limiter_has_its_page_and_its_place_in_the_order_of_the_rules() {
    let limiters = linerate_analyze::limiters();
    let index = read("docs/guide/limiters/README.md");
    let rows: Vec<String> = index
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("]("))
        .map(|line| line.split(" |").take(2).collect())
        .collect();
    let numbered = limiters.iter().zip(1..);
    let expected: Vec<String> = numbered
        .map(|(limiter, at)| format!("| {at} [{}]({}.md)", limiter.heading(), limiter.id()))
        .collect();
    assert_eq!(rows, expected);
    let parts = [
        "What it means",
        "Evidence",
        "Confirm",
        "Fix",
        "Do not be fooled",
    ];
    for limiter in &limiters {
        let page = read(&limiter.page());
        let (title, _) = page.split_once('\n').expect("a title");
        assert_eq!(title, format!("# {}", limiter.heading()));
        let sections = page.lines().filter_map(|line| line.strip_prefix("## "));
        assert_eq!(sections.collect::<Vec<_>>(), parts, "{title}");
        let (_, evidence) = page.split_once("## Evidence").expect("evidence");
        let (evidence, _) = evidence.split_once("## Confirm").expect("an end");
        assert!(
            evidence.contains(|letter: char| letter.is_ascii_digit()) || page.contains("half"),
            "{title}"
        );
        assert!(page.split_whitespace().count() < 300, "{title} is short");
    }
    let files = std::fs::read_dir(root().join("docs/guide/limiters")).expect("a folder");
    assert_eq!(
        files.count(),
        limiters.len() + 1,
        "no page without a limiter"
    );
}

#[test]
fn exit_codes_are_told_the_same_everywhere() {
    let help = output(&["--help"]);
    let (_, told) = help.split_once("Exit codes:").expect("exit codes");
    let codes = |text: &str| -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_ascii_digit());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let table = read("docs/guide/exit-codes.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let rows: Vec<String> = rows
        .filter_map(|row| row.split(" |").next())
        .filter(|code| code.parse::<u8>().is_ok())
        .map(str::to_owned)
        .collect();
    assert_eq!(codes(told), rows);
}

/// Commands in the blocks of pages for users; what is not of this program is passed over.
#[test]
fn flags_that_pages_show_exist() {
    let cli = cli_page();
    let mut faults = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        if !page.starts_with(root().join("docs/guide")) && page != root().join("README.md") {
            continue;
        }
        for line in text.split("```").skip(1).step_by(2).flat_map(str::lines) {
            let line = line.trim_start_matches("$ ");
            let Some(words) = line.strip_prefix("linerate ") else {
                continue;
            };
            let words = words.split('#').next().unwrap_or_default();
            let command = words.split_whitespace().next().unwrap_or_default();
            if command == "lab" || command.starts_with('-') {
                continue;
            }
            let Some(help) = cli.split(&format!("\n## linerate {command}\n")).nth(1) else {
                faults.push(format!("{}: linerate {command}", page.display()));
                continue;
            };
            let help = help.split("\n## ").next().unwrap_or_default();
            for flag in words
                .split_whitespace()
                .filter(|word| word.starts_with("--"))
            {
                let flag = flag.split('=').next().unwrap_or(flag);
                let known = help.split(|letter: char| !(letter.is_alphanumeric() || letter == '-'));
                if !known.clone().any(|word| word == flag) {
                    faults.push(format!("{}: {flag} in {line}", page.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "no such flag:\n{}", faults.join("\n"));
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
    for parameter in keys() {
        let key = format!("`{}`", parameter.key);
        let rows = table
            .lines()
            .map(|row| row.trim_start_matches("| ").split(" | "));
        let flags = rows.into_iter().find_map(|mut cells| {
            let is_own = cells
                .next()
                .is_some_and(|keys| keys.split(", ").any(|one| one == key));
            is_own.then(|| cells.next()).flatten()
        });
        let known = parameter.flags.iter().map(|flag| {
            let name = flag.name.split(' ').next().unwrap_or_default();
            match flag.gives {
                Gives::Word(word) => format!("`{name}` (`{word}`)"),
                Gives::Value | Gives::Part => format!("`{name}`"),
            }
        });
        let known: Vec<String> = known.collect();
        let none = if known.is_empty() { "–" } else { "" };
        assert_eq!(
            flags,
            Some(&*(known.join(", ") + none)),
            "the flag of {key}"
        );
    }
    let fixed = between("Every key of `[workload]` but ", "can be a factor");
    let known = keys()
        .filter(|parameter| parameter.factor.is_none())
        .map(|parameter| parameter.key)
        .chain(["kind"]);
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
    hold(PATH, &text, "reference");
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

/// Every row of the threat model names tests, each by its file and its function.
#[test]
fn the_threat_model_names_tests_that_exist() {
    let page = read("docs/reference/security.md");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter(|line| !line.ends_with("| tested by |"));
    let mut faults = Vec::new();
    let mut named = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let tests = cells.last().expect("a cell");
        let mut source = String::new();
        let before = named;
        for word in tests.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                source = read(word);
                continue;
            }
            named += 1;
            if !source.contains(&format!("fn {word}(")) {
                faults.push(format!("{}: no test {word}", cells[0]));
            }
        }
        if named == before {
            faults.push(format!("{}: no test is named", cells[0]));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(named > 40, "{named}");
}

/// The two commands with which the README begins.
const STUDY: &str = "cargo run --release -- study --lab";
const TEST: &str = "cargo test --workspace";

#[test]
fn ci_runs_the_commands_of_the_readme() {
    let (readme, ci) = (read("README.md"), read(".ci/run") + &read(".ci/steps"));
    let in_blocks: Vec<&str> = readme
        .split("```")
        .skip(1)
        .step_by(2)
        .flat_map(str::lines)
        .map(|line| line.split('#').next().unwrap_or(line).trim())
        .collect();
    for command in [STUDY, TEST] {
        assert!(in_blocks.contains(&command), "README.md shows `{command}`");
        assert!(ci.contains(command), ".ci/run or .ci/steps use `{command}`");
    }
}
