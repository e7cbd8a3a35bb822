//! Whether the TCP sockets of a host together have used up its memory (net.ipv4.tcp_mem).
//!
//! Above the middle number of pages TCP is under pressure until it is below the first, and keeps buffers and windows small
//! meanwhile (`tcp_under_memory_pressure` in include/net/tcp.h): a larger buffer of one socket gives it nothing.

use linerate_model::HostName;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;
use linerate_model::unit::Unit;
use linerate_model::workload::Part;

use super::trial::hosts_of;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::Readings;
use crate::words;

/// Bytes of a page, and of the next larger ones that Linux knows (ARM, POWER): what sockets have is whole pages, so that
/// a reading that is no multiple of these shows that they are not in use.
const PAGE_BYTES: f64 = 4096.0;
const LARGER_PAGE_BYTES: i64 = 16_384;

/// A host whose TCP sockets had all the memory that they may have without pressure.
pub(super) struct Short {
    host: HostName,
    bytes: f64,
    limit_bytes: f64,
}

/// Returns a host that is `part` of the flows and was under pressure in a trial of `cell`.
pub(super) fn at(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, part: Part) -> Option<Short> {
    hosts_of(dataset, cell, part).find_map(|host| {
        let three = host.snapshot.text("sysctl.net.ipv4.tcp_mem")?;
        let mut pages = three.split_whitespace().map(str::parse::<f64>);
        let limits = [pages.next()?.ok()?, pages.next()?.ok()?];
        let [calm_bytes, limit_bytes] = limits.map(|pages| pages * PAGE_BYTES);
        cell.valid.iter().find_map(|outcome| {
            let record = dataset.recording.record(outcome.trial)?;
            let readings = Readings::of(dataset.recording, record);
            let series = readings.on(&host.name, &Subject::Host, Metric::MemoryTcp)?;
            let of_larger = |reading: &(i64, i64)| reading.1 % LARGER_PAGE_BYTES == 0;
            if series.iter().all(of_larger) {
                return None;
            }
            let bytes = readings.gauge(&series).reduce(f64::max)?;
            let moved = |metric| {
                let change = readings.change_on(&host.name, &Subject::Host, metric);
                change.is_some_and(|change| change.amount > 0.0)
            };
            let came_or_went =
                moved(Metric::NetstatMemoryPressures) || moved(Metric::NetstatMemoryPressureTime);
            (bytes >= limit_bytes || (bytes >= calm_bytes && came_or_went)).then(|| Short {
                host: host.name.clone(),
                bytes,
                limit_bytes,
            })
        })
    })
}

impl Short {
    /// Says what keeps windows small.
    pub(super) fn why(&self) -> String {
        format!(
            "TCP of {} is under memory pressure: its sockets together had {}, and net.ipv4.tcp_mem begins to take from them at \
             {}. The kernel keeps windows and buffers small for that, and a larger buffer gives nothing.",
            self.host,
            words::number(Unit::Bytes, self.bytes),
            words::number(Unit::Bytes, self.limit_bytes),
        )
    }

    /// Says what to do about it.
    pub(super) fn mend(&self) -> String {
        format!(
            "find what holds the socket memory of {} (`ss -tm`, fewer flows), or raise net.ipv4.tcp_mem there: larger buffers \
             make it worse",
            self.host
        )
    }
}
