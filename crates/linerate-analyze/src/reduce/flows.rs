//! Payload, transactions and segments of the flows.
//!
//! What arrived is in [`super::arrived`]. Segments are counted by TCP_INFO, which counts what goes
//! over the wire even where segmentation or aggregation is done by the device:
//!
//! - pure ACKs of a stream = segs_in − data_segs_in at the sending end, or the same of segs_out at
//!   the receiving end when the sender's were not read;
//! - data segments received are none where the counter has aggregates ([`super::raw`] tells);
//! - payload per data segment = bytes_sent / data_segs_out, retransmissions in both;
//! - shares of time are per flow and averaged over the flows.

use std::collections::BTreeMap;

use linerate_model::FlowId;
use linerate_model::histogram::Histogram;
use linerate_model::histogram::observations_needed;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::response::name;
use linerate_model::run::FlowRecord;
use linerate_model::sample::End;
use linerate_model::samples::Reading;
use linerate_model::workload::receiving_end;

use super::arrived::{self, Judged};
use super::raw::{Lane, Raw};
use super::window::{Change, mean};
use super::{Responses, Values, pooled_latency, pooled_lateness};

/// Share of the round trips, the shortest, that responsiveness is of (draft-ietf-ippm-responsiveness, 4.3.2: a trimmed
/// mean of 95 %).
const RESPONSIVE_SHARE: f64 = 0.95;
/// What it is told in.
const MINUTE_NS: f64 = 60e9;

/// Returns what there is to say of a stream's level, if it is one.
pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) -> Judged {
    let trial = raw.trial;
    let traffic = &trial.workload.traffic;
    let arrivals = match (traffic.stream(), traffic.exchange()) {
        (Some((_, message_bytes)), _) => {
            let arrivals = arrived::reduce(raw, responses);
            stream(raw, responses);
            let payload = responses.value(name::PAYLOAD_PER_SEGMENT);
            let message = message_bytes.0.max(1) as f64;
            responses.put(
                name::MESSAGES_PER_SEGMENT,
                payload.map(|payload| payload / message),
            );
            arrivals
        }
        (None, Some(_)) => {
            transactions(raw, responses);
            // A connection carries one exchange, or none and is then counted all the same.
            let headline = traffic.kind().about().headline;
            responses.put(headline, responses.value(name::TRANSACTIONS));
            None
        }
        (None, None) => {
            responses.put(name::CONNECTIONS_HELD, held(&raw.records));
            None
        }
    };
    intended(trial, responses);
    path(raw, responses);
    if trial.workload.traffic.is_transactional() {
        // Either end sends, and the one that is held longer has the larger messages.
        let other = raw.share_at(receiver, Metric::TcpRwndLimited);
        let shares = [responses.value(name::RWND_LIMITED), other];
        let longer = shares.into_iter().flatten().max_by(f64::total_cmp);
        responses.put(name::RWND_LIMITED, longer);
    }
    let waits = raw.lanes.iter().filter_map(|lane| {
        let waits = lane.gauge(receiving_end(lane.client_part), Metric::AppStallMax)?;
        waits.into_iter().max_by(f64::total_cmp)
    });
    responses.put(name::STALL_MAX, waits.max_by(f64::total_cmp));
    arrivals.map_or_else(Judged::default, |arrivals| {
        arrived::judge(raw, &arrivals, responses)
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

fn stream(raw: &Raw<'_>, responses: &mut Responses) {
    responses.put(
        name::THROUGHPUT_SENT,
        raw.sum(sender, Metric::AppBytesSent).map(|rate| 8.0 * rate),
    );
    let calls = raw.sum(sender, Metric::AppCalls);
    // Whole messages at the receiver, different datagrams; what sent before they were counted was one a call.
    let again = raw.sum(receiver, Metric::AppDatagramsDuplicate);
    let messages = raw
        .sum(receiver, Metric::AppMessages)
        .map(|all| all - again.unwrap_or(0.0))
        .or_else(|| raw.sum(sender, Metric::AppMessages))
        .or(calls);
    responses.put(name::MESSAGES, messages);
    responses.put(name::SEND_CALLS, calls);
    let per_call = quotient(raw.sum(sender, Metric::AppBytesSent), calls);
    responses.put(name::PAYLOAD_PER_CALL, per_call);
    responses.put(name::RECEIVE_CALLS, raw.sum(receiver, Metric::AppCalls));

    let segments = raw
        .sum(sender, Metric::TcpDataSegsOut)
        .or_else(|| raw.sum(receiver, Metric::TcpDataSegsIn));
    let acks = raw.acks_in(sender).or_else(|| {
        difference(
            raw.sum(receiver, Metric::TcpSegsOut),
            raw.sum(receiver, Metric::TcpDataSegsOut),
        )
    });
    responses.put(name::DATA_SEGMENTS, segments);
    responses.put(name::ACKS, acks);
    responses.put(name::SEGMENTS_PER_ACK, quotient(segments, acks));
    let payload = quotient(
        raw.sum(sender, Metric::TcpBytesSent),
        raw.sum(sender, Metric::TcpDataSegsOut),
    )
    .or_else(|| {
        quotient(
            raw.sum(receiver, Metric::TcpBytesReceived),
            raw.sum(receiver, Metric::TcpDataSegsIn),
        )
    });
    responses.put(name::PAYLOAD_PER_SEGMENT, payload);
}

fn transactions(raw: &Raw<'_>, responses: &mut Responses) {
    let rate = raw.sum(sender, Metric::AppTransactions);
    responses.put(name::TRANSACTIONS, rate);
    let out = raw.sum(sender, Metric::TcpDataSegsOut);
    let back = raw.sum(sender, Metric::TcpDataSegsIn);
    let data = out.zip(back).map(|(out, back)| out + back);
    let acks_out = difference(raw.sum(sender, Metric::TcpSegsOut), out);
    let acks = acks_out.zip(raw.acks_in(sender));
    let acks = acks.map(|(out, back)| out + back);
    responses.put(name::DATA_SEGMENTS, data);
    responses.put(name::ACKS, acks);
    responses.put(name::SEGMENTS_PER_ACK, quotient(data, acks));
    responses.put(name::ACKS_PER_TRANSACTION, quotient(acks, rate));
    let sent = raw.sum(sender, Metric::TcpBytesSent);
    responses.put(name::PAYLOAD_PER_SEGMENT, quotient(sent, out));
    latency(&raw.records, responses);
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
    // Flows whose medians nobody would see among all others.
    let flows = records.iter().filter_map(|flow| flow.latency.as_ref());
    let medians = flows.filter_map(|latency| known_quantile(latency, 0.5));
    responses.put(name::RTT_P50_FLOW_MAX, medians.reduce(f64::max));
    responses.put(name::RTT_P99, quantile(0.99));
    responses.put(name::RTT_P999, quantile(0.999));
    responses.put(name::RTT_MAX, histogram.max().map(|max| max.0 as f64));
    responses.put(name::RTT_MEAN, histogram.mean_ns());
    let trimmed = histogram.trimmed_mean_ns(RESPONSIVE_SHARE);
    responses.put(name::RESPONSIVENESS, trimmed.map(|ns| MINUTE_NS / ns));
    responses.put(name::ONE_WAY, quantile(0.5).map(|p50| p50 / 2.0));
}

/// Returns a quantile in nanoseconds, where there are values enough for it.
fn known_quantile(histogram: &Histogram, q: f64) -> Option<f64> {
    let value = histogram.quantile(q)?;
    (histogram.count() >= observations_needed(q)).then_some(value.0 as f64)
}

/// What TCP says about the path and about its own waiting.
fn path(raw: &Raw<'_>, responses: &mut Responses) {
    responses.put(name::TCP_RTT, raw.mean(Metric::TcpRtt));
    responses.put(name::TCP_MIN_RTT, raw.least(Metric::TcpMinRtt));
    responses.put(name::RTT_ABOVE_OWN, raw.rtt_above_own());
    responses.put(name::PACING, raw.total(Metric::TcpPacingRate));
    responses.put(name::CWND, raw.mean(Metric::TcpCwnd));
    responses.put(name::SEND_WINDOW, raw.mean(Metric::TcpSndWnd));
    responses.put(name::SEND_MSS, raw.mean(Metric::TcpSndMss));
    responses.put(name::WINDOW_FILLED, raw.window_filled());
    responses.put(name::RWND_LIMITED, raw.share(Metric::TcpRwndLimited));
    responses.put(name::SNDBUF_LIMITED, raw.share(Metric::TcpSndbufLimited));
    responses.put(name::BUSY, raw.share(Metric::TcpBusy));
    let again = raw.amount(sender, Metric::TcpRetrans);
    responses.put(name::RETRANSMITTED, again);
    let sent = raw.amount(sender, Metric::TcpDataSegsOut);
    responses.put(name::SEGMENTS_SENT, sent);
    responses.put(name::RETRANSMITTED_SHARE, quotient(again, sent));
}

pub(super) fn sender(lane: &Lane<'_>) -> End {
    lane.sender
}

pub(super) fn receiver(lane: &Lane<'_>) -> End {
    lane.receiver
}

impl Raw<'_> {
    pub(super) fn change(&self, lane: &Lane<'_>, end: End, metric: Metric) -> Option<Change> {
        self.readings.change(&self.series(lane, end, metric)?)
    }

    /// Returns the readings of a counter; of a server that is no agent, of what stands for it.
    pub(super) fn series(&self, lane: &Lane<'_>, end: End, metric: Metric) -> Option<Vec<Reading>> {
        let received = matches!(metric, Metric::AppBytesReceived | Metric::TcpBytesReceived);
        let (end, metric) = match (self.instead, end) {
            (Some(instead), End::Server) if received => (End::Client, instead),
            _ => (end, metric),
        };
        lane.series(end, metric)
    }

    /// Returns the readings of what counts the payload that arrived, of datagrams that of different ones.
    pub(super) fn arrived(&self, lane: &Lane<'_>, metric: Metric) -> Option<Vec<Reading>> {
        match self.instead {
            Some(_) => self.series(lane, lane.receiver, metric),
            None => self.readings.arrived(lane.flow, lane.receiver, metric),
        }
    }

    /// Sum of a counter's rate over all flows; absent when one was not read.
    pub(super) fn sum(&self, end: fn(&Lane<'_>) -> End, metric: Metric) -> Option<f64> {
        self.all(|lane| Some(self.change(lane, end(lane), metric)?.rate()))
    }

    /// Sum of a counter's growth over all flows; absent when one was not read.
    pub(super) fn amount(&self, end: fn(&Lane<'_>) -> End, metric: Metric) -> Option<f64> {
        self.all(|lane| Some(self.change(lane, end(lane), metric)?.amount))
    }

    /// Sum over all flows of the rate of segments without payload that one end received; absent when one was not read.
    fn acks_in(&self, end: fn(&Lane<'_>) -> End) -> Option<f64> {
        // The two counters are read a moment apart, so that rounding may leave less than nothing.
        let acks = self.all(|lane| Some(lane.acks_in(end(lane))?.rate()));
        acks.map(|acks| acks.max(0.0))
    }

    fn all(&self, of: impl Fn(&Lane<'_>) -> Option<f64>) -> Option<f64> {
        (!self.lanes.is_empty()).then(|| self.lanes.iter().map(of).sum::<Option<f64>>())?
    }

    /// Mean over the flows of the mean of a gauge at the sender.
    fn mean(&self, metric: Metric) -> Option<f64> {
        let lanes = self.lanes.iter();
        mean(lanes.filter_map(|lane| lane.mean(lane.sender, metric)))
    }

    /// Sum over the flows of the mean of a gauge at the sender; absent when one was not read.
    fn total(&self, metric: Metric) -> Option<f64> {
        self.all(|lane| lane.mean(lane.sender, metric))
    }

    /// Mean over the flows of segments in flight × segment / window of the peer.
    fn window_filled(&self) -> Option<f64> {
        mean(self.lanes.iter().filter_map(|lane| {
            let of = |metric| lane.mean(lane.sender, metric);
            let bytes = of(Metric::TcpUnacked)? * of(Metric::TcpSndMss)?;
            quotient(Some(bytes), of(Metric::TcpSndWnd))
        }))
    }

    /// Mean over the flows of the smoothed round trip less the flow's own shortest.
    fn rtt_above_own(&self) -> Option<f64> {
        mean(self.lanes.iter().filter_map(|lane| {
            let own = lane
                .gauge(lane.sender, Metric::TcpMinRtt)?
                .into_iter()
                .filter(|ns| *ns > 0.0)
                .min_by(f64::total_cmp)?;
            Some(lane.mean(lane.sender, Metric::TcpRtt)? - own)
        }))
    }

    /// Smallest value of a gauge at any sender; zero means that TCP has not measured it yet.
    fn least(&self, metric: Metric) -> Option<f64> {
        let lanes = self.lanes.iter();
        let values = lanes
            .filter_map(|lane| lane.gauge(lane.sender, metric))
            .flatten()
            .filter(|value| *value > 0.0);
        values.min_by(f64::total_cmp)
    }

    /// Mean over the flows of the share of time that a clock of the sender ran.
    fn share(&self, metric: Metric) -> Option<f64> {
        self.share_at(sender, metric)
    }

    fn share_at(&self, end: fn(&Lane<'_>) -> End, metric: Metric) -> Option<f64> {
        let share = |lane: &Lane<'_>| Some(self.change(lane, end(lane), metric)?.rate() / 1e9);
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
