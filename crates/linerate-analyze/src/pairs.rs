//! Hosts that measure with each other: which pairs are slow against the rest, and what most of them have in common.
//!
//! 1. A pair is slow if it is worse than the median of all by more than the run's margin and by more than what pairs vary by
//!    of themselves: so many robust deviations ([`MOVED_DEVIATIONS`]) of the logarithms. A fleet of which half is slow has no
//!    rest to be held against.
//! 2. What they have in common: a host that sends, one that receives, one that does both, a group, or the way from one group to
//!    another. Of these the one whose pairs are slow so much oftener than others that chance makes that least probable
//!    (hypergeometric, one-sided: Fisher, 1935) is named, if that probability, times the number of suspects (Bonferroni), is
//!    below [`ALPHA`], and if most of its pairs are slow. Then the same is asked of the slow pairs that are left.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::HostName;
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::finding::Estimate;
use linerate_model::pairs::Pair;
use linerate_model::response::Better;
use statrs::distribution::{DiscreteCDF, Hypergeometric};

use crate::compare::interval::median;
use crate::dataset::{CellOutcomes, Dataset};
use crate::spoilt::{DEVIATION_OF_MEDIAN, MOVED_DEVIATIONS};
use crate::verdicts::ALPHA;

/// What pairs of hosts came to, all else being the same.
pub(crate) struct Mesh {
    /// What else varies, at the level that these have.
    pub rest: Cell,
    /// The hosts, in the order of the run.
    pub hosts: Vec<HostName>,
    /// What was measured, by pair.
    pub values: BTreeMap<Pair, Estimate>,
    /// The median of all pairs.
    pub median: f64,
    /// Those that are slow against the rest, the slowest first.
    pub slow: Vec<Pair>,
    /// What most of them have in common, what explains most first.
    pub suspects: Vec<Suspect>,
}

/// What pairs may have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Common {
    /// The host that both opens and takes up flows.
    Host(HostName),
    /// The host that opens them.
    From(HostName),
    /// The host that takes them up.
    To(HostName),
    /// Both ends are in a group.
    Within(String),
    /// The way from one group to another.
    Between(String, String),
}

/// Something that explains slow pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// What they have in common.
    pub common: Common,
    /// How many of its pairs are slow.
    pub slow: usize,
    /// Of how many that were measured.
    pub of: usize,
}

impl Common {
    /// Returns it as words that follow "slow pairs": `from n03`.
    pub fn words(&self) -> String {
        match self {
            Self::Host(host) => format!("from and to {host}"),
            Self::From(host) => format!("from {host}"),
            Self::To(host) => format!("to {host}"),
            Self::Within(group) => format!("within {group}"),
            Self::Between(from, to) => format!("from {from} to {to}"),
        }
    }

    /// Returns what to look at.
    pub fn where_to_look(&self) -> String {
        match self {
            Self::Host(host) => format!("the host {host}, its card and its cable"),
            Self::From(host) => format!(
                "what {host} sends by: its card, its driver, its CPUs, its port of the switch"
            ),
            Self::To(host) => {
                format!("what {host} receives by: its port of the switch, its card, its CPUs")
            }
            Self::Within(group) => format!("the switch of {group}"),
            Self::Between(from, to) => format!("the links from {from} to {to}"),
        }
    }
}

/// Returns what the pairs of `cells`, which are those of an experiment, came to; one for each combination of what else varies.
pub(crate) fn meshes(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Vec<Mesh> {
    let Some(experiment) = cells.first().map(|cell| cell.experiment) else {
        return Vec::new();
    };
    let better = Better::of(&experiment.response);
    let mut by_rest: BTreeMap<Cell, BTreeMap<Pair, Estimate>> = BTreeMap::new();
    for cell in cells {
        let mut rest = cell.cell.clone();
        let pair = rest.remove(&Factor::Pair).as_ref().and_then(Level::pair);
        let known = pair.zip(cell.estimate(&experiment.response));
        by_rest.entry(rest).or_default().extend(known);
    }
    let hosts = dataset.hosts();
    let groups: Groups<'_> = hosts
        .iter()
        .map(|host| (&host.name, &host.groups[..]))
        .collect();
    let margin = dataset.recording.document.plan.margins.rate;
    let mesh = |(rest, values): (Cell, BTreeMap<Pair, Estimate>)| {
        let numbers: BTreeMap<&Pair, f64> =
            values.iter().map(|(pair, it)| (pair, it.value)).collect();
        let (middle, slow) = slow(&numbers, better, margin)?;
        let suspects = suspects(&values.keys().collect::<Vec<_>>(), &slow, &groups);
        let named = hosts.iter().map(|host| host.name.clone());
        let is_in = |host: &HostName| {
            values
                .keys()
                .any(|pair| pair.from == *host || pair.to == *host)
        };
        Some(Mesh {
            rest,
            hosts: named.filter(is_in).collect(),
            median: middle,
            slow: slow.into_iter().cloned().collect(),
            suspects,
            values,
        })
    };
    by_rest.into_iter().filter_map(mesh).collect()
}

/// Returns the median of all, and the pairs that are slow against it, the slowest first.
fn slow<'p>(
    values: &BTreeMap<&'p Pair, f64>,
    better: Option<Better>,
    margin: f64,
) -> Option<(f64, Vec<&'p Pair>)> {
    let mut all: Vec<f64> = values
        .values()
        .copied()
        .filter(|value| *value > 0.0)
        .collect();
    let middle = median(&mut all)?;
    let is_high = better != Some(Better::Less);
    // How many times as bad as the median a value is, as a logarithm.
    let badness = |value: f64| {
        let ratio = value.max(f64::MIN_POSITIVE) / middle;
        if is_high { -ratio.ln() } else { ratio.ln() }
    };
    let mut sizes: Vec<f64> = all.iter().map(|value| badness(*value).abs()).collect();
    let deviation = DEVIATION_OF_MEDIAN * median(&mut sizes)?;
    let least = (MOVED_DEVIATIONS * deviation).max(-(-margin).ln_1p());
    let mut slow: Vec<(&Pair, f64)> = values
        .iter()
        .map(|(pair, value)| (*pair, badness(*value)))
        .filter(|(_, badness)| *badness > least)
        .collect();
    slow.sort_by(|one, other| other.1.total_cmp(&one.1));
    Some((middle, slow.into_iter().map(|(pair, _)| pair).collect()))
}

/// Returns what explains the `slow` ones of `measured` pairs.
fn suspects(measured: &[&Pair], slow: &[&Pair], groups: &Groups<'_>) -> Vec<Suspect> {
    let commons: BTreeSet<Common> = measured
        .iter()
        .flat_map(|pair| commons(pair, groups))
        .collect();
    let mut left: BTreeSet<&Pair> = slow.iter().copied().collect();
    let mut open: BTreeSet<&Pair> = measured.iter().copied().collect();
    let mut found = Vec::new();
    while !left.is_empty() {
        let judged = commons.iter().filter_map(|common| {
            let own = open.iter().filter(|pair| is_common(common, pair, groups));
            let (of, slow) = own.fold((0, 0), |(of, slow), pair| {
                (of + 1, slow + usize::from(left.contains(*pair)))
            });
            // What all pairs have in common tells none of them apart.
            let is_part = 0 < slow && of < open.len() && 2 * slow > of;
            let chance = is_part.then(|| chance(open.len(), left.len(), of, slow))?;
            Some((
                chance,
                Suspect {
                    common: common.clone(),
                    slow,
                    of,
                },
            ))
        });
        let best =
            judged.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.of.cmp(&other.1.of)));
        let Some((_, suspect)) = best.filter(|(chance, _)| chance * commons.len() as f64 <= ALPHA)
        else {
            break;
        };
        let is_explained = |pair: &&Pair| is_common(&suspect.common, pair, groups);
        left.retain(|pair| !is_explained(pair));
        open.retain(|pair| !is_explained(pair));
        found.push(suspect);
    }
    found
}

/// Returns the probability that of `of` pairs, drawn from `all` of which `bad` are slow, `slow` or more are.
fn chance(all: usize, bad: usize, of: usize, slow: usize) -> f64 {
    let [all, bad, of, slow] = [all, bad, of, slow].map(|count| count as u64);
    let drawn = Hypergeometric::new(all, bad, of);
    drawn.map_or(1.0, |drawn| match slow {
        0 => 1.0,
        slow => drawn.sf(slow - 1),
    })
}

type Groups<'g> = BTreeMap<&'g HostName, &'g [String]>;

fn commons(pair: &Pair, groups: &Groups<'_>) -> Vec<Common> {
    let mut all = vec![
        Common::Host(pair.from.clone()),
        Common::Host(pair.to.clone()),
        Common::From(pair.from.clone()),
        Common::To(pair.to.clone()),
    ];
    for from in of(&pair.from, groups) {
        all.extend(of(&pair.to, groups).iter().map(|to| {
            if from == to {
                Common::Within(from.clone())
            } else {
                Common::Between(from.clone(), to.clone())
            }
        }));
    }
    all
}

fn of<'g>(host: &HostName, groups: &Groups<'g>) -> &'g [String] {
    groups.get(host).copied().unwrap_or_default()
}

fn is_common(common: &Common, pair: &Pair, groups: &Groups<'_>) -> bool {
    let is_in = |host: &HostName, group: &String| of(host, groups).contains(group);
    match common {
        Common::Host(host) => pair.from == *host || pair.to == *host,
        Common::From(host) => pair.from == *host,
        Common::To(host) => pair.to == *host,
        Common::Within(group) => is_in(&pair.from, group) && is_in(&pair.to, group),
        Common::Between(from, to) => is_in(&pair.from, from) && is_in(&pair.to, to),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(from: usize, to: usize) -> Pair {
        Pair {
            from: format!("n{from}").as_str().into(),
            to: format!("n{to}").as_str().into(),
        }
    }

    fn mesh(count: usize) -> Vec<Pair> {
        let all = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        all.filter(|(from, to)| from != to)
            .map(|(from, to)| pair(from, to))
            .collect()
    }

    /// Hosts in racks of four.
    fn named(pairs: &[Pair], is_slow: impl Fn(&Pair) -> bool) -> Vec<Common> {
        let racks: Vec<(HostName, Vec<String>)> = (0..40)
            .map(|at| {
                (
                    format!("n{at}").as_str().into(),
                    vec![format!("rack{}", at / 4)],
                )
            })
            .collect();
        let groups: Groups<'_> = racks
            .iter()
            .map(|(name, groups)| (name, &groups[..]))
            .collect();
        let all: Vec<&Pair> = pairs.iter().collect();
        let slow: Vec<&Pair> = pairs.iter().filter(|pair| is_slow(pair)).collect();
        let found = suspects(&all, &slow, &groups);
        found.into_iter().map(|suspect| suspect.common).collect()
    }

    #[test]
    fn what_slow_pairs_have_in_common_is_named() {
        let pairs = mesh(8);
        let from = |at: usize| move |pair: &Pair| *pair.from.0 == *format!("n{at}");
        let to = |at: usize| move |pair: &Pair| *pair.to.0 == *format!("n{at}");
        assert_eq!(named(&pairs, from(3)), [Common::From("n3".into())]);
        assert_eq!(named(&pairs, to(5)), [Common::To("n5".into())]);
        let both = named(&pairs, |pair| from(2)(pair) || to(2)(pair));
        assert_eq!(both, [Common::Host("n2".into())]);
        let rack = |host: &HostName| host.0[1..].parse::<usize>().unwrap() / 4;
        let between = named(&pairs, |pair| rack(&pair.from) == 0 && rack(&pair.to) == 1);
        assert_eq!(between, [Common::Between("rack0".into(), "rack1".into())]);
        let two = named(&pairs, |pair| from(1)(pair) || to(6)(pair));
        assert_eq!(two.len(), 2, "{two:?}");
        assert_eq!(
            named(&pairs, |pair| *pair == super::tests::pair(0, 7)),
            [],
            "one pair is no host"
        );
        assert_eq!(named(&pairs, |_| false), []);
    }

    proptest! {
        /// Of pairs that are slow by chance nothing is named oftener than was allowed for.
        #[test]
        fn chance_is_seldom_a_host(slow in proptest::collection::vec(any::<bool>(), 56)) {
            let pairs = mesh(8);
            let at = |pair: &Pair| pairs.iter().position(|one| one == pair).unwrap();
            let found = named(&pairs, |pair| slow[at(pair)]);
            // A suspect has most of its pairs slow, however it came.
            prop_assert!(found.len() <= 4, "{found:?}");
        }

        #[test]
        fn a_pair_is_slow_against_the_rest_alone(noise in proptest::collection::vec(-0.02_f64..0.02, 30), at in 0_usize..30) {
            let pairs = mesh(6);
            let value = |(place, noise): (usize, &f64)| (&pairs[place], 1e9 * noise.exp());
            let mut values: BTreeMap<&Pair, f64> = noise.iter().enumerate().map(value).collect();
            let (_, none) = slow(&values, Some(Better::More), 0.05).unwrap();
            prop_assert!(none.is_empty(), "{none:?}");
            values.insert(&pairs[at], 0.5e9);
            let (_, one) = slow(&values, Some(Better::More), 0.05).unwrap();
            prop_assert_eq!(one, vec![&pairs[at]]);
            let (_, none) = slow(&values, Some(Better::Less), 0.05).unwrap();
            prop_assert!(none.is_empty(), "what is lower is better there");
        }
    }

    #[test]
    fn pairs_that_are_all_alike_have_no_slow_one_but_beyond_the_margin() {
        let pairs = mesh(4);
        let mut values: BTreeMap<&Pair, f64> = pairs.iter().map(|pair| (pair, 941e6)).collect();
        values.insert(&pairs[0], 0.96 * 941e6);
        assert!(
            slow(&values, Some(Better::More), 0.05)
                .unwrap()
                .1
                .is_empty()
        );
        values.insert(&pairs[0], 0.94 * 941e6);
        assert_eq!(
            slow(&values, Some(Better::More), 0.05).unwrap().1,
            [&pairs[0]]
        );
    }
}
