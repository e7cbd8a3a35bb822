//! ARCHITECTURE.md is held against the code: the graph of the crates, what a room may not touch,
//! where `unsafe` lives, that a noun has one definition and every file says what it is for.
//!
//! The table of crates in ARCHITECTURE.md is read as it stands there, so that nobody has to keep
//! two lists. A row whose notes say "later" is a room that does not exist yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::root;

/// The line before the table.
const TABLE: &str = "<!-- crates: read by crates/linerate/tests/documents/architecture.rs -->";
/// What the last column says of a crate that does not exist yet.
const LATER: &str = "later";

/// The room that tests of every other use, and nothing that users run.
const FOR_TESTS: &str = "linerate-truth";

/// Rooms that are functions of their arguments: no I/O, no clock, no environment.
const PURE: [&str; 6] = [
    "linerate-model",
    "linerate-plan",
    "linerate-analyze",
    "linerate-report",
    "linerate-compat",
    "linerate-trace",
];
/// What a pure room may not name. Addresses are values: `std::net::IpAddr` is allowed.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::time::Instant",
    "std::time::SystemTime",
    "Instant::now",
    "SystemTime::now",
];
/// The only names of `std::net` that are plain values.
const ADDRESSES: [&str; 6] = [
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "SocketAddr",
    "SocketAddrV4",
    "SocketAddrV6",
];
/// Crates that reach outside the process; a pure room may not depend on them.
const IMPURE_CRATES: [&str; 12] = [
    "axum",
    "getrandom",
    "hyper",
    "indicatif",
    "jiff",
    "libc",
    "netlink-sys",
    "nix",
    "signal-hook",
    "socket2",
    "tokio",
    "ureq",
];

/// One row of the table.
#[derive(Debug)]
struct Row {
    layer: u32,
    arrows: BTreeSet<String>,
    later: bool,
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata describes the workspace")
}

/// Returns the words between backticks.
fn code_words(text: &str) -> Vec<String> {
    let parts = text.split('`').enumerate();
    parts
        .filter(|(at, _)| at % 2 == 1)
        .map(|(_, word)| word.to_owned())
        .collect()
}

/// Reads the table of crates out of ARCHITECTURE.md.
fn table() -> BTreeMap<String, Row> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, after) = text.split_once(TABLE).expect("the mark before the table");
    let rows = after
        .trim_start()
        .lines()
        .take_while(|line| line.starts_with('|'));
    rows.skip(2)
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [layer, name, arrows, notes] = cells[..] else {
                panic!("four cells a row: {line}");
            };
            let names = code_words(name);
            let [name] = &names[..] else {
                panic!("one crate a row: {line}");
            };
            let row = Row {
                layer: layer.parse().unwrap_or_else(|_| panic!("a layer: {line}")),
                arrows: code_words(arrows).into_iter().collect(),
                later: notes.starts_with(LATER),
            };
            (name.clone(), row)
        })
        .collect()
}

/// Returns every crate of the workspace with those of ours that it depends on, by kind.
fn crates() -> BTreeMap<String, BTreeMap<&'static str, BTreeSet<String>>> {
    let metadata = metadata();
    let members = metadata.workspace_packages();
    let ours: BTreeSet<&str> = members
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    members
        .iter()
        .map(|package| {
            let mut kinds: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
            for dependency in &package.dependencies {
                if !ours.contains(dependency.name.as_str()) {
                    continue;
                }
                let kind = match dependency.kind {
                    DependencyKind::Normal => "normal",
                    _ => "test",
                };
                kinds
                    .entry(kind)
                    .or_default()
                    .insert(dependency.name.clone());
            }
            (package.name.to_string(), kinds)
        })
        .collect()
}

/// Returns every Rust file below `folder`, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns the sources of every crate of the workspace.
fn sources() -> Vec<PathBuf> {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    packages
        .iter()
        .flat_map(|package| {
            let folder = package.manifest_path.with_file_name("src");
            rust_files(folder.as_std_path())
        })
        .collect()
}

fn short(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.display().to_string()
}

/// Returns the lines of `text` that are code, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The same without the tests of a file, which stand at its end.
fn code_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut marks = text.match_indices("#[cfg(test)]\nmod ");
    // A file of tests is declared where others are.
    let begin = marks.find(|(at, mark)| {
        let line = text[at + mark.len()..].lines().next();
        line.is_some_and(|line| line.ends_with('{'))
    });
    code_lines(&text[..begin.map_or(text.len(), |(at, _)| at)])
}

/// Fails with all `faults` at once, one a line.
fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n  {}", faults.join("\n  "));
}

#[test]
fn the_graph_is_the_one_in_the_table() {
    let (table, crates) = (table(), crates());
    let none = BTreeSet::new();
    let mut faults = Vec::new();
    for (name, kinds) in &crates {
        let Some(row) = table.get(name) else {
            faults.push(format!("{name} exists, but has no row"));
            continue;
        };
        if row.later {
            faults.push(format!("{name} exists; its row still says \"{LATER}\""));
        }
        let arrows = kinds.get("normal").unwrap_or(&none);
        for extra in arrows.difference(&row.arrows) {
            faults.push(format!(
                "{name} depends on {extra}, which the table forbids"
            ));
        }
        for missing in row.arrows.difference(arrows) {
            faults.push(format!(
                "{name} does not depend on {missing}, the table says so"
            ));
        }
    }
    for (name, row) in &table {
        if !row.later && !crates.contains_key(name) {
            faults.push(format!("{name} has a row, but does not exist"));
        }
    }
    assert_none("ARCHITECTURE.md and the manifests disagree", &faults);
}

#[test]
fn arrows_go_down() {
    let table = table();
    let mut faults = Vec::new();
    let layer = |name: &str| table.get(name).map(|row| row.layer);
    for (name, row) in &table {
        for target in &row.arrows {
            if layer(target).is_none_or(|target| target >= row.layer) {
                faults.push(format!("{name} → {target}"));
            }
        }
    }
    // Tests may use a lower room that the crate itself does not, but no higher one except that which is for them.
    for (name, kinds) in crates() {
        for target in kinds.get("test").into_iter().flatten() {
            if layer(target) >= layer(&name) && target != FOR_TESTS {
                faults.push(format!("the tests of {name} → {target}"));
            }
        }
    }
    let product = table.iter().filter(|(name, _)| *name != "bench");
    let used = product.filter(|(_, row)| row.arrows.contains(FOR_TESTS));
    faults.extend(used.map(|(name, _)| format!("{name} → {FOR_TESTS}, which is for tests")));
    assert_none("arrows that do not go to a lower layer", &faults);
}

#[test]
fn pure_rooms_touch_nothing() {
    let mut faults = Vec::new();
    for path in sources() {
        let place = short(&path);
        if !PURE
            .iter()
            .any(|room| place.starts_with(&format!("crates/{room}/")))
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        for (at, line) in code_lines(&text) {
            let named = IMPURE.iter().filter(|name| line.contains(**name));
            faults.extend(named.map(|name| format!("{place}:{at}: {name}")));
            faults.extend(more_than_addresses(line).map(|name| format!("{place}:{at}: {name}")));
        }
    }
    assert_none("rooms without I/O, clock or environment name them", &faults);
}

/// Returns what `line` names of `std::net` beyond addresses.
fn more_than_addresses(line: &str) -> Option<String> {
    let (_, names) = line.split_once("std::net::")?;
    let names = match names.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or(list),
        None => names
            .split(|letter: char| !letter.is_alphanumeric())
            .next()
            .unwrap_or(names),
    };
    names
        .split(',')
        .map(str::trim)
        .find(|name| !name.is_empty() && !ADDRESSES.contains(name))
        .map(|name| format!("std::net::{name}"))
}

#[test]
fn pure_rooms_depend_on_nothing_that_reaches_outside() {
    let metadata = metadata();
    let mut faults = Vec::new();
    for package in metadata.workspace_packages() {
        if !PURE.contains(&package.name.as_str()) {
            continue;
        }
        let normal = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal);
        let reaching = normal.filter(|dependency| {
            let name = dependency.name.as_str();
            IMPURE_CRATES.contains(&name)
        });
        faults.extend(reaching.map(|dependency| format!("{} → {}", package.name, dependency.name)));
    }
    assert_none("rooms without I/O depend on crates that do it", &faults);
}

#[test]
fn the_controller_knows_agents_by_their_api_only() {
    let mut faults = Vec::new();
    let source = root().join("crates/linerate-controller/src");
    // Simulated agents have leases and trials like real ones.
    let files = rust_files(&source).into_iter();
    for path in files.filter(|path| !path.starts_with(source.join("faults"))) {
        let text = std::fs::read_to_string(&path).expect("a source file");
        for (at, line) in code_lines(&text) {
            let mut rest = line;
            while let Some((_, after)) = rest.split_once("linerate_agent") {
                if !after.starts_with("::api") {
                    faults.push(format!("{}:{at}", short(&path)));
                }
                rest = after;
            }
        }
    }
    assert_none("uses of the agent beside `linerate_agent::api`", &faults);
}

/// Where the binary may name the command line parser, what it fills, and the commands.
const FLAGS: [&str; 5] = ["main.rs", "args/", "meant/", "cmd/", "workload"];
/// What those names are.
const OF_FLAGS: [&str; 3] = ["crate::args", "crate::cmd", "clap::"];

#[test]
fn flags_end_where_they_are_meant() {
    let source = root().join("crates/linerate/src");
    let mut faults = Vec::new();
    for path in rust_files(&source) {
        let inner = path.strip_prefix(&source).expect("a file of the binary");
        if FLAGS
            .iter()
            .any(|room| inner.to_string_lossy().starts_with(room))
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let is_above = |line: &str| OF_FLAGS.iter().any(|name| line.contains(name));
        let named = code_lines(&text).filter(|(_, line)| is_above(line));
        faults.extend(named.map(|(at, _)| format!("{}:{at}", short(&path))));
    }
    assert_none(
        "uses of flags or commands beside args, meant and cmd",
        &faults,
    );
}

#[test]
fn unsafe_lives_in_sys() {
    const FORMS: [&str; 6] = [
        "unsafe {",
        "unsafe fn",
        "unsafe impl",
        "unsafe trait",
        "unsafe extern",
        "unsafe(",
    ];
    let mut faults = Vec::new();
    for path in sources() {
        let place = short(&path);
        if place.contains("/src/sys/") || place.ends_with("/src/sys.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        for (at, line) in code_lines(&text) {
            if FORMS.iter().any(|form| line.contains(form)) {
                faults.push(format!("{place}:{at}: {}", line.trim()));
            }
        }
    }
    assert_none("unsafe code outside sys/", &faults);
}

/// System calls know the kernel's types and their own; what is above gives meaning to them.
#[test]
fn sys_imports_nothing_above_it() {
    let mut faults = Vec::new();
    for path in sources() {
        let name = short(&path);
        if !name.contains("/src/sys/") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file is readable");
        let above = rooms_named(&text).filter(|(_, room)| *room != "sys");
        faults.extend(above.map(|(at, room)| format!("{name}:{at}: {room}")));
    }
    assert_none("sys/ that looks up", &faults);
}

/// The layers of the engine, lowest first.
const ENGINE: [&[&str]; 6] = [
    &["sys"],
    &["measure", "pace"],
    &["schedule"],
    &["flow"],
    &["workload"],
    &["worker"],
];

#[test]
fn the_engine_imports_from_its_own_or_lower_layers() {
    let layer = |room: &str| ENGINE.iter().position(|rooms| rooms.contains(&room));
    let source = root().join("crates/linerate-engine/src");
    let mut faults = Vec::new();
    for path in rust_files(&source) {
        let inner = path.strip_prefix(&source).expect("a file of the engine");
        let first = inner.components().next().expect("a file has a name");
        let name = first.as_os_str().to_string_lossy();
        let own = name.trim_end_matches(".rs");
        if own == "lib" {
            continue;
        }
        let place = short(&path);
        if layer(own).is_none() {
            faults.push(format!("{place}: a room without a layer"));
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let is_above =
            |room: &str| room != own && layer(room).is_none_or(|at| Some(at) >= layer(own));
        let above = rooms_named(&text).filter(|(_, room)| is_above(room));
        faults.extend(above.map(|(at, room)| format!("{place}:{at}: {room}")));
    }
    assert_none("rooms of the engine that look up", &faults);
}

/// Returns the rooms of its crate that a file names, its tests left out, with the lines.
fn rooms_named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    code_of(text).flat_map(|(at, line)| {
        let paths = line.split("crate::").skip(1);
        paths.map(move |path| {
            let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            (at, end.map_or(path, |end| &path[..end]))
        })
    })
}

/// Modules of a crate that use each other in circles: each of such a circle can only be understood with all others. To become
/// fewer and smaller. Of each crate its circles, the largest first; a parent that uses its children, which use it, is one.
const CIRCLES: &[(&str, &[&str])] = &[
    (
        "linerate",
        &[
            "iperf3 term term::failure term::single term::single::cost term::single::csv \
             term::single::datagrams term::single::details term::single::result term::single::table \
             term::single::together",
            "hosts hosts::address hosts::trust",
            "term::watch term::watch::draw term::watch::state",
            "args args::run",
            "meant meant::measurement",
        ],
    ),
    (
        "linerate-agent",
        &[
            "core core::capture core::flows core::host core::limits core::slot core::trial core::unix \
             core::watch foreign::guest foreign::iperf3 foreign::iperf3::test foreign::iperf3::traffic \
             foreign::netperf foreign::netperf::due foreign::netperf::session foreign::netperf::test serve \
             serve::datagram serve::entrance serve::gate serve::http serve::owner",
            "access access::proof access::register",
        ],
    ),
    (
        "linerate-analyze",
        &[
            "diagnose diagnose::both_ways diagnose::caution diagnose::cpu diagnose::datagram_loss \
             diagnose::effect diagnose::found diagnose::generator diagnose::host_counters diagnose::inferred \
             diagnose::known diagnose::limiter diagnose::open_loop diagnose::pacing diagnose::placement \
             diagnose::plateau diagnose::queue_balance diagnose::receive_path diagnose::round_trip \
             diagnose::rules diagnose::zero_copy study trust",
            "reduce reduce::arrived reduce::beside reduce::cost reduce::damaged reduce::datagrams \
             reduce::evidence reduce::exchange reduce::flows reduce::machine reduce::plausible \
             reduce::profile reduce::queues reduce::silence reduce::starved \
             reduce::together reduce::values",
            "watch::pages watch::pages::cpus watch::pages::interrupts watch::pages::links \
             watch::pages::overview watch::pages::queues watch::pages::softnet watch::pages::tcp \
             watch::pages::trouble",
            "watch watch::cpus watch::links watch::programs watch::sockets",
            "dataset verdicts",
            "live live::latencies",
        ],
    ),
    ("linerate-compat", &["iperf3::json iperf3::json::text"]),
    ("linerate-controller", &["run run::trial"]),
    (
        "linerate-engine",
        &[
            "flow flow::calls flow::connect flow::datagram flow::error flow::incoming flow::mechanism \
             flow::options flow::pace flow::place flow::probe flow::sampler",
            "worker worker::datagrams worker::epoll worker::launch worker::places worker::ring worker::spin \
             worker::thread worker::waiting",
            "workload workload::crr workload::crr::caller workload::idle workload::rr::requester \
             workload::rr::responder workload::stream::receiver workload::stream::sender",
            "workload::datagram workload::datagram::exchange workload::datagram::receiver \
             workload::datagram::sender",
        ],
    ),
    (
        "linerate-lab",
        &[
            "named::end named::place named::registry",
            "shape spec spec::file",
            "network network::held",
        ],
    ),
    (
        "linerate-model",
        &[
            "experiment knob manner parameter parameter::field response workload workload::kind \
             workload::kind::crr workload::kind::idle workload::kind::rr workload::kind::stream",
            "finding number unit",
        ],
    ),
    (
        "linerate-observe",
        &[
            "facts facts::cpu facts::hidden facts::irq facts::kernel facts::link facts::nic facts::pcie \
             facts::queue facts::sysctl facts::virtualisation",
            "queue queue::drivers queue::message queue::name",
            "capture capture::select",
            "card card::message",
            "link link::names",
            "netstat netstat::parse",
            "tcp tcp::message",
        ],
    ),
    ("linerate-plan", &["budget planner"]),
    (
        "linerate-report",
        &[
            "html html::answer html::chapter html::evidence html::findings",
            "chart chart::strip chart::text",
            "terminal terminal::answer",
        ],
    ),
    (
        "linerate-store",
        &["rows rows::captures rows::flows rows::samples rows::stacks rows::trials"],
    ),
    (
        "linerate-trace",
        &[
            "frame frame::icmp frame::ip frame::link frame::tcp frame::tunnel frame::udp",
            "both::datagrams both::decided both::join both::report both::sighting both::way",
            "connection connection::detail connection::life connection::picture connection::resending \
             connection::shares",
            "capture capture::pcap capture::pcapng",
            "findings findings::words",
        ],
    ),
];

#[test]
fn circles_of_modules_become_fewer() {
    let mut found = String::new();
    let names = crates().into_keys();
    for name in names.filter(|name| name.starts_with("linerate")) {
        let modules = Modules::below(&root().join("crates").join(&name).join("src"));
        found += &listed(&name, &circles(&modules.graph()));
    }
    let kept = CIRCLES.iter().map(|(name, circles)| {
        let circles: Vec<Vec<&str>> = circles.iter().map(|one| one.split(' ').collect()).collect();
        listed(name, &circles)
    });
    let kept: String = kept.collect();
    let is_in = |list: &str, line: &str| list.lines().any(|other| other == line);
    let grown = found.lines().filter(|line| !is_in(&kept, line));
    let gone = kept.lines().filter(|line| !is_in(&found, line));
    let faults: Vec<String> = grown
        .map(|line| format!("is not in the list: {line}"))
        .chain(gone.map(|line| format!("is no more: {line}")))
        .collect();
    assert_none("circles of modules and their list", &faults);
}

/// Returns circles as the list has them, a line each.
fn listed<T: std::fmt::Display>(name: &str, circles: &[Vec<T>]) -> String {
    let line = |circle: &Vec<T>| {
        let modules: Vec<String> = circle.iter().map(T::to_string).collect();
        format!("{name}: {}\n", modules.join(" "))
    };
    circles.iter().map(line).collect()
}

/// A module's place below `src`; empty for the crate itself.
type ModulePath = Vec<String>;

/// A path that a module imports.
struct Import {
    path: ModulePath,
    /// What it is called in the module.
    name: String,
    /// Whether others may find it there.
    is_public: bool,
}

/// How often a name is passed on at the most.
const PASSED_MAX: u32 = 16;

/// The modules of a crate, with what they import and the code beside that; tests left out.
struct Modules(BTreeMap<ModulePath, (Vec<Import>, String)>);

impl Modules {
    fn below(source: &Path) -> Self {
        let files = rust_files(source).into_iter();
        let files = files.filter(|file| !is_of_tests(file)).map(|file| {
            let inner = file.strip_prefix(source).expect("a file below it");
            let inner = inner.with_extension("");
            let parts = inner
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .filter(|part| !["mod", "lib", "main"].contains(&part.as_str()));
            let text = std::fs::read_to_string(&file).expect("a source file");
            let code: Vec<&str> = code_of(&text).map(|(_, line)| line).collect();
            (parts.collect::<ModulePath>(), imports(&code.join("\n")))
        });
        Self(files.collect())
    }

    /// Returns which modules each uses.
    fn graph(&self) -> BTreeMap<String, BTreeSet<String>> {
        let each = self.0.iter().map(|(module, (imports, code))| {
            // What is passed on alone is not used here.
            let names: BTreeSet<&str> = code.split(|letter| !is_of_name(letter)).collect();
            let used = imports.iter().filter(|import| {
                let is_used = names.contains(import.name.as_str());
                !import.is_public || is_used
            });
            let imported = used.map(|import| import.path.clone());
            let named = imported.chain(paths(code));
            let owners = named.filter_map(|path| self.owner(module, &path, 0));
            let others = owners.filter(|owner| owner != module);
            (shown(module), others.map(|owner| shown(&owner)).collect())
        });
        each.collect()
    }

    /// Returns the module that has what `path` names in `module`, wherever it is passed on; none of another crate's.
    fn owner(&self, module: &ModulePath, path: &[String], passed: u32) -> Option<ModulePath> {
        let above = path.iter().take_while(|part| *part == "super").count();
        let (from, mut rest) = match path.first()?.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (&module[..], &path[1..]),
            "super" => (&module[..module.len().checked_sub(above)?], &path[above..]),
            _ => (&module[..], path),
        };
        let mut at = from.to_vec();
        while let [first, more @ ..] = rest {
            let child: ModulePath = at.iter().chain([first]).cloned().collect();
            if self.0.contains_key(&child) {
                (at, rest) = (child, more);
                continue;
            }
            let imports = self.0.get(&at).map(|(imports, _)| imports);
            let import = imports?.iter().find(|import| import.name == *first);
            return match import {
                // What has the name of its crate is found there, too, again and again.
                Some(import) if passed < PASSED_MAX => {
                    let path: ModulePath = import.path.iter().chain(more).cloned().collect();
                    self.owner(&at, &path, passed + 1)
                }
                _ if std::ptr::eq(rest, path) => None,
                _ => Some(at),
            };
        }
        Some(at)
    }
}

/// Returns a module as the list of circles has it.
fn shown(module: &ModulePath) -> String {
    if module.is_empty() {
        "crate".to_owned()
    } else {
        module.join("::")
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns what code imports, and the code without that.
fn imports(code: &str) -> (Vec<Import>, String) {
    let (mut imports, mut rest, mut left) = (Vec::new(), String::new(), code);
    while !left.is_empty() {
        let (line, after) = left.split_once('\n').unwrap_or((left, ""));
        let words = line.trim_start();
        let is_public = words.starts_with("pub");
        let words = match words.strip_prefix("pub(") {
            Some(inner) => inner.split_once(") ").map_or("", |(_, words)| words),
            None => words.strip_prefix("pub ").unwrap_or(words),
        };
        let Some(tree) = words.strip_prefix("use ") else {
            rest += line;
            rest.push('\n');
            left = after;
            continue;
        };
        let begin = left.len() - after.len() - tree.len() - usize::from(!after.is_empty());
        let (tree, after) = left[begin..].split_once(';').unwrap_or_default();
        let mut found = Vec::new();
        expand(tree, &mut Vec::new(), &mut found);
        imports.extend(found.into_iter().filter_map(|(mut path, alias)| {
            let is_whole = |part: &String| part == "self" || part.is_empty();
            path.pop_if(|part| is_whole(part));
            let name = alias.or_else(|| path.last().cloned())?;
            Some(Import {
                path,
                name,
                is_public,
            })
        }));
        left = after;
    }
    (imports, rest)
}

/// Returns the paths of two parts and more that code names.
fn paths(code: &str) -> Vec<ModulePath> {
    let mut paths = Vec::new();
    let mut left = code;
    while let Some(at) = left.find(is_of_name) {
        // What a dot stands before is a method or a field.
        let before = &left[..at];
        let is_inner = before.ends_with(':') || (before.ends_with('.') && !before.ends_with(".."));
        left = &left[at..];
        let end = left
            .find(|letter: char| !is_of_name(letter) && letter != ':')
            .unwrap_or(left.len());
        let path: ModulePath = left[..end].split("::").map(str::to_owned).collect();
        if path.len() > 1 && !is_inner {
            paths.push(path);
        }
        left = &left[end..];
    }
    paths
}

/// Adds the paths that `text` begins with to `found`, each with another name that it has, those in braces each by itself;
/// returns what follows.
fn expand<'a>(
    text: &'a str,
    before: &mut ModulePath,
    found: &mut Vec<(ModulePath, Option<String>)>,
) -> &'a str {
    let depth = before.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut inner) = rest.strip_prefix('{') {
            while !inner.trim_start().starts_with('}') && !inner.trim().is_empty() {
                inner = expand(inner, before, found).trim_start();
                inner = inner.strip_prefix(',').unwrap_or(inner);
            }
            rest = inner.trim_start().strip_prefix('}').unwrap_or_default();
            break;
        }
        let end = rest.find(|letter: char| !is_of_name(letter));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        before.push(name.to_owned());
        rest = after;
        let Some(deeper) = rest.strip_prefix("::") else {
            let alias = rest.strip_prefix(" as ").map(|alias| {
                let end = alias.find(|letter: char| !is_of_name(letter));
                alias[..end.unwrap_or(alias.len())].to_owned()
            });
            found.push((before.clone(), alias));
            break;
        };
        rest = deeper;
    }
    before.truncate(depth);
    // Another name for it, or a star.
    let end = rest.find([',', '}']);
    end.map_or("", |end| &rest[end..])
}

/// Returns the circles in a graph, the largest first.
fn circles<T: Ord + Clone>(graph: &BTreeMap<T, BTreeSet<T>>) -> Vec<Vec<T>> {
    let reached = graph.keys().map(|from| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(one) = open.pop() {
            let next = graph.get(one).into_iter().flatten();
            open.extend(next.filter(|to| seen.insert((*to).clone())));
        }
        (from, seen)
    });
    let reached: BTreeMap<&T, BTreeSet<T>> = reached.collect();
    let circle = |one: &&T| -> Vec<T> {
        let others = reached[*one]
            .iter()
            .filter(|other| reached.get(other).is_some_and(|seen| seen.contains(*one)));
        others.cloned().collect()
    };
    let all: BTreeSet<Vec<T>> = graph.keys().map(|one| circle(&one)).collect();
    let mut all: Vec<Vec<T>> = all.into_iter().filter(|one| one.len() > 1).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.len()));
    all
}

/// The catalogue of responses.
const RESPONSES: &str = "crates/linerate-model/src/response.rs";
/// Files whose texts of such names are something else: metrics, facts, columns of published tables, and what
/// `bench` reads in documents, which it knows from outside.
const NO_RESPONSES: [&str; 6] = [
    RESPONSES,
    "crates/linerate-model/src/metric.rs",
    "crates/linerate-observe/src/facts/link.rs",
    "crates/linerate-analyze/src/published/mod.rs",
    "crates/linerate-analyze/src/chapters/latency.rs",
    "bench/src/tool/linerate.rs",
];

/// A name that is spelled twice is changed once: responses are named by their constants.
#[test]
fn responses_are_named_by_their_constants() {
    let catalogue = std::fs::read_to_string(root().join(RESPONSES)).expect("the catalogue");
    let listed = catalogue.split("\nresponses! {").nth(1);
    let listed = listed.and_then(|rest| rest.split("\n}").next());
    let names: BTreeSet<&str> = literals(listed.unwrap_or_default()).collect();
    assert!(names.contains("throughput_bps") && names.len() > 80);
    let mut faults = Vec::new();
    for path in sources() {
        let name = short(&path);
        if NO_RESPONSES.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file is readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (at, line) in code_lines(code) {
            let named = literals(line).filter(|literal| names.contains(literal));
            faults.extend(named.map(|literal| format!("{name}:{at}: {literal}")));
        }
    }
    assert_none("responses that are not named by their constants", &faults);
}

/// Returns the texts of `code`.
fn texts(code: &str) -> impl Iterator<Item = &str> {
    code.split('"').skip(1).step_by(2)
}

/// Returns the texts of `code` that could be the name of a response: with a unit behind an underscore.
fn literals(code: &str) -> impl Iterator<Item = &str> {
    texts(code).filter(|text| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        text.contains('_') && text.bytes().all(is_plain)
    })
}

/// The catalogue of settings.
const SETTINGS: &str = "crates/linerate-model/src/setting.rs";
/// What spells names of settings that no program makes any more: those of older bundles.
const OLDER_SETTINGS: &str = "crates/linerate-store/src/rows/flows.rs";
/// Where a setting is made or looked up by its name.
const BY_NAME: [&str; 3] = ["Setting::granted(", "Setting::seen(", "settings.named("];

/// What makes a setting and what looks for it have one name: its constant.
#[test]
fn settings_are_named_by_their_constants() {
    let catalogue = std::fs::read_to_string(root().join(SETTINGS)).expect("the catalogue");
    let listed = catalogue.split("pub mod name {").nth(1);
    let listed = listed.and_then(|rest| rest.split("\n}").next());
    let names: BTreeSet<&str> = texts(listed.unwrap_or_default()).collect();
    assert!(names.contains("SO_SNDBUF") && names.contains("pace"));
    let mut faults = Vec::new();
    for path in sources() {
        let file = short(&path);
        if [SETTINGS, OLDER_SETTINGS].contains(&file.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file is readable");
        let spelled = settings_spelled(&text, &names);
        faults.extend(spelled.iter().map(|name| format!("{file}: {name}")));
    }
    assert_none("settings that are not named by their constants", &faults);
}

/// Returns the names of settings that a file spells: those like the kernel's wherever they stand, any where a
/// setting is made or looked up. (`send` is a word of much else.)
fn settings_spelled(text: &str, names: &BTreeSet<&str>) -> Vec<String> {
    let code: Vec<&str> = code_of(text).map(|(_, line)| line).collect();
    let code = code.join("\n");
    let of_kernel = code.lines().flat_map(texts);
    let of_kernel = of_kernel.filter(|name| name.contains('_') && names.contains(name));
    let calls = BY_NAME.iter().flat_map(|call| code.split(call).skip(1));
    let by_name = calls.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    of_kernel.chain(by_name).map(str::to_owned).collect()
}

/// The title before the table of nouns.
const NOUNS: &str = "## The nouns";

/// Reads the nouns out of ARCHITECTURE.md; those of rooms that come later are not taken yet.
fn nouns() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, after) = text.split_once(NOUNS).expect("the title before the table");
    let rows = after.lines().filter_map(|line| line.strip_prefix("| **"));
    rows.filter_map(|row| row.split_once("** | "))
        .filter(|(_, meaning)| !meaning.starts_with(&format!("({LATER}")))
        .flat_map(|(nouns, _)| nouns.split(" / "))
        .map(str::to_owned)
        .collect()
}

/// Returns the type that a line of code defines.
fn type_defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let (kind, name) = line.trim_start().split_once(' ')?;
    let end = name.find(|letter: char| !letter.is_alphanumeric());
    ["struct", "enum", "trait"]
        .contains(&kind)
        .then(|| end.map_or(name, |end| &name[..end]))
}

#[test]
fn a_noun_is_defined_once() {
    let nouns = nouns();
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).expect("a source file");
        for name in code_of(&text).filter_map(|(_, line)| type_defined(line)) {
            if nouns.contains(name) {
                let places = places.entry(name.to_owned()).or_default();
                places.insert(short(&path));
            }
        }
    }
    let twice = places.iter().filter(|(_, places)| places.len() > 1);
    let faults: Vec<String> = twice
        .map(|(noun, places)| format!("{noun}: {places:?}"))
        .collect();
    assert_none("nouns of ARCHITECTURE.md with two definitions", &faults);
}

/// Constants that a list picks by their module, one of many each.
const OF_MANY: [&str; 4] = ["ABOUT", "CHAPTER", "RULE", "TOOL"];
/// Names that constants of several modules of a crate have all the same, and how many. To become fewer: who changes one of
/// two must know of the other.
const NAMED_ALIKE: &[(&str, &str, usize)] = &[
    ("bench", "EVENTS", 2),
    ("bench", "FORMAT", 2),
    ("linerate", "FILE_BYTES_MAX", 2),
    ("linerate", "INTERVAL_MIN", 2),
    ("linerate", "LOOK", 4),
    ("linerate-agent", "ANSWER", 2),
    ("linerate-agent", "ANSWERS", 2),
    ("linerate-agent", "ANSWER_BYTES_MAX", 2),
    ("linerate-agent", "FILE", 2),
    ("linerate-agent", "FILE_BYTES_MAX", 3),
    ("linerate-agent", "LOOK", 2),
    ("linerate-agent", "PROGRAM", 2),
    ("linerate-agent", "RATE_LOOK_NS", 2),
    ("linerate-agent", "STACK_BYTES", 2),
    ("linerate-agent", "WHY_CHARS_MAX", 2),
    ("linerate-compat", "EARLY_BYTES_MAX", 2),
    ("linerate-engine", "CALL_BYTES_MAX", 2),
    ("linerate-engine", "CHOSEN_BATCH", 2),
    ("linerate-engine", "END", 2),
    ("linerate-engine", "LOOK_NS", 2),
    ("linerate-engine", "PAUSE_NS", 2),
    ("linerate-engine", "PIECE_BYTES", 2),
    ("linerate-engine", "ROUNDS", 2),
    ("linerate-engine", "TRIES", 2),
    ("linerate-engine", "TURNS_MAX", 2),
    ("linerate-model", "AUTO", 2),
    ("linerate-observe", "COUNTERS", 3),
    ("linerate-observe", "CPUS_MAX", 2),
    ("linerate-observe", "CPU_MAX", 2),
    ("linerate-observe", "DEPTH_MAX", 2),
    ("linerate-observe", "HEADER_BYTES", 8),
    ("linerate-observe", "KIND_AT", 2),
    ("linerate-observe", "MODES", 2),
    ("linerate-observe", "NAMES_MAX", 2),
    ("linerate-observe", "OUTGOING", 2),
    ("linerate-report", "ROWS_MAX", 2),
    ("linerate-report", "TOLD_MAX", 2),
    ("linerate-store", "TEXT_BYTES_MAX", 2),
    ("linerate-trace", "BINS_MAX", 2),
    ("linerate-trace", "COLUMNS_MAX", 2),
    ("linerate-trace", "CONNECTIONS_MAX", 4),
    ("linerate-trace", "EXAMPLES_MAX", 3),
    ("linerate-trace", "FINDINGS_MAX", 4),
    ("linerate-trace", "HEADER_BYTES", 4),
    ("linerate-trace", "OPTION_END", 2),
    ("linerate-trace", "ROWS_MAX", 2),
    ("linerate-trace", "WIDTH_NS_MIN", 2),
];

#[test]
fn constants_of_a_crate_have_different_names() {
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for path in sources().iter().filter(|path| !is_of_tests(path)) {
        let text = std::fs::read_to_string(path).expect("a source file");
        let place = short(path);
        let (home, _) = place.split_once("/src/").expect("a file of a crate");
        let home = home.trim_start_matches("crates/");
        for name in code_of(&text).filter_map(|(_, line)| constant_defined(line)) {
            if !OF_MANY.contains(&name) {
                let key = (home.to_owned(), name.to_owned());
                *places.entry(key).or_default() += 1;
            }
        }
    }
    places.retain(|_, count| *count > 1);
    let listed = NAMED_ALIKE.iter().map(|(home, name, count)| {
        let key = (home.to_string(), name.to_string());
        (key, *count)
    });
    let listed: BTreeMap<_, usize> = listed.collect();
    assert_eq!(places, listed, "constants with one name, and their list");
}

/// Returns whether a file is compiled for tests alone, by the folder of its module.
fn is_of_tests(path: &Path) -> bool {
    let place = short(path);
    let mut parts = place.split('/').map(|part| part.trim_end_matches(".rs"));
    parts.any(|part| ["tests", "faults"].contains(&part))
}

/// Returns the name of the constant that a line defines, at the top of its module.
fn constant_defined(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None if line.starts_with(' ') => return None,
        None => line,
    };
    let (name, _) = line.trim_start().strip_prefix("const ")?.split_once(':')?;
    let is_letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (name != "_" && name.bytes().all(is_letter)).then_some(name)
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut faults = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).expect("a source file");
        if !text.starts_with("//! ") {
            faults.push(short(&path));
        }
    }
    assert_none("files that do not open with `//! `", &faults);
}

#[test]
fn the_checks_find_what_they_look_for() {
    let text = "use crate::sys::clock;\npub(crate) use crate::card_of::Mode;\n#[cfg(test)]\nmod tests {\ncrate::x";
    let rooms: Vec<(usize, &str)> = rooms_named(text).collect();
    assert_eq!(rooms, [(1, "sys"), (2, "card_of")]);
    let check = |line: &str, expected: Option<&str>| {
        assert_eq!(more_than_addresses(line).as_deref(), expected, "{line}");
    };
    check("use std::net::IpAddr;", None);
    check("use std::net::{IpAddr, Ipv6Addr};", None);
    check("use std::net::TcpStream;", Some("std::net::TcpStream"));
    check(
        "use std::net::{TcpListener};",
        Some("std::net::TcpListener"),
    );
    check(
        "let x = std::net::UdpSocket::bind(a);",
        Some("std::net::UdpSocket"),
    );
    check("let x: std::net::IpAddr = y.parse()?;", None);
    let defined = [
        "pub(crate) enum Step {",
        "struct Flow<'a> {",
        "pub trait Agent: Send {",
    ];
    let names = defined.map(|line| type_defined(line).unwrap_or_default());
    assert_eq!(names, ["Step", "Flow", "Agent"]);
    assert_eq!(type_defined("    let flow = Flow::new();"), None);
    let defined = [
        "const FLOWS_MAX: u32 = 1;",
        "pub(super) const RULE: Rule = Rule {",
        "    const INNER: u32 = 1;",
        "const fn flows(of: u32) -> u32 {",
        "const _: () = ();",
    ];
    let names = defined.map(constant_defined);
    assert_eq!(names, [Some("FLOWS_MAX"), Some("RULE"), None, None, None]);
    assert!(nouns().contains("Worker") && !nouns().contains("Journal"));
    assert_eq!(code_words("`a`, `b-c` and d"), ["a", "b-c"]);
    let crate_of = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(module, code)| {
            let module = module.split("::").filter(|part| !part.is_empty());
            (module.map(str::to_owned).collect(), imports(code))
        });
        Modules(files.collect()).graph()
    };
    let check_uses = |code: &str, expected: &[&str]| {
        let graph = crate_of(&[
            ("", "mod a;\nmod x;"),
            (
                "a",
                "mod b;\npub(crate) use b::{Item, fall as drop};\nuse x::Own;",
            ),
            ("a::b", ""),
            ("x", code),
            ("x::y", ""),
        ]);
        let found: Vec<&str> = graph["x"].iter().map(String::as_str).collect();
        assert_eq!(found, expected, "{code}");
    };
    check_uses("use crate::a::{b, Own as Other, Gone};", &["a", "a::b"]);
    check_uses("use crate::a::Item;", &["a::b"]);
    check_uses("use crate::a::{self,\n    drop};", &["a", "a::b"]);
    check_uses("use super::a;\nlet z = a::b::f();", &["a", "a::b"]);
    check_uses("use std::fs;\nlet z = fs::read(b::c);", &[]);
    check_uses("let z = y::f(self::y::g);", &["x::y"]);
    check_uses("use y::g;", &["x::y"]);
    check_uses("pub use y::g;", &[]);
    check_uses("pub use y::g;\nfn f() { g() }", &["x::y"]);
    check_uses("use super::Top;", &["crate"]);
    check_uses("let z = thing.a::<Item>();", &[]);
    let graph = [
        (1, vec![2]),
        (2, vec![3]),
        (3, vec![1, 4]),
        (4, vec![5]),
        (5, vec![4]),
        (6, vec![1]),
    ]
    .map(|(from, to)| (from, BTreeSet::from_iter(to)));
    assert_eq!(circles(&BTreeMap::from(graph)), [vec![1, 2, 3], vec![4, 5]]);
    assert_eq!(code_lines("a\n // b\nc").count(), 2);
    let code =
        "Setting::granted(\n\"mine\", None); by(\"send\"); is(\"SO_SNDBUF\");\n// \"SO_SNDBUF\"";
    let names = BTreeSet::from(["send", "SO_SNDBUF"]);
    assert_eq!(settings_spelled(code, &names), ["SO_SNDBUF", "mine"]);
}
