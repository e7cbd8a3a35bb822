//! Cells and numbers in words.

use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::finding::Estimate;
use linerate_model::manner::{Named, Transport};
use linerate_model::number::agreeing;
use linerate_model::parameter::Shape;
pub(crate) use linerate_model::text::sentence;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;

/// Returns a level with its factor: "64 KiB buffers", "Nagle off".
pub fn level(factor: Factor, level: &Level) -> String {
    let plural = |word: &str| agreeing(&level.to_string(), word, &format!("{word}s"));
    match factor {
        Factor::Connections => plural("connection"),
        Factor::Clients => format!("from {}", plural("client")),
        Factor::Direction => {
            let level = level.to_string();
            let known = Direction::named(&level);
            known.map_or(level, |known| known.in_words().to_owned())
        }
        Factor::SocketBuffer if level.as_number().is_none() => "autotuned buffers".to_owned(),
        Factor::SocketBuffer => format!("{} buffers", bytes(level)),
        Factor::MessageBytes => format!("{} messages", bytes(level)),
        Factor::RequestBytes => format!("{} requests", bytes(level)),
        Factor::ResponseBytes => format!("{} responses", bytes(level)),
        Factor::PayloadBytes => format!("{} payload", bytes(level)),
        Factor::RequestWrites => format!("{} per request", plural("write")),
        Factor::Nagle => format!("Nagle {level}"),
        Factor::DelayedAck => format!("delayed ACK {level}"),
        Factor::Congestion => level.to_string(),
        Factor::MssBytes => format!("MSS {}", bytes(level)),
        Factor::Transport => match level {
            Level::Word(word) if word == Transport::Unix.word() => "Unix sockets".to_owned(),
            other => other.to_string().to_uppercase(),
        },
        Factor::Send => format!("sent by {level}"),
        Factor::Receive => format!("received by {level}"),
        Factor::Wait => format!("waiting by {level}"),
        Factor::Segments => format!("{} per buffer", plural("datagram")),
        Factor::Batch => format!("{} per call", plural("message")),
        Factor::InFlight => format!("{} in flight", plural("request")),
        Factor::RequestsPerS => format!("{level} requests/s each"),
        Factor::Rate if matches!(level, Level::Ppm(_)) => format!("{level} of the link's rate"),
        Factor::Rate => format!("{level} each"),
        Factor::LinkLoss if *level == Level::Ppm(0) => "no loss injected".to_owned(),
        Factor::LinkLoss => format!("{level} of frames lost"),
        Factor::Beside(of) => {
            let own = of.factor().map(|own| self::level(own, level));
            format!("{}: {}", of.group(), own.unwrap_or_default())
        }
        Factor::Cpus => format!(
            "{} at each end",
            agreeing(&level.to_string(), "CPU", "CPUs")
        ),
        knob => format!("{} {}", knob.title(), bare_level(knob, level)),
    }
}

/// Returns the level alone, as a row of a table shows it below its factor's column head.
pub(crate) fn bare_level(factor: Factor, value: &Level) -> String {
    let own = factor.beside().map_or(factor, |(_, own)| own);
    match own {
        Factor::Direction => level(own, value),
        size if is_size(size) => bytes(value),
        _ => value.to_string(),
    }
}

/// Returns whether the levels of a factor are sizes.
pub(crate) fn is_size(factor: Factor) -> bool {
    matches!(factor.parameter().shape, Shape::Size | Shape::SizeOrAuto)
}

fn bytes(level: &Level) -> String {
    match level.as_number() {
        Some(bytes) => number(Unit::Bytes, bytes),
        None => level.to_string(),
    }
}

/// Returns the levels of `factors` in `cell`, connections and clients together.
pub(crate) fn cell(cell: &Cell, factors: &[Factor]) -> String {
    let word = |factor: &Factor| Some(level(*factor, cell.get(factor)?));
    let mut words: Vec<String> = Vec::new();
    for factor in factors {
        let clients_follow = *factor == Factor::Clients && factors.contains(&Factor::Connections);
        match (clients_follow, word(factor)) {
            (false, Some(text)) if *factor == Factor::Connections => {
                let clients = cell
                    .get(&Factor::Clients)
                    .filter(|clients| **clients != Level::Count(1))
                    .map(|clients| format!(" {}", level(Factor::Clients, clients)));
                words.push(text + &clients.unwrap_or_default());
            }
            (false, Some(text)) => words.push(text),
            _ => {}
        }
    }
    words.join(", ")
}

/// Returns all levels of `cell`.
pub(crate) fn whole_cell(levels: &Cell) -> String {
    let factors: Vec<Factor> = levels.keys().copied().collect();
    let words = cell(levels, &factors);
    if words.is_empty() {
        "the only cell".to_owned()
    } else {
        words
    }
}

/// Returns value and interval: "941.2 ± 0.8 Mbit/s".
pub(crate) fn estimate(estimate: &Estimate) -> String {
    linerate_model::number::estimate(estimate).line()
}

/// Returns `value` in words.
pub(crate) fn number(unit: Unit, value: f64) -> String {
    unit.display(value)
}

/// Returns how many there are of a thing: "1 segment", "1.5 segments".
pub(crate) fn things(value: f64, noun: &str) -> String {
    agreeing(&number(Unit::Count, value), noun, &format!("{noun}s"))
}

/// Returns a share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    linerate_model::number::percent(share)
}

/// Returns a sentence as it goes on behind other words; an abbreviation keeps its capitals.
pub(crate) fn clause(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match letters.next() {
        Some(first) if !letters.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => sentence.to_owned(),
    }
}

/// Returns words with "and" before the last one.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the share of `limit` that `value` reaches: no more than all, as counts at a window's edges are not exact.
pub(crate) fn reached(value: f64, limit: f64) -> String {
    percent((value / limit).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_read_as_sentences() {
        let check = |levels: &[(Factor, Level)], expected: &str| {
            assert_eq!(whole_cell(&levels.iter().cloned().collect()), expected);
        };
        let ten = (Factor::Connections, Level::Count(10));
        check(
            &[ten.clone(), (Factor::Clients, Level::Count(5))],
            "10 connections from 5 clients",
        );
        check(
            &[
                (Factor::Connections, Level::Count(1)),
                (Factor::Clients, Level::Count(1)),
            ],
            "1 connection",
        );
        let size = |bytes| Level::Size(linerate_model::Bytes(bytes));
        check(
            &[(Factor::SocketBuffer, size(65_536)), ten],
            "10 connections, 64 KiB buffers",
        );
        check(&[(Factor::MessageBytes, size(1460))], "1460 B messages");
        check(&[(Factor::Nagle, Level::Switch(false))], "Nagle off");
        check(&[(Factor::LinkLoss, Level::Ppm(0))], "no loss injected");
        check(
            &[(Factor::LinkLoss, Level::Ppm(1000))],
            "0.1 % of frames lost",
        );
        check(&[(Factor::Cpus, Level::Count(1))], "1 CPU at each end");
        check(&[], "the only cell");
    }
}
