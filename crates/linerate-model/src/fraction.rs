//! Fractions of two-level designs: a power of two of all combinations, and what they cannot tell apart.
//!
//! With 2^m trials a block the first m factors have all their combinations, and the level of each further one is the
//! product of some of those (levels as −1 and +1): its *generator* (Box and Hunter, "The 2^(k−p) fractional factorial
//! designs", Technometrics 3, 1961). A set of factors whose product is the same in all trials is a *word*; the length of
//! the shortest word is the resolution. An effect cannot be told from another where both together make a word.

/// The most trials of a block: all combinations of five factors.
pub const RUNS_MAX: u32 = 32;
/// The most factors: all generators of them are looked at.
pub const FACTORS_MAX: usize = 12;

/// A fraction of the combinations of factors with two levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fraction {
    /// For each factor the first factors, as bits, whose product it is; of the first factors themselves.
    columns: Vec<u32>,
    /// How many first factors there are.
    base: u32,
}

/// Two factors, by number, whose interaction is meant.
pub type Interaction = (usize, usize);

impl Fraction {
    /// Returns the fraction of so many `factors` with `runs` trials that has the highest resolution, and of those the
    /// fewest of the shortest words, then of the next (Fries and Hunter, "Minimum aberration 2^(k−p) designs",
    /// Technometrics 22, 1980); absent where `runs` is no power of two below 2^factors, or less than the factors ask for.
    pub fn of(factors: usize, runs: u32) -> Option<Self> {
        let base = runs.checked_ilog2()?;
        let is_known = runs.is_power_of_two() && runs <= RUNS_MAX && factors <= FACTORS_MAX;
        let further = factors.checked_sub(base as usize)?;
        // As many columns as there are products of two first factors and more.
        let mut columns: Vec<u32> = (1..runs).filter(|it| it.count_ones() > 1).collect();
        if !is_known || further == 0 || further > columns.len() {
            return None;
        }
        // Long generators make long words: with those first, few others have to be looked at.
        columns.sort_by_key(|column| (u32::MAX - column.count_ones(), *column));
        let mut search = Search {
            columns,
            base,
            further,
            chosen: Vec::new(),
            best: None,
        };
        search.extend(0, &[0], [0; FACTORS_MAX + 1]);
        let (_, chosen) = search.best?;
        let first = (0..base).map(|at| 1 << at);
        Some(Self {
            columns: first.chain(chosen).collect(),
            base,
        })
    }

    /// Returns for each trial of a block the level of each factor: 0 its first, 1 its second.
    pub fn cells(&self) -> Vec<Vec<usize>> {
        let level = |run: u32, column: u32| (run & column).count_ones() as usize % 2;
        let runs = 0..1_u32 << self.base;
        // The first factor varies slowest, as in a full design.
        let run = |run: u32| run.reverse_bits() >> (u32::BITS - self.base);
        let of_run = |run: u32| self.columns.iter().map(|own| level(run, *own)).collect();
        runs.map(|at| of_run(run(at))).collect()
    }

    /// Returns the length of the shortest word.
    pub fn resolution(&self) -> u32 {
        let generators =
            (self.base as usize..self.columns.len()).map(|at| 1 << at | self.columns[at]);
        let mut words = vec![0_u32];
        for generator in generators {
            words.extend(words.clone().iter().map(|word| word ^ generator));
        }
        let lengths = words.iter().skip(1).map(|word| word.count_ones());
        lengths.min().unwrap_or(u32::MAX)
    }

    /// Returns the interactions of two factors that the main effect of `factor` cannot be told from.
    pub fn aliases(&self, factor: usize) -> Vec<Interaction> {
        let column = self.columns[factor];
        let own = self.interactions().filter(|(_, known)| *known == column);
        own.map(|(interaction, _)| interaction).collect()
    }

    /// Returns the interactions of two factors that cannot be told from each other, nor are they those of a main effect.
    pub fn alike(&self) -> Vec<Vec<Interaction>> {
        let mut sets: Vec<(u32, Vec<Interaction>)> = Vec::new();
        for (interaction, column) in self.interactions() {
            match sets.iter_mut().find(|(known, _)| *known == column) {
                Some((_, own)) => own.push(interaction),
                None => sets.push((column, vec![interaction])),
            }
        }
        let is_told = |(column, own): &(u32, Vec<Interaction>)| {
            own.len() > 1 && !self.columns.contains(column)
        };
        sets.into_iter()
            .filter(is_told)
            .map(|(_, own)| own)
            .collect()
    }

    /// Returns every interaction of two factors with its column.
    fn interactions(&self) -> impl Iterator<Item = (Interaction, u32)> {
        let columns = &self.columns;
        (0..columns.len()).flat_map(move |one| {
            let others = one + 1..columns.len();
            others.map(move |other| ((one, other), columns[one] ^ columns[other]))
        })
    }
}

/// How many words there are of each length.
type Lengths = [u32; FACTORS_MAX + 1];

/// The search of all sets of generators.
struct Search {
    columns: Vec<u32>,
    base: u32,
    further: usize,
    chosen: Vec<u32>,
    best: Option<(Lengths, Vec<u32>)>,
}

impl Search {
    /// Tries every column from `from` on as the next generator beside those chosen, which make these words.
    fn extend(&mut self, from: usize, words: &[u32], lengths: Lengths) {
        if self.chosen.len() == self.further {
            self.best = Some((lengths, self.chosen.clone()));
            return;
        }
        for at in from..self.columns.len() {
            let factor = self.base as usize + self.chosen.len();
            let generator = 1 << factor | self.columns[at];
            let mut more = lengths;
            let mut all = words.to_vec();
            for word in words {
                let word = word ^ generator;
                more[word.count_ones() as usize] += 1;
                all.push(word);
            }
            // Words only become more: what is no better now never is.
            if self.best.as_ref().is_some_and(|(best, _)| more >= *best) {
                continue;
            }
            self.chosen.push(self.columns[at]);
            self.extend(at + 1, &all, more);
            self.chosen.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolutions_are_those_of_the_tables() {
        // Box, Hunter and Hunter, "Statistics for Experimenters", table 12.15.
        for (factors, runs, resolution) in [
            (3, 4, 3),
            (4, 8, 4),
            (5, 8, 3),
            (6, 8, 3),
            (7, 8, 3),
            (5, 16, 5),
            (6, 16, 4),
            (7, 16, 4),
            (8, 16, 4),
            (9, 16, 3),
            (11, 16, 3),
            (6, 32, 6),
            (7, 32, 4),
            (9, 32, 4),
            (11, 32, 4),
            (12, 32, 4),
        ] {
            let fraction = Fraction::of(factors, runs).expect("there is one");
            assert_eq!(fraction.resolution(), resolution, "{factors} in {runs}");
            assert_eq!(Fraction::of(factors, runs), Some(fraction));
        }
        for (factors, runs) in [(8, 8), (3, 8), (2, 8), (5, 12), (4, 64), (13, 16)] {
            assert_eq!(Fraction::of(factors, runs), None, "{factors} in {runs}");
        }
    }

    #[test]
    fn words_are_as_few_as_can_be() {
        // Of 2^(7−2) the words have lengths 4, 5, 5 (Fries and Hunter 1980): one pair of pairs in three is alike.
        let alike = Fraction::of(7, 32).expect("there is one").alike();
        assert_eq!(alike.len(), 3, "{alike:?}");
        assert!(alike.iter().all(|own| own.len() == 2), "{alike:?}");
    }

    #[test]
    fn levels_are_balanced_and_aliases_are_what_cannot_be_told_apart() {
        for (factors, runs) in [(3, 4), (5, 8), (7, 8), (6, 16), (12, 16), (8, 32)] {
            let fraction = Fraction::of(factors, runs).expect("there is one");
            let cells = fraction.cells();
            assert_eq!(cells.len(), runs as usize);
            let sign = |cell: &[usize], at: usize| 1 - 2 * cell[at] as i32;
            let product = |of: &[usize]| {
                let products = cells
                    .iter()
                    .map(|cell| of.iter().map(|at| sign(cell, *at)).product::<i32>());
                products.sum::<i32>()
            };
            for one in 0..factors {
                assert_eq!(product(&[one]), 0, "half of the trials have each level");
                let aliases = fraction.aliases(one);
                for two in 0..factors {
                    if one != two {
                        assert_eq!(product(&[one, two]), 0);
                    }
                    for three in two + 1..factors {
                        let is_same = product(&[one, two, three]).unsigned_abs() == runs;
                        let is_own = one == two || one == three;
                        assert!(is_own || is_same == aliases.contains(&(two, three)));
                    }
                }
            }
        }
    }
}
