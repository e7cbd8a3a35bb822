//! Chapter 3: throughput against socket buffer.
//!
//! Beside the measured curves stand two computed ones: the payload that the wire carries, and the
//! throughput that the receiver's window allows over the unloaded round trip, min(wire limit,
//! connections × window / round trip). The window is what the receiver was seen to advertise; on
//! Linux SO_RCVBUF = b is doubled for bookkeeping, of which about half, b again, becomes window
//! (tcp_win_from_space in include/net/tcp.h), so b stands in where it was not read.

use linerate_model::analysis::{Axis, Chapter, Curve, Figure, Origin, Scale};
use linerate_model::experiment::Factor;
use linerate_model::unit::{Bytes, Nanos, Unit};
use linerate_model::wire::window_limit;
use linerate_model::workload::Kind;

use super::study_chapter::{Content, Measured, Row, StudyChapter, row};
use super::{draw, suffices};
use crate::dataset::{CellGroup, CellOutcomes, Dataset, groups, varied};
use crate::diagnose::{Told, plateau_cell, window_bytes};
use crate::published::TRU64_STREAM;
use crate::reduce::name;
use crate::study;
use crate::verdicts::ScalePlateau;
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: study::SOCKET_BUFFER,
    content: Content::Experiment(Kind::Stream, fill, lines),
};

/// Replaces figures, table and answer.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { dataset, cells, .. } = *measured;
    if !varied(cells).contains(&Factor::SocketBuffer) {
        return;
    }
    let (fixed, host): (Vec<_>, Vec<_>) = cells
        .iter()
        .copied()
        .partition(|cell| cell.number(Factor::SocketBuffer).is_some());
    let mut throughput = throughput(dataset, &fixed);
    if let Some(figure) = &mut throughput {
        figure.curves.extend(own_tuning(&fixed, &host));
    }
    let cpu = cpu(dataset, &fixed);
    chapter.figures = throughput
        .into_iter()
        .chain(cpu)
        .chain(waiting(&fixed))
        .collect();
    let found: Vec<_> = dataset
        .verdicts()
        .plateaus_of(&measured.experiment.name)
        .collect();
    chapter.answer = answer(&found).or(chapter.answer.take());
}

fn throughput(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let x = Factor::SocketBuffer;
    let caption = "Points are means with 95 % intervals (of two values, their range). Computed: what the wire carries after \
                   headers and gaps, and one window per round trip.";
    let id = "socket-buffer-throughput";
    let mut figure = draw::figure(cells, x, name::THROUGHPUT, id, caption)?;
    figure.curves.extend(wire_limits(dataset, cells));
    figure.curves.extend(window_limits(dataset, cells));
    let filter = [("transfer_bytes", "65536"), ("mtu_bytes", "1500")];
    let published = TRU64_STREAM.pairs("socket_buffer_bytes", "mbit_per_s", &filter);
    let points = published
        .into_iter()
        .map(|(bytes, mbit)| (bytes, mbit * 1e6));
    let published = draw::published("AlphaServer ES40, 2001", points);
    figure.curves.push(published);
    Some(figure)
}

/// Level lines of what the host reaches with buffers that the kernel tunes.
fn own_tuning(fixed: &[&CellOutcomes<'_>], host: &[&CellOutcomes<'_>]) -> Vec<Curve> {
    let ends = ends(fixed);
    let line = |cell: &&CellOutcomes<'_>| {
        let mut others = cell.cell.clone();
        others.remove(&Factor::SocketBuffer);
        let name = format!("autotuned, {}", words::whole_cell(&others));
        let main = cell.main()?;
        let mut curve = draw::curve(
            name,
            Origin::Measured,
            ends.iter().map(|x| (*x, main.value)),
        );
        for point in &mut curve.points {
            (point.low, point.high) = (main.low, main.high);
            point.range_of = main.is_range().then_some(main.n);
        }
        Some(curve)
    };
    host.iter().filter_map(line).collect()
}

/// Returns the smallest and the largest buffer.
fn ends(cells: &[&CellOutcomes<'_>]) -> Vec<f64> {
    let levels: Vec<f64> = cells
        .iter()
        .filter_map(|cell| cell.number(Factor::SocketBuffer))
        .collect();
    let least = levels.iter().copied().min_by(f64::total_cmp);
    let most = levels.iter().copied().max_by(f64::total_cmp);
    least.into_iter().chain(most).collect()
}

/// One level line for each payload limit that occurs.
fn wire_limits(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Vec<Curve> {
    let mut limits: Vec<f64> = cells
        .iter()
        .filter_map(|cell| dataset.path_of(cell).limit_bps(&cell.workload, None, None))
        .collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    let ends = ends(cells);
    limits
        .into_iter()
        .map(|limit| {
            let name = format!("wire limit {}", Unit::BitsPerSecond.display(limit));
            draw::computed(name, ends.iter().map(|x| (*x, limit)))
        })
        .collect()
}

fn window_limits(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Vec<Curve> {
    let Some((_, rtt)) = study::round_trips(dataset).into_iter().next() else {
        return Vec::new();
    };
    groups(cells, Factor::SocketBuffer)
        .iter()
        .filter_map(|group| window_limit_curve(dataset, group, rtt.value))
        .collect()
}

/// Absent when no window of the group is small enough to matter.
fn window_limit_curve(
    dataset: &Dataset<'_>,
    group: &CellGroup<'_, '_>,
    rtt_ns: f64,
) -> Option<Curve> {
    let rtt = Nanos(rtt_ns.max(1.0).round() as u64);
    let mut matters = false;
    let mut points = Vec::new();
    for cell in &group.cells {
        let window = Bytes(window_bytes(cell)?.round() as u64);
        let flows = f64::from(cell.workload.connections);
        let allowed = flows * window_limit(window, rtt).0;
        let wire = dataset.path_of(cell).limit_bps(&cell.workload, None, None);
        matters |= wire.is_none_or(|wire| allowed < wire);
        points.push((
            cell.number(Factor::SocketBuffer)?,
            wire.unwrap_or(allowed).min(allowed),
        ));
    }
    let with = if group.words.is_empty() {
        String::new()
    } else {
        format!(", {}", group.words)
    };
    let name = format!(
        "window / round trip of {}{with}",
        words::number(Unit::Nanoseconds, rtt_ns)
    );
    matters.then(|| draw::computed(name, points))
}

fn cpu(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = if dataset.is_one_machine() {
        "CPU time of the whole machine, which all hosts share: sender and receivers together."
    } else {
        "CPU time of the server, all modes but idle."
    };
    let id = "socket-buffer-cpu";
    draw::figure(cells, Factor::SocketBuffer, name::CPU_BUSY, id, caption)
}

/// What the sender waited for, where it waited at all.
fn waiting(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let x = Factor::SocketBuffer;
    let mut curves = draw::curves(cells, x, name::RWND_LIMITED, "receive window");
    curves.extend(draw::curves(cells, x, name::SNDBUF_LIMITED, "send buffer"));
    for point in curves.iter_mut().flat_map(|curve| &mut curve.points) {
        point.y *= 100.0;
        point.low = point.low.map(|low| 100.0 * low);
        point.high = point.high.map(|high| 100.0 * high);
    }
    let seen = curves
        .iter()
        .flat_map(|curve| &curve.points)
        .any(|point| point.y >= 1.0);
    seen.then(|| Figure {
        id: "socket-buffer-waiting".to_owned(),
        title: "What the sender waits for".to_owned(),
        caption: "From TCP_INFO of the sender: share of the time in which data was ready but the receive \
                  window or the send buffer did not allow sending it."
            .to_owned(),
        x: draw::factor_axis(cells, x),
        y: Axis::new("share of the time", Unit::Percent, Scale::Linear),
        curves,
    })
}

fn answer(found: &[&ScalePlateau]) -> Option<String> {
    let sentences: Vec<String> = found
        .iter()
        .map(|found| suffices::sentence(found))
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// For each combination the throughput of the host as it is, and the smallest buffer that does as
/// well.
fn lines(measured: &Measured<'_, '_>) -> Vec<Row> {
    let dataset = measured.dataset;
    let plateaus = dataset.verdicts().plateaus_of(&measured.experiment.name);
    plateaus
        .filter_map(|found| {
            let control = plateau_cell(dataset, found, None)?;
            let main = control.main()?;
            let mut note = match found.plateau.begin {
                Some(at) => {
                    let size = words::bare_level(Factor::SocketBuffer, &found.levels[at]);
                    let margin = words::percent(found.plateau.delta);
                    format!("fixed buffers of {size} lose less than {margin}")
                }
                None => "no fixed buffer is shown to do as well".to_owned(),
            };
            if let Some(limit) = dataset
                .path_of(control)
                .limit_bps(&control.workload, None, None)
            {
                let reached = words::reached(main.value, limit);
                note += &format!("; {reached} of the wire limit");
            }
            let with = found.with(", ");
            Some(row(format!("Throughput{with}"), main, note))
        })
        .collect()
}
