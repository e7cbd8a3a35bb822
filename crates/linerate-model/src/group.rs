//! Traffic that goes beside other traffic in one trial.
//!
//! A trial is a list of groups: its own workload is the first, and `beside` are the others. All start at one
//! instant, and each has flows and responses of its own. The flows of a trial are numbered through its groups,
//! so that a flow's number tells its group.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::FlowId;
use crate::experiment::Factor;
use crate::manner::{Named, Transport};
use crate::parameter::{PARAMETERS, Parameter};
use crate::workload::{FLOWS_MAX, FlowPlan, Group, Kind, Workload, WorkloadError};

/// The most groups that one trial may have: each has worker threads of its own.
pub const GROUPS_MAX: usize = 8;
/// The longest name of a group: it stands in front of every line of its own.
pub const GROUP_NAME_CHARS_MAX: usize = 16;

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

/// The name of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName {
    /// The letters, and zeros behind them.
    letters: [u8; GROUP_NAME_CHARS_MAX],
}

impl GroupName {
    /// Returns `name` as one, if it is one.
    pub fn new(name: &str) -> Option<Self> {
        let mut letters = [0; GROUP_NAME_CHARS_MAX];
        if !is_name(name) {
            return None;
        }
        letters[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { letters })
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        let end = self.letters.iter().position(|letter| *letter == 0);
        let letters = &self.letters[..end.unwrap_or(GROUP_NAME_CHARS_MAX)];
        std::str::from_utf8(letters).unwrap_or_default()
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A parameter of a group beside the workload, as a factor: `probe.connections`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct GroupFactor {
    group: GroupName,
    /// Its place among the parameters of a workload.
    at: usize,
}

impl GroupFactor {
    /// Returns `factor` of `group`; absent for what is no parameter of a workload.
    pub fn new(group: GroupName, factor: Factor) -> Option<Self> {
        let is_own = |it: &Parameter| it.factor.is_some_and(|known| known.0 == factor);
        let at = PARAMETERS.iter().position(is_own)?;
        Some(Self { group, at })
    }

    /// Returns the group.
    pub fn group(self) -> GroupName {
        self.group
    }

    /// Returns what varies of it.
    pub fn parameter(self) -> &'static Parameter {
        &PARAMETERS[self.at]
    }

    /// Returns the same of the experiment's own workload.
    pub fn factor(self) -> Option<Factor> {
        Some(self.parameter().factor?.0)
    }
}

impl fmt::Display for GroupFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.group, self.parameter().key)
    }
}

impl From<GroupFactor> for String {
    fn from(of: GroupFactor) -> Self {
        of.to_string()
    }
}

impl TryFrom<String> for GroupFactor {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match Factor::named(&name) {
            Some(Factor::Beside(of)) => Ok(of),
            _ => Err(format!("`{name}` is no factor")),
        }
    }
}

/// Returns the name of a group that was given none.
pub fn name_of(kind: Kind) -> &'static str {
    let known = Kind::NAMES.iter().find(|(_, known)| *known == kind);
    known.map_or("", |(name, _)| name)
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
        if !is_name(&name) {
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

fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=GROUP_NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_fit)
}

#[cfg(test)]
mod tests {
    use crate::Bytes;
    use crate::experiment::{Cell, Level};
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
    fn a_factor_of_a_group_is_written_and_read_by_its_name() {
        let name = GroupName::new("a-name-of-16-let").expect("a name");
        assert_eq!(name.as_str(), "a-name-of-16-let");
        let factor = Factor::Connections.of(name).expect("a factor of a group");
        let cell = Cell::from([
            (Factor::Connections, Level::Count(2)),
            (factor, Level::Count(8)),
        ]);
        let written = serde_json::to_value(&cell).expect("it is plain data");
        let expected = serde_json::json!({
            "connections": { "count": 2 },
            "a-name-of-16-let.connections": { "count": 8 },
        });
        assert_eq!(written, expected);
        let text = written.to_string();
        assert_eq!(
            serde_json::from_str::<Cell>(&text).expect("it was written"),
            cell
        );
        assert_eq!(factor.beside(), Some((name, Factor::Connections)));
        for none in [
            "connection",
            "A.connections",
            "probe.mtu",
            "a.b.connections",
            ".nagle",
        ] {
            assert_eq!(Factor::named(none), None, "{none}");
            let text = format!("\"{none}\"");
            serde_json::from_str::<Factor>(&text).expect_err(none);
        }
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
