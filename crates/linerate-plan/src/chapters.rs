//! The experiments that come with the program: the chapters of the study, and others.

use crate::draft::Draft;
use crate::file::read_experiment;

/// Files of `experiments` with their text.
macro_rules! built_in {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name)))),*]
    };
}

/// The chapters that need trials: file name and text, in the order of the study.
const CHAPTERS: &[(&str, &str)] = built_in! {
    "01-latency.toml"
    "03-socket-buffer.toml"
    "04-transfer-size.toml"
    "05-data-per-call.toml"
    "06-acknowledgements.toml"
    "07-cpus.toml"
    "08-connections.toml"
    "08-connection-rate.toml"
    "09-small-messages.toml"
    "09-split-request.toml"
    "10-packet-rate.toml"
    "11-udp-packet-rate.toml"
    "12-queues.toml"
    "13-transmit-queues.toml"
    "14-offloads.toml"
    "14-moderation.toml"
    "under-load.toml"
    "idle.toml"
    "load-steps.toml"
};

/// The experiments of the study that are left out where there is no time for all, the first of them first: what most hosts
/// have set well, and what a host of its own cannot vary.
pub(crate) const GIVE_WAY: &[&str] = &[
    "moderation",
    "transmit-queues",
    "data-per-call",
    "offloads",
    "load-steps",
    "transfer-size",
    "connection-rate",
    "cpus",
    "connections",
    "under-load",
    "idle",
];

/// The parts of the quick look: throughput each way, a round trip, and both at once.
const QUICK: &[(&str, &str)] = built_in! {
    "quick-throughput.toml"
    "quick-round-trip.toml"
    "under-load.toml"
};

/// Those that are no chapter.
const OTHERS: &[(&str, &str)] = built_in! {
    "buffer-knee.toml"
    "congestion-control.toml"
    "first-look.toml"
    "fleet-look.toml"
    "latency-load.toml"
    "many-clients.toml"
    "mtu.toml"
    "netpipe.toml"
};

/// Returns the built-in chapters of the study, in order.
///
/// Inventory, window and findings need no trials and have no file.
pub fn study() -> Vec<Draft> {
    drafts(CHAPTERS)
}

/// Returns the built-in experiments of the quick look, in order.
pub fn quick_look() -> Vec<Draft> {
    drafts(QUICK)
}

/// Returns what hosts of a fleet measure with each other where nothing else is asked for.
pub fn fleet_look() -> Draft {
    let look = OTHERS.iter().find(|(name, _)| *name == "fleet-look.toml");
    drafts(&[*look.expect("it is built in")]).remove(0)
}

/// Returns all built-in experiments: the chapters, the quick look, then the others.
pub fn built_in() -> Vec<Draft> {
    let quick = QUICK.iter().filter(|file| !CHAPTERS.contains(file));
    let files = CHAPTERS.iter().chain(quick).chain(OTHERS);
    drafts(&files.copied().collect::<Vec<_>>())
}

fn drafts(files: &[(&str, &str)]) -> Vec<Draft> {
    let read = |&(name, text): &(&str, &str)| {
        read_experiment(text, name).expect("a test reads every file that is built in")
    };
    files.iter().map(read).collect()
}
