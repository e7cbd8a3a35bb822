//! The answer of a run: verdict, headline numbers, what limits each workload.
//!
//! Everything here repeats what rules and intervals say elsewhere; nothing is decided anew:
//!
//! 1. the verdict names the bulk throughput with its limiter, then the exchange; of a lone experiment
//!    that compares, the first finding that a comparison decided. Numbers that are not to be used
//!    give no verdict but that;
//! 2. a headline number is there only if it was measured, on the host as it is;
//! 3. a bar is a cell with what it reached, what it cannot exceed and its limiter: of several cells of
//!    an experiment with one limiter the one that the finding shows, too.

use linerate_model::answer::{Answer, BARS_MAX, Ceiling, Ceilings, LimitBar, TILES_MAX, Tile};
use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::{Estimate, FindingKind, Trust, TrustLevel};
use linerate_model::flag::TrialFlag;
use linerate_model::limiter::Limiter;
use linerate_model::manner::{Named, Transport};
use linerate_model::number;
use linerate_model::step::turns;
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Workload};

use crate::adaptive;
use crate::chapters::{between, under_load};
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{
    Found, HELD_BACK_SHARE_TOLD, RATIO_NS_MIN, What, limiter_of, limits, plateau_cell,
    rates_of_both, shortest_ns, standing, turns_per_s,
};
use crate::reduce::{DELAYED_ACK_NS_MAX, SEGMENT_BYTES, name};
use crate::study;
use crate::verdicts::ScalePlateau;
use crate::words;

/// Share above its ceiling from which on a number shows that the ceiling is not one.
const CEILING_EXCESS: f64 = 1.02;

/// Returns the answer of `dataset`.
pub(crate) fn answer(dataset: &Dataset<'_>, findings: &[Found<'_>], trust: &Trust) -> Answer {
    let shown = Shown::of(dataset);
    let mut bars = bars(dataset);
    let bars_left_out = bars.len().saturating_sub(BARS_MAX);
    bars.truncate(BARS_MAX);
    Answer {
        verdict: verdict(dataset, &shown, findings, trust),
        tiles: tiles(dataset, &shown),
        bars,
        bars_left_out,
    }
}

/// Brings the findings that the verdict is about to the front; the others keep their order.
pub(crate) fn headline_first(dataset: &Dataset<'_>, findings: &mut [Found<'_>]) {
    let shown = Shown::of(dataset);
    let limiter = |cell: Option<&CellOutcomes<'_>>| limits(dataset, cell?);
    // In the order of the verdict's clauses.
    let told: Vec<Limiter> = match shown.stalled {
        Some(cell) => [limiter(shown.bulk), limiter(Some(cell))],
        None => [limiter(shown.bulk), limiter(shown.exchange)],
    }
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|found| match found.what {
        What::Limiter(limiter) => {
            let place = told.iter().position(|one| *one == limiter);
            place.unwrap_or(told.len())
        }
        _ => told.len(),
    });
}

/// The cells that headline numbers are taken of.
struct Shown<'d, 'a> {
    /// A stream that is meant to fill the path.
    bulk: Option<&'d CellOutcomes<'a>>,
    /// An exchange of the smallest messages that does not stall.
    exchange: Option<&'d CellOutcomes<'a>>,
    /// The exchange that Nagle and delayed ACK stall longest.
    stalled: Option<&'d CellOutcomes<'a>>,
}

impl<'d, 'a> Shown<'d, 'a> {
    fn of(dataset: &'d Dataset<'a>) -> Self {
        let cells: Vec<&CellOutcomes<'a>> = measured(dataset);
        let is_stalled = |cell: &&&CellOutcomes<'a>| {
            limits(dataset, cell) == Some(Limiter::NagleDelayedAck)
                && cell.mean(name::RTT_P50).is_some()
        };
        let by_median = |a: &&&CellOutcomes<'a>, b: &&&CellOutcomes<'a>| {
            let median = |cell: &CellOutcomes<'_>| cell.mean(name::RTT_P50).unwrap_or_default();
            median(a).total_cmp(&median(b))
        };
        let exchanges = cells.iter().filter(|cell| cell.is_rr());
        let stalled = exchanges.clone().filter(is_stalled).max_by(by_median);
        let exchange = exchanges
            .filter(|cell| !is_stalled(cell))
            .filter(|cell| cell.level(Factor::DelayedAck) != Some(&Level::Switch(false)))
            .min_by_key(|cell| (cell.experiment.chapter, study::payload_bytes(cell)));
        Self {
            bulk: bulk(dataset, &cells),
            exchange: exchange.copied(),
            stalled: stalled.copied(),
        }
    }
}

/// Returns the measured cells of the host as it is; all of them where it was not measured as it is.
fn measured<'d, 'a>(dataset: &'d Dataset<'a>) -> Vec<&'d CellOutcomes<'a>> {
    let known: Vec<_> = dataset.measured().collect();
    let as_it_is: Vec<_> = known
        .iter()
        .copied()
        .filter(|cell| dataset.is_as_it_is(cell))
        .collect();
    if as_it_is.is_empty() { known } else { as_it_is }
}

/// Returns the stream with the fewest connections that fills its link, else the fastest: to the server, where any
/// goes there.
fn bulk<'d, 'a>(
    dataset: &Dataset<'_>,
    cells: &[&'d CellOutcomes<'a>],
) -> Option<&'d CellOutcomes<'a>> {
    // Messages that are varied are there to be small.
    let is_bulk = |cell: &&&CellOutcomes<'_>| {
        cell.workload.traffic.is_stream()
            && cell.mean(name::THROUGHPUT).is_some()
            && (cells.len() == 1 || cell.level(Factor::MessageBytes).is_none())
    };
    let rate = |cell: &CellOutcomes<'_>| cell.mean(name::THROUGHPUT).unwrap_or_default();
    let mut streams: Vec<_> = cells.iter().filter(is_bulk).copied().collect();
    if streams.iter().any(|cell| is_to_server(cell)) {
        streams.retain(|cell| is_to_server(cell));
    }
    let full = streams
        .iter()
        .filter(|cell| limits(dataset, cell) == Some(Limiter::LinkRate))
        .min_by(|a, b| {
            let connections = |cell: &CellOutcomes<'_>| cell.workload.connections;
            let fewest = connections(a).cmp(&connections(b));
            fewest.then(rate(b).total_cmp(&rate(a)))
        });
    full.or(streams.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))))
        .copied()
}

/// Returns the cell of the host as it is that says what one connection carries alone.
pub(crate) fn of_one_connection<'d, 'a>(dataset: &'d Dataset<'a>) -> Option<&'d CellOutcomes<'a>> {
    let cells = dataset.measured().filter(|cell| {
        let is_alone = cell.workload.connections == 1 && cell.experiment.beside.is_empty();
        is_alone && dataset.is_as_it_is(cell)
    });
    bulk(dataset, &cells.collect::<Vec<_>>())
}

fn is_to_server(cell: &CellOutcomes<'_>) -> bool {
    cell.workload.traffic.direction() == Some(Direction::ToServer)
}

fn verdict(
    dataset: &Dataset<'_>,
    shown: &Shown<'_, '_>,
    findings: &[Found<'_>],
    trust: &Trust,
) -> String {
    if dataset.valid().next().is_none() {
        return if dataset.outcomes.is_empty() {
            "Nothing was measured".to_owned()
        } else {
            "Nothing valid was measured".to_owned()
        };
    }
    if trust.level == TrustLevel::DoNotUse {
        return "These numbers do not describe the hosts: measure again".to_owned();
    }
    let compared = || {
        let decided =
            |found: &&Found<'_>| matches!(found.kind(), FindingKind::Effect | FindingKind::Plateau);
        let first = findings.iter().find(decided)?;
        Some(first.claim.trim_end_matches('.').to_owned())
    };
    if let Some(told) = between::told(dataset) {
        return told.trim_end_matches('.').to_owned();
    }
    let is_study = dataset.recording.document.study;
    let mut experiments = dataset.experiments().iter().filter(|_| !is_study);
    let answer = |one| adaptive::told(dataset.recording, one).map(|told| told.answer);
    if let Some(answer) = experiments.find_map(answer) {
        return answer.trim_end_matches('.').to_owned();
    }
    if let Some(claim) = compared().filter(|_| !is_study) {
        return claim;
    }
    let stream = shown.bulk.map(|cell| stream(dataset, cell));
    let exchange = match (shown.stalled, shown.exchange) {
        (Some(cell), _) => stall(dataset, cell),
        (None, Some(cell)) => exchange(dataset, cell),
        (None, None) => None,
    };
    let clauses: Vec<String> = stream.into_iter().chain(exchange).collect();
    if clauses.is_empty() {
        words::sentence(&plain(dataset))
    } else {
        words::sentence(&clauses.join("; "))
    }
}

/// "one connection fills the link: 940 ± 5 Mbit/s, 99.8 % of the wire".
fn stream(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> String {
    let Some(throughput) = cell.estimate(name::THROUGHPUT) else {
        return plain(dataset);
    };
    let about = if is_held_back(cell) { "about " } else { "" };
    let rate = match rates_of_both(cell) {
        Some(both) => {
            let [to, from] = both.map(|rate| words::estimate(&rate));
            format!("{about}{to} to the server and {from} from it")
        }
        None => format!("{about}{}", words::estimate(&throughput)),
    };
    let who = connections(cell);
    let (fills, reaches) = match cell.workload.connections {
        1 => ("fills", "reaches"),
        _ => ("fill", "reach"),
    };
    let lost = cell.mean(name::LOSS_SHARE).filter(|lost| *lost > 0.0);
    let lost = lost.map_or(String::new(), |lost| {
        format!(", {} of the datagrams lost", words::percent(lost))
    });
    match limits(dataset, cell) {
        Some(Limiter::LinkRate) => format!("{who} {fills} the link: {rate}{lost}"),
        Some(Limiter::Generator) => {
            format!("{who} {reaches} at least {rate}{lost}: the load generator is the limit")
        }
        Some(limiter) => {
            let limiter = limiter.title();
            format!("{who} {reaches} {rate}{lost}, limited by {limiter}")
        }
        None => {
            let standing = standing(dataset, cell);
            let titles: Vec<&str> = standing.iter().map(|limiter| limiter.title()).collect();
            let perhaps = match titles.as_slice() {
                // Groups share the path and the hosts.
                titles if titles.is_empty() || !cell.experiment.beside.is_empty() => String::new(),
                titles => format!(": perhaps {}", titles.join(" or ")),
            };
            format!("{who} {reaches} {rate}{lost}; the limiter is not known{perhaps}")
        }
    }
}

/// Returns whether most trials count much that had come before their window.
fn is_held_back(cell: &CellOutcomes<'_>) -> bool {
    let much = |flag: &TrialFlag| matches!(flag, TrialFlag::HeldBack(share) if *share >= HELD_BACK_SHARE_TOLD);
    let valid = cell.valid.iter();
    let held = valid.filter(|outcome| outcome.flags.iter().any(much));
    2 * held.count() > cell.valid.len()
}

fn connections(cell: &CellOutcomes<'_>) -> String {
    let workload = &cell.workload;
    let (one, many) = match workload.manner.transport {
        Transport::Udp => ("one flow of datagrams", "flows of datagrams"),
        _ => ("one connection", "connections"),
    };
    let ways = match workload.traffic.direction() {
        Some(direction)
            if direction == Direction::Both
                || cell.experiment.levels(Factor::Direction).len() > 1 =>
        {
            format!(" {}", direction.in_words())
        }
        _ => String::new(),
    };
    match (workload.connections, workload.clients) {
        (1, _) => format!("{one}{ways}"),
        (n, 0 | 1) => format!("{n} {many}{ways}"),
        (n, clients) => format!("{n} {many} from {clients} clients{ways}"),
    }
}

/// A request in pieces against the same with the cure.
fn stall(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let median = cell.estimate(name::RTT_P50)?;
    let writes = cell.workload.traffic.request_writes();
    let cured = dataset.beside(cell, Factor::Nagle, Level::Switch(false));
    let cured = cured.and_then(|cured| cured.estimate(name::RTT_P50));
    let instead = cured.map_or(String::new(), |cured| {
        format!(", instead of {} with Nagle off", words::estimate(&cured))
    });
    Some(format!(
        "requests in {writes} writes take {} in the median{instead}",
        words::estimate(&median)
    ))
}

fn exchange(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let held = match limits(dataset, cell) {
        // Every exchange takes its round trip.
        None | Some(Limiter::RoundTrip) => String::new(),
        Some(Limiter::Generator) => ", limited by the load generator".to_owned(),
        Some(limiter) => format!(", limited by {}", limiter.title()),
    };
    if let (Some(median), Some(bytes)) = (cell.estimate(name::RTT_P50), study::payload_bytes(cell))
    {
        let median = words::estimate(&median);
        let what = one_exchange(cell, bytes);
        return Some(format!("{what} takes {median} in the median{held}"));
    }
    let rate = words::estimate(&cell.main()?);
    let what = if cell.workload.traffic.is_placed() {
        "connections are made"
    } else {
        "transactions complete"
    };
    Some(format!("{what} at {rate}{held}"))
}

/// What takes the time of an exchange, the larger of whose request and response has `bytes`.
fn one_exchange(cell: &CellOutcomes<'_>, bytes: u64) -> String {
    let size = words::number(Unit::Bytes, bytes as f64);
    if let Some(steps) = &cell.workload.manner.steps {
        return format!("an exchange of {}", number::counted(steps.len(), "step"));
    }
    match (cell.workload.traffic.is_placed(), bytes) {
        (false, _) => format!("a round trip of {size}"),
        (true, 0) => "a connection".to_owned(),
        (true, _) => format!("a connection with an exchange of {size}"),
    }
}

/// What is left to say of traffic of no other kind.
fn plain(dataset: &Dataset<'_>) -> String {
    format!(
        "{} measured",
        number::counted(
            dataset.count(dataset.valid().map(|outcome| outcome.trial)),
            "trial"
        )
    )
}

fn tiles(dataset: &Dataset<'_>, shown: &Shown<'_, '_>) -> Vec<Tile> {
    if let Some((what, median, notes)) = between::headline(dataset) {
        let others = [longest_stall(dataset)].into_iter().flatten();
        return std::iter::once(tile(what, median, notes))
            .chain(others)
            .collect();
    }
    let rate = shown
        .bulk
        .and_then(|cell| throughput(dataset, cell))
        .or_else(|| {
            shown
                .exchange
                .or(shown.stalled)
                .and_then(|cell| transactions(dataset, cell))
        });
    let tiles = [
        rate,
        round_trip(dataset, shown),
        under_load(dataset),
        buffer(dataset, shown),
        longest_stall(dataset),
    ];
    tiles.into_iter().flatten().take(TILES_MAX).collect()
}

fn tile(what: impl Into<String>, value: Estimate, notes: Vec<String>) -> Tile {
    Tile {
        what: what.into(),
        value,
        note: notes.join("; "),
    }
}

fn throughput(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Tile> {
    let value = cell.estimate(name::THROUGHPUT)?;
    let share = ceiling(dataset, cell).map(|ceiling| {
        let reached = words::reached(value.value, ceiling.value);
        format!("{reached} of the wire")
    });
    let mut notes: Vec<String> = share.into_iter().collect();
    if limits(dataset, cell) == Some(Limiter::Generator) {
        notes.push("lower bound".to_owned());
    }
    if is_held_back(cell) {
        notes.push("holds what came before the window".to_owned());
    }
    let packets = cell.estimate(name::DATAGRAMS_RECEIVED_RATE);
    notes.extend(packets.map(|packets| format!("{} of datagrams", words::estimate(&packets))));
    notes.push(connections(cell));
    let from = Level::Word(Direction::FromServer.word().to_owned());
    let from = dataset.beside(cell, Factor::Direction, from);
    if let Some(rate) = from
        .filter(|_| is_to_server(cell))
        .and_then(|from| from.estimate(name::THROUGHPUT))
    {
        notes.push(format!("{} from it", words::estimate(&rate)));
    }
    Some(tile("Throughput", value, notes))
}

fn transactions(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Tile> {
    let about = cell.workload.traffic.kind().about();
    let mut notes = Vec::new();
    if limits(dataset, cell) == Some(Limiter::Generator) {
        notes.push("lower bound".to_owned());
    }
    notes.push(number::counted(cell.workload.connections, "connection"));
    let value = cell.estimate(about.headline)?;
    Some(tile(words::sentence(about.counted), value, notes))
}

fn round_trip(dataset: &Dataset<'_>, shown: &Shown<'_, '_>) -> Option<Tile> {
    if let Some(cell) = shown.exchange.or(shown.stalled)
        && let Some(median) = cell.estimate(name::RTT_P50)
    {
        let p99 = cell.estimate(name::RTT_P99);
        let notes = match p99 {
            Some(p99) => format!("median; p99 {}", words::estimate(&p99)),
            None => "median; too few for a p99".to_owned(),
        };
        let bytes = study::payload_bytes(cell).unwrap_or_default();
        let what = if cell.workload.traffic.is_placed() {
            "Connection".to_owned()
        } else if let Some(steps) = &cell.workload.manner.steps {
            format!("Exchange of {}", number::counted(steps.len(), "step"))
        } else {
            format!("Round trip, {}", words::number(Unit::Bytes, bytes as f64))
        };
        return Some(tile(what, median, vec![notes]));
    }
    let cell = shown.bulk?;
    let notes = shortest_ns(dataset, cell)
        .map(|least| format!("TCP's; shortest {}", Unit::Nanoseconds.display(least)));
    Some(tile(
        "Round trip under load",
        cell.estimate(name::TCP_RTT)?,
        notes.into_iter().collect(),
    ))
}

/// The longest round trip next to other groups.
fn under_load(dataset: &Dataset<'_>) -> Option<Tile> {
    let loaded = under_load::longest(dataset)?;
    let median = loaded.cell.estimate(name::RTT_P50)?;
    Some(tile("Round trip under load", median, vec![loaded.note()]))
}

/// The smallest buffer that does as well as the best, which is one that gains or else the host's own tuning, with
/// the fewest connections; else the window that fills the link. A buffer that limits its own cell suffices for nothing.
fn buffer(dataset: &Dataset<'_>, shown: &Shown<'_, '_>) -> Option<Tile> {
    let window = study::windows(dataset).into_iter().next();
    // What a small message leaves of the window says nothing of it.
    let plateaus = dataset.verdicts().buffers();
    let plateaus = plateaus.filter(|found| !found.others.contains_key(&Factor::MessageBytes));
    let fewest = |found: &&ScalePlateau| {
        let control = plateau_cell(dataset, found, None);
        control.map(|cell| (cell.workload.connections, !is_to_server(cell)))
    };
    let first = plateaus.min_by_key(fewest);
    let begin = first.and_then(|found| {
        let at = found.gains().or(found.plateau.begin)?;
        let limiter = limits(dataset, plateau_cell(dataset, found, Some(at))?);
        let is_limit = matches!(limiter, Some(Limiter::ReceiverWindow | Limiter::SendBuffer));
        let bytes = found.levels[at].as_number().filter(|_| !is_limit)?;
        let below = match at.checked_sub(1) {
            Some(below) if found.loses(below) => None,
            Some(_) => Some("smaller ones are not decided"),
            None => Some("none smaller was measured"),
        };
        Some((bytes, below, found.with("with ")))
    });
    if let Some((bytes, below, with)) = begin {
        let needed = window.map(|window| {
            let bytes = words::estimate(&window.bytes);
            format!("{} needs {bytes}", window.rate.of)
        });
        let with = Some(with).filter(|with| !with.is_empty());
        let below_noted = below.map(str::to_owned);
        let notes = with.into_iter().chain(below_noted).chain(needed).collect();
        let value = Estimate::point(bytes, Unit::Bytes);
        let what = match below {
            None => "Smallest sufficient buffer",
            Some(_) => "Sufficient buffer",
        };
        return Some(tile(what, value, notes));
    }
    shown.bulk?;
    let window = window.filter(|window| !window.is_little())?;
    let note = format!("{} rate × {}", window.rate.of, window.basis);
    Some(tile("Window needed", window.bytes, vec![note]))
}

/// Returns the largest value of any trial.
fn worst(cell: &CellOutcomes<'_>, response: &str) -> Option<Estimate> {
    let unit = cell.estimate(response)?.unit;
    let values = cell.valid.iter().filter_map(|it| it.value(response));
    let most = values.max_by(f64::total_cmp)?;
    Some(Estimate::point(most, unit))
}

/// The longest time in which a workload of the host as it is did not go on.
fn longest_stall(dataset: &Dataset<'_>) -> Option<Tile> {
    let stall = |cell: &CellOutcomes<'_>| {
        if cell.is_rr() {
            let what = if cell.workload.traffic.is_placed() {
                "longest connection"
            } else {
                "longest round trip"
            };
            Some((worst(cell, name::RTT_MAX)?, what))
        } else {
            Some((worst(cell, name::STALL_MAX)?, "a flow received nothing"))
        }
    };
    let cells = measured(dataset);
    let known = cells.iter().filter_map(|cell| Some((stall(cell)?, *cell)));
    let ((value, what), cell) = known.max_by(|a, b| a.0.0.value.total_cmp(&b.0.0.value))?;
    let cause = match limits(dataset, cell) {
        Some(Limiter::NagleDelayedAck) if is_delayed_ack(dataset, cell, value.value) => {
            "Nagle and delayed ACK".to_owned()
        }
        _ if dataset.cells.len() == 1 => what.to_owned(),
        _ => format!("{what}: {}", cell.experiment.title),
    };
    Some(tile("Longest stall", value, vec![cause]))
}

/// Returns whether a delayed ACK may be as long, and nothing was sent again that may be what took it.
fn is_delayed_ack(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, longest_ns: f64) -> bool {
    let path_ns = shortest_ns(dataset, cell).unwrap_or_default();
    let again = cell.sum(name::RETRANSMITTED_BOTH).unwrap_or_default();
    longest_ns <= path_ns + DELAYED_ACK_NS_MAX && again == 0.0
}

/// One bar for each limiter of each experiment; of few cells of a lone experiment, one each.
fn bars(dataset: &Dataset<'_>) -> Vec<LimitBar> {
    let lone = dataset.experiments().len() == 1;
    let known: Vec<&CellOutcomes<'_>> = if lone {
        dataset.cells.iter().collect()
    } else {
        measured(dataset)
    };
    let known: Vec<_> = known
        .into_iter()
        .filter(|cell| reached(cell).is_some())
        .collect();
    if lone && known.len() <= BARS_MAX {
        return known
            .into_iter()
            .filter_map(|cell| bar(dataset, cell, 1))
            .collect();
    }
    type Group<'d, 'a> = (&'d str, Option<Limiter>, Vec<&'d CellOutcomes<'a>>);
    let mut groups: Vec<Group<'_, '_>> = Vec::new();
    for cell in known {
        let (experiment, limiter) = (&*cell.experiment.name, limits(dataset, cell));
        let same = |group: &&mut Group<'_, '_>| (group.0, group.1) == (experiment, limiter);
        match groups.iter_mut().find(same) {
            Some(group) => group.2.push(cell),
            None => groups.push((experiment, limiter, vec![cell])),
        }
    }
    let weight = |cell: &CellOutcomes<'_>| limiter_of(dataset, cell).map_or(0.0, |it| it.weight);
    let bar_of = |(_, _, cells): &Group<'_, '_>| {
        let shown = cells
            .iter()
            .max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
        bar(dataset, shown, cells.len() as u32)
    };
    groups.iter().filter_map(bar_of).collect()
}

fn bar(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, cells: u32) -> Option<LimitBar> {
    let value = reached(cell)?;
    let lone = dataset.experiments().len() == 1;
    Some(LimitBar {
        experiment: if lone {
            String::new()
        } else {
            cell.experiment.title.clone()
        },
        workload: if cell.cell.is_empty() {
            connections(cell)
        } else {
            words::whole_cell(&cell.cell)
        },
        cells,
        value,
        ceiling: ceiling(dataset, cell).filter(|known| value.value <= CEILING_EXCESS * known.value),
        limiter: limits(dataset, cell),
    })
}

/// Returns what a workload is there to reach.
fn reached(cell: &CellOutcomes<'_>) -> Option<Estimate> {
    let about = cell.workload.traffic.kind().about();
    let headline = about.carries_payload.then_some(about.headline);
    cell.estimate(headline?)
}

/// Returns what the wire carries in segments of the measured size, and of an exchange what its path allows.
fn ceiling(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Ceiling> {
    let what = Ceilings::Wire;
    let of_wire = dataset.limit_bps(cell).map(|value| Ceiling { value, what });
    of_wire.or_else(|| exchange_ceiling(dataset, cell))
}

/// Returns what the shortest round trip allows, or what link or path carry of the messages where that is less.
///
/// The shortest round trip is one of a segment. What more takes to be sent is known with the rate only: without that,
/// a short one says nothing of longer messages.
fn exchange_ceiling(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Ceiling> {
    let traffic = &cell.workload.traffic;
    let (request, response) = traffic.exchange().filter(|_| traffic.is_lasting())?;
    // Of each client over its own path, all together.
    let steps = cell.workload.manner.steps.as_deref();
    let in_turn = turns_per_s(dataset, cell)? / f64::from(steps.map_or(1, turns).max(1));
    let allowed = f64::from(cell.workload.manner.in_flight.max(1)) * in_turn;
    let ways = [
        (Direction::ToServer, request),
        (Direction::FromServer, response),
    ];
    let carried = ways.map(|(direction, bytes)| {
        let (bps, what) = carried_bps(dataset, &cell.workload, direction)?;
        let value = bps / (8.0 * bytes.0.max(1) as f64);
        Some(Ceiling { value, what })
    });
    let is_known = carried.iter().all(Option::is_some);
    let least = carried
        .into_iter()
        .flatten()
        .min_by(|a, b| a.value.total_cmp(&b.value));
    if let Some(least) = least.filter(|least| least.value < allowed) {
        return Some(least);
    }
    let segment = cell.mean(name::SEND_MSS).unwrap_or(SEGMENT_BYTES as f64);
    let is_longer = request.max(response).0 as f64 > segment;
    let is_short = shortest_ns(dataset, cell)? < RATIO_NS_MIN;
    let says_nothing = is_longer && is_short && !is_known;
    (!says_nothing).then_some(Ceiling {
        value: allowed,
        what: Ceilings::RoundTrip,
    })
}

/// Returns the payload that the links carry in `direction`, or else that the path was found to.
fn carried_bps(
    dataset: &Dataset<'_>,
    workload: &Workload,
    direction: Direction,
) -> Option<(f64, Ceilings)> {
    let of_link = dataset
        .path
        .ceiling(workload, direction)
        .map(|ceiling| (ceiling.payload.0, Ceilings::Wire));
    let of_path = || {
        let bps = study::path_bps(dataset, |way| way == direction);
        bps.filter(|_| workload.clients <= 1)
            .map(|bps| (bps, Ceilings::Path))
    };
    of_link.or_else(of_path)
}
