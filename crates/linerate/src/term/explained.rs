//! What holds a number, for people: of a stored run, and of a service that was watched.

use linerate_analyze::clocks::{Clock, Clocks};
use linerate_analyze::groups::Reduced;
use linerate_analyze::watch::service::{Explained, ExplainedFlow};
use linerate_controller::RunEvent;
use linerate_model::analysis::Analysis;
use linerate_model::finding::Finding;
use linerate_model::number;
use linerate_model::unit::Unit;
use linerate_trace::chapter::FINDINGS_TITLE;

use super::single::{Conclusion, Reader};
use super::{Look, labelled, labelled_as, line, listed, paragraph, styled};

/// Pieces of evidence that are shown of a finding.
const EVIDENCE_SHOWN: usize = 4;
/// Share of the time that is worth a word.
const SHARE_MIN: f64 = 0.005;

/// Shows a measurement: what is going to be measured, and in the end its story.
pub struct Story(pub Box<dyn Reader>);

impl Reader for Story {
    fn take(&mut self, event: &RunEvent<'_>) {
        self.0.take(event);
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        let reduced = Reduced::of(conclusion.whole);
        story(&linerate_analyze::analyze_reduced(&reduced, false));
    }
}

/// Tells the story of a run.
pub fn story(analysis: &Analysis) {
    paragraph(&styled(&analysis.title, Look::Strong));
    paragraph(&analysis.answer.verdict);
    if let Some(trust) = &analysis.trust {
        labelled("trust", &trust.line());
    }
    for finding in &analysis.findings {
        line("");
        told(finding);
    }
    for caution in &analysis.cautions {
        line("");
        told(caution);
    }
    // What the measurement itself says, findings have said.
    let others = analysis
        .chapters
        .iter()
        .skip(usize::from(analysis.is_one_measurement));
    for chapter in others.filter(|chapter| chapter.number.is_none()) {
        let Some(answer) = &chapter.answer else {
            continue;
        };
        line("");
        // What a change did begins with the change.
        if !answer.starts_with(&chapter.title) {
            paragraph(&styled(&chapter.title, Look::Strong));
        }
        paragraph(answer);
        let shown = chapter
            .tables
            .iter()
            .find(|table| table.title == FINDINGS_TITLE);
        for row in shown.into_iter().flat_map(|table| &table.rows) {
            let cells: Vec<String> = row.iter().map(linerate_report::short_cell).collect();
            listed(&cells.join(", "));
        }
    }
    if let Some(next) = &analysis.next {
        line("");
        labelled("next", next);
    }
}

fn told(finding: &Finding) {
    paragraph(&styled(&finding.claim, Look::Strong));
    paragraph(&finding.explanation);
    for piece in finding.evidence.as_slice().iter().take(EVIDENCE_SHOWN) {
        listed(&format!(
            "{}: {}",
            piece.what,
            number::estimate(&piece.estimate).line()
        ));
    }
    if let Some(action) = &finding.action {
        labelled("next", action);
    }
}

/// Prints what holds a service's connections.
pub fn print(found: &Explained) {
    let other = found.other_host.as_ref();
    let other = other.map_or(String::new(), |host| format!(" and {host}"));
    let head = format!(
        "{}{other}, {}: {} carried payload, {} carried none",
        found.host,
        Unit::Nanoseconds.display(found.seconds * 1e9),
        number::counted(found.connections as u64, "connection"),
        found.idle,
    );
    paragraph(&styled(&head, Look::Strong));
    let rate = |bps| Unit::BitsPerSecond.display(bps);
    labelled(
        "payload",
        &format!(
            "sent {}, received {}",
            rate(found.sent_bps),
            rate(found.received_bps)
        ),
    );
    if found.opened + found.closed > 0 {
        labelled(
            "come and gone",
            &format!(
                "{} opened and {} closed meanwhile, which are in none of these numbers",
                found.opened, found.closed
            ),
        );
    }
    if let Some(clocks) = &found.clocks {
        labelled("sending time", &of_clocks(clocks));
    }
    for peer in &found.peers {
        let connections = number::counted(peer.connections as u64, "connection");
        labelled(
            "peer",
            &format!("{}: {} over {connections}", peer.address, rate(peer.bps)),
        );
    }
    for flow in &found.flows {
        line("");
        print_flow(flow);
    }
    line("");
    for what in &found.unseen {
        labelled_as("not seen", what, Look::Quiet);
    }
}

fn print_flow(flow: &ExplainedFlow) {
    let (arrow, does) = if flow.sends {
        ("→", "sends")
    } else {
        ("←", "receives")
    };
    let owner = flow
        .owner
        .as_ref()
        .map_or(String::new(), |owner| format!("{owner} "));
    paragraph(&styled(
        &format!(
            "{owner}{} {arrow} {}: {does} {}",
            flow.local,
            flow.remote,
            Unit::BitsPerSecond.display(flow.bps)
        ),
        Look::Strong,
    ));
    match (&flow.limiter, flow.standing.as_slice()) {
        (Some(limiter), _) => labelled("limiter", limiter.title()),
        (None, []) => labelled("limiter", "unknown"),
        (None, [one]) => labelled("limiter", &format!("unknown, perhaps {}", one.title())),
        (None, standing) => {
            let titles: Vec<&str> = standing.iter().map(|limiter| limiter.title()).collect();
            labelled("limiter", &format!("unknown: {}", titles.join(", or ")));
        }
    }
    if let Some(clocks) = &flow.clocks {
        labelled("time", &of_clocks(clocks));
    }
    if let (Some(rtt), Some(least)) = (flow.rtt_ns, flow.rtt_min_ns) {
        let retransmitted = flow.retransmitted_share.map_or(String::new(), |share| {
            format!(", {} of the segments retransmitted", number::percent(share))
        });
        let of = |ns| Unit::Nanoseconds.display(ns);
        labelled(
            "round trip",
            &format!("{}, shortest {}{retransmitted}", of(rtt), of(least)),
        );
    }
    for fact in &flow.because {
        listed(fact);
    }
    if let Some(limiter) = &flow.limiter {
        labelled("what to do", limiter.remedy().action);
    }
}

fn of_clocks(clocks: &Clocks) -> String {
    let mut shares = clocks.shares();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let worth = shares.iter().filter(|(_, share)| *share >= SHARE_MIN);
    let words = worth.map(|(clock, share)| {
        let what = match clock {
            Clock::Idle => "nothing to send",
            Clock::Window => "waiting for the receive window",
            Clock::Buffer => "waiting for the send buffer",
            Clock::Sending => "sending",
        };
        format!("{} {what}", number::percent(*share))
    });
    words.collect::<Vec<_>>().join(", ")
}
