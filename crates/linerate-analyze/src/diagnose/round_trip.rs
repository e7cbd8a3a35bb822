//! Where the time of an exchange goes.
//!
//! A connection that waits for each response makes one transaction a round trip, whatever the round
//! trip consists of: rate × round trip = connections holds always and explains nothing. What does is
//! the split of the mean round trip, each part taken from what the others leave:
//!
//! 1. the *path*: TCP's shortest round trip at either end, twice where each transaction makes a connection, or where
//!    Nagle's algorithm holds the second piece of a request until the first is acknowledged;
//! 2. *slow* transactions, as long as a retransmission timeout: what they add to the mean;
//! 3. *waiting for a CPU*: workers that could run and did not (schedstat);
//! 4. a *queue on the way*: what TCP's smoothed round trip, at the end where it is shorter, has above
//!    path and waiting. It is one from 0.5 ms on that are a quarter of the path; below, it is the
//!    scheduler's luck;
//! 5. *carrying* the bytes of request and response over a link of known rate;
//! 6. the *workers' own work*, kernel time in their calls included;
//! 7. the *rest*, which nothing of that explains.
//!
//! The largest part of most trials is named. A rest of at least 1 ms and half of the whole, beside a
//! round trip of TCP that has nothing of it, is the answering application (or a host that stands still):
//! [`Limiter::Application`].
//!
//! Over a path of unknown rate a queue, or a rest that one end's round trip has, may be the time that a line of
//! 1 Mbit/s takes for the bytes: then both are named.
//!
//! Messages of more than [`CARRIED_AT_ONCE_BYTES`] take as long as the path needs to carry them, in several
//! round trips where the congestion window is smaller: unless the link's rate is known and the window holds
//! them, no rest of theirs is the application's.
//!
//! What cannot be told apart is said so: with the requester's end alone, TCP's round trip also holds
//! what the responder takes to answer, up to the 200 ms for which an acknowledgement may be delayed;
//! longer than that is the path, where no delayed ACK was counted. Split requests whose delayed ACKs were
//! not counted may wait for one, and so may what TCP_CORK holds (200 ms, man 7 tcp) for more.
//!
//! Datagrams have no round trip of TCP: of what nothing else explains, as much as an exchange over the control connection
//! takes is the path's.
//!
//! Where such an exchange takes longer than TCP's shortest round trip by half of a rest or a queue,
//! something between the hosts may end connections, and neither is told.
//!
//! Where an end that sends a large message waits for the receiver's window most of the time, and no round trip has a
//! queue, that window is the limiter. A pause that was asked for (`--think`) is a part of its own. Of several requests
//! under way on a connection only the path is told: one of them waits for others. Small ones take three round trips with
//! Nagle's algorithm, one for the request that it holds and one for the response: there the path is told where these are
//! the whole within a tenth (0.97 to 1.08 were seen). Not for traffic that goes by the clock.
//!
//! No host is a few microseconds away: as short a path is the work of both kernels.

use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::parameter::parameter_of;
use linerate_model::run::{Control, HostPart, HostRecord};
use linerate_model::unit::Unit;
use linerate_model::wire::INITIAL_WINDOW_SEGMENTS;
use linerate_model::workload::{Direction, Workload};

use super::cpu;
use super::evidence;
use super::nagle_delayed_ack::may_stall;
use super::repeat;
use super::rule::{Judge, Rule};
use super::trial::{MOST, NEAR_QUOTIENT_MAX, QUEUE_NS_MIN};
use super::verdict::Verdict;
use crate::compare::poisson;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{
    DELAYED_ACK_NS_MAX, Outcome, SCHEDULER_NS_MAX, SEGMENT_BYTES, Values, Way, name,
};
use crate::words;

/// Largest relative difference of transactions under way and connections: where it is more, something
/// else than the round trip passes between two requests.
const LITTLE_SHARE_MAX: f64 = 0.1;
/// The part of the path that a queue is at least.
const QUEUE_SHARE_MIN: f64 = 0.25;
/// Least rest that is told as an application's doing, and the part of the round trip that it is then:
/// wake-ups of idle CPUs and interrupts are in it too, and stay well below.
const APPLICATION_NS_MIN: f64 = 1e6;
const APPLICATION_SHARE_MIN: f64 = 0.5;

/// What passes at once: an initial window of ten segments (RFC 6928).
const CARRIED_AT_ONCE_BYTES: u64 = INITIAL_WINDOW_SEGMENTS * SEGMENT_BYTES;

/// Payload that the slowest line carries which is thought of where nobody knows its rate: 1 Mbit/s with its headers.
const SLOW_LINE_BPS: f64 = 0.8e6;
/// Segments sent again for each transaction from which on that is most of what is slow, and the share of the time in which
/// they are: losses of one instant, as of the first slow start, are no more than one event. 0.43 to 0.9 were seen of ways that
/// lose, 0.02 to 0.18 of queues that overflowed at the begin.
const LOSSES_PER_TRANSACTION_MIN: f64 = 0.1;
const LOSING_SHARE_MIN: f64 = 0.25;

/// TCP's shortest round trip up to which kernels make it: 3 to 9 µs were seen of hosts without a wire between them, 15 µs
/// is what the fastest adapters take with theirs.
const KERNELS_NS_MAX: f64 = 10e3;
/// How far the three round trips of small messages that Nagle's algorithm holds may be from the whole.
const HELD_TRIPS_DIFFERENCE_MAX: f64 = 0.1;

/// Least part of the round trip that is worth a word.
const PART_SHARE_MIN: f64 = 0.005;

/// A part of the mean round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Portion {
    /// TCP's shortest round trip.
    Path,
    /// What slow transactions add.
    Slow,
    /// Workers waiting for a CPU.
    CpuWait,
    /// A queue on the way, or a delay that varies.
    Queue,
    /// Carrying the bytes over a link of known rate.
    Carrying,
    /// The workers' own work.
    Workers,
    /// What nothing explains.
    Rest,
    /// What nothing explains where a part was not read, and may have it.
    Unread,
    /// The pause that was asked for.
    Pause,
}

/// The parts in order, in nanoseconds; they add up to the mean, with the pause that was asked for before each request.
type Split = [(Portion, f64); 8];

/// What of the set-up a split needs.
struct Known {
    way: Way,
    carried_ns: Option<f64>,
    pause_ns: f64,
    /// What has to be read before the rest is explained by nothing.
    parts: Vec<&'static str>,
    /// An exchange over the control connection, where TCP's round trip is unknown.
    exchange_ns: f64,
}

impl Known {
    fn of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Self {
        let is_tcp = cell.workload.manner.transport.is_tcp();
        let way = way_of(cell);
        let of_path = [name::PATH_RTT, name::PATH_RTT_LOADED];
        // Of connections that are gone the shortest is kept alone.
        let count = if way == Way::Connects { 1 } else { 2 };
        let of_path = of_path.into_iter().take(count).filter(|_| is_tcp);
        // Workers that spin run always.
        let spins = cell.workload.manner.spins();
        let of_workers = Some(name::RTT_WORKERS).filter(|_| !spins);
        let parts = of_path.chain([name::RTT_CPU_WAIT]).chain(of_workers);
        Self {
            parts: parts.collect(),
            way,
            carried_ns: carried_ns(dataset, cell),
            pause_ns: pause_ns(cell),
            // Below that it is as much the agent's work.
            exchange_ns: exchange_ns(dataset)
                .filter(|ns| !is_tcp && *ns >= APPLICATION_NS_MIN)
                .unwrap_or(0.0),
        }
    }
}

/// How often transactions go over the path: messages of which several are under way are held where the round trip shows it.
fn way_of(cell: &CellOutcomes<'_>) -> Way {
    let way = Way::of(&cell.workload);
    let trips = cell.mean(name::RTT_MEAN).zip(cell.mean(name::PATH_RTT));
    let fits = trips.is_some_and(|(mean, path)| {
        (mean / (way.trips() * path) - 1.0).abs() <= HELD_TRIPS_DIFFERENCE_MAX
    });
    match way {
        // On a short way, waiting for a CPU may be twice the path by chance.
        Way::HoldsMessages if !fits || is_near(cell) => Way::Once,
        _ => way,
    }
}

/// Whether TCP's shortest round trip is of a way on which a CPU's delay is as long.
fn is_near(cell: &CellOutcomes<'_>) -> bool {
    !cell.reaches(name::PATH_RTT, QUEUE_NS_MIN)
}

/// Whether the path is most of the round trip, and Nagle's algorithm makes it so.
fn is_held_by_nagle(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    matches!(way_of(cell), Way::HoldsPieces | Way::HoldsMessages)
        && largest_part(dataset, cell) == Some(Portion::Path)
}

fn splits(cell: &CellOutcomes<'_>, known: &Known) -> Vec<Split> {
    let valid = cell.valid.iter();
    valid.filter_map(|outcome| split(outcome, known)).collect()
}

fn split(outcome: &Outcome, set_up: &Known) -> Option<Split> {
    let way = set_up.way;
    let known = |response| outcome.amount(response).least().max(0.0);
    let mut left = outcome.value(name::RTT_MEAN).filter(|mean| *mean > 0.0)?;
    let mut take = |part, ns: f64| {
        let taken = ns.min(left);
        left -= taken;
        (part, taken)
    };
    let slow = take(Portion::Slow, known(name::RTT_SLOW));
    let path = take(Portion::Path, way.trips() * known(name::PATH_RTT));
    let waited = take(Portion::CpuWait, known(name::RTT_CPU_WAIT));
    // What waits on the path does so each time.
    let above = outcome.amount(name::PATH_RTT_LOADED) - outcome.amount(name::PATH_RTT);
    let above = way.trips() * above.least() - waited.1;
    let is_queue = above >= QUEUE_NS_MIN && above >= QUEUE_SHARE_MIN * path.1;
    let queue = take(Portion::Queue, if is_queue { above } else { 0.0 });
    let carrying = take(Portion::Carrying, set_up.carried_ns.unwrap_or(0.0));
    let workers = take(Portion::Workers, known(name::RTT_WORKERS));
    let by_exchange = take(Portion::Path, set_up.exchange_ns);
    let path = (Portion::Path, path.1 + by_exchange.1);
    let are_read = set_up
        .parts
        .iter()
        .all(|part| outcome.amount(part).known().is_some());
    let of_rest = if are_read {
        Portion::Rest
    } else {
        Portion::Unread
    };
    let rest = (of_rest, left);
    let pause = (Portion::Pause, set_up.pause_ns);
    Some([path, slow, waited, queue, carrying, workers, rest, pause])
}

fn largest(split: &Split) -> Portion {
    let most = split.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map_or(Portion::Rest, |(part, _)| *part)
}

/// The part that is largest in more than half of the trials.
fn largest_of_most(splits: &[Split]) -> Option<Portion> {
    let parts: Vec<Portion> = splits.iter().map(largest).collect();
    let of = |part: &Portion| parts.iter().filter(|other| *other == part).count();
    parts
        .iter()
        .find(|part| 2 * of(part) > parts.len())
        .copied()
}

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::RoundTrip,
    needs: "one transaction at a time; parts of the mean round trip",
    importance: 4,
    explains_failure: false,
    judge: Judge::Cell(verdict),
    evident: Some(mend),
    next,
};

/// What to do about it by its largest part: more at a time helps where nothing waits.
fn mend(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let workload = &cell.workload;
    if workload.options.cork == Some(true) {
        return None;
    }
    if is_held_by_nagle(dataset, cell) {
        let words = "repeat with `-N` (TCP_NODELAY): Nagle's algorithm holds small segments";
        return Some(words.to_owned());
    }
    let is_single = workload.connections <= 1 && workload.manner.in_flight <= 1;
    match largest_part(dataset, cell)? {
        Portion::Queue if is_single => Some(
            "repeat with `-P 2`: where the rate stays, the path is full; where it doubles, others' packets wait there, or its \
             delay varies"
                .to_owned(),
        ),
        Portion::Queue | Portion::Rest => Some(format!(
            "repeat with {}: where the rate stays, the path or the server carries no more; where it halves, {} raises it",
            repeat::half_at_a_time(workload)?,
            repeat::more_connections(workload),
        )),
        _ => None,
    }
}

fn next(workload: &Workload) -> Option<String> {
    if workload.options.cork == Some(true) {
        let words = "repeat without `--cork`: it holds what is no full segment";
        return Some(words.to_owned());
    }
    let more = repeat::more_connections(workload);
    let in_flight = repeat::more_in_flight(workload);
    // Messages of one connection that are longer than what it may send at once from its start share its window.
    let longest = workload.traffic.longest_exchanged();
    let are_large = longest.is_some_and(|bytes| bytes.0 > CARRIED_AT_ONCE_BYTES);
    let (kind, transport) = (workload.traffic.kind(), workload.manner.transport);
    let may_join = parameter_of("in_flight").is_some_and(|it| it.fits(kind, transport))
        && workload.manner.steps.is_none();
    Some(match (!may_join, are_large) {
        (true, false) => format!("open more connections at the same time: {more}"),
        (true, true) => format!(
            "open more connections at the same time: {more}; where the rate stays, the path is full"
        ),
        (false, true) => {
            format!("keep more requests in flight: {more}; where the rate stays, the path is full")
        }
        (false, false) => {
            format!("keep more requests in flight: {in_flight}, or {more}")
        }
    })
}

fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let manner = &cell.workload.manner;
    if manner.requests_per_s.is_some()
        || manner.has_pauses()
        || !cell.workload.traffic.is_transactional()
        || !always_waits(cell)
    {
        return None;
    }
    let rate = cell.estimate(name::TRANSACTIONS)?;
    let mean = cell.estimate(name::RTT_MEAN)?;
    let known = Known::of(dataset, cell);
    let (way, carried_ns, pause_ns) = (known.way, known.carried_ns, known.pause_ns);
    if way == Way::Connects && cell.mean(name::PATH_RTT).is_none() {
        // Older agents did not read it of connections that are gone.
        return None;
    }
    let splits = splits(cell, &known);
    let largest = largest_of_most(&splits);
    if matches!(largest, Some(Portion::Slow | Portion::Unread)) {
        // Timeouts that counters prove have a rule of their own; these are slow for another reason.
        return None;
    }
    let is_of_kernels =
        largest == Some(Portion::Path) && cell.stays_within(name::PATH_RTT, KERNELS_NS_MAX);
    // Of several under way on a connection, one waits for those before it, and for an ACK with Nagle's algorithm; after a
    // pause, for what sleeps meanwhile: a radio, a CPU, a server.
    let may_wait_for_other = match largest {
        Some(Portion::Path) => false,
        Some(Portion::Rest | Portion::Queue) => manner.in_flight > 1 || pause_ns > 0.0,
        _ => manner.in_flight > 1,
    };
    if may_wait_for_other {
        return None;
    }
    let parts: Vec<(Portion, f64)> = (0..splits.first()?.len())
        .map(|at| {
            let sum: f64 = splits.iter().map(|split| split[at].1).sum();
            (splits[0][at].0, sum / splits.len() as f64)
        })
        .collect();
    let of = |part: Portion| {
        parts
            .iter()
            .find(|(other, _)| *other == part)
            .map_or(0.0, |one| one.1)
    };
    let unlike_path = largest.filter(|part| matches!(part, Portion::Rest | Portion::Queue));
    let is_relayed = unlike_path.is_some_and(|part| may_be_relayed(dataset, cell, of(part)));
    let trip = |cause| (Limiter::RoundTrip, cause);
    let (limiter, cause) = match largest {
        Some(Portion::CpuWait) => cpu::of_waiting(cell)?,
        _ if is_relayed => trip("The round trip"),
        Some(Portion::Rest) if is_carried_in_parts(cell, carried_ns) && is_held_by_window(cell) => {
            (
                Limiter::ReceiverWindow,
                "The receive window, which holds a part of such a message,",
            )
        }
        Some(Portion::Rest) if is_carried_in_parts(cell, carried_ns) && loses(cell) => {
            trip("Carrying messages of this size over a path that loses segments")
        }
        Some(Portion::Rest) if is_carried_in_parts(cell, carried_ns) => {
            trip("Carrying messages of this size")
        }
        Some(Portion::Rest) if may_be_carried(cell, carried_ns, of(Portion::Rest)) => trip(
            "Carrying messages of this size or the application that answers, which cannot be distinguished \
             without the path's rate,",
        ),
        Some(Portion::Rest) if cell.workload.options.cork == Some(true) => trip(
            "TCP_CORK, which holds what is no full segment for up to 200 ms, or the application that answers",
        ),
        Some(Portion::Rest) if is_application(cell, of(Portion::Rest), mean.value) => {
            (Limiter::Application, "The application that answers")
        }
        Some(Portion::Queue) if fits_slow_line(cell, carried_ns, of(Portion::Queue)) => trip(
            "A queue on the path or carrying messages of this size, which cannot be distinguished without the \
             path's rate,",
        ),
        Some(Portion::Queue) if is_one_sided(cell) => trip(
            "A queue on the path or the application that answers, which TCP's round trip at one end does \
             not distinguish,",
        ),
        Some(Portion::Rest) if may_stall(cell) && cell.sum(name::DELAYED_ACKS_SENT).is_none() => {
            trip("The application that answers or a delayed ACK, which was not counted,")
        }
        Some(Portion::Path) if loses(cell) => trip("The path, which loses segments,"),
        Some(Portion::Path) if is_of_kernels => trip("The work of both ends"),
        Some(Portion::Path) => trip("The path"),
        Some(Portion::Queue) => trip("A queue on the path, or delay that varies,"),
        Some(Portion::Carrying) => trip("Carrying messages of this size"),
        // Ends work while bytes are on their way: who does not know the rate cannot tell the two apart.
        Some(Portion::Workers) if is_carried_in_parts(cell, carried_ns) => trip(
            "Carrying messages of this size or the work of both ends, which cannot be distinguished without \
             the path's rate,",
        ),
        Some(Portion::Workers) => trip("The work of both ends"),
        Some(Portion::Pause) => (Limiter::Pacing, "The requested pause"),
        Some(Portion::Rest | Portion::Unread | Portion::Slow) | None => trip("The round trip"),
    };
    let whole_ns = mean.value + pause_ns;
    let listed: Vec<String> = parts
        .iter()
        .filter(|(_, ns)| *ns >= PART_SHARE_MIN * whole_ns)
        .map(|(part, ns)| {
            let words = match part {
                Portion::Queue if is_relayed => "that TCP's round trip has above its shortest",
                Portion::Path if is_of_kernels && way == Way::Once => {
                    "in both kernels (TCP's shortest)"
                }
                Portion::Path if is_of_kernels => {
                    "in both kernels (TCP's shortest, each time there and back)"
                }
                Portion::Path if known.exchange_ns > 0.0 => {
                    "of path (at most what an exchange with the agent takes)"
                }
                _ => words_of(*part, way),
            };
            format!("{} {words}", Unit::Nanoseconds.display(*ns))
        })
        .collect();
    let share = cell.derived(Unit::Ratio, |outcome| {
        let split = split(outcome, &known)?;
        let whole: f64 = split.iter().map(|(_, ns)| ns).sum();
        let part = largest.unwrap_or(Portion::Rest);
        let taken = split.iter().find(|(other, _)| *other == part)?.1;
        Some(taken / whole)
    })?;
    Some(Verdict {
        limiter,
        claim: format!(
            "{cause} limits the rate to {}: a mean {} of {} is {}.",
            words::estimate(&rate),
            match way {
                Way::Connects => "connection",
                _ if pause_ns > 0.0 => "time from request to request",
                _ => "round trip",
            },
            Unit::Nanoseconds.display(whole_ns),
            words::list(&listed),
        ),
        explanation: match is_relayed {
            true => RELAYED,
            // What it takes without a way between the hosts is their work.
            false if is_of_kernels => explanation(limiter, Some(Portion::Workers), way),
            false => explanation(limiter, largest, way),
        }
        .to_owned(),
        effect: share,
        evidence: cell.proof(&[
            ("mean round trip", name::RTT_MEAN),
            ("transactions per second", name::TRANSACTIONS),
            ("median round trip", name::RTT_P50),
            ("TCP's shortest round trip, of both ends", name::PATH_RTT),
            evidence::LOADED,
            (
                "part of the round trip waiting for a CPU",
                name::RTT_CPU_WAIT,
            ),
            (
                "part of the round trip in which workers ran",
                name::RTT_WORKERS,
            ),
            (
                "ACKs sent by the delayed-ACK timer",
                name::DELAYED_ACKS_SENT,
            ),
            (
                "retransmission timeouts and loss probes",
                name::TIMERS_FIRED,
            ),
        ])?,
        weight: rate.value,
    })
}

/// Whether the path or the work of both ends is most of the round trip: every host has these.
pub(super) fn is_plain(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    matches!(
        largest_part(dataset, cell),
        Some(Portion::Path | Portion::Carrying | Portion::Workers)
    )
}

/// Returns the largest part of the mean round trip of most trials.
fn largest_part(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Portion> {
    largest_of_most(&splits(cell, &Known::of(dataset, cell)))
}

/// The pause that was asked for between a response and the next request.
fn pause_ns(cell: &CellOutcomes<'_>) -> f64 {
    cell.workload
        .manner
        .think
        .map_or(0.0, |pause| pause.0 as f64)
}

/// Whether an end that has a message to send waits for the receiver's window most of the time, and no queue makes its
/// round trip long, which would hold as much of the window.
fn is_held_by_window(cell: &CellOutcomes<'_>) -> bool {
    let ends = [name::TCP_RTT, name::TCP_RTT_SERVER].map(|end| cell.mean(end));
    let path = cell.mean(name::PATH_RTT);
    let is_near = |rtt: f64| {
        path.is_some_and(|path| rtt <= NEAR_QUOTIENT_MAX * path || rtt - path < SCHEDULER_NS_MAX)
    };
    cell.reaches(name::RWND_LIMITED, MOST) && ends.iter().flatten().all(|rtt| is_near(*rtt))
}

/// Bytes of request and response together, the largest where they differ.
fn exchanged_bytes(cell: &CellOutcomes<'_>) -> f64 {
    let sizes = cell.workload.manner.sizes.as_ref();
    let largest = sizes.map(|sizes| 2 * sizes.largest().0);
    let exchange = cell.workload.traffic.exchange();
    let fixed = exchange.map_or(0, |(request, response)| request.0 + response.0);
    largest.unwrap_or(fixed) as f64
}

/// Returns how long the link takes to carry request and response, without headers; absent where its rate
/// or the size is unknown.
fn carried_ns(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<f64> {
    if cell.workload.manner.sizes.is_some() {
        return None;
    }
    let (request, response) = cell.workload.traffic.exchange()?;
    let ways = [
        (request, Direction::ToServer),
        (response, Direction::FromServer),
    ];
    let times = ways.map(|(bytes, way)| {
        let rate = dataset.path.rate_in(&cell.workload, way)?;
        Some(bytes.0 as f64 * 8e9 / rate)
    });
    times.into_iter().sum()
}

/// Whether messages are so large that the path takes long to carry them, and nobody knows how long.
fn is_carried_in_parts(cell: &CellOutcomes<'_>, carried_ns: Option<f64>) -> bool {
    let bytes = exchanged_bytes(cell);
    let window = cell.mean(name::CWND).zip(cell.mean(name::SEND_MSS));
    let is_held = window.is_some_and(|(segments, mss)| segments * mss >= bytes);
    bytes > CARRIED_AT_ONCE_BYTES as f64 && !(is_held && carried_ns.is_some())
}

/// Whether a line as slow as [`SLOW_LINE_BPS`] takes so long to carry request and response, where nobody knows
/// how fast it is.
fn fits_slow_line(cell: &CellOutcomes<'_>, carried_ns: Option<f64>, ns: f64) -> bool {
    carried_ns.is_none() && ns <= exchanged_bytes(cell) * 8e9 / SLOW_LINE_BPS
}

/// Whether a rest may be the time that a line of unknown rate takes: then the end that sends more has it in
/// TCP's round trip.
fn may_be_carried(cell: &CellOutcomes<'_>, carried_ns: Option<f64>, rest_ns: f64) -> bool {
    let ends = [name::TCP_RTT, name::TCP_RTT_SERVER];
    let longest = ends
        .into_iter()
        .filter_map(|end| cell.mean(end))
        .fold(0.0, f64::max);
    let path = cell.mean(name::PATH_RTT);
    let is_longer = path.is_some_and(|path| longest - path >= APPLICATION_SHARE_MIN * rest_ns);
    fits_slow_line(cell, carried_ns, rest_ns) && is_longer
}

/// Whether so many segments are sent again that transactions wait for them.
fn loses(cell: &CellOutcomes<'_>) -> bool {
    let again = cell.sum(name::RETRANSMITTED_BOTH);
    let again = again.or_else(|| cell.sum(name::RETRANSMITTED));
    let timed = cell.sum(name::TRANSACTIONS_TIMED);
    let known = again.zip(timed);
    known.is_some_and(|(again, timed)| again >= LOSSES_PER_TRANSACTION_MIN * timed)
        && !cell.stays_below(name::LOSING, LOSING_SHARE_MIN)
}

/// Whether each connection always waits for a response, or pauses as asked: the recording agrees with itself, and nothing
/// else passes between a response and the next request.
fn always_waits(cell: &CellOutcomes<'_>) -> bool {
    let manner = &cell.workload.manner;
    let at_once = f64::from(cell.workload.connections) * f64::from(manner.in_flight);
    let share = cell.derived(Unit::Ratio, |outcome| {
        let each_ns = outcome.value(name::RTT_MEAN)? + pause_ns(cell);
        Some(outcome.value(name::TRANSACTIONS)? * each_ns / 1e9 / at_once)
    });
    share.is_some_and(|share| (share.value - 1.0).abs() <= LITTLE_SHARE_MAX)
}

/// What TCP's smoothed round trip has above the shortest.
pub(super) fn above_path_ns(cell: &CellOutcomes<'_>) -> Option<f64> {
    Some(cell.mean(name::PATH_RTT_LOADED)? - cell.mean(name::PATH_RTT)?)
}

/// TCP's round trip was read at the requester's end alone, and may hold the responder's time.
fn is_one_sided(cell: &CellOutcomes<'_>) -> bool {
    if cell.mean(name::TCP_RTT_SERVER).is_some() {
        return false;
    }
    let is_longer = above_path_ns(cell).is_some_and(|ns| ns > DELAYED_ACK_NS_MAX);
    let sums = [name::DELAYED_ACKS_SENT, name::TRANSACTIONS_TIMED].map(|counted| cell.sum(counted));
    let rests = matches!(sums, [Some(delayed), Some(timed)] if poisson::rests(delayed, timed));
    !(is_longer && rests)
}

/// Whether something between the hosts may end the connections (a proxy, a tunnel of ssh, a load balancer), so that TCP's
/// round trip is not that of the way: an exchange of the control connection takes longer than TCP's shortest by half of `ns`
/// or more.
fn may_be_relayed(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, ns: f64) -> bool {
    let path_ns = cell.mean(name::PATH_RTT);
    let beyond = exchange_ns(dataset).zip(path_ns);
    beyond.is_some_and(|(exchange_ns, path_ns)| exchange_ns - path_ns >= APPLICATION_SHARE_MIN * ns)
}

/// Returns the shortest exchange over the control connection, which the uncertainty of a clock is half of. Exchanges are the
/// controller's: they go the way of the flows where it is their client.
fn exchange_ns(dataset: &Dataset<'_>) -> Option<f64> {
    let is_here = |host: &HostRecord| {
        host.part == HostPart::Server || host.control == Some(Control::InProcess)
    };
    let server = dataset.recording.document.server()?;
    let is_client = dataset.hosts().iter().all(is_here);
    is_client.then_some(2.0 * server.clock.uncertainty_ns as f64)
}

/// TCP's round trip has next to nothing of the rest: a queue that makes it much longer may have the rest as well, where TCP
/// sends again what waits there. And no delayed ACK that nobody counted can have it.
fn is_application(cell: &CellOutcomes<'_>, rest_ns: f64, mean_ns: f64) -> bool {
    let is_long = rest_ns >= APPLICATION_NS_MIN && rest_ns >= APPLICATION_SHARE_MIN * mean_ns;
    let is_counted = !may_stall(cell) || cell.sum(name::DELAYED_ACKS_SENT).is_some();
    // TCP_INFO of MPTCP is that of its first path, which may not be the one that carries.
    let is_one_path = cell.workload.manner.transport != Transport::Mptcp;
    let is_short = above_path_ns(cell).is_some_and(|ns| ns < APPLICATION_SHARE_MIN * rest_ns);
    is_one_path && is_long && is_counted && is_short
}

/// What is said where TCP's round trip is not that of the way.
const RELAYED: &str = "An exchange with the agent takes longer than TCP's shortest round trip: something between the hosts \
                       may end connections (a proxy, a tunnel of ssh, a load balancer), and the way behind it, or the server, \
                       has the rest.";

fn words_of(part: Portion, way: Way) -> &'static str {
    match part {
        Portion::Path if way == Way::Connects => "of path (twice TCP's shortest)",
        Portion::Path if way == Way::HoldsPieces => {
            "of path (twice TCP's shortest, once for what Nagle's algorithm holds)"
        }
        Portion::Path if way == Way::HoldsMessages => {
            "of path (three times TCP's shortest, twice for what Nagle's algorithm holds)"
        }
        Portion::Path if matches!(way, Way::Answers(2..)) => {
            "of path (TCP's shortest for each answer)"
        }
        Portion::Path => "of path (TCP's shortest)",
        Portion::Slow => "of slow transactions",
        Portion::CpuWait => "of waiting for a CPU",
        Portion::Queue => "of a queue or a varying delay",
        Portion::Carrying => "of carrying the bytes over the link",
        Portion::Workers => "of work at both ends",
        Portion::Rest | Portion::Unread => "that none of this explains",
        Portion::Pause => "of the pause before each request",
    }
}

fn explanation(limiter: Limiter, largest: Option<Portion>, way: Way) -> &'static str {
    match (limiter, largest) {
        (Limiter::Application, _) => {
            "TCP's own round trip does not include it: requests reach the other host in time, and the \
             response is written late. Check what the server does in between, and whether its host stalls."
        }
        (Limiter::ReceiverWindow, _) => {
            "A message larger than the window takes a round trip for each part of it, and the end that sends waited for \
             the window most of the time. A larger receive buffer at the other end, or smaller messages, take fewer."
        }
        (_, Some(Portion::Pause)) => {
            "Path and hosts carry at least this much. Leave out the pause to find their limit."
        }
        (_, Some(Portion::CpuWait)) => {
            "Threads that move the messages were runnable but had no CPU. Free CPUs, or a CPU of their \
             own, shorten the round trip."
        }
        (_, Some(Portion::Carrying)) => {
            "A faster link, or messages of fewer bytes, shorten the round trip; a congestion window smaller \
             than a message takes round trips of its own."
        }
        (_, Some(Portion::Path)) if way == Way::HoldsPieces => {
            "Nagle's algorithm holds what follows the first piece of a request until that is acknowledged, a round trip \
             later. A request in one write, or TCP_NODELAY, takes one round trip."
        }
        (_, Some(Portion::Path)) if way == Way::HoldsMessages => {
            "Nagle's algorithm holds a small message until the one before is acknowledged: each request waits a round trip \
             for that, and so does each response. TCP_NODELAY takes one round trip."
        }
        (_, Some(Portion::Path)) if way == Way::Connects => {
            "Connecting takes one round trip, request and response another. More connections at a time use such a \
             path better; a single request gets faster over connections that are kept, on a shorter path, or with less \
             that others queue there (compare with a quiet hour)."
        }
        (_, Some(Portion::Path)) if matches!(way, Way::Answers(_)) => {
            "More connections use such a path better; a single exchange gets faster on a shorter path, with fewer steps that \
             wait for an answer, or with less that others queue there (compare with a quiet hour)."
        }
        (_, Some(Portion::Path)) => {
            "More requests in flight, over one connection or several, use such a path better; a single one gets faster on \
             a shorter path, or with less that others queue there (compare with a quiet hour)."
        }
        (_, Some(Portion::Queue)) => {
            "The same path was faster at another time: packets wait behind other traffic, or the path takes \
             longer at times, as radio does. Less load there, or a shorter queue, shortens what is a queue's."
        }
        _ => {
            "Each part is taken from what the parts before it leave; with several flows per worker, \
             waiting and work are upper bounds."
        }
    }
}
