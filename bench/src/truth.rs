//! How often the analysis is right: studies of a known truth, counted.
//!
//! Nothing is measured here. Recordings are made up, the program's own analysis reads them, and what
//! it says is held against what is true. docs/accuracy.md has the table.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::bail;
use clap::Args;
use linerate_truth::limiters::{Cause, Named, named};
use linerate_truth::noise::Noise;
use linerate_truth::pairs::{Said, said};
use linerate_truth::runs::{Held, held};
use linerate_truth::score::{Length, Score, score, score_of};
use linerate_truth::study::{Chapters, Shape};

/// Hold the analysis against studies of known truth
#[derive(Debug, Args)]
pub struct TruthArgs {
    /// Studies in all; of fewer than one of each shape for each noise, a part of the noises
    #[arg(long, default_value_t = 2000)]
    studies: u32,
    /// The seed that studies are made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Make this table alone
    #[arg(long)]
    table: Option<Made>,
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Made {
    /// Every noise.
    Noises,
    /// What three minutes find.
    Power,
    /// Longer studies.
    Long,
    /// Measurements that are repeated.
    Runs,
    /// Runs that are compared.
    Compare,
    /// What limits.
    Causes,
}

/// Probability with which chance alone gives what breaks a bound that a share just keeps: of those that each
/// noise has, some 300, and of one that there is once.
const CHANCE_EACH: f64 = 0.001;
const CHANCE_ONCE: f64 = 0.02;

/// Share of studies with a false claim that is promised.
const FALSE_CLAIMS_MAX: f64 = 0.05;
/// Share of intervals that must hold the truth in each noise.
const COVERAGE_MIN: f64 = 0.93;
/// Share of effects of twice the margin that may be called the same.
const WRONG_SAME_MAX: f64 = 0.05;
/// Share of curves with a buffer that is said to suffice and loses more than the margin.
const TOO_SMALL_MAX: f64 = 0.05;
/// Share of flat curves on which larger buffers are said to lose.
const FALLS_BACK_MAX: f64 = 0.02;
/// Share of effects of 20 % at a noise of 20 % that 48 trials must find, and those of a whole study, whose claims
/// share one error.
const POWER_MIN: f64 = 0.80;
const WHOLE_POWER_MIN: f64 = 0.70;
/// The noise at which that is asked, and its studies for each of a row's smallest part, alone and whole: of 300 and
/// 150 effects a share is known to 2 and 4 %.
const POWER_NOISE: Noise = Noise::Normal(0.20);
const POWER_STUDIES: (u32, u32) = (100, 25);

/// Share of recordings of a cause in which it must be named; in none may it be taken for another.
const NAMED_MIN: f64 = 0.6;

/// Recordings of a cause at the least: of so many a share of [`NAMED_MIN`] is known to a sixth.
const RECORDINGS_MIN: u32 = 33;

/// Studies of a noise for each of a row's smallest part: 20, and one in seven of each of thirteen others.
const STUDIES_OF_A_NOISE: u32 = 22;

/// One noise, every shape.
struct Row {
    noise: Noise,
    flat: Score,
    all: Score,
    ten: Score,
    twenty: Score,
    alone: Score,
    turning: Score,
    curves: Score,
    tuned: Score,
    /// Effects and curves that other rows have none of: one cell, two factors, a crossing, near the margin.
    others: Score,
}

/// Studies that are longer than the others, or end when they are decided.
struct Long {
    length: Length,
    chapters: Chapters,
    noise: Noise,
    flat: Score,
    /// Effects of 10 %.
    ten: Score,
    /// Effects of 12 % that turn about with another factor, so that their mean is none.
    crossed: Score,
}

/// The lengths that are tried, with their chapters and noises.
const LONG: &[(Length, Chapters, Noise)] = &[
    (Length::Fixed(6), Chapters::Latency, Noise::Bimodal(0.30)),
    (Length::Fixed(8), Chapters::Latency, Noise::Bimodal(0.30)),
    (Length::Fixed(8), Chapters::Latency, Noise::Bimodal(0.10)),
    (Length::Fixed(8), Chapters::Latency, Noise::Normal(0.10)),
    (
        Length::UntilDecided(8),
        Chapters::Three,
        Noise::Normal(0.10),
    ),
    (
        Length::UntilDecided(8),
        Chapters::Three,
        Noise::Bimodal(0.10),
    ),
    (
        Length::UntilDecided(8),
        Chapters::Three,
        Noise::ByLevel(0.20),
    ),
];

/// What the study of three minutes must find: the truth, the noise, and the least share, which is what it reached when it
/// was set. Of effects they are told apart by chapter, of a flat study the curves that are shown to be the same.
const POWER: &[(Shape, Noise, f64)] = &[
    (Shape::Reversed(2.0), Noise::Normal(0.01), 0.95),
    (Shape::Reversed(2.0), Noise::Normal(0.03), 0.95),
    (Shape::Reversed(2.0), Noise::Normal(0.05), 0.95),
    (Shape::OneLevel(0.2), Noise::Normal(0.01), 0.95),
    (Shape::OneLevel(0.2), Noise::Normal(0.03), 0.45),
    (Shape::Effect(0.1), Noise::Normal(0.10), 0.70),
    (Shape::Flat, Noise::Normal(0.01), 0.95),
    (Shape::Flat, Noise::Normal(0.03), 0.60),
];
/// Studies of each of them for each of a row's smallest part.
const POWER_OF_EACH: u32 = 25;
/// Share of flat studies in which a ratio's interval is wider than a factor 2, at a noise of 3 % and less.
const WIDE_MAX: f64 = 0.01;

/// How runs of one measurement differ, and whether so many runs can show it: of a state that one run in fifteen is in, ten
/// runs meet none in half of all tries, and of one that stays for four runs in most.
const RUNS: &[(Noise, bool)] = &[
    (Noise::Normal(0.03), true),
    (Noise::Memory(0.3), true),
    (Noise::Memory(0.7), true),
    (Noise::Bimodal(0.10), true),
    (Noise::Bimodal(0.30), true),
    (Noise::Visitor(0.30), false),
    (Noise::Multiple(1.0 / 3.0), false),
    (Noise::Multiple(3.0), false),
];
/// Share of intervals of runs that must hold the mean.
const RUNS_HELD_MIN: f64 = 0.90;
/// Measurements of each: a share is known to 1 %.
const RUNS_TRIES: u32 = 1000;

/// How runs that are compared differ from trial to trial, and whether a run shows what there is: something that takes all
/// of its trials shows in none of them.
const COMPARED: &[(Noise, bool)] = &[
    (Noise::Normal(0.01), true),
    (Noise::Normal(0.03), true),
    (Noise::Normal(0.10), true),
    (Noise::Memory(0.7), true),
    (Noise::Visitor(0.30), false),
    (Noise::Multiple(1.0 / 3.0), true),
    (Noise::Multiple(3.0), true),
];
/// Trials of a run.
const COMPARED_TRIALS: &[usize] = &[5, 10];
/// The other run's truth over that of the first: the first is none.
const COMPARED_TIMES: [f64; 4] = [1.0, 1.05, 1.1, 0.8];

/// A row of what is said of pairs of runs.
struct ComparedRow {
    noise: Noise,
    is_shown: bool,
    trials: usize,
    /// Of each of [`COMPARED_TIMES`].
    said: [Said; 4],
}

impl ComparedRow {
    fn all(pairs: u32, seed: u64) -> Vec<Self> {
        let rows = COMPARED.iter();
        let rows = rows.flat_map(|of| COMPARED_TRIALS.iter().map(move |trials| (*of, *trials)));
        let rows: Vec<_> = rows.collect();
        shared(&rows, |&((noise, is_shown), trials)| {
            let said = said(COMPARED_TIMES, noise, trials, pairs, seed);
            Self {
                noise,
                is_shown,
                trials,
                said,
            }
        })
    }

    /// Returns the bounds that it does not keep, chance allowed for.
    fn broken(&self) -> Vec<String> {
        let title = format!("two runs of {}, {}", self.trials, self.noise.title());
        let Said { pairs, wrong, .. } = self.said[0];
        let wrong = most(&title, "said to differ", wrong, pairs, FALSE_CLAIMS_MAX);
        let others = self.said.iter().zip(COMPARED_TIMES).skip(1);
        let same = others.filter_map(|(said, times)| {
            let what = format!("× {times} called the same");
            most(&title, &what, said.same, said.pairs, WRONG_SAME_MAX)
        });
        wrong
            .filter(|_| self.is_shown)
            .into_iter()
            .chain(same)
            .collect()
    }
}

fn compared_table(rows: &[ComparedRow]) -> String {
    let mut text = String::from(
        "| noise of a trial | trials of each run | pairs of each truth | the same: said to differ | … the same \
         | + 5 %: found | + 10 %: found | − 20 %: found | called the same: + 5 % | … + 10 %, − 20 % \
         | the wrong way round |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let [none, five, ten, twenty] = row.said;
        let pairs = none.pairs;
        let wrong = five.wrong + ten.wrong + twenty.wrong;
        let _ = writeln!(
            text,
            "| {} | {} | {pairs} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.noise.title(),
            row.trials,
            percent(none.wrong, pairs),
            percent(none.same, pairs),
            percent(five.found, pairs),
            percent(ten.found, pairs),
            percent(twenty.found, pairs),
            percent(five.same, pairs),
            percent(ten.same + twenty.same, 2 * pairs),
            percent(wrong, 3 * pairs),
        );
    }
    text
}

/// A row of [`POWER`].
struct Power {
    shape: Shape,
    noise: Noise,
    least: f64,
    score: Score,
}

impl Power {
    fn of((shape, noise, least): (Shape, Noise, f64), each: u32, seed: u64) -> Self {
        let studies = POWER_OF_EACH * each;
        Self {
            shape,
            noise,
            least,
            score: score(shape, noise, Chapters::ThreeMinutes, studies, seed),
        }
    }

    fn title(&self) -> String {
        format!("{}, {}", self.shape.title(), self.noise.title())
    }

    /// Returns what is found of what there is to find, in words each.
    fn shares(&self) -> Vec<(&'static str, u32, u32)> {
        let Score {
            by_chapter: [latency, messages],
            curves,
            no_effect,
            ..
        } = self.score;
        match self.shape {
            Shape::Flat => vec![("curves that are the same", no_effect, curves)],
            _ => vec![
                ("latency", latency.1, latency.0),
                ("small messages", messages.1, messages.0),
            ],
        }
    }

    /// Returns the bounds that it does not keep, chance allowed for.
    fn broken(&self) -> Vec<String> {
        let title = self.title();
        let shares = self.shares().into_iter();
        let missed = shares.filter_map(|(what, found, of)| {
            let what = format!("{what}: missed");
            beyond(
                &title,
                &what,
                (of - found, of),
                (1.0 - self.least, CHANCE_EACH),
            )
        });
        let wide = (self.score.wide, self.score.studies);
        let is_quiet = matches!(self.noise, Noise::Normal(share) if share < 0.05);
        let is_quiet = is_quiet && self.shape == Shape::Flat;
        let wide = is_quiet.then(|| {
            beyond(
                &title,
                "intervals wider than a factor 2",
                wide,
                (WIDE_MAX, CHANCE_EACH),
            )
        });
        missed.chain(wide.flatten()).collect()
    }
}

fn power_table(rows: &[Power]) -> String {
    let mut text = String::from(
        "| truth and noise, three minutes | studies | found | asked for | studies with a false claim \
         | with an interval wider than a factor 2 |\n|---|---:|---|---:|---:|---:|\n",
    );
    for row in rows {
        let shares = row.shares().into_iter();
        let found = shares.map(|(what, found, of)| format!("{what} {}", percent(found, of)));
        let score = &row.score;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} % | {} | {} |",
            row.title(),
            score.studies,
            found.collect::<Vec<_>>().join(", "),
            100.0 * row.least,
            percent(score.with_false_claim, score.studies),
            percent(score.wide, score.studies),
        );
    }
    text
}

/// Prints the tables; fails where a bound is not kept.
pub fn truth(args: &TruthArgs) -> anyhow::Result<()> {
    let all = Noise::ALL.len() as u32 * STUDIES_OF_A_NOISE;
    let each = (args.studies / all).max(1);
    let is_wanted = |part| args.table.is_none_or(|wanted| wanted == part);
    let mut broken = Vec::new();
    if is_wanted(Made::Noises) {
        let noises = part(Noise::ALL, all, args.studies);
        let rows = shared(&noises, |noise| row(*noise, each, args.seed));
        println!("{}", table(&rows));
        broken.extend(self::broken(&rows));
    }
    if is_wanted(Made::Power) {
        let power = shared(POWER, |row| Power::of(*row, each, args.seed));
        println!("{}", power_table(&power));
        broken.extend(power.iter().flat_map(Power::broken));
    }
    if is_wanted(Made::Long) {
        let long: Vec<Long> = part(LONG, all, args.studies)
            .into_iter()
            .map(|kind| long(kind, each, args.seed))
            .collect();
        println!("{}", long_table(&long));
        broken.extend(broken_long(&long));
    }
    if is_wanted(Made::Runs) {
        let runs = shared(RUNS, |&(noise, shows)| {
            (noise, shows, held(noise, RUNS_TRIES, args.seed))
        });
        println!("{}", runs_table(&runs));
        broken.extend(runs.iter().flat_map(broken_runs));
    }
    if is_wanted(Made::Compare) {
        let rows = ComparedRow::all((args.studies / 20).max(1), args.seed);
        println!("{}", compared_table(&rows));
        broken.extend(rows.iter().flat_map(ComparedRow::broken));
    }
    if is_wanted(Made::Causes) {
        let each = (args.studies / 20).max(RECORDINGS_MIN);
        let causes = shared(Cause::ALL, |cause| (*cause, named(*cause, each, args.seed)));
        println!("{}", causes_table(&causes));
        broken.extend(mistaken(&causes));
    }
    if !broken.is_empty() {
        bail!("bounds that are not kept:\n  {}", broken.join("\n  "));
    }
    Ok(())
}

/// Returns what `make` makes of each, with all CPUs.
fn shared<T: Sync, U: Send>(all: &[T], make: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    let work = || {
        while let Some((at, one)) = take(all, &next) {
            let one = make(one);
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push((at, one));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, one)| one).collect()
}

/// Returns so many of `kinds`, in even steps, as `studies` are of `all`: a bound is one of a kind, and needs as many
/// studies of it however few kinds there are. The place of [`POWER_NOISE`] is in each.
fn part<T: Copy>(kinds: &[T], all: u32, studies: u32) -> Vec<T> {
    let step = all.div_ceil(studies.max(1)) as usize;
    let power = Noise::ALL.iter().position(|noise| *noise == POWER_NOISE);
    let first = power.unwrap_or(0) % step;
    kinds.iter().skip(first).step_by(step).copied().collect()
}

fn take<'t, T>(all: &'t [T], next: &AtomicUsize) -> Option<(usize, &'t T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, all.get(at)?))
}

fn runs_table(rows: &[(Noise, bool, Held)]) -> String {
    let mut text = String::from(
        "| noise from run to run | measurements | intervals of `--runs 10` that hold the mean \
         | … of `--precision 2%` | runs that it took |\n|---|---:|---:|---:|---:|\n",
    );
    for (noise, _, held) in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.1} |",
            noise.title(),
            held.tries,
            percent(held.of_ten, held.tries),
            percent(held.of_ended, held.tries),
            f64::from(held.runs_of_ended) / f64::from(held.tries),
        );
    }
    text
}

/// Returns the bounds that a row does not keep, where its runs can show what there is.
fn broken_runs((noise, shows, held): &(Noise, bool, Held)) -> Vec<String> {
    let title = noise.title();
    let rows = [
        ("intervals of ten runs that miss the mean", held.of_ten),
        ("intervals of ± 2 % that miss the mean", held.of_ended),
    ];
    let rows = rows.into_iter().filter(|_| *shows);
    let missed = |(what, of)| {
        most(
            &title,
            what,
            held.tries - of,
            held.tries,
            1.0 - RUNS_HELD_MIN,
        )
    };
    rows.filter_map(missed).collect()
}

/// Returns what was named of each cause.
fn causes_table(causes: &[(Cause, Named)]) -> String {
    let mut text = String::from(
        "| what holds it | recordings | named right | not named | named wrong |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for (cause, named) in causes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            cause.title(),
            named.recordings,
            named.right,
            named.unknown,
            named.wrong.len()
        );
    }
    text
}

/// Returns causes that were taken for others, or are hardly ever named.
fn mistaken(causes: &[(Cause, Named)]) -> Vec<String> {
    let mut broken = Vec::new();
    for (cause, named) in causes {
        if let Some(one) = named.wrong.first() {
            let count = named.wrong.len();
            let title = cause.title();
            broken.push(format!("{title}: named wrong in {count}, such as {one}"));
        }
        if share(named.right, named.recordings) < NAMED_MIN {
            let Named {
                right, recordings, ..
            } = named;
            let title = cause.title();
            broken.push(format!("{title}: named in {right} of {recordings} only"));
        }
    }
    broken
}

fn row(noise: Noise, each: u32, seed: u64) -> Row {
    let of = |shape, chapters, studies| score(shape, noise, chapters, studies, seed);
    let three = |shape, studies| of(shape, Chapters::Three, studies);
    let curves = [
        Shape::Saturating(24.0),
        Shape::Fading,
        Shape::Knee(64.0),
        Shape::Knee(256.0),
    ];
    let mut all_curves = Score::default();
    for shape in curves {
        all_curves.add(&three(shape, each));
    }
    let others = [
        Shape::OneCell(0.3),
        Shape::Crossed(0.2),
        Shape::Crossed(0.12),
        Shape::Both(0.2),
        Shape::Effect(0.06),
        Shape::Hump(0.15),
        Shape::Last(0.1),
        Shape::All(0.06),
    ];
    let mut all_others = Score::default();
    // One study of each for seven of the flat, at least one.
    for shape in others {
        all_others.add(&three(shape, each.div_ceil(7)));
    }
    for shape in [
        Shape::Effect(0.0625),
        Shape::Effect(0.2),
        Shape::Turning(0.3),
    ] {
        for chapters in [Chapters::RoundTrip, Chapters::Cpu] {
            all_others.add(&of(shape, chapters, each.div_ceil(7)));
        }
    }
    let (alone, whole) = if noise == POWER_NOISE {
        POWER_STUDIES
    } else {
        (4, 2)
    };
    let mut tuned = three(Shape::TunedBadly(0.2), each);
    tuned.add(&three(Shape::TunedBadly(0.1), each.div_ceil(7)));
    let mut row = Row {
        noise,
        flat: three(Shape::Flat, 6 * each),
        ten: three(Shape::Effect(0.1025), 2 * each),
        twenty: three(Shape::Effect(0.2), whole * each),
        alone: of(Shape::Effect(0.2), Chapters::Latency, alone * each),
        turning: three(Shape::Turning(0.4), each),
        tuned,
        curves: all_curves,
        others: all_others,
        all: Score::default(),
    };
    for part in [
        row.flat,
        row.ten,
        row.twenty,
        row.alone,
        row.turning,
        row.curves,
        row.tuned,
        row.others,
    ] {
        row.all.add(&part);
    }
    row
}

fn long((length, chapters, noise): (Length, Chapters, Noise), each: u32, seed: u64) -> Long {
    let of = |shape, studies| score_of(shape, noise, chapters, length, (studies, seed));
    Long {
        length,
        chapters,
        noise,
        flat: of(Shape::Flat, 4 * each),
        ten: of(Shape::Effect(0.1025), each),
        crossed: of(Shape::Crossed(0.12), each),
    }
}

impl Long {
    fn title(&self) -> String {
        let chapters = match self.chapters {
            Chapters::Three => "three chapters",
            _ => "one chapter",
        };
        let noise = self.noise.title();
        match self.length {
            Length::Planned => format!("{chapters}, as planned, {noise}"),
            Length::Fixed(replicates) => format!("{chapters}, {replicates} trials a cell, {noise}"),
            Length::UntilDecided(most) => {
                format!("{chapters}, 3 to {most} trials a cell until decided, {noise}")
            }
        }
    }
}

fn long_table(long: &[Long]) -> String {
    let mut text = String::from(
        "| study | studies | 95 % intervals that hold the truth | flat: studies with a false claim \
         | effect of 10 % found | … called the same |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for row in long {
        let Long { flat, ten, .. } = row;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.title(),
            flat.studies + ten.studies,
            percent(flat.covered + ten.covered, flat.cells + ten.cells),
            percent(flat.with_false_claim, flat.studies),
            percent(ten.found, ten.effects),
            percent(ten.wrong_same, ten.effects),
        );
    }
    text
}

/// Returns the bounds that longer studies do not keep; those of one length share that of false claims.
fn broken_long(long: &[Long]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut looked = Score::default();
    for row in long {
        let title = row.title();
        let mut both = row.flat;
        both.add(&row.ten);
        broken.extend(uncovered(&title, &both));
        for (what, part) in [
            ("effects of 10 % called the same", &row.ten),
            ("crossed effects called the same", &row.crossed),
        ] {
            let (same, effects) = (part.wrong_same, part.effects);
            broken.extend(most(&title, what, same, effects, WRONG_SAME_MAX));
        }
        if matches!(row.length, Length::UntilDecided(_)) {
            looked.add(&row.flat);
        }
    }
    let (with, studies) = (looked.with_false_claim, looked.studies);
    let what = "flat studies with a false claim";
    broken.extend(most(
        "studies that end when they are decided",
        what,
        with,
        studies,
        FALSE_CLAIMS_MAX,
    ));
    broken
}

/// Returns what is wrong with the share of intervals that miss the truth; those of a study miss together.
fn uncovered(title: &str, score: &Score) -> Option<String> {
    let worth = score.independent_cells();
    let missed = share(score.cells - score.covered, score.cells) * f64::from(worth);
    let what = "intervals that miss the truth (as many independent ones)";
    most(
        title,
        what,
        missed.floor() as u32,
        worth,
        1.0 - COVERAGE_MIN,
    )
}

/// Returns what is wrong with `part` of `of` draws where a share of `bound` would hardly give so many.
fn most(title: &str, what: &str, part: u32, of: u32, bound: f64) -> Option<String> {
    beyond(title, what, (part, of), (bound, CHANCE_EACH))
}

fn beyond(
    title: &str,
    what: &str,
    (part, of): (u32, u32),
    (bound, chance): (f64, f64),
) -> Option<String> {
    let is_broken = share(part, of) > bound && at_least(part, of, bound) < chance;
    is_broken.then(|| {
        let found = 100.0 * share(part, of);
        format!(
            "{title}: {what}: {found:.1} % of {of}, at the most {:.0} %",
            100.0 * bound
        )
    })
}

/// Returns the probability of `part` or more of `of` draws of probability `each` (binomial).
fn at_least(part: u32, of: u32, each: f64) -> f64 {
    if each <= 0.0 {
        return if part == 0 { 1.0 } else { 0.0 };
    }
    let odds = (each / (1.0 - each)).ln();
    let mut log = f64::from(of) * (1.0 - each).ln();
    let mut sum = 0.0;
    for hits in 0..=of {
        if hits >= part {
            sum += log.exp();
        }
        log += (f64::from(of - hits) / f64::from(hits + 1)).ln() + odds;
    }
    sum
}

fn share(part: u32, of: u32) -> f64 {
    f64::from(part) / f64::from(of.max(1))
}

fn percent(part: u32, of: u32) -> String {
    match of {
        0 => "–".to_owned(),
        _ => format!("{:.1} %", 100.0 * share(part, of)),
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| noise of a trial | studies | 95 % intervals that hold the truth | flat: studies with a false claim \
         | all: studies with a false claim | effect of 20 % found, 48 trials alone | … in a whole study \
         | effect of 10 % called the same | buffer too small recommended | flat curve: no effect / not \
         decided / falls back | advice without a gain |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let flat = &row.flat;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} / {} / {} | {} |",
            row.noise.title(),
            row.all.studies,
            percent(row.all.covered, row.all.cells),
            percent(flat.with_false_claim, flat.studies),
            percent(row.all.with_false_claim, row.all.studies),
            percent(row.alone.found, row.alone.effects),
            percent(row.twenty.found, row.twenty.effects),
            percent(row.ten.wrong_same, row.ten.effects),
            percent(
                row.curves.too_small + row.others.too_small,
                row.curves.curves + row.others.curves
            ),
            percent(flat.no_effect, flat.curves),
            percent(flat.undecided, flat.curves),
            percent(flat.falls_back, flat.curves),
            flat.recommendations + row.curves.recommendations + row.others.recommendations,
        );
    }
    text
}

/// Returns the bounds that a row does not keep, chance allowed for.
fn broken(rows: &[Row]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut seen = Score::default();
    for row in rows.iter().filter(|row| row.noise.is_seen()) {
        seen.add(&row.flat);
    }
    let (with, studies) = (seen.with_false_claim, seen.studies);
    let what = "flat studies with a false claim";
    let bound = (FALSE_CLAIMS_MAX, CHANCE_ONCE);
    broken.extend(beyond("all noises", what, (with, studies), bound));
    let mut uncovered_rows = Vec::new();
    for row in rows {
        let title = row.noise.title();
        let mut most = |what: &str, part: u32, of: u32, bound: f64| {
            broken.extend(most(&title, what, part, of, bound));
        };
        let all = &row.all;
        if row.noise.is_seen() {
            uncovered_rows.extend(uncovered(&title, all));
            most(
                "flat studies with a false claim",
                row.flat.with_false_claim,
                row.flat.studies,
                FALSE_CLAIMS_MAX,
            );
            most(
                "studies with a false claim",
                all.with_false_claim,
                all.studies,
                FALSE_CLAIMS_MAX,
            );
        }
        most(
            "effects of 10 % called the same",
            row.ten.wrong_same,
            row.ten.effects,
            WRONG_SAME_MAX,
        );
        most(
            "buffers too small",
            row.curves.too_small + row.others.too_small,
            row.curves.curves + row.others.curves,
            TOO_SMALL_MAX,
        );
        most(
            "other effects called the same",
            row.others.wrong_same,
            row.others.effects,
            WRONG_SAME_MAX,
        );
        most(
            "buffers that gain 10 % and more called the same",
            row.tuned.wrong_same,
            row.tuned.curves,
            WRONG_SAME_MAX,
        );
        if row.noise.is_seen() {
            most(
                "intervals of ratios that miss the truth",
                all.ratios - all.ratios_held,
                all.ratios,
                1.0 - COVERAGE_MIN,
            );
        }
        most(
            "studies with an interval that cannot be",
            all.impossible,
            all.studies,
            0.0,
        );
        most(
            "flat curves that fall back",
            row.flat.falls_back,
            row.flat.curves,
            FALLS_BACK_MAX,
        );
        most(
            "studies whose sentences disagree",
            all.disagree,
            all.studies,
            0.0,
        );
        if row.noise == POWER_NOISE {
            for (what, row, least) in [
                ("effects of 20 % missed", &row.alone, POWER_MIN),
                (
                    "effects of 20 % missed in a whole study",
                    &row.twenty,
                    WHOLE_POWER_MIN,
                ),
            ] {
                let missed = (row.effects - row.found, row.effects);
                broken.extend(beyond(&title, what, missed, (1.0 - least, CHANCE_ONCE)));
            }
        }
    }
    broken.extend(uncovered_rows);
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_studies_are_of_a_part_of_the_noises_that_has_the_power() {
        let noises = |studies| part(Noise::ALL, 550, studies);
        assert_eq!(noises(2000), Noise::ALL);
        assert_eq!(noises(550), Noise::ALL);
        for studies in [1, 100, 220, 300, 549] {
            let some = noises(studies);
            assert!(some.contains(&POWER_NOISE), "{studies}");
            // Steps are of whole noises: never more than were asked for but the one, nor less than half.
            let share = Noise::ALL.len() * studies as usize / 550;
            let count = some.len();
            assert!(
                count <= share + 1 && 2 * count >= share,
                "{studies}: {count}"
            );
        }
    }

    #[test]
    fn chance_is_that_of_draws() {
        // Tables of the binomial distribution: P(X ≥ 4) of 24 at 5 %, P(X ≥ 7) of 16 at 20 %.
        for (part, of, each, known) in [(4, 24, 0.05, 0.0298), (7, 16, 0.2, 0.0267)] {
            let found = at_least(part, of, each);
            assert!((found - known).abs() < 1e-4, "{found}");
        }
        assert_eq!((at_least(0, 9, 0.0), at_least(1, 9, 0.0)), (1.0, 0.0));
        assert!((at_least(0, 9000, 0.07) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_chance_gives_breaks_no_bound() {
        let flat = |part, of| most("a noise", "false claims", part, of, FALSE_CLAIMS_MAX);
        assert_eq!(flat(4, 24), None);
        assert!(flat(7, 24).is_some_and(|text| text.contains("29.2 % of 24")));
        assert!(flat(40, 400).is_some());
        assert_eq!(flat(0, 0), None);
        assert!(most("a noise", "disagree", 1, 93, 0.0).is_some());
    }
}
