//! Which worker owns which flow.

use linerate_model::workload::Part;

/// Returns for each worker the indices of its flows; there are as many workers as flows allow,
/// at most `workers_max` and at least one.
///
/// Flows are dealt in turn, one part after the other, so that every worker gets its share of
/// senders and of receivers: dealt in their own order, every second flow of a workload with both
/// directions is a sender, and two workers would be one that sends and one that receives.
pub(super) fn deal(parts: &[Part], workers_max: usize) -> Vec<Vec<usize>> {
    let workers = parts.len().min(workers_max).max(1);
    let mut hands = vec![Vec::new(); workers];
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&index| part_order(parts[index]));
    for (turn, index) in order.into_iter().enumerate() {
        hands[turn % workers].push(index);
    }
    hands
}

fn part_order(part: Part) -> u8 {
    match part {
        Part::Sender => 0,
        Part::Receiver => 1,
        Part::Requester => 2,
        Part::Responder => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Part::{Receiver, Sender};

    #[test]
    fn every_worker_gets_its_share_of_each_part() {
        let parts = [Sender, Receiver, Sender, Receiver];
        assert_eq!(deal(&parts, 2), vec![vec![0, 1], vec![2, 3]]);
        assert_eq!(deal(&parts, 1), vec![vec![0, 2, 1, 3]]);
    }

    #[test]
    fn there_are_no_more_workers_than_flows_and_at_least_one() {
        assert_eq!(deal(&[Sender; 3], 8).len(), 3);
        assert_eq!(deal(&[Sender; 3], 0), vec![vec![0, 1, 2]]);
        assert_eq!(deal(&[], 4), vec![Vec::<usize>::new()]);
    }

    #[test]
    fn every_flow_is_dealt_once() {
        let hands = deal(&[Sender; 1000], 7);
        let mut dealt: Vec<usize> = hands.concat();
        dealt.sort_unstable();
        assert_eq!(dealt, (0..1000).collect::<Vec<_>>());
        assert!(hands.iter().all(|hand| (142..=143).contains(&hand.len())));
    }
}
