//! Experiment files: text to [`Draft`].
//!
//! The format is described for people in `docs/reference/experiment.md`. A file is parsed into the
//! types of `raw`, which know only what TOML and the spelling of keys allow, and then checked once
//! into the types of the model; behind this room nothing needs checking again.

use linerate_model::Nanos;
use linerate_model::experiment::{DesignKind, Experiment, LevelError, Timing};
use linerate_model::group;
use linerate_model::reason::with_causes;
use linerate_model::response::name;
use linerate_model::workload::{Group, Kind, WorkloadError};
use toml::Spanned;

use crate::draft::{BudgetHints, Draft};
use crate::group::{FactorGroup, cell_count, cells, groups, set_groups};

/// Why a file cannot be used.
mod error;
/// Fleet files.
mod fleet;
/// What a fraction may have.
mod fraction;
/// Words and numbers to levels.
mod levels;
/// NetPIPE's schedule of sizes.
mod netpipe;
/// What TOML and the spelling of keys allow.
mod raw;
/// What a bisection searches for, and how a refinement adds levels.
mod search;
/// Where something stands, and the checks that say so.
mod source;
/// Profiles of uperf.
mod uperf;
/// `[workload]`, by the catalogue of parameters.
mod workload;

pub use error::ReadError;
pub use fleet::read_fleet;
use levels::{baseline_of, budget_core, control_of, groups_of, suffices, whole_plots};
use raw::{Hosts, Length, RawBudget, RawFile, RawGroup};
use source::Source;
pub use uperf::{is_profile, read_profile};

/// The longest name of an experiment: it is part of page links and file names.
const NAME_CHARS_MAX: usize = 64;
/// The most cells of an experiment; each becomes at least one trial.
const CELLS_MAX: u128 = 10_000;
/// The most replicates of a cell.
const REPLICATES_MAX: u32 = 1_000;
/// The shortest measured window: two readings of the counters, which come every 100 ms.
const MEASURE_MIN: Nanos = Nanos::from_ms(100);
/// The longest phase.
const PHASE_MAX: Nanos = Nanos::from_s(24 * 3600);
/// The longest quiet time before a trial, whose start agents take at most a minute ahead.
const SETTLE_MAX: Nanos = Nanos::from_s(50);
/// The largest weight.
const WEIGHT_MAX: u32 = 100;

/// Responses that every kind of traffic has.
const RESPONSES_ANY: &[&str] = &[
    name::TCP_RTT,
    name::DATA_SEGMENTS,
    name::ACKS,
    name::SEGMENTS_PER_ACK,
    name::RETRANSMITTED,
    name::CPU_BUSY,
    name::RX_QUEUE_IMBALANCE,
    name::CPU_PACKETS_IMBALANCE,
];
/// Reads the experiment in `text`; `origin` is the name of the file in messages.
pub fn read_experiment(text: &str, origin: &str) -> Result<Draft, ReadError> {
    let source = Source { text, origin };
    source.check_format()?;
    let file: RawFile = toml::from_str(text).map_err(|error| source.syntax(&error))?;
    let draft = draft(&source, file)?;
    check_cells(&source, &draft.experiment)?;
    Ok(draft)
}

fn draft(source: &Source<'_>, file: RawFile) -> Result<Draft, ReadError> {
    check_name(source, &file)?;
    let workload = workload::workload(source, &file.workload)?;
    let is_factor = |key: &str| file.factors.find(key).is_some();
    workload::check_sizes(source, file.workload.get_ref(), is_factor)?;
    let beside = beside(source, &file)?;
    let groups = groups_of(source, &file.factors)?;
    let design = fraction::design(source, &file, &groups)?;
    let search = search::search(source, &file, &workload, &groups)?;
    let refinement = search::refinement(source, &file, &groups)?;
    let timing = file.timing.timing(source)?;
    let replicates = &file.design.replicates;
    let spot = source.at("design.replicates", replicates.span());
    spot.within(*replicates.get_ref(), 1, REPLICATES_MAX)?;
    let response = match &file.response {
        None => workload.traffic.kind().about().headline.to_owned(),
        Some(response) => checked_response(source, response, workload.traffic.kind())?,
    };
    let mut experiment = Experiment {
        name: file.name.into_inner(),
        chapter: file.chapter,
        title: file.title,
        question: file.question,
        method: file.method,
        workload,
        beside,
        factors: Vec::new(),
        linked: Vec::new(),
        link_bps: None,
        design,
        baseline: baseline_of(source, design, &file.design.baseline, &groups)?,
        control: control_of(source, file.design.control.as_ref(), &groups)?,
        whole_plots: whole_plots(source, &file.design, &groups)?,
        suffices: suffices(source, &file.design, &groups)?,
        replicates: *replicates.get_ref(),
        timing,
        response,
        probes: file.observe.unwrap_or_default(),
        search,
        refinement,
        pairs: None,
        predicted: Vec::new(),
    };
    set_groups(&mut experiment, &groups);
    let budget = match &file.budget {
        None => BudgetHints::fixed(&experiment),
        Some(budget) => hints(source, budget, &experiment, &groups)?,
    };
    Ok(Draft { experiment, budget })
}

/// Returns the groups that go on beside the workload.
fn beside(source: &Source<'_>, file: &RawFile) -> Result<Vec<Group>, ReadError> {
    let group = |raw: &RawGroup| {
        let name = raw.name.get_ref();
        let is_factor = |key: &str| file.factors.find(&format!("{name}.{key}")).is_some();
        workload::check_sizes(source, raw.workload.get_ref(), is_factor)?;
        let mut workload = workload::workload(source, &raw.workload)?;
        let hosts = |hosts: &Option<Spanned<Hosts>>| match hosts.as_ref().map(Spanned::get_ref) {
            None => Vec::new(),
            Some(Hosts::One(host)) => vec![*host],
            Some(Hosts::Several(hosts)) => hosts.clone(),
        };
        (workload.from, workload.to) = (hosts(&raw.from), hosts(&raw.to));
        if !workload.from.is_empty() && raw.workload.get_ref().find("clients").is_none() {
            workload.clients = workload.from.len() as u32;
        }
        Ok(Group {
            name: name.clone(),
            workload,
        })
    };
    file.group.iter().map(group).collect()
}

fn check_name(source: &Source<'_>, file: &RawFile) -> Result<(), ReadError> {
    let name = file.name.get_ref();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
        let allowed = format!("1 to {NAME_CHARS_MAX} of a-z, 0-9 and -");
        let spot = source.at("name", file.name.span());
        return Err(spot.value(format!("`{name}`"), allowed));
    }
    Ok(())
}

fn checked_response(
    source: &Source<'_>,
    response: &Spanned<String>,
    kind: Kind,
) -> Result<String, ReadError> {
    let own = kind.about().all_responses();
    let allowed: Vec<&str> = own.chain(RESPONSES_ANY.iter().copied()).collect();
    let name = response.get_ref();
    if !allowed.contains(&name.as_str()) {
        let allowed = format!("one of `{}`", allowed.join("`, `"));
        let mut kinds = Kind::ALL.iter();
        let is_known = kinds.any(|kind| kind.about().all_responses().any(|one| one == name));
        let spot = source.at("response", response.span());
        return Err(if is_known {
            spot.value(format!("`{name}`"), allowed)
        } else {
            spot.wrong(&format!("unknown response `{name}`, expected {allowed}"))
        });
    }
    Ok(name.clone())
}

/// Returns the checked `[budget]` section.
fn hints(
    source: &Source<'_>,
    budget: &RawBudget,
    experiment: &Experiment,
    groups: &[FactorGroup],
) -> Result<BudgetHints, ReadError> {
    let mut hints = BudgetHints::fixed(experiment);
    if let Some(weight) = &budget.weight {
        hints.weight = *weight.get_ref();
        let spot = source.at("budget.weight", weight.span());
        spot.within(hints.weight, 1, WEIGHT_MAX)?;
    }
    if let Some(pair) = &budget.replicates {
        let &[fewest, most] = pair.get_ref();
        let spot = source.at("budget.replicates", pair.span());
        spot.within(fewest, 1, REPLICATES_MAX)?;
        spot.within(most, fewest, REPLICATES_MAX)?;
        hints.replicates = (fewest, most);
    }
    if let Some(pair) = &budget.measure {
        let [shortest, longest] = pair.get_ref().map(|length| length.0);
        let spot = source.at("budget.measure", pair.span());
        spot.within(shortest, MEASURE_MIN, PHASE_MAX)?;
        spot.within(longest, shortest, PHASE_MAX)?;
        hints.measure = (shortest, longest);
    }
    hints.core = budget_core(source, &budget.core, groups)?;
    Ok(hints)
}

impl raw::RawTiming {
    fn timing(&self, source: &Source<'_>) -> Result<Timing, ReadError> {
        let within = |key: &str, length: &Spanned<Length>, low: Nanos, most: Nanos| {
            let Length(value) = *length.get_ref();
            let spot = source.at(format!("timing.{key}"), length.span());
            spot.within(value, low, most).map(|()| value)
        };
        let phase =
            |key: &str, length: &Spanned<Length>, low: Nanos| within(key, length, low, PHASE_MAX);
        Ok(Timing {
            settle: within("settle", &self.settle, Nanos(0), SETTLE_MAX)?,
            warm_up: phase("warm_up", &self.warm_up, Nanos(0))?,
            measure: phase("measure", &self.measure, MEASURE_MIN)?,
            drain: phase("drain", &self.drain, Nanos(0))?,
        })
    }
}

/// Checks that every cell makes a workload, so that no plan of this experiment can fail.
fn check_cells(source: &Source<'_>, experiment: &Experiment) -> Result<(), ReadError> {
    let groups = groups(experiment);
    let levels = groups.iter().map(|group| group.levels.len());
    let count = cell_count(experiment.design, levels);
    if count > CELLS_MAX {
        let span = source.text.find("[factors").map_or(0..0, |at| at..at);
        let design = experiment.design.word();
        let value = format!("{count} cells in a {design} design");
        let spot = source.at("factors", span);
        return Err(spot.value(value, format!("at most {CELLS_MAX} cells")));
    }
    let cells = match experiment.design {
        // Any combination may be drawn. What one asks for lies between what combinations of the least and the most ask for.
        DesignKind::LatinHypercube => {
            let mut ends = groups;
            for group in &mut ends {
                let last = group.levels.len().saturating_sub(1);
                let mut at = 0..;
                group
                    .levels
                    .retain(|_| at.next().is_some_and(|at| at == 0 || at == last));
            }
            cells(DesignKind::Full, &ends, &experiment.baseline)
        }
        design => cells(design, &groups, &experiment.baseline),
    };
    let cells = cells.into_iter();
    for cell in cells.chain(experiment.search_control()) {
        let impossible = |cause| {
            if let LevelError::Workload(WorkloadError::Range {
                what,
                case,
                value,
                allowed,
            }) = &cause
                && let Some(spot) = source.factor(what)
            {
                return spot.value(value, format!("{allowed}{case}"));
            }
            let words: Vec<String> = cell.iter().map(|(f, l)| format!("{f} {l}")).collect();
            ReadError::Cell {
                origin: source.origin.to_owned(),
                cell: format!("({})", words.join(", ")),
                cause: Box::new(cause),
            }
        };
        let workload = experiment.workload_of(&cell).map_err(impossible)?;
        let beside = experiment.beside_of(&cell).map_err(impossible)?;
        group::check(&workload, &beside).map_err(|error| {
            let span = source.text.find("[[group]]").map_or(0..0, |at| at..at);
            source.at("group", span).wrong(&with_causes(&error))
        })?;
    }
    Ok(())
}
