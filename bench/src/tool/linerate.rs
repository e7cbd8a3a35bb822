//! Ourselves.

use std::process::Command;

use anyhow::Context;

use super::{Settings, Tool, Workload};

/// Returns our own program as a tool.
pub fn tool(settings: &Settings) -> Tool {
    let (program, run) = (settings.linerate.clone(), settings.clone());
    Tool {
        name: "linerate",
        serve: Box::new(move |port| {
            let mut command = Command::new(&program);
            command.args(["serve", "--bind", "127.0.0.1", "--port", &port.to_string()]);
            command
        }),
        run: Box::new(move |port, workload| {
            let Workload::TcpStream { flows } = workload;
            let mut command = Command::new(&run.linerate);
            command
                .args(["run", &format!("127.0.0.1:{port}"), "--json"])
                .args(["--time", &run.seconds.to_string(), "-P", &flows.to_string()]);
            if let Some(cpus) = &run.affinity {
                command.args(["--affinity", cpus]);
            }
            Some(command)
        }),
        received,
    }
}

fn received(output: &str) -> anyhow::Result<f64> {
    let document: serde_json::Value = serde_json::from_str(output)?;
    document["trials"][0]["responses"]["throughput_bps"]
        .as_f64()
        .context("no throughput_bps")
}
