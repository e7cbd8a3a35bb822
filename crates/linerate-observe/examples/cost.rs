//! Measures what one sample of each observer costs, in CPU time of the sampling thread.
//!
//! On this host, on this host with 1000 TCP sockets, and on the made root of 64 CPUs and 8 threads,
//! where the kernel's work of writing the text is left out. A share is of one CPU at ten samples a
//! second; every reading is made, also one that an observer would leave out to save CPU time.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::cell::Cell;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use linerate_observe::{ObserveConfig, Observer, observers};
use nix::time::{ClockId, clock_gettime};

/// Samples measured for each observer.
const SAMPLES: u32 = 500;
/// Connections made to measure what sockets cost.
const CONNECTIONS: usize = 500;
/// Samples a second that the share is given for.
const RATE_HZ: f64 = 10.0;

fn main() {
    let own = (0..8)
        .map(|i| (format!("worker-{i}"), nix::unistd::gettid().as_raw()))
        .collect();
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/roots/made-64-cpus");
    let threads = (0..8).map(|i| (format!("worker-{i}"), 1000 + i)).collect();
    let still = || {};
    measure("this host", Path::new("/"), Vec::clone(&own), &still);
    let sockets = connections(CONNECTIONS);
    let title = "this host with 1000 TCP sockets";
    measure(title, Path::new("/"), own, &still);
    drop(sockets);
    measure("made root of 64 CPUs", &made, threads, &still);
    if let Ok(root) = made_interrupts() {
        // Four CPUs take each interrupt of the card after the first reading: 256 pairs.
        let turn = Cell::new(0);
        let taken = || {
            turn.set(turn.get() + 1);
            let is_taken = |irq, cpu| irq < 64 && cpu % 16 == 0;
            let text = interrupts(|irq, cpu| u32::from(is_taken(irq, cpu)) * turn.get());
            let _ = fs::write(root.path().join("proc/interrupts"), text);
        };
        let title = "made root of 64 queues and 64 CPUs";
        measure(title, root.path(), Vec::new(), &taken);
    }
}

/// Makes a root whose card has 64 queues with an interrupt each, among 200 others, on 64 CPUs.
fn made_interrupts() -> std::io::Result<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    let of_card = root.path().join("sys/class/net/eth0/device/msi_irqs");
    fs::create_dir_all(&of_card)?;
    fs::create_dir_all(root.path().join("proc"))?;
    for irq in 0..64 {
        fs::write(of_card.join(irq.to_string()), "msix")?;
        let folder = root.path().join(format!("sys/kernel/irq/{irq}"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("actions"), format!("eth0-TxRx-{irq}"))?;
    }
    fs::write(root.path().join("proc/interrupts"), interrupts(|_, _| 0))?;
    Ok(root)
}

/// Returns the text of 264 interrupts on 64 CPUs, each count higher by what `more` says.
fn interrupts(more: impl Fn(u32, u32) -> u32) -> String {
    let mut text: String = (0..64).map(|cpu| format!("CPU{cpu} ")).collect();
    for irq in 0..264 {
        let counts: String = (0..64)
            .map(|cpu| format!(" {:10}", irq * 1000 + cpu + more(irq, cpu)))
            .collect();
        text += &format!("\n{irq}:{counts} PCI-MSIX-0000:3b:00.0 {irq}-edge eth0-TxRx-{irq}");
    }
    text + "\n"
}

/// Measures on `root`; what `after_first` does comes between the first reading and the others.
fn measure(title: &str, root: &Path, threads: Vec<(String, i32)>, after_first: &dyn Fn()) {
    let config = ObserveConfig {
        proc_root: root.join("proc"),
        sys_root: root.join("sys"),
        lab: false,
        host_wide: true,
        threads,
    };
    println!("{title}:");
    for mut observer in observers(&config) {
        let (samples, cost) = cost_of(observer.as_mut(), after_first);
        println!(
            "  {:8} {:5} values {:7.1} µs a sample  {:.3} % of one CPU",
            observer.availability().observer,
            samples,
            cost.as_secs_f64() * 1e6,
            cost.as_secs_f64() * RATE_HZ * 100.0,
        );
    }
}

/// Returns how many values one sample has, and the CPU time that it takes.
fn cost_of(observer: &mut dyn Observer, after_first: &dyn Fn()) -> (usize, Duration) {
    let mut out = Vec::new();
    observer.sample_edge(&mut out);
    after_first();
    observer.sample_edge(&mut out);
    let begin = thread_cpu_time();
    for _ in 0..SAMPLES {
        out.clear();
        observer.sample_edge(&mut out);
    }
    (out.len(), (thread_cpu_time() - begin) / SAMPLES)
}

/// Makes connections over loopback, each of which has two sockets.
fn connections(count: usize) -> Vec<(TcpStream, TcpStream)> {
    let made = || -> std::io::Result<Vec<_>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let to = listener.local_addr()?;
        let one = |_| Ok((TcpStream::connect(to)?, listener.accept()?.0));
        (0..count).map(one).collect()
    };
    made().unwrap_or_default()
}

fn thread_cpu_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}
