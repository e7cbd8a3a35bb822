//! The tools that are compared: how each serves, runs and reports.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

mod iperf3;
mod linerate;

/// How long a server may take until it listens.
const LISTEN_DEADLINE: Duration = Duration::from_secs(5);

/// What is compared.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Workload {
    /// Bulk TCP with each tool's defaults.
    TcpStream {
        /// Parallel flows.
        flows: u32,
    },
}

/// What is the same for every tool.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Length of a run.
    pub seconds: u32,
    /// CPUs of client and server, as `0,1`.
    pub affinity: Option<String>,
    /// Our own program.
    pub linerate: PathBuf,
}

/// A tool: its name, its server, its client, and where its output has the receiver's rate.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its server's command, on a port.
    pub serve: Box<dyn Fn(u16) -> Command>,
    /// Its client's command, or nothing where it cannot do the workload.
    pub run: Box<dyn Fn(u16, Workload) -> Option<Command>>,
    /// Bits per second that the receiver counted, from the client's output.
    pub received: fn(&str) -> anyhow::Result<f64>,
}

/// Returns the tools that are installed, our own first, and the names of the others.
pub fn all(settings: &Settings) -> anyhow::Result<(Vec<Tool>, Vec<&'static str>)> {
    let mut missing = Vec::new();
    let mut tools = vec![linerate::tool(settings)];
    match iperf3::tool(settings) {
        Some(tool) => tools.push(tool),
        None => missing.push("iperf3"),
    }
    Ok((tools, missing))
}

impl Tool {
    /// Runs the workload once, server and client; returns the receiver's bits per second.
    pub fn once(&self, workload: Workload) -> anyhow::Result<Option<f64>> {
        let port = free_port()?;
        let Some(mut client) = (self.run)(port, workload) else {
            return Ok(None);
        };
        let mut server = (self.serve)(port)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start the server of {}", self.name))?;
        let output =
            wait_listening(port).and_then(|()| Ok(client.stdin(Stdio::null()).output()?));
        end(&mut server)?;
        let output = output.with_context(|| format!("cannot run {}", self.name))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let received = (self.received)(&text).with_context(|| {
            format!(
                "{} gave no result: {}",
                self.name,
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        Ok(Some(received))
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_listening(port: u16) -> anyhow::Result<()> {
    let deadline = Instant::now() + LISTEN_DEADLINE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        anyhow::ensure!(Instant::now() < deadline, "nothing listens on port {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Ends a server and waits, so that its CPU time is accounted to us.
fn end(server: &mut Child) -> anyhow::Result<()> {
    let pid = i32::try_from(server.id()).context("a process id beyond i32")?;
    kill(Pid::from_raw(pid), Signal::SIGTERM).context("cannot end the server")?;
    server.wait().context("cannot wait for the server")?;
    Ok(())
}
