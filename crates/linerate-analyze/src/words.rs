//! Cells and numbers in words.

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::finding::Estimate;
use linerate_model::unit::Unit;

/// Trials listed by number before "and n more".
const TRIALS_LISTED_MAX: usize = 8;

/// Returns a level with its factor: "64 KiB buffers", "Nagle off".
pub(crate) fn level(factor: Factor, level: &Level) -> String {
    let plural = |word: &str| match level {
        Level::Count(1) => format!("1 {word}"),
        level => format!("{level} {word}s"),
    };
    match factor {
        Factor::Connections => plural("connection"),
        Factor::Clients => format!("from {}", plural("client")),
        Factor::Direction => match level {
            Level::Word(word) if word == "to-server" => "to the server".to_owned(),
            Level::Word(word) if word == "from-server" => "from the server".to_owned(),
            Level::Word(word) if word == "both" => "both ways".to_owned(),
            other => other.to_string(),
        },
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
            Level::Word(word) if word == "unix" => "Unix sockets".to_owned(),
            other => other.to_string().to_uppercase(),
        },
        Factor::Send => format!("sent by {level}"),
        Factor::Receive => format!("received by {level}"),
        Factor::Wait => format!("waiting by {level}"),
        Factor::Segments => format!("{} a buffer", plural("datagram")),
        Factor::Batch => format!("{} a call", plural("message")),
        Factor::InFlight => format!("{} in flight", plural("request")),
        Factor::RequestsPerS => format!("{level} requests/s each"),
        Factor::Rate => format!("{level} each"),
        Factor::LinkLoss if *level == Level::Ppm(0) => "clean link".to_owned(),
        Factor::LinkLoss => format!("{level} of frames lost"),
    }
}

/// Returns the level alone, as a row of a table shows it below its factor's column head.
pub(crate) fn bare_level(factor: Factor, value: &Level) -> String {
    match factor {
        Factor::Direction => level(factor, value),
        Factor::SocketBuffer
        | Factor::MessageBytes
        | Factor::RequestBytes
        | Factor::ResponseBytes
        | Factor::PayloadBytes
        | Factor::MssBytes => bytes(value),
        _ => value.to_string(),
    }
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
    let factors: Vec<Factor> = Factor::ALL.to_vec();
    let words = cell(levels, &factors);
    if words.is_empty() {
        "the only cell".to_owned()
    } else {
        words
    }
}

/// Returns value and interval: "941 Mbit/s (940 to 942)"; an interval too narrow to show at the
/// digits shown is left out.
pub(crate) fn estimate(estimate: &Estimate) -> String {
    let display = |value| number(estimate.unit, value);
    let value = display(estimate.value);
    let Some((low, high)) = estimate.low.zip(estimate.high) else {
        return value;
    };
    let (low, high) = (display(low), display(high));
    if low == value && high == value {
        return value;
    }
    let units = [&value, &low, &high].map(|text| unit_of(text));
    match units.iter().all(|unit| *unit == units[0]) {
        true => format!(
            "{value} ({} to {})",
            without(&low, units[0]),
            without(&high, units[0])
        ),
        false => format!("{value} ({low} to {high})"),
    }
}

/// The unit behind a number in words, with the space before it.
fn unit_of(text: &str) -> &str {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '\u{202f}');
    text.trim_start_matches(is_number)
}

fn without<'t>(text: &'t str, unit: &str) -> &'t str {
    text.strip_suffix(unit).unwrap_or(text)
}

/// Sizes below this that are no whole KiB are written in bytes: a window of 18 750 B.
const BYTES_WRITTEN_MAX: f64 = 1_048_576.0;

/// Returns `value` in words.
pub(crate) fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes if (0.0..BYTES_WRITTEN_MAX).contains(&value) && value % 1024.0 != 0.0 => {
            format!("{} B", Unit::Count.display(value))
        }
        unit => unit.display(value),
    }
}

/// Returns a share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    Unit::Percent.display(100.0 * share)
}

/// Returns "1 trial" or "3 trials".
pub(crate) fn count(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    }
}

/// Returns the numbers of trials: "trials #1, #5".
pub(crate) fn trials(trials: &[TrialId]) -> String {
    let listed: Vec<String> = trials
        .iter()
        .take(TRIALS_LISTED_MAX)
        .map(ToString::to_string)
        .collect();
    let more = match trials.len().saturating_sub(TRIALS_LISTED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if trials.len() == 1 { "trial" } else { "trials" };
    format!("{word} {}{more}", listed.join(", "))
}

/// Returns words with "and" before the last one.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_say_their_unit_once() {
        let check = |value, low, high, unit, expected: &str| {
            let interval = Estimate {
                value,
                low: Some(low),
                high: Some(high),
                confidence: 0.95,
                n: 3,
                unit,
            };
            assert_eq!(estimate(&interval), expected);
        };
        check(
            941e6,
            940e6,
            942e6,
            Unit::BitsPerSecond,
            "941 Mbit/s (940 to 942)",
        );
        check(
            999e6,
            990e6,
            1008e6,
            Unit::BitsPerSecond,
            "999 Mbit/s (990 Mbit/s to 1.008 Gbit/s)",
        );
        check(44e6, 44e6, 44e6, Unit::Nanoseconds, "44 ms");
        check(
            9891.0,
            9867.0,
            9914.0,
            Unit::PerSecond,
            "9891/s (9867 to 9914)",
        );
        check(2.0, 1.5, 2.5, Unit::Ratio, "2 (1.5 to 2.5)");
        check(
            18_750.0,
            18_000.0,
            19_500.0,
            Unit::Bytes,
            "18\u{202f}750 B (18\u{202f}000 to 19\u{202f}500)",
        );
    }

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
        check(&[], "the only cell");
    }
}
