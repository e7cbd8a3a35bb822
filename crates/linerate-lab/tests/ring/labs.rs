//! What a lab promises, held against what traffic and processes find.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linerate_lab::named::ProcessKey;
use linerate_lab::{Entered, HostSpec, Lab, LabError, LabSpec, LinkSpec, UpSpec, enter};
use linerate_model::wire::Wire;
use linerate_model::{BitsPerSec, Bytes, Nanos};

use crate::probe::{self, Probe};
use crate::{SCENARIO, SKIPPED};

/// How long what was killed may take to be gone.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// Returns a lab of hosts `a` and `b`; `link` is that of `b`, and `a` has its rate and MTU.
fn pair(link: LinkSpec) -> LabSpec {
    let plain = LinkSpec {
        rate: link.rate,
        mtu_bytes: link.mtu_bytes,
        ..LinkSpec::default()
    };
    let host = |name: &str, link| HostSpec {
        name: name.to_owned(),
        link,
    };
    LabSpec {
        name: "ring".to_owned(),
        hosts: vec![host("a", plain), host("b", link)],
    }
}

fn up(link: LinkSpec, entered: &Entered) -> Lab {
    Lab::up(&pair(link), entered).expect("the lab comes up")
}

fn payload_limit(rate: BitsPerSec, mtu_bytes: u32) -> f64 {
    let wire = Wire {
        rate,
        mtu_bytes: u64::from(mtu_bytes),
        // Timestamps are on by default.
        tcp_option_bytes: 12,
        ipv6: false,
        udp: false,
    };
    wire.payload_limit_at(wire.payload_bytes_max()).0
}

/// How often what other programs on the machine can only make worse is measured anew.
const TRIES: usize = 4;

/// Measures a share until it is `low` or more; `high` or more is never right.
#[track_caller]
fn at_least(low: f64, high: f64, mut measure: impl FnMut() -> f64) {
    let mut found = Vec::new();
    while found.len() < TRIES && found.last().is_none_or(|last| *last < low) {
        let share = measure();
        assert!(share < high, "{share} of what it can be");
        found.push(share);
    }
    assert!(
        found.last().is_some_and(|last| *last >= low),
        "{found:?}: each below {low}"
    );
}

/// At 20 Mbit/s the bucket covers 6 ms, so that even a busy machine keeps up and the lower
/// bound is one. The source keeps less in flight than the queue holds: a lost segment would hold
/// back what arrives behind it, and hand it over in a window that it did not arrive in.
pub fn rate(entered: &Entered) {
    for mtu_bytes in [1500, 9000] {
        let rate = BitsPerSec(2e7);
        let link = LinkSpec {
            rate: Some(rate),
            mtu_bytes,
            ..LinkSpec::default()
        };
        let lab = up(link, entered);
        let limit = payload_limit(rate, mtu_bytes);
        for hosts in [["a", "b"], ["b", "a"]] {
            at_least(0.97, 1.01, || {
                let found = probe::measure(&lab, ["tcp-sink", "tcp-gentle"], hosts, 1500);
                let share = found / limit;
                println!("MTU {mtu_bytes}: {found:.0} bit/s, {share:.4} of the wire");
                share
            });
        }
        lab.down().expect("the lab goes down");
    }
}

/// Returns a lab of hosts `a`, of which the link limits nothing, and `b` behind `link`.
fn behind(link: LinkSpec, entered: &Entered) -> Lab {
    let mut spec = pair(link);
    spec.hosts[0].link = LinkSpec::default();
    Lab::up(&spec, entered).expect("the lab comes up")
}

/// Each way has its own rate, with and without a modem that holds what waits on the way up.
pub fn asymmetry(entered: &Entered) {
    let (down, up) = (BitsPerSec(2e7), BitsPerSec(5e6));
    for queue in [None, Some(Bytes(100_000))] {
        let link = LinkSpec {
            rate: Some(down),
            up: UpSpec {
                rate: Some(up),
                queue,
                ..UpSpec::default()
            },
            ..LinkSpec::default()
        };
        let lab = behind(link, entered);
        for (hosts, rate) in [(["b", "a"], down), (["a", "b"], up)] {
            at_least(0.97, 1.01, || {
                let found = probe::measure(&lab, ["tcp-sink", "tcp-gentle"], hosts, 1500);
                let share = found / payload_limit(rate, 1500);
                println!("to {}: {found:.0} bit/s, {share:.4} of {rate}", hosts[0]);
                share
            });
        }
        lab.down().expect("the lab goes down");
    }
}

/// A queue of so many bytes keeps so many, of datagrams that are 106 bytes for the kernel, beside the 16 KiB
/// that the bucket passes at once, of which each takes 130; the rest is dropped. What the line carries while
/// they are sent comes on top.
pub fn queue(entered: &Entered) {
    let queue = Bytes(100_000);
    let kept = 100_000 / 106 + 16_384 / 130;
    let sent = 5000;
    for way in [["b", "a"], ["a", "b"]] {
        let link = LinkSpec {
            rate: Some(BitsPerSec(1e6)),
            queue: Some(queue),
            up: UpSpec {
                queue: Some(queue),
                ..UpSpec::default()
            },
            ..LinkSpec::default()
        };
        let mut counts = Vec::new();
        while counts.len() < TRIES && counts.last().is_none_or(|last| *last > kept + kept / 10) {
            // The bucket is full when the line is new.
            let lab = behind(link.clone(), entered);
            let count = probe::measure(&lab, ["udp-count", "udp-flood"], way, sent) as u64;
            println!("to {}: {count} of {sent} came, {kept} were kept", way[0]);
            // What hosts and switches ask each other first waits there, too.
            assert!(count + 20 >= kept, "{count} of {kept} came");
            counts.push(count);
            lab.down().expect("the lab goes down");
        }
        let last = counts.last().copied().unwrap_or(sent);
        assert!(last <= kept + kept / 10, "{counts:?}, not {kept}");
    }
}

/// A machine may be too busy for 1 Gbit/s; that much never passes is certain.
pub fn gigabit(entered: &Entered) {
    let rate = BitsPerSec(1e9);
    let link = LinkSpec {
        rate: Some(rate),
        ..LinkSpec::default()
    };
    let lab = up(link, entered);
    let limit = payload_limit(rate, 1500);
    let found = probe::measure(&lab, ["tcp-sink", "tcp-source"], ["a", "b"], 2000);
    let share = found / limit;
    println!("{found:.0} bit/s, {share:.4} of the wire");
    assert!(share < 1.005, "{share} of the wire's {limit}");
}

/// 64 bytes of payload are 106 counted bytes and 130 on the wire.
pub fn short_frames(entered: &Entered) {
    let link = LinkSpec {
        rate: Some(BitsPerSec(1e6)),
        ..LinkSpec::default()
    };
    let lab = up(link, entered);
    let begin = Instant::now();
    let sent = 3000;
    let counted = probe::measure(&lab, ["udp-count", "udp-burst"], ["a", "b"], sent);
    assert_eq!(counted, sent as f64, "nothing is lost");
    let wire_s = sent as f64 * 130.0 * 8.0 / 1e6;
    // The bucket holds 16 KiB, which pass at once; questions and starting only add time.
    let least_s = wire_s - 16_384.0 * 8.0 / 1e6;
    let found_s = begin.elapsed().as_secs_f64();
    assert!(found_s > least_s, "{found_s} s, the wire needs {least_s} s");
}

/// The round trip is what the one link that delays takes both ways, and bulk traffic still flows; also where the
/// ways differ and frames wait in a modem.
pub fn delay(entered: &Entered) {
    let ms = Nanos::from_ms;
    let far = UpSpec {
        delay: Some(ms(6)),
        queue: Some(Bytes(128 << 10)),
        ..UpSpec::default()
    };
    for (delay, up_spec) in [(ms(5), UpSpec::default()), (ms(4), far)] {
        let rate = BitsPerSec(2e7);
        let link = LinkSpec {
            rate: Some(rate),
            delay,
            up: up_spec,
            ..LinkSpec::default()
        };
        let lab = up(link, entered);
        // The share of its time that a round trip spends in the two delays.
        at_least(10.0 / 11.5, 1.000_001, || {
            let rtt_ms = probe::measure(&lab, ["udp-echo", "udp-ping"], ["a", "b"], 100) / 1e6;
            println!("round trip {rtt_ms} ms");
            10.0 / rtt_ms
        });
        at_least(0.9, 1.01, || {
            let found = probe::measure(&lab, ["tcp-sink", "tcp-source"], ["a", "b"], 1500);
            let share = found / payload_limit(rate, 1500);
            println!("{share:.4} of the wire, {:?}", lab.relay_counts());
            share
        });
        lab.down().expect("the lab goes down");
    }
}

/// One direction of one link loses a tenth of what is sent.
pub fn loss(entered: &Entered) {
    let link = LinkSpec {
        rate: Some(BitsPerSec(1e9)),
        loss: 0.1,
        ..LinkSpec::default()
    };
    let lab = up(link, entered);
    let sent = 20_000;
    let counted = probe::measure(&lab, ["udp-count", "udp-burst"], ["a", "b"], sent);
    let lost = sent as f64 - counted;
    let mean = 0.1 * sent as f64;
    let sigma = (mean * 0.9).sqrt();
    println!("{lost} of {sent} lost, {:?}", lab.relay_counts());
    assert_eq!(lab.relay_counts()[0].dropped, 0, "the relay kept up");
    assert!((lost - mean).abs() < 5.0 * sigma, "{lost} lost, not {mean}");
}

/// A tenth of what is sent in either direction comes twice.
pub fn duplicates(entered: &Entered) {
    let link = LinkSpec {
        duplicate: 0.1,
        ..LinkSpec::default()
    };
    let lab = up(link, entered);
    let sent = 20_000;
    let counted = probe::measure(&lab, ["udp-count", "udp-burst"], ["a", "b"], sent);
    let (count, mean) = (&lab.relay_counts()[0], 0.1 * sent as f64);
    let twice = counted - sent as f64;
    println!("{twice} of {sent} twice, {count:?}");
    assert_eq!((count.lost, count.dropped), (0, 0), "the relay kept up");
    assert!((twice - mean).abs() < 5.0 * (mean * 0.9).sqrt());
}

/// TCP's own counters tell what comes twice (TCPDSACKOldSent: data that is there already) and what comes late
/// (TCPOFOQueue: data behind a gap), and neither where nothing does.
pub fn disorder(entered: &Entered) {
    let counted = |reorder, duplicate| {
        let link = LinkSpec {
            rate: Some(BitsPerSec(2e7)),
            delay: Nanos::from_ms(2),
            jitter: Nanos::from_ms(2),
            reorder,
            duplicate,
            ..LinkSpec::default()
        };
        let lab = up(link, entered);
        probe::measure(&lab, ["tcp-sink", "tcp-gentle"], ["b", "a"], 500);
        let count = &lab.relay_counts()[0];
        let of = |name| netstat(&lab, name);
        let found = (of("TCPOFOQueue"), of("TCPDSACKOldSent"));
        println!("{reorder} {duplicate}: {found:?}, {count:?}");
        assert_eq!((count.lost, count.dropped), (0, 0));
        lab.down().expect("the lab goes down");
        found
    };
    assert_eq!(counted(0.0, 0.0), (0, 0), "jitter keeps the order");
    let (late, twice) = counted(0.05, 0.0);
    assert!(late > 10 && twice <= late, "{late} {twice}");
    let (late, twice) = counted(0.0, 0.05);
    assert!(late == 0 && twice > 10, "{late} {twice}");
}

/// Reads a counter of TCP in host `b`.
fn netstat(lab: &Lab, name: &str) -> u64 {
    let text = output(lab, "cat /proc/net/netstat");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut words = || lines.next().expect("two lines").split_whitespace();
    let (names, values) = (words(), words());
    let found = names.zip(values).find(|(found, _)| *found == name);
    found
        .expect("the counter is known")
        .1
        .parse()
        .expect("a number")
}

/// Without a rate, or with a high one, what is lost in either direction are frames and no superframes of them.
pub fn single_frames(entered: &Entered) {
    for rate in [None, Some(BitsPerSec(1e10))] {
        let link = LinkSpec {
            rate,
            loss: 0.0001,
            ..LinkSpec::default()
        };
        for hosts in [["a", "b"], ["b", "a"]] {
            let frames_of = |names: [&str; 2], amount: u64| {
                let lab = up(link.clone(), entered);
                let found = probe::measure(&lab, names, hosts, amount);
                let count = &lab.relay_counts()[0];
                println!("{names:?} {hosts:?}: {found:.0}, {count:?}");
                (found, (count.forwarded + count.lost + count.dropped) as f64)
            };
            let (bps, frames) = frames_of(["tcp-sink", "tcp-source"], 500);
            let bytes = bps / 8.0 * 0.5;
            assert!(
                bytes > 0.0 && frames * 1448.0 > bytes,
                "{frames} of {bytes} bytes"
            );
            let (_, frames) = frames_of(["udp-count", "udp-superframes"], 5000);
            assert!(frames >= 5000.0, "{frames} of 5000 datagrams");
        }
    }
}

/// TCP sees the MTU; the device has its queues.
pub fn mtu_and_queues(entered: &Entered) {
    let link = LinkSpec {
        mtu_bytes: 9000,
        queues: 4,
        ..LinkSpec::default()
    };
    let lab = up(link, entered);
    let bytes = probe::measure(&lab, ["tcp-sink", "tcp-segment"], ["a", "b"], 1);
    assert_eq!(bytes, 9000.0 - 20.0 - 20.0 - 12.0);
    if lab.degraded().is_empty() {
        let queues = output(&lab, "ls /sys/class/net/eth0/queues");
        let queues: Vec<&str> = queues.split_whitespace().collect();
        assert_eq!(queues, ["rx-0", "rx-1", "rx-2", "rx-3", "tx-0"]);
    }
}

fn shell(lab: &Lab, text: &str) -> Command {
    let mut command = lab.command("b", "sh").expect("the host exists");
    command.args(["-c", text]);
    command
}

fn output(lab: &Lab, text: &str) -> String {
    let output = shell(lab, text).output().expect("a shell starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Exit codes, signals, errors and the working directory pass as if there were no escort.
pub fn escort(entered: &Entered) {
    let lab = up(LinkSpec::default(), entered);
    let code = |text| shell(&lab, text).status().expect("a shell starts");
    assert_eq!(code("exit 0").code(), Some(0));
    assert_eq!(code("exit 42").code(), Some(42));
    assert_eq!(code("kill -TERM $$").signal(), Some(libc_sigterm()));
    assert_eq!(
        output(&lab, "hostname || cat /proc/sys/kernel/hostname"),
        "b"
    );
    let here = std::env::current_dir().expect("a working directory");
    assert_eq!(output(&lab, "pwd -P"), here.display().to_string());
    let missing = lab
        .command("b", "/no/such/program")
        .expect("the host exists");
    let error = { missing }.spawn().expect_err("there is no such program");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);

    let mut child = waiting(&lab);
    // `wait` would close the program's input, which ends it too; the signal is to be faster.
    let _input = child.stdin.take();
    // SIGTERM to the escort reaches the program.
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("our child");
    let status = child.wait().expect("our child");
    assert_eq!(status.signal(), Some(libc_sigterm()));

    let mut child = waiting(&lab);
    child.kill().expect("our child");
    assert_eq!(child.wait().expect("our child").signal(), Some(9));
    // The program died with its escort: the host is empty again but for its first process.
    wait_until("the host is empty", || programs_of(&lab, "b").is_empty());
}

fn libc_sigterm() -> i32 {
    nix::sys::signal::Signal::SIGTERM as i32
}

/// Starts a program in host `b` that runs until it is ended.
fn waiting(lab: &Lab) -> Child {
    let mut child = probe::start(
        lab,
        &Probe {
            host: "b",
            name: "wait",
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            amount: 0,
        },
    );
    assert_eq!(probe::line(&mut child).0, "ready");
    child
}

/// Returns the processes that share a namespace of kind `net` with a first process, without it.
fn processes_in(network: &str, but: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != but && network_of(*pid).as_deref() == Some(network))
        .collect()
}

fn network_of(pid: u32) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn programs_of(lab: &Lab, name: &str) -> Vec<u32> {
    let host = lab.hosts().iter().find(|host| host.name == name);
    let init = host.expect("the host exists").init_pid;
    processes_in(&network_of(init).expect("the host is up"), init)
}

/// Waits for what the kernel does by itself soon after a kill.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < GONE_LIMIT, "{what}: not yet");
        std::thread::yield_now();
    }
}

/// After `down` no process and no device is left, and the same process can have a next lab.
pub fn down(entered: &Entered) {
    for _ in 0..2 {
        let link = LinkSpec {
            rate: Some(BitsPerSec(1e9)),
            delay: Nanos::from_ms(1),
            ..LinkSpec::default()
        };
        let lab = up(link, entered);
        let mut program = waiting(&lab);
        let networks: Vec<String> = lab
            .hosts()
            .iter()
            .map(|host| network_of(host.init_pid).expect("the host is up"))
            .collect();
        lab.down().expect("the lab goes down");
        assert_eq!(program.wait().expect("our child").signal(), Some(9));
        for network in networks {
            assert_eq!(processes_in(&network, 0), Vec::<u32>::new());
        }
        assert_eq!(devices(), ["lo"]);
    }
}

/// Returns the devices of this process's network namespace.
fn devices() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/net/dev").expect("/proc is mounted");
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Unknown hosts, a second lab in one process and impossible links say what is wrong.
pub fn mistakes(entered: &Entered) {
    let lab = up(LinkSpec::default(), entered);
    let error = lab.command("c", "true").expect_err("there is no c");
    assert!(error.to_string().contains("a, b"), "{error}");
    let second = Lab::up(&pair(LinkSpec::default()), entered);
    let error = second.expect_err("br0 exists");
    assert!(error.to_string().contains("exists already"), "{error}");
    // The second left the first alone.
    probe::measure(&lab, ["udp-echo", "udp-ping"], ["a", "b"], 3);
    let spec = pair(LinkSpec {
        loss: 2.0,
        ..LinkSpec::default()
    });
    assert!(matches!(Lab::up(&spec, entered), Err(LabError::Spec(_))));
}

/// Entering would move one thread of several; it is refused.
pub fn threads() {
    let entered = std::thread::spawn(enter).join().expect("no panic");
    assert!(matches!(entered, Err(LabError::Threads { count: 2 })));
}

/// Makes a lab, says which processes belong to it, and waits to be killed.
pub fn victim(entered: &Entered) {
    let link = LinkSpec {
        delay: Nanos::from_ms(1),
        ..LinkSpec::default()
    };
    let lab = up(link, entered);
    let mut program = waiting(&lab);
    let inits = lab.hosts().iter().map(|host| host.init_pid);
    // The program and its escort, which is in the host's network, too.
    let programs = programs_of(&lab, "b");
    assert!(
        programs.contains(&program.id()),
        "the escort is in {programs:?}"
    );
    for pid in inits.chain(programs) {
        println!("{pid} {}", network_of(pid).unwrap_or_default());
    }
    println!("end");
    if std::env::var_os(KILLED).is_some() {
        std::io::stdin()
            .read_line(&mut String::new())
            .expect("standard input");
    }
    program.kill().expect("our child");
    program.wait().expect("our child");
}

/// Tells the victim that it is to wait.
const KILLED: &str = "LINERATE_LAB_KILLED";

/// After SIGKILL of the process that has a lab, none of its processes is left.
pub fn killed() {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program)
        .env(SCENARIO, "victim")
        .env(KILLED, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be run again");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let lines = output.lines().map_while(Result::ok);
    let known: Vec<(ProcessKey, String)> = lines
        .take_while(|line| line != "end")
        .map(|line| {
            let (pid, network) = line.split_once(' ').expect("two words");
            let pid = pid.parse().expect("a number");
            (ProcessKey::of(pid).expect("alive"), network.to_owned())
        })
        .collect();
    assert_eq!(known.len(), 4, "two hosts, a program and its escort");
    child.kill().expect("our child");
    child.wait().expect("our child");
    for (process, network) in known {
        wait_until("the process is gone", || !process.is_alive());
        if network_of(std::process::id()).as_ref() != Some(&network) {
            assert_eq!(processes_in(&network, 0), Vec::<u32>::new());
        }
    }
}

/// The same as someone without any privilege, where this machine lets users have namespaces.
pub fn ordinary_user() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let nobody = 65_534;
    let program = std::env::current_exe().expect("this program has a path");
    for name in [
        "delay_is_kept",
        "programs_are_escorted",
        "down_leaves_nothing",
        "mtu_and_queues",
    ] {
        let mut command = Command::new(&program);
        command
            .env(SCENARIO, name)
            .uid(nobody)
            .gid(nobody)
            .current_dir("/");
        match command.status() {
            Err(error) => println!("{name} as user {nobody}: {error}"),
            Ok(status) if status.code() == Some(i32::from(SKIPPED)) => {
                println!("{name} as user {nobody}: skipped: no privilege");
            }
            Ok(status) => assert!(status.success(), "{name} as user {nobody}: {status}"),
        }
    }
}
