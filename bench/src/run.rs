//! One run of one tool: server and client, what they used, and what they said.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use crate::environment::{self, Environment, Lab};
use crate::launch;
use crate::machine::Others;
use crate::side::Side;
use crate::tool::{Commands, Said};
use crate::workload::{Contest, Unit};

/// How long a server may take until it listens.
const LISTEN_DEADLINE: Duration = Duration::from_secs(5);
/// How long a client may take beyond the time it measures.
const CLIENT_DEADLINE: Duration = Duration::from_secs(25);
/// From one reading of CPU times to the next.
const READING_EVERY: Duration = Duration::from_millis(50);
/// The part of the measured time over which CPU times are divided. Some tools wait for a second
/// before they begin and some for one after they end, so it is the busiest such window.
pub const WINDOW: f64 = 0.7;

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The number, in the workload's unit.
    pub value: f64,
    /// CPU time of the client for each unit of work, as [`Unit::cpu_per`] says.
    pub client_cpu: Option<f64>,
    /// CPU time of the server, likewise.
    pub server_cpu: Option<f64>,
    /// Share of the machine that other programs used meanwhile.
    pub others_share: f64,
}

/// Why a tool gave no number.
#[derive(Debug)]
pub enum Failure {
    /// It does not know the flags, or cannot do what they ask for; and what it said.
    Usage(String),
    /// Anything else.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// Where runs take place.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Loopback or lab.
    pub environment: Environment,
    /// The lab, where one is used.
    pub lab: Option<&'a Lab>,
    /// Folder for what the programs say.
    pub scratch: &'a Path,
}

/// What was read while the client ran.
#[derive(Debug, Default)]
struct Readings {
    cpu: Vec<CpuReading>,
    resident_bytes: f64,
}

/// CPU seconds of both ends, so long after the client's start.
#[derive(Debug, Clone, Copy)]
struct CpuReading {
    after_s: f64,
    server_s: f64,
    client_s: f64,
}

/// Runs a tool once.
pub fn run(place: Place<'_>, workload: Contest, plan: &Commands) -> Result<Run, Failure> {
    let (server, client) = (Side::new("server"), Side::new("client"));
    let before = Others::now()?;
    let result = both_ends(place, workload, plan, server, client)?;
    let after = Others::now()?;
    Ok(Run {
        others_share: after.share_since(&before),
        ..result
    })
}

fn both_ends(
    place: Place<'_>,
    workload: Contest,
    plan: &Commands,
    mut server: Side,
    mut client: Side,
) -> Result<Run, Failure> {
    let cpus = place.environment.cpus(workload);
    let client_host = if place.environment.in_lab() {
        "client"
    } else {
        "server"
    };
    let start = |side: &mut Side, host: &str, cpu: Option<usize>, words: &[String], name: &str| {
        let out = place.scratch.join(name);
        let began = out.with_extension("began");
        let command = environment::place(place.lab, host, side, cpu, &began, words)?;
        let child = spawn(command, &out)?;
        side.root = Some(i32::try_from(child.id())?);
        Ok::<Child, anyhow::Error>(child)
    };
    let mut serving = None;
    if let Some(words) = &plan.server {
        let child = start(
            &mut server,
            "server",
            cpus.map(|cpus| cpus.0),
            words,
            "server",
        );
        serving = Some(child?);
    }
    let outcome = (|| -> Result<_, Failure> {
        if let Some(child) = &mut serving {
            wait_listening(&server, child, plan.port)
                .map_err(|error| of_server(child, place.scratch, error))?;
        }
        let begun = Instant::now();
        let child = start(
            &mut client,
            client_host,
            cpus.map(|cpus| cpus.1),
            &plan.client,
            "client",
        );
        Ok(follow(child?, begun, plan.seconds, &server, &client)?)
    })();
    client.end();
    // A server that reports at the end of a connection has had its turn.
    std::thread::sleep(Duration::from_millis(if plan.server_reports {
        300
    } else {
        0
    }));
    server.end();
    if let Some(mut child) = serving {
        child.wait().context("cannot wait for the server")?;
    }
    let (readings, status, ended_ns) = outcome?;
    let text = |name: &str| fs::read_to_string(place.scratch.join(name)).unwrap_or_default();
    let accepted = status
        .code()
        .is_some_and(|code| plan.accepts.contains(&code));
    if !status.success() && !accepted {
        return Err(failure(status, &(text("client.err") + &text("client"))));
    }
    let began_ns: u64 = text("client.began")
        .parse()
        .context("the launcher did not say when it began")?;
    let said = Said {
        workload,
        seconds: f64::from(plan.seconds),
        wall_s: ended_ns.saturating_sub(began_ns) as f64 / 1e9,
        resident_bytes: readings.resident_bytes,
        client: text("client"),
        server: text("server"),
    };
    let value = plan.value(&said).with_context(|| {
        let last = text("client.err");
        format!("no result; it said: {}", last.trim())
    })?;
    let measured_s = f64::from(plan.seconds);
    let (server_cpu, client_cpu) = readings.cpu(workload.unit(), value, measured_s);
    Ok(Run {
        value,
        client_cpu,
        server_cpu,
        others_share: 0.0,
    })
}

/// Follows a client until it ends, and reads CPU times and memory meanwhile; returns when it ended, too.
fn follow(
    mut child: Child,
    begun: Instant,
    seconds: u32,
    server: &Side,
    client: &Side,
) -> anyhow::Result<(Readings, ExitStatus, u64)> {
    let (tell, hear) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let status = child.wait();
        // The hearer is gone only if the deadline has passed, and then nobody wants to know.
        let _ = tell.send((status, launch::monotonic_ns()));
    });
    let last = Duration::from_secs(u64::from(seconds)) + CLIENT_DEADLINE;
    let mut readings = Readings::default();
    loop {
        match hear.recv_timeout(READING_EVERY) {
            Ok((status, at)) => {
                // It only waited and told.
                let _ = waiter.join();
                return Ok((readings, status?, at?));
            }
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("lost sight of the client"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        readings.cpu.push(CpuReading {
            after_s: begun.elapsed().as_secs_f64(),
            server_s: server.cpu_s(),
            client_s: client.cpu_s(),
        });
        let resident = server.resident_bytes_max().max(client.resident_bytes_max());
        readings.resident_bytes = readings.resident_bytes.max(resident);
        if begun.elapsed() > last {
            client.end();
            anyhow::bail!("the client did not end within {CLIENT_DEADLINE:?} of its time");
        }
    }
}

impl Readings {
    /// Returns CPU time of server and client for each unit of work, in a run that measured for so
    /// many seconds.
    fn cpu(&self, unit: Unit, rate: f64, measured_s: f64) -> (Option<f64>, Option<f64>) {
        let length_s = measured_s * WINDOW;
        let windows = self.cpu.iter().filter_map(|begin| {
            let long_after = |end: &&CpuReading| end.after_s >= begin.after_s + length_s;
            Some((begin, self.cpu.iter().find(long_after)?))
        });
        let busy = |(begin, end): &(&CpuReading, &CpuReading)| {
            let used_s = end.server_s + end.client_s - begin.server_s - begin.client_s;
            used_s / (end.after_s - begin.after_s)
        };
        let busiest = windows.max_by(|a, b| busy(a).total_cmp(&busy(b)));
        let (Some((begin, end)), Some((per, _))) = (busiest, unit.cpu_per()) else {
            return (None, None);
        };
        let took_s = end.after_s - begin.after_s;
        // Readings that came too rarely cannot be divided.
        if took_s > 1.5 * length_s || rate <= 0.0 {
            return (None, None);
        }
        let cost = |used_s: f64| Some(used_s / took_s / rate * per);
        (
            cost(end.server_s - begin.server_s),
            cost(end.client_s - begin.client_s),
        )
    }
}

fn spawn(mut command: Command, out: &Path) -> anyhow::Result<Child> {
    let child = command
        .stdin(Stdio::null())
        .stdout(File::create(out)?)
        .stderr(File::create(out.with_extension("err"))?)
        .spawn();
    child.with_context(|| format!("cannot start {command:?}"))
}

fn wait_listening(side: &Side, child: &mut Child, port: u16) -> anyhow::Result<()> {
    let deadline = Instant::now() + LISTEN_DEADLINE;
    while !side.listens(port) {
        anyhow::ensure!(child.try_wait()?.is_none(), "the server ended at once");
        anyhow::ensure!(Instant::now() < deadline, "nothing listens on port {port}");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn of_server(child: &mut Child, scratch: &Path, error: anyhow::Error) -> Failure {
    let said = fs::read_to_string(scratch.join("server.err")).unwrap_or_default();
    match child.try_wait() {
        Ok(Some(status)) => failure(status, &said),
        _ => Failure::Other(error.context(said.trim().to_owned())),
    }
}

/// Exit code 2 is what linerate says of flags that it does not know or cannot follow.
fn failure(status: ExitStatus, said: &str) -> Failure {
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if status.code() == Some(2) {
        return Failure::Usage(lines.first().map_or("", |line| line.trim()).to_owned());
    }
    let last = lines.len().saturating_sub(3);
    Failure::Other(anyhow::anyhow!("{status}: {}", lines[last..].join(" / ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings every quarter of a second for so many: from the second second on, and for four
    /// seconds, the server uses half a CPU and the client a whole one.
    fn readings(seconds: u32) -> Readings {
        let at = |quarter: u32| {
            let after_s = f64::from(quarter) / 4.0;
            let working_s = (after_s - 1.0).clamp(0.0, 4.0);
            CpuReading {
                after_s,
                server_s: working_s / 2.0,
                client_s: working_s,
            }
        };
        Readings {
            cpu: (0..seconds * 4).map(at).collect(),
            resident_bytes: 0.0,
        }
    }

    #[test]
    fn cpu_for_each_gib_and_for_each_transaction() {
        // Late to begin and late to end: seven seconds in all, four of them measured.
        let late = readings(7);
        // One GiB a second.
        let gib = 8.0 * 1_073_741_824.0;
        assert_eq!(
            late.cpu(Unit::BitsPerSecond, gib, 4.0),
            (Some(0.5), Some(1.0))
        );
        assert_eq!(
            late.cpu(Unit::TransactionsPerSecond, 1e5, 4.0),
            (Some(5.0), Some(10.0))
        );
    }

    #[test]
    fn no_cpu_from_too_few_readings() {
        let short = readings(1);
        assert_eq!(short.cpu(Unit::BitsPerSecond, 1e9, 4.0), (None, None));
        assert_eq!(readings(7).cpu(Unit::Seconds, 1.0, 4.0), (None, None));
    }
}
