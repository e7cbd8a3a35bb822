//! Which process holds a socket, from `/proc/PID/fd`.
//!
//! The kernel gives a socket's inode and not its process, so every descriptor of every process is
//! looked at: some 2 µs each. That is for a person who watches, once in a while; never for samples.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::totals::SOCKETS_MAX;
use crate::files::numbered;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number, in the pid namespace of the procfs that was read.
    pub pid: u32,
    /// Its name (`comm`), 15 bytes at the most.
    pub name: String,
}

/// The processes that hold sockets, as far as the caller may see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    pub(super) owners: HashMap<u64, Process>,
}

impl Processes {
    /// Looks at every descriptor of every process.
    ///
    /// The descriptors of other users' processes are hidden from a caller without CAP_SYS_PTRACE.
    pub fn scan(proc_root: &Path) -> Self {
        let mut processes = Self::default();
        for pid in numbered(proc_root, "") {
            processes.add_process(pid, &proc_root.join(pid.to_string()));
        }
        processes
    }

    /// Returns the process that holds the socket with `inode`; of several, the first one seen.
    pub fn of_inode(&self, inode: u64) -> Option<&Process> {
        self.owners.get(&inode)
    }

    fn add_process(&mut self, pid: u32, folder: &Path) {
        let descriptors = fs::read_dir(folder.join("fd"));
        let mut name = None;
        for descriptor in descriptors.into_iter().flatten().flatten() {
            let Some(inode) = socket_inode(&descriptor.path()) else {
                continue;
            };
            if self.owners.len() >= SOCKETS_MAX {
                return;
            }
            let name = name.get_or_insert_with(|| {
                let comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
                comm.trim_end().to_owned()
            });
            self.owners.entry(inode).or_insert_with(|| Process {
                pid,
                name: name.clone(),
            });
        }
    }
}

/// Reads `socket:[4242]`.
fn socket_inode(descriptor: &Path) -> Option<u64> {
    let target = fs::read_link(descriptor).ok()?;
    let number = target.to_str()?.strip_prefix("socket:[")?;
    number.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_belong_to_the_process_that_holds_them() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let process = root.path().join("77");
        fs::create_dir_all(process.join("fd")).expect("a directory");
        fs::create_dir_all(root.path().join("78")).expect("a directory");
        fs::create_dir_all(root.path().join("sys")).expect("a directory");
        fs::write(process.join("comm"), "iperf3\n").expect("a file");
        for (descriptor, target) in [("3", "socket:[42]"), ("4", "/dev/null"), ("5", "pipe:[9]")] {
            let link = process.join("fd").join(descriptor);
            std::os::unix::fs::symlink(target, link).expect("a link");
        }
        let processes = Processes::scan(root.path());
        let expect = Process {
            pid: 77,
            name: "iperf3".to_owned(),
        };
        assert_eq!(processes.of_inode(42), Some(&expect));
        assert_eq!(processes.of_inode(9), None);
    }
}
