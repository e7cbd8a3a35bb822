//! What a seed stands for: hosts, a plan, and what happens.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::experiment::{Cell, Experiment, Timing};
use linerate_model::fleet::InStep;
use linerate_model::plan::{Plan, Trial};
use linerate_model::run::{Admission, HostPart};
use linerate_model::workload::{Direction, Workload};
use linerate_model::{Nanos, TrialId};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use super::Time;
use super::host::{Affliction, Fate, Fault, Servers, SimulatedAgent, Wrong};
use crate::fleet::HostSpec;
use crate::run::{Placing, Repeats, RunRequest, WarmUp};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A run with all that happens to it.
pub(super) struct Scenario {
    pub request: RunRequest,
    pub hosts: Hosts,
    pub interrupt_ns: u64,
    pub disk: Storage,
    /// How the hosts are asked for.
    pub admission: Admission,
    /// Whether valid trials must be right: nobody lies.
    pub is_told_truly: bool,
}

/// Where the run is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Storage {
    /// Whether in a bundle, which takes longer than all the rest of a scenario; in memory otherwise.
    pub is_kept: bool,
    pub trouble: Option<Trouble>,
}

/// What is wrong with a disk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    /// It is full after so many events.
    Full(usize),
    /// Each event takes so long.
    Slow(Duration),
}

/// The hosts, the server first.
pub(super) struct Hosts {
    fates: Vec<Fate>,
    agents: std::cell::OnceCell<Vec<Arc<SimulatedAgent>>>,
}

const NAMES: [&str; 3] = ["server", "client1", "client2"];

pub(super) fn name_of(at: usize) -> String {
    NAMES
        .get(at)
        .map_or_else(|| format!("n{at}"), |name| (*name).to_owned())
}

impl Hosts {
    fn new(fates: Vec<Fate>) -> Self {
        Self {
            fates,
            agents: std::cell::OnceCell::new(),
        }
    }

    /// Returns the hosts of a run whose agents live in `time`.
    pub fn specs(&self, time: &Arc<Time>) -> Vec<HostSpec> {
        let agents = self.agents.get_or_init(|| {
            let servers = Servers::default();
            let agent = |(at, fate): (usize, &Fate)| {
                SimulatedAgent::new(&name_of(at), fate.clone(), time, Arc::clone(&servers))
            };
            let agents = self.fates.iter().enumerate().map(agent).map(Arc::new);
            let agents: Vec<Arc<SimulatedAgent>> = agents.collect();
            // Of a fleet flows arrive at each host.
            let taking = if agents.len() > NAMES.len() {
                agents.len()
            } else {
                1
            };
            let _ = servers.set(agents[..taking].iter().map(Arc::downgrade).collect());
            agents
        });
        let spec = |(at, agent): (usize, &Arc<SimulatedAgent>)| {
            let part = if at == 0 {
                HostPart::Server
            } else {
                HostPart::Client
            };
            let [_, _, high, low] = (1 + at as u32).to_be_bytes();
            let address = ([10, 0, high, low], 5201).into();
            HostSpec::new(&*name_of(at), part, Arc::clone(agent) as Arc<_>, address)
        };
        agents.iter().enumerate().map(spec).collect()
    }

    /// Returns how often the run asked for each host.
    pub fn requests(&self) -> Vec<u64> {
        let agents = self.agents.get().into_iter().flatten();
        agents.map(|agent| agent.requests()).collect()
    }

    /// Holds that nothing of the run is left at any host.
    pub fn nothing_is_left(&self, time: &Time) {
        for agent in self.agents.get().into_iter().flatten() {
            agent.nothing_is_left(time.now_ns());
        }
    }
}

impl Scenario {
    /// Returns the same, but that no answer of the server arrives `during_ns`, and then each is late for
    /// as long again.
    pub fn with_silence(mut self, during_ns: Range<u64>, late_ns: u64) -> Self {
        let length_ns = during_ns.end - during_ns.start;
        let after_ns = during_ns.end..during_ns.end + length_ns;
        self.hosts.fates[0].faults = vec![
            Fault {
                during_ns,
                what: Affliction::AnswersLost,
            },
            Fault {
                during_ns: after_ns,
                what: Affliction::Slow {
                    there_ns: 0,
                    back_ns: late_ns,
                },
            },
        ];
        self
    }

    /// Returns the same, but for a jump of the clock of the host at that place.
    pub fn with_jump(mut self, at: usize, jump: (u64, i64)) -> Self {
        self.hosts.fates[at].clock.jump = Some(jump);
        self
    }

    /// Returns the same, but for what happens to the host at that place.
    pub fn with_fault(mut self, at: usize, during_ns: Range<u64>, what: Affliction) -> Self {
        self.hosts.fates[at].faults.push(Fault { during_ns, what });
        self
    }
}

/// Returns a run of so many trials on two hosts to which nothing happens, and for which it waits if others
/// have them.
pub(super) fn quiet(trials: u32, measure: Duration) -> Scenario {
    let fate = || Fate {
        seed: 1,
        latency_ns: (100_000, 10_000),
        ..Fate::default()
    };
    let timing = Timing {
        settle: Nanos(0),
        warm_up: Nanos::from_ms(200),
        measure: Nanos(measure.as_nanos() as u64),
        drain: Nanos(0),
    };
    Scenario {
        request: request(plan(trials, 1, 1, timing), Nanos::from_ms(250)),
        hosts: Hosts::new(vec![fate(), fate()]),
        interrupt_ns: u64::MAX,
        disk: Storage::default(),
        admission: Admission::Queued,
        is_told_truly: true,
    }
}

/// Returns a run of `rounds` on `count` hosts, each of which sends to the next but so many and receives from another.
pub(super) fn fleet(count: usize, rounds: u32) -> Scenario {
    let mut scenario = quiet(0, Duration::from_secs(1));
    let latency = |at: usize| Fate {
        seed: at as u64,
        latency_ns: (100_000, 10_000),
        ..Fate::default()
    };
    scenario.hosts = Hosts::new((0..count).map(latency).collect());
    let plan = &mut scenario.request.plan;
    let first = self::plan(1, 1, 1, plan.experiments[0].timing)
        .trials
        .remove(0);
    let trial = |(id, (step, at)): (u32, (u32, usize))| Trial {
        id: TrialId(id),
        replicate: step,
        hosts: [(at + step as usize) % count, at]
            .map(|at| name_of(at).as_str().into())
            .to_vec(),
        step,
        ..first.clone()
    };
    let all = (1..=rounds).flat_map(|step| (0..count).map(move |at| (step, at)));
    plan.trials = (1..).zip(all).map(trial).collect();
    scenario
}

/// Returns what `seed` stands for.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut random = Pcg64::seed_from_u64(seed);
    let random = &mut random;
    let trials = if random.random_bool(0.6) { 1 } else { 3 };
    let clients = random.random_range(1..=2);
    let timing = Timing {
        settle: Nanos::from_ms(random.random_range(0..50)),
        warm_up: Nanos::from_ms(random.random_range(0..300)),
        measure: Nanos::from_ms(random.random_range(300..5000)),
        drain: Nanos::from_ms(random.random_range(0..20)),
    };
    let whole_ns = trials as u64 * (timing.total().0 + 200 * MS);
    let is_near = random.random_bool(0.5);
    let fates = (0..=clients).map(|at| fate(random, at == 1 && is_near, whole_ns));
    let fates: Vec<Fate> = fates.collect();
    let is_true = |fate: &Fate| fate.lies == 0;
    let trouble = match random.random_range(0..20) {
        0 => Some(Trouble::Full(random.random_range(0..10))),
        1 => Some(Trouble::Slow(Duration::from_millis(
            random.random_range(1..8000),
        ))),
        _ => None,
    };
    let disk = Storage {
        is_kept: random.random_bool(0.1),
        trouble,
    };
    let look = if random.random_bool(0.5) { 250 } else { 1000 };
    let flows = clients * random.random_range(1..=3);
    Scenario {
        request: request(plan(trials, clients, flows, timing), Nanos::from_ms(look)),
        is_told_truly: fates.iter().all(is_true),
        hosts: Hosts::new(fates),
        interrupt_ns: if random.random_bool(0.15) {
            random.random_range(0..2 * whole_ns)
        } else {
            u64::MAX
        },
        disk,
        admission: Admission::Exclusive,
    }
}

fn fate(random: &mut Pcg64, is_near: bool, whole_ns: u64) -> Fate {
    let far_ns = 10 ^ random.random_range(0..4);
    let clock = Wrong {
        offset_ns: random.random_range(-(1 << 58)..1 << 58),
        drift_ppm: match random.random_range(0..10) {
            0 => random.random_range(-50_000..50_000),
            1 | 2 => 0,
            _ => random.random_range(-100..=100),
        },
        jump: random.random_bool(0.1).then(|| {
            let at_ns = random.random_range(0..2 * whole_ns);
            (
                at_ns,
                random.random_range(-(100 * S as i64)..100 * S as i64),
            )
        }),
    };
    if is_near {
        return Fate {
            seed: random.random_range(0..u64::MAX),
            latency_ns: (1000, 1000),
            ..Fate::default()
        };
    }
    let faults = match random.random_range(0..10) {
        0..3 => 0,
        3..8 => 1,
        _ => random.random_range(2..5),
    };
    Fate {
        seed: random.random_range(0..u64::MAX),
        clock,
        faults: (0..faults).map(|_| fault(random, whole_ns)).collect(),
        latency_ns: (20_000 * far_ns, 5_000 * far_ns),
        lies: match random.random_range(0..10) {
            0 | 1 => random.random_range(1..500),
            _ => 0,
        },
        // Who lies from the beginning is not let in.
        lies_from_ns: random.random_range(0..whole_ns),
    }
}

fn fault(random: &mut Pcg64, whole_ns: u64) -> Fault {
    let begin_ns = random.random_range(0..whole_ns + whole_ns / 4);
    let length_ns = match random.random_range(0..5) {
        0 => random.random_range(0..100 * MS),
        1 => random.random_range(0..3 * S),
        2 => random.random_range(0..12 * S),
        3 => random.random_range(0..60 * S),
        _ => u64::MAX / 2,
    };
    let queue = |random: &mut Pcg64| match random.random_range(0..3) {
        0 => 0,
        1 => random.random_range(0..200 * MS),
        _ => random.random_range(0..6 * S),
    };
    let what = match random.random_range(0..12) {
        0 | 1 => Affliction::Dead,
        2 => Affliction::Stopped,
        3 => Affliction::RequestsLost,
        4 => Affliction::AnswersLost,
        5 | 6 => Affliction::Slow {
            there_ns: queue(random),
            back_ns: queue(random),
        },
        7 => Affliction::Doubled,
        8 => Affliction::Reordered,
        9 => Affliction::Reset,
        10 => Affliction::FlowsLost,
        _ => Affliction::SynsLost,
    };
    Fault {
        during_ns: begin_ns..begin_ns + length_ns,
        what,
    }
}

fn request(plan: Plan, look_interval: Nanos) -> RunRequest {
    RunRequest {
        run: super::run_id(),
        asked: "faults".to_owned(),
        study: false,
        plan,
        sample_interval: Nanos::from_ms(100),
        look_interval,
        server_cpus: Vec::new(),
        client_cpus: Vec::new(),
        placing: Placing::AsAsked,
        workers_max: None,
        started_utc: "2026-11-23T00:00:00Z".to_owned(),
        warm_up: WarmUp::RoundTrips,
        time: None,
        repeats: Repeats::Few,
        every: None,
        in_step: InStep::default(),
        first_look: 3,
    }
}

fn plan(trials: u32, clients: u32, flows: u32, timing: Timing) -> Plan {
    let workload = Workload {
        connections: flows,
        clients,
        ..Workload::stream(Direction::ToServer)
    };
    let trial = |id| Trial {
        id: TrialId(id),
        experiment: "faults".to_owned(),
        cell: Cell::new(),
        replicate: id,
        seed: 0,
        workload: workload.clone(),
        beside: Vec::new(),
        hosts: Vec::new(),
        step: 0,
        timing,
    };
    Plan {
        experiments: vec![Experiment {
            title: "faults".to_owned(),
            ..Experiment::plain("faults", workload.clone(), timing, trials)
        }],
        trials: (1..=trials).map(trial).collect(),
        seed: 1,
        estimate: Nanos(u64::from(trials) * timing.total().0),
        budget: None,
        left_out: Vec::new(),
        optional: Vec::new(),
        repeats: Vec::new(),
        stages: Vec::new(),
        margins: Default::default(),
    }
}
