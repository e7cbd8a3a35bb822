//! iperf3, with its defaults.

use std::process::Command;

use anyhow::Context;

use super::{Settings, Tool, Workload};

/// Returns iperf3 as a tool, if it is installed.
pub fn tool(settings: &Settings) -> Option<Tool> {
    Command::new("iperf3").arg("--version").output().ok()?;
    let run = settings.clone();
    Some(Tool {
        name: "iperf3",
        serve: Box::new(|port| {
            let mut command = Command::new("iperf3");
            command.args(["--server", "--port", &port.to_string()]);
            command
        }),
        run: Box::new(move |port, workload| {
            let Workload::TcpStream { flows } = workload;
            let mut command = Command::new("iperf3");
            command
                .args([
                    "--client",
                    "127.0.0.1",
                    "--json",
                    "--port",
                    &port.to_string(),
                ])
                .args(["--time", &run.seconds.to_string(), "-P", &flows.to_string()]);
            if let Some(cpus) = &run.affinity {
                command.args(["--affinity", cpus]);
            }
            Some(command)
        }),
        received,
    })
}

fn received(output: &str) -> anyhow::Result<f64> {
    let document: serde_json::Value = serde_json::from_str(output)?;
    document["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .context("no sum_received")
}
