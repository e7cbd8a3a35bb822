//! `linerate fleet`: what it refuses, pairs in rounds, a slow host that is found, and a host that dies.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::call::{Call, Going};
use crate::common::machine::alone;
use crate::common::{NamedLab, file, folder, json, linerate, too_busy};

/// Agents on hosts of a lab, `n1` and so on, and the file of their fleet.
struct Agents {
    lab: NamedLab,
    folder: tempfile::TempDir,
    going: Vec<Going>,
}

/// A short window, so that rounds are many.
const SHORT: &str = r#"
format = 1
name = "short"
title = "Short"
question = "How fast?"
[workload]
kind = "stream"
direction = "to-server"
[design]
kind = "full"
replicates = 2
[timing]
settle = "20ms"
warm_up = "100ms"
measure = "300ms"
drain = "20ms"
"#;

impl Agents {
    /// Brings up a lab of `count` hosts of 20 Mbit/s, of which those with a link of their own have that.
    fn up(count: usize, links: &[(usize, &str)]) -> Option<Self> {
        let folder = folder();
        let mut lab = "name = \"x\"\n[link]\nrate = \"20M\"\n".to_owned();
        let mut fleet = "format = 1\ntoken_file = \"token\"\n".to_owned();
        for at in 1..=count {
            lab += &format!("[[host]]\nname = \"n{at}\"\n");
            let link = links.iter().find(|(host, _)| *host == at);
            lab += &link.map_or(String::new(), |(_, link)| format!("link = {link}\n"));
            fleet += &format!(
                "[[host]]\nname = \"n{at}\"\ncontrol = \"10.78.0.{at}\"\ndata = \"10.77.0.{at}\"\n\
                 groups = [\"rack{}\"]\n",
                at % 2
            );
        }
        let token = file(&folder, "token", "a-token-of-this-test-alone\n");
        let described = file(&folder, "lab.toml", &lab);
        file(&folder, "fleet.toml", &fleet);
        file(&folder, "short.toml", SHORT);
        let lab = NamedLab::up(&["--file", &described])?;
        let agent = |at: usize| {
            let serve = ["serve", "--plain", "--token-file", &token];
            let mut agent = lab.exec_first(&format!("n{at}"), &serve).start();
            agent.wait_for("serving on");
            agent
        };
        let going = (1..=count).map(agent).collect();
        Some(Self { lab, folder, going })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn fleet(&self, words: &[&str]) -> Call {
        let fleet = self.path("fleet.toml");
        let call = self.lab.exec_first("n1", &["fleet"]).words(&words[..1]);
        call.words(&["--plain", "--fleet", &fleet])
            .words(&words[1..])
    }

    /// Returns what the report of the bundle called `name` says.
    fn report(&self, name: &str) -> Value {
        json(
            &linerate(&["report", &self.path(name), "--format", "json"])
                .run()
                .done()
                .out,
        )
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for agent in self.going.drain(..) {
            agent.signal(Signal::SIGTERM);
            agent.end();
        }
    }
}

#[test]
fn impossible_fleets_are_refused() {
    let folder = folder();
    let check = |text: &str, words: &[&str], said: &[&str]| {
        let path = file(&folder, "fleet.toml", text);
        let run = linerate(&["fleet", "run", "--fleet", &path]).words(words);
        run.run().failed(2, said);
    };
    let two = "format = 1\n[[host]]\nname = \"n[1-2]\"\n";
    linerate(&["fleet", "run", "--fleet", "/nosuch.toml"])
        .run()
        .failed(2, &["/nosuch.toml", "fleet.md"]);
    check("format = 1\n", &[], &["fleet.toml", "[[host]]"]);
    check(
        "format = 1\n[[host]]\nname = \"n[2-1]\"\n",
        &[],
        &["line 3", "n[2-1]"],
    );
    check("format = 7\n", &[], &["format 7"]);
    check(two, &["--pattern", "star"], &["star", "permutation"]);
    check(two, &["--between", "a:b"], &["`a`", "no groups"]);
    check(two, &["--client", "x"], &["--client"]);
    check(
        "format = 1\n[[host]]\nname = \"n1\"\n",
        &["--pattern", "mesh"],
        &["mesh", "two hosts"],
    );
}

#[test]
fn a_host_that_sends_slowly_is_found() {
    let _load = alone();
    let Some(agents) = Agents::up(5, &[(2, "{ up = { rate = \"5M\" } }")]) else {
        return;
    };
    let checked = agents.fleet(&["check", "--json"]).run().done();
    let checked = json(&checked.out);
    assert_eq!(
        checked["hosts"].as_array().map(Vec::len),
        Some(5),
        "{checked}"
    );
    let (experiment, bundle) = (agents.path("short.toml"), agents.path("mesh"));
    let run = ["run", &experiment, "--seed", "3", "-o", &bundle];
    let said = agents.fleet(&run).run();
    assert!(said.code == 0 || said.code == 3, "{said:?}");
    let report = agents.report("mesh");
    let chapter = &report["chapters"][0];
    let map = &chapter["heat_maps"][0];
    let cells = map["cells"].as_array().expect("cells");
    let is_from =
        |cell: &&Value| map["hosts"][cell["from"].as_u64().unwrap_or(99) as usize] == "n2";
    // A busy machine costs a trial now and then.
    let slow: Vec<&Value> = cells
        .iter()
        .filter(|cell| cell["is_slow"] == true)
        .collect();
    let own = cells.iter().filter(is_from).count();
    assert_eq!(
        slow.iter().filter(|cell| is_from(cell)).count(),
        own,
        "{map}"
    );
    if cells.len() == 20 && slow.len() == own {
        let table = &chapter["tables"][0];
        assert_eq!(table["title"], "What slow pairs have in common");
        assert!(table["rows"][0].to_string().contains("from n2"), "{table}");
    } else {
        too_busy(&format!("{} pairs, {} slow", cells.len(), slow.len()));
    }

    let plan = std::fs::read_to_string(agents.folder.path().join("mesh/run.json")).expect("a plan");
    let plan = json(&plan);
    let trials = plan["plan"]["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 40);
    for trial in trials {
        let is_beside = |other: &&Value| {
            ["step", "replicate"]
                .iter()
                .all(|key| other[key] == trial[key])
        };
        let together = trials.iter().filter(is_beside);
        let own: Vec<&Value> = together
            .flat_map(|trial| trial["hosts"].as_array().unwrap())
            .collect();
        let mut once = own.clone();
        once.sort_by_key(ToString::to_string);
        once.dedup();
        assert_eq!(once.len(), own.len(), "a host has one test at a time");
    }
}

#[test]
fn a_datagram_starts_many_hosts_at_the_same_moment() {
    let _load = alone();
    let Some(agents) = Agents::up(4, &[]) else {
        return;
    };
    let fleet = agents.path("fleet.toml");
    let text = std::fs::read_to_string(&fleet).expect("the fleet");
    let by_datagram = text.replace("format = 1\n", "format = 1\nstart = \"multicast\"\n");
    std::fs::write(&fleet, by_datagram).expect("the fleet");
    let (experiment, bundle) = (agents.path("short.toml"), agents.path("incast"));
    let run = [
        "run",
        &experiment,
        "--pattern",
        "many-to-one",
        "-o",
        &bundle,
    ];
    let said = agents.fleet(&run).run();
    assert!(said.code == 0 || said.code == 3, "{said:?}");
    let run = std::fs::read_to_string(agents.folder.path().join("incast/run.json"));
    let group = json(&run.expect("a document"))["multicast"].to_string();
    assert!(group.contains("239."), "{group}");
    let report = agents.report("incast");
    let trials = report["chapters"][0]["trials"].as_array().expect("trials");
    if trials.iter().all(|trial| !trial["invalid"].is_null()) {
        return too_busy(&format!("{trials:?}"));
    }
    let about = report["about"].to_string();
    assert!(about.contains(&group.replace('"', "")), "{about}");
    let tables = report["chapters"][0]["tables"].as_array().expect("tables");
    let shares = tables
        .iter()
        .find(|table| table["title"] == "What each client had");
    let rows = shares.expect("a table")["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3, "{rows:?}");
}

#[test]
fn a_host_that_dies_costs_its_own_pairs() {
    let _load = alone();
    let Some(mut agents) = Agents::up(4, &[]) else {
        return;
    };
    let (experiment, bundle) = (agents.path("short.toml"), agents.path("mesh"));
    let run = ["run", &experiment, "--seed", "3", "-o", &bundle];
    let mut going = agents.fleet(&run).start();
    going.wait_for("trial");
    agents.going.remove(3).kill();
    let said = going.end();
    assert!(said.code == 0 || said.code == 3, "{said:?}");
    let trials = agents.report("mesh");
    let trials = trials["chapters"][0]["trials"]
        .as_array()
        .expect("trials")
        .clone();
    let is_of = |trial: &&Value| trial["cell"].to_string().contains("n4");
    let valid = |trial: &&Value| trial["invalid"].is_null();
    // Of six pairs of the others, each twice, all but what a busy machine costs.
    let others = trials
        .iter()
        .filter(|trial| !is_of(trial))
        .filter(valid)
        .count();
    assert!(others >= 4, "{trials:?}");
    let lost = trials
        .iter()
        .filter(is_of)
        .filter(|trial| !valid(trial))
        .count();
    assert!((1..=12).contains(&lost), "{trials:?}");
}

#[test]
fn a_batch_script_runs_what_was_typed() {
    let folder = folder();
    let fleet = file(
        &folder,
        "fleet.toml",
        "format = 1\nlaunch = \"slurm\"\n[slurm]\npartition = \"net work\"\ntime = \"1:00:00\"\n\
         options = [\"--qos=high\"]\nprogram = \"/opt/linerate\"\n[[host]]\nname = \"n[1-2]\"\n",
    );
    let out = folder.path().join("b").display().to_string();
    let words = [
        "fleet",
        "sbatch",
        "--print",
        "--fleet",
        &fleet,
        "--pattern",
        "pairs",
        "--out",
        &out,
    ];
    let script = linerate(&words).run().done().out;
    let lines: Vec<&str> = script.lines().collect();
    for option in [
        "#SBATCH --nodes=2",
        "#SBATCH --nodelist=n1,n2",
        "#SBATCH --exclusive",
        "#SBATCH '--partition=net work'",
        "#SBATCH --time=1:00:00",
        "#SBATCH --qos=high",
        &format!("#SBATCH --output={out}.log"),
    ] {
        assert!(lines.contains(&option), "{option}: {script}");
    }
    assert_eq!(lines[0], "#!/bin/sh");
    let expected =
        format!("exec /opt/linerate fleet run --fleet {fleet} --pattern pairs --out {out}");
    assert_eq!(lines.last(), Some(&&*expected));

    let elsewhere = linerate(&words[..7]).run().done().out;
    let run = elsewhere.lines().last().unwrap_or_default();
    assert!(
        run.contains("fleet run --out /") && run.contains(".bundle --fleet"),
        "a bundle has a place that is known before it is there: {run}"
    );
    linerate(&words)
        .words(&["--between", "a:b"])
        .run()
        .failed(2, &["`a`", "no groups"]);
    file(
        &folder,
        "fleet.toml",
        "format = 1\n[[host]]\nname = \"n[1-2]\"\n",
    );
    linerate(&words).run().failed(2, &["slurm"]);
    file(&folder, "fleet.toml", "format = 1\nlaunch = \"slurm\"\n");
    linerate(&words).run().failed(2, &["nodes"]);
    let check = linerate(&["fleet", "check", "--fleet", &fleet]);
    check.run().failed(2, &["nodes", "salloc"]);
}
