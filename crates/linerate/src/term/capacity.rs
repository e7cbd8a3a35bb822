//! What traffic costs and what a target asks for, for people.

use linerate_analyze::capacity::{Answer, Capacity, Model, Supply, Target};
use linerate_model::number;
use linerate_model::unit::Unit;

use super::{Look, labelled, line, listed, paragraph, styled};

/// Prints the model of each side, and the answer.
pub fn print(capacity: &Capacity, target: Option<&Target>) {
    if let (Some(answer), Some(target)) = (&capacity.answer, target) {
        print_answer(answer, target);
        line("");
    }
    for model in &capacity.models {
        print_model(model);
    }
    for why in &capacity.missing {
        labelled("no model", why);
    }
}

fn print_answer(answer: &Answer, target: &Target) {
    paragraph(&format!(
        "{} {} in messages of {} on {}: {} busy, {} with {} left over",
        Unit::BitsPerSecond.display(target.bps),
        target.direction.in_words(),
        Unit::Bytes.display(target.message_bytes as f64),
        number::counted(target.flows, "connection"),
        number::estimate(&answer.busy).line(),
        number::estimate(&answer.cpus).line(),
        number::percent(target.headroom),
    ));
    for supply in &answer.supplies {
        labelled(limits(supply), &words(supply));
    }
    for beyond in &answer.extrapolates {
        labelled("extrapolated", beyond);
    }
}

fn limits(supply: &Supply) -> &'static str {
    if supply.needs > supply.has {
        "TOO LITTLE"
    } else {
        "enough"
    }
}

fn words(supply: &Supply) -> String {
    format!(
        "{}: needs {}, has {}",
        supply.what,
        supply.unit.display(supply.needs),
        supply.unit.display(supply.has)
    )
}

fn print_model(model: &Model) {
    let head = format!("CPU time of {}", model.side.title());
    line(&styled(&head, Look::Quiet));
    for price in &model.prices {
        let alike = if model.alike.contains(&price.kind) {
            ", not distinguishable from the others"
        } else {
            ""
        };
        labelled(
            price.kind.title(),
            &format!("{}{alike}", number::estimate(&price.all).line()),
        );
    }
    let share = |share: Option<f64>| share.map_or("–".to_owned(), number::percent);
    listed(&format!(
        "fitted to {} of {}; {} that were not: median error {}, largest {}, {} inside their interval",
        number::counted(model.trials as u64, "trial"),
        number::counted(model.cells as u64, "cell"),
        number::counted(model.held_out.cells as u64, "cell"),
        share(model.held_out.median),
        share(model.held_out.most),
        share(model.held_out.held),
    ));
}
