//! Two captures of the same kind of traffic, one before a change and one behind it: what became of the
//! numbers and of the findings.

use std::fmt::Write as _;

use linerate_model::analysis::{Table, TableCell};
use linerate_model::sample::End;
use linerate_model::trace_page::{TracePage, TracedFinding};
use linerate_model::unit::Unit;
use serde::Serialize;

use crate::document::{ConnectionReport, DurationReport, EndReport, LifeReport, Trace};
use crate::findings::{TcpFinding, TcpFindingKind};
use crate::number::ns;
use crate::text::{Look, wrap_prose};

/// The number of the document's shape.
const COMPARISON_SCHEMA_VERSION: u32 = 1;

/// What changed between two captures.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What this document is: `linerate.trace.comparison`.
    pub schema: &'static str,
    /// The number of its shape.
    pub schema_version: u32,
    /// The captures.
    pub files: [String; 2],
    /// What both have, before and after.
    pub numbers: Vec<ComparedNumber>,
    /// What became of the findings: those that are gone, new, and there still.
    pub findings: Vec<ComparedFinding>,
}

/// A number before and after.
#[derive(Debug, Serialize)]
pub struct ComparedNumber {
    /// What, with its unit.
    pub name: &'static str,
    /// Before; absent where the capture does not tell.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    #[serde(skip)]
    title: &'static str,
    #[serde(skip)]
    unit: Unit,
}

/// A finding before and after.
#[derive(Debug, Serialize)]
pub struct ComparedFinding {
    /// What was found.
    pub kind: TcpFindingKind,
    /// Of which service.
    pub port: Option<u16>,
    /// What it said before; absent where it is new.
    pub before: Option<String>,
    /// What it says after; absent where it is gone.
    pub after: Option<String>,
    /// How long it took in all, before and after.
    pub total_ns: [u64; 2],
}

/// Compares two captures.
pub fn compare(before: &Trace, after: &Trace) -> Comparison {
    let both = [before, after];
    let numbers = NUMBERS.iter().map(|&(name, title, unit, value)| {
        let [before, after] = both.map(value);
        ComparedNumber {
            name,
            before,
            after,
            title,
            unit,
        }
    });
    let shares = SHARES.iter().map(|&(name, title, share)| {
        let [before, after] = both.map(|trace| mean_share(trace, share));
        ComparedNumber {
            name,
            before,
            after,
            title,
            unit: Unit::Percent,
        }
    });
    Comparison {
        schema: "linerate.trace.comparison",
        schema_version: COMPARISON_SCHEMA_VERSION,
        files: both.map(|trace| {
            let names: Vec<&str> = trace.files.iter().map(|file| &*file.name).collect();
            names.join(", ")
        }),
        numbers: numbers.chain(shares).collect(),
        findings: findings(before, after),
    }
}

type Number = (&'static str, &'static str, Unit, fn(&Trace) -> Option<f64>);
type Share = (&'static str, &'static str, fn(&LifeReport) -> f64);

const NUMBERS: [Number; 9] = [
    ("connections", "connections", Unit::Count, |trace| {
        Some(trace.totals.connections as f64)
    }),
    ("payload_bytes", "payload", Unit::Bytes, |trace| {
        Some(trace.totals.payload_bytes as f64)
    }),
    (
        "payload_bits_per_second",
        "payload over time",
        Unit::BitsPerSecond,
        |trace| {
            let elapsed_ns = trace.duration_ns().filter(|&ns| ns > 0)?;
            Some(trace.totals.payload_bytes as f64 * 8e9 / elapsed_ns as f64)
        },
    ),
    (
        "data_per_ack",
        "data segments per ACK",
        Unit::Ratio,
        |trace| ratio(trace.totals.data_packets, trace.totals.pure_acks),
    ),
    (
        "sent_again_percent",
        "retransmitted",
        Unit::Percent,
        |trace| Some(ratio(trace.totals.retransmissions, trace.totals.data_packets)? * 100.0),
    ),
    (
        "round_trip_median_ns",
        "round trip, median",
        Unit::Nanoseconds,
        |trace| median(trace, |end| end.round_trip),
    ),
    (
        "round_trip_loaded_median_ns",
        "round trip under load",
        Unit::Nanoseconds,
        |trace| median(trace, |end| end.round_trip_loaded),
    ),
    (
        "answer_median_ns",
        "server's answers, median",
        Unit::Nanoseconds,
        |trace| {
            let ends = trace.connections.iter().map(|one| one.end(End::Server));
            weighted_median(ends.filter_map(|end| end.answers))
        },
    ),
    (
        "handshake_median_ns",
        "handshake, median",
        Unit::Nanoseconds,
        |trace| {
            let legs = trace
                .connections
                .iter()
                .filter_map(|one| Some((one.syn_to_answer_ns? + one.answer_to_ack_ns?, 1)));
            middle(legs.collect())
        },
    ),
];

const SHARES: [Share; 11] = [
    ("handshake_percent", "time: handshake", |time| {
        time.handshake
    }),
    ("client_percent", "time: client's program", |time| {
        time.client
    }),
    ("server_percent", "time: server's program", |time| {
        time.server
    }),
    ("round_trip_percent", "time: round trips", |time| {
        time.round_trip
    }),
    ("window_percent", "time: receive window", |time| time.window),
    (
        "congestion_percent",
        "time: congestion window, pacing",
        |time| time.congestion,
    ),
    ("recovery_percent", "time: loss recovery", |time| {
        time.recovery
    }),
    ("nagle_percent", "time: Nagle's algorithm", |time| {
        time.nagle
    }),
    ("silence_percent", "time: silence of the peer", |time| {
        time.silence
    }),
    ("idle_percent", "time: idle", |time| time.idle),
    ("unseen_percent", "time: far end, not visible", |time| {
        time.unseen
    }),
];

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns the share of the time of all connections together, in percent.
fn mean_share(trace: &Trace, share: fn(&LifeReport) -> f64) -> Option<f64> {
    let lives = trace
        .connections
        .iter()
        .filter_map(|one| Some((one.time?, one.duration_ns)));
    let (part, whole) = lives.fold((0.0, 0.0), |(part, whole), (time, ns)| {
        (part + share(&time) * ns as f64, whole + ns as f64)
    });
    (whole > 0.0).then(|| part * 100.0 / whole)
}

fn median(trace: &Trace, of: fn(&EndReport) -> Option<DurationReport>) -> Option<f64> {
    let both = |one: &ConnectionReport| End::BOTH.map(|end| of(one.end(end)));
    weighted_median(trace.connections.iter().flat_map(both).flatten())
}

/// Returns the median of medians, each as often as it has values.
fn weighted_median(durations: impl Iterator<Item = DurationReport>) -> Option<f64> {
    let weighted = durations.filter_map(|one| Some((one.median_ns?, u64::from(one.count))));
    middle(weighted.collect())
}

fn middle(mut weighted: Vec<(u64, u64)>) -> Option<f64> {
    weighted.sort_unstable();
    let half = weighted
        .iter()
        .map(|(_, weight)| weight)
        .sum::<u64>()
        .div_ceil(2);
    let mut sum = 0;
    let found = weighted.into_iter().find(|(_, weight)| {
        sum += weight;
        sum >= half
    });
    found.map(|(value, _)| value as f64)
}

fn findings(before: &Trace, after: &Trace) -> Vec<ComparedFinding> {
    let port = |finding: &TcpFinding| finding.who_port.or(finding.toward_port);
    let key = |finding: &TcpFinding| (finding.kind, port(finding), finding.who_is);
    let mut compared: Vec<ComparedFinding> = Vec::new();
    let mut remaining: Vec<&TcpFinding> = after.findings.iter().collect();
    for finding in &before.findings {
        let place = remaining
            .iter()
            .position(|other| key(other) == key(finding));
        let now = place.map(|place| remaining.remove(place));
        compared.push(ComparedFinding {
            kind: finding.kind,
            port: port(finding),
            before: Some(finding.claim.clone()),
            after: now.map(|now| now.claim.clone()),
            total_ns: [finding.total_ns, now.map_or(0, |now| now.total_ns)],
        });
    }
    compared.extend(remaining.into_iter().map(|finding| ComparedFinding {
        kind: finding.kind,
        port: port(finding),
        before: None,
        after: Some(finding.claim.clone()),
        total_ns: [0, finding.total_ns],
    }));
    // Gone, new, and there still; within each in the order of their captures.
    compared.sort_by_key(|one| match (&one.before, &one.after) {
        (_, None) => 0,
        (None, _) => 1,
        _ => 2,
    });
    compared
}

impl Comparison {
    /// Returns the document as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("the document has no map with odd keys and no failing serializer")
    }

    /// Returns the document as a page, titled `title`.
    pub fn page(&self, title: &str) -> TracePage {
        let [before, after] = &self.files;
        let findings = self.findings.iter().map(|finding| {
            let [before_ns, after_ns] = finding.total_ns;
            let (mark, claim) = match (&finding.before, &finding.after) {
                (Some(before), None) => ("Gone", before),
                (Some(_), Some(after)) => ("Still there", after),
                (None, after) => ("New", after.as_ref().unwrap_or(&self.files[1])),
            };
            TracedFinding {
                claim: format!("{mark}: {claim}"),
                explanation: match (&finding.before, &finding.after) {
                    (Some(before), Some(_)) => format!("Before: {before}."),
                    _ => String::new(),
                },
                also: Vec::new(),
                advice: None,
                cost: (before_ns + after_ns > 0)
                    .then(|| format!("{} before, {} after", ns(before_ns), ns(after_ns))),
                proofs: Vec::new(),
                filter: finding.kind.display_filter().map(str::to_owned),
            }
        });
        let cell = |number: &ComparedNumber, value: Option<f64>| match value {
            Some(value) => TableCell::Number(value, number.unit),
            None => TableCell::Absent("not seen".to_owned()),
        };
        let rows = self.told().map(|number| {
            vec![
                TableCell::Text(number.title.to_owned()),
                cell(number, number.before),
                cell(number, number.after),
            ]
        });
        let is_none = self.findings.is_empty();
        TracePage {
            title: title.to_owned(),
            about: vec![
                ("Before".to_owned(), before.clone()),
                ("After".to_owned(), after.clone()),
            ],
            warnings: Vec::new(),
            findings: findings.collect(),
            note: is_none
                .then(|| "Nothing that costs time was found in either capture.".to_owned()),
            tables: vec![Table {
                title: "Before and after".to_owned(),
                columns: ["What", "Before", "After"].map(str::to_owned).to_vec(),
                rows: rows.collect(),
            }],
            sections: Vec::new(),
            terms: Vec::new(),
        }
    }

    /// Returns the numbers that say something.
    fn told(&self) -> impl Iterator<Item = &ComparedNumber> {
        self.numbers
            .iter()
            .filter(|number| match (number.before, number.after) {
                (None, None) => false,
                (before, after) => before != Some(0.0) || after != Some(0.0),
            })
    }

    /// Returns the document as text.
    pub fn text(&self, look: Look) -> String {
        let mut out = String::new();
        let [before, after] = &self.files;
        let _ = writeln!(out, "{}", look.bold(&format!("{before} → {after}")));
        for number in self.told() {
            let shown = |value: Option<f64>| match value {
                Some(value) if number.unit == Unit::Percent => {
                    number.unit.display((value * 100.0).round() / 100.0)
                }
                Some(value) => number.unit.display(value),
                None => "–".to_owned(),
            };
            let _ = writeln!(
                out,
                "  {:<32}{:>14} → {}",
                number.title,
                shown(number.before),
                shown(number.after)
            );
        }
        let _ = writeln!(out, "\n{}", look.bold("Findings"));
        if self.findings.is_empty() {
            let _ = writeln!(out, "  none in either");
        }
        for finding in &self.findings {
            let (mark, text) = match (&finding.before, &finding.after) {
                (Some(before), None) => ("gone", before.clone()),
                (None, Some(after)) => ("new", after.clone()),
                (_, after) => {
                    let [before_ns, after_ns] = finding.total_ns;
                    let cost = match (before_ns, after_ns) {
                        (0, 0) => String::new(),
                        _ => format!(" ({} before, {} after)", ns(before_ns), ns(after_ns)),
                    };
                    ("still", format!("{}{cost}", after.as_deref().unwrap_or("")))
                }
            };
            for (at, line) in wrap_prose(&text, look).iter().enumerate() {
                let mark = if at == 0 { mark } else { "" };
                let _ = writeln!(out, "  {}  {line}", look.paint("36", &format!("{mark:<5}")));
            }
        }
        out
    }
}
