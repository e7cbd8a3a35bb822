//! Traffic that goes beside other traffic in one trial.
//!
//! A trial is a list of groups: its own workload is the first, and `beside` are the others. All start at one
//! instant, and each has flows and responses of its own. The flows of a trial are numbered through its groups,
//! so that a flow's number tells its group.

use crate::FlowId;
pub use crate::group_name::{GROUP_NAME_CHARS_MAX, GroupName};
use crate::manner::{Named, Transport};
use crate::workload::{FLOWS_MAX, FlowPlan, Group, Kind, Workload, WorkloadError};

/// The most groups that one trial may have: each has worker threads of its own.
pub const GROUPS_MAX: usize = 8;
/// Groups that cannot be one trial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// There are too many.
    #[error("{0} groups, but a trial has at most {GROUPS_MAX}")]
    TooMany(usize),
    /// A name is none.
    #[error(
        "`{0}` is no name of a group: it has 1 to {GROUP_NAME_CHARS_MAX} lower-case letters, digits and hyphens"
    )]
    Name(String),
    /// Two have the same name.
    #[error("two groups are called `{0}`")]
    SameName(String),
    /// What one group asks for cannot be had beside another.
    #[error("group `{name}` {why}")]
    Alone {
        /// Its name.
        name: String,
        /// What it asks for, and why it is alone.
        why: &'static str,
    },
    /// All have more flows than a trial may.
    #[error("{0} flows in all groups, but a trial has at most {FLOWS_MAX}")]
    Flows(u64),
    /// A workload is none.
    #[error("group `{name}`")]
    Workload {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: WorkloadError,
    },
}

/// Returns the name of a group that was given none.
pub fn name_of(kind: Kind) -> &'static str {
    let known = Kind::NAMES.iter().find(|(_, known)| *known == kind);
    known.map_or("", |(name, _)| name)
}

/// Returns the names of groups, in order: of `first`, and of those `beside` it.
pub fn names<'g>(first: &Workload, beside: &'g [Group]) -> impl Iterator<Item = &'g str> {
    let beside = beside.iter().map(|group| &*group.name);
    std::iter::once(name_of(first.traffic.kind())).chain(beside)
}

/// Returns the flows of all groups, numbered through.
pub fn flows<'a>(workloads: impl IntoIterator<Item = &'a Workload>) -> Vec<FlowPlan> {
    let mut all: Vec<FlowPlan> = Vec::new();
    for (group, workload) in (0..).zip(workloads) {
        let before = all.len() as u32;
        all.extend(workload.flows().into_iter().map(|plan| FlowPlan {
            flow: FlowId(before + plan.flow.0),
            group,
            ..plan
        }));
    }
    all
}

/// Checks that `first` and the groups `beside` it can be one trial.
pub fn check(first: &Workload, beside: &[Group]) -> Result<(), GroupError> {
    if beside.is_empty() {
        return Ok(());
    }
    let count = 1 + beside.len();
    if count > GROUPS_MAX {
        return Err(GroupError::TooMany(count));
    }
    let first_name = name_of(first.traffic.kind());
    let named = beside.iter().map(|group| (&*group.name, &group.workload));
    let all: Vec<(&str, &Workload)> = std::iter::once((first_name, first)).chain(named).collect();
    for (at, (name, workload)) in all.iter().enumerate() {
        let name = (*name).to_owned();
        if GroupName::new(&name).is_none() {
            return Err(GroupError::Name(name));
        }
        if all[..at].iter().any(|(other, _)| *other == name) {
            return Err(GroupError::SameName(name));
        }
        if let Some(why) = alone(workload) {
            return Err(GroupError::Alone { name, why });
        }
        let check = workload.check();
        check.map_err(|source| GroupError::Workload { name, source })?;
    }
    let placed = all.iter().filter(|(_, it)| it.traffic.is_placed());
    if let Some((name, _)) = placed.skip(1).last() {
        return Err(GroupError::Alone {
            name: (*name).to_owned(),
            why: "makes connections one after another, which only one group of a trial can",
        });
    }
    let flows = all.iter().map(|(_, it)| u64::from(it.connections)).sum();
    if flows > u64::from(FLOWS_MAX) {
        return Err(GroupError::Flows(flows));
    }
    Ok(())
}

/// Returns what a workload asks for that no other can go on beside, if it does.
pub fn alone(workload: &Workload) -> Option<&'static str> {
    let manner = &workload.manner;
    if manner.bytes_max.is_some() {
        Some("ends with a volume, and groups end together: give a time instead")
    } else if manner.transport == Transport::Unix {
        Some("goes over Unix sockets, and groups share a path between hosts")
    } else if workload.link_loss_ppm.is_some() {
        Some("asks for links that lose frames, and groups share the links of the trial")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::Bytes;
    use crate::workload::{Direction, Part};

    use super::*;

    fn group(name: &str, workload: Workload) -> Group {
        Group {
            name: name.to_owned(),
            workload,
        }
    }

    #[test]
    fn flows_are_numbered_through_the_groups() {
        let first = Workload {
            connections: 3,
            clients: 2,
            ..Workload::stream(Direction::ToServer)
        };
        let probe = Workload::of(Kind::Rr);
        let flows = flows([&first, &probe]);
        let told: Vec<_> = flows
            .iter()
            .map(|plan| {
                (
                    plan.flow.0,
                    plan.group,
                    plan.from,
                    plan.to,
                    plan.client_part,
                )
            })
            .collect();
        let expected = [
            (0, 0, 1, 0, Part::Sender),
            (1, 0, 2, 0, Part::Sender),
            (2, 0, 1, 0, Part::Sender),
            (3, 1, 1, 0, Part::Requester),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn groups_that_cannot_be_one_trial_are_refused_by_name() {
        let stream = || Workload::stream(Direction::ToServer);
        let check = |beside: Vec<Group>| super::check(&stream(), &beside);
        let rr = || Workload::of(Kind::Rr);
        assert_eq!(check(vec![group("probe", rr())]), Ok(()));
        let same = check(vec![group("stream", rr())]);
        assert_eq!(same, Err(GroupError::SameName("stream".to_owned())));
        let named = check(vec![group("A b", rr())]);
        assert_eq!(named, Err(GroupError::Name("A b".to_owned())));
        let mut volume = stream();
        volume.manner.bytes_max = Some(Bytes(1));
        let mut unix = stream();
        unix.manner.transport = Transport::Unix;
        for alone in [volume, unix] {
            let refused = check(vec![group("x", alone)]);
            assert!(matches!(refused, Err(GroupError::Alone { name, .. }) if name == "x"));
        }
        let crr = || Workload::of(Kind::Crr);
        let two = check(vec![group("a", crr()), group("b", crr())]);
        assert!(matches!(two, Err(GroupError::Alone { name, .. }) if name == "b"));
        let mut many = rr();
        many.connections = FLOWS_MAX;
        let flows = check(vec![group("many", many)]);
        assert_eq!(flows, Err(GroupError::Flows(u64::from(FLOWS_MAX) + 1)));
        let eight = (0..8).map(|at| group(&format!("g{at}"), rr())).collect();
        assert_eq!(check(eight), Err(GroupError::TooMany(9)));
    }
}
