//! Makes the recordings of set-ups.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use linerate_analyze::proof::measured;
use linerate_analyze::single::{Shown, single};
use linerate_model::run::Recording;
use linerate_truth::corpus::{self, Recorded, Truth};

use super::place::Place;
use super::quiet::{self, Others};
use super::setup::{Proof, Role, Setup};
use crate::interrupt;

/// What the agents of a corpus let measure and observe.
const TOKEN: &str = "a-token-of-the-corpus";
/// Longest time of a run without changes: no set-up makes a longer one.
const SECONDS_MAX: u32 = 40;

/// How often a set-up is measured beside others before it is left out.
const TRIES: u32 = 5;
/// Runs of a set-up that may be kept.
const RUNS_MAX: u32 = 9;

/// How recordings are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program.
    pub linerate: PathBuf,
    /// Where they are kept until they are packed.
    pub folder: PathBuf,
    /// Seconds of each measurement.
    pub seconds: u32,
    /// Runs of each set-up.
    pub runs: u32,
    /// Seconds of changes after each measurement, where they are made.
    pub prove_s: Option<u32>,
}

/// Numbers of networks and traffic with nothing done to them, once asked for.
pub type Bases = BTreeMap<String, f64>;

/// Makes the recordings of `setups` that are not there; returns those that could not be made, with the reason.
pub fn record(settings: &Settings, setups: &[Setup]) -> anyhow::Result<Vec<String>> {
    let mut bases = Bases::new();
    let mut failed = Vec::new();
    let all = (1..=settings.runs).flat_map(|run| setups.iter().map(move |setup| (run, setup)));
    let many = settings.runs as usize * setups.len();
    for (number, (run, setup)) in all.enumerate() {
        let path = path_of(&settings.folder, setup, run);
        if path.exists() {
            continue;
        }
        interrupt::check()?;
        let begin = Instant::now();
        let told = match record_one(settings, setup, run, &mut bases) {
            Ok(recorded) => {
                fs::create_dir_all(path.parent().unwrap_or(&settings.folder))?;
                let part = path.with_extension("part");
                corpus::write(&part, [&recorded])?;
                fs::rename(&part, &path)?;
                let value = number_of(&recorded.recording).unwrap_or(f64::NAN);
                let named = recorded.named().map_or("–", |limiter| limiter.id());
                format!("{value:.3e} {named}")
            }
            Err(error) => {
                let told = format!("{}: {error:#}", setup.name);
                failed.push(told.clone());
                format!("LEFT OUT: {error:#}")
            }
        };
        eprintln!(
            "{}/{} {} ({:.0} s): {told}",
            number + 1,
            many,
            setup.name,
            begin.elapsed().as_secs_f64()
        );
    }
    Ok(failed)
}

/// Returns the file of the recordings of `setup`.
fn path_of(folder: &Path, setup: &Setup, run: u32) -> PathBuf {
    let name = format!("{}_{run}", setup.name.replace('/', "_"));
    corpus::file_of(&folder.join(setup.family), &name)
}

/// Measures a set-up, and what there is without its fault where that proves it.
pub fn record_one(
    settings: &Settings,
    setup: &Setup,
    run: u32,
    bases: &mut Bases,
) -> anyhow::Result<Recorded> {
    let is_below = |proof: &Proof| matches!(proof, Proof::Below(_));
    let base = if setup.proof.iter().any(is_below) {
        let base = setup.base();
        let key = format!("{:?} {}", base.net, base.flags);
        if !bases.contains_key(&key) {
            let settings = Settings {
                prove_s: None,
                ..settings.clone()
            };
            let value = number_of(&measure(&settings, &base, None)?);
            bases.insert(key.clone(), value.context("no base")?);
        }
        bases.get(&key).copied()
    } else {
        None
    };
    Ok(Recorded {
        setup: setup.name.clone(),
        run,
        truth: truth_of(setup),
        recording: measure(settings, setup, base)?,
    })
}

fn truth_of(setup: &Setup) -> Truth {
    Truth {
        cause: setup.cause.to_owned(),
        limiters: setup.limiters.iter().map(|&id| id.to_owned()).collect(),
        healthy: setup.proof.contains(&Proof::Healthy),
    }
}

/// Returns the number that a recording was made for.
fn number_of(recording: &Recording) -> Option<f64> {
    single(&measured(recording), Shown::RESULT_ALONE)
        .summary
        .value
}

/// Measures a set-up on a quiet machine: again where others used it meanwhile.
fn measure(settings: &Settings, setup: &Setup, base: Option<f64>) -> anyhow::Result<Recording> {
    for _ in 0..TRIES {
        quiet::wait()?;
        let before = Others::now();
        let made = measure_once(settings, setup, base);
        if before.rested() {
            return made;
        }
    }
    bail!("others used the machine each time")
}

/// Measures a set-up, and checks what is to be true of it.
fn measure_once(
    settings: &Settings,
    setup: &Setup,
    base: Option<f64>,
) -> anyhow::Result<Recording> {
    let scratch = std::env::temp_dir().join(format!("corpus-{}", std::process::id()));
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch)?;
    let result = measure_in(&scratch, settings, setup, base);
    let _ = fs::remove_dir_all(&scratch);
    result
}

fn measure_in(
    scratch: &Path,
    settings: &Settings,
    setup: &Setup,
    base: Option<f64>,
) -> anyhow::Result<Recording> {
    let [token, pid, bundle] = ["token", "pid", "run"].map(|name| scratch.join(name));
    fs::write(&token, TOKEN)?;
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600))?;
    let mut place = Place::up(&settings.linerate, &setup.net, scratch)?;
    for (host, command) in &setup.prepare {
        place.run(*host, command)?;
    }
    let join = match setup.quota {
        Some(percent) => format!("echo $$ > {};", place.quota(percent)?.display()),
        None => String::new(),
    };
    let (scratch, token) = (scratch.display(), token.display());
    // The process is known by its number inside its host.
    let start = format!(
        "{join} echo $$ > {}; exec {} linerate serve --state {scratch}/state --token-file {token}",
        pid.display(),
        setup.server
    );
    place.start(Role::Server, &start, Some("serving on"))?;
    let pid = fs::read_to_string(pid)?;
    for (host, command) in &setup.meanwhile {
        let command = command.replace("$SERVER", pid.trim());
        place.start(*host, &format!("export HOME={scratch}; {command}"), None)?;
    }
    let address = place.address(Role::Server);
    let counted = counts(&place, setup)?;
    let seconds_max = SECONDS_MAX + settings.prove_s.unwrap_or(0);
    let changes = settings.prove_s.map(|seconds| format!("--prove={seconds}"));
    let command = format!(
        "export HOME={scratch}; exec timeout -s INT {seconds_max} {} linerate run {address} -t {} {} {} \
         --token-file {token} --accept-new -i 0 -o {}",
        setup.client,
        settings.seconds,
        setup.flags,
        changes.unwrap_or_default(),
        bundle.display(),
    );
    let output = place.command(Role::Client, &command).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let mut recording = linerate_store::read(&bundle)
        .with_context(|| told.lines().last().unwrap_or_default().to_owned())?;
    ensure!(recording.damage.is_empty(), "{:?}", recording.damage);
    let after = counts(&place, setup)?.into_iter();
    let grown = after.zip(counted);
    let grown: Vec<u64> = grown
        .map(|(after, before)| after.saturating_sub(before))
        .collect();
    prove(setup, &recording, base, &grown)?;
    // Of the command the flags are of interest, and not where files were.
    recording.document.asked = format!("linerate run {address} {}", setup.flags);
    Ok(recording)
}

/// Returns what each proof of `setup` counts; 0 of one that counts nothing.
fn counts(place: &Place<'_>, setup: &Setup) -> anyhow::Result<Vec<u64>> {
    let count = |proof: &Proof| match proof {
        Proof::Healthy | Proof::Below(_) => Ok(0),
        Proof::Throttled(_) => place.throttled().context("no control group"),
        Proof::Counter(host, name, _) => {
            let text = place.run(*host, "cat /proc/net/netstat /proc/net/snmp")?;
            counter(&text, name).with_context(|| format!("no counter {name}"))
        }
    };
    setup.proof.iter().map(count).collect()
}

/// Returns a counter as `TcpExt:TCPTimeouts` of the two files, each of which has a line of names before its line of values.
fn counter(text: &str, name: &str) -> Option<u64> {
    let (group, name) = name.split_once(':')?;
    let lines: Vec<&str> = text.lines().collect();
    let pair = lines.windows(2).find(|pair| {
        let is_of_group = |line: &str| line.split_once(':').is_some_and(|(own, _)| own == group);
        pair.iter().all(|line| is_of_group(line)) && pair[0].split(' ').any(|one| one == name)
    })?;
    let at = pair[0].split(' ').position(|one| one == name)?;
    pair[1].split(' ').nth(at)?.parse().ok()
}

fn prove(
    setup: &Setup,
    recording: &Recording,
    base: Option<f64>,
    grown: &[u64],
) -> anyhow::Result<()> {
    for (proof, grown) in setup.proof.iter().zip(grown) {
        match proof {
            Proof::Healthy => {}
            Proof::Below(share) => {
                // Where nothing arrives there is no number, and it is less than any.
                let share_of_base = base.map(|base| number_of(recording).unwrap_or(0.0) / base);
                match share_of_base {
                    Some(own) if own <= *share => {}
                    own => bail!("not proven: {own:?} of what there is without it"),
                }
            }
            Proof::Throttled(least) | Proof::Counter(_, _, least) => {
                ensure!(grown >= least, "not proven: {proof:?} grew by {grown}");
            }
        }
    }
    Ok(())
}

/// Puts the recordings of `from` beside those that `into` has, one file a family; returns how many there are, and their bytes.
/// One whose number another run has gets the next that is free.
pub fn pack(from: &Path, into: &Path, setups: &[Setup]) -> anyhow::Result<(usize, u64)> {
    let known = setups.iter().map(|setup| (setup.name.as_str(), setup));
    let known: BTreeMap<&str, &Setup> = known.collect();
    let mut families: BTreeMap<&str, BTreeMap<(String, u32), Recorded>> = BTreeMap::new();
    fs::create_dir_all(into)?;
    let packed = corpus::files(into)?;
    let new = setups
        .iter()
        .flat_map(|setup| (1..=RUNS_MAX).map(|run| path_of(from, setup, run)))
        .filter(|path| path.exists());
    for path in packed.into_iter().chain(new) {
        for mut one in corpus::read(&path)? {
            let Some(setup) = known.get(one.setup.as_str()) else {
                continue;
            };
            // What is true of a set-up is what is known of it now.
            one.truth = truth_of(setup);
            let own = families.entry(setup.family).or_default();
            let is_other =
                |known: &Recorded| known.recording.document.run != one.recording.document.run;
            while own.get(&(one.setup.clone(), one.run)).is_some_and(is_other) {
                one.run += 1;
            }
            own.insert((one.setup.clone(), one.run), one);
        }
    }
    let (mut count, mut bytes) = (0, 0);
    for (family, recorded) in families {
        let path = corpus::file_of(into, family);
        corpus::write(&path, recorded.values())?;
        count += recorded.len();
        bytes += fs::metadata(&path)?.len();
    }
    Ok((count, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_group_and_name() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 3 17\nTcp: RetransSegs\nTcp: 5\n";
        assert_eq!(counter(text, "TcpExt:TCPTimeouts"), Some(17));
        assert_eq!(counter(text, "Tcp:RetransSegs"), Some(5));
        assert_eq!(counter(text, "Tcp:TCPTimeouts"), None);
    }
}
