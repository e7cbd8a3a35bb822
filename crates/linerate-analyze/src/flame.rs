//! Stacks of profiles, put together: flame graphs, and text that other programs draw from.

use std::collections::BTreeMap;
use std::fmt::Write;

use linerate_model::HostName;
use linerate_model::analysis::{Flame, FlameFrame};
use linerate_model::number::counted;
use linerate_model::profile::{Stack, Work};
use linerate_model::run::{HostPart, Recording};

use crate::dataset::{CellOutcomes, Dataset, varied};
use crate::words;

/// A function that fewer looks found than this part of all is left out: a third of a pixel of a
/// chart that is 1000 wide.
const LOOKS_PART_MIN: u64 = 3000;
/// Functions above one another that are kept; the kernel looks no deeper than 127.
const DEPTH_MAX: usize = 128;

/// Returns the flame graphs of a run: for each experiment those of its first and its last cell, for
/// each end.
pub(crate) fn flames(dataset: &Dataset<'_>) -> Vec<Flame> {
    let mut flames = Vec::new();
    for experiment in dataset.experiments() {
        let all = dataset.cells_of(&experiment.name);
        let factors = varied(&all);
        let mut cells: Vec<_> = all.first().into_iter().chain(all.last()).collect();
        cells.dedup_by(|a, b| a.cell == b.cell);
        for (at, cell) in cells.into_iter().enumerate() {
            let levels = words::cell(&cell.cell, &factors);
            for (part, ends) in [
                (HostPart::Client, "The clients' CPUs"),
                (HostPart::Server, "The server's CPUs"),
            ] {
                let word = match part {
                    HostPart::Client => "client",
                    HostPart::Server => "server",
                };
                let stacks = stacks_of(dataset, cell, part);
                let Some(root) = root(&stacks) else { continue };
                let title = if levels.is_empty() {
                    format!("{ends}: {}", experiment.title)
                } else {
                    format!("{ends}: {}, {levels}", experiment.title)
                };
                flames.push(Flame {
                    id: format!("{}-{word}-{}", experiment.name, at + 1),
                    title,
                    caption: caption(&root),
                    root,
                });
            }
        }
    }
    flames
}

fn caption(root: &FlameFrame) -> String {
    format!(
        "{} of busy CPUs in the measured windows. The width of a function is its share of the \
         time, callees included; callees are drawn above it. Threads are at the bottom.",
        counted(root.looks, "sample")
    )
}

fn stacks_of<'d>(
    dataset: &'d Dataset<'_>,
    cell: &CellOutcomes<'_>,
    part: HostPart,
) -> Vec<&'d Stack> {
    let trials = cell.trials();
    let of_part = |name: &HostName| {
        let host = dataset.recording.document.host(name);
        host.is_some_and(|host| host.part == part)
    };
    let profiles = dataset.recording.profiles.iter();
    profiles
        .filter(|profile| trials.contains(&profile.trial) && of_part(&profile.host))
        .flat_map(|profile| &profile.stacks)
        .collect()
}

/// A function while stacks are put together.
#[derive(Default)]
struct Node<'a> {
    looks: BTreeMap<Work, u64>,
    calls: BTreeMap<&'a str, Node<'a>>,
}

fn root(stacks: &[&Stack]) -> Option<FlameFrame> {
    let mut root = Node::default();
    for stack in stacks {
        let mut node = &mut root;
        *node.looks.entry(stack.work).or_default() += stack.samples;
        for name in stack.frames.split(';').take(DEPTH_MAX) {
            node = node.calls.entry(name).or_default();
            *node.looks.entry(stack.work).or_default() += stack.samples;
        }
    }
    let all: u64 = root.looks.values().sum();
    (all > 0).then(|| frame("all", &root, all.div_ceil(LOOKS_PART_MIN)))
}

fn frame(name: &str, node: &Node<'_>, looks_min: u64) -> FlameFrame {
    let most = node.looks.iter().max_by_key(|(_, looks)| **looks);
    let calls = node.calls.iter();
    FlameFrame {
        name: name.to_owned(),
        looks: node.looks.values().sum(),
        work: most.map_or(Work::Other, |(work, _)| *work),
        calls: calls
            .filter(|(_, call)| call.looks.values().sum::<u64>() >= looks_min)
            .map(|(name, call)| frame(name, call, looks_min))
            .collect(),
    }
}

/// Returns all stacks of a run, those of equal frames on a host put together: a line each, the host
/// and the functions with `;` between them, a space, and how many looks found it. Programs that draw
/// flame graphs read this.
pub fn collapsed(recording: &Recording) -> String {
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for profile in &recording.profiles {
        for stack in &profile.stacks {
            let key = (&*profile.host.0, &*stack.frames);
            *all.entry(key).or_default() += stack.samples;
        }
    }
    let mut text = String::new();
    for ((host, frames), looks) in all {
        writeln!(text, "{host};{frames} {looks}").expect("a text has room");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &str, work: Work, samples: u64) -> Stack {
        Stack {
            frames: frames.to_owned(),
            work,
            samples,
        }
    }

    #[test]
    fn stacks_with_the_same_beginning_share_it() {
        let stacks = [
            stack("worker;send;copy", Work::Copy, 6000),
            stack("worker;send;tcp", Work::Transport, 2999),
            stack("worker;main", Work::User, 1),
            stack("ksoftirqd;rx", Work::Ip, 1000),
        ];
        let root = root(&stacks.iter().collect::<Vec<_>>()).expect("looks");
        assert_eq!((root.looks, root.work), (10_000, Work::Copy));
        let names: Vec<_> = root
            .calls
            .iter()
            .map(|call| (&*call.name, call.looks))
            .collect();
        assert_eq!(names, [("ksoftirqd", 1000), ("worker", 9000)]);
        let worker = &root.calls[1];
        assert_eq!(
            worker.calls.len(),
            1,
            "one look of ten thousand is left out"
        );
        let send = &worker.calls[0];
        assert_eq!(
            (send.looks, send.work, send.calls.len()),
            (8999, Work::Copy, 2)
        );
        assert_eq!(super::root(&[]), None);
    }
}
