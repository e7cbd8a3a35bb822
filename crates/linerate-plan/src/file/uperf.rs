//! Profiles of uperf as experiments: one trial whose groups are the groups of the profile, those that do the same as one.
//!
//! A profile is read in three steps. `parse` makes of the text what its author wrote, element by element, each with the
//! place where it stands. `shape` finds what a group of strands does all the time: connections made one after
//! another, or a pass of reads and writes over one connection. `traffic` says which workload that is here. What no
//! workload means is refused with its line; what is measured in another way than uperf does it is a note, which
//! becomes the experiment's method.

use linerate_model::Nanos;
use linerate_model::experiment::{DesignKind, Experiment, Timing};
use linerate_model::group;
use linerate_model::reason::with_causes;
use linerate_model::workload::{Group, Workload};

use super::error::ReadError;
use super::source::Source;
use super::{MEASURE_MIN, NAME_CHARS_MAX, PHASE_MAX};
use crate::draft::{BudgetHints, Draft};

/// What one pass of a transaction moves.
mod exchange;
/// Numbers and times as uperf writes them.
mod number;
/// What a flowop has in `options`.
mod options;
/// The text as elements.
mod parse;
/// The text and the variables, while they are read.
mod reading;
/// What a group of strands does.
mod shape;
/// The steps of an exchange.
mod steps;
/// The workload that means the same.
mod traffic;

use parse::{Extent, RawProfile};
use shape::Shape;
use traffic::{Notes, Roles};

/// The largest profile: a thousand times what the samples of uperf have.
const PROFILE_BYTES_MAX: usize = 1 << 20;
/// How long traffic is measured that ends in uperf after a number of passes: uperf's own samples take 10 s and more
/// where they give a time.
const ITERATED_TIME: Nanos = Nanos::from_s(10);
/// How long a volume may take: ten minutes are more than samples give a time of.
const VOLUME_TIME_MAX: Nanos = Nanos::from_s(600);
/// Traffic that is not counted, as in the experiments that come with the program.
const WARM_UP: Nanos = Nanos::from_ms(150);
/// Traffic after the window, as there.
const DRAIN: Nanos = Nanos::from_ms(50);

/// Returns whether `text` is a profile of uperf rather than an experiment in TOML, which never begins so.
pub fn is_profile(text: &str) -> bool {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .starts_with('<')
}

/// Reads the profile of uperf in `text`; `origin` is the name of the file in messages, and `variable` gives the values
/// of `$name`.
pub fn read_profile(
    text: &str,
    origin: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Draft, ReadError> {
    let source = Source { text, origin };
    if text.len() > PROFILE_BYTES_MAX {
        let allowed = format!("at most {PROFILE_BYTES_MAX} B");
        return Err(source
            .at("profile", 0..0)
            .value(format!("{} B long", text.len()), allowed));
    }
    let profile = parse::parse(&source, &variable)?;
    draft(&source, &profile)
}

fn draft(source: &Source<'_>, profile: &RawProfile) -> Result<Draft, ReadError> {
    let shapes = profile
        .groups
        .iter()
        .map(|group| shape::shape(source, group));
    let shapes: Vec<Shape<'_>> = shapes.collect::<Result<_, _>>()?;
    let mut notes = Notes::default();
    let roles = Roles::of(&shapes, &mut notes);
    let workloads = shapes
        .iter()
        .map(|shape| traffic::workload(source, shape, &roles, &mut notes));
    let mut workloads: Vec<Workload> = workloads.collect::<Result<_, _>>()?;
    let measure = measure(source, &shapes, &mut workloads, &mut notes)?;
    let mut workloads = merged(workloads, &mut notes).into_iter();
    let first = workloads.next().ok_or_else(|| empty(source))?;
    let beside: Vec<Group> = (2..).zip(workloads).map(numbered).collect();
    group::check(&first, &beside).map_err(|error| {
        let at = profile.groups.last().map_or(0..0, |group| group.at.clone());
        source.at("group", at).wrong(&with_causes(&error))
    })?;
    let experiment = Experiment {
        name: identifier(&profile.name),
        chapter: None,
        title: profile.name.clone(),
        question: "What comes of the traffic of this profile of uperf?".to_owned(),
        method: notes.text(),
        response: first.traffic.kind().about().headline.to_owned(),
        workload: first,
        beside,
        factors: Vec::new(),
        linked: Vec::new(),
        link_bps: None,
        design: DesignKind::Full,
        baseline: Default::default(),
        control: None,
        whole_plots: Vec::new(),
        suffices: Vec::new(),
        replicates: 1,
        timing: Timing {
            settle: Nanos(0),
            warm_up: WARM_UP,
            measure,
            drain: DRAIN,
        },
        probes: Default::default(),
        search: None,
        refinement: None,
        pairs: None,
        predicted: Vec::new(),
    };
    let budget = BudgetHints::fixed(&experiment);
    Ok(Draft { experiment, budget })
}

/// Makes one group of those that do the same, so that their total is one number, as that of uperf is.
///
/// Flows are dealt to the clients in turn: each keeps as many as its group has, since all have the same number.
fn merged(workloads: Vec<Workload>, notes: &mut Notes) -> Vec<Workload> {
    let mut all: Vec<(Workload, Workload)> = Vec::new();
    for workload in workloads {
        let plain = Workload {
            from: Vec::new(),
            ..workload.clone()
        };
        let is_like = |(like, whole): &&mut (Workload, Workload)| {
            *like == plain && !workload.from.iter().any(|host| whole.from.contains(host))
        };
        match all.iter_mut().find(is_like) {
            Some((_, whole)) => {
                notes.add("Groups that do the same are measured as one.".to_owned());
                whole.connections += workload.connections;
                whole.from.extend(workload.from);
                whole.clients = whole.from.len().max(1) as u32;
            }
            None => all.push((plain, workload)),
        }
    }
    all.into_iter().map(|(_, whole)| whole).collect()
}

fn empty(source: &Source<'_>) -> ReadError {
    source.at("profile", 0..0).wrong("it has no group")
}

fn numbered((number, workload): (usize, Workload)) -> Group {
    Group {
        name: format!("group-{number}"),
        workload,
    }
}

/// Returns the time that all groups are measured for.
///
/// 1. The `duration` that the profile gives; the groups of a trial end together, so two that differ are refused.
/// 2. Where only passes are counted, and there is one group that only sends: the time that its volume takes.
/// 3. Else a time of our own: what is compared are counts per second.
fn measure(
    source: &Source<'_>,
    shapes: &[Shape<'_>],
    workloads: &mut [Workload],
    notes: &mut Notes,
) -> Result<Nanos, ReadError> {
    let mut given: Option<Nanos> = None;
    for shape in shapes {
        let Extent::For(time) = shape.transaction.extent else {
            continue;
        };
        let spot = source.at("transaction.duration", shape.transaction.at.clone());
        spot.within(time, MEASURE_MIN, PHASE_MAX)?;
        if given.is_some_and(|other| other != time) {
            return Err(spot.value(
                time,
                "that of the other groups, with which this one begins and ends",
            ));
        }
        given = Some(time);
    }
    if given.is_none()
        && let ([shape], [workload]) = (shapes, &mut *workloads)
        && let Some(bytes) = shape.volume()
    {
        workload.manner.bytes_max = Some(bytes);
        notes.add(format!(
            "Each connection sends {bytes}, which is what the iterations come to, in {VOLUME_TIME_MAX} at the most."
        ));
        return Ok(VOLUME_TIME_MAX);
    }
    let time = given.unwrap_or(ITERATED_TIME);
    let counts = |shape: &&Shape<'_>| matches!(shape.transaction.extent, Extent::Times(_));
    for shape in shapes.iter().filter(counts) {
        let line = source.line_of(&shape.transaction.at);
        notes.add(format!(
            "The transaction of line {line} has iterations and no duration: it is measured for {time}; compare what it does \
             per second."
        ));
    }
    Ok(time)
}

/// Returns the name of an experiment that is called `title`.
fn identifier(title: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    let name: String = title.chars().map(plain).take(NAME_CHARS_MAX).collect();
    match name.trim_matches('-') {
        "" => "uperf".to_owned(),
        name => name.to_owned(),
    }
}
