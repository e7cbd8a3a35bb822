//! What `srun --label` says of its tasks: their own lines, and their ends.

use std::collections::BTreeSet;

/// Returns the number of the task that a line is of, and the line without it, where it is one of a task.
pub(super) fn labelled(line: &str) -> Option<(u32, &str)> {
    let (task, text) = line.split_once(": ")?;
    // It is as wide as the largest.
    Some((task.trim_start().parse().ok()?, text))
}

/// Returns the numbers of the tasks that ended badly by what `srun` says.
pub(super) fn ended_tasks(said: &str) -> BTreeSet<u32> {
    let endings = said.lines().filter_map(ending);
    endings.flat_map(|(_, tasks)| tasks).collect()
}

/// Returns the nodes and the tasks that a line tells the end of: `srun: error: n[1-2]: tasks 0-1: Killed`.
fn ending(line: &str) -> Option<(&str, Vec<u32>)> {
    let mut parts = line.strip_prefix("srun: error: ")?.split(": ");
    let (nodes, numbers) = (parts.next()?, parts.next()?);
    let numbers = numbers
        .strip_prefix("task ")
        .or(numbers.strip_prefix("tasks "))?;
    let mut tasks = Vec::new();
    for numbers in numbers.split(',') {
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        tasks.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some((nodes, tasks))
}

/// Returns what a task said, and what `srun` says of its end.
pub(super) fn said_by(said: &str, task: u32) -> String {
    let own = said.lines().filter_map(|line| match labelled(line) {
        Some((of, text)) => (of == task).then_some(text),
        None => ending(line)?.1.contains(&task).then_some(line),
    });
    own.flat_map(|text| [text, "\n"]).collect()
}

/// Returns what was said of the task on a node, if its end was told by itself.
pub(super) fn said_of(said: &str, node: &str) -> Option<String> {
    let mut endings = said.lines().filter_map(ending);
    let (_, tasks) = endings.find(|(nodes, _)| *nodes == node)?;
    Some(said_by(said, *tasks.first()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_srun_says_of_tasks_is_read() {
        let check = |line: &str, expected: &[u32]| {
            let ended: Vec<u32> = ended_tasks(line).into_iter().collect();
            assert_eq!(ended, expected, "{line}");
        };
        check("srun: error: n2: task 1: Killed", &[1]);
        check(
            "srun: error: n[1-3,7]: tasks 0-2,6: Exited with exit code 2",
            &[0, 1, 2, 6],
        );
        check("1: srun: error: n2: task 1: Killed", &[]);
        check("srun: error: Unable to create step for job 7: busy", &[]);
        check("srun: Force Terminated StepId=12.0", &[]);
        let said =
            "srun: error: n2: task 1: Killed\n1: why\n0: fine\nsrun: error: n3: task 2: Killed\n";
        assert_eq!(
            said_of(said, "n2").as_deref(),
            Some("srun: error: n2: task 1: Killed\nwhy\n")
        );
        assert_eq!(said_of(said, "n1"), None);
        assert_eq!(labelled("  7: a: b"), Some((7, "a: b")));
        assert_eq!(labelled("srun: a"), None);
        assert_eq!(said_by("1: a\n0: b\nc\n1: d\n", 1), "a\nd\n");
    }
}
