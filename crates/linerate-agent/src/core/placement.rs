//! Which CPUs the workers of a trial are pinned to, and how that is told.
//!
//! 1. Workers that the workload confines to a number of CPUs share the first of those that this process
//!    may use: which of them a worker runs on is the scheduler's choice, as on a host that has no more.
//! 2. CPUs that the caller asked for are taken as they are; the engine refuses what cannot be.
//! 3. CPUs that the controller chose, because both ends share this machine, are taken if this
//!    process may run on all of them: an agent that was confined stays where it was put.
//! 4. Near the link: CPUs of the NUMA node that the device of the data address is attached to,
//!    where the machine has others too. Where every CPU is as near, or the device has no node, the
//!    scheduler knows better than we do which CPU the interrupts leave free.

use std::path::Path;

use linerate_engine::Cpus;
use linerate_model::number::counted;
use linerate_model::setting::{AUTO, name};
use linerate_model::workload::Setting;

use crate::api::{Assignment, Placement, one_line};

/// CPUs for the workers, and the words for the result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pinning {
    /// Where they run.
    pub(super) cpus: Cpus,
    /// The setting `placement` of every flow.
    pub(super) setting: Setting,
}

/// What this host knows of its CPUs.
#[derive(Debug, Default)]
struct HostCpus {
    allowed: Vec<u32>,
    device: Option<String>,
    near: Vec<u32>,
}

/// Returns where the workers of `assignment` run; `local` is the address of its flows.
pub(super) fn place(assignment: &Assignment, local: Option<std::net::IpAddr>) -> Pinning {
    let device = || local.and_then(linerate_observe::link_of_address);
    decide(assignment, &read_cpus(assignment, device, Path::new("/")))
}

/// Reads what the rule for `assignment` needs, below `root`, which has `proc` and `sys`.
fn read_cpus(
    assignment: &Assignment,
    device: impl FnOnce() -> Option<String>,
    root: &Path,
) -> HostCpus {
    let mut host = HostCpus::default();
    let is_confined = assignment.manner.cpus.is_some();
    if is_confined || assignment.placement != Placement::AsAsked {
        host.allowed = linerate_observe::cpus_allowed(&root.join("proc"));
    }
    if !is_confined && assignment.placement == Placement::NearLink {
        host.device = device();
        let near = |device: &String| linerate_observe::cpus_near(&root.join("sys"), device);
        host.near = host.device.as_ref().map(near).unwrap_or_default();
    }
    host
}

fn decide(assignment: &Assignment, host: &HostCpus) -> Pinning {
    if let Some(count) = assignment.manner.cpus {
        return confined(count, &host.allowed);
    }
    let cpus = &assignment.cpus;
    match &assignment.placement {
        Placement::AsAsked if cpus.is_empty() => pinned(cpus, None, None),
        Placement::AsAsked => pinned(cpus, Some(words_of(cpus)), None),
        Placement::Chosen { why } => {
            if cpus.iter().all(|cpu| host.allowed.contains(cpu)) {
                chosen(cpus, one_line(why))
            } else {
                let allowed = words_of(&host.allowed);
                chosen(&[], format!("this agent may only run on {allowed}"))
            }
        }
        Placement::NearLink => near_link(host),
    }
}

/// Returns the first `count` of the CPUs `allowed`, for all workers.
fn confined(count: u32, allowed: &[u32]) -> Pinning {
    let cpus = &allowed[..allowed.len().min(count as usize)];
    let granted = format!("confined to {}", words_of(cpus));
    Pinning {
        cpus: Cpus::Among(cpus.iter().map(|cpu| *cpu as usize).collect()),
        setting: Setting::granted(name::PLACEMENT, Some(counted(count, "CPU")), Some(granted)),
    }
}

fn near_link(host: &HostCpus) -> Pinning {
    let may = |cpu: &&u32| host.allowed.contains(cpu);
    let near: Vec<u32> = host.near.iter().filter(may).copied().collect();
    let device = host.device.as_deref().unwrap_or("the device");
    if near.is_empty() {
        return chosen(&[], format!("{device} belongs to no NUMA node"));
    }
    if near.len() == host.allowed.len() {
        return chosen(&[], format!("every CPU is as near to {device}"));
    }
    chosen(&near, format!("the NUMA node of {device}"))
}

fn chosen(cpus: &[u32], why: String) -> Pinning {
    pinned(cpus, Some(AUTO.to_owned()), Some(why))
}

/// Returns `cpus` to pin to, where there are any.
fn pinned(cpus: &[u32], requested: Option<String>, why: Option<String>) -> Pinning {
    let granted = match cpus {
        [] => "left to the scheduler".to_owned(),
        some => format!("pinned to {}", words_of(some)),
    };
    Pinning {
        cpus: match cpus {
            [] => Cpus::Any,
            some => Cpus::InTurn(some.iter().map(|cpu| *cpu as usize).collect()),
        },
        setting: Setting::granted(name::PLACEMENT, requested, Some(granted)).because(why),
    }
}

/// Returns "CPU 3", "CPUs 0 2 4" or "CPUs 0-7".
fn words_of(cpus: &[u32]) -> String {
    let is_range = cpus.len() > 2 && cpus.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    match cpus {
        [] => "no CPU".to_owned(),
        [one] => format!("CPU {one}"),
        [first, .., last] if is_range => format!("CPUs {first}-{last}"),
        several => {
            let words: Vec<String> = several.iter().map(u32::to_string).collect();
            format!("CPUs {}", words.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::manner::Manner;
    use linerate_model::sample::End;
    use linerate_model::workload::{FlowOptions, Traffic};
    use linerate_model::{Nanos, TrialId};

    use super::*;

    fn assignment(placement: Placement, cpus: &[u32]) -> Assignment {
        Assignment {
            trial: TrialId(1),
            end: End::Server,
            peer: None,
            bind: None,
            server: None,
            cookie: String::new(),
            traffic: Traffic::Idle,
            options: FlowOptions::default(),
            manner: Manner::default(),
            flows: Vec::new(),
            beside: Vec::new(),
            workers_max: None,
            cpus: cpus.to_vec(),
            placement,
            probes: Default::default(),
            capture_at: None,
            changes: None,
            sample_interval: Nanos(1),
            length: Nanos(1),
            warm_up_more: Nanos(0),
            flow_rate_max: None,
        }
    }

    #[track_caller]
    fn check(placement: Placement, cpus: &[u32], host: &HostCpus, expected: &[usize], words: &str) {
        let expected = match expected {
            [] => Cpus::Any,
            some => Cpus::InTurn(some.to_vec()),
        };
        check_placed(&assignment(placement, cpus), host, &expected, words);
    }

    #[track_caller]
    fn check_placed(assignment: &Assignment, host: &HostCpus, expected: &Cpus, words: &str) {
        let got = decide(assignment, host);
        assert_eq!(got.cpus, *expected);
        let why = got
            .setting
            .why
            .map_or(String::new(), |why| format!(": {why}"));
        assert_eq!(got.setting.granted.unwrap() + &why, words);
    }

    fn place(allowed: &[u32], near: &[u32]) -> HostCpus {
        HostCpus {
            allowed: allowed.to_vec(),
            device: Some("eth0".to_owned()),
            near: near.to_vec(),
        }
    }

    #[test]
    fn what_was_asked_for_is_taken() {
        let none = HostCpus::default();
        check(Placement::AsAsked, &[], &none, &[], "left to the scheduler");
        check(Placement::AsAsked, &[9], &none, &[9], "pinned to CPU 9");
    }

    #[test]
    fn confined_workers_share_the_first_cpus_that_may_be_used() {
        let all = place(&[1, 5, 6, 7], &[6, 7]);
        let check = |placement: Placement, count, expected: &[usize], words| {
            let mut confined = assignment(placement, &[7]);
            confined.manner.cpus = Some(count);
            check_placed(&confined, &all, &Cpus::Among(expected.to_vec()), words);
        };
        check(Placement::AsAsked, 1, &[1], "confined to CPU 1");
        check(Placement::NearLink, 2, &[1, 5], "confined to CPUs 1 5");
        let why = "as on two hosts".to_owned();
        let words = "confined to CPUs 1 5 6";
        check(Placement::Chosen { why }, 3, &[1, 5, 6], words);
    }

    #[test]
    fn what_was_chosen_stays_where_the_process_may_run() {
        let chosen = || Placement::Chosen {
            why: "as on\ntwo hosts".to_owned(),
        };
        let two = place(&[0, 1], &[]);
        check(
            chosen(),
            &[1],
            &two,
            &[1],
            "pinned to CPU 1: as on two hosts",
        );
        let confined = "left to the scheduler: this agent may only run on CPU 0";
        check(chosen(), &[1], &place(&[0], &[]), &[], confined);
        check(
            chosen(),
            &[],
            &two,
            &[],
            "left to the scheduler: as on two hosts",
        );
    }

    #[test]
    fn near_the_link_is_where_its_node_is() {
        let near = || Placement::NearLink;
        let all: Vec<u32> = (0..8).collect();
        let words = "pinned to CPUs 4-7: the NUMA node of eth0";
        check(
            near(),
            &[],
            &place(&all, &[4, 5, 6, 7]),
            &[4, 5, 6, 7],
            words,
        );
        let words = "pinned to CPU 5: the NUMA node of eth0";
        check(near(), &[], &place(&[1, 5], &[4, 5, 6, 7]), &[5], words);
        let words = "left to the scheduler: every CPU is as near to eth0";
        check(near(), &[], &place(&all, &all), &[], words);
        let words = "left to the scheduler: eth0 belongs to no NUMA node";
        check(near(), &[], &place(&all, &[]), &[], words);
    }

    /// A made host of two nodes of four CPUs, whose CPU numbers alternate between them as on many
    /// servers: eth0 is attached to node 0, eth1 to node 1, and br0 to none.
    #[test]
    fn workers_follow_the_device_of_the_flows_to_its_node() {
        let root = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../linerate-observe/tests/roots/made-2-nodes"
        );
        let check = |placement: Placement, asked: &[u32], device, cpus: &[usize], words: &str| {
            let device = || Some(String::from(device));
            let host = read_cpus(
                &assignment(placement.clone(), asked),
                device,
                Path::new(root),
            );
            check(placement, asked, &host, cpus, words);
        };
        let words = "pinned to CPUs 1 3 5 7: the NUMA node of eth1";
        check(Placement::NearLink, &[], "eth1", &[1, 3, 5, 7], words);
        let words = "pinned to CPUs 0 2 4 6: the NUMA node of eth0";
        check(Placement::NearLink, &[], "eth0", &[0, 2, 4, 6], words);
        let words = "left to the scheduler: br0 belongs to no NUMA node";
        check(Placement::NearLink, &[], "br0", &[], words);
        // Lists of -A are taken as they are, also on the far node.
        check(
            Placement::AsAsked,
            &[0, 2],
            "eth1",
            &[0, 2],
            "pinned to CPUs 0 2",
        );
    }
}
