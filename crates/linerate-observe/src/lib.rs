//! Reads a host: what its CPUs, threads, protocols and links count, and what it is.
//!
//! Everything here opens the host read-only and holds no opinion on what a number means. Each
//! [`Observer`] reads one kernel interface, answers whether it can here ([`Observer::availability`])
//! and appends counters with the instant of CLOCK_MONOTONIC at which they were read
//! ([`Observer::sample`]). What could not be read is absent, never zero, and the reason is kept.
//!
//! ```
//! use linerate_observe::{ObserveConfig, observers};
//! let config = ObserveConfig {
//!     proc_root: "/proc".into(),
//!     sys_root: "/sys".into(),
//!     lab: false,
//!     host_wide: true,
//!     threads: vec![("main".to_owned(), std::process::id().cast_signed())],
//! };
//! let mut samples = Vec::new();
//! for observer in &mut observers(&config) {
//!     observer.sample(&mut samples);
//! }
//! assert!(samples.iter().all(|sample| sample.at_ns > 0));
//! ```
//!
//! Network devices are asked by netlink, so they are those of the network namespace of the thread
//! that calls [`observers`] or [`facts()`]; files are read below the roots of [`ObserveConfig`], so
//! recorded roots replay.
//!
//! # Cost
//!
//! CPU time of one sample, measured by `cargo run --release --example cost` on a virtual machine
//! with two CPUs of 2.6 GHz and two devices, and on a made root of 64 CPUs, where the kernel's
//! own work of writing the text is left out:
//!
//! | observer | two CPUs | 64 CPUs, reading only | grows with |
//! |---|---|---|---|
//! | cpu | 7 µs | 6 µs (576 values) | CPUs; in the kernel also interrupts |
//! | threads (8) | 28 µs | 7 µs | threads watched |
//! | netstat | 46 µs | 5 µs | in the kernel: CPUs |
//! | link | 18 µs | | devices, some 9 µs each |
//! | softnet | 3 µs | 20 µs (384 values) | CPUs |
//! | qdisc | 6 µs; 67 µs with 65 of a card of 64 queues (455 values) | | disciplines |
//! | irq | 70 µs | 280 µs (64 queues, 264 lines, 256 pairs that move) | CPUs × interrupts; in the kernel as well |
//! | queue | 5 µs; 15 µs with 64 queues of veth (384 values) | | queues; for some drivers what they ask their hardware |
//! | memory, numa, conntrack | 14, 7 and 5 µs | | nodes |
//! | cgroup | one small file, as conntrack | | |
//! | thermal | | 3 µs (2 CPUs) | CPUs, three files each |
//! | hwmon | | 2 µs (4 sensors) | sensors; in the kernel as long as the chip takes |
//! | counters, at a window's edges only | 160 to 200 µs | 90 µs | in the kernel: CPUs |
//! | tcp | 130 to 190 µs; 800 to 950 µs with 1000 sockets | | slots of the kernel's table of connections, then sockets |
//! | udp | 20 µs | | UDP sockets |
//! | perf | | | CPUs, one system call each; nothing where there are no hardware counters |
//! | irq_time, when asked for | 0.2 µs for each soft interrupt | | interrupts |
//! | profile, when asked for | 2 % of each busy CPU | | busy CPUs |
//!
//! At ten samples a second those that always run take 0.3 % of one CPU together, and 1 % with 1000
//! TCP sockets. `tcp`, `udp` and the observers of small files make fewer readings where one takes
//! more than a hundredth of the time between two, so that none takes more than 1 %; the edges of a
//! measured window are read all the same. After the first samples, which
//! size the buffers, a sample allocates the names of links and threads inside its subjects only.

/// The seam between the rooms above and the observers.
mod observer;

/// The samples of one instant, as an observer makes them.
mod readout;

/// The list of all observers.
mod all;

/// Frames of a device as they pass, headers only; off unless asked for.
pub mod capture;
/// How often the control group's CPU quota was used up.
mod cgroup;
/// How full connection tracking is, and what it dropped.
mod conntrack;
/// Time per CPU and mode, from `/proc/stat`.
mod cpu;
/// Interrupts of network devices, from `/proc/interrupts`.
mod irq;
/// Time in interrupts, measured at their tracepoints; only when asked for.
mod irq_time;
/// Network devices, by netlink: counters, and which device owns an address.
mod link;
/// Free memory, memory of sockets, and time that work waited for memory and CPUs.
mod memory;
/// Protocol counters of the network namespace, from `/proc/net/snmp`, `netstat` and `snmp6`: those
/// that are explained with, and by name all that moved between the edges of a window.
mod netstat;
/// What each NUMA node gave and has left.
mod numa;
/// Cycles, instructions and cache misses, where the CPU counts them.
mod perf;
/// Where CPUs are, found by looking again and again; only when asked for.
mod profile;
/// What waits in queueing disciplines and what they dropped, by netlink.
mod qdisc;
/// Packets of every receive and transmit queue, by generic netlink or the driver's statistics.
mod queue;
/// The queues between devices and protocols, from `/proc/net/softnet_stat`.
mod softnet;
/// Clock frequency, temperature and throttling.
mod thermal;

/// All TCP sockets of the network namespace, by socket monitoring.
mod tcp;
/// CPU time of our own threads, from `/proc/self/task`.
mod threads;
/// All UDP sockets of the network namespace, by socket monitoring.
mod udp;

/// What the host is: kernel, CPUs, memory, sysctls, links.
mod facts;

/// Counters that the kernel keeps in 32 bits.
mod carried;
/// An observer of small kernel files.
mod files;
/// How often an expensive reading is made.
mod spacing;

/// Where threads may run, and which CPUs are near a device.
mod places;

/// What the driver of a card says, by ethtool's netlink or its ioctl.
mod card;

/// Attributes of netlink messages, as views of bytes.
mod attributes;
/// Numbers in the kernel's byte order.
mod bytes;
/// Families of generic netlink.
mod generic;
/// The rim to the kernel: clock, files, netlink, ethtool; all unsafe code.
mod sys;
/// Bytes of kernel text files into complete lines, words and numbers.
mod text;

pub use all::{availabilities, cpu_times, observers, probes};
pub use facts::{facts, memory_bytes};
pub use link::link_of_address;
pub use observer::{ObserveConfig, Observer};
pub use places::{boot_id, cpu_list, cpu_range, cpus_allowed, cpus_near};
pub use profile::{Profiler, Scope, load_symbols};
pub use tcp::{FilterError, Process, Processes, ROWS_MAX, SocketFilter, TcpSockets, owner_of};
pub use threads::programs;
