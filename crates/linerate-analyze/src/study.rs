//! Numbers of the study that several findings, chapters and headlines share.

use std::fmt;
use std::rc::Rc;

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::Estimate;
use linerate_model::limiter::Limiter;
use linerate_model::unit::{BitsPerSec, Nanos, Unit};
use linerate_model::wire::bandwidth_delay_bytes;
use linerate_model::workload::Direction;

use crate::compare::noise::Noise;
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::limits;
use crate::reduce::{SEGMENT_BYTES, name};

/// The chapter on latency.
pub(crate) const LATENCY: u32 = 1;
/// The chapter on socket buffers.
pub(crate) const SOCKET_BUFFER: u32 = 3;
/// The chapter on receive queues and CPUs.
pub(crate) const QUEUES: u32 = 12;

/// Link rate and round trip of the published example.
pub(crate) const PUBLISHED_LINK: BitsPerSec = BitsPerSec(1e9);
/// Round trip of 1460 B on a Sun Fire 6800 as published.
pub(crate) const PUBLISHED_RTT: Nanos = Nanos(150_000);

/// The rate that a window is to fill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Whose it is.
    pub(crate) of: RateOf,
    /// Bits per second.
    pub(crate) bps: f64,
}

/// What has a rate that a window is to fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateOf {
    Link,
    Path,
}

impl fmt::Display for RateOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "link",
            Self::Path => "path",
        })
    }
}

/// The window that a round trip asks for.
pub(crate) struct Window {
    /// What it fills.
    pub(crate) rate: Rate,
    /// Which round trip, in words.
    pub(crate) basis: String,
    /// The round trip.
    pub(crate) rtt: Estimate,
    /// Bytes that must be in flight to fill link or path over it.
    pub(crate) bytes: Estimate,
}

impl Window {
    /// Returns whether it is less than what one segment holds.
    pub(crate) fn is_little(&self) -> bool {
        self.bytes.value < SEGMENT_BYTES as f64
    }
}

/// Returns the valid request/response cells of the latency chapter by payload, delayed ACK on
/// where it was varied.
pub(crate) fn latency_cells<'d, 'a>(dataset: &'d Dataset<'a>) -> Vec<&'d CellOutcomes<'a>> {
    let mut cells: Vec<_> = dataset
        .measured()
        .filter(|cell| cell.experiment.chapter == Some(LATENCY) && cell.is_rr())
        .filter(|cell| cell.level(Factor::DelayedAck) != Some(&Level::Switch(false)))
        .collect();
    cells.sort_by_key(|cell| payload_bytes(cell));
    cells
}

/// Returns the larger of request and response.
pub(crate) fn payload_bytes(cell: &CellOutcomes<'_>) -> Option<u64> {
    Some(cell.workload.traffic.longest_exchanged()?.0)
}

/// Returns the noise of the response of each experiment that was repeated, the noisiest first.
pub(crate) fn noises<'a>(dataset: &Dataset<'a>) -> Vec<(&'a Experiment, Rc<Noise>)> {
    let mut noises: Vec<(&Experiment, Rc<Noise>)> = dataset
        .experiments()
        .iter()
        .filter_map(|experiment| {
            let cells = dataset.cells_of(&experiment.name);
            let noise = cells.first()?.noise(&experiment.response)?;
            Some((experiment, noise))
        })
        .collect();
    noises.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    noises
}

/// Returns the windows that the measured round trips ask for, the one to rely on first.
pub(crate) fn windows(dataset: &Dataset<'_>) -> Vec<Window> {
    let Some(rate) = rate(dataset) else {
        return Vec::new();
    };
    round_trips(dataset)
        .into_iter()
        .map(|(basis, rtt)| Window {
            rate,
            basis,
            rtt,
            bytes: bytes_in_flight(BitsPerSec(rate.bps), &rtt),
        })
        .collect()
}

/// Returns what the path carried one client of the host as it is, where that was the limiter of the fastest stream; else
/// the signalling rate of the link.
pub(crate) fn rate(dataset: &Dataset<'_>) -> Option<Rate> {
    let of = |of| move |bps| Rate { of, bps };
    let path = path_bps(dataset, |direction| direction != Direction::Both).map(of(RateOf::Path));
    path.or_else(|| dataset.path.rate_bps(1).map(of(RateOf::Link)))
}

/// Returns what the path carried one client of the host as it is, where that was the limiter of the fastest stream of
/// those whose direction `is_way`.
pub(crate) fn path_bps(dataset: &Dataset<'_>, is_way: impl Fn(Direction) -> bool) -> Option<f64> {
    let goes_there = |cell: &&CellOutcomes<'_>| {
        cell.workload.traffic.direction().is_some_and(&is_way)
            && cell.workload.clients <= 1
            && dataset.is_as_it_is(cell)
    };
    let cells = dataset.cells.iter().filter(goes_there);
    let carried = cells.filter_map(|cell| Some((cell.mean(name::THROUGHPUT)?, cell)));
    let (bps, fastest) = carried.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (limits(dataset, fastest) == Some(Limiter::PathRate)).then_some(bps)
}

/// Returns the measured round trips: TCP's under load, its shortest, then the applications' of the
/// largest payload and of the smallest.
///
/// A window must hold what is under way while the link is full. An application's round trip has the
/// wake-ups of both programs in it and no queue, so that it says little of that.
pub(crate) fn round_trips(dataset: &Dataset<'_>) -> Vec<(String, Estimate)> {
    let cells = latency_cells(dataset);
    let median = |cell: &&CellOutcomes<'_>| {
        let bytes = Unit::Count.display(payload_bytes(cell)? as f64);
        let basis = format!("median round trip of {bytes} B");
        Some((basis, cell.estimate(name::RTT_P50)?))
    };
    let largest = cells.last().and_then(median);
    let smallest = cells.first().filter(|_| cells.len() > 1).and_then(median);
    // Without an interval, since a minimum has none; of clients at different distances that of the farthest,
    // whose window is to be large enough as well.
    let shortest = dataset.floors().farthest().map(|ns| {
        let rtt = Estimate::point(ns, Unit::Nanoseconds);
        ("shortest round trip that TCP saw".to_owned(), rtt)
    });
    loaded(dataset)
        .into_iter()
        .chain(shortest)
        .chain(largest)
        .chain(smallest)
        .collect()
}

/// Part of the link's limit at which it counts as full here: what a window that is just large
/// enough may lack.
pub(crate) const FULL_SHARE: f64 = 0.95;

/// Returns TCP's smoothed round trip in the stream of one connection that fills the link with the
/// shortest one: whatever is longer is a queue, which no window needs.
fn loaded(dataset: &Dataset<'_>) -> Option<(String, Estimate)> {
    let full = |cell: &&CellOutcomes<'_>| {
        let limit = dataset.path_of(cell).limit_bps(&cell.workload, None, None);
        let throughput = cell.mean(name::THROUGHPUT);
        throughput
            .zip(limit)
            .is_some_and(|(bps, limit)| bps >= FULL_SHARE * limit)
    };
    // Links that lose on purpose are slow ones, and not those that the rate is of.
    let is_stream = |cell: &&CellOutcomes<'_>| {
        let workload = &cell.workload;
        let is_single = workload.connections == 1 && workload.link_loss_ppm.is_none();
        is_single && workload.traffic.is_stream()
    };
    let streams = dataset.cells.iter().filter(is_stream);
    let known = streams
        .filter(full)
        .filter_map(|cell| cell.estimate(name::TCP_RTT));
    let rtt = known.min_by(|a, b| a.value.total_cmp(&b.value))?;
    Some(("round trip that TCP saw under load".to_owned(), rtt))
}

fn bytes_in_flight(rate: BitsPerSec, rtt: &Estimate) -> Estimate {
    let bytes = |ns: f64| bandwidth_delay_bytes(rate, Nanos(ns.max(0.0).round() as u64)).0 as f64;
    rtt.map(Unit::Bytes, bytes)
}
