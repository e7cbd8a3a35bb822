//! The same for several hosts at the same time.

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
}
