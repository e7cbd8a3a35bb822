//! What tells the limiters of streams over TCP apart.
//!
//! A state is not a cause: what TCP_INFO calls "limited by the window" is as true behind a full queue
//! as it is with a small buffer. The responses made here are those that differ between causes:
//!
//! - *unread* = what TCP received in order − what receive calls returned, at the receiving end; both
//!   counters are read beside each other. The first bytes of a connection, which name it, are too few
//!   to matter. Its share is unread / (unread + window that is still offered);
//! - *queued* = share of the readings at which the smoothed round trip lay above the shortest one of
//!   its client in the trial by at least a fifth and 0.2 ms. Below that the scheduler's time is as long;
//! - *closed* = share of the readings at which the receiver's window had no room for a segment and nothing had
//!   been acknowledged since the reading before, and something was unread at the receiver, where it was read. Only a
//!   program that reads nothing closes it for as long: TCP offers what its buffer has room for. Without unread bytes it
//!   is the window of a proxy;
//! - *losses*: how they lie in time, in [`super::losses`];
//! - *delivery rate* = median of tcpi_delivery_rate over the readings that the application did not
//!   limit, or over all where it limited all. It sees pauses that are longer than a round trip;
//! - *variation* = standard deviation over mean of the rates between two readings at the receivers. Behind
//!   a lost segment their count in order stands still for a round trip, then leaps: where segments were
//!   lost, that of what the senders know to be delivered is taken if it is less (0.01 to 0.15 on full paths
//!   where the other had 0.2 to 0.58; on paths that are not full, the two agree). It is also taken where
//!   nobody read the receivers;
//! - *steps* = median difference between consecutive readings, of the rate and of the smoothed round trips: a rate that
//!   changes now and then has small ones all the same;
//! - *on its way* = what a sender has sent for the first time − what the receiver has in order, both read at about the
//!   same time, the rate between the two instants allowed for. What is in flight beyond it is acknowledged already, and
//!   the ACK is on its way back;
//! - *elasticity* = slope of the logarithm of the smoothed round trip on that of the segments in flight, of all flows
//!   together, where their flight varies by 7 % and more, or the two go together (correlation 0.9): that the kernel counts
//!   flight in bursts hides a slope and makes none. Where they fill a path, round trip and flight are in proportion
//!   (0.4 to 1.2 were seen of 200 full paths, with others on them or not); where the way itself takes longer, or as it
//!   likes, more in flight changes the rate and not the round trip (−0.02 to 0.13 of ways with jitter);
//! - *drops* of the own hosts' queueing disciplines, devices and backlogs, everybody's on the device that the
//!   flows use. A receiving device counts frames of protocols that nobody handles, too
//!   (__netif_receive_skb_core in net/core/dev.c): what it dropped counts only if a segment was sent again
//!   within two round trips, and nothing does where more than a fifth was dropped at other times, or where the device is
//!   not known.

use linerate_model::HostName;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::FlowRecord;
use linerate_model::sample::End;
use linerate_model::samples::Reading;
use linerate_model::setting;
use linerate_model::workload::Part;

use super::floors;
use super::flows::{receiver, sender};
use super::losses;
use super::raw::{Lane, Raw};
use super::window::{in_window, mean};
use super::{Responses, Values};
use crate::compare::interval::median;

/// How far the smoothed round trip must lie above the shortest one for a queue: a share of it, and
/// what a busy scheduler adds.
const QUEUE_RTT_SHARE_MIN: f64 = 0.2;
pub(crate) const SCHEDULER_NS_MAX: f64 = 200_000.0;
/// Share of the readings with a queue up to which a flow is at rest.
const RESTS_SHARE_MAX: f64 = 0.5;

/// Part of what a device drops, one in so many, from which on drops that no loss follows are most likely to be all.
const UNRELATED_PART_MAX: u64 = 5;

/// How far apart readings of both ends of a flow may be.
const APART_NS_MAX: i64 = 50_000_000;
/// Unread bytes below which a receiver has next to nothing to read, whatever its segments are.
const LITTLE_BYTES_MAX: f64 = 1024.0;
/// Readings from which on a slope or a median of steps is more than chance, and the relative deviation that a slope needs: with the 0.03 that
/// round trips vary by it is then known to 0.15.
const READINGS_MIN: usize = 8;
const ELASTICITY_DEVIATION_MIN: f64 = 0.07;
/// Share of the mean rate up to which a reading shows an interruption.
const INTERRUPTED_SHARE_MAX: f64 = 0.1;
/// Correlation from which on the slope of less is known: 0.92 and 0.97 were seen of windows that grew by
/// 6 and 8 % before a full path.
const ELASTICITY_CORRELATION_MIN: f64 = 0.9;
/// Deviation below which what goes together is the kernel's rounding.
const ELASTICITY_DEVIATION_RELATED_MIN: f64 = 0.01;

pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) {
    let workload = &raw.trial.workload;
    if !workload.traffic.is_stream() || workload.manner.transport != Transport::Tcp {
        return;
    }
    let lanes = &raw.lanes;
    let sum = |metric| raw.amount(sender, metric);
    let needless = if has_sack(&raw.records) {
        sum(Metric::TcpDsackDups)
    } else {
        // Then no end tells what came twice, but the receiver's host counts it, of all its connections.
        let receivers = raw.hosts_of(Part::Receiver);
        let twice = raw.total_on(&receivers, Metric::NetstatDelayedAckLost);
        let twice = twice.map(|twice| twice as f64);
        let again = sum(Metric::TcpRetrans);
        again.zip(twice).map(|(again, twice)| again.min(twice))
    };
    responses.put(name::SPURIOUS, needless);
    responses.put(name::MARKED, sum(Metric::TcpDeliveredCe));
    responses.put(name::REORDERINGS, sum(Metric::TcpReordSeen));
    responses.put(name::TIMEOUTS, sum(Metric::TcpTimeouts));
    let each = |of: &dyn Fn(&Lane<'_>) -> Option<f64>| mean(lanes.iter().filter_map(of));
    let of_senders = |metric| each(&|lane| lane.mean(lane.sender, metric));
    responses.put(name::IN_FLIGHT, each(&in_flight));
    responses.put(name::UNSENT, of_senders(Metric::TcpNotSent));
    let delivered: Option<f64> = lanes.iter().map(delivery_rate).sum();
    responses.put(name::DELIVERY_RATE, delivered);
    responses.put(name::APP_LIMITED, of_senders(Metric::TcpAppLimited));
    let unread: Vec<(f64, f64)> = lanes.iter().filter_map(unread_and_room).collect();
    let waiting: f64 = unread.iter().map(|(unread, _)| unread).sum();
    let room: f64 = unread.iter().map(|(_, room)| room).sum();
    responses.put(name::UNREAD, mean(unread.iter().map(|(unread, _)| *unread)));
    let share = (room > 0.0).then(|| waiting / room);
    responses.put(name::UNREAD_SHARE, share);
    let offered = each(&|lane| lane.mean(lane.receiver, Metric::TcpRcvWnd));
    responses.put(name::OFFERED_WINDOW, offered);
    responses.put(name::ON_ITS_WAY, each(&|lane| on_its_way(raw, lane)));
    responses.put(name::RTT_ELASTICITY, elasticity(raw));
    responses.put(name::QUEUED, queued(raw));
    responses.put(name::RATE_VARIATION, variation(raw));
    responses.put(name::RATE_STEP, rate_step(raw));
    responses.put(name::RTT_STEP, rtt_step(raw));
    responses.put(name::WINDOW_CLOSED, each(&|lane| closed(raw, lane)));
    let lost = lanes.iter().filter_map(|lane| {
        let series = |metric| lane.series(lane.sender, metric);
        losses::intervals(raw.readings.window_ns(), series)
    });
    let lost: Vec<Vec<losses::Interval>> = lost.collect();
    responses.put(name::LOSS_DISPERSION, losses::dispersion(&lost));
    responses.put(name::LOSS_GAP_VARIATION, losses::gap_variation(&lost));
    responses.put(name::FLOW_LOSS_DISPERSION, losses::flow_dispersion(&lost));
    let [sent, came] = [receiver_acks, sender_acks].map(|of| {
        let acks: Option<f64> = lanes.iter().map(of).sum();
        acks.filter(|acks| *acks > 0.0)
    });
    let lost = sent.zip(came).map(|(sent, came)| 1.0 - came / sent);
    responses.put(name::ACKS_LOST, lost.map(|share| share.max(0.0)));
    drops(raw, responses);
}

/// ACKs that the receiver sent.
fn receiver_acks(lane: &Lane<'_>) -> Option<f64> {
    let all = lane.change(lane.receiver, Metric::TcpSegsOut)?.amount;
    Some(all - lane.change(lane.receiver, Metric::TcpDataSegsOut)?.amount)
}

/// ACKs that came to the sender.
fn sender_acks(lane: &Lane<'_>) -> Option<f64> {
    Some(lane.acks_in(lane.sender)?.amount)
}

fn in_flight(lane: &Lane<'_>) -> Option<f64> {
    let segments = lane.mean(lane.sender, Metric::TcpUnacked)?;
    Some(segments * lane.mean(lane.sender, Metric::TcpSndMss)?)
}

/// Payload on its way to the receiver.
fn on_its_way(raw: &Raw<'_>, lane: &Lane<'_>) -> Option<f64> {
    let sent = lane.series(lane.sender, Metric::TcpBytesSent)?;
    let again = lane.series(lane.sender, Metric::TcpBytesRetrans)?;
    let came = lane.series(lane.receiver, Metric::TcpBytesReceived)?;
    if sent.len() != again.len() {
        return None;
    }
    let per_ns = raw.readings.change(&came)?.rate() / 1e9;
    let window_ns = raw.readings.window_ns();
    let inside = came.iter().filter(|(at, _)| (0..=window_ns).contains(at));
    let on_its_way = inside.filter_map(|(at, bytes)| {
        let near = sent.partition_point(|reading| reading.0 < at - APART_NS_MAX);
        let candidates = (near..sent.len()).take_while(|here| sent[*here].0 <= at + APART_NS_MAX);
        let nearest = candidates.min_by_key(|here| (sent[*here].0 - at).abs())?;
        let meanwhile = per_ns * (at - sent[nearest].0) as f64;
        let left = sent[nearest].1.saturating_sub(again[nearest].1);
        let first = left.saturating_sub(*bytes) as f64;
        Some((first + meanwhile).max(0.0))
    });
    mean(on_its_way)
}

/// Share of the sender's readings at which the window had no room for a segment, and nothing had been
/// acknowledged since the reading before. Not where the receiver had nothing unread by then: it is not its window.
fn closed(raw: &Raw<'_>, lane: &Lane<'_>) -> Option<f64> {
    let segment = lane.mean(lane.sender, Metric::TcpSndMss)?;
    let offered = lane.series(lane.sender, Metric::TcpSndWnd)?;
    let acknowledged = lane.series(lane.sender, Metric::TcpBytesAcked)?;
    if offered.len() != acknowledged.len() {
        return None;
    }
    let begin = offered.partition_point(|reading| reading.0 < 0);
    let end = begin + raw.readings.gauge(&offered).count();
    let inside = offered.get(begin..end)?;
    let acknowledged = acknowledged.get(begin..end)?;
    let unread = unread(lane);
    // Of large segments a small buffer holds less than one.
    let little = segment.min(LITTLE_BYTES_MAX);
    let is_empty = |at: i64| {
        let first = unread.partition_point(|one| one.0 < at - APART_NS_MAX);
        let near = unread[first..]
            .iter()
            .take_while(|one| one.0 <= at + APART_NS_MAX);
        let nearest = near.min_by_key(|one| (one.0 - at).abs());
        nearest.is_some_and(|one| one.1 < little)
    };
    let steps = inside.iter().skip(1).zip(acknowledged.windows(2));
    mean(steps.map(|((at, bytes), acknowledged)| {
        let stands = acknowledged[1].1 <= acknowledged[0].1;
        let is_closed = (*bytes as f64) < segment && stands && !is_empty(*at);
        f64::from(u8::from(is_closed))
    }))
}

/// What waits unread at the receiver, reading by reading; empty where it was not read.
fn unread(lane: &Lane<'_>) -> Vec<(i64, f64)> {
    let both = || {
        let arrived = lane.series(lane.receiver, Metric::TcpBytesReceived)?;
        let taken = lane.series(lane.receiver, Metric::AppBytesReceived)?;
        (arrived.len() == taken.len()).then_some((arrived, taken))
    };
    let (arrived, taken) = both().unwrap_or_default();
    let pairs = arrived.iter().zip(&taken);
    pairs
        .map(|(arrived, taken)| (arrived.0, arrived.1.saturating_sub(taken.1).max(0) as f64))
        .collect()
}

/// Median of the delivery rate, in bit/s, of readings that the application did not limit if
/// there are any.
fn delivery_rate(lane: &Lane<'_>) -> Option<f64> {
    let rates = lane.gauge(lane.sender, Metric::TcpDeliveryRate)?;
    let limited = lane.gauge(lane.sender, Metric::TcpAppLimited);
    let limited = limited.filter(|limited| limited.len() == rates.len());
    let free = limited.map_or(Vec::new(), |limited| {
        let pairs = rates.iter().zip(limited);
        let free = pairs.filter(|(_, limited)| *limited == 0.0);
        free.map(|(rate, _)| *rate).collect()
    });
    median(&mut if free.is_empty() { rates } else { free })
}

/// Mean of what waits unread, and of that together with the window that is still offered.
fn unread_and_room(lane: &Lane<'_>) -> Option<(f64, f64)> {
    let arrived = lane.gauge(lane.receiver, Metric::TcpBytesReceived)?;
    let taken = lane.gauge(lane.receiver, Metric::AppBytesReceived)?;
    if arrived.len() != taken.len() {
        return None;
    }
    let waiting = arrived.iter().zip(&taken);
    let unread = mean(waiting.map(|(arrived, taken)| (arrived - taken).max(0.0)))?;
    // What the receiver offers, or what the sender saw of it where the kernel does not tell.
    let offered = lane
        .mean(lane.receiver, Metric::TcpRcvWnd)
        .or_else(|| lane.mean(lane.sender, Metric::TcpSndWnd))?;
    Some((unread, unread + offered))
}

/// How the smoothed round trip goes with what is in flight, of all flows together, which meet in one queue; absent
/// where they go either way.
fn elasticity(raw: &Raw<'_>) -> Option<f64> {
    if raw.trial.workload.goes_both_ways() {
        return None;
    }
    let flight = sums(raw, Metric::TcpUnacked)?;
    let trips = sums(raw, Metric::TcpRtt)?;
    if flight.len() != trips.len() || flight.len() < READINGS_MIN {
        return None;
    }
    let points = flight
        .iter()
        .zip(&trips)
        .filter(|(flight, trip)| **flight > 0.0 && **trip > 0.0);
    let points: Vec<(f64, f64)> = points.map(|(x, y)| (x.ln(), y.ln())).collect();
    let (x, y) = (
        mean(points.iter().map(|point| point.0))?,
        mean(points.iter().map(|point| point.1))?,
    );
    let squares = mean(points.iter().map(|point| (point.0 - x).powi(2)))?;
    let of_trips = mean(points.iter().map(|point| (point.1 - y).powi(2)))?;
    let products = mean(points.iter().map(|point| (point.0 - x) * (point.1 - y)))?;
    let correlation = products / (squares * of_trips).sqrt();
    let is_known = squares.sqrt() >= ELASTICITY_DEVIATION_MIN
        || (squares.sqrt() >= ELASTICITY_DEVIATION_RELATED_MIN
            && correlation >= ELASTICITY_CORRELATION_MIN);
    is_known.then(|| products / squares)
}

/// Returns a gauge of all senders together, reading by reading.
fn sums(raw: &Raw<'_>, metric: Metric) -> Option<Vec<f64>> {
    let mut sums: Vec<f64> = Vec::new();
    for lane in &raw.lanes {
        let values = lane.gauge(lane.sender, metric)?;
        if sums.is_empty() {
            sums.resize(values.len(), 0.0);
        }
        if values.len() != sums.len() {
            return None;
        }
        let pairs = sums.iter_mut().zip(values);
        pairs.for_each(|(sum, value)| *sum += value);
    }
    Some(sums)
}

/// Share of the readings of all senders with a queue on the way.
///
/// A queue that flows of one client share makes the round trips of all of them longer. Where that flow rests which
/// saw the shortest, others may go another way (ECMP), and are held against their own.
fn queued(raw: &Raw<'_>) -> Option<f64> {
    let lanes = raw.lanes.iter();
    let floors = floors::of_trial(lanes.clone().copied(), |lane| vec![lane.sender]);
    // Client, shortest of all its flows, shortest of the flow itself, and the flow's round trips.
    let flow = |lane: &Lane<'_>| {
        let floor = *floors.get(&lane.client)?;
        let own = lane
            .gauge(lane.sender, Metric::TcpMinRtt)
            .into_iter()
            .flatten()
            .filter(|ns| *ns > 0.0);
        let own = own.reduce(f64::min).unwrap_or(floor);
        let smoothed = lane.gauge(lane.sender, Metric::TcpRtt)?;
        Some((lane.client, floor, own, smoothed))
    };
    let flows: Vec<(u32, f64, f64, Vec<f64>)> = lanes.filter_map(flow).collect();
    let waits = |rtt: f64, shortest: f64| {
        let above = (QUEUE_RTT_SHARE_MIN * shortest).max(SCHEDULER_NS_MAX);
        f64::from(u8::from(rtt - shortest >= above))
    };
    let rests = |own: f64, smoothed: &[f64]| {
        let waiting: f64 = smoothed.iter().map(|rtt| waits(*rtt, own)).sum();
        waiting < RESTS_SHARE_MAX * smoothed.len() as f64
    };
    let nearest = flows
        .iter()
        .filter(|(_, floor, own, smoothed)| own == floor && rests(*own, smoothed));
    let resting: Vec<u32> = nearest.map(|flow| flow.0).collect();
    let all = flows.iter().flat_map(|(client, floor, own, smoothed)| {
        let shortest = if resting.contains(client) {
            *own
        } else {
            *floor
        };
        smoothed.iter().map(move |rtt| waits(*rtt, shortest))
    });
    mean(all)
}

/// Relative deviation of the rate between two readings, of what arrives in order or of what is delivered.
fn variation(raw: &Raw<'_>) -> Option<f64> {
    let deviation = |end: fn(&Lane<'_>) -> End, metric| deviation_of(&raw.steps(end, metric)?);
    let delivered = deviation(sender, Metric::TcpDelivered);
    let Some(in_order) = deviation(receiver, Metric::TcpBytesReceived) else {
        return delivered;
    };
    let Some(delivered) = delivered.filter(|delivered| *delivered < in_order) else {
        return Some(in_order);
    };
    let lost = raw.lanes.iter().map(|lane| {
        let grown = |metric| Some(lane.change(lane.sender, metric)?.amount);
        match grown(Metric::TcpRetrans)? {
            0.0 => Some(0.0),
            again => Some(again - grown(Metric::TcpDsackDups)?),
        }
    });
    // Where nobody knows whether any was lost, nobody knows which of the two it is.
    let is_lossy = lost.sum::<Option<f64>>()? >= 1.0;
    Some(if is_lossy { delivered } else { in_order })
}

/// Median step of what arrives in order, or of what is delivered where that was not read; absent where next to nothing came
/// at times: a way that is interrupted has no rate.
fn rate_step(raw: &Raw<'_>) -> Option<f64> {
    let in_order = raw.steps(receiver, Metric::TcpBytesReceived);
    let delivered = || raw.steps(sender, Metric::TcpDelivered);
    let rates = rates_of(&in_order.or_else(delivered)?);
    let least = INTERRUPTED_SHARE_MAX * mean(rates.iter().copied())?;
    let is_interrupted = rates.iter().any(|rate| *rate <= least);
    step(&rates).filter(|_| !is_interrupted)
}

/// Median step of the smoothed round trips.
fn rtt_step(raw: &Raw<'_>) -> Option<f64> {
    step(&sums(raw, Metric::TcpRtt)?)
}

/// Median difference between consecutive values, as a share of the mean of the two.
fn step(values: &[f64]) -> Option<f64> {
    if values.len() < READINGS_MIN {
        return None;
    }
    let steps = values.windows(2).map(|pair| {
        let sum = pair[0] + pair[1];
        // Twice nothing does not differ.
        if sum > 0.0 {
            2.0 * (pair[1] - pair[0]).abs() / sum
        } else {
            0.0
        }
    });
    median(&mut steps.collect::<Vec<f64>>())
}

/// What grew in each step over the time that it took.
pub(super) fn rates_of(steps: &[(f64, f64)]) -> Vec<f64> {
    steps.iter().map(|(ns, grown)| grown / ns).collect()
}

/// Relative deviation of the rate between two readings, of the time between them and what grew meanwhile.
pub(super) fn deviation_of(steps: &[(f64, f64)]) -> Option<f64> {
    let rates = rates_of(steps);
    let middle = mean(rates.iter().copied()).filter(|rate| *rate > 0.0 && rates.len() > 2)?;
    let squares = rates.iter().map(|rate| (rate - middle).powi(2));
    Some((squares.sum::<f64>() / (rates.len() - 1) as f64).sqrt() / middle)
}

/// Whether the handshakes agreed on SACK, or nobody knows.
fn has_sack(records: &[&FlowRecord]) -> bool {
    let records = records.iter();
    let mut agreed = records.filter_map(|record| record.settings.agreed_on(setting::SACK));
    agreed.all(|has| has)
}

/// What the hosts at the ends dropped themselves, and what waits in the senders' queues.
fn drops(raw: &Raw<'_>, responses: &mut Responses) {
    let [senders, receivers] = [Part::Sender, Part::Receiver].map(|part| raw.hosts_of(part));
    let count = |drops: Option<u64>| drops.map(|drops| drops as f64);
    let of_qdiscs = raw.qdisc_drops(&senders, in_window);
    responses.put(name::DROPPED_QDISC, count(of_qdiscs));
    let backlog = raw.total_of_machines(&receivers, Metric::SoftnetDropped);
    responses.put(name::DROPPED_BACKLOG, count(backlog));
    let of_qdiscs = raw.receiver_qdisc_drops(&receivers);
    responses.put(name::DROPPED_RECEIVER_QDISC, count(of_qdiscs));
    let undelivered = raw.undelivered(&receivers);
    responses.put(name::DROPPED_RECEIVER_IP, count(undelivered));
    // Of a host whose device is not known nobody knows which drops were of these flows.
    let mut own = senders.iter().chain(&receivers);
    if own.all(|host| raw.device(host).is_some()) {
        let out = count(raw.device_drops(&senders, Metric::LinkTxDropped));
        // What a backlog drops is counted at the device, too.
        let taken_in = raw
            .device_drops(&receivers, Metric::LinkRxDropped)
            .map(|drops| drops.saturating_sub(backlog.unwrap_or(0)));
        let unrelated = unrelated_drops(raw, &receivers, responses);
        let related = |drops: u64| {
            if unrelated > drops / UNRELATED_PART_MAX {
                // What comes at any time (frames that nobody handles) comes by chance when a segment was lost.
                0
            } else {
                drops - unrelated
            }
        };
        let taken_in = count(taken_in.map(related));
        let device = out.zip(taken_in).map(|(out, taken_in)| out + taken_in);
        responses.put(name::DROPPED_DEVICE, device);
    }
    responses.put(name::QDISC_BACKLOG, raw.qdisc_backlog(&senders));
    responses.put(name::QDISC_OVERLIMITS, raw.qdisc_overlimits(&senders));
}

/// What the receivers' devices dropped although no segment was sent again within two round trips.
fn unrelated_drops(raw: &Raw<'_>, receivers: &[&HostName], responses: &Responses) -> u64 {
    let readings = raw.readings;
    let lanes = raw.lanes.iter();
    let again = lanes.filter_map(|lane| lane.series(lane.sender, Metric::TcpRetrans));
    let again: Vec<Vec<Reading>> = again.collect();
    let horizon_ns = (2.0 * responses.value(name::TCP_RTT).unwrap_or(0.0)) as i64;
    let is_followed = |from_ns: i64, to_ns: i64| {
        again.iter().any(|series| {
            let before = series.partition_point(|reading| reading.0 <= from_ns);
            let after = series.partition_point(|reading| reading.0 < to_ns + horizon_ns);
            let first = series.get(before.saturating_sub(1));
            let last = series.get(after).or(series.last());
            first.zip(last).is_none_or(|(first, last)| last.1 > first.1)
        })
    };
    let dropped = receivers.iter().filter_map(|host| {
        let series = readings.on(host, &raw.device(host)?, Metric::LinkRxDropped)?;
        let inside = |steps: &&[Reading]| steps[0].0 >= 0 && steps[0].0 < readings.window_ns();
        let steps = series.windows(2).filter(inside);
        let unrelated = steps.filter(|steps| !is_followed(steps[0].0, steps[1].0));
        Some(
            unrelated
                .map(|steps| (steps[1].1 - steps[0].1).max(0) as u64)
                .sum::<u64>(),
        )
    });
    dropped.sum()
}
