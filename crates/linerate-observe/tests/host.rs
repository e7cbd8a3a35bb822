//! Observers and facts on the host that runs the test.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_model::host::FactValue;
use linerate_model::metric::{Kind, Metric};
use linerate_model::sample::{Sample, Subject};
use linerate_observe::{ObserveConfig, Observer, facts, link_of_address, observers};

/// Payload sent through loopback, in bytes.
const PAYLOAD_BYTES: usize = 4 << 20;
/// Room for what is counted in ticks of 10 ms and updated at the tick, in ns.
const TICKS_ROOM_NS: i64 = 100_000_000;

fn config(threads: Vec<(String, i32)>) -> ObserveConfig {
    ObserveConfig {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        lab: false,
        host_wide: true,
        threads,
    }
}

fn sample(observers: &mut [Box<dyn Observer>]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for observer in observers {
        observer.sample(&mut samples);
    }
    samples
}

type Readings = HashMap<(Subject, Metric), (u64, i64)>;

fn readings(observers: &mut [Box<dyn Observer>]) -> Readings {
    let by_name = |sample: Sample| {
        (
            (sample.subject, sample.metric),
            (sample.at_ns, sample.value),
        )
    };
    sample(observers).into_iter().map(by_name).collect()
}

fn grown(begin: &Readings, end: &Readings, subject: &Subject, metric: Metric) -> i64 {
    let key = (subject.clone(), metric);
    end[&key].1 - begin[&key].1
}

/// Keeps this thread's CPU busy.
fn spin(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::black_box((0..1000u64).sum::<u64>());
    }
}

/// Sends the payload from one end of a loopback connection to the other.
fn send_through_loopback() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("its address");
    let sender = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(&vec![7; PAYLOAD_BYTES]).expect("all sent");
    });
    let (mut stream, _) = listener.accept().expect("the connection");
    let received = stream.read_to_end(&mut Vec::new()).expect("all received");
    sender.join().expect("the sender ends");
    assert_eq!(received, PAYLOAD_BYTES);
}

#[test]
fn loopback_traffic_is_counted_by_netlink_and_by_tcp() {
    let mut observers = observers(&config(Vec::new()));
    let begin = readings(&mut observers);
    send_through_loopback();
    let end = readings(&mut observers);

    let lo = Subject::Link("lo".to_owned());
    let payload = PAYLOAD_BYTES as i64;
    assert!(grown(&begin, &end, &lo, Metric::LinkRxBytes) >= payload);
    assert!(grown(&begin, &end, &lo, Metric::LinkTxBytes) >= payload);
    // A segment of loopback carries at most 64 KiB.
    let segments = payload / 65_536;
    assert!(grown(&begin, &end, &lo, Metric::LinkTxPackets) >= segments);
    assert!(grown(&begin, &end, &Subject::Host, Metric::SnmpTcpInSegs) >= segments);
    assert!(grown(&begin, &end, &Subject::Host, Metric::SnmpTcpOutSegs) >= segments);
}

#[test]
fn every_observer_reads_and_its_counters_grow() {
    let mut observers = observers(&config(vec![own_thread("main")]));
    let begin = readings(&mut observers);
    send_through_loopback();
    let end = readings(&mut observers);
    for observer in &observers {
        let availability = observer.availability();
        // Virtual machines hide hardware, not every host has a card, and not every one shows its
        // control groups; all of it is said.
        if !["perf", "thermal", "hwmon", "queue", "cgroup"]
            .contains(&availability.observer.as_str())
        {
            assert_eq!(availability.missing, None, "{availability:?}");
        }
    }
    for (key, (begin_ns, begin_value)) in &begin {
        let Some((end_ns, end_value)) = end.get(key) else {
            continue;
        };
        assert!(end_ns > begin_ns, "{key:?}");
        // Idle time may go backwards by a little, as the kernel's own documentation says.
        let may_go_back = matches!(key.1, Metric::CpuIdle | Metric::CpuIoWait);
        if key.1.kind() == Kind::Counter && !may_go_back {
            assert!(end_value >= begin_value, "{key:?}");
        }
    }
}

fn own_thread(name: &str) -> (String, i32) {
    (name.to_owned(), nix::unistd::gettid().as_raw())
}

#[test]
fn the_modes_of_a_cpu_add_up_to_the_time_that_passed() {
    let mut observers = observers(&config(Vec::new()));
    let begin = readings(&mut observers);
    spin(Duration::from_secs(1));
    let end = readings(&mut observers);

    let modes = Metric::ALL
        .iter()
        .filter(|metric| metric.name().starts_with("cpu_") && **metric != Metric::CpuGuest);
    let modes: Vec<_> = modes.copied().collect();
    assert_eq!(modes.len(), 8);
    let cpus = begin.keys().filter(|key| key.1 == Metric::CpuIdle);
    for cpu in cpus.map(|key| &key.0) {
        let key = (cpu.clone(), Metric::CpuIdle);
        let passed_ns = (end[&key].0 - begin[&key].0) as i64;
        let counted_ns: i64 = modes
            .iter()
            .map(|&mode| grown(&begin, &end, cpu, mode))
            .sum();
        let room_ns = passed_ns / 2 + TICKS_ROOM_NS;
        assert!(
            (counted_ns - passed_ns).abs() <= room_ns,
            "{cpu}: counted {counted_ns} ns of {passed_ns} ns"
        );
    }
}

/// A thread that tells its id and then does what it is told, until the sender is dropped.
struct Worker {
    tid: i32,
    orders: Sender<Duration>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start() -> Self {
        let (orders, received) = channel();
        let (report, done) = channel();
        let (tell_tid, told_tid) = channel();
        let thread = std::thread::spawn(move || {
            tell_tid.send(nix::unistd::gettid().as_raw()).expect("told");
            for length in received {
                spin(length);
                report.send(()).expect("reported");
            }
        });
        Self {
            tid: told_tid.recv().expect("the thread's id"),
            orders,
            done,
            thread,
        }
    }

    fn spin(&self, length: Duration) {
        self.orders.send(length).expect("the thread lives");
        self.done.recv().expect("the thread spun");
    }

    /// Ends the thread, and returns when the kernel has taken it from its list, which is a little
    /// after a join returns.
    fn end(self) {
        drop(self.orders);
        self.thread.join().expect("the thread ends");
        let task = std::path::PathBuf::from(format!("/proc/self/task/{}", self.tid));
        while task.exists() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_time_of_a_thread_is_its_own_and_ends_with_it() {
    let worker = Worker::start();
    let config = ObserveConfig {
        host_wide: false,
        ..config(vec![
            ("worker-0".to_owned(), worker.tid),
            own_thread("main"),
        ])
    };
    let mut observers = observers(&config);
    let begin = readings(&mut observers);
    worker.spin(Duration::from_millis(300));
    let end = readings(&mut observers);

    let of = |name: &str, metric| grown(&begin, &end, &Subject::Thread(name.to_owned()), metric);
    let run_ns = of("worker-0", Metric::ThreadRun);
    let wait_ns = of("worker-0", Metric::ThreadWait);
    let mode_ns = of("worker-0", Metric::ThreadUser) + of("worker-0", Metric::ThreadSystem);
    // It span for 300 ms, in which it ran or waited to run.
    assert!(
        run_ns + wait_ns >= 300_000_000 - TICKS_ROOM_NS,
        "{run_ns} + {wait_ns}"
    );
    assert!(
        (mode_ns - run_ns).abs() <= TICKS_ROOM_NS,
        "{mode_ns} and {run_ns}"
    );
    assert!(of("main", Metric::ThreadRun) < run_ns);

    worker.end();
    let after = readings(&mut observers);
    assert!(
        after
            .keys()
            .all(|key| key.0 == Subject::Thread("main".to_owned()))
    );
    let threads = observers[1].availability();
    assert_eq!(threads.missing, None);
    let note = threads.note.unwrap_or_default();
    assert_eq!(note, "thread worker-0 has ended");
}

#[test]
fn a_thread_that_does_not_exist_is_told_and_not_read() {
    let config = config(vec![("nobody".to_owned(), i32::MAX)]);
    let mut observers = observers(&config);
    let missing = observers[1].availability().missing.unwrap_or_default();
    assert!(missing.contains("nobody"), "{missing}");
    let samples = sample(&mut observers);
    assert!(
        samples
            .iter()
            .all(|s| !s.metric.name().starts_with("thread_"))
    );
}

#[test]
fn loopback_owns_its_addresses() {
    for address in ["127.0.0.1", "127.0.0.9", "::ffff:127.0.0.1"] {
        let address: IpAddr = address.parse().expect("an address");
        assert_eq!(link_of_address(address).as_deref(), Some("lo"), "{address}");
    }
    // An address of the documentation's range is no host's own.
    let foreign: IpAddr = "198.51.100.7".parse().expect("an address");
    assert_eq!(link_of_address(foreign), None);
}

#[test]
fn facts_of_this_host_hold_together() {
    let snapshot = facts(&config(Vec::new()));
    let parallelism = std::thread::available_parallelism().expect("a number of CPUs");
    let online = snapshot.number("cpu.online").expect("the number of CPUs");
    assert!(online >= parallelism.get() as f64);
    assert!(snapshot.number("memory.total_bytes").expect("memory") > 1e8);
    assert!(snapshot.number("link.lo.mtu_bytes").expect("an MTU") >= 1280.0);
    assert_eq!(snapshot.text("link.lo.kind"), Some("loopback"));
    assert_eq!(snapshot.text("link.lo.address"), Some("00:00:00:00:00:00"));
    let speed = snapshot.value("link.lo.speed_bps");
    assert!(matches!(speed, Some(FactValue::Missing(_))), "{speed:?}");
    let offload = snapshot.text("link.lo.tso");
    assert!(matches!(offload, Some("on" | "off")), "{offload:?}");
    let release = snapshot.text("kernel.release").expect("a release");
    let uname = nix::sys::utsname::uname().expect("uname");
    assert_eq!(Some(release), uname.release().to_str());
}
