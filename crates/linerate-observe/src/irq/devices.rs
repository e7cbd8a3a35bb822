//! Which interrupts belong to a network device, and where they may run; from sysfs and procfs.

use std::fs;
use std::path::{Path, PathBuf};

use super::action::{Served, served};
use crate::files::{entries, numbered};
use crate::sys::file::read_value;

/// Most interrupts looked at: twice the queues of the largest cards.
const IRQS_MAX: usize = 4096;

/// An interrupt of a network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceIrq {
    pub(crate) irq: u32,
    pub(crate) device: String,
    /// The name that the driver gave it; empty until somebody asked for it.
    pub(crate) action: String,
    /// The queue that it serves, as far as the name tells.
    pub(crate) served: Option<Served>,
}

/// Returns the interrupts of all network devices that sysfs shows, by number.
///
/// A device's interrupts are listed by the PCI function that it is part of: the device's own, or,
/// for virtio, its parent. Where two ports share a function (mlx4), the name of the action decides.
pub(crate) fn network_irqs(proc_root: &Path, sys_root: &Path) -> Vec<DeviceIrq> {
    let mut all: Vec<DeviceIrq> = Vec::new();
    for (device, directory) in devices(sys_root) {
        for irq in irqs_of(&directory) {
            let action = action_of(proc_root, sys_root, irq);
            let named = action.contains(&device);
            let known = all.iter_mut().find(|known| known.irq == irq);
            let found = DeviceIrq {
                irq,
                served: served(&action, &device),
                device: device.clone(),
                action,
            };
            match known {
                Some(known) if named => *known = found,
                Some(_) => {}
                None => all.push(found),
            }
        }
    }
    all.sort_by_key(|found| found.irq);
    all.truncate(IRQS_MAX);
    all
}

/// Returns the network devices with hardware below them, by name.
fn devices(sys_root: &Path) -> Vec<(String, PathBuf)> {
    let all = sys_root.join("class/net");
    let device = |name: String| {
        let directory = fs::canonicalize(all.join(&name).join("device")).ok()?;
        Some((name, directory))
    };
    entries(&all).into_iter().filter_map(device).collect()
}

/// Returns the interrupts that the hardware at `directory` has.
fn irqs_of(directory: &Path) -> Vec<u32> {
    let list = |directory: &Path| numbered(&directory.join("msi_irqs"), "");
    let own = list(directory);
    if !own.is_empty() {
        return own;
    }
    let is_virtio = fs::canonicalize(directory.join("subsystem"))
        .is_ok_and(|subsystem| subsystem.ends_with("bus/virtio"));
    match directory.parent() {
        Some(parent) if is_virtio => list(parent),
        // A device without message-signalled interrupts has one line, where it has any.
        _ => read_value(&directory.join("irq"))
            .ok()
            .and_then(|irq| irq.parse().ok())
            .filter(|irq| *irq != 0)
            .into_iter()
            .collect(),
    }
}

/// Returns the names of the actions of `irq`, separated by commas; empty where nobody says.
fn action_of(proc_root: &Path, sys_root: &Path, irq: u32) -> String {
    let listed = read_value(&sys_root.join(format!("kernel/irq/{irq}/actions")));
    listed.unwrap_or_else(|_| {
        // Before Linux 4.10, or without sysfs: a folder for each action.
        let entries = fs::read_dir(proc_root.join(format!("irq/{irq}")));
        let folders = entries.into_iter().flatten().flatten();
        let names = folders.filter(|entry| entry.path().is_dir());
        let names: Vec<_> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.join(",")
    })
}
