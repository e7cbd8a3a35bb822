//! Studies whose truth is known: chapters 1, 3 and 9 with three blocks, or those that three minutes buy.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use linerate_model::Nanos;
use linerate_model::experiment::{Cell, Experiment, Factor, Level};
use linerate_model::plan::Plan;
use linerate_model::response::name;
use linerate_model::run::Recording;
use linerate_plan::{Hosts, PlanRequest};

use super::noise::{Noise, Place};
use super::recording::{MadeRun, Truth, rr, size, stream, switches};
use linerate_analyze::Draw;

/// Replicates of each cell, as three minutes buy them.
pub const REPLICATES: usize = 3;
/// Socket buffers.
pub(crate) const BUFFERS_KIB: &[u64] = &[16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024];
/// Payloads of requests and responses.
const PAYLOADS: &[u64] = &[1, 4, 40, 100, 256, 512, 1024, 1460];
/// Messages of streams.
const MESSAGES: &[u64] = &[60, 100, 536, 1460];
/// Throughput of the best buffer: far enough below what the link carries that no noise exceeds that.
const PLATEAU_BPS: f64 = 400e6;

/// What is true of a study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Nothing changes anything.
    Flat,
    /// Delayed ACK on, and Nagle on, are better by this share everywhere.
    Effect(f64),
    /// Nagle on is better by this share for the smaller half of messages, worse for the larger.
    Turning(f64),
    /// Throughput is 1 − e^(−b / this many KiB) of the plateau.
    Saturating(f64),
    /// Throughput lacks 6 % at the smallest buffer, nothing from 48 KiB on.
    Fading,
    /// Throughput grows in proportion up to this many KiB.
    Knee(f64),
    /// The kernel's own tuning lacks this share of what the larger buffers reach.
    TunedBadly(f64),
    /// Delayed ACK on, and Nagle on, are better by this share in one cell, the smallest.
    OneCell(f64),
    /// Delayed ACK on, and Nagle on, are better by this share at one size, the smallest.
    OneLevel(f64),
    /// Delayed ACK on, and Nagle on, make it this many times as much for the smaller half of sizes, and as many times less for
    /// the larger.
    Reversed(f64),
    /// Nagle and delayed ACK: better by this share where both are on or both off, else worse.
    Crossed(f64),
    /// Nagle on is better by this share, delayed ACK off by half of it.
    Both(f64),
    /// Throughput rises up to 64 KiB and falls by this share to the largest buffer.
    Hump(f64),
    /// Throughput lacks this share at all buffers but the largest.
    Last(f64),
    /// All fixed buffers lack this share of what the kernel's tuning reaches.
    All(f64),
}

impl Shape {
    /// Returns the shape in words.
    pub fn title(self) -> String {
        match self {
            Shape::Flat => "flat".to_owned(),
            Shape::Effect(share) => format!("effects of {} %", (100.0 * share).round()),
            Shape::Turning(share) => format!("effects of ± {} %", (100.0 * share).round()),
            Shape::Saturating(kib) => format!("1 − e^(−b/{kib} KiB)"),
            Shape::Fading => "−6 %, fading by 48 KiB".to_owned(),
            Shape::Knee(kib) => format!("knee at {kib} KiB"),
            Shape::TunedBadly(share) => format!("own tuning lacks {} %", (100.0 * share).round()),
            Shape::OneCell(share) => format!("one cell +{} %", (100.0 * share).round()),
            Shape::OneLevel(share) => format!("one size +{} %", (100.0 * share).round()),
            Shape::Reversed(times) => format!("× {times} small, ÷ {times} large"),
            Shape::Crossed(share) => format!("crossed ± {} %", (100.0 * share).round()),
            Shape::Both(share) => format!("two factors {} %", (100.0 * share).round()),
            Shape::Hump(share) => format!("hump, falls {} %", (100.0 * share).round()),
            Shape::Last(share) => format!("all but the last lack {} %", (100.0 * share).round()),
            Shape::All(share) => format!("all lack {:.1} %", 100.0 * share),
        }
    }

    /// Returns the true share of the plateau that a fixed buffer reaches.
    pub fn buffer_share(self, kib: f64) -> f64 {
        match self {
            Shape::Saturating(scale) => 1.0 - (-kib / scale).exp(),
            Shape::Fading => 1.0 - 0.06 * ((48.0 - kib) / 32.0).clamp(0.0, 1.0),
            Shape::Knee(knee) => (kib / knee).min(1.0),
            Shape::Hump(share) if kib >= 64.0 => 1.0 - share * (kib / 64.0).log2() / 4.0,
            Shape::Hump(_) => (kib / 64.0).sqrt(),
            Shape::Last(share) if kib < 1024.0 => 1.0 - share,
            Shape::All(share) => 1.0 - share,
            _ => 1.0,
        }
    }

    /// Returns the true share of the plateau that the kernel's own tuning reaches.
    pub fn tuned_share(self) -> f64 {
        match self {
            Shape::TunedBadly(share) => 1.0 - share,
            _ => 1.0,
        }
    }

    /// Returns the true response of a cell of messages, over that of both off.
    fn message_share(self, message: u64, nagle: bool, ack: bool) -> f64 {
        let on = |is_on: bool, share: f64| if is_on { 1.0 + share } else { 1.0 };
        match self {
            Shape::OneLevel(share) => on(nagle && message == 60, share),
            Shape::Reversed(times) if message <= 100 => on(nagle, times - 1.0),
            Shape::Reversed(times) => 1.0 / on(nagle, times - 1.0),
            Shape::Effect(share) => on(nagle, share),
            Shape::Turning(share) if message <= 100 => on(nagle, share),
            Shape::Turning(share) => 1.0 / on(nagle, share),
            Shape::OneCell(share) => on(nagle && ack && message == 60, share),
            Shape::Crossed(share) => on(nagle == ack, share),
            Shape::Both(share) => on(nagle, share) * on(!ack, share / 2.0),
            _ => 1.0,
        }
    }

    /// Returns the true response of requests of a payload, over that with delayed ACK off.
    fn payload_share(self, payload: u64, on: bool) -> f64 {
        match self {
            Shape::Effect(share) | Shape::Both(share) if on => 1.0 + share,
            Shape::OneCell(share) | Shape::OneLevel(share) if on && payload == 1 => 1.0 + share,
            Shape::Reversed(times) if on && payload <= 100 => times,
            Shape::Reversed(times) if on => 1.0 / times,
            Shape::Turning(share) if on && payload <= 100 => 1.0 + share,
            Shape::Turning(share) if on => 1.0 / (1.0 + share),
            _ => 1.0,
        }
    }
}

/// A study with its truth.
pub struct Study {
    /// The recording.
    pub recording: Recording,
    /// The true response of each cell, by experiment.
    pub means: BTreeMap<String, BTreeMap<Cell, f64>>,
}

/// How many replicates the cells of an experiment of this name have.
pub type Replicates<'a> = dyn Fn(&str) -> usize + 'a;

/// Which chapters a study has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chapters {
    /// Latency, socket buffers and small messages: 150 trials and the control's.
    Three,
    /// The same with the levels that three minutes buy.
    ThreeMinutes,
    /// Latency alone: 48 trials.
    Latency,
    /// The same with the median round trip as its response.
    RoundTrip,
    /// The same with CPU time.
    Cpu,
}

impl Chapters {
    /// Returns the blocks that the experiment of this name has.
    pub fn blocks(self, name: &str) -> usize {
        match self {
            Self::ThreeMinutes => in_three_minutes(name).replicates as usize,
            _ => REPLICATES,
        }
    }
}

/// Returns the plan of three minutes in the lab.
pub fn three_minutes() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let hosts = Hosts {
            clients: 5,
            ..Hosts::default()
        };
        let request = PlanRequest::within(Some(Nanos::from_s(180)), 1, hosts);
        linerate_plan::yielding(&linerate_plan::study(), &request)
            .expect("three minutes are enough")
    })
}

/// Returns what three minutes buy of the experiment of this name.
fn in_three_minutes(name: &str) -> &'static Experiment {
    let experiment = three_minutes().experiment(name);
    experiment.expect("the study has it")
}

/// Returns the numbers among the levels of a factor.
fn numbers(experiment: &Experiment, factor: Factor) -> Vec<u64> {
    let levels = experiment.levels(factor).iter();
    levels.filter_map(Level::whole).collect()
}

/// Makes a study of `shape` with `noise`; the same seed makes the same.
pub fn study(shape: Shape, noise: Noise, chapters: Chapters, seed: u64) -> Study {
    repeated(shape, noise, chapters, &|name| chapters.blocks(name), seed)
}

/// Makes a study whose experiments have so many `replicates`; those that it has with fewer are the same.
pub fn repeated(
    shape: Shape,
    noise: Noise,
    chapters: Chapters,
    replicates: &Replicates<'_>,
    seed: u64,
) -> Study {
    let mut run = MadeRun::new(5, Some(1e9));
    run.tenths = vec![0, 5, 10];
    run.recording.document.study = true;
    let mut means = BTreeMap::new();
    let mut experiment = |name: &str, number: u32, cells: Vec<Planned>| {
        let mut draw = Draw::new(seed.wrapping_add(u64::from(number) << 32));
        let of_noise = draw.bits();
        let first = cells.first().map_or_else(stream, |cell| match cell.kind {
            Kind::Stream => stream(),
            _ => rr(4),
        });
        let kind = cells.first().map_or(Kind::Stream, |cell| cell.kind);
        run.experiment(name, Some(number), first);
        if let Some(last) = run.recording.document.plan.experiments.last_mut() {
            match kind {
                Kind::RoundTrip => last.response = name::RTT_P50.to_owned(),
                Kind::Cpu => last.response = name::CPU_COST.to_owned(),
                _ => {}
            }
        }
        // Each block in an order of its own, as plans have it.
        let mut places = Vec::new();
        let mut order: Vec<(&Planned, u32)> = Vec::new();
        for block in 0..replicates(name) {
            let cells = cells.iter();
            let cells = cells.flat_map(|cell| std::iter::repeat_n(cell, cell.times));
            let mut cells: Vec<&Planned> = cells.collect();
            draw.shuffle(&mut cells);
            for cell in cells {
                places.push(Place {
                    block,
                    ..cell.place
                });
                order.push((cell, block as u32 + 1));
            }
        }
        let factors = noise.factors(&places, of_noise);
        for ((cell, block), (factor, lost)) in order.into_iter().zip(factors) {
            let invalid = noise.is_invalid(&mut draw);
            let truth = Truth {
                invalid: invalid.then(|| "a counter was not read".to_owned()),
                ..cell.truth(factor, lost)
            };
            run.trial(&cell.levels, block, &truth);
        }
        let mean = |cell: Planned| (cell.levels.into_iter().collect(), cell.mean);
        let known = cells.into_iter().map(mean).collect();
        means.insert(name.to_owned(), known);
    };
    let kind = match chapters {
        Chapters::Three | Chapters::ThreeMinutes | Chapters::Latency => Kind::Rate,
        Chapters::RoundTrip => Kind::RoundTrip,
        Chapters::Cpu => Kind::Cpu,
    };
    if chapters == Chapters::ThreeMinutes {
        let [latencies, buffers, messages] =
            ["latency", "socket-buffer", "small-messages"].map(in_three_minutes);
        let payloads = numbers(latencies, Factor::PayloadBytes);
        experiment("latency", 1, latency(shape, kind, &payloads));
        let bytes = numbers(buffers, Factor::SocketBuffer);
        let kib: Vec<u64> = bytes.iter().map(|bytes| bytes / 1024).collect();
        let times = buffers.control.as_ref().map_or(1, |it| it.times as usize);
        experiment("socket-buffer", 3, socket_buffer(shape, &kib, times));
        let messages = numbers(messages, Factor::MessageBytes);
        experiment("small-messages", 9, small_messages(shape, &messages));
    } else {
        experiment("latency", 1, latency(shape, kind, PAYLOADS));
    }
    if chapters == Chapters::Three {
        let buffers = socket_buffer(shape, BUFFERS_KIB, 1);
        experiment("socket-buffer", 3, buffers);
        experiment("small-messages", 9, small_messages(shape, MESSAGES));
    }
    Study {
        recording: run.recording,
        means,
    }
}

/// What a cell is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stream,
    Rate,
    RoundTrip,
    Cpu,
}

/// A cell with its true response.
struct Planned {
    levels: Vec<(Factor, Level)>,
    mean: f64,
    kind: Kind,
    place: Place,
    /// Trials that a block has of it.
    times: usize,
}

impl Planned {
    fn truth(&self, factor: f64, missing_share: f64) -> Truth {
        let value = self.mean * factor;
        let truth = match self.kind {
            Kind::Stream => Truth::stream(value),
            Kind::Rate => Truth {
                rtt_ns: 40_000,
                ..Truth::transactions_per_s(value)
            },
            Kind::RoundTrip => Truth {
                rtt_ns: 40_000,
                latency: vec![(value.round() as u64, (1e9 / value).round() as u64)],
                ..Truth::usual()
            },
            Kind::Cpu => Truth {
                rtt_ns: 40_000,
                cpus: value,
                ..Truth::transactions_per_s(12_000.0)
            },
        };
        Truth {
            missing_share,
            ..truth
        }
    }
}

fn latency(shape: Shape, kind: Kind, payloads: &[u64]) -> Vec<Planned> {
    let base = match kind {
        Kind::RoundTrip => 80_000.0,
        Kind::Cpu => 0.4,
        _ => 12_000.0,
    };
    let cell = |payload: &u64, on: bool| Planned {
        levels: vec![
            (Factor::PayloadBytes, size(*payload)),
            (Factor::DelayedAck, Level::Switch(on)),
        ],
        mean: base * shape.payload_share(*payload, on),
        kind,
        place: Place {
            rank: rank(payloads, *payload),
            is_on: on,
            block: 0,
        },
        times: 1,
    };
    let cells = payloads.iter();
    cells
        .flat_map(|payload| [true, false].map(|on| cell(payload, on)))
        .collect()
}

/// Returns where a level is among `levels`: 0 the first, 1 the last.
fn rank(levels: &[u64], level: u64) -> f64 {
    let at = levels.iter().position(|known| *known == level).unwrap_or(0);
    at as f64 / (levels.len() - 1) as f64
}

fn socket_buffer(shape: Shape, buffers: &[u64], times: usize) -> Vec<Planned> {
    let mut cells = Vec::new();
    for (connections, clients) in [(1, 1), (10, 5)] {
        let cell = |level: Level, share: f64, place: Place| Planned {
            levels: vec![
                (Factor::Connections, Level::Count(connections)),
                (Factor::Clients, Level::Count(clients)),
                (Factor::SocketBuffer, level),
            ],
            mean: PLATEAU_BPS * share,
            kind: Kind::Stream,
            place,
            times: 1,
        };
        for kib in buffers {
            let share = shape.buffer_share(*kib as f64);
            let place = Place {
                rank: rank(buffers, *kib),
                ..Place::default()
            };
            cells.push(cell(size(kib * 1024), share, place));
        }
        let place = Place {
            rank: 1.0,
            is_on: true,
            block: 0,
        };
        let control = cell(Level::Word("auto".to_owned()), shape.tuned_share(), place);
        cells.push(Planned { times, ..control });
    }
    cells
}

fn small_messages(shape: Shape, messages: &[u64]) -> Vec<Planned> {
    let mut cells = Vec::new();
    for message in messages {
        for nagle in [true, false] {
            for ack in [true, false] {
                let mut levels = switches(nagle, ack).to_vec();
                levels.push((Factor::MessageBytes, size(*message)));
                let share = shape.message_share(*message, nagle, ack);
                cells.push(Planned {
                    levels,
                    mean: 50e6 * share * (*message as f64 / 60.0).sqrt(),
                    kind: Kind::Stream,
                    place: Place {
                        rank: rank(messages, *message),
                        is_on: nagle,
                        block: 0,
                    },
                    times: 1,
                });
            }
        }
    }
    cells
}
