//! Memory: what is free, what sockets hold, and how long work waited for memory and CPUs.
//!
//! `/proc/pressure` counts microseconds in which some or all work waited (PSI); kernels without
//! CONFIG_PSI do not have it. `/proc/net/sockstat` counts pages of socket memory, for all network
//! namespaces together, which is what `tcp_mem` limits.

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use crate::files::{Files, Parse, Source, named};
use crate::observer::{ObserveConfig, Observer, any_opened, observer};
use crate::sys::clock::page_bytes;
use crate::text::{complete_lines, value, words};

/// Opens the files of memory.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let proc = &config.proc_root;
    let own = ["thread-self", "self"].map(|whose| proc.join(whose).join("net/sockstat"));
    let sockstat = own.iter().find(|path| path.exists()).unwrap_or(&own[0]);
    let files: [(_, Parse); 5] = [
        (proc.join("meminfo"), meminfo),
        (sockstat.clone(), sockets),
        (proc.join("pressure/memory"), pressure_of_memory),
        (proc.join("pressure/cpu"), pressure_of_cpu),
        (proc.join("pressure/io"), pressure_of_io),
    ];
    let sources = files.map(|(path, parse)| Source::open(&path, Subject::Host, parse));
    let (sources, notes) = any_opened(sources);
    observer("memory", sources.map(Files), notes)
}

fn meminfo(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    named(
        text,
        &[("MemAvailable:", Metric::MemoryAvailable, 1024)],
        push,
    );
}

/// Reads lines such as `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 0`.
fn sockets(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    let page = page_bytes();
    for line in complete_lines(text) {
        let mut line = words(line);
        let protocol = line.next().unwrap_or_default();
        while let (Some(name), Some(word)) = (line.next(), line.next()) {
            let Some(value) = value(word) else { continue };
            match (protocol, name) {
                (b"TCP:", b"mem") => push(Metric::MemoryTcp, value.saturating_mul(page)),
                (b"UDP:", b"mem") => push(Metric::MemoryUdp, value.saturating_mul(page)),
                (b"TCP:", b"orphan") => push(Metric::MemoryTcpOrphans, value),
                (b"TCP:", b"tw") => push(Metric::MemoryTcpTimeWait, value),
                _ => {}
            }
        }
    }
}

fn pressure_of_memory(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    pressure(text, b"some", Metric::PressureMemorySome, push);
    pressure(text, b"full", Metric::PressureMemoryFull, push);
}

fn pressure_of_cpu(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    pressure(text, b"some", Metric::PressureCpuSome, push);
}

fn pressure_of_io(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    pressure(text, b"some", Metric::PressureIoSome, push);
}

/// Reads lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=6351018`, in microseconds.
fn pressure(text: &[u8], of: &[u8], metric: Metric, push: &mut dyn FnMut(Metric, i64)) {
    for line in complete_lines(text) {
        let mut line = words(line);
        if line.next() != Some(of) {
            continue;
        }
        let total_us = line
            .find_map(|word| word.strip_prefix(b"total="))
            .and_then(value);
        if let Some(total_us) = total_us {
            push(metric, total_us.saturating_mul(1000));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::found;

    #[test]
    fn texts_are_read_as_the_kernel_writes_them() {
        let text = "some avg10=0.00 avg60=0.10 avg300=0.00 total=6351018\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=1133398\n";
        let expect = [
            ("pressure_memory_some_ns", 6_351_018_000),
            ("pressure_memory_full_ns", 1_133_398_000),
        ];
        assert_eq!(found(pressure_of_memory, text), expect);
        let expect = [("pressure_cpu_some_ns", 6_351_018_000)];
        assert_eq!(found(pressure_of_cpu, text), expect);
        let text =
            "sockets: used 26\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem 5\nUDP: inuse 0 mem 7\n";
        let page = page_bytes();
        let expect = [
            ("memory_tcp_orphans", 2),
            ("memory_tcp_time_wait", 3),
            ("memory_tcp_bytes", 5 * page),
            ("memory_udp_bytes", 7 * page),
        ];
        assert_eq!(found(sockets, text), expect);
        let text = "MemTotal: 9 kB\nMemAvailable:   24684092 kB\n";
        assert_eq!(
            found(meminfo, text),
            [("memory_available_bytes", 24_684_092 << 10)]
        );
        for bad in [
            "",
            "some\n",
            "some total=x\n",
            "TCP: mem\n",
            "MemAvailable:\n",
        ] {
            assert_eq!(found(pressure_of_memory, bad), []);
            assert_eq!(found(sockets, bad), []);
            assert_eq!(found(meminfo, bad), []);
        }
    }
}
