//! NUMA nodes: where memory was taken from, and what each has left.

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use crate::files::{Named, Source, files_observer, named, numbered};
use crate::observer::{ObserveConfig, Observer};
use crate::text::{complete_lines, value, words};

/// Most nodes read: the largest machines have 32.
const NODES_MAX: usize = 64;

/// Opens both files of every node.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let folder = config.sys_root.join("devices/system/node");
    let nodes = numbered(&folder, "node");
    let mut sources = Vec::new();
    for &node in nodes.iter().take(NODES_MAX) {
        let of = folder.join(format!("node{node}"));
        let subject = Subject::Node(node);
        sources.extend(Source::open(&of.join("numastat"), subject.clone(), numastat).ok());
        sources.extend(Source::open(&of.join("meminfo"), subject, meminfo).ok());
    }
    let one = "one node: all memory is equally near, or the hypervisor does not say";
    let note = (nodes.len() == 1).then(|| one.to_owned());
    let absent = || format!("{}: no node", folder.display());
    files_observer("numa", sources, absent, note)
}

/// Reads lines such as `numa_hit 1454260800`, in pages.
fn numastat(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    const WANTED: [Named; 4] = [
        ("numa_hit", Metric::NumaHit, 1),
        ("numa_miss", Metric::NumaMiss, 1),
        ("local_node", Metric::NumaLocal, 1),
        ("other_node", Metric::NumaOther, 1),
    ];
    named(text, &WANTED, push);
}

/// Reads `Node 0 MemFree:         4569420 kB`.
fn meminfo(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    for line in complete_lines(text) {
        let mut line = words(line).skip_while(|word| *word != b"MemFree:").skip(1);
        if let Some(kib) = line.next().and_then(value) {
            push(Metric::NumaFree, kib.saturating_mul(1024));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::found;

    #[test]
    fn texts_are_read_as_the_kernel_writes_them() {
        let text = "numa_hit 14\nnuma_miss 1\nnuma_foreign 9\ninterleave_hit 8\nlocal_node 12\nother_node 3\n";
        let expect = [
            ("numa_hit_pages", 14),
            ("numa_miss_pages", 1),
            ("numa_local_pages", 12),
            ("numa_other_pages", 3),
        ];
        assert_eq!(found(numastat, text), expect);
        let text = "Node 0 MemTotal:       24684092 kB\nNode 0 MemFree:         4569420 kB\n";
        assert_eq!(found(meminfo, text), [("numa_free_bytes", 4_569_420 << 10)]);
        for bad in ["", "numa_hit\n", "numa_hit x\n", "Node 0 MemFree:\n"] {
            assert_eq!(found(numastat, bad), []);
            assert_eq!(found(meminfo, bad), []);
        }
    }
}
