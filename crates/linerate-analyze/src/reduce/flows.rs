//! Payload, transactions and segments of the flows.
//!
//! What arrived is in [`super::arrived`]. Segments are counted by TCP_INFO, which counts what goes
//! over the wire even where segmentation or aggregation is done by the device:
//!
//! - pure ACKs of a stream = segs_in − data_segs_in at the sending end, or the same of segs_out at
//!   the receiving end when the sender's were not read;
//! - payload per data segment = bytes_sent / data_segs_out, retransmissions in both;
//! - shares of time are per flow and averaged over the flows.

use std::collections::BTreeMap;

use linerate_model::FlowId;
use linerate_model::histogram::Histogram;
use linerate_model::histogram::observations_needed;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::response::name;
use linerate_model::run::{FlowRecord, HostRecord, server_program};
use linerate_model::sample::End;
use linerate_model::samples::Reading;
use linerate_model::workload::{FlowPlan, Part, Traffic, receiving_end};

use crate::live::counted_instead;

use super::arrived::{self, Judged};
use super::window::{Change, Readings, mean};
use super::{Responses, pooled_latency, pooled_lateness};

/// One flow with the ends that send and receive its payload; requests count as the payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    pub(super) flow: FlowId,
    pub(super) client: u32,
    pub(super) sender: End,
    pub(super) receiver: End,
}

impl Lane {
    pub(super) fn of(plan: &FlowPlan) -> Self {
        let sender = match plan.client_part {
            Part::Sender | Part::Requester => End::Client,
            Part::Receiver | Part::Responder => End::Server,
        };
        Self {
            flow: plan.flow,
            client: plan.client,
            sender,
            receiver: sender.other(),
        }
    }
}

/// The lanes of a trial with its readings.
pub(super) struct Lanes<'r, 'a> {
    pub(super) lanes: Vec<Lane>,
    pub(super) readings: &'r Readings<'a>,
    /// The sender's counter that stands for what a server that is no agent received, if there is
    /// one.
    instead: Option<Metric>,
}

/// Returns what there is to say of a stream's level, if it is one.
pub(super) fn reduce(
    trial: &Trial,
    plans: &[FlowPlan],
    records: &[&FlowRecord],
    hosts: &[HostRecord],
    readings: &Readings<'_>,
    responses: &mut Responses,
) -> Judged {
    let lanes = Lanes {
        lanes: plans.iter().map(Lane::of).collect(),
        readings,
        instead: counted_instead(server_program(hosts), &trial.workload)
            .filter(|metric| *metric == Metric::TcpBytesAcked),
    };
    let arrivals = match &trial.workload.traffic {
        Traffic::Stream { message_bytes, .. } => {
            let arrivals = arrived::reduce(trial, &lanes, responses);
            stream(&lanes, responses);
            let payload = responses.value(name::PAYLOAD_PER_SEGMENT);
            let message = message_bytes.0.max(1) as f64;
            responses.put(
                name::MESSAGES_PER_SEGMENT,
                payload.map(|payload| payload / message),
            );
            arrivals
        }
        Traffic::Rr { .. } => {
            transactions(&lanes, records, responses);
            None
        }
        Traffic::Crr { .. } => {
            transactions(&lanes, records, responses);
            // A connection carries one exchange, or none and is then counted all the same.
            responses.put(name::CONNECTIONS, responses.value(name::TRANSACTIONS));
            None
        }
        Traffic::Idle => {
            responses.put(name::CONNECTIONS_HELD, held(records));
            None
        }
    };
    intended(trial, responses);
    path(&lanes, responses);
    if trial.workload.traffic.is_transactional() {
        // Either end sends, and the one that is held longer has the larger messages.
        let other = lanes.share_at(receiver, Metric::TcpRwndLimited);
        let shares = [responses.value(name::RWND_LIMITED), other];
        let longer = shares.into_iter().flatten().max_by(f64::total_cmp);
        responses.put(name::RWND_LIMITED, longer);
    }
    let waits = plans.iter().filter_map(|plan| {
        let end = receiving_end(plan.client_part);
        let series = readings.flow(plan.flow, end, Metric::AppStallMax)?;
        readings.gauge(&series).max_by(f64::total_cmp)
    });
    responses.put(name::STALL_MAX, waits.max_by(f64::total_cmp));
    arrivals.map_or_else(Judged::default, |arrivals| {
        arrived::judge(trial, &lanes, &arrivals, hosts, responses)
    })
}

/// Connections whose ends both lasted to the end; absent when no end was recorded.
fn held(records: &[&FlowRecord]) -> Option<f64> {
    let mut whole: BTreeMap<FlowId, bool> = BTreeMap::new();
    for record in records {
        *whole.entry(record.flow).or_insert(true) &= record.ended_early.is_none();
    }
    (!whole.is_empty()).then(|| whole.values().filter(|whole| **whole).count() as f64)
}

/// What the workload asks for, where it asks for a rate.
fn intended(trial: &Trial, responses: &mut Responses) {
    let flows = f64::from(trial.workload.connections);
    let manner = &trial.workload.manner;
    responses.put(
        name::TRANSACTIONS_INTENDED,
        manner.requests_per_s.map(|rate| flows * f64::from(rate)),
    );
    responses.put(
        name::THROUGHPUT_INTENDED,
        manner.rate_bps.map(|rate| flows * rate as f64),
    );
}

fn stream(lanes: &Lanes<'_, '_>, responses: &mut Responses) {
    responses.put(
        name::THROUGHPUT_SENT,
        lanes
            .sum(sender, Metric::AppBytesSent)
            .map(|rate| 8.0 * rate),
    );
    let calls = lanes.sum(sender, Metric::AppCalls);
    // Whole messages at the receiver, different datagrams; what sent before they were counted was one a call.
    let again = lanes.sum(receiver, Metric::AppDatagramsDuplicate);
    let messages = lanes
        .sum(receiver, Metric::AppMessages)
        .map(|all| all - again.unwrap_or(0.0))
        .or_else(|| lanes.sum(sender, Metric::AppMessages))
        .or(calls);
    responses.put(name::MESSAGES, messages);
    responses.put(name::SEND_CALLS, calls);
    responses.put(name::RECEIVE_CALLS, lanes.sum(receiver, Metric::AppCalls));

    let segments = lanes
        .sum(sender, Metric::TcpDataSegsOut)
        .or_else(|| lanes.sum(receiver, Metric::TcpDataSegsIn));
    let acks = difference(
        lanes.sum(sender, Metric::TcpSegsIn),
        lanes.sum(sender, Metric::TcpDataSegsIn),
    )
    .or_else(|| {
        difference(
            lanes.sum(receiver, Metric::TcpSegsOut),
            lanes.sum(receiver, Metric::TcpDataSegsOut),
        )
    });
    responses.put(name::DATA_SEGMENTS, segments);
    responses.put(name::ACKS, acks);
    responses.put(name::SEGMENTS_PER_ACK, quotient(segments, acks));
    let payload = quotient(
        lanes.sum(sender, Metric::TcpBytesSent),
        lanes.sum(sender, Metric::TcpDataSegsOut),
    )
    .or_else(|| {
        quotient(
            lanes.sum(receiver, Metric::TcpBytesReceived),
            lanes.sum(receiver, Metric::TcpDataSegsIn),
        )
    });
    responses.put(name::PAYLOAD_PER_SEGMENT, payload);
}

fn transactions(lanes: &Lanes<'_, '_>, records: &[&FlowRecord], responses: &mut Responses) {
    let rate = lanes.sum(sender, Metric::AppTransactions);
    responses.put(name::TRANSACTIONS, rate);
    let out = lanes.sum(sender, Metric::TcpDataSegsOut);
    let back = lanes.sum(sender, Metric::TcpDataSegsIn);
    let data = out.zip(back).map(|(out, back)| out + back);
    let all = lanes
        .sum(sender, Metric::TcpSegsOut)
        .zip(lanes.sum(sender, Metric::TcpSegsIn))
        .map(|(out, back)| out + back);
    let acks = difference(all, data);
    responses.put(name::DATA_SEGMENTS, data);
    responses.put(name::ACKS, acks);
    responses.put(name::SEGMENTS_PER_ACK, quotient(data, acks));
    responses.put(name::ACKS_PER_TRANSACTION, quotient(acks, rate));
    let sent = lanes.sum(sender, Metric::TcpBytesSent);
    responses.put(name::PAYLOAD_PER_SEGMENT, quotient(sent, out));
    latency(records, responses);
}

fn latency(records: &[&FlowRecord], responses: &mut Responses) {
    let histogram = pooled_latency(records);
    let count = histogram.count();
    if count == 0 {
        return;
    }
    let quantile = |q: f64| known_quantile(&histogram, q);
    let lateness = pooled_lateness(records);
    responses.put(name::SENT_LATE_P50, known_quantile(&lateness, 0.5));
    responses.put(name::SENT_LATE_P99, known_quantile(&lateness, 0.99));
    responses.put(name::TRANSACTIONS_TIMED, Some(count as f64));
    // Of few it is the shortest: enough to tell that none was faster.
    let fastest = histogram.quantile(0.01).map(|fast| fast.0 as f64);
    responses.put(name::RTT_P01, fastest);
    responses.put(name::RTT_P50, quantile(0.5));
    responses.put(name::RTT_P99, quantile(0.99));
    responses.put(name::RTT_P999, quantile(0.999));
    responses.put(name::RTT_MAX, histogram.max().map(|max| max.0 as f64));
    responses.put(name::RTT_MEAN, histogram.mean_ns());
    responses.put(name::ONE_WAY, quantile(0.5).map(|p50| p50 / 2.0));
}

/// Returns a quantile in nanoseconds, where there are values enough for it.
fn known_quantile(histogram: &Histogram, q: f64) -> Option<f64> {
    let value = histogram.quantile(q)?;
    (histogram.count() >= observations_needed(q)).then_some(value.0 as f64)
}

/// What TCP says about the path and about its own waiting.
fn path(lanes: &Lanes<'_, '_>, responses: &mut Responses) {
    responses.put(name::TCP_RTT, lanes.mean(Metric::TcpRtt));
    responses.put(name::TCP_MIN_RTT, lanes.least(Metric::TcpMinRtt));
    responses.put(name::RTT_ABOVE_OWN, lanes.rtt_above_own());
    responses.put(name::PACING, lanes.total(Metric::TcpPacingRate));
    responses.put(name::CWND, lanes.mean(Metric::TcpCwnd));
    responses.put(name::SEND_WINDOW, lanes.mean(Metric::TcpSndWnd));
    responses.put(name::SEND_MSS, lanes.mean(Metric::TcpSndMss));
    responses.put(name::WINDOW_FILLED, lanes.window_filled());
    responses.put(name::RWND_LIMITED, lanes.share(Metric::TcpRwndLimited));
    responses.put(name::SNDBUF_LIMITED, lanes.share(Metric::TcpSndbufLimited));
    responses.put(name::BUSY, lanes.share(Metric::TcpBusy));
    let again = lanes.amount(sender, Metric::TcpRetrans);
    responses.put(name::RETRANSMITTED, again);
    let sent = lanes.amount(sender, Metric::TcpDataSegsOut);
    responses.put(name::SEGMENTS_SENT, sent);
    responses.put(name::RETRANSMITTED_SHARE, quotient(again, sent));
}

fn sender(lane: &Lane) -> End {
    lane.sender
}

pub(super) fn receiver(lane: &Lane) -> End {
    lane.receiver
}

impl Lanes<'_, '_> {
    pub(super) fn change(&self, lane: &Lane, end: End, metric: Metric) -> Option<Change> {
        self.readings.change(&self.series(lane, end, metric)?)
    }

    /// Returns the readings of a counter; of a server that is no agent, of what stands for it.
    pub(super) fn series(&self, lane: &Lane, end: End, metric: Metric) -> Option<Vec<Reading>> {
        let received = matches!(metric, Metric::AppBytesReceived | Metric::TcpBytesReceived);
        let (end, metric) = match (self.instead, end) {
            (Some(instead), End::Server) if received => (End::Client, instead),
            _ => (end, metric),
        };
        self.readings.flow(lane.flow, end, metric)
    }

    /// Returns the readings of what counts the payload that arrived, of datagrams that of different ones.
    pub(super) fn arrived(&self, lane: &Lane, metric: Metric) -> Option<Vec<Reading>> {
        match self.instead {
            Some(_) => self.series(lane, lane.receiver, metric),
            None => self.readings.arrived(lane.flow, lane.receiver, metric),
        }
    }

    /// Sum of a counter's rate over all flows; absent when one was not read.
    pub(super) fn sum(&self, end: fn(&Lane) -> End, metric: Metric) -> Option<f64> {
        self.all(|lane| Some(self.change(lane, end(lane), metric)?.rate()))
    }

    /// Sum of a counter's growth over all flows; absent when one was not read.
    fn amount(&self, end: fn(&Lane) -> End, metric: Metric) -> Option<f64> {
        self.all(|lane| Some(self.change(lane, end(lane), metric)?.amount))
    }

    fn all(&self, of: impl Fn(&Lane) -> Option<f64>) -> Option<f64> {
        (!self.lanes.is_empty()).then(|| self.lanes.iter().map(of).sum::<Option<f64>>())?
    }

    /// Mean of a gauge at the sender.
    fn gauge(&self, lane: &Lane, metric: Metric) -> Option<f64> {
        let series = self.readings.flow(lane.flow, lane.sender, metric)?;
        mean(self.readings.gauge(&series))
    }

    /// Mean over the flows of the mean of a gauge at the sender.
    fn mean(&self, metric: Metric) -> Option<f64> {
        let lanes = self.lanes.iter();
        mean(lanes.filter_map(|lane| self.gauge(lane, metric)))
    }

    /// Sum over the flows of the mean of a gauge at the sender; absent when one was not read.
    fn total(&self, metric: Metric) -> Option<f64> {
        self.all(|lane| self.gauge(lane, metric))
    }

    /// Mean over the flows of segments in flight × segment / window of the peer.
    fn window_filled(&self) -> Option<f64> {
        mean(self.lanes.iter().filter_map(|lane| {
            let of = |metric| self.gauge(lane, metric);
            let bytes = of(Metric::TcpUnacked)? * of(Metric::TcpSndMss)?;
            quotient(Some(bytes), of(Metric::TcpSndWnd))
        }))
    }

    /// Mean over the flows of the smoothed round trip less the flow's own shortest.
    fn rtt_above_own(&self) -> Option<f64> {
        mean(self.lanes.iter().filter_map(|lane| {
            let own = self
                .readings
                .flow(lane.flow, lane.sender, Metric::TcpMinRtt)?;
            let own = self.readings.gauge(&own).filter(|ns| *ns > 0.0);
            Some(self.gauge(lane, Metric::TcpRtt)? - own.min_by(f64::total_cmp)?)
        }))
    }

    /// Smallest value of a gauge at any sender; zero means that TCP has not measured it yet.
    fn least(&self, metric: Metric) -> Option<f64> {
        let series = self
            .lanes
            .iter()
            .filter_map(|lane| self.readings.flow(lane.flow, lane.sender, metric));
        series
            .flat_map(|series| self.readings.gauge(&series).collect::<Vec<_>>())
            .filter(|value| *value > 0.0)
            .min_by(f64::total_cmp)
    }

    /// Mean over the flows of the share of time that a clock of the sender ran.
    fn share(&self, metric: Metric) -> Option<f64> {
        self.share_at(sender, metric)
    }

    fn share_at(&self, end: fn(&Lane) -> End, metric: Metric) -> Option<f64> {
        let share = |lane: &Lane| Some(self.change(lane, end(lane), metric)?.rate() / 1e9);
        // The kernel rounds these clocks to ticks, which can put a share a little above 1.
        mean(self.lanes.iter().filter_map(share)).map(|share| share.min(1.0))
    }
}

fn difference(all: Option<f64>, part: Option<f64>) -> Option<f64> {
    let (all, part) = all.zip(part)?;
    // The two counters are read a moment apart, so that rounding may leave less than nothing.
    Some((all - part).max(0.0))
}

fn quotient(amount: Option<f64>, of: Option<f64>) -> Option<f64> {
    let (amount, of) = amount.zip(of)?;
    (of > 0.0).then(|| amount / of)
}
