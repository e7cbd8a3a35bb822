//! What real clients get of an agent that is attacked, beside what they get of it in quiet.
//!
//! Agent, clients and attacker are hosts of a lab on this machine, so they share its CPUs; the attacker comes after
//! all others where there is one too few. So each attack is also made on another service of the agent's host, which
//! answers nothing ([`crate::bare`]): what clients of the agent lose then, attackers and kernel cost them, and only
//! what they lose beyond that is the agent's. Every round takes each of these and the quiet once, the first of the
//! round changing from round to round, so that whatever else the machine does falls on all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::environment::{Environment, server_address};
use crate::hostile::Hostile;
use crate::rounds::Spread;
use crate::{interrupt, machine, name_of};

/// Measure what real clients get of an agent that is attacked
#[derive(Debug, Args)]
pub struct AttackArgs {
    /// Rounds; each takes every attack and the quiet once
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Only this attack (repeatable)
    #[arg(long = "attack", value_name = "NAME")]
    attacks: Vec<Hostile>,
    /// The linerate to attack [default: beside this program]
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
}

/// How long an attack goes on before the first client comes.
const LEAD: Duration = Duration::from_millis(700);
/// How long its connections have to be taken down after it.
const REST: Duration = Duration::from_millis(700);
/// How long the agent may take to serve.
const START: Duration = Duration::from_secs(10);

/// A real client: its name, and what it measures.
struct Client {
    name: &'static str,
    words: &'static [&'static str],
    iperf3: bool,
    values: &'static [Measured],
}

/// One number of a client.
struct Measured {
    name: &'static str,
    /// Where it is in the client's document.
    pointer: &'static str,
    /// What its unit is of that in the document.
    scale: f64,
}

const RATE: Measured = Measured {
    name: "Mbit/s",
    pointer: "/trials/0/responses/throughput_bps",
    scale: 1e-6,
};

const CLIENTS: [Client; 4] = [
    Client {
        name: "run -b 1G",
        words: &["-b", "1G"],
        iperf3: false,
        values: &[RATE],
    },
    Client {
        name: "iperf3 -b 1G",
        words: &["-b", "1G"],
        iperf3: true,
        values: &[Measured {
            pointer: "/end/sum_received/bits_per_second",
            ..RATE
        }],
    },
    Client {
        // With Nagle's algorithm each response waits for the next request.
        name: "run --rr --rate 1000 -N",
        words: &["--rr", "--rate", "1000", "-N"],
        iperf3: false,
        values: &[
            Measured {
                name: "p50 µs",
                pointer: "/trials/0/responses/rtt_p50_ns",
                scale: 1e-3,
            },
            Measured {
                name: "p99 µs",
                pointer: "/trials/0/responses/rtt_p99_ns",
                scale: 1e-3,
            },
        ],
    },
    Client {
        name: "run",
        words: &[],
        iperf3: false,
        values: &[RATE],
    },
];

/// What one run gave: its numbers, and the CPUs that the agent used while it went on.
struct Got {
    values: Vec<f64>,
    agent_cpus: f64,
}

/// Where the agent listens, and the service that answers nothing.
const AGENT_PORT: u16 = 5201;
const BARE_PORT: u16 = 5200;

/// An attack, and on what.
#[derive(Clone, Copy)]
struct Condition {
    how: Hostile,
    port: u16,
}

impl Condition {
    fn words(self) -> String {
        match self.port {
            BARE_PORT => format!("{}, on another service", self.how.words()),
            _ => self.how.words().to_owned(),
        }
    }
}

/// Measures, and prints a table in Markdown.
pub fn attack(args: &AttackArgs) -> anyhow::Result<()> {
    let bench = std::env::current_exe()?;
    let linerate = args.linerate.clone();
    let linerate = linerate.unwrap_or_else(|| bench.with_file_name("linerate"));
    let chosen = match &args.attacks[..] {
        [] => <Hostile as clap::ValueEnum>::value_variants().to_vec(),
        some => some.to_vec(),
    };
    let attacks = chosen.into_iter().flat_map(|how| {
        let on = |port| Some(Condition { how, port });
        [on(AGENT_PORT), on(BARE_PORT)]
    });
    let conditions: Vec<Option<Condition>> = std::iter::once(None).chain(attacks).collect();
    interrupt::watch()?;
    let mut place = Place::up(linerate, bench)?;
    let mut got: Vec<Vec<Vec<Got>>> = conditions
        .iter()
        .map(|_| CLIENTS.iter().map(|_| Vec::new()).collect())
        .collect();
    let mut failed = vec![0_u32; conditions.len()];
    for round in 0..args.rounds as usize {
        for at in 0..conditions.len() {
            interrupt::check()?;
            let at = (at + round) % conditions.len();
            let attacker = conditions[at].map(|one| place.attacker(one)).transpose()?;
            thread::sleep(LEAD);
            for (number, client) in CLIENTS.iter().enumerate() {
                match place.measure(client, args.seconds) {
                    Ok(one) => got[at][number].push(one),
                    Err(error) => {
                        failed[at] += 1;
                        eprintln!("{}: {error:#}", client.name);
                    }
                }
            }
            drop(attacker);
            thread::sleep(REST);
        }
    }
    print(&conditions, &got, &failed);
    Ok(())
}

fn print(conditions: &[Option<Condition>], got: &[Vec<Vec<Got>>], failed: &[u32]) {
    println!("| attack | client | | median (least to most) | of quiet | agent's CPUs |");
    println!("|---|---|---|---|---|---|");
    for (at, condition) in conditions.iter().enumerate() {
        let attack = condition.map_or("none".to_owned(), Condition::words);
        for (number, client) in CLIENTS.iter().enumerate() {
            for (which, measured) in client.values.iter().enumerate() {
                let of =
                    |at: usize| Spread::of(got[at][number].iter().map(|one| one.values[which]));
                let cpus = Spread::of(got[at][number].iter().map(|one| one.agent_cpus));
                let (Some(own), Some(quiet), Some(cpus)) = (of(at), of(0), cpus) else {
                    println!(
                        "| {attack} | {} | {} | – | – | – |",
                        client.name, measured.name
                    );
                    continue;
                };
                println!(
                    "| {attack} | {} | {} | {:.1} ({:.1} to {:.1}) | {:.3} | {:.2} |",
                    client.name,
                    measured.name,
                    own.median,
                    own.least,
                    own.greatest,
                    own.median / quiet.median,
                    cpus.median
                );
            }
        }
        if failed[at] > 0 {
            println!("| {attack} | **{} runs failed** | | | | |", failed[at]);
        }
    }
}

/// A lab with an agent that lets strangers measure, and a client that has a token.
struct Place {
    linerate: PathBuf,
    bench: PathBuf,
    name: String,
    folder: PathBuf,
    /// The agent, and the service that answers nothing.
    agent: Option<Running>,
    bare: Option<Running>,
}

/// A program of ours that goes on until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let end = Instant::now() + START;
        while Instant::now() < end && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Place {
    fn up(linerate: PathBuf, bench: PathBuf) -> anyhow::Result<Self> {
        let name = format!("attack{}", std::process::id());
        let folder = std::env::temp_dir().join(format!("bench-{name}"));
        fs::create_dir(&folder).context("no folder for its key")?;
        let mut place = Self {
            linerate,
            bench,
            name,
            folder,
            agent: None,
            bare: None,
        };
        let state = place.path("state");
        // Links without a rate: a shaper's timer would be most of a short round trip.
        let hosts =
            ["server", "client1", "client2"].map(|host| format!("[[host]]\nname = \"{host}\"\n"));
        let lab = format!("name = \"{}\"\n{}", place.name, hosts.concat());
        fs::write(place.path("lab.toml"), lab)?;
        place.run(&["lab", "up", "--file", &place.path("lab.toml")])?;
        let file = place.path("token");
        place.run(&["token", "add", "bench", "-o", &file, "--state", &state])?;
        let mut serve = place.host("server", &place.linerate);
        serve.args(["serve", "--public", "--state", &state]);
        serve.stderr(fs::File::create(place.path("log"))?);
        place.agent = Some(Running(serve.spawn()?));
        let mut bare = place.host("server", &place.bench);
        bare.args([
            "bare",
            &format!("{}:{BARE_PORT}", server_address(Environment::Lab)),
        ]);
        place.bare = Some(Running(bare.spawn()?));
        let end = Instant::now() + START;
        while !fs::read_to_string(place.path("log"))?.contains("serving on") {
            if Instant::now() > end {
                bail!("the agent does not serve");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(place)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Runs the program to its end; returns what it printed.
    fn run(&self, words: &[&str]) -> anyhow::Result<String> {
        let out = Command::new(&self.linerate).args(words).output()?;
        if !out.status.success() {
            bail!("{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        }
        Ok(String::from_utf8(out.stdout)?)
    }

    fn host(&self, host: &str, program: &Path) -> Command {
        let mut command = Command::new(&self.linerate);
        command.args(["lab", "exec", &self.name, host]).arg(program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn attacker(&mut self, condition: Condition) -> anyhow::Result<Running> {
        for (name, running) in [("agent", &mut self.agent), ("service", &mut self.bare)] {
            let ended = running.as_mut().map(|one| one.0.try_wait()).transpose()?;
            if ended.flatten().is_some() {
                bail!("the {name} has ended");
            }
        }
        let mut command = self.host("client2", Path::new("nice"));
        command.args(["-n", "19"]).arg(&self.bench);
        command.args([
            "hostile",
            &name_of(&condition.how),
            &format!("{}:{}", server_address(Environment::Lab), condition.port),
            "600",
        ]);
        Ok(Running(command.spawn()?))
    }

    fn measure(&self, client: &Client, seconds: u32) -> anyhow::Result<Got> {
        let (seconds, server) = (seconds.to_string(), server_address(Environment::Lab));
        let mut command = if client.iperf3 {
            self.host("client1", Path::new("iperf3"))
        } else {
            self.host("client1", &self.linerate)
        };
        if client.iperf3 {
            command.args(["-c", server])
        } else {
            command.args([
                "run",
                server,
                "--shared",
                "--token-file",
                &self.path("token"),
            ])
        };
        if !client.iperf3 {
            command.args(["--known-agents", &self.path("known")]);
        }
        command.args(["-J", "-t", &seconds]).args(client.words);
        let (before, began) = (self.agent_s()?, Instant::now());
        let out = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?;
        let agent_cpus = (self.agent_s()? - before) / began.elapsed().as_secs_f64();
        let document: Value = serde_json::from_slice(&out.stdout)
            .with_context(|| String::from_utf8_lossy(&out.stderr).into_owned())?;
        let values = values(&document, client.values)?;
        Ok(Got { values, agent_cpus })
    }

    /// Returns the CPU seconds that the agent has used.
    fn agent_s(&self) -> anyhow::Result<f64> {
        let agent = self.agent.as_ref().context("there is no agent")?;
        machine::cpu_s_of(agent.0.id() as i32)
    }
}

/// Returns what is `wanted` of a client's document; or why it has failed, or its numbers may not be used.
fn values(document: &Value, wanted: &[Measured]) -> anyhow::Result<Vec<f64>> {
    let reasons = ["/error", "/trials/0/invalid"];
    let said = reasons
        .iter()
        .filter_map(|pointer| document.pointer(pointer)?.as_str());
    if let Some(why) = said.into_iter().next() {
        anyhow::bail!("{why}");
    }
    let value = |measured: &Measured| {
        let value = document.pointer(measured.pointer).and_then(Value::as_f64);
        value.map(|value| value * measured.scale)
    };
    let values: Option<Vec<f64>> = wanted.iter().map(value).collect();
    values.context("no number")
}

impl Drop for Place {
    fn drop(&mut self) {
        drop((self.agent.take(), self.bare.take()));
        let _ = self.run(&["lab", "down", &self.name]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_trial_that_is_not_valid_are_not_taken() {
        let check = |document: &str, expected: Result<f64, &str>| {
            let document = serde_json::from_str(document).expect("JSON");
            match (values(&document, &[RATE]), expected) {
                (Ok(values), Ok(expected)) => assert_eq!(values, [expected]),
                (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{error}"),
                other => panic!("{other:?}"),
            }
        };
        let responses = r#""responses":{"throughput_bps":8e9}"#;
        let trial =
            |invalid: &str| format!(r#"{{"trials":[{{"invalid":{invalid},{responses}}}]}}"#);
        check(&trial("null"), Ok(8e9 * RATE.scale));
        check(&trial(r#""a host was lost""#), Err("a host was lost"));
        check(r#"{"error":"no agent"}"#, Err("no agent"));
        check(r#"{"trials":[]}"#, Err("no number"));
    }
}
