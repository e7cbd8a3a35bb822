//! Segments that arrived with a wrong checksum: TCP drops them without a word, and its sender takes them for
//! lost. Nothing but this counter tells a path that loses from one that damages (a cable, a device, a broken
//! offload). It is of the host's whole network namespace, read at the edges of the window.

use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::HostRecord;
use linerate_model::sample::Subject;

use super::Readings;
use super::exchange::hosts_with_flows;

/// The kernel's counter, of both versions of IP.
const WRONG_CHECKSUMS: &str = "Tcp.InCsumErrors";

/// Returns a flag for each host with flows of TCP where segments arrived damaged; those of datagrams are told
/// as lost ones.
pub(super) fn damaged(
    trial: &Trial,
    hosts: &[HostRecord],
    readings: &Readings<'_>,
) -> Vec<TrialFlag> {
    if !matches!(
        trial.workload.manner.transport,
        Transport::Tcp | Transport::Mptcp
    ) {
        return Vec::new();
    }
    let subject = Subject::Counter(WRONG_CHECKSUMS.into());
    let flag = |host| {
        let change = readings.change_on(host, &subject, Metric::ProtocolCounter)?;
        (change.amount >= 1.0).then(|| TrialFlag::Damaged {
            host: host.clone(),
            segments: change.amount as u64,
        })
    };
    let with_flows = hosts_with_flows(hosts, readings);
    with_flows.into_iter().filter_map(flag).collect()
}
