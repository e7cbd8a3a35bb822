//! Two captures of the same traffic as lines for a terminal.

use std::fmt::Write as _;

use linerate_model::sample::End;

use super::{Both, JoinedReport, WayReport};
use crate::findings::numbers_filter;
use crate::number::{self, count, counted, ns};
use crate::text::{Look, write_lines};

/// What goes one way.
pub(crate) const SEGMENT: &str = "segment";
pub(crate) const DATAGRAM: &str = "datagram";

/// What is said of those that a capture with holes lacks.
const UNDECIDED: &str = "lost or only missed by the other capture, which missed more";

/// Connections that are shown, and conversations; the document has all of them.
const CONNECTIONS_MAX: usize = 10;

/// Returns the document as text, without what each capture comes to by itself.
pub fn text(both: &Both, look: Look) -> String {
    let mut out = String::new();
    let [first, second] = &both.files;
    let _ = writeln!(
        out,
        "{}",
        look.bold(&format!("{first} and {second}: the same traffic"))
    );
    write_lines(&look.wrap_prose(&both.clock_words()), "", "", &mut out);
    for warning in &both.warnings {
        let _ = writeln!(out, "{} {warning}", look.paint("33", "warning:"));
    }
    for joined in both.connections.iter().take(CONNECTIONS_MAX) {
        write_joined(both, joined, SEGMENT, look, &mut out);
    }
    for joined in both.conversations.iter().take(CONNECTIONS_MAX) {
        write_joined(both, joined, DATAGRAM, look, &mut out);
    }
    let [connections, conversations] = [&both.connections, &both.conversations]
        .map(|all| all.len().saturating_sub(CONNECTIONS_MAX));
    let more = connections + conversations;
    if more > 0 {
        let _ = writeln!(
            out,
            "{}",
            look.dim(&format!("  {more} more: --json has all of them"))
        );
    }
    for (file, alone) in both.files.iter().zip(both.alone) {
        if alone > 0 {
            let alone = counted(alone, "connection");
            let _ = writeln!(out, "  in {file} only: {alone}");
        }
    }
    out
}

fn write_joined(both: &Both, joined: &JoinedReport, what: &str, look: Look, out: &mut String) {
    let [one, other] = joined.numbers;
    let near = &both.files[joined.nearer_to_client];
    let _ = writeln!(
        out,
        "{}  {} → {}  {}",
        look.paint(
            "36",
            &match what {
                DATAGRAM => format!("UDP #{one}, #{other}"),
                _ => format!("#{one}, #{other}"),
            }
        ),
        look.bold(&joined.client[0].to_string()),
        look.bold(&joined.server[0].to_string()),
        look.dim(&format!("{near} is nearer to the client"))
    );
    for end in End::BOTH {
        let arrow = if end == End::Client { "→" } else { "←" };
        let way = joined.from(end);
        if way.sent == 0 && way.acks == 0 {
            continue;
        }
        let lines = look.wrap_prose(&both.way_words(way, what));
        write_lines(&lines, &format!("      {arrow} "), &" ".repeat(8), out);
        if !way.examples.is_empty() {
            let [frames, filter] = both.lost_words(way);
            // What is to be pasted stays in one line.
            let mut lines = look.wrap_prose(&frames);
            lines.push(filter);
            for line in lines {
                let _ = writeln!(out, "        {}", look.dim(&line));
            }
        }
    }
    for rewritten in &joined.rewritten {
        let _ = writeln!(
            out,
            "      rewritten on the way from the {}: {} {} → {}",
            rewritten.end, rewritten.what, rewritten.sent, rewritten.arrived
        );
    }
}

impl Both {
    /// Says how far the clocks are apart.
    pub(crate) fn clock_words(&self) -> String {
        let [first, second] = &self.files;
        let clock = &self.clock;
        let apart = match clock.offset_ns {
            0 => "as far as".to_owned(),
            ahead if ahead > 0 => format!("{} ahead of", ns(ahead.unsigned_abs())),
            behind => format!("{} behind", ns(behind.unsigned_abs())),
        };
        let bound = match clock.uncertainty_ns {
            Some(bound) => format!(", within {}", ns(bound)),
            None => String::new(),
        };
        let drift = match clock.drift_ppm {
            0.0 => String::new(),
            ppm if ppm > 0.0 => format!(", and gains {ppm:.1} µs each second"),
            ppm => format!(", and loses {:.1} µs each second", -ppm),
        };
        format!(
            "The clock of {second} is {apart} that of {first}{bound}{drift} (by {} that \
             both saw)",
            counted(clock.samples, "packet")
        )
    }

    /// Says what became of one direction between the captures.
    pub(crate) fn way_words(&self, way: &WayReport, what: &str) -> String {
        let behind = &self.files[1 - way.sent_at];
        let mut parts = vec![counted(way.sent, what)];
        let share = way.lost as f64 * 100.0 / way.sent.max(1) as f64;
        if way.lost > 0 {
            parts.push(format!(
                "{} lost between the captures ({share:.2} %)",
                count(way.lost)
            ));
        } else if way.sent > 0 && way.undecided == 0 {
            parts.push("none lost between the captures".to_owned());
        }
        if way.undecided > 0 {
            parts.push(format!("{} {}", count(way.undecided), UNDECIDED));
        }
        if way.lost == 0 && way.acks_lost == 0 && way.sent_again > 0 {
            parts.push(format!(
                "{} retransmitted all the same: what was lost was lost behind {behind}",
                count(way.sent_again)
            ));
        }
        if way.acks > 0 {
            let acks = counted(way.acks, "ACK");
            parts.push(match (way.acks_lost, way.acks_undecided) {
                (0, 0) => format!("{acks}, none lost"),
                (0, undecided) => format!("{} of {acks} {UNDECIDED}", count(undecided)),
                (lost, _) => format!("{} of {acks} lost", count(lost)),
            });
        }
        if let Some(delay) = &way.delay {
            let bound = match self.clock.uncertainty_ns {
                Some(bound) => format!(" (within {})", ns(bound)),
                None => String::new(),
            };
            parts.push(format!(
                "the way took {}{bound} at the least, {} more in the median and {} more at the most",
                ns(delay.min_ns.max(0).unsigned_abs()),
                ns(delay.above_min_median_ns),
                ns(delay.above_min_max_ns),
            ));
        }
        parts.extend(number::counts([
            (way.reordered, "overtaken by later ones"),
            (way.duplicated, "arrived twice"),
            (way.marked, "marked as congested between the captures"),
            (
                way.missed_by_capture,
                "not in the other capture though they arrived",
            ),
            (way.not_captured, "in the other capture only"),
            (way.outside, "sent when the other capture did not run"),
        ]));
        if let Some(hops) = way.hops.filter(|&hops| hops > 0) {
            parts.push(format!("{} between", counted(hops, "router")));
        }
        parts.join(", ")
    }

    /// Names the frames of the first that were lost and says how many more there are, and what shows them in Wireshark.
    pub(crate) fn lost_words(&self, way: &WayReport) -> [String; 2] {
        let frames: Vec<String> = way
            .examples
            .iter()
            .map(|lost| match lost.again_frame {
                Some(again) => format!("{} (arrived as {again})", lost.frame),
                None => lost.frame.to_string(),
            })
            .collect();
        let numbers = way.examples.iter().map(|lost| lost.frame);
        let file = &self.files[way.sent_at];
        let noun = if frames.len() == 1 { "frame" } else { "frames" };
        let more = match way.lost.saturating_sub(frames.len() as u64) {
            0 => String::new(),
            more => format!(", … and {} more", count(more)),
        };
        [
            format!("lost, of {file}: {noun} {}{more}", frames.join(", ")),
            format!("Wireshark: {}", numbers_filter(numbers)),
        ]
    }
}
