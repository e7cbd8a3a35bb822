//! Connection tracking: how full its table is, and which packets it dropped.
//!
//! The table's size and count are those of the network namespace; the statistics are lines of
//! hexadecimal numbers, one a CPU, under a line of names.

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use crate::files::{FilesObserver, Parse, Source};
use crate::observer::ObserveConfig;
use crate::text::{complete_lines, number, words};

/// Opens the files of connection tracking.
pub(crate) fn open(config: &ObserveConfig) -> FilesObserver {
    let settings = config.proc_root.join("sys/net/netfilter");
    let net = |whose: &str| config.proc_root.join(whose).join("net/stat/nf_conntrack");
    let own = net("thread-self");
    let statistics = if own.exists() { own } else { net("self") };
    let files: [(_, Parse); 3] = [
        (settings.join("nf_conntrack_count"), |text, push| {
            one(text, Metric::ConntrackCount, push);
        }),
        (settings.join("nf_conntrack_max"), |text, push| {
            one(text, Metric::ConntrackMax, push);
        }),
        (statistics, totals),
    ];
    let open =
        |(path, parse): (std::path::PathBuf, Parse)| Source::open(&path, Subject::Host, parse).ok();
    let sources = files.into_iter().filter_map(open).collect();
    let absent = || format!("{}: no connection tracking", settings.display());
    FilesObserver::new("conntrack", sources, absent, Vec::new())
}

fn one(text: &[u8], metric: Metric, push: &mut dyn FnMut(Metric, i64)) {
    let value = complete_lines(text).next().and_then(number);
    if let Some(Ok(value)) = value.map(i64::try_from) {
        push(metric, value);
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
        let count: Parse = |text, push| one(text, Metric::ConntrackCount, push);
        assert_eq!(found(count, "262144\n"), [("conntrack_count", 262_144)]);
        assert_eq!(found(count, "-1\n"), []);
    }
}
