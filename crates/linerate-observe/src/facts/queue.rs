//! Where the queues of network devices are served: NAPI, interrupt, CPUs and NUMA node.

use std::path::Path;

use linerate_model::fact::{OfQueue, QueueFact};
use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading};
use crate::observer::ObserveConfig;
use crate::places::{cpu_list, node_of_cpu};
use crate::queue::{QueuePlace, queue_places};
use crate::sys::file::read_value;

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    let places = queue_places(&config.proc_root, &config.sys_root);
    for ((device, side, number), place) in places {
        // Loopback, and veth outside of its NAPI, have queues by name only.
        if place == QueuePlace::default() {
            continue;
        }
        let mut add = |what, reading| {
            let fact = QueueFact {
                device: &device,
                side,
                number,
                what,
            };
            facts.add(fact.to_string(), reading);
        };
        if let Some(napi) = place.napi {
            add(OfQueue::Napi, whole(napi));
        }
        let irq = place
            .irq
            .ok_or_else(|| "its interrupt is not reported".to_owned());
        add(OfQueue::Irq, irq.clone().and_then(whole));
        let cpus = irq.and_then(|irq| cpus_of(&config.proc_root, irq));
        add(OfQueue::Cpus, cpus.clone().map(FactValue::Text));
        let node = cpus.and_then(|cpus| node_of(&config.sys_root, &cpus));
        add(OfQueue::Node, node.and_then(whole));
    }
}

fn whole(number: u32) -> Reading {
    Ok(FactValue::Number(number.into(), Unit::None))
}

/// Returns the CPUs that an interrupt goes to: those that the hardware was told, else those allowed.
fn cpus_of(proc_root: &Path, irq: u32) -> Result<String, String> {
    let file = |file: &str| read_value(&proc_root.join(format!("irq/{irq}/{file}")));
    file("effective_affinity_list").or_else(|_| file("smp_affinity_list"))
}

/// Returns the NUMA node of the first of `cpus`.
fn node_of(sys_root: &Path, cpus: &str) -> Result<u32, String> {
    let first = cpu_list(cpus).and_then(|cpus| cpus.first().copied());
    let cpu = first.ok_or_else(|| format!("`{cpus}` is not a list of CPUs"))?;
    node_of_cpu(sys_root, cpu).ok_or_else(|| "sysfs does not report the node of the CPU".to_owned())
}
