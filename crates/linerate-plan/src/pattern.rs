//! From the hosts of a fleet to the pairs that measure, round by round.
//!
//! 1. *pairs*: hosts 1 and 2, 3 and 4, …; of two groups the first of each, the second of each, …
//! 2. *permutation*: a random permutation without a fixed point, drawn from the seed: each host sends once and
//!    receives once, at the same time.
//! 3. *mesh*: each ordered pair once. In rounds, a device carries one test at a time: the rounds are those of a
//!    tournament of everyone against everyone by the circle method (Kirkman, 1847), each played twice, the second time the
//!    other way: 2(n − 1) rounds of n/2 pairs, or 2n of (n − 1)/2 where n is odd. At once it is one round.
//! 4. *racks*: each host of one group with each of the other, in as many rounds as the larger group has hosts.
//! 5. *bisection*: the first half of the hosts with the second, both ways, in one round: what crosses the middle.
//!
//! Of hosts with several devices the first meets the first of others, the second the second: the pattern is that of each of
//! these, and their rounds go on at the same time. Where all meet one it is the first of each.

use linerate_model::HostName;
use linerate_model::experiment::{DesignKind, Factor, Level};
use linerate_model::fleet::{FleetHost, Role};
use linerate_model::manner::Named as _;
use linerate_model::pairs::{Pair, Pairs, Pattern};
use linerate_model::workload::Direction;
use rand::SeedableRng as _;
use rand_pcg::Pcg64;

use crate::draft::Draft;
use crate::order::shuffle;

/// What is asked of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternAsked {
    /// Which one.
    pub pattern: Pattern,
    /// All of its pairs at the same time.
    pub at_once: bool,
    /// The two groups that it is between, where it is.
    pub groups: Option<(String, String)>,
    /// Where what is drawn comes from.
    pub seed: u64,
}

/// Why hosts make no such pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There are too few hosts that may open flows, or take them up.
    #[error("{pattern} needs {needs}, but there {}", are(*.found))]
    TooFew {
        /// The pattern.
        pattern: &'static str,
        /// What it needs.
        needs: &'static str,
        /// How many there are.
        found: usize,
    },
    /// No host is in the group.
    #[error("no host is in the group `{group}`; there are {}", named(.known))]
    Group {
        /// The group.
        group: String,
        /// The groups that there are.
        known: Vec<String>,
    },
}

fn are(count: usize) -> String {
    match count {
        0 => "is none".to_owned(),
        1 => "is 1".to_owned(),
        count => format!("are {count}"),
    }
}

fn named(groups: &[String]) -> String {
    match groups {
        [] => "no groups".to_owned(),
        groups => format!("`{}`", groups.join("`, `")),
    }
}

/// Returns the pairs of `hosts` that `asked` stands for; those of [`Pattern::ManyToOne`] and [`Pattern::OneToMany`] are the
/// clients of one trial, in one round.
pub fn pairs(hosts: &[FleetHost], asked: &PatternAsked) -> Result<Pairs, PatternError> {
    let pattern = asked.pattern;
    let all: Vec<Vec<FleetHost>> = hosts.iter().map(FleetHost::devices).collect();
    let with_device = |device: usize| {
        let own = all.iter().filter_map(|devices| devices.get(device));
        own.cloned().collect::<Vec<_>>()
    };
    let mut rounds = rounds_of(&with_device(0), asked)?;
    let meets_one = matches!(pattern, Pattern::ManyToOne | Pattern::OneToMany);
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    // A device that few have may have nobody to meet.
    let others = (1..most).filter(|_| !meets_one);
    let others = others.filter_map(|device| rounds_of(&with_device(device), asked).ok());
    for of_device in others {
        rounds.resize_with(rounds.len().max(of_device.len()), Vec::new);
        for (round, own) in rounds.iter_mut().zip(of_device) {
            round.extend(own);
        }
    }
    Ok(Pairs { pattern, rounds })
}

/// Returns the rounds in which `hosts` meet as `asked`.
fn rounds_of(hosts: &[FleetHost], asked: &PatternAsked) -> Result<Vec<Vec<Pair>>, PatternError> {
    let pattern = asked.pattern;
    let few = |needs, found| PatternError::TooFew {
        pattern: pattern.word(),
        needs,
        found,
    };
    let (from, to) = match &asked.groups {
        Some((from, to)) => (group(hosts, from)?, group(hosts, to)?),
        None => (hosts.iter().collect(), hosts.iter().collect()),
    };
    let from: Vec<&HostName> = with(&from, Role::Server);
    let to: Vec<&HostName> = with(&to, Role::Client);
    let pair = |from: &HostName, to: &HostName| Pair {
        from: from.clone(),
        to: to.clone(),
    };
    let rounds: Vec<Vec<Pair>> = match pattern {
        Pattern::ManyToOne | Pattern::OneToMany => {
            let one = to
                .first()
                .ok_or_else(|| few("a host that may take up flows", 0))?;
            let many: Vec<Pair> = from
                .iter()
                .filter(|host| *host != one)
                .map(|host| pair(host, one))
                .collect();
            vec![many]
        }
        Pattern::Pairs if asked.groups.is_none() => {
            let all: Vec<&HostName> = hosts.iter().map(|host| &host.name).collect();
            vec![
                all.chunks_exact(2)
                    .map(|two| pair(two[0], two[1]))
                    .collect(),
            ]
        }
        Pattern::Pairs => vec![
            from.iter()
                .zip(&to)
                .map(|(from, to)| pair(from, to))
                .collect(),
        ],
        Pattern::Permutation => {
            let all: Vec<&HostName> = from
                .iter()
                .filter(|host| to.contains(host))
                .copied()
                .collect();
            if all.len() < 2 {
                return Err(few(
                    "two hosts that may both open and take up flows",
                    all.len(),
                ));
            }
            let places = derangement(all.len(), asked.seed);
            vec![
                (0..all.len())
                    .map(|at| pair(all[at], all[places[at]]))
                    .collect(),
            ]
        }
        Pattern::Mesh => {
            let may_open = |host: &HostName| from.contains(&host);
            let may_take = |host: &HostName| to.contains(&host);
            let all: Vec<&HostName> = hosts.iter().map(|host| &host.name).collect();
            let all: Vec<&HostName> = all
                .into_iter()
                .filter(|host| may_open(host) || may_take(host))
                .collect();
            let once = tournament(all.len());
            let ways = [false, true].into_iter();
            let rounds = ways.flat_map(|back| {
                let all = &all;
                once.iter().map(move |round| {
                    let both = round
                        .iter()
                        .map(|&(one, other)| if back { (other, one) } else { (one, other) });
                    both.map(|(from, to)| (all[from], all[to]))
                        .filter(|(from, to)| may_open(from) && may_take(to))
                        .map(|(from, to)| pair(from, to))
                        .collect::<Vec<_>>()
                })
            });
            rounds.collect()
        }
        Pattern::Racks => {
            let most = from.len().max(to.len());
            let round = |round: usize| {
                let fewer_to = to.len() <= from.len();
                let pairs = (0..from.len().min(to.len())).map(|at| {
                    let other = (at + round) % most;
                    if fewer_to { (other, at) } else { (at, other) }
                });
                pairs
                    .map(|(one, other)| pair(from[one], to[other]))
                    .filter(|pair| pair.from != pair.to)
                    .collect()
            };
            (0..most).map(round).collect()
        }
        Pattern::Bisection => {
            let half = hosts.len() / 2;
            let (one, other) = match &asked.groups {
                Some(_) => (from.clone(), to.clone()),
                None => {
                    let names: Vec<&HostName> = hosts.iter().map(|host| &host.name).collect();
                    (names[..half].to_vec(), names[half..2 * half].to_vec())
                }
            };
            let both = one.iter().zip(&other);
            vec![
                both.flat_map(|(one, other)| [pair(one, other), pair(other, one)])
                    .collect(),
            ]
        }
    };
    let mut rounds: Vec<Vec<Pair>> = rounds
        .into_iter()
        .filter(|round| !round.is_empty())
        .collect();
    if rounds.is_empty() {
        return Err(few("at least two hosts", hosts.len()));
    }
    if asked.at_once {
        rounds = vec![rounds.concat()];
    }
    Ok(rounds)
}

/// Returns the hosts but those that are only `other`.
fn with<'h>(hosts: &[&'h FleetHost], other: Role) -> Vec<&'h HostName> {
    let may = hosts.iter().filter(|host| host.role != other);
    may.map(|host| &host.name).collect()
}

fn group<'h>(hosts: &'h [FleetHost], name: &str) -> Result<Vec<&'h FleetHost>, PatternError> {
    let own: Vec<&FleetHost> = hosts
        .iter()
        .filter(|host| host.groups.iter().any(|group| group == name))
        .collect();
    if own.is_empty() {
        let mut known: Vec<String> = hosts.iter().flat_map(|host| host.groups.clone()).collect();
        known.sort();
        known.dedup();
        return Err(PatternError::Group {
            group: name.to_owned(),
            known,
        });
    }
    Ok(own)
}

/// Returns a permutation of `count` places, two or more, that leaves none where it is, each with the same probability:
/// permutations are drawn until one is, which takes e of them on average.
fn derangement(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut places: Vec<usize> = (0..count).collect();
    loop {
        shuffle(&mut places, &mut random);
        if places.iter().enumerate().all(|(at, place)| at != *place) {
            return places;
        }
    }
}

/// Returns the rounds in which each of `count` meets each other once and nobody twice in a round (the circle method).
fn tournament(count: usize) -> Vec<Vec<(usize, usize)>> {
    // Where the number is odd, whoever would meet one that is not there rests.
    let seats = count + count % 2;
    let round = |round: usize| {
        let seat = |at: usize| {
            if at == 0 {
                0
            } else {
                1 + (at - 1 + round) % (seats - 1)
            }
        };
        let pairs = (0..seats / 2).map(|at| (seat(at), seat(seats - 1 - at)));
        pairs
            .filter(|&(one, other)| one < count && other < count)
            .collect()
    };
    (1..seats).map(round).collect()
}

/// Returns `draft` as the hosts of `pairs` measure it: with the pair as its first factor, or, where one host meets all
/// others, with these as its clients.
pub fn paired(draft: &Draft, pairs: Pairs) -> Draft {
    let mut draft = draft.clone();
    let experiment = &mut draft.experiment;
    let count = pairs.all().count() as u32;
    match pairs.pattern {
        Pattern::ManyToOne | Pattern::OneToMany => {
            experiment.workload.clients = count;
            experiment.workload.connections = experiment.workload.connections.max(count);
            if let Some((direction, _)) = experiment.workload.traffic.stream_mut() {
                *direction = match pairs.pattern {
                    Pattern::OneToMany => Direction::FromServer,
                    _ => Direction::ToServer,
                };
            }
        }
        _ => {
            let levels: Vec<Level> = pairs.all().map(Level::from).collect();
            draft.budget.core.insert(Factor::Pair, levels.clone());
            experiment.factors.insert(0, (Factor::Pair, levels));
            experiment.design = DesignKind::Full;
        }
    }
    experiment.pairs = Some(pairs);
    draft
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn fleet(count: usize) -> Vec<FleetHost> {
        let host = |at: usize| FleetHost {
            name: format!("n{at}").as_str().into(),
            control: format!("n{at}"),
            data: Vec::new(),
            role: Role::Any,
            groups: vec![format!("rack{}", at % 2)],
        };
        (0..count).map(host).collect()
    }

    fn asked(pattern: Pattern) -> PatternAsked {
        PatternAsked {
            pattern,
            at_once: false,
            groups: None,
            seed: 7,
        }
    }

    fn is_once_a_round(round: &[Pair]) -> bool {
        let mut seen = BTreeSet::new();
        round
            .iter()
            .all(|pair| seen.insert(&pair.from) && seen.insert(&pair.to))
    }

    #[test]
    fn devices_meet_those_of_their_number_at_the_same_time() {
        let mut hosts = fleet(4);
        for (at, host) in (1_u8..).zip(&mut hosts) {
            host.data = (0..if at == 4 { 1 } else { 2 })
                .map(|device| std::net::Ipv4Addr::new(10, device, 0, at).into())
                .collect();
        }
        let mesh = pairs(&hosts, &asked(Pattern::Mesh)).unwrap();
        assert!(mesh.rounds.iter().all(|round| is_once_a_round(round)));
        let of = |device: &str| {
            let own = mesh.all().filter(|pair| pair.from.0.ends_with(device));
            own.inspect(|pair| assert!(pair.to.0.ends_with(device) || pair.to.0 == "n3".into()))
                .count()
        };
        // The fourth has one device, which is its first.
        assert_eq!((of("/1"), of("/2"), mesh.all().count()), (9, 6, 18));
        assert_eq!(
            mesh.rounds.len(),
            6,
            "rounds of both go on at the same time"
        );
        let incast = pairs(&hosts, &asked(Pattern::ManyToOne)).unwrap();
        assert_eq!(incast.all().count(), 3, "of each its first");
    }

    proptest! {
        #[test]
        fn a_mesh_has_each_pair_once_and_a_device_one_test_at_a_time(count in 2_usize..40) {
            let mesh = pairs(&fleet(count), &asked(Pattern::Mesh)).unwrap();
            let all: BTreeSet<&Pair> = mesh.all().collect();
            prop_assert_eq!(all.len(), count * (count - 1));
            prop_assert_eq!(mesh.all().count(), all.len());
            prop_assert!(mesh.rounds.iter().all(|round| is_once_a_round(round)));
            prop_assert_eq!(mesh.rounds.len(), if count % 2 == 0 { 2 * (count - 1) } else { 2 * count });
            let at_once = PatternAsked { at_once: true, ..asked(Pattern::Mesh) };
            prop_assert_eq!(pairs(&fleet(count), &at_once).unwrap().rounds.len(), 1);
        }

        #[test]
        fn a_permutation_leaves_nobody_alone(count in 2_usize..40, seed in any::<u64>()) {
            let drawn = PatternAsked { seed, ..asked(Pattern::Permutation) };
            let drawn = pairs(&fleet(count), &drawn).unwrap();
            prop_assert_eq!(drawn.rounds.len(), 1);
            let from: BTreeSet<_> = drawn.all().map(|pair| &pair.from).collect();
            let to: BTreeSet<_> = drawn.all().map(|pair| &pair.to).collect();
            prop_assert_eq!((from.len(), to.len()), (count, count));
            prop_assert!(drawn.all().all(|pair| pair.from != pair.to));
        }

        #[test]
        fn racks_meet_each_host_of_the_other(count in 2_usize..30) {
            let between = PatternAsked { groups: Some(("rack0".into(), "rack1".into())), ..asked(Pattern::Racks) };
            let crossed = pairs(&fleet(count), &between).unwrap();
            let all: BTreeSet<&Pair> = crossed.all().collect();
            prop_assert_eq!(all.len(), count.div_ceil(2) * (count / 2));
            prop_assert_eq!(crossed.all().count(), all.len());
            prop_assert!(crossed.rounds.iter().all(|round| is_once_a_round(round)));
        }
    }

    #[test]
    fn hosts_are_what_they_may_be() {
        let mut hosts = fleet(4);
        hosts[0].role = Role::Server;
        hosts[1].role = Role::Client;
        let mesh = pairs(&hosts, &asked(Pattern::Mesh)).unwrap();
        assert!(
            mesh.all()
                .all(|pair| &*pair.from.0 != "n0" && &*pair.to.0 != "n1")
        );
        assert_eq!(
            mesh.all().count(),
            7,
            "of twelve three begin at n0, three end at n1, one does both"
        );
        let many = pairs(&hosts, &asked(Pattern::ManyToOne)).unwrap();
        assert!(many.all().all(|pair| &*pair.to.0 == "n0"));
        assert_eq!(many.all().count(), 3);
        let both = pairs(&hosts, &asked(Pattern::Bisection)).unwrap();
        assert_eq!(both.all().count(), 4);
        let unknown = PatternAsked {
            groups: Some(("rack0".into(), "attic".into())),
            ..asked(Pattern::Racks)
        };
        let refused = pairs(&hosts, &unknown).unwrap_err().to_string();
        assert!(
            refused.contains("attic") && refused.contains("rack1"),
            "{refused}"
        );
        assert!(pairs(&fleet(1), &asked(Pattern::Mesh)).is_err());
    }
}
