//! The interrupts of network devices: which device and queue each serves, and where it may run.

use linerate_model::fact::{IrqFact, OfIrq};
use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::{Facts, Reading, number};
use crate::irq::network_irqs;
use crate::observer::ObserveConfig;
use crate::sys::file::read_value;

pub(super) fn read(config: &ObserveConfig, facts: &mut Facts) {
    for found in network_irqs(&config.proc_root, &config.sys_root) {
        let irq = found.irq;
        let mut add = |what, reading| facts.add(IrqFact { irq, what }.to_string(), reading);
        let of_kernel = |file: &str| {
            let path = config.proc_root.join(format!("irq/{irq}/{file}"));
            read_value(&path)
        };
        let text = |file: &str| -> Reading { of_kernel(file).map(FactValue::Text) };
        add(OfIrq::Link, Ok(FactValue::Text(found.device.clone())));
        add(OfIrq::Action, Ok(FactValue::Text(found.action.clone())));
        let queue = found.served.map(|served| FactValue::Text(served.text()));
        add(
            OfIrq::Queue,
            queue.ok_or_else(|| "its name contains no queue".to_owned()),
        );
        add(OfIrq::Cpus, text("smp_affinity_list"));
        add(OfIrq::EffectiveCpus, text("effective_affinity_list"));
        add(
            OfIrq::Node,
            of_kernel("node").and_then(|node| node_of(&node)),
        );
    }
}

/// Reads a NUMA node; the kernel writes -1 for none (include/linux/numa.h, NUMA_NO_NODE).
fn node_of(text: &str) -> Reading {
    match text {
        "-1" => Err("it belongs to no NUMA node".to_owned()),
        node => number(node, Unit::None),
    }
}
