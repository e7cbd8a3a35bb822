//! Time in softirqs and hardirqs, measured at the tracepoints of their entries and exits.
//!
//! `/proc/stat` charges whole ticks to whatever the tick interrupts: of softirqs, which begin
//! right behind an interrupt, it sees up to half as much again as there is. Here two clocks are read
//! for each, by a program inside the kernel that adds up per CPU and vector (`program`). No event
//! travels to user space; with perf records each would be written, read and understood once more,
//! tens of megabytes a second at the rates that matter here.
//!
//! What it costs: 0.2 µs for each soft interrupt and each device interrupt, whether or not anybody
//! reads, which is 2 % of a CPU at 100 000 a second (`cargo run --release --example probes`). So it
//! is off unless asked for.
//!
//! What is not in it: interrupts without a handler of a device (timer, calls between CPUs), and
//! network polling in threads of its own (threaded NAPI), which is no soft interrupt.

mod program;

use linerate_model::host::IRQ_TIME_OBSERVER;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::bpf::{Attached, PerCpu, attach, why_not};
use crate::sys::clock::timed;

/// What the programs have added up, and the programs, which count as long as this lives.
struct Counting {
    times: PerCpu,
    words: Vec<u64>,
    _programs: Vec<Attached>,
}

/// Hangs the programs on their tracepoints.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let counting = Counting::begin().map_err(|error| why_not(&error));
    let notes = config.lab_note("interrupts are the machine's");
    observer(IRQ_TIME_OBSERVER, counting, notes)
}

impl Counting {
    fn begin() -> std::io::Result<Self> {
        let times = PerCpu::new(program::VALUE_BYTES)?;
        let programs = program::programs(&times)
            .into_iter()
            .map(|(tracepoint, program)| attach(tracepoint, &program))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            times,
            words: Vec::new(),
            _programs: programs,
        })
    }
}

impl Interface for Counting {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let (read, at_ns) = timed(|| self.times.read(&mut self.words));
        read.map_err(|error| error.to_string())?;
        push_samples(&self.words, at_ns, out);
        Ok(())
    }
}

const _: () = assert!(Metric::SOFTIRQ_VECTORS.len() + 1 == program::SLOTS);

/// The metric of each slot of the programs: the vectors, then hardirqs.
fn metrics() -> impl Iterator<Item = Metric> {
    let vectors = Metric::SOFTIRQ_VECTORS.into_iter();
    vectors.chain([Metric::HardIrqHandlers])
}

fn push_samples(words: &[u64], at_ns: u64, out: &mut Vec<Sample>) {
    let mut readout = Readout::at(at_ns, out);
    for (cpu, words) in (0..).zip(words.chunks_exact(program::VALUE_BYTES / 8)) {
        for (slot, metric) in metrics().enumerate() {
            readout.push(metric, Subject::Cpu(cpu), words[program::total_word(slot)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_samples_of_each_cpu() {
        let mut words = vec![0; 2 * program::VALUE_BYTES / 8];
        words[program::total_word(3)] = 700;
        words[program::VALUE_BYTES / 8 + program::total_word(10)] = 50;
        let mut samples = Vec::new();
        push_samples(&words, 9, &mut samples);
        assert_eq!(samples.len(), 2 * program::SLOTS);
        let of = |cpu, metric| {
            let subject = Subject::Cpu(cpu);
            let mut all = samples.iter();
            all.find(|s| s.subject == subject && s.metric == metric)
                .map(|s| s.value)
        };
        assert_eq!(of(0, Metric::SoftIrqNetRx), Some(700));
        assert_eq!(of(1, Metric::SoftIrqNetRx), Some(0));
        assert_eq!(of(1, Metric::HardIrqHandlers), Some(50));
    }

    #[test]
    fn soft_interrupts_are_timed_here_where_they_may_be() {
        let config = ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: false,
            host_wide: true,
            threads: Vec::new(),
        };
        let mut observer = open(&config);
        if let Some(why) = observer.availability().missing {
            // Refused to users without the right, and the reason says so.
            assert!(!why.is_empty());
            return;
        }
        let total = |observer: &mut dyn Observer, metric| {
            let mut samples = Vec::new();
            observer.sample(&mut samples);
            let of = samples.iter().filter(|sample| sample.metric == metric);
            of.map(|sample| sample.value).sum::<i64>()
        };
        let before = total(observer.as_mut(), Metric::SoftIrqNetRx);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("its address");
        let mut buffer = [0; 64];
        for _ in 0..200 {
            socket.send_to(&[1], address).expect("sent");
            socket.recv(&mut buffer).expect("received");
        }
        let spent = total(observer.as_mut(), Metric::SoftIrqNetRx) - before;
        // 200 datagrams through loopback, each at least 100 ns and together below a second.
        assert!((20_000..1_000_000_000).contains(&spent), "{spent} ns");
    }
}
