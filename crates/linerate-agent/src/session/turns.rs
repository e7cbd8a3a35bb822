//! Whose turn it is, where what callers ask for takes time: one caller's pile is its own to wait for.
//!
//! Rules:
//! 1. A caller has `share` pieces of work under way at the most; what it asks for beyond them waits in
//!    order of arrival.
//! 2. All callers have `most` under way. The last `reserved` of these places are for callers that have
//!    none yet, so that a newcomer begins at once whatever the others have under way.
//! 3. Callers that wait take turns: one piece each, however long their queues are.
//! 4. A caller may have `waiting` pieces waiting; a further one is refused.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// How much may be under way, and wait.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Of one caller.
    pub share: usize,
    /// Of all together.
    pub most: usize,
    /// Those of `most` that are for callers who have none.
    pub reserved: usize,
    /// Waiting, of one caller.
    pub waiting: usize,
}

/// What becomes of a piece of work that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival<W> {
    /// It may begin.
    Begins(W),
    /// It waits.
    Waits,
    /// Its caller has too many waiting.
    Refused,
}

/// Work of all callers, `W` being what waits.
#[derive(Debug)]
pub struct Turns<K, W> {
    rules: Rules,
    under_way: usize,
    callers: HashMap<K, Own<W>>,
    /// Callers that have work waiting, the next first.
    order: VecDeque<K>,
}

/// Work of one caller.
#[derive(Debug)]
struct Own<W> {
    under_way: usize,
    waiting: VecDeque<W>,
}

impl<K: Clone + Eq + Hash, W> Turns<K, W> {
    /// Returns turns that nobody has taken.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            under_way: 0,
            callers: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Takes up a piece of work. `is_gone` tells which of those that wait nobody waits for any more.
    pub fn handle_arrival(&mut self, of: K, work: W, is_gone: impl Fn(&W) -> bool) -> Arrival<W> {
        let own = self.callers.entry(of.clone()).or_insert_with(|| Own {
            under_way: 0,
            waiting: VecDeque::new(),
        });
        if own.waiting.len() >= self.rules.waiting {
            own.waiting.retain(|waiting| !is_gone(waiting));
        }
        if own.waiting.is_empty() && may_begin(&self.rules, self.under_way, own.under_way) {
            own.under_way += 1;
            self.under_way += 1;
            return Arrival::Begins(work);
        }
        if own.waiting.len() >= self.rules.waiting {
            return Arrival::Refused;
        }
        own.waiting.push_back(work);
        if !self.order.contains(&of) {
            self.order.push_back(of);
        }
        Arrival::Waits
    }

    /// Notes the end of a piece of work; returns what begins now, if anything does.
    pub fn handle_over(&mut self, of: &K) -> Option<(K, W)> {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(own) = self.callers.get_mut(of) {
            own.under_way = own.under_way.saturating_sub(1);
        }
        let next = self.next();
        let is_idle = |own: &Own<W>| own.under_way == 0 && own.waiting.is_empty();
        if self.callers.get(of).is_some_and(is_idle) {
            self.callers.remove(of);
        }
        next
    }

    fn next(&mut self) -> Option<(K, W)> {
        let (rules, all, callers) = (&self.rules, self.under_way, &self.callers);
        let may = |of: &K| {
            let own = callers.get(of);
            own.is_some_and(|own| may_begin(rules, all, own.under_way))
        };
        let at = self.order.iter().position(may)?;
        let of = self.order.remove(at)?;
        let own = self.callers.get_mut(&of)?;
        let work = own.waiting.pop_front()?;
        own.under_way += 1;
        self.under_way += 1;
        if !own.waiting.is_empty() {
            self.order.push_back(of.clone());
        }
        Some((of, work))
    }
}

fn may_begin(rules: &Rules, all: usize, own: usize) -> bool {
    let most = match own {
        0 => rules.most,
        _ => rules.most - rules.reserved,
    };
    own < rules.share && all < most
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        share: 2,
        most: 4,
        reserved: 2,
        waiting: 8,
    };

    fn ask(turns: &mut Turns<char, u32>, of: char, work: u32) -> Arrival<u32> {
        turns.handle_arrival(of, work, |_| false)
    }

    #[test]
    fn a_pile_has_its_share_and_others_begin_beside_it() {
        let mut turns = Turns::new(RULES);
        for work in 0..2 {
            assert_eq!(ask(&mut turns, 'a', work), Arrival::Begins(work));
        }
        for work in 2..10 {
            assert_eq!(ask(&mut turns, 'a', work), Arrival::Waits);
        }
        assert_eq!(ask(&mut turns, 'a', 10), Arrival::Refused);
        // Others begin before the rest of the pile.
        assert_eq!(ask(&mut turns, 'b', 20), Arrival::Begins(20));
        assert_eq!(ask(&mut turns, 'c', 30), Arrival::Begins(30));
        assert_eq!(ask(&mut turns, 'd', 40), Arrival::Waits);
        // The place that is free is reserved for one who has none.
        assert_eq!(turns.handle_over(&'a'), Some(('d', 40)));
        assert_eq!(turns.handle_over(&'b'), None);
        assert_eq!(turns.handle_over(&'c'), None);
        assert_eq!(turns.handle_over(&'d'), Some(('a', 2)));
    }

    #[test]
    fn those_who_wait_take_turns() {
        let mut turns = Turns::new(RULES);
        for of in ['a', 'b', 'c', 'd'] {
            ask(&mut turns, of, 0);
        }
        let waiting = [('a', 1), ('a', 2), ('a', 3), ('e', 1), ('f', 1)];
        for (of, work) in waiting {
            assert_eq!(ask(&mut turns, of, work), Arrival::Waits);
        }
        let mut served = Vec::new();
        for of in ['b', 'c', 'd'] {
            served.extend(turns.handle_over(&of));
        }
        assert_eq!(served, [('e', 1), ('f', 1)]);
        for of in ['e', 'f', 'a'] {
            served.extend(turns.handle_over(&of));
        }
        assert_eq!(served[2..], [('a', 1), ('a', 2)]);
    }

    #[test]
    fn whoever_gave_up_has_no_place_in_the_queue_and_nothing_is_kept() {
        let mut turns = Turns::new(RULES);
        for work in 0..10 {
            ask(&mut turns, 'a', work);
        }
        assert_eq!(turns.handle_arrival('a', 10, |_| true), Arrival::Waits);
        assert_eq!(turns.handle_over(&'a'), Some(('a', 10)));
        for _ in 0..2 {
            assert_eq!(turns.handle_over(&'a'), None);
        }
        assert!(turns.callers.is_empty() && turns.order.is_empty());
        assert_eq!(turns.under_way, 0);
    }
}
