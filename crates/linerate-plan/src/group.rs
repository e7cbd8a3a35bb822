//! Levels that go together, and the cells that a design makes of them.
//!
//! Most factors stand alone: a group of one. Linked factors form one group, whose levels set
//! several factors at once, so that a design sees one factor where a person asked one question.

use linerate_model::experiment::{Cell, Control, DesignKind, Experiment, Factor, Level};
use linerate_model::fraction::Fraction;

/// Factors whose levels go together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactorGroup {
    /// The factors, at least one.
    pub(crate) factors: Vec<Factor>,
    /// The levels; each has one entry for each factor.
    pub(crate) levels: Vec<Vec<Level>>,
}

impl FactorGroup {
    /// Returns whether its levels have an order, so that some can stand for those between.
    pub(crate) fn is_scale(&self) -> bool {
        self.factors.len() == 1
            && self
                .levels
                .iter()
                .all(|level| level[0].as_number().is_some())
    }

    /// Returns the part of a cell that level `at` makes.
    pub(crate) fn part(&self, at: usize) -> impl Iterator<Item = (Factor, Level)> + '_ {
        self.factors
            .iter()
            .copied()
            .zip(self.levels[at].iter().cloned())
    }

    /// Returns the level that `cell` has.
    pub(crate) fn position(&self, cell: &Cell) -> Option<usize> {
        (0..self.levels.len()).find(|&at| {
            self.part(at)
                .all(|(factor, level)| cell.get(&factor) == Some(&level))
        })
    }

    /// Returns level `at` in words: `socket_buffer 64 KiB`, `connections 10, clients 5`.
    pub(crate) fn words(&self, at: usize) -> String {
        let words: Vec<String> = self
            .part(at)
            .map(|(factor, level)| format!("{factor} {level}"))
            .collect();
        words.join(", ")
    }

    /// Returns several levels in words: `socket_buffer 64 KiB, 96 KiB`.
    pub(crate) fn words_of(&self, levels: &[usize]) -> String {
        if let [factor] = self.factors.as_slice() {
            let words: Vec<String> = levels
                .iter()
                .map(|&at| self.levels[at][0].to_string())
                .collect();
            return format!("{factor} {}", words.join(", "));
        }
        let words: Vec<String> = levels.iter().map(|&at| self.words(at)).collect();
        words.join("; ")
    }
}

/// Returns the groups of `experiment`, in the order of its factors.
pub(crate) fn groups(experiment: &Experiment) -> Vec<FactorGroup> {
    let group = |factors: Vec<Factor>| {
        let level = |at: usize| {
            let levels = factors.iter();
            let levels = levels.filter_map(|factor| experiment.levels(*factor).get(at).cloned());
            levels.collect()
        };
        let count = experiment.levels(factors[0]).len();
        FactorGroup {
            levels: (0..count).map(level).collect(),
            factors,
        }
    };
    experiment.factor_groups().into_iter().map(group).collect()
}

/// Makes `groups` the factors of `experiment`.
pub(crate) fn set_groups(experiment: &mut Experiment, groups: &[FactorGroup]) {
    let column = |group: &FactorGroup, at: usize| {
        let levels = group.levels.iter().map(|level| level[at].clone());
        (group.factors[at], levels.collect())
    };
    experiment.factors = groups
        .iter()
        .flat_map(|group| (0..group.factors.len()).map(move |at| column(group, at)))
        .collect();
    experiment.linked = groups
        .iter()
        .filter(|group| group.factors.len() > 1)
        .map(|group| group.factors.clone())
        .collect();
}

/// Returns the cells that `design` makes of `groups`.
///
/// 1. Full: every combination, the last factor varying fastest.
/// 2. One at a time: the baseline, then each other level of each factor with the rest at the
///    baseline.
/// 3. Fractional: those of the fraction, or every combination where there are no more.
/// 4. Latin hypercube: the first levels of all factors, then the second ones, and so on; blocks combine them anew.
pub(crate) fn cells(design: DesignKind, groups: &[FactorGroup], baseline: &Cell) -> Vec<Cell> {
    match design {
        DesignKind::Full => groups.iter().fold(vec![Cell::new()], |cells, group| {
            let extended = |cell: &Cell, at: usize| {
                let mut cell = cell.clone();
                cell.extend(group.part(at));
                cell
            };
            cells
                .iter()
                .flat_map(|cell| (0..group.levels.len()).map(|at| extended(cell, at)))
                .collect()
        }),
        DesignKind::Fractional { runs } => {
            let varied: Vec<&FactorGroup> =
                groups.iter().filter(|it| it.levels.len() > 1).collect();
            let Some(fraction) = Fraction::of(varied.len(), runs) else {
                return cells(DesignKind::Full, groups, baseline);
            };
            let fixed = groups.iter().filter(|group| group.levels.len() == 1);
            let fixed: Cell = fixed.flat_map(|group| group.part(0)).collect();
            let cell = |levels: Vec<usize>| {
                let levels = varied.iter().zip(levels);
                let parts = levels.flat_map(|(group, at)| group.part(at));
                fixed.clone().into_iter().chain(parts).collect()
            };
            fraction.cells().into_iter().map(cell).collect()
        }
        DesignKind::LatinHypercube => {
            let count = |group: &FactorGroup| group.levels.len();
            let points = groups.iter().map(count).max().unwrap_or(0);
            // A host may have left a factor with fewer.
            let part = |group: &FactorGroup, at: usize| -> Vec<(Factor, Level)> {
                group.part(at * count(group) / points).collect()
            };
            let cell = |at: usize| groups.iter().flat_map(|group| part(group, at)).collect();
            (0..points).map(cell).collect()
        }
        DesignKind::OneAtATime => {
            let mut cells = vec![baseline.clone()];
            for group in groups {
                for at in (0..group.levels.len()).filter(|&at| group.position(baseline) != Some(at))
                {
                    let mut cell = baseline.clone();
                    cell.extend(group.part(at));
                    cells.push(cell);
                }
            }
            cells
        }
    }
}

/// Returns how many cells `design` makes of groups with `levels` levels each.
pub(crate) fn cell_count(design: DesignKind, levels: impl Iterator<Item = usize>) -> u128 {
    match design {
        DesignKind::Full => levels.fold(1, |cells, n| cells.saturating_mul(n as u128)),
        DesignKind::Fractional { runs } => cell_count(DesignKind::Full, levels).min(runs.into()),
        DesignKind::LatinHypercube => levels.max().unwrap_or(0) as u128,
        DesignKind::OneAtATime => 1 + levels.map(|n| n.saturating_sub(1) as u128).sum::<u128>(),
    }
}

/// Returns how many cells of `control` the design of `experiment` makes of the levels that are in.
pub(crate) fn control_count(
    experiment: &Experiment,
    control: &Control,
    is_in: &[Vec<bool>],
) -> u128 {
    let mut groups = groups(experiment);
    for (group, is_in) in groups.iter_mut().zip(is_in) {
        let mut is_in = is_in.iter();
        group.levels.retain(|_| is_in.next() == Some(&true));
        // Of a full design a cell is one of the control where each of its levels is.
        if experiment.design == DesignKind::Full {
            let is_other = |(factor, level): (&Factor, &Level)| {
                control.levels.get(factor).is_some_and(|own| own != level)
            };
            let factors = group.factors.clone();
            let differs = |level: &Vec<Level>| factors.iter().zip(level).any(is_other);
            group.levels.retain(|level| !differs(level));
        }
    }
    match experiment.design {
        DesignKind::Full => cell_count(DesignKind::Full, groups.iter().map(|it| it.levels.len())),
        DesignKind::OneAtATime | DesignKind::Fractional { .. } | DesignKind::LatinHypercube => {
            let cells = cells(experiment.design, &groups, &experiment.baseline);
            cells.iter().filter(|cell| control.is(cell)).count() as u128
        }
    }
}
