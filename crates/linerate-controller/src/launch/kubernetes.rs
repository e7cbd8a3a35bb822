//! Agents by Kubernetes, with the `kubectl` that is installed and configured: a pod a node, whose only process the
//! agent is.
//!
//! 1. All pods are made by one request. Each is bound to its node by name and has that node's network.
//! 2. Each waits for its token on its standard input, which `kubectl attach` is. That takes an input once
//!    (`stdinOnce`): when it ends the agent ends, and the pod with it. So no pod goes on where nobody is left to remove it.
//! 3. The pods are removed by their label once their agents are taken away.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_model::HostName;
use linerate_model::fleet::{FleetHost, KubernetesLaunch};
use serde_json::{Value, json};

use super::agent::{Agents, LaunchedAgent};
use super::error::{LaunchError, Unlaunched, failed};
use super::keeper::Keeper;
use super::process::{Heard, Process, last_lines};
use super::start::{START, announced, new_token};
use crate::together::at_most;

/// How long pods may take to run: their nodes fetch an image of 20 MB.
const READY: Duration = Duration::from_secs(120);
/// How long a request may take.
const REQUEST: &str = "--request-timeout=30s";
/// How long a pod may be there that nobody came for: as long as a run may take.
const POD_S_MAX: u32 = 24 * 3600;
/// How long it may take to end once it is removed.
const END_S: u32 = 5;
/// Pods that are attached to at the same time, each by a process of `kubectl`, which takes 50 MB.
const PODS_AT_ONCE: usize = 16;
/// The label that all pods of one launch have.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Kubernetes, and what it puts on nodes.
pub struct Kubernetes {
    kubectl: PathBuf,
    launch: KubernetesLaunch,
    /// The port that agents listen on; a free one where it is 0.
    port: u16,
}

/// The pods of a launch. Dropped, it removes them.
pub(super) struct Pods(Command);

/// What became of a pod.
struct Pod {
    is_ready: bool,
    /// The address of its node.
    address: String,
    /// Why it waits, if it is known to.
    why: String,
}

impl Kubernetes {
    /// Returns what launches as `launch` asks for.
    pub fn new(launch: &KubernetesLaunch, port: u16) -> Self {
        Self {
            kubectl: PathBuf::from("kubectl"),
            launch: launch.clone(),
            port,
        }
    }

    /// Returns the nodes with the labels that were asked for.
    pub fn nodes(&self) -> Result<Vec<HostName>, LaunchError> {
        let labels = self.launch.node_selector.iter();
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let words = ["get", "nodes", "--output=json", "--selector"];
        let nodes = self.asked(&[&words[..], &[&labels.join(",")]].concat())?;
        let named = |node: &Value| node["metadata"]["name"].as_str().map(HostName::from);
        Ok(items(&nodes).iter().filter_map(named).collect())
    }

    /// Puts an agent on each of `hosts`, which are nodes, and returns them with their pods.
    pub(super) fn launch(&self, hosts: &[FleetHost]) -> Result<(Agents, Pods), LaunchError> {
        let instance = format!("linerate-{}", &new_token()?[..8]);
        let of_instance = format!("--selector={INSTANCE}={instance}");
        let mut remove = self.command();
        remove.args(["delete", "pods", "--wait=false", REQUEST, &of_instance]);
        let pods = Pods(remove);
        self.told(
            &["create", "-f", "-"],
            &self.manifest(&instance, hosts).to_string(),
        )?;
        let within = format!("--timeout={}s", READY.as_secs());
        // Which of them are not is asked for next.
        let wait = [
            "wait",
            "pods",
            "--for=condition=Ready",
            &within,
            &of_instance,
        ];
        let _ = self.run(self.command().args(wait), "");
        let found = self.asked(&["get", "pods", "--output=json", &of_instance])?;
        let found: HashMap<&str, Pod> = items(&found)
            .iter()
            .filter_map(|pod| Some((pod["metadata"]["name"].as_str()?, Pod::of(pod))))
            .collect();
        let hosts: Vec<(usize, &FleetHost)> = hosts.iter().enumerate().collect();
        let agents = at_most(PODS_AT_ONCE, &hosts, |(at, host)| {
            let name = pod_name(&instance, *at);
            (
                host.name.clone(),
                self.attach(&name, host, found.get(&*name)),
            )
        });
        Ok((agents, pods))
    }

    /// Returns what asks for a pod on each of `hosts`.
    fn manifest(&self, instance: &str, hosts: &[FleetHost]) -> Value {
        let pod = |(at, host): (usize, &FleetHost)| {
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": pod_name(instance, at),
                    "labels": {"app.kubernetes.io/name": "linerate", INSTANCE: instance},
                },
                "spec": {
                    "nodeName": host.name,
                    "hostNetwork": true,
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": POD_S_MAX,
                    "terminationGracePeriodSeconds": END_S,
                    "automountServiceAccountToken": false,
                    // The node was named, whatever else it is kept from.
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "linerate",
                        "image": self.launch.image,
                        "args": ["serve", "--launched", format!("--port={}", self.port)],
                        "stdin": true,
                        "stdinOnce": true,
                    }],
                },
            })
        };
        let pods: Vec<Value> = hosts.iter().enumerate().map(pod).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": pods})
    }

    /// Has the agent of a pod come up, with a token of its own.
    fn attach(
        &self,
        name: &str,
        host: &FleetHost,
        pod: Option<&Pod>,
    ) -> Result<LaunchedAgent, LaunchError> {
        let pod = match pod {
            Some(pod) if pod.is_ready => pod,
            Some(pod) if !pod.why.is_empty() => return Err(failed(Unlaunched::Absent, &pod.why)),
            _ => return Err(failed(Unlaunched::Late(READY), "")),
        };
        let token = new_token()?;
        let mut command = self.command();
        command.args(["attach", "--stdin", "--quiet", name]);
        let process = Process::start(&mut command, Stdio::piped(), 1);
        let mut process = process.map_err(|source| self.unstarted(source))?;
        process.tell(&format!("{token}\n"));
        let until = Instant::now() + START;
        let announcement = loop {
            match process.hear(until) {
                Heard::Line(line) => {
                    if let Some(announcement) = announced(&line) {
                        break announcement;
                    }
                }
                Heard::Late => {
                    return Err(failed(
                        Unlaunched::Late(START),
                        &last_lines(&process.said()),
                    ));
                }
                Heard::Over => {
                    process.end(until);
                    return Err(failed(Unlaunched::Ended, &last_lines(&process.said())));
                }
            }
        };
        let is_named = host.control == *host.name.0;
        Ok(LaunchedAgent {
            host: if is_named {
                pod.address.clone()
            } else {
                host.control.clone()
            },
            port: announcement.port,
            payload_port: announcement.port,
            payload: None,
            token,
            certificate: announcement.certificate,
            keeper: Keeper::of(process),
            tunnel: None,
        })
    }

    /// Returns `kubectl` for the cluster that was asked for.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        let given = [
            ("context", &self.launch.context),
            ("namespace", &self.launch.namespace),
        ];
        let given = given
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)));
        command.args(given.map(|(key, value)| format!("--{key}={value}")));
        command
    }

    /// Returns the document that a request is answered with.
    fn asked(&self, words: &[&str]) -> Result<Value, LaunchError> {
        let answer = self.told(words, "")?;
        serde_json::from_slice(&answer)
            .map_err(|error| failed(Unlaunched::Refused, &error.to_string()))
    }

    /// Makes a request, with this on its standard input, and returns what it says.
    fn told(&self, words: &[&str], input: &str) -> Result<Vec<u8>, LaunchError> {
        self.run(self.command().args(words).arg(REQUEST), input)
    }

    fn run(&self, command: &mut Command, input: &str) -> Result<Vec<u8>, LaunchError> {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|source| self.unstarted(source))?;
        if let Some(mut stdin) = child.stdin.take() {
            // Who does not read has ended, and that says more.
            let _ = stdin.write_all(input.as_bytes());
        }
        let done = child
            .wait_with_output()
            .map_err(|source| self.unstarted(source))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(failed(Unlaunched::Refused, &last_lines(&said)));
        }
        Ok(done.stdout)
    }

    fn unstarted(&self, source: std::io::Error) -> LaunchError {
        LaunchError::Start {
            program: self.kubectl.clone(),
            source,
        }
    }
}

impl Pod {
    /// Reads a pod as the API tells of it.
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let conditions = status["conditions"].as_array();
        let is_ready = |of: &Value| of["type"] == "Ready" && of["status"] == "True";
        let waiting = &status["containerStatuses"][0]["state"]["waiting"];
        let words = ["reason", "message"].map(|key| waiting[key].as_str().unwrap_or_default());
        Self {
            is_ready: conditions.is_some_and(|all| all.iter().any(is_ready)),
            address: status["hostIP"].as_str().unwrap_or_default().to_owned(),
            why: words.join(" ").trim().to_owned(),
        }
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        // Their agents have ended. Where this fails they stay as what has completed, until the cluster removes them.
        let _ = self.0.stdin(Stdio::null()).output();
    }
}

fn pod_name(instance: &str, at: usize) -> String {
    format!("{instance}-{at}")
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
