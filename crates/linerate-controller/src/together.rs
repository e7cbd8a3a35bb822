//! The same for several hosts at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` for all of `items` at the same time and returns its results in their order.
///
/// The last is worked on by this thread: of two hosts, which are most runs, one needs no thread,
/// whose making and end cost 0.1 to 0.2 ms, as much as a request over loopback.
pub(crate) fn together<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let mut items: Vec<T> = items.into_iter().collect();
    let Some(last) = items.pop() else {
        return Vec::new();
    };
    let work = &work;
    std::thread::scope(|scope| {
        let others = items.into_iter();
        let threads: Vec<_> = others.map(|item| scope.spawn(move || work(item))).collect();
        let last = work(last);
        // A panic of one of our own threads is ours to pass on.
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.chain([last]).collect()
    })
}

/// The same for many, `most` of them at the same time.
pub(crate) fn at_most<T: Sync, R: Send>(
    most: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = together(0..most.min(items.len()), |_| {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else {
                return own;
            };
            own.push((at, work(item)));
        }
    });
    let mut all: Vec<(usize, R)> = done.into_iter().flatten().collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_are_worked_on_at_once_and_their_results_are_in_order() {
        let doubled = |items: &[u32]| together(items, |one| 2 * one);
        assert!(doubled(&[]).is_empty());
        assert_eq!(doubled(&[1]), [2]);
        let all_there = Barrier::new(3);
        let doubled = together(1..=3, |one| {
            all_there.wait();
            2 * one
        });
        assert_eq!(doubled, [2, 4, 6]);
    }

    #[test]
    fn of_many_no_more_are_worked_on_at_once_than_that() {
        let (under_way, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..100).collect();
        let doubled = at_most(3, &items, |one| {
            most.fetch_max(
                1 + under_way.fetch_add(1, Ordering::SeqCst),
                Ordering::SeqCst,
            );
            std::thread::yield_now();
            under_way.fetch_sub(1, Ordering::SeqCst);
            2 * one
        });
        assert!(doubled.iter().enumerate().all(|(at, two)| 2 * at == *two));
        assert!(most.into_inner() <= 3);
        assert!(at_most(3, &[0; 0], |_| ()).is_empty());
    }
}
