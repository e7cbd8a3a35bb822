//! Studies whose truth is known: chapters 1, 3 and 9 with three replicates of each cell.

use std::collections::BTreeMap;

use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::run::Recording;

use super::noise::Noise;
use super::recording::{Run, Truth, rr, size, stream, switches};
use crate::compare::draw::Draw;

/// Replicates of each cell, as three minutes buy them.
pub const REPLICATES: usize = 3;
/// Socket buffers.
pub(super) const BUFFERS_KIB: &[u64] = &[16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024];
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
        }
    }

    /// Returns the true share of the plateau that a fixed buffer reaches.
    pub fn buffer_share(self, kib: f64) -> f64 {
        match self {
            Shape::Saturating(scale) => 1.0 - (-kib / scale).exp(),
            Shape::Fading => 1.0 - 0.06 * ((48.0 - kib) / 32.0).clamp(0.0, 1.0),
            Shape::Knee(knee) => (kib / knee).min(1.0),
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

    /// Returns the true ratio of Nagle on over off for messages of a size.
    pub fn nagle_ratio(self, message: u64) -> f64 {
        match self {
            Shape::Effect(share) => 1.0 + share,
            Shape::Turning(share) if message <= 100 => 1.0 + share,
            Shape::Turning(share) => 1.0 / (1.0 + share),
            _ => 1.0,
        }
    }

    /// Returns the true ratio of delayed ACK on over off.
    pub fn delayed_ack_ratio(self) -> f64 {
        match self {
            Shape::Effect(share) => 1.0 + share,
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

/// Which chapters a study has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chapters {
    /// Latency, socket buffers and small messages: 150 trials and the control's.
    Three,
    /// Latency alone: 48 trials.
    Latency,
}

/// Makes a study of `shape` with `noise`; the same seed makes the same.
pub fn study(shape: Shape, noise: Noise, chapters: Chapters, seed: u64) -> Study {
    let mut draw = Draw::new(seed);
    let mut run = Run::new(5, Some(1e9));
    run.tenths = vec![0, 5, 10];
    run.recording.document.study = true;
    let mut means = BTreeMap::new();
    let mut experiment = |name: &str, number, cells: Vec<Planned>| {
        let first = cells.first().map_or_else(stream, |cell| match cell.is_rr {
            true => rr(4),
            false => stream(),
        });
        run.experiment(name, Some(number), first);
        // Each block in an order of its own, as plans have it.
        let factors = noise.factors(cells.len() * REPLICATES, draw.bits());
        for (block, factors) in factors.chunks(cells.len()).enumerate() {
            let mut order: Vec<&Planned> = cells.iter().collect();
            draw.shuffle(&mut order);
            for (cell, (factor, lost)) in order.into_iter().zip(factors) {
                run.trial(&cell.levels, block as u32 + 1, &cell.truth(*factor, *lost));
            }
        }
        let mean = |cell: Planned| (cell.levels.into_iter().collect(), cell.mean);
        let known = cells.into_iter().map(mean).collect();
        means.insert(name.to_owned(), known);
    };
    experiment("latency", 1, latency(shape));
    if chapters == Chapters::Three {
        experiment("socket-buffer", 3, socket_buffer(shape));
        experiment("small-messages", 9, small_messages(shape));
    }
    Study {
        recording: run.recording,
        means,
    }
}

/// A cell with its true response.
struct Planned {
    levels: Vec<(Factor, Level)>,
    mean: f64,
    is_rr: bool,
}

impl Planned {
    fn truth(&self, factor: f64, missing_share: f64) -> Truth {
        let truth = match self.is_rr {
            true => Truth {
                rtt_ns: 40_000,
                ..Truth::transactions_per_s(self.mean * factor)
            },
            false => Truth::stream(self.mean * factor),
        };
        Truth {
            missing_share,
            ..truth
        }
    }
}

fn latency(shape: Shape) -> Vec<Planned> {
    let cell = |payload: &u64, on: bool| Planned {
        levels: vec![
            (Factor::PayloadBytes, size(*payload)),
            (Factor::DelayedAck, Level::Switch(on)),
        ],
        mean: 12_000.0 * if on { shape.delayed_ack_ratio() } else { 1.0 },
        is_rr: true,
    };
    let cells = PAYLOADS.iter();
    cells
        .flat_map(|payload| [true, false].map(|on| cell(payload, on)))
        .collect()
}

fn socket_buffer(shape: Shape) -> Vec<Planned> {
    let mut cells = Vec::new();
    for (connections, clients) in [(1, 1), (10, 5)] {
        let cell = |level: Level, share: f64| Planned {
            levels: vec![
                (Factor::Connections, Level::Count(connections)),
                (Factor::Clients, Level::Count(clients)),
                (Factor::SocketBuffer, level),
            ],
            mean: PLATEAU_BPS * share,
            is_rr: false,
        };
        for kib in BUFFERS_KIB {
            cells.push(cell(size(kib * 1024), shape.buffer_share(*kib as f64)));
        }
        cells.push(cell(Level::Word("auto".to_owned()), shape.tuned_share()));
    }
    cells
}

fn small_messages(shape: Shape) -> Vec<Planned> {
    let mut cells = Vec::new();
    for message in MESSAGES {
        for nagle in [true, false] {
            for ack in [true, false] {
                let mut levels = switches(nagle, ack).to_vec();
                levels.push((Factor::MessageBytes, size(*message)));
                let ratio = if nagle {
                    shape.nagle_ratio(*message)
                } else {
                    1.0
                };
                let mean = 50e6 * ratio * (*message as f64 / 60.0).sqrt();
                cells.push(Planned {
                    levels,
                    mean,
                    is_rr: false,
                });
            }
        }
    }
    cells
}
