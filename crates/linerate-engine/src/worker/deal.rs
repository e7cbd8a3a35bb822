//! Which worker owns which flow.

use linerate_model::id::FlowId;
use linerate_model::sample::End;
use linerate_model::workload::Part;

/// What decides which worker a flow goes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowKey {
    pub(super) flow: FlowId,
    pub(super) end: End,
    pub(super) part: Part,
}

/// Returns for each worker the indices of its flows; there are as many workers as flows allow,
/// at most `workers_max` and at least one.
///
/// 1. Flows are dealt in the order of their numbers, not in that of the list: a server's flows
///    arrive in any order, and both ends of a trial must deal alike. Worker k of the client and
///    worker k of the server then own the same flows, and on one machine, pinned to the same
///    CPUs, each CPU has both ends of whole flows: no wake-up crosses to another.
/// 2. One part comes after the other, so that every worker gets its share of senders and of
///    receivers: dealt by number alone, every second flow of a workload with both directions is a
///    sender, and two workers would be one that sends and one that receives. The part that counts
///    is the client's, on both ends.
pub(super) fn deal(keys: &[FlowKey], workers_max: usize) -> Vec<Vec<usize>> {
    let workers = keys.len().min(workers_max).max(1);
    let mut shares = vec![Vec::new(); workers];
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&index| (keys[index].client_part() as u8, keys[index].flow));
    for (turn, index) in order.into_iter().enumerate() {
        shares[turn % workers].push(index);
    }
    shares
}

impl FlowKey {
    fn client_part(self) -> Part {
        match self.end {
            End::Client => self.part,
            End::Server => self.part.opposite(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Part::{Receiver, Sender};

    fn keys(parts: &[Part]) -> Vec<FlowKey> {
        let key = |(at, &part): (usize, &Part)| FlowKey {
            flow: FlowId(at as u32),
            end: End::Client,
            part,
        };
        parts.iter().enumerate().map(key).collect()
    }

    #[test]
    fn every_worker_gets_its_share_of_each_part() {
        let keys = keys(&[Sender, Receiver, Sender, Receiver]);
        assert_eq!(deal(&keys, 2), vec![vec![0, 1], vec![2, 3]]);
        assert_eq!(deal(&keys, 1), vec![vec![0, 2, 1, 3]]);
    }

    #[test]
    fn there_are_no_more_workers_than_flows_and_at_least_one() {
        assert_eq!(deal(&keys(&[Sender; 3]), 8).len(), 3);
        assert_eq!(deal(&keys(&[Sender; 3]), 0), vec![vec![0, 1, 2]]);
        assert_eq!(deal(&[], 4), vec![Vec::<usize>::new()]);
    }

    #[test]
    fn every_flow_is_dealt_once() {
        let shares = deal(&keys(&[Sender; 1000]), 7);
        let mut dealt: Vec<usize> = shares.concat();
        dealt.sort_unstable();
        assert_eq!(dealt, (0..1000).collect::<Vec<_>>());
        assert!(
            shares
                .iter()
                .all(|share| (142..=143).contains(&share.len()))
        );
    }

    #[test]
    fn both_ends_deal_alike_in_whatever_order_flows_arrive() {
        let check = |parts: &[Part], workers: usize| {
            let near = keys(parts);
            // The server's flows arrive in another order, and its parts are the opposite.
            let mut far: Vec<FlowKey> = near
                .iter()
                .map(|key| FlowKey {
                    end: End::Server,
                    part: key.part.opposite(),
                    ..*key
                })
                .collect();
            far.rotate_left(parts.len() / 3);
            far.reverse();
            let flows = |keys: &[FlowKey]| -> Vec<Vec<FlowId>> {
                let shares = deal(keys, workers);
                let flows = |share: Vec<usize>| share.into_iter().map(|at| keys[at].flow).collect();
                shares.into_iter().map(flows).collect()
            };
            assert_eq!(flows(&near), flows(&far));
        };
        for workers in 1..=5 {
            check(&[Part::Requester; 64], workers);
            check(&[Sender, Receiver, Sender], workers);
            check(&[Sender, Receiver, Sender, Receiver, Sender], workers);
        }
    }
}
