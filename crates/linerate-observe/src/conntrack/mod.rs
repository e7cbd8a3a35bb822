//! Connection tracking: how full its table is, and which packets it dropped.
//!
//! The table's size and count are those of the network namespace; the statistics are lines of
//! hexadecimal numbers, one a CPU, under a line of names. Kernels are built without that file
//! (CONFIG_NF_CONNTRACK_PROCFS); then netlink is asked for the statistics.

/// The statistics by netlink.
mod statistics;

use std::path::Path;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use self::statistics::Statistics;
use crate::files::{Parse, Source, files_observer, one};
use crate::observer::{Health, ObserveConfig, Observer, opened};
use crate::text::{complete_lines, words};

/// Reads connection tracking.
struct ConntrackObserver {
    files: Box<dyn Observer>,
    /// Where there is no file of them.
    statistics: Option<Statistics>,
    health: Health,
}

/// Opens the files of connection tracking, or netlink for what has no file.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let settings = config.proc_root.join("sys/net/netfilter");
    let net = |whose: &str| config.proc_root.join(whose).join("net/stat/nf_conntrack");
    let own = net("thread-self");
    let file = if own.exists() { own } else { net("self") };
    let open = |path: &Path, parse: Parse| Source::open(path, Subject::Host, parse).ok();
    let count: Parse = |text, push| one(text, 1, Metric::ConntrackCount, push);
    let most: Parse = |text, push| one(text, 1, Metric::ConntrackMax, push);
    let totals = open(&file, totals);
    let is_tracking = settings.join("nf_conntrack_max").exists();
    // A recorded root is of another host than the one that netlink would ask.
    let is_here = config.proc_root == Path::new("/proc");
    let statistics = (is_tracking && is_here && totals.is_none()).then(Statistics::open);
    let (statistics, why) = opened(statistics.transpose());
    let note = why.map(|error| format!("no statistics: netlink: {error}"));
    let sources = [
        open(&settings.join("nf_conntrack_count"), count),
        open(&settings.join("nf_conntrack_max"), most),
        totals,
    ];
    let absent = || format!("{}: no connection tracking", settings.display());
    let sources = sources.into_iter().flatten().collect();
    Box::new(ConntrackObserver {
        files: files_observer("conntrack", sources, absent, note),
        statistics: statistics.flatten(),
        health: Health::new("conntrack", None, Vec::new()),
    })
}

impl ConntrackObserver {
    fn ask(&mut self, out: &mut Vec<Sample>) {
        let Some(statistics) = &mut self.statistics else {
            return;
        };
        self.health.reading(out, |out| {
            statistics
                .sample(out)
                .map_err(|error| format!("statistics: netlink: {error}"))
        });
    }
}

impl Observer for ConntrackObserver {
    fn availability(&self) -> Availability {
        let mut availability = self.files.availability();
        let asked = self.health.availability();
        let more = asked.missing.or(asked.note);
        availability.note = match (availability.note, more) {
            (Some(note), Some(more)) => Some(format!("{note}; {more}")),
            (note, more) => note.or(more),
        };
        availability
    }

    fn sample(&mut self, out: &mut Vec<Sample>) -> bool {
        let is_made = self.files.sample(out);
        if is_made {
            self.ask(out);
        }
        is_made
    }

    fn sample_edge(&mut self, out: &mut Vec<Sample>) {
        self.files.sample_edge(out);
        self.ask(out);
    }
}

/// Sums the lines of all CPUs, column by column; the columns are found by name.
fn totals(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    let wanted: [(&[u8], Metric); 4] = [
        (b"insert_failed", Metric::ConntrackInsertFailed),
        (b"drop", Metric::ConntrackDrop),
        (b"early_drop", Metric::ConntrackEarlyDrop),
        (b"invalid", Metric::ConntrackInvalid),
    ];
    let Some(names) = complete_lines(text).next() else {
        return;
    };
    for (name, metric) in wanted {
        let Some(column) = words(names).position(|word| word == name) else {
            continue;
        };
        let cells = complete_lines(text)
            .skip(1)
            .map(|line| words(line).nth(column).and_then(hexadecimal));
        let sum = cells.reduce(|sum, cell| sum?.checked_add(cell?)).flatten();
        if let Some(sum) = sum {
            push(metric, sum);
        }
    }
}

fn hexadecimal(word: &[u8]) -> Option<i64> {
    i64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::found;

    #[test]
    fn columns_are_found_by_name_and_cpus_are_summed() {
        let text = "entries  searched found new invalid ignore delete insert insert_failed drop early_drop\n\
                    00000001 00000000 0 0 0000000a 0 0 0 00000010 00000001 00000000\n\
                    00000001 00000000 0 0 00000001 0 0 0 00000001 00000001 00000003\n";
        let expect = [
            ("conntrack_insert_failed", 17),
            ("conntrack_drop", 2),
            ("conntrack_early_drop", 3),
            ("conntrack_invalid", 11),
        ];
        assert_eq!(found(totals, text), expect);
        assert_eq!(found(totals, "drop\nzz\n"), []);
        assert_eq!(found(totals, "drop\n"), []);
        assert_eq!(found(totals, "other\n1\n"), []);
        let count: Parse = |text, push| one(text, 1, Metric::ConntrackCount, push);
        assert_eq!(found(count, "262144\n"), [("conntrack_count", 262_144)]);
        assert_eq!(found(count, "-1\n"), []);
    }
}
