//! A trial with all that was recorded of it: what is reduced.

use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::{
    FlowRecord, HostPart, HostRecord, Recording, TrialRecord, server_program,
};
use linerate_model::sample::{End, Subject};
use linerate_model::samples::Reading;
use linerate_model::workload::{FlowPlan, Part};
use linerate_model::{FlowId, HostName};

use super::window::{Change, Readings, mean};
use crate::live::counted_instead;

/// A trial, what became of its flows, and what was read meanwhile.
pub(crate) struct Raw<'a> {
    /// As it was planned.
    pub(super) trial: &'a Trial,
    /// The flows that are looked at, in their order.
    pub(super) lanes: Vec<Lane<'a>>,
    /// What was recorded of their ends.
    pub(super) records: Vec<&'a FlowRecord>,
    /// The hosts of the run.
    pub(super) hosts: &'a [HostRecord],
    /// What was read.
    pub(super) readings: &'a Readings<'a>,
    /// The sender's counter that stands for what a server that is no agent received, if there is
    /// one.
    pub(super) instead: Option<Metric>,
}

/// One flow with its readings and the ends that send and receive its payload; requests count as the payload.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    pub(super) flow: FlowId,
    pub(super) client: u32,
    pub(super) client_part: Part,
    pub(super) sender: End,
    pub(super) receiver: End,
    readings: &'a Readings<'a>,
}

impl<'a> Raw<'a> {
    /// Returns a trial of `recording` with all of its flows, where it was planned.
    pub(crate) fn of(
        recording: &'a Recording,
        record: &TrialRecord,
        readings: &'a Readings<'a>,
    ) -> Option<Self> {
        let document = &recording.document;
        let trial = document.plan.trial(record.trial)?;
        let records = recording.flows_of(record.trial).collect();
        Some(Self::new(
            trial,
            &trial.workload.flows(),
            records,
            readings.host_records(),
            readings,
        ))
    }

    /// Returns `plans`, flows of `trial`, with what was recorded of them.
    pub(super) fn new(
        trial: &'a Trial,
        plans: &[FlowPlan],
        records: Vec<&'a FlowRecord>,
        hosts: &'a [HostRecord],
        readings: &'a Readings<'a>,
    ) -> Self {
        Self {
            trial,
            lanes: plans.iter().map(|plan| Lane::of(plan, readings)).collect(),
            records,
            hosts,
            readings,
            instead: counted_instead(server_program(hosts), &trial.workload)
                .filter(|metric| *metric == Metric::TcpBytesAcked),
        }
    }

    /// Returns the host called `name`.
    pub(super) fn host(&self, name: &HostName) -> Option<&'a HostRecord> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    /// Returns what a counter of one end of all flows together grew from reading to reading.
    pub(super) fn steps(
        &self,
        end: impl Fn(&Lane<'_>) -> End,
        metric: Metric,
    ) -> Option<Vec<(f64, f64)>> {
        let lanes = self.lanes.iter();
        self.readings
            .steps(lanes.map(|lane| lane.series(end(lane), metric)))
    }

    /// Returns the threads that move payload, each with its host.
    pub(super) fn workers(&self) -> impl Iterator<Item = (&'a Subject, &'a HostName)> + use<'a> {
        let subjects = self.readings.subjects();
        subjects.filter(|(subject, _)| subject.is_worker())
    }

    /// Returns whether the host called `name` is `part` of the run.
    pub(super) fn is_part(&self, name: &HostName, part: HostPart) -> bool {
        self.host(name).is_some_and(|host| host.part == part)
    }
}

/// Returns whether `segments`, which brought `bytes` since a connection began, are counted as aggregates.
///
/// The kernel counts max(1, gso_segs) of what comes (`tcp_segs_in` in include/net/tcp.h), and a frame that came joined from
/// a virtual device (virtio, tun, Xen, AF_PACKET) has 0 there: one, however many segments it holds. Since the
/// connection began no more payload can have come in order than its segments hold, full ones all of them; within a window
/// more can, which had come before and waited for a lost one. The end of a stream counts as one byte.
pub(crate) fn are_aggregates(bytes: f64, segments: f64, full_bytes: f64) -> bool {
    bytes > segments * full_bytes + 1.0
}

impl<'a> Lane<'a> {
    pub(super) fn of(plan: &FlowPlan, readings: &'a Readings<'a>) -> Self {
        let sender = match plan.client_part {
            Part::Sender | Part::Requester => End::Client,
            Part::Receiver | Part::Responder => End::Server,
        };
        Self {
            flow: plan.flow,
            client: plan.from - 1,
            client_part: plan.client_part,
            sender,
            receiver: sender.other(),
            readings,
        }
    }

    /// Returns all readings of a metric of one end; none of what counts its data segments where that counts aggregates.
    pub(super) fn series(&self, end: End, metric: Metric) -> Option<Vec<Reading>> {
        let is_counted = metric != Metric::TcpDataSegsIn || !self.counts_aggregates(end);
        self.readings
            .flow(self.flow, end, metric)
            .filter(|_| is_counted)
    }

    /// Whether the segments that one end received are counted as aggregates.
    pub(super) fn counts_aggregates(&self, end: End) -> bool {
        let last = |metric| Some(self.readings.flow(self.flow, end, metric)?.last()?.1 as f64);
        let full = || {
            let sizes = self
                .readings
                .flow(self.flow, end.other(), Metric::TcpSndMss)?;
            Some(sizes.iter().map(|reading| reading.1).max()? as f64)
        };
        let known = || {
            let (bytes, segments) = (
                last(Metric::TcpBytesReceived)?,
                last(Metric::TcpDataSegsIn)?,
            );
            Some(are_aggregates(bytes, segments, full()?))
        };
        known().unwrap_or(false)
    }

    /// Returns how much what counts the segments without payload that one end received grew over the window: aggregates, which
    /// ACKs are none of, count alike in all segments and in those with payload.
    pub(super) fn acks_in(&self, end: End) -> Option<Change> {
        let change = |metric| {
            let series = self.readings.flow(self.flow, end, metric)?;
            self.readings.change(&series)
        };
        let all = change(Metric::TcpSegsIn)?;
        Some(Change {
            amount: all.amount - change(Metric::TcpDataSegsIn)?.amount,
            ..all
        })
    }

    /// Returns how much a counter of one end grew over the window.
    pub(super) fn change(&self, end: End, metric: Metric) -> Option<Change> {
        self.readings.change(&self.series(end, metric)?)
    }

    /// Returns a gauge of one end, reading by reading.
    pub(super) fn gauge(&self, end: End, metric: Metric) -> Option<Vec<f64>> {
        Some(self.readings.gauge(&self.series(end, metric)?).collect())
    }

    /// Returns the mean of a gauge of one end.
    pub(super) fn mean(&self, end: End, metric: Metric) -> Option<f64> {
        mean(self.readings.gauge(&self.series(end, metric)?))
    }
}
