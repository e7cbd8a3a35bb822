//! One file per chapter, and a general one for any other experiment.
//!
//! A chapter begins as the general one makes it; a file of its own replaces the figures and the
//! answer where it knows more. Published curves are drawn beside measured ones.

/// Chapter 6: data packets and ACK packets over time.
mod acknowledgements;
/// What the traffic cost, and what the CPUs did.
mod cost;
/// Curves and tables that several chapters draw.
mod draw;
/// Chapter 15: what limits each chapter, and what throughput costs.
mod findings;
/// Any experiment that is not a chapter with a file of its own.
mod general;
/// Chapter 0: the hosts.
mod inventory;
/// Chapter 1: request and response.
mod latency;
/// Chapter 10: packets and what the CPUs do, by size.
mod packet_rate;
/// Which interrupt and CPUs serve each queue.
mod queue_table;
/// Chapter 12: packets by receive queue and CPU.
mod queues;
/// Throughput over time of a single cell.
mod series;
/// Chapter 9: streams of small messages.
mod small_messages;
/// Chapter 3: throughput against socket buffer.
mod socket_buffer;
/// Chapter 9: requests in several writes.
mod split_request;
/// Chapter 11: datagrams sent, received and lost.
mod udp_packet_rate;
/// Chapter 2: the window that link and round trip ask for.
mod window;

use linerate_model::analysis::Chapter;
use linerate_model::experiment::Experiment;

use crate::dataset::Dataset;
use crate::diagnose::Told;
use crate::study;

/// Returns the chapters, in order.
pub(crate) fn chapters(dataset: &Dataset<'_>, told: &Told<'_>) -> Vec<Chapter> {
    let experiments = &dataset.recording.document.plan.experiments;
    let mut chapters: Vec<Chapter> = experiments
        .iter()
        .map(|experiment| of_experiment(dataset, experiment, told))
        .collect();
    if dataset.recording.document.study {
        chapters.push(inventory::chapter(dataset));
        chapters.push(window::chapter(dataset));
        chapters.push(findings::chapter(dataset, &told.findings));
    }
    // The sort is stable: two experiments of one chapter stay in the plan's order.
    chapters.sort_by_key(|chapter| chapter.number.unwrap_or(u32::MAX));
    chapters
}

fn of_experiment(dataset: &Dataset<'_>, experiment: &Experiment, told: &Told<'_>) -> Chapter {
    let mut chapter = general::chapter(dataset, experiment, &told.findings);
    let cells = dataset.cells_of(&experiment.name);
    let is_rr = cells.iter().any(|cell| cell.is_rr());
    match experiment.chapter {
        Some(study::LATENCY) if is_rr => latency::fill(&mut chapter, dataset, experiment, &cells),
        Some(study::SOCKET_BUFFER) if !is_rr => {
            socket_buffer::fill(&mut chapter, dataset, experiment, &cells);
        }
        Some(study::ACKNOWLEDGEMENTS) if !is_rr => {
            acknowledgements::fill(&mut chapter, dataset, &cells);
        }
        Some(study::SMALL_MESSAGES) if is_rr => split_request::fill(&mut chapter, &cells),
        Some(study::SMALL_MESSAGES) => {
            small_messages::fill(&mut chapter, dataset, experiment, &cells);
        }
        Some(study::PACKET_RATE) if !is_rr => packet_rate::fill(&mut chapter, &cells),
        Some(study::UDP_PACKET_RATE) if !is_rr => udp_packet_rate::fill(&mut chapter, &cells),
        Some(study::QUEUES) if !is_rr => {
            queues::fill(&mut chapter, dataset, &cells, told);
        }
        _ => {}
    }
    chapter.tables.extend(cost::tables(&cells));
    chapter
}
