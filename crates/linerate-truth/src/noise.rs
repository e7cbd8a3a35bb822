//! How trials that are the same differ: the kinds of noise that conclusions must stand.
//!
//! A trial's response is the true one times a factor with mean 1, drawn in the order of execution.

use linerate_analyze::Draw;

/// Draws that the mean of a kind without a closed form is taken of.
const MEAN_DRAWS: u32 = 40_000;
/// Relative deviations of the trials of a study of a lab on a machine that was shared, about the means
/// of their cells, stretched by √(n/(n − 1)): latency, small messages, split requests and packet rate.
const RESIDUALS: &[f64] = &[
    -0.091, -0.003, 0.094, -0.132, 0.148, -0.017, 0.076, 0.012, -0.088, 0.187, -0.201, 0.014,
    -0.034, -0.049, 0.083, 0.151, -0.122, -0.029, 0.006, -0.064, 0.058, -0.243, 0.118, 0.125,
    0.039, -0.112, 0.073, -0.008, -0.077, 0.085, 0.221, -0.158, -0.063, 0.104, -0.021, -0.083,
    -0.172, 0.263, -0.091, 0.032, 0.027, -0.059, -0.141, 0.091, 0.05, 0.002, 0.066, -0.068,
];

/// Trials that a spell lasts.
const SPELL: f64 = 12.0;

/// A kind of noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Normal with this relative deviation.
    Normal(f64),
    /// One trial in five is slower by this share.
    Bimodal(f64),
    /// Slowdowns of a Pareto tail (Lomax with exponent 2.5) of this scale.
    HeavyTail(f64),
    /// Normal with this deviation, cut a third of it above the mean, as a full link cuts.
    Capped(f64),
    /// A first-order autoregression with coefficient 0.9 and this deviation.
    Drift(f64),
    /// The machine below takes up to this share of the CPUs for a while; half of all trials see it, and
    /// the CPUs' modes lack it.
    LostCpu(f64),
    /// Drawn from what trials of a real study left over.
    Real,
    /// One trial in ten is slower by this share.
    Outliers(f64),
    /// The first level alone has this deviation, others 1 %.
    OneLevel(f64),
    /// None at all.
    Exact,
    /// With the factor on trials have this deviation, off 1 %.
    ByFactor(f64),
    /// The deviation grows from 1 % at the first level to this at the last, in equal ratios.
    ByLevel(f64),
    /// One trial in five is slower by this share, at the last level alone.
    StateOfOne(f64),
    /// The share of trials that are slower by this grows from none at the first level to one half at the last.
    Mixture(f64),
    /// A loss of this share in all that grows in proportion to the time since the begin, with 2 % beside it.
    Trend(f64),
    /// Student's t with two degrees of freedom, which has no variance, of this scale.
    NoVariance(f64),
    /// One trial in fifty carries a tenth; 1 % beside it.
    Rare,
    /// Each block has a factor of its own of this deviation, with 1 % beside it.
    Blocks(f64),
    /// Logarithms are normal; their deviation grows from 2 % at the first level to this at the last, in equal
    /// ratios.
    Skewed(f64),
    /// Something that no counter shows makes all trials slower by this share, a quarter of the time, for four in
    /// turn on average; 1 % beside it.
    Visitor(f64),
    /// Normal with 5 %, and this share of the trials is invalid.
    Invalid(f64),
    /// A first-order autoregression with this coefficient and a deviation of 8 %.
    Memory(f64),
    /// One trial in fifteen is this many times what it would be; 1 % beside it.
    Multiple(f64),
    /// All trials are slower by this share for twelve in turn, at some time; 1 % beside it.
    Spell(f64),
}

/// Where a trial stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Where its level is among those with numbers: 0 the first, 1 the last.
    pub rank: f64,
    /// Its block, from 0.
    pub block: usize,
    /// Whether its switch is on, or the kernel tunes its buffers.
    pub is_on: bool,
}

impl Noise {
    /// The kinds that the bench tries.
    pub const ALL: &'static [Noise] = &[
        Noise::Normal(0.01),
        Noise::Normal(0.03),
        Noise::Normal(0.10),
        Noise::Normal(0.20),
        Noise::Bimodal(0.30),
        Noise::Bimodal(0.10),
        Noise::HeavyTail(0.03),
        Noise::Capped(0.03),
        Noise::Drift(0.05),
        Noise::LostCpu(0.20),
        Noise::Real,
        Noise::Exact,
        Noise::Outliers(0.60),
        Noise::OneLevel(0.10),
        Noise::ByFactor(0.20),
        Noise::ByLevel(0.20),
        Noise::StateOfOne(0.30),
        Noise::Mixture(0.30),
        Noise::Trend(0.30),
        Noise::NoVariance(0.03),
        Noise::Rare,
        Noise::Blocks(0.20),
        Noise::Skewed(0.50),
        Noise::Visitor(0.30),
        Noise::Invalid(0.20),
        Noise::Memory(0.3),
        Noise::Memory(0.7),
        Noise::Multiple(1.0 / 3.0),
        Noise::Multiple(3.0),
        Noise::Spell(0.20),
    ];

    /// Whether three trials of a cell, or those of all others, show what noise there is: where they need not,
    /// no method knows, and the bench counts without a bound.
    pub fn is_seen(self) -> bool {
        !matches!(
            self,
            Noise::StateOfOne(_) | Noise::Rare | Noise::Multiple(_)
        )
    }

    /// Returns the kind in words.
    pub fn title(self) -> String {
        let percent = |share: f64| format!("{} %", (1000.0 * share).round() / 10.0);
        match self {
            Noise::Normal(share) => format!("normal {}", percent(share)),
            Noise::Bimodal(share) => format!("1 in 5 is {} slower", percent(share)),
            Noise::HeavyTail(share) => format!("heavy tail {}", percent(share)),
            Noise::Capped(share) => format!("capped, {}", percent(share)),
            Noise::Drift(share) => format!("drift {}", percent(share)),
            Noise::LostCpu(share) => format!("lost CPU up to {}", percent(share)),
            Noise::Real => "residuals of a real study".to_owned(),
            Noise::Outliers(share) => format!("1 in 10 is {} slower", percent(share)),
            Noise::OneLevel(share) => format!("{} at one level, 1 % at others", percent(share)),
            Noise::Exact => "none".to_owned(),
            Noise::ByFactor(share) => format!("{} on, 1 % off", percent(share)),
            Noise::ByLevel(share) => format!("1 % to {} from level to level", percent(share)),
            Noise::StateOfOne(share) => {
                format!("1 in 5 is {} slower at one level", percent(share))
            }
            Noise::Mixture(share) => {
                format!(
                    "0 to 1 in 2 is {} slower from level to level",
                    percent(share)
                )
            }
            Noise::Trend(share) => format!("trend of {}", percent(share)),
            Noise::NoVariance(share) => format!("no variance, {}", percent(share)),
            Noise::Rare => "1 in 50 is ten times slower".to_owned(),
            Noise::Blocks(share) => format!("{} by block", percent(share)),
            Noise::Skewed(share) => {
                format!("log-normal, 2 % to {} from level to level", percent(share))
            }
            Noise::Visitor(share) => format!("{} slower for 4 trials, 1 in 4", percent(share)),
            Noise::Invalid(share) => format!("normal 5 %, {} invalid", percent(share)),
            Noise::Memory(share) => format!("autoregression of {share}, 8 %"),
            Noise::Multiple(times) => format!("1 in 15 is {times:.2} times as fast"),
            Noise::Spell(share) => format!("{} slower for 12 trials", percent(share)),
        }
    }

    /// Returns whether a trial is invalid.
    pub(crate) fn is_invalid(self, draw: &mut Draw) -> bool {
        match self {
            Noise::Invalid(share) => draw.unit() < share,
            _ => false,
        }
    }

    /// Returns the factors of trials at `places` in the order of execution, each with the share of the CPUs'
    /// time that is seen to be missing.
    pub fn factors(self, places: &[Place], seed: u64) -> Vec<(f64, f64)> {
        let mut draw = Draw::new(seed);
        let mut state = State {
            drift: draw.normal(),
            lost: 0.0,
            time: 0.0,
            block: None,
            is_visited: None,
            begin: None,
            step: 1.0 / places.len().max(1) as f64,
        };
        let mean = self.mean();
        let mut one = |place: &Place| {
            let factor = self.factor(place, &mut state, &mut draw).max(0.02) / mean;
            (factor, state.lost)
        };
        places.iter().map(&mut one).collect()
    }

    fn mean(self) -> f64 {
        match self {
            Noise::Bimodal(_) | Noise::HeavyTail(_) | Noise::Capped(_) | Noise::LostCpu(_) => {
                let mut draw = Draw::new(1);
                let mut state = State::default();
                let place = Place::default();
                let draws =
                    (0..MEAN_DRAWS).map(|_| self.factor(&place, &mut state, &mut draw).max(0.02));
                draws.sum::<f64>() / f64::from(MEAN_DRAWS)
            }
            _ => 1.0,
        }
    }

    fn factor(self, place: &Place, state: &mut State, draw: &mut Draw) -> f64 {
        match self {
            Noise::Normal(share) => 1.0 + share * draw.normal(),
            Noise::Bimodal(share) => {
                let slow = if draw.unit() < 0.2 { share } else { 0.0 };
                (1.0 - slow) * (1.0 + 0.01 * draw.normal())
            }
            Noise::HeavyTail(share) => {
                let tail = (1.0 - draw.unit()).powf(-1.0 / 2.5) - 1.0;
                1.0 / (1.0 + share * tail / 0.667)
            }
            Noise::Capped(share) => (1.0 + share * draw.normal()).min(1.0 + share / 3.0),
            Noise::Drift(share) => {
                state.drift = 0.9 * state.drift + (1.0 - 0.81_f64).sqrt() * draw.normal();
                1.0 + share * state.drift
            }
            Noise::LostCpu(share) => {
                // A visit lasts five trials on average, and comes as often as it goes.
                if draw.unit() < 0.2 {
                    let present = draw.unit() < 0.5;
                    state.lost = if present { share * draw.unit() } else { 0.0 };
                }
                (1.0 - state.lost) * (1.0 + 0.01 * draw.normal())
            }
            Noise::Real => 1.0 + RESIDUALS[draw.below(RESIDUALS.len() as u32) as usize],
            Noise::Outliers(share) => {
                let slow = if draw.unit() < 0.1 { share } else { 0.0 };
                (1.0 - slow) * (1.0 + 0.01 * draw.normal()) / (1.0 - 0.1 * share)
            }
            Noise::OneLevel(share) => {
                let deviation = if place.rank == 0.0 { share } else { 0.01 };
                1.0 + deviation * draw.normal()
            }
            Noise::Exact => 1.0,
            Noise::ByFactor(share) => {
                let deviation = if place.is_on { share } else { 0.01 };
                1.0 + deviation * draw.normal()
            }
            Noise::ByLevel(share) => {
                let deviation = 0.01 * (share / 0.01).powf(place.rank);
                1.0 + deviation * draw.normal()
            }
            Noise::StateOfOne(share) => {
                let often = if place.rank == 1.0 { 0.2 } else { 0.0 };
                two_states(share, often, draw)
            }
            Noise::Mixture(share) => two_states(share, 0.5 * place.rank, draw),
            Noise::Trend(share) => {
                state.time += state.step;
                1.0 + share * (0.5 - state.time) + 0.02 * draw.normal()
            }
            Noise::NoVariance(share) => {
                let half = draw.unit() - 0.5;
                // Its quantiles have a closed form.
                1.0 + share * half * (2.0 / (0.25 - half * half)).sqrt()
            }
            Noise::Rare => {
                let slow = if draw.unit() < 0.02 { 0.1 } else { 1.0 };
                slow * (1.0 + 0.01 * draw.normal()) / 0.982
            }
            Noise::Blocks(share) => {
                let known = state.block.filter(|(block, _)| *block == place.block);
                let (_, deviation) = known.unwrap_or_else(|| (place.block, draw.normal()));
                state.block = Some((place.block, deviation));
                (1.0 + share * deviation) * (1.0 + 0.01 * draw.normal())
            }
            Noise::Skewed(share) => {
                let deviation = 0.02 * (share / 0.02).powf(place.rank);
                (deviation * draw.normal() - deviation * deviation / 2.0).exp()
            }
            Noise::Visitor(share) => {
                let often = match state.is_visited {
                    None => 0.25,
                    Some(false) => 1.0 / 12.0,
                    Some(true) => 0.75,
                };
                let is_visited = draw.unit() < often;
                state.is_visited = Some(is_visited);
                let slow = if is_visited { share } else { 0.0 };
                (1.0 - slow) / (1.0 - share / 4.0) * (1.0 + 0.01 * draw.normal())
            }
            Noise::Invalid(_) => 1.0 + 0.05 * draw.normal(),
            Noise::Memory(share) => {
                let new = (1.0 - share * share).sqrt() * draw.normal();
                state.drift = share * state.drift + new;
                1.0 + 0.08 * state.drift
            }
            Noise::Multiple(times) => {
                let often = 1.0 / 15.0;
                let factor = if draw.unit() < often { times } else { 1.0 };
                factor * (1.0 + 0.01 * draw.normal()) / (1.0 + often * (times - 1.0))
            }
            Noise::Spell(share) => {
                let trials = (1.0 / state.step).round();
                let spell = (SPELL / trials).min(0.5);
                // It begins where a number that is drawn once says, and goes on at the begin if the end cuts it.
                let begin = *state.begin.get_or_insert_with(|| draw.unit());
                let since = (state.time - begin).rem_euclid(1.0);
                state.time += state.step;
                let slow = if since < spell { share } else { 0.0 };
                (1.0 - slow) / (1.0 - spell * share) * (1.0 + 0.01 * draw.normal())
            }
        }
    }
}

/// Returns a factor of mean one that is slower by `share` in `often` of all draws.
fn two_states(share: f64, often: f64, draw: &mut Draw) -> f64 {
    let slow = if draw.unit() < often { share } else { 0.0 };
    (1.0 - slow) / (1.0 - often * share) * (1.0 + 0.01 * draw.normal())
}

/// What trials hand on to the next.
#[derive(Debug, Default)]
struct State {
    drift: f64,
    lost: f64,
    /// Share of all trials that are done, and what one adds.
    time: f64,
    step: f64,
    /// The block, and how far it is from others in units of their deviation.
    block: Option<(usize, f64)>,
    /// Whether something makes trials slower, once the first was drawn.
    is_visited: Option<bool>,
    /// When a spell begins, once the first trial was drawn.
    begin: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_noise_has_mean_one() {
        for noise in Noise::ALL {
            let place = |block| Place {
                block,
                ..Place::default()
            };
            let places: Vec<Place> = (0..200_000).map(place).collect();
            let factors = noise.factors(&places, 3);
            let mean = factors.iter().map(|(factor, _)| factor).sum::<f64>() / factors.len() as f64;
            assert!((mean - 1.0).abs() < 0.005, "{}: {mean}", noise.title());
        }
    }
}
