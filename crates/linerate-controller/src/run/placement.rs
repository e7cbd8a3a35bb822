//! Which CPUs each end runs on, where nobody asked for any.
//!
//! On hosts of their own each agent places its workers by itself, near its link. Where both ends
//! share a machine, be it over loopback or between namespaces, which tell the same boot of the same
//! kernel, only the controller knows of both:
//!
//! 1. one CPU, or nothing to send: there is nothing to choose;
//! 2. workers that spin need their own: half of the CPUs for each end. More lasting connections than that
//!    over loopback are placed as others are (rule 7): worker k of both ends yield to each other on CPU k, and
//!    no packet crosses to another CPU;
//! 3. one stream that nobody receives by copying: both ends on one CPU. The sender's call does what is
//!    left to do, and what it made is dropped where it is in the cache: 104 Gbit/s together and 76 left
//!    alone, for half of the CPU time (vmsplice over loopback, medians of 4 interleaved runs);
//! 4. any other flow alone: the scheduler. With its ends pinned apart each waits for the other CPU to be woken,
//!    and for whatever else runs there; on a busy virtual machine with two CPUs that left a fifth
//!    of a stream's throughput and a twentieth of the transactions (docs/decisions/0012). Pinned
//!    together they are no faster than left alone;
//! 5. so few workers asked for that each can have a CPU of its own: half of the CPUs for each end;
//! 6. several streams between namespaces: the scheduler. The kernel forwards the frames of all of them in
//!    the time of whichever worker sent some, and a pinned worker beside it gets to its flows less often:
//!    of 256 streams over a line of 1 Gbit/s those on one CPU had a third of what those on the other had;
//!    where no line is full, 10 and 64 streams were as fast (46 to 52 and 34 to 44 Gbit/s, both ways);
//! 7. several flows: worker k of both ends on CPU k. Both ends deal their flows alike, so that a
//!    flow lives on one CPU and its payload in that CPU's cache, and no end waits for another CPU:
//!    ten streams were three to four times as fast as left to the scheduler.

use linerate_agent::api::Placement;
use linerate_model::manner::{ReceiveBy, Transport, WaitBy};
use linerate_model::run::{HostRecord, share_a_kernel};
use linerate_model::workload::Workload;

/// Who chooses the CPUs of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Placing {
    /// Whoever asked for the run: pinned to the CPUs of the request, not pinned where those are
    /// none.
    #[default]
    AsAsked,
    /// We do, for each trial; carries the CPUs that this process may run on.
    Auto {
        /// The CPUs, ascending.
        cpus: Vec<u32>,
    },
}

/// Threads of an end on one CPU, where each has one flow: ten on two CPUs were measured.
const OWN_THREADS_PER_CPU: usize = 8;

/// The CPUs of both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pinned {
    /// Of the server's workers, in turn; none to leave it to the scheduler, or to its agent.
    pub(super) server: Vec<u32>,
    /// Of the clients' workers.
    pub(super) clients: Vec<u32>,
    /// Who chose them.
    pub(super) placement: Placement,
    /// Worker threads of each end at the most: as asked, or our choice; a CPU each when absent.
    pub(super) workers_max: Option<u32>,
}

/// Returns whether `hosts`, the server first, share the CPUs of one machine.
pub(super) fn is_one_machine(hosts: &[HostRecord]) -> bool {
    let lab = || hosts.iter().all(|host| host.lab);
    hosts.len() > 1 && (lab() || is_over_loopback(hosts) || share_a_kernel(hosts))
}

/// Returns whether traffic between `hosts`, the server first, stays on the loopback device: it goes to
/// an address of the host that sends it. Namespaces of one kernel have devices of their own.
pub(super) fn is_over_loopback(hosts: &[HostRecord]) -> bool {
    let Some((server, clients)) = hosts.split_first() else {
        return false;
    };
    let address = server.data_address.parse::<std::net::IpAddr>();
    address.is_ok_and(|address| address.to_canonical().is_loopback())
        || clients
            .iter()
            .all(|client| client.data_address == server.data_address)
}

/// Returns the CPUs of both ends of `workload` on one machine whose `cpus` they may use, over its loopback
/// device or between namespaces; `workers_max` is how many workers of each end were asked for at the most.
pub(super) fn on_one_machine(
    workload: &Workload,
    workers_max: Option<u32>,
    cpus: &[u32],
    over_loopback: bool,
) -> Pinned {
    let pinned = |server: &[u32], clients: &[u32], why: &str| Pinned {
        server: server.to_vec(),
        clients: clients.to_vec(),
        placement: Placement::Chosen {
            why: why.to_owned(),
        },
        workers_max,
    };
    let free = |why: &str| pinned(&[], &[], why);
    if cpus.len() < 2 {
        return free("there is one CPU for both ends");
    }
    if !workload.traffic.carries_payload() {
        return free("idle connections need no CPU");
    }
    let (clients, server) = cpus.split_at(cpus.len() / 2);
    let few = workload.connections as usize <= cpus.len() / 2;
    let is_asked_few = workers_max.is_some_and(|workers| 2 * workers as usize <= cpus.len());
    let yields = over_loopback && !few && !is_asked_few && spins_and_yields(workload);
    if workload.manner.wait == WaitBy::Spin && !yields {
        let why = "ends that spin have CPUs of their own";
        return pinned(server, clients, why);
    }
    if workload.connections == 1 && is_stream_received_by(workload, ReceiveBy::Discard) {
        let why = "both ends of a flow that is not copied when received (-A 0,1 keeps them apart)";
        return pinned(&cpus[..1], &cpus[..1], why);
    }
    if workload.connections == 1 {
        return free("one flow (-A 0,1 keeps its ends apart, as on two hosts; -A 0,0 together)");
    }
    if is_asked_few {
        let why = "as few workers as were asked for have CPUs of their own";
        return pinned(server, clients, why);
    }
    if !over_loopback && is_stream_received_by(workload, ReceiveBy::Copy) {
        return free("several streams, whose frames this machine forwards too");
    }
    let why = "both ends of a flow on one CPU (-A none leaves it to the scheduler)";
    Pinned {
        workers_max: workers_max.or_else(|| own_threads(workload, cpus.len())),
        ..pinned(cpus, cpus, why)
    }
}

/// Returns the threads of as many flows as may have one each: of those that nobody copies when received,
/// ten made 204 Gbit/s with a thread each, which blocks in its calls, and 188 with a thread for each CPU,
/// which asks epoll (medians of 5 interleaved runs over loopback).
fn own_threads(workload: &Workload, cpus: usize) -> Option<u32> {
    let few = workload.connections as usize <= OWN_THREADS_PER_CPU * cpus;
    (few && is_stream_received_by(workload, ReceiveBy::Discard)).then_some(workload.connections)
}

/// Returns whether workers that spin for such flows let the peer on their CPU have it.
fn spins_and_yields(workload: &Workload) -> bool {
    workload.manner.transport != Transport::Udp && !workload.traffic.is_placed()
}

fn is_stream_received_by(workload: &Workload, receive: ReceiveBy) -> bool {
    workload.traffic.is_stream()
        && workload.manner.transport != Transport::Udp
        && workload.manner.receive == receive
}

#[cfg(test)]
mod tests {
    use linerate_model::workload::{Direction, Traffic};

    use super::*;

    fn check(workload: &Workload, cpus: &[u32], clients: &[u32], server: &[u32]) {
        let placed = on_one_machine(workload, None, cpus, true);
        assert_eq!(placed.clients, clients, "{placed:?}");
        assert_eq!(placed.server, server, "{placed:?}");
    }

    #[test]
    fn ends_share_cpus_only_where_flows_do() {
        let one = Workload::stream(Direction::ToServer);
        check(&one, &[], &[], &[]);
        check(&one, &[3], &[], &[]);
        check(&one, &[0, 1], &[], &[]);
        let many = Workload {
            connections: 10,
            ..one.clone()
        };
        check(&many, &[0, 1], &[0, 1], &[0, 1]);
        let few = on_one_machine(&many, Some(1), &[0, 1], true);
        assert_eq!((few.clients, few.server), (vec![0], vec![1]));
        let enough = on_one_machine(&many, Some(2), &[0, 1], true);
        assert_eq!((enough.clients, enough.server), (vec![0, 1], vec![0, 1]));
        let between = |workload: &Workload| on_one_machine(workload, None, &[0, 1], false).server;
        assert_eq!(
            between(&many),
            [0; 0],
            "the frames of all take one CPU's time"
        );
        let mut discarded = one.clone();
        discarded.manner.receive = ReceiveBy::Discard;
        check(&discarded, &[0, 1], &[0], &[0]);
        discarded.connections = 10;
        check(&discarded, &[0, 1], &[0, 1], &[0, 1]);
        assert_eq!(between(&discarded), [0, 1]);
        let threads =
            |workload: &Workload, asked| on_one_machine(workload, asked, &[0, 1], true).workers_max;
        assert_eq!(threads(&discarded, None), Some(10));
        assert_eq!(threads(&discarded, Some(3)), Some(3), "somebody chose");
        assert_eq!(threads(&many, None), None, "payload is copied");
        discarded.connections = 100;
        assert_eq!(threads(&discarded, None), None, "too many");
        let mut spinning = one;
        spinning.manner.wait = WaitBy::Spin;
        check(&spinning, &[0, 1], &[0], &[1]);
        check(&spinning, &[0, 1, 2], &[0], &[1, 2]);
        check(&spinning, &[0], &[], &[]);
        spinning.connections = 2;
        check(&spinning, &[0, 1, 2, 3], &[0, 1], &[2, 3]);
        spinning.connections = 3;
        check(&spinning, &[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3]);
        assert_eq!(between(&spinning), [1], "over no loopback");
        let one_each = on_one_machine(&spinning, Some(1), &[0, 1], true);
        assert_eq!((one_each.clients, one_each.server), (vec![0], vec![1]));
        spinning.manner.transport = Transport::Udp;
        check(&spinning, &[0, 1], &[0], &[1]);
        let idle = Workload {
            traffic: Traffic::Idle,
            ..many
        };
        check(&idle, &[0, 1], &[], &[]);
    }
}
