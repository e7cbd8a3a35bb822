//! Looks put together: how many found each stack, in little memory.

use std::collections::HashMap;

use linerate_model::profile::{Stack, Work};

/// Different stacks that are kept; those that come later are counted by their kind of work only. A
/// busy host under one kind of traffic has some 2000.
const STACKS_MAX: usize = 8192;
/// Different functions and threads that are kept.
const NAMES_MAX: usize = 65_535;
/// What stands for names and stacks beyond that.
const RARER: &str = "[rarer]";

/// Number of a name.
pub(super) type NameId = u16;

/// Names by number, and what rules know of them.
#[derive(Debug, Default)]
pub(super) struct Names {
    ids: HashMap<String, NameId>,
    names: Vec<(String, Option<Work>)>,
}

impl Names {
    /// Returns the number of `name`, which does `work` as far as rules know.
    pub(super) fn id(&mut self, name: &str, work: Option<Work>) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let full = self.names.len() >= NAMES_MAX;
        let name = if full { RARER } else { name };
        if let (true, Some(&id)) = (full, self.ids.get(RARER)) {
            return id;
        }
        let id = self.names.len() as NameId;
        // What separates frames of a stack cannot be part of one.
        self.names.push((name.replace([';', '\n'], ":"), work));
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// Returns what rules know of the name with number `id`.
    pub(super) fn work(&self, id: NameId) -> Option<Work> {
        self.names.get(usize::from(id))?.1
    }

    fn text(&self, id: NameId) -> &str {
        let name = self.names.get(usize::from(id));
        name.map_or(RARER, |(name, _)| name)
    }
}

/// How many looks found each stack.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    found: HashMap<Box<[NameId]>, (Work, u64)>,
    rarer: HashMap<Work, u64>,
}

impl Stacks {
    /// Counts a look; `frames` go from the outside in.
    pub(super) fn add(&mut self, frames: &[NameId], work: Work) {
        if let Some((_, count)) = self.found.get_mut(frames) {
            *count += 1;
        } else if self.found.len() < STACKS_MAX {
            self.found.insert(frames.into(), (work, 1));
        } else {
            *self.rarer.entry(work).or_default() += 1;
        }
    }

    /// Returns the stacks in words, those found most often first.
    pub(super) fn told(&self, names: &Names) -> Vec<Stack> {
        let found = self.found.iter().map(|(frames, &(work, samples))| {
            let frames: Vec<&str> = frames.iter().map(|&id| names.text(id)).collect();
            Stack {
                frames: frames.join(";"),
                work,
                samples,
            }
        });
        let rarer = self.rarer.iter().map(|(&work, &samples)| Stack {
            frames: format!("{RARER};[{}]", work.name()),
            work,
            samples,
        });
        let mut all: Vec<Stack> = found.chain(rarer).collect();
        all.sort_by(|a, b| {
            let order = b.samples.cmp(&a.samples);
            order.then_with(|| a.frames.cmp(&b.frames))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_the_commonest_comes_first() {
        let mut names = Names::default();
        let mut id = |name| names.id(name, None);
        let (worker, send, copy) = (id("worker"), id("tcp_send;msg"), id("copy"));
        assert_eq!(id("copy"), copy);
        let mut stacks = Stacks::default();
        stacks.add(&[worker, send], Work::Transport);
        stacks.add(&[worker, send, copy], Work::Copy);
        stacks.add(&[worker, send, copy], Work::Copy);
        let told: Vec<(String, Work, u64)> = stacks
            .told(&names)
            .into_iter()
            .map(|stack| (stack.frames, stack.work, stack.samples))
            .collect();
        assert_eq!(
            told,
            [
                ("worker;tcp_send:msg;copy".to_owned(), Work::Copy, 2),
                ("worker;tcp_send:msg".to_owned(), Work::Transport, 1),
            ]
        );
    }

    #[test]
    fn beyond_the_limits_looks_are_counted_by_kind() {
        let mut names = Names::default();
        let ids: Vec<NameId> = (0..70_000)
            .map(|at| names.id(&format!("f{at}"), None))
            .collect();
        assert_eq!(ids[69_999], ids[69_998], "names beyond the limit share one");
        let mut stacks = Stacks::default();
        for &id in &ids[..STACKS_MAX + 5] {
            stacks.add(&[id], Work::Ip);
        }
        let told = stacks.told(&names);
        assert_eq!(told[0].samples, 5);
        assert_eq!(told[0].frames, "[rarer];[ip]");
        let all: u64 = told.iter().map(|stack| stack.samples).sum();
        assert_eq!(all as usize, STACKS_MAX + 5, "no look is lost");
    }
}
