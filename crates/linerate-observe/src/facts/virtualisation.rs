//! Whether a hypervisor is below this host.
//!
//! 1. The `hypervisor` flag of x86 is CPUID leaf 1, ECX bit 31, which hypervisors set and hardware
//!    never does: where the CPU has flags, they decide.
//! 2. Xen names itself in sysfs, even to a host without the flag.
//! 3. Firmware names the product, which is `Standard PC` or `VMware7,1` in a virtual machine and
//!    the maker's name on hardware; on other architectures it is often all there is.

use std::path::Path;

use linerate_model::host::FactValue;

use super::Reading;
use super::cpu::CpuInfo;
use crate::sys::file::read_value;

/// Says what shows that this is a virtual machine, `none` when the CPU shows that it is not.
pub(super) fn virtualisation(cpuinfo: &CpuInfo, sys_root: &Path) -> Reading {
    let mut signs = Vec::new();
    let flags = cpuinfo.field("flags").ok();
    if flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")) {
        signs.push("hypervisor flag of the CPU".to_owned());
    }
    if let Ok(hypervisor) = read_value(&sys_root.join("hypervisor/type")) {
        signs.push(format!("hypervisor {hypervisor}"));
    }
    if flags.is_some() && signs.is_empty() {
        return Ok(FactValue::Text("none".to_owned()));
    }
    signs.extend(product(sys_root).map(|product| format!("product {product}")));
    if signs.is_empty() {
        return Err("neither a CPU flag nor firmware reports one".to_owned());
    }
    Ok(FactValue::Text(signs.join("; ")))
}

/// Returns the maker and the product as firmware names them.
fn product(sys_root: &Path) -> Option<String> {
    let firmware = sys_root.join("class/dmi/id");
    let names = ["sys_vendor", "product_name"].map(|file| read_value(&firmware.join(file)).ok());
    let names: Vec<_> = names.into_iter().flatten().collect();
    (!names.is_empty()).then(|| names.join(" "))
}
