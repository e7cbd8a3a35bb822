//! `/proc/PID/task/TID/stat` and `schedstat`, as functions of bytes.

use crate::text::{complete_lines, number, words};

/// Words between the end of the command name and `utime`, the 14th field (proc_pid_stat(5)).
const WORDS_BEFORE_UTIME: usize = 11;
/// Words between `stime` and `processor`, the 39th field.
const WORDS_BEFORE_PROCESSOR: usize = 23;

/// The times of a thread, in ticks of USER_HZ, and where it last ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StatTimes {
    pub(super) utime_ticks: u64,
    pub(super) stime_ticks: u64,
    pub(super) processor: Option<u32>,
}

/// Reads `stat`; the command name may hold anything, so fields count from its last parenthesis.
pub(super) fn stat(text: &[u8]) -> Option<StatTimes> {
    let text = text.strip_suffix(b"\n")?;
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = words(text.get(name_end + 1..)?);
    Some(StatTimes {
        utime_ticks: number(fields.nth(WORDS_BEFORE_UTIME)?)?,
        stime_ticks: number(fields.next()?)?,
        processor: fields
            .nth(WORDS_BEFORE_PROCESSOR)
            .and_then(number)
            .and_then(|processor| u32::try_from(processor).ok()),
    })
}

/// The scheduler's account of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchedTimes {
    pub(super) run_ns: i64,
    pub(super) wait_ns: i64,
    /// How often it was put on a CPU (`sched_info_arrive`).
    pub(super) arrivals: i64,
}

/// Reads `schedstat`: run time, run-queue wait, time slices.
///
/// `Some(None)` is a kernel that keeps no account: it writes three zeros (fs/proc/base.c,
/// proc_pid_schedstat), and a thread that was never given a time slice looks the same.
pub(super) fn schedstat(text: &[u8]) -> Option<Option<SchedTimes>> {
    let mut fields = words(complete_lines(text).next()?).map(number);
    let (run_ns, wait_ns, slices) = (fields.next()??, fields.next()??, fields.next()??);
    if (run_ns, wait_ns, slices) == (0, 0, 0) {
        return Some(None);
    }
    Some(Some(SchedTimes {
        run_ns: i64::try_from(run_ns).ok()?,
        wait_ns: i64::try_from(wait_ns).ok()?,
        arrivals: i64::try_from(slices).ok()?,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "8358 (cat) R 8350 8350 6025 0 -1 4194304 100 0 0 0 17 4 0 0 20 0 1 0 \
        160682 3133440 389 18446744073709551615 94230236553216 94230236573097 140726102444064 0 0 \
        0 0 0 0 0 0 0 17 1 0 0 0 0 0 94230236589104\n";

    fn times(utime_ticks: u64, stime_ticks: u64, processor: Option<u32>) -> Option<StatTimes> {
        Some(StatTimes {
            utime_ticks,
            stime_ticks,
            processor,
        })
    }

    #[test]
    fn stat_fields_count_from_the_last_parenthesis() {
        assert_eq!(stat(STAT.as_bytes()), times(17, 4, Some(1)));
        let nasty = STAT.replace("(cat)", "(a) 1 (b\n) c)");
        assert_eq!(stat(nasty.as_bytes()), times(17, 4, Some(1)));
        let old = "1 (init) S 0 1 1 0 -1 0 0 0 0 0 5 6\n";
        assert_eq!(stat(old.as_bytes()), times(5, 6, None));
    }

    #[test]
    fn a_cut_or_odd_stat_gives_nothing() {
        for text in ["", "\n", "1 (a", "1 (a) R 1 2 3\n", &STAT[..STAT.len() - 1]] {
            assert_eq!(stat(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(stat(STAT.replace("17 4 0", "17 x 0").as_bytes()), None);
    }

    #[test]
    fn schedstat_of_all_zero_is_no_account() {
        let account = SchedTimes {
            run_ns: 5_000_000_123,
            wait_ns: 77,
            arrivals: 12,
        };
        assert_eq!(schedstat(b"5000000123 77 12\n"), Some(Some(account)));
        assert_eq!(schedstat(b"0 0 0\n"), Some(None));
        for text in [
            "",
            "1 2\n",
            "1 2 3",
            "1 x 3\n",
            "18446744073709551615 0 1\n",
        ] {
            assert_eq!(schedstat(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>, fields in "[0-9()\\- \n]{0,300}") {
            let _ = (stat(&text), stat(fields.as_bytes()));
            let _ = (schedstat(&text), schedstat(fields.as_bytes()));
        }
    }
}
