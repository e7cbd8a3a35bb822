//! The captures of a run as a chapter of its report: what each host saw, what that proves, and
//! pictures of the largest connection.
//!
//! Each capture is a trace of its own: both hosts of a flow saw the same segments, at other times.

use linerate_model::analysis::{Chapter, Figure, Table, TableCell};
use linerate_model::capture::{CaptureOutcome, CaptureTaken, TrialCapture};
use linerate_model::sample::End;
use linerate_model::unit::Unit;

use crate::document::{ConnectionReport, Trace};
use crate::{number, page};

/// Findings of one capture that are listed, those that cost the most time first.
const FINDINGS_MAX: usize = 5;
/// Captures that are listed.
const ROWS_MAX: usize = 256;

/// A capture of a run, and what it comes to.
#[derive(Debug)]
pub struct TracedCapture<'a> {
    /// What is known of it without reading its file.
    pub capture: &'a TrialCapture,
    /// What its file shows, or why it was not read.
    pub trace: Result<Trace, String>,
}

/// The title of the table of what captures show.
pub const FINDINGS_TITLE: &str = "What they show";

/// Returns the chapter; there must be a capture, or a reason why there is none.
pub fn chapter(captures: &[TracedCapture<'_>]) -> Chapter {
    let listed = &captures[..captures.len().min(ROWS_MAX)];
    let tables = [
        counts(listed),
        findings(listed),
        completeness(listed),
        missing(listed),
    ];
    Chapter {
        number: None,
        id: "captures".to_owned(),
        title: "Captures".to_owned(),
        question: "What did the packets look like, at each host?".to_owned(),
        answer: Some(answer(captures)),
        consequence: None,
        method: method(captures),
        heat_maps: Vec::new(),
        figures: figures(captures),
        over_time: Vec::new(),
        tables: tables.into_iter().flatten().collect(),
        findings: Vec::new(),
        trials: Vec::new(),
    }
}

fn taken(capture: &TrialCapture) -> Option<&CaptureTaken> {
    match &capture.outcome {
        CaptureOutcome::Taken(taken) => Some(taken),
        CaptureOutcome::Missing(_) => None,
    }
}

/// Returns captures with what their files show.
fn traced<'c>(
    captures: &'c [TracedCapture<'_>],
) -> impl Iterator<Item = (&'c TrialCapture, &'c Trace)> {
    captures
        .iter()
        .filter_map(|captured| Some((captured.capture, captured.trace.as_ref().ok()?)))
}

fn answer(captures: &[TracedCapture<'_>]) -> String {
    let all: Vec<&CaptureTaken> = captures
        .iter()
        .filter_map(|one| taken(one.capture))
        .collect();
    let missing = captures.len() - all.len();
    if all.is_empty() {
        return format!(
            "Nothing was captured: {} failed.",
            number::counted(missing, "capture")
        );
    }
    let frames: u64 = all.iter().map(|taken| taken.frames).sum();
    let dropped: u64 = all.iter().map(|taken| taken.dropped).sum();
    let mut answer = format!(
        "{} in {}",
        number::counted(frames, "frame"),
        number::counted(all.len(), "capture")
    );
    answer.push_str(&match dropped {
        0 => ", no drops in the capture ring".to_owned(),
        _ => format!(
            ", {} more dropped in the capture ring",
            number::count(dropped)
        ),
    });
    let cut = all.iter().filter(|taken| taken.ended.is_some()).count();
    if cut > 0 {
        answer.push_str(&format!(
            "; {} ended at a limit",
            number::counted(cut, "capture")
        ));
    }
    if missing > 0 {
        answer.push_str(&format!("; {} failed", number::counted(missing, "capture")));
    }
    let found: usize = traced(captures)
        .map(|(_, trace)| trace.findings.len())
        .sum();
    let has_tcp = traced(captures).any(|(_, trace)| trace.totals.tcp_frames > 0);
    match found {
        0 if traced(captures).next().is_none() => answer.push_str(". None of them could be read."),
        0 if !has_tcp => answer.push_str(". There is no TCP in them that could be explained."),
        0 => answer.push_str(". Nothing in them is out of the ordinary."),
        1 => answer.push_str(". One finding follows, with the frames that prove it."),
        _ => answer.push_str(&format!(
            ". {} follow, with the frames that prove them.",
            number::counted(found, "finding")
        )),
    }
    answer
}

fn method(captures: &[TracedCapture<'_>]) -> String {
    let snaps = captures.iter().filter_map(|one| taken(one.capture));
    let snap = snaps
        .clone()
        .map(|taken| taken.snap_bytes)
        .max()
        .unwrap_or(0);
    let mut method = format!(
        "Each host kept the first {snap} bytes of the frames of the trial's own flows, from before \
         they connected until they had closed. Lengths are from the headers. What offloads put \
         together or take apart is counted as the host sees it, not as the wire carries it. Times \
         are those of each host's own clock. linerate trace with the bundle's directory, or with \
         one of its files, shows more.",
    );
    if snaps.clone().any(|taken| taken.anonymous) {
        method.push_str(" Addresses in the files are made ones.");
    }
    if captures.len() > ROWS_MAX {
        let more = captures.len() - ROWS_MAX;
        let more = number::counted(more, "capture");
        method.push_str(&format!(" The bundle has {more} more."));
    }
    method
}

/// Returns what the packets were.
fn counts(captures: &[TracedCapture<'_>]) -> Option<Table> {
    let columns = [
        "Trial",
        "Host",
        "Frames",
        "Data segments",
        "Pure ACKs",
        "Data per ACK",
        "Retransmitted",
    ];
    let absent = |why: &str| TableCell::Absent(why.to_owned());
    table("What passed", &columns, captures, |captured, taken| {
        let mut cells = vec![count(taken.frames)];
        cells.extend(match &captured.trace {
            Err(why) => vec![absent(why); 4],
            Ok(trace) if trace.totals.tcp_frames == 0 => vec![absent("no TCP"); 4],
            Ok(trace) => {
                let totals = &trace.totals;
                let per_ack = number::ratio(totals.data_packets, totals.pure_acks);
                vec![
                    count(totals.data_packets),
                    count(totals.pure_acks),
                    TableCell::of(per_ack.map(|ratio| (ratio, Unit::Ratio)), "no ACK"),
                    count(totals.retransmissions),
                ]
            }
        });
        cells
    })
}

/// Returns what there is of it, what is missing, and what it cost.
fn completeness(captures: &[TracedCapture<'_>]) -> Option<Table> {
    let columns = [
        "Trial",
        "Host",
        "Device",
        "Dropped in the capture ring",
        "Others' frames",
        "Ended early",
        "CPU time",
        "File",
    ];
    table(
        "What there is of it",
        &columns,
        captures,
        |captured, taken| {
            vec![
                TableCell::Text(taken.device.clone()),
                count(taken.dropped),
                count(taken.others),
                TableCell::Text(taken.ended.clone().unwrap_or_else(|| "no".to_owned())),
                TableCell::Number(taken.cpu_ns as f64, Unit::Nanoseconds),
                TableCell::of(captured.capture.file.as_deref(), "not kept"),
            ]
        },
    )
}

/// Returns where nothing was captured, and why.
fn missing(captures: &[TracedCapture<'_>]) -> Option<Table> {
    let rows: Vec<Vec<TableCell>> = captures
        .iter()
        .filter_map(|captured| match &captured.capture.outcome {
            CaptureOutcome::Taken(_) => None,
            CaptureOutcome::Missing(why) => {
                let mut row = place(captured.capture);
                row.push(TableCell::Text(why.clone()));
                Some(row)
            }
        })
        .collect();
    let columns = ["Trial", "Host", "Why"];
    (!rows.is_empty()).then(|| Table::new("Where nothing was captured", columns, rows))
}

/// Returns a table with a row for each capture that there is.
fn table(
    title: &str,
    columns: &[&str],
    captures: &[TracedCapture<'_>],
    cells: impl Fn(&TracedCapture<'_>, &CaptureTaken) -> Vec<TableCell>,
) -> Option<Table> {
    let rows: Vec<Vec<TableCell>> = captures
        .iter()
        .filter_map(|captured| {
            let mut row = place(captured.capture);
            row.extend(cells(captured, taken(captured.capture)?));
            Some(row)
        })
        .collect();
    (!rows.is_empty()).then(|| Table::new(title, columns.iter().copied(), rows))
}

fn place(capture: &TrialCapture) -> Vec<TableCell> {
    vec![
        TableCell::Text(capture.trial.to_string()),
        TableCell::Text(capture.host.to_string()),
    ]
}

fn count(number: u64) -> TableCell {
    TableCell::Number(number as f64, Unit::Count)
}

/// Returns what the captures prove, with the frames, and what to do.
fn findings(captures: &[TracedCapture<'_>]) -> Option<Table> {
    let columns = ["Trial", "Host", "Finding", "Proof", "What to do"];
    let mut rows = Vec::new();
    for (capture, trace) in traced(captures) {
        for finding in trace.findings.iter().take(FINDINGS_MAX) {
            let proof = finding.proofs.first().map(page::proof_words);
            let mut row = place(capture);
            row.extend([
                TableCell::Text(finding.claim.clone()),
                TableCell::of(proof.as_deref(), "counts only"),
                TableCell::of(finding.advice.as_deref(), "nothing"),
            ]);
            rows.push(row);
        }
    }
    (!rows.is_empty()).then(|| Table::new(FINDINGS_TITLE, columns, rows))
}

/// Draws the largest connection, of the first capture at the end that sent most of it: only there is
/// visible what a sender waits for. Of the first capture where none is known to be one.
fn figures(captures: &[TracedCapture<'_>]) -> Vec<Figure> {
    let largest: Vec<(&TrialCapture, &ConnectionReport)> = traced(captures)
        .filter_map(|(capture, trace)| {
            let detailed = trace.connections.iter().find(|one| one.detailed)?;
            Some((capture, detailed))
        })
        .collect();
    let is_at_sender = |(_, connection): &&(&TrialCapture, &ConnectionReport)| {
        let payload = |end| connection.end(end).payload_bytes;
        let [client, server] = End::BOTH;
        let sender = if payload(server) > payload(client) {
            server
        } else {
            client
        };
        connection.captured_at == Some(sender)
    };
    let best = largest.iter().find(is_at_sender);
    let Some((capture, connection)) = best.or(largest.first()) else {
        return Vec::new();
    };
    let place = format!("trial {}, captured at {}", capture.trial, capture.host);
    let prefix = format!("capture-{}-{}", capture.trial.0, capture.host);
    page::connection_figures(connection)
        .into_iter()
        .map(|figure| Figure {
            id: format!("{prefix}-{}", figure.id),
            title: format!("{}: {place}", figure.title),
            ..figure
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::TrialId;

    use super::*;
    use crate::capture::{Frame, LinkType};
    use crate::{Limits, Parts, Tracker};

    fn capture(host: &str, outcome: CaptureOutcome) -> TrialCapture {
        TrialCapture {
            trial: TrialId(1),
            host: host.into(),
            file: Some(format!("captures/000001-{host}.pcapng")),
            outcome,
        }
    }

    fn had(dropped: u64, ended: Option<&str>) -> CaptureOutcome {
        CaptureOutcome::Taken(CaptureTaken {
            device: "eth0".to_owned(),
            snap_bytes: 128,
            anonymous: false,
            frames: 1,
            bytes: 300,
            dropped,
            others: 4,
            ended: ended.map(str::to_owned),
            cpu_ns: 5_000_000,
        })
    }

    fn trace() -> Trace {
        let mut tracker = Tracker::new(Limits::default());
        tracker.begin_file("one");
        let frame = Frame {
            number: 1,
            time_ns: 1_700_000_000_000_000_000,
            link: LinkType::ETHERNET,
            bytes: &[0; 60],
            wire_bytes: 60,
        };
        tracker.handle_frame(&frame, &mut Parts::default());
        tracker.finish()
    }

    #[test]
    fn what_there_is_and_what_is_missing_have_their_tables() {
        let whole = capture("server", had(0, None));
        let cut = capture("client1", had(7, Some("its file was full (32 MiB)")));
        let none = capture(
            "client2",
            CaptureOutcome::Missing("no CAP_NET_RAW".to_owned()),
        );
        let gone = capture("client3", had(0, None));
        let captured = |capture| TracedCapture {
            capture,
            trace: Ok(trace()),
        };
        let all = [
            captured(&whole),
            captured(&cut),
            TracedCapture {
                capture: &none,
                trace: Err("no file".to_owned()),
            },
            TracedCapture {
                capture: &gone,
                trace: Err("its file cannot be opened".to_owned()),
            },
        ];
        let chapter = chapter(&all);
        let answer = chapter.answer.unwrap();
        for words in [
            "3 frames in 3 captures",
            "7 more dropped in the capture ring",
            "1 capture ended at a limit",
            "1 capture failed",
            "no TCP in them",
        ] {
            assert!(answer.contains(words), "{answer}");
        }
        let titles: Vec<&str> = chapter.tables.iter().map(|table| &*table.title).collect();
        assert_eq!(
            titles,
            [
                "What passed",
                "What there is of it",
                "Where nothing was captured"
            ]
        );
        for table in &chapter.tables {
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}", table.title);
            }
        }
        let passed = &chapter.tables[0].rows;
        assert_eq!(passed.len(), 3);
        assert_eq!(passed[0][3], TableCell::Absent("no TCP".to_owned()));
        let why = TableCell::Absent("its file cannot be opened".to_owned());
        assert_eq!(passed[2][3], why);
        let there_is = &chapter.tables[1].rows[1];
        assert_eq!(there_is[3], count(7));
        assert_eq!(
            there_is[5],
            TableCell::Text("its file was full (32 MiB)".to_owned())
        );
        let missing = &chapter.tables[2].rows;
        assert_eq!(missing[0][2], TableCell::Text("no CAP_NET_RAW".to_owned()));
    }

    #[test]
    fn captures_that_all_failed_are_said_to() {
        let none = capture("server", CaptureOutcome::Missing("why".to_owned()));
        let captured = TracedCapture {
            capture: &none,
            trace: Err("no file".to_owned()),
        };
        let chapter = chapter(&[captured]);
        let answer = chapter.answer.unwrap();
        assert_eq!(answer, "Nothing was captured: 1 capture failed.");
        assert_eq!((chapter.tables.len(), chapter.figures.len()), (1, 0));
    }
}
