//! Segments that arrived with a wrong checksum: TCP drops them without a word, and its sender takes them for
//! lost. Nothing but this counter tells a path that loses from one that damages (a cable, a device, a broken
//! offload). It is of the host's whole network namespace, read at the edges of the window.

use linerate_model::flag::TrialFlag;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use super::exchange::hosts_with_flows;
use super::raw::Raw;

/// The kernel's counter, of both versions of IP.
const WRONG_CHECKSUMS: &str = "Tcp.InCsumErrors";

/// Returns a flag for each host with flows of TCP where segments arrived damaged; those of datagrams are told
/// as lost ones.
pub(super) fn damaged(raw: &Raw<'_>) -> Vec<TrialFlag> {
    if !raw.trial.workload.manner.transport.is_tcp() {
        return Vec::new();
    }
    let subject = Subject::Counter(WRONG_CHECKSUMS.into());
    let flag = |host| {
        let change = raw
            .readings
            .change_on(host, &subject, Metric::ProtocolCounter)?;
        (change.amount >= 1.0).then(|| TrialFlag::Damaged {
            host: host.clone(),
            segments: change.amount as u64,
        })
    };
    let with_flows = hosts_with_flows(raw);
    with_flows.into_iter().filter_map(flag).collect()
}
