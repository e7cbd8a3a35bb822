//! Two captures of the same kind of traffic, one before a change and one behind it: what became of the
//! numbers and of the findings.

use std::fmt::Write as _;

use linerate_model::analysis::{Table, TableCell};
use linerate_model::sample::End;
use linerate_model::trace_page::{TracePage, TracedFinding};
use linerate_model::unit::Unit;
use serde::Serialize;

use crate::document::{ConnectionReport, DurationReport, EndReport, LifeReport, SHARES, Trace};
use crate::findings::{TcpFinding, TcpFindingKind};
use crate::number::{counted, ns, ratio};
use crate::text::{Look, write_lines};

/// The number of the document's shape.
const COMPARISON_SCHEMA_VERSION: u32 = 1;

/// What changed between two captures.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// What this document is: `linerate.trace.comparison`.
    pub schema: &'static str,
    /// The number of its shape.
    pub schema_version: u32,
    /// The captures.
    pub files: [String; 2],
    /// What both have, before and after.
    pub numbers: Vec<ComparedNumber>,
    /// What became of the findings: those that are gone, new, there still, and those that the other capture
    /// could not show.
    pub findings: Vec<ComparedFinding>,
    /// What to know of the numbers of each capture.
    pub warnings: Vec<String>,
}

/// A number before and after.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ComparedNumber {
    /// What, with its unit.
    pub name: &'static str,
    /// Before; absent where the capture does not tell.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    #[serde(skip)]
    title: String,
    #[serde(skip)]
    unit: Unit,
}

/// A finding before and after.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ComparedFinding {
    /// What was found.
    pub kind: TcpFindingKind,
    /// Of which service.
    pub port: Option<u16>,
    /// What it said before; absent where it is new.
    pub before: Option<String>,
    /// What it says after; absent where it is gone.
    pub after: Option<String>,
    /// Why the capture that does not have it could not show it; absent where it could.
    pub not_seen: Option<String>,
    /// How long it took in all, before and after.
    pub total_ns: [u64; 2],
    #[serde(skip)]
    filter: Option<String>,
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
            title: title.to_owned(),
            unit,
        }
    });
    let shares = SHARES.iter().map(|&(key, name, share)| {
        let [before, after] = both.map(|trace| mean_share(trace, share));
        ComparedNumber {
            name: key,
            before,
            after,
            // Of two captures there is no "here".
            title: format!("time: {}", name.trim_end_matches(" here")),
            unit: Unit::Percent,
        }
    });
    Comparison {
        schema: "linerate.trace.comparison",
        schema_version: COMPARISON_SCHEMA_VERSION,
        files: both.map(Trace::name),
        numbers: numbers.chain(shares).collect(),
        findings: findings(before, after),
        warnings: [("before", before), ("after", after)]
            .into_iter()
            .flat_map(|(when, trace)| {
                let warnings = trace.warnings.iter();
                warnings.map(move |warning| format!("{when}: {warning}"))
            })
            .collect(),
    }
}

type Number = (&'static str, &'static str, Unit, fn(&Trace) -> Option<f64>);

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
        Trace::payload_rate,
    ),
    (
        "data_per_ack",
        "data segments per ACK",
        Unit::Ratio,
        |trace| {
            let totals = &trace.totals;
            ratio(totals.data_packets, totals.pure_acks).filter(|_| totals.data_packets > 0)
        },
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
    let key = |finding: &TcpFinding| (finding.kind, port_of(finding), finding.who_is);
    let mut pairs: Vec<[Option<&TcpFinding>; 2]> = Vec::new();
    let mut remaining: Vec<&TcpFinding> = after.findings.iter().collect();
    for finding in &before.findings {
        let place = remaining
            .iter()
            .position(|other| key(other) == key(finding));
        pairs.push([Some(finding), place.map(|place| remaining.remove(place))]);
    }
    pairs.extend(remaining.into_iter().map(|finding| [None, Some(finding)]));
    let compared = |pair| ComparedFinding::new([before, after], pair);
    let mut compared: Vec<ComparedFinding> = pairs.into_iter().filter_map(compared).collect();
    // Within each kind of change in the order of their captures.
    compared.sort_by_key(ComparedFinding::change);
    compared
}

fn port_of(finding: &TcpFinding) -> Option<u16> {
    finding.who_port.or(finding.toward_port)
}

/// Returns why a capture could not show what another one has; `None` where it could, and has not.
///
/// 1. It has to have the same service, by its port.
/// 2. Of a SYN it has to have that, of answers those, of the rest data of its sender and the other direction too.
/// 3. What shows at the sender only must not have been captured at the receiver.
fn why_not_seen(trace: &Trace, finding: &TcpFinding) -> Option<String> {
    use TcpFindingKind as Kind;
    let (port, name) = (port_of(finding), trace.name());
    let is_its = |other: u16| port.is_none_or(|port| port == other);
    let with_port = port.map_or(String::new(), |port| format!(" with port {port}"));
    let talks = trace
        .conversations
        .iter()
        .filter(|one| is_its(one.server.port));
    let links: Vec<&ConnectionReport> = trace
        .connections
        .iter()
        .filter(|one| is_its(one.server.port))
        .collect();
    let any = |is_fit: &dyn Fn(&ConnectionReport) -> bool| links.iter().any(|one| is_fit(one));
    let sender = match finding.kind {
        Kind::ZeroWindow | Kind::WindowLimit | Kind::SlowReader | Kind::DelayedAck => {
            finding.who_is.other()
        }
        Kind::ClampedMss | Kind::SackReneging => finding.who_is.other(),
        _ => finding.who_is,
    };
    let missing = match finding.kind {
        Kind::QuestionsUnanswered if talks.clone().all(|one| one.asked.is_none()) => "questions",
        Kind::AnswersLate if talks.clone().all(|one| one.answers.is_none()) => "answered questions",
        Kind::QuestionsUnanswered | Kind::AnswersLate => return None,
        _ if links.is_empty() => "connection",
        Kind::SynAgain if !any(&|one| one.from_client.offer.is_some()) => "SYN of a connection",
        // That it is accepted shows that it is not so any more.
        Kind::Refused | Kind::Unanswered | Kind::SynAgain | Kind::Unreachable => return None,
        Kind::Reset | Kind::HalfOpen | Kind::PeerSilent | Kind::KeepaliveUnanswered => return None,
        Kind::SlowAnswer | Kind::RoundTrips | Kind::ClientPause
            if !any(&|one| one.end(finding.who_is).answers.is_some()) =>
        {
            match finding.who_is {
                End::Server => "answers on a connection",
                End::Client => "further requests on a connection",
            }
        }
        _ if !any(&|one| one.end(sender).payload_bytes > 0) => "data of that end on a connection",
        _ if !any(&|one| one.end(sender).payload_bytes > 0 && !one.one_sided) => {
            "both directions of a connection"
        }
        Kind::Queue | Kind::WindowLimit | Kind::IdleSender | Kind::SendLimit
            if !any(&|one| one.captured_at != Some(sender.other())) =>
        {
            return Some(format!(
                "{name} was captured at the receiver, where it does not show"
            ));
        }
        _ => return None,
    };
    // Of a large capture only so many are kept.
    let kept = match trace.connections.len() {
        kept if (kept as u64) < trace.totals.connections => {
            format!(" among its {}", counted(kept as u64, "largest connection"))
        }
        _ => String::new(),
    };
    Some(format!("{name} shows no {missing}{with_port}{kept}"))
}

impl ComparedFinding {
    fn new([before, after]: [&Trace; 2], pair: [Option<&TcpFinding>; 2]) -> Option<Self> {
        let not_seen = match pair {
            [Some(gone), None] => why_not_seen(after, gone),
            [None, Some(new)] => why_not_seen(before, new),
            _ => None,
        };
        let shown = pair[1].or(pair[0])?;
        let [before, after] = pair.map(|one| one.map(|one| one.claim.clone()));
        Some(Self {
            kind: shown.kind,
            port: port_of(shown),
            before,
            after,
            not_seen,
            total_ns: pair.map(|one| one.map_or(0, |one| one.total_ns)),
            filter: shown.display_filter(),
        })
    }

    /// Returns what it says; after the change, where it does so.
    fn claim(&self) -> &str {
        let claim = self.after.as_deref().or(self.before.as_deref());
        claim.unwrap_or_default()
    }

    /// Returns the place of its change, and the word for it.
    fn change(&self) -> (u8, &'static str) {
        match (&self.before, &self.after, &self.not_seen) {
            (_, _, Some(_)) => (3, "not seen"),
            (_, None, _) => (0, "gone"),
            (None, _, _) => (1, "new"),
            _ => (2, "still"),
        }
    }
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
            let mark = match (&finding.not_seen, &finding.before, &finding.after) {
                (Some(_), Some(_), _) => "Before, and not seen after",
                (Some(_), None, _) => "After, and not seen before",
                (None, Some(_), None) => "Gone",
                (None, Some(_), Some(_)) => "Still there",
                (None, None, _) => "New",
            };
            TracedFinding {
                claim: format!("{mark}: {}", finding.claim()),
                explanation: match (&finding.not_seen, &finding.before, &finding.after) {
                    (Some(reason), _, _) => format!("It could not be seen there: {reason}."),
                    (None, Some(before), Some(_)) => format!("Before: {before}."),
                    _ => String::new(),
                },
                also: Vec::new(),
                advice: None,
                cost: (before_ns + after_ns > 0)
                    .then(|| format!("{} before, {} after", ns(before_ns), ns(after_ns))),
                proofs: Vec::new(),
                filter: finding.filter.clone(),
            }
        });
        let cell = |number: &ComparedNumber, value: Option<f64>| {
            TableCell::of(value.map(|value| (value, number.unit)), "not seen")
        };
        let rows = self.told().map(|number| {
            vec![
                TableCell::Text(number.title.clone()),
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
            warnings: self.warnings.clone(),
            findings: findings.collect(),
            note: is_none
                .then(|| "Nothing that costs time was found in either capture.".to_owned()),
            tables: vec![Table::new(
                "Before and after",
                ["What", "Before", "After"],
                rows,
            )],
            sections: Vec::new(),
            terms: Vec::new(),
        }
    }

    /// Returns the numbers that say something.
    fn told(&self) -> impl Iterator<Item = &ComparedNumber> {
        self.numbers
            .iter()
            // Nothing before and nothing after says as little where one of the captures does not tell; nothing
            // is what is shown as that.
            .filter(|number| {
                let has = |value: Option<f64>| value.is_some_and(|value| value >= 0.005);
                has(number.before) || has(number.after)
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
        for warning in &self.warnings {
            let _ = writeln!(out, "{} {warning}", look.paint("33", "warning:"));
        }
        let _ = writeln!(out, "\n{}", look.bold("Findings"));
        if self.findings.is_empty() {
            let _ = writeln!(out, "  none in either");
        }
        for finding in &self.findings {
            let (_, mark) = finding.change();
            let claim = finding.claim();
            let [before_ns, after_ns] = finding.total_ns;
            let text = match (&finding.not_seen, mark) {
                (Some(reason), _) => format!("{claim} ({reason})"),
                (None, "still") if before_ns + after_ns > 0 => {
                    format!("{claim} ({} before, {} after)", ns(before_ns), ns(after_ns))
                }
                _ => claim.to_owned(),
            };
            let [first, further] =
                [mark, ""].map(|mark| format!("  {}  ", look.paint("36", &format!("{mark:<8}"))));
            write_lines(&look.wrap_prose(&text), &first, &further, &mut out);
        }
        out
    }
}
