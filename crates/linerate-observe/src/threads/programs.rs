//! The programs of a host with their CPU time, from `/proc/PID/stat`.
//!
//! Some 15 µs for each process: for a person who watches, never for samples.

use std::fs;
use std::path::Path;

use linerate_model::host::Program;

use super::parse;
use crate::files::numbered;
use crate::sys::clock::user_hz;
use crate::text::ticks_to_ns;

/// Most programs of one answer, those with most CPU time.
const PROGRAMS_MAX: usize = 4096;

/// Returns every program that has had a tick of CPU time, as far as the caller may see them.
pub fn programs(proc_root: &Path) -> Vec<Program> {
    let pids = numbered(proc_root, "").into_iter();
    let program = |pid| program(pid, &fs::read(proc_root.join(format!("{pid}/stat"))).ok()?);
    let mut programs: Vec<Program> = pids.filter_map(program).collect();
    programs.retain(|program| program.cpu_ns > 0);
    programs.sort_by_key(|program| std::cmp::Reverse(program.cpu_ns));
    programs.truncate(PROGRAMS_MAX);
    programs
}

fn program(pid: u32, stat: &[u8]) -> Option<Program> {
    let times = parse::stat(stat)?;
    let ticks = times.utime_ticks.checked_add(times.stime_ticks)?;
    let begin = stat.iter().position(|&byte| byte == b'(')? + 1;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    Some(Program {
        pid,
        name: String::from_utf8_lossy(stat.get(begin..end)?).into_owned(),
        cpu_ns: u64::try_from(ticks_to_ns(ticks, user_hz())?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_what_its_line_says() {
        let line = |name: &str| {
            let text =
                format!("812 ({name}) R 1 1 1 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 1 0 7 8 9\n");
            program(812, text.as_bytes()).map(|program| (program.name, program.cpu_ns))
        };
        let ns = 200 * 1_000_000_000 / user_hz();
        assert_eq!(line("nginx"), Some(("nginx".to_owned(), ns)));
        assert_eq!(line("a) b (c"), Some(("a) b (c".to_owned(), ns)));
        assert_eq!(program(1, b"1 (cut"), None);
        let own = programs(Path::new("/proc"));
        assert!(own.iter().all(|program| program.cpu_ns > 0), "{own:?}");
    }
}
