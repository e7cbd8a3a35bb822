//! What the hosts at hand cannot do.
//!
//! A level that cannot run is left out with its reason; an experiment whose fixed part cannot run
//! is left out as a whole. Nothing is changed in silence.

use std::collections::BTreeMap;

use linerate_model::experiment::{DesignKind, Experiment, Factor, Level};
use linerate_model::manner::Transport;
use linerate_model::number::counted;
use linerate_model::plan::LeftOut;
use linerate_model::workload::Workload;
use linerate_model::{Bytes, Nanos};

use crate::draft::Draft;
use crate::group::{FactorGroup, groups, set_groups};

/// What a plan has to know of the hosts; what is not known is not checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    /// Client hosts that there are, for each of [`link_losses_ppm`](Self::link_losses_ppm) and
    /// beside them.
    pub clients: u32,
    /// Losses on purpose that there are clients for, frames of a million; empty but in a lab.
    pub link_losses_ppm: Vec<u32>,
    /// What can be changed of the hosts themselves; only those of a lab are changed.
    pub knobs: Option<LabKnobs>,
    /// The smallest `net.core.rmem_max` among the hosts, when known.
    pub rmem_max: Option<u64>,
    /// The smallest `net.core.wmem_max` among the hosts, when known.
    pub wmem_max: Option<u64>,
    /// Congestion control algorithms that all hosts have; empty when not known.
    pub congestion: Vec<String>,
    /// The one that streams and requests over TCP use where nothing else is asked for; the hosts'
    /// own when absent.
    pub congestion_unless_asked: Option<String>,
    /// The fewest CPUs that one of them has, when known; what its agent may use of them, it says itself.
    pub cpus_max: Option<u64>,
    /// The rate of the slowest link among those of the hosts; absent where one is not known.
    pub link_bps: Option<u64>,
    /// The longest round trip between the controller and one of them; 0 where it is not known.
    pub round_trip: Nanos,
}

/// What the hosts of a lab let an experiment change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabKnobs {
    /// The largest IP packet that every link between them carries.
    pub mtu_bytes_max: u32,
    /// Levels that some of them did not take, with the reasons; none where nobody has tried.
    pub refused: Vec<(Factor, Level, String)>,
}

impl Hosts {
    /// Returns the first of `factors` with a level that the hosts do not have, that level, and why.
    pub fn lacking<'l>(
        &self,
        factors: &'l [(Factor, Vec<Level>)],
    ) -> Option<(Factor, &'l Level, String)> {
        let levels = factors.iter();
        let mut levels = levels.flat_map(|(factor, levels)| levels.iter().map(|it| (*factor, it)));
        levels.find_map(|(factor, level)| Some((factor, level, self.refuses(factor, level)?)))
    }

    /// Sets the congestion control of `workload`, if one is to be set and nothing else is asked for.
    ///
    /// Connections that last for one exchange keep the hosts' own: they end before it matters, and
    /// a call more for each would be part of what is measured.
    pub(crate) fn settle_congestion(&self, workload: &mut Workload) {
        let lasts = workload.traffic.is_lasting();
        let is_tcp = workload.manner.transport == Transport::Tcp;
        let congestion = &mut workload.options.congestion;
        if lasts && is_tcp && congestion.is_none() {
            congestion.clone_from(&self.congestion_unless_asked);
        }
    }

    /// Returns why sockets cannot have buffers of `size`.
    fn refuses_buffer(&self, size: Bytes) -> Option<String> {
        let limits = [
            ("net.core.rmem_max", self.rmem_max),
            ("net.core.wmem_max", self.wmem_max),
        ];
        let caps: Vec<String> = limits
            .into_iter()
            .filter_map(|(name, limit)| Some((name, limit.filter(|&limit| limit < size.0)?)))
            .map(|(name, limit)| format!("{name} = {limit}"))
            .collect();
        match caps.len() {
            0 => None,
            1 => Some(format!("{} caps it", caps[0])),
            _ => Some(format!("{} cap it", caps.join(" and "))),
        }
    }

    /// Returns why the hosts cannot use the algorithm `name`.
    fn refuses_congestion(&self, name: &str) -> Option<String> {
        let known = self.congestion.is_empty() || self.congestion.iter().any(|has| has == name);
        (!known).then(|| {
            let all = self.congestion.join(" ");
            format!("net.ipv4.tcp_available_congestion_control = {all} lacks it on some host")
        })
    }

    /// Returns why no link can lose `ppm` of a million frames. Links that nobody made lossy are what
    /// is meant by none.
    fn refuses_link_loss(&self, ppm: u32) -> Option<String> {
        let is_there = ppm == 0 || self.link_losses_ppm.contains(&ppm);
        (!is_there).then(|| "only the links of a lab (--lab) can inject loss".to_owned())
    }

    /// Returns why workers cannot be confined to `count` CPUs.
    fn refuses_cpus(&self, count: u64) -> Option<String> {
        let most = self.cpus_max.filter(|most| *most < count)?;
        Some(format!("some host has {}", counted(most, "CPU")))
    }

    /// Returns why `level` of `factor`, a knob, cannot be set on the hosts.
    fn refuses_knob(&self, factor: Factor, level: &Level) -> Option<String> {
        let Some(knobs) = &self.knobs else {
            return Some(format!(
                "{factor} is host-wide and can be varied in a lab (--lab); on these hosts, set it by hand and \
                 measure each level"
            ));
        };
        match (factor, level) {
            (Factor::CongestionDefault, Level::Word(name)) => self.refuses_congestion(name),
            (Factor::Mtu, Level::Size(size)) if size.0 > knobs.mtu_bytes_max.into() => {
                Some(format!(
                    "the lab's links carry {} B; with rates up to 2.5 Gbit/s, or without one (--lab-rate none), they carry more",
                    knobs.mtu_bytes_max
                ))
            }
            // With fewer at one end than at the other, frames of the others pass NAPI and GRO by (`veth_xmit`).
            (Factor::Queues, _) => Some(
                "both ends of a lab's link have the queues that it was made with; measure each number with \
                 --lab-queues"
                    .to_owned(),
            ),
            _ => {
                let mut refused = knobs.refused.iter();
                let why = refused.find(|(of, refused, _)| *of == factor && refused == level);
                why.map(|(.., why)| why.clone())
            }
        }
    }

    /// Returns why `level` of `factor` cannot run here.
    fn refuses(&self, factor: Factor, level: &Level) -> Option<String> {
        if let Some((_, own)) = factor.beside() {
            return match (own, level) {
                (Factor::Clients, Level::Count(count)) if *count > self.clients.into() => Some(
                    format!("there are only {}", counted(self.clients, "client")),
                ),
                _ => self.refuses(own, level),
            };
        }
        match (factor, level) {
            (Factor::SocketBuffer, Level::Size(size)) => self.refuses_buffer(*size),
            (Factor::Congestion, Level::Word(name)) => self.refuses_congestion(name),
            (Factor::LinkLoss, Level::Ppm(ppm)) => self.refuses_link_loss(*ppm),
            (Factor::Cpus, Level::Count(count)) => self.refuses_cpus(*count),
            (Factor::Rate, Level::Ppm(_)) if self.link_bps.is_none() => Some(
                "it is a share of the link's rate, which is not known of every host".to_owned(),
            ),
            _ if factor.knob().is_some() && !level.is_auto() => self.refuses_knob(factor, level),
            _ => None,
        }
    }

    /// Returns why `workload`, the fixed part of an experiment, cannot run here.
    fn refuses_workload(&self, workload: &Workload) -> Option<String> {
        let options = &workload.options;
        let buffer = options.socket_buffer.and_then(|size| {
            let why = self.refuses_buffer(size)?;
            Some(format!("its socket buffer is {size}, and {why}"))
        });
        let congestion = options.congestion.as_deref().and_then(|name| {
            let why = self.refuses_congestion(name)?;
            Some(format!("its congestion control is {name}, and {why}"))
        });
        let loss = workload.link_loss_ppm.and_then(|ppm| {
            let why = self.refuses_link_loss(ppm)?;
            Some(format!("its links lose {}, and {why}", Level::Ppm(ppm)))
        });
        let cpus = workload.manner.cpus.and_then(|count| {
            let why = self.refuses_cpus(count.into())?;
            Some(format!(
                "its workers are confined to {}, and {why}",
                counted(count, "CPU")
            ))
        });
        buffer.or(congestion).or(loss).or(cpus)
    }
}

/// Returns the losses that `drafts` want of links, frames of a million, each with the number of
/// clients that it is wanted for: what a lab has to be made with.
pub fn link_losses(drafts: &[Draft]) -> BTreeMap<u32, u32> {
    let mut losses = BTreeMap::new();
    for Draft { experiment, .. } in drafts {
        let numbers = |factor| {
            let numbers = experiment.levels(factor).iter().filter_map(Level::whole);
            numbers.filter_map(|number| u32::try_from(number).ok())
        };
        let clients = numbers(Factor::Clients).max();
        let clients = clients.unwrap_or(experiment.workload.clients);
        for ppm in numbers(Factor::LinkLoss).chain(experiment.workload.link_loss_ppm) {
            let most = losses.entry(ppm).or_insert(clients);
            *most = clients.max(*most);
        }
    }
    losses
}

/// Returns the levels of knobs that `drafts` want set, each once, but those that no lab takes: what is to be tried on
/// its hosts.
pub fn knob_levels(drafts: &[Draft]) -> Vec<(Factor, Level)> {
    let experiments = drafts.iter().map(|draft| &draft.experiment);
    let levels = experiments.flat_map(|experiment| {
        let factors = experiment.factors.iter();
        let varied =
            factors.flat_map(|(factor, levels)| levels.iter().map(|it| (*factor, it.clone())));
        varied.chain(experiment.search_control().unwrap_or_default())
    });
    let is_tried = |(factor, level): &(Factor, Level)| {
        factor.knob().is_some() && *factor != Factor::Queues && !level.is_auto()
    };
    let mut wanted = Vec::new();
    for one in levels.filter(is_tried) {
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    }
    wanted
}

/// Returns the part of `experiment` that `hosts` can run; what they cannot goes to `left_out`.
pub(crate) fn runnable(
    experiment: &Experiment,
    hosts: &Hosts,
    left_out: &mut Vec<LeftOut>,
) -> Option<Experiment> {
    let mut leave_out = |what: String, why: String| {
        left_out.push(LeftOut {
            chapter: experiment.chapter,
            what,
            why,
        });
    };
    let mut here = Experiment {
        link_bps: hosts.link_bps.filter(|_| has_shares(experiment)),
        ..experiment.clone()
    };
    let mut all = groups(experiment);
    let is_fixed = experiment.levels(Factor::Clients).is_empty();
    // Those that are named cannot be fewer.
    let is_fixed = is_fixed && here.workload.from.is_empty();
    if is_fixed && here.workload.clients > hosts.clients {
        leave_out(
            format!(
                "{}: {}",
                here.name,
                counted(here.workload.clients, "client")
            ),
            fewer_clients(hosts.clients),
        );
        here.workload.clients = hosts.clients;
    }
    for group in &mut all {
        reduce_clients(group, hosts.clients, |what| {
            let what = format!("{}: {what}", experiment.name);
            leave_out(what, fewer_clients(hosts.clients));
        });
        let refused: Vec<Option<String>> = (0..group.levels.len())
            .map(|at| {
                group
                    .part(at)
                    .find_map(|(factor, level)| hosts.refuses(factor, &level))
            })
            .collect();
        let mut reasons: Vec<&String> = Vec::new();
        for why in refused.iter().flatten() {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        for why in reasons {
            let alike = |at: &usize| refused[*at].as_ref() == Some(why);
            let levels: Vec<usize> = (0..refused.len()).filter(alike).collect();
            let what = format!("{}: {}", here.name, group.words_of(&levels));
            leave_out(what, why.clone());
        }
        let mut refused = refused.iter();
        group
            .levels
            .retain(|_| refused.next().is_none_or(Option::is_none));
    }
    for (factor, level) in &mut here.baseline {
        if let (Factor::Clients, Level::Count(count)) = (factor, level) {
            *count = (*count).min(hosts.clients.into());
        }
    }
    if let Some(why) =
        whole_refusal(&here, &all, hosts).or_else(|| nothing_varies(experiment, &all, hosts))
    {
        leave_out(here.name.clone(), why);
        return None;
    }
    set_groups(&mut here, &all);
    Some(here)
}

/// Returns whether rates are given as shares of the link's.
fn has_shares(experiment: &Experiment) -> bool {
    let mut levels = experiment.levels(Factor::Rate).iter();
    levels.any(|level| matches!(level, Level::Ppm(_)))
}

fn fewer_clients(clients: u32) -> String {
    let there = counted(clients, "client");
    format!("there are only {there}; measured with {clients} instead")
}

/// Lowers the number of clients in the levels of `group` to `clients`; tells of each such level.
fn reduce_clients(group: &mut FactorGroup, clients: u32, mut tell: impl FnMut(String)) {
    let Some(column) = group.factors.iter().position(|&f| f == Factor::Clients) else {
        return;
    };
    for at in 0..group.levels.len() {
        if matches!(group.levels[at][column], Level::Count(count) if count > clients.into()) {
            tell(group.words(at));
            group.levels[at][column] = Level::Count(clients.into());
        }
    }
    let mut seen: Vec<Vec<Level>> = Vec::new();
    group.levels.retain(|level| {
        let new = !seen.contains(level);
        seen.push(level.clone());
        new
    });
}

/// Returns why nothing that `experiment` varies can be set here: all that is left of it are the hosts as they are.
fn nothing_varies(experiment: &Experiment, here: &[FactorGroup], hosts: &Hosts) -> Option<String> {
    let is_left_alone = |group: &FactorGroup| match group.levels.as_slice() {
        [only] => only.iter().all(Level::is_auto),
        _ => false,
    };
    if here.is_empty() || !here.iter().all(is_left_alone) {
        return None;
    }
    hosts.lacking(&experiment.factors).map(|(.., why)| why)
}

/// Returns why no part of `experiment` can run.
fn whole_refusal(experiment: &Experiment, groups: &[FactorGroup], hosts: &Hosts) -> Option<String> {
    if let Some(why) = hosts.refuses_workload(&experiment.workload) {
        return Some(why);
    }
    if !experiment.workload.from.is_empty() && experiment.workload.clients_needed() > hosts.clients
    {
        let clients = counted(experiment.workload.clients_needed(), "client");
        return Some(format!(
            "it is for {clients}, and there are {}",
            hosts.clients
        ));
    }
    for group in &experiment.beside {
        let (workload, name) = (&group.workload, &group.name);
        if let Some(why) = hosts.refuses_workload(workload) {
            return Some(format!("of group {name}, {why}"));
        }
        if workload.clients_needed() > hosts.clients {
            let clients = counted(workload.clients_needed(), "client");
            return Some(format!(
                "group {name} is for {clients}, and there are {}",
                hosts.clients
            ));
        }
    }
    if let Some(group) = groups.iter().find(|group| group.levels.is_empty()) {
        return Some(format!("no level of {} can run here", group.factors[0]));
    }
    for (factor, level) in experiment.search_control().unwrap_or_default() {
        if let Some(why) = hosts.refuses(factor, &level) {
            return Some(format!(
                "its condition is relative to {factor} {level}, and {why}"
            ));
        }
    }
    let without_baseline = groups
        .iter()
        .find(|group| group.position(&experiment.baseline).is_none());
    match (experiment.design, without_baseline) {
        (DesignKind::OneAtATime, Some(group)) => {
            let factor = group.factors[0];
            Some(format!("the baseline of {factor} cannot run here"))
        }
        _ => None,
    }
}
