//! An agent under abuse and under load: whatever goes on at its port, a real client is served in
//! the middle of it, memory and open files stay bounded, and all is given back afterwards.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::call::{KEPT, PROGRAM};
use crate::common::http::{ask, connect, read};
use crate::common::{Call, Server, alone, file, folder, json, linerate, loading};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What an agent may grow by under any abuse below: 2048 connections with buffers of 8 KiB each.
const GROWTH_KIB_MAX: u64 = 24 << 10;
/// Places for connections that have not said what they are, and as many for control connections.
const PLACES: usize = 1024;
/// Files that a measurement opens beside them.
const FILES_SPARE: usize = 64;

/// Lets this process hold thousands of connections.
fn raise_limit() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit can be read");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("up to the hard limit it can be set");
}

/// Returns a server that has measured once, with its open files and its memory at their height.
fn server() -> (Server, usize, u64) {
    raise_limit();
    let server = Server::start(&["--limit-flows", "20000"]);
    measure(&server);
    server.wait_busy(false);
    let files = settled_files(&server);
    let memory = memory_most_kib(&server);
    (server, files, memory)
}

/// Asserts that a real client is served now.
#[track_caller]
fn measure(server: &Server) {
    let said = linerate(&["run", &server.host(), "-t", "0.5", "-O", "0", "-i", "0"]).run();
    assert!(said.is_measured(), "{}\n{}", said.err, said.out);
}

/// The same beside others.
#[track_caller]
fn measure_shared(server: &Server) {
    let words = ["-t", "0.5", "-O", "0", "-i", "0", "--shared"];
    let said = linerate(&["run", &server.host()]).words(&words).run();
    assert!(said.is_measured(), "{}\n{}", said.err, said.out);
}

/// Asserts that the agent has given back what the abuse took, and how much memory that was at most.
#[track_caller]
fn is_as_before(server: &Server, files: usize, memory_kib: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while open_files(server) > files {
        let left = open_files(server) - files;
        assert!(Instant::now() < deadline, "{left} more open files are left");
        std::thread::sleep(Duration::from_millis(20));
    }
    let grown_kib = memory_most_kib(server) - memory_kib;
    assert!(grown_kib < GROWTH_KIB_MAX, "grew by {grown_kib} KiB");
    assert!(server.info()["busy"].is_null());
}

fn open_files(server: &Server) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.id()));
    files.expect("the agent runs").count()
}

/// Returns the open files of a server on whose connections nothing happens any more.
fn settled_files(server: &Server) -> usize {
    let mut files = open_files(server);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(10));
        files = files.min(open_files(server));
    }
    files
}

/// Returns the most memory that was resident so far.
fn memory_most_kib(server: &Server) -> u64 {
    memory_kib(server, "VmHWM:")
}

/// Returns what the kernel counts of a server's memory under this name.
fn memory_kib(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    let status = status.expect("the agent runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("the kernel counts it")
}

/// Connects as from a host whose segments are short and whose window is small: the kernel takes a hundred
/// kilobytes of an answer that nobody reads, where it would take megabytes on loopback.
fn far_connect(address: SocketAddr) -> TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
    socket.set_tcp_mss(1000).expect("a segment");
    socket.set_recv_buffer_size(4096).expect("a window");
    socket.connect(&address.into()).expect("the agent listens");
    socket.into()
}

/// Writes what the other end takes at once; returns false when it has hung up.
fn push(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.set_nonblocking(true).expect("a socket can");
    match stream.write(bytes) {
        Ok(written) => written > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Runs `abuse` again and again beside two measurements; returns how often it was.
fn beside_measurements(server: &Server, mut abuse: impl FnMut() + Send) -> u32 {
    /// Raised at the end, also of a test that fails: the abuse goes on until then.
    struct Over(Arc<AtomicBool>);
    impl Drop for Over {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let mut times = 0;
            while !seen.load(Ordering::Relaxed) {
                abuse();
                times += 1;
            }
            times
        });
        let over = Over(over);
        measure(server);
        measure(server);
        drop(over);
        thread.join().expect("the abuse goes on")
    })
}

#[test]
fn thousands_that_say_nothing_keep_nobody_out() {
    let _load = loading();
    let (server, files, memory) = server();
    let silent: Vec<TcpStream> = (0..2000).map(|_| connect(server.address)).collect();
    measure(&server);
    let held = open_files(&server);
    assert!(held <= files + PLACES + FILES_SPARE, "{held} open files");
    drop(silent);
    is_as_before(&server, files, memory);
}

#[test]
fn thousands_that_asked_once_and_idle_keep_nobody_out() {
    let _load = loading();
    let (server, files, memory) = server();
    let request = b"GET /v1/clock HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let idle: Vec<TcpStream> = (0..1500)
        .map(|_| {
            let mut stream = connect(server.address);
            stream.write_all(request).expect("the agent reads");
            let mut first = [0; 12];
            stream.read_exact(&mut first).expect("the agent answers");
            assert_eq!(&first, b"HTTP/1.1 200");
            stream
        })
        .collect();
    measure(&server);
    let held = open_files(&server);
    assert!(held <= files + PLACES + FILES_SPARE, "{held} open files");
    drop(idle);
    is_as_before(&server, files, memory);
}

#[test]
fn slow_writers_and_noise_keep_nobody_out() {
    let _load = loading();
    let (server, files, memory) = server();
    let openings: [&[u8]; 8] = [
        b"L",
        b"G",
        b"LINERATE\x00\x01\x00\x00",
        b"GET /v1/agent HTTP/1.1\r\nx: ",
        b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n{",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\xff\x00\xff",
        b"P\x80\x80\x80\r\n\r\n\r\n",
    ];
    let mut slow: Vec<TcpStream> = Vec::new();
    for at in 0..400 {
        let mut stream = connect(server.address);
        push(&mut stream, openings[at % openings.len()]);
        slow.push(stream);
    }
    let rounds = beside_measurements(&server, || {
        for stream in &mut slow {
            // Those that were cut off are as good as gone.
            push(stream, b"y");
        }
        std::thread::sleep(Duration::from_millis(100));
    });
    assert!(rounds > 1, "{rounds}");
    drop(slow);
    is_as_before(&server, files, memory);
}

#[test]
fn a_port_scanner_keeps_nobody_out() {
    let _load = loading();
    let (server, files, memory) = server();
    let address = server.address;
    let mut scanned = 0;
    beside_measurements(&server, || {
        for _ in 0..10 {
            let stream = TcpStream::connect(address).expect("the agent listens");
            // Every other one with a reset instead of an end.
            if scanned % 2 == 0 {
                let _ = stream.shutdown(Shutdown::Both);
            }
            scanned += 1;
        }
        std::thread::sleep(Duration::from_millis(10));
    });
    assert!(scanned > 100, "{scanned} connections");
    is_as_before(&server, files, memory);
}

#[test]
fn bodies_of_any_size_and_depth_are_refused() {
    let _load = loading();
    let (server, files, memory) = server();
    let head = |more: &str| {
        format!(
            "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\n{more}\r\n"
        )
    };
    let send = |address: SocketAddr, head: String, body: &mut dyn FnMut(&mut TcpStream)| {
        let mut stream = connect(address);
        stream.write_all(head.as_bytes()).expect("the agent reads");
        body(&mut stream);
        let answer = read(stream);
        assert!(matches!(answer.status, 0 | 400 | 413), "{answer:?}");
    };
    let megabyte = vec![b' '; 1 << 20];
    let mut sent = 0;
    send(
        server.address,
        head("content-length: 104857600\r\n"),
        &mut |stream| {
            while sent < 100 && stream.write_all(&megabyte).is_ok() {
                sent += 1;
            }
        },
    );
    assert!(sent < 100, "the agent read it to its end");
    let mut sent = 0;
    send(
        server.address,
        head("transfer-encoding: chunked\r\n"),
        &mut |stream| {
            let chunk = [b"100000\r\n", &megabyte[..], b"\r\n"].concat();
            while sent < 100 && stream.write_all(&chunk).is_ok() {
                sent += 1;
            }
        },
    );
    assert!(sent < 100, "the agent read it to its end");
    measure(&server);
    for nested in ["[".repeat(60_000), r#"{"run":"#.repeat(8000)] {
        let length = format!("content-length: {}\r\n", nested.len());
        send(server.address, head(&length), &mut |stream| {
            stream
                .write_all(nested.as_bytes())
                .expect("the agent reads it");
        });
    }
    measure(&server);
    is_as_before(&server, files, memory);
}

/// Each piece that is kept takes tens of bytes, and each connection may send four million of them.
#[test]
fn bodies_in_the_smallest_chunks_take_bounded_memory() {
    let _load = loading();
    let (server, files, memory) = server();
    let admitted = r#"{"run":"r","label":"chunks","admission":"shared","expected":null}"#;
    let lease = ask(server.address, "POST", "/v1/runs", admitted).json()["lease"].clone();
    let path = format!("/v1/runs/{}", lease.as_str().expect("a lease"));
    let head = format!(
        "POST {path}/trials HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    let chunks = b"1\r\n \r\n".repeat(10_000);
    let mut sending: Vec<TcpStream> = Vec::new();
    for _ in 0..8 {
        let mut stream = connect(server.address);
        stream.write_all(head.as_bytes()).expect("the agent reads");
        // The agent reads two of one caller at a time, and leaves the others in the kernel.
        let patience = Some(Duration::from_millis(500));
        stream.set_write_timeout(patience).expect("a timeout");
        let mut sent = 0;
        while sent < 20 && stream.write_all(&chunks).is_ok() {
            sent += 1;
        }
        sending.push(stream);
    }
    measure_shared(&server);
    drop(sending);
    assert_eq!(ask(server.address, "DELETE", &path, "").status, 200);
    is_as_before(&server, files, memory);
}

/// A label is whatever a stranger wrote; others see it in refusals and in the log.
#[test]
fn a_label_moves_nobodys_cursor() {
    let server = Server::start(&[]);
    let label = "\\u001b[2J\\u001b]0;pwn\\u0007\\u001b[31mYOU HAVE BEEN\\r\\nHACKED\\u202e";
    let body =
        format!(r#"{{"run":"r","label":"{label}","admission":"exclusive","expected":null}}"#);
    let lease = ask(server.address, "POST", "/v1/runs", &body).json()["lease"].clone();
    let said = linerate(&["run", &server.host(), "-t", "0.2"]).run();
    let said = said.failed(1, &["in use by", "HACKED"]);
    let path = format!("/v1/runs/{}", lease.as_str().expect("a lease"));
    assert_eq!(ask(server.address, "DELETE", &path, "").status, 200);
    let log = server.stop().done();
    assert!(log.err.contains("run from 127.0.0.1"), "{log:?}");
    for text in [&said.err, &log.err] {
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(obeyed), "{text:?}");
    }
    // Nor does it look like a line of the log.
    let mut lines = log.err.lines().filter(|line| line.contains("HACKED"));
    assert!(lines.all(|line| line.contains("run from")), "{log:?}");
}

/// Each run is told in a line when it is over, with what it did.
#[test]
fn the_log_tells_of_each_run() {
    let _alone = alone();
    let server = Server::start(&["--log-format", "json"]);
    measure(&server);
    server.wait_busy(false);
    let missing = ask(server.address, "GET", "/v1/runs/nosuch", "");
    assert_eq!(missing.status, 410);
    let said = server.stop().done();
    let mut lines = said.err.lines().filter(|line| line.starts_with('{'));
    let run = json(lines.next().expect("a line"));
    assert_eq!(
        (&run["event"], &run["from"]),
        (&"run".into(), &"127.0.0.1".into())
    );
    assert_eq!(
        (&run["trials"], &run["failed"]),
        (&1.into(), &0.into()),
        "{run}"
    );
    assert_eq!(run["traffic"], "TCP stream to the server, 1 flow");
    assert_eq!(
        (&run["trusted"], &run["ended"]),
        (&true.into(), &"ended by the client".into())
    );
    assert!(run["seconds"].as_f64() > Some(0.5), "{run}");
    assert!(lines.next().is_none(), "{said:?}");
}

/// A pager that nobody scrolls, a terminal that was stopped: who reads the log no more keeps nobody from being answered.
#[test]
fn a_full_log_keeps_nobody_waiting() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe can be made");
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["serve", "-B", "127.0.0.1", "-p", "0"]);
    command.env("XDG_STATE_HOME", KEPT);
    command.stdout(std::process::Stdio::null());
    command.stderr(writer.try_clone().expect("a file can be had twice"));
    let agent = Ends(command.spawn().expect("the program can be started"));
    drop(command);
    let mut said = String::new();
    let address = loop {
        let mut byte = [0];
        reader
            .read_exact(&mut byte)
            .expect("it says where it serves");
        said.push(byte[0].into());
        let words = said.split_once("serving on ").map(|(_, rest)| rest);
        let word = words.and_then(|rest| rest.split_once(char::is_whitespace));
        if let Some((word, _)) = word {
            break word.parse::<SocketAddr>().expect("an address");
        }
    };
    fill(&writer);
    // Each of them is told in the log.
    let body = r#"{"run":"r","label":"l","admission":"shared","expected":null}"#;
    for _ in 0..20 {
        let admitted = ask(address, "POST", "/v1/runs", body);
        let lease = admitted.json()["lease"]
            .as_str()
            .expect("a lease")
            .to_owned();
        assert!(ask(address, "DELETE", &format!("/v1/runs/{lease}"), "").status < 300);
    }
    assert_eq!(ask(address, "GET", "/v1/agent", "").status, 200);
    drop((agent, reader));
}

/// Writes until there is no room.
fn fill(pipe: &std::io::PipeWriter) {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = |flags| fcntl(pipe, FcntlArg::F_SETFL(flags)).expect("a pipe has flags");
    flags(OFlag::O_NONBLOCK);
    let mut pipe_of = pipe;
    for bytes in [4096, 1] {
        while pipe_of.write(&vec![b'.'; bytes]).is_ok() {}
    }
    flags(OFlag::empty());
}

/// A process that outlives no test.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn requests_in_a_row_are_answered_in_a_row() {
    let server = Server::start(&[]);
    let mut stream = connect(server.address);
    let request = "GET /v1/clock HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(499)
        + "GET /v1/clock HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut writer = stream.try_clone().expect("a socket has two ends");
    let thread = std::thread::spawn(move || writer.write_all(request.as_bytes()));
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .expect("all answers are text");
    thread.join().expect("it ended").expect("the agent reads");
    assert_eq!(text.matches("HTTP/1.1 200").count(), 500);
}

#[test]
fn answers_that_nobody_reads_take_bounded_memory() {
    let _load = loading();
    let (server, files, memory) = server();
    let requests = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2000);
    let mut unread: Vec<TcpStream> = (0..50).map(|_| connect(server.address)).collect();
    let rounds = beside_measurements(&server, || {
        for stream in &mut unread {
            push(stream, requests.as_bytes());
        }
        std::thread::sleep(Duration::from_millis(50));
    });
    assert!(rounds > 1, "{rounds}");
    drop(unread);
    is_as_before(&server, files, memory);
}

/// A page of samples is 1.5 MB, and a guest's own to ask for as often as it likes.
#[test]
fn pages_of_samples_that_nobody_reads_take_bounded_memory() {
    let _load = loading();
    let server = Server::start(&[]);
    let address = server.address;
    let admitted = r#"{"run":"r","label":"pages","admission":"shared","expected":null}"#;
    let lease = ask(address, "POST", "/v1/runs", admitted).json()["lease"].clone();
    let run = format!("/v1/runs/{}", lease.as_str().expect("a lease"));
    let flows: Vec<_> = (0..200)
        .map(|flow| serde_json::json!({ "flow": flow, "part": "receiver" }))
        .collect();
    let assignment = serde_json::json!({
        "trial": 1, "end": "server", "peer": null, "bind": null, "cookie": "22".repeat(16),
        "traffic": {"kind": "stream", "direction": "to-server", "message_bytes": 1024},
        "options": {}, "flows": flows, "workers_max": null,
        "cpus": [], "sample_interval": 1_000_000u64, "length": 60_000_000_000u64
    });
    let answer = ask(
        address,
        "POST",
        &format!("{run}/trials"),
        &assignment.to_string(),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    let sending: Vec<TcpStream> = (0..200u32)
        .map(|flow| {
            let mut stream = connect(address);
            let hello = [
                b"LINERATE\0\x01\0\0".as_slice(),
                &flow.to_be_bytes(),
                &[0x22; 16],
            ]
            .concat();
            stream.write_all(&hello).expect("the agent reads");
            stream
        })
        .collect();
    let now = ask(address, "GET", "/v1/clock", "").json()["sent_ns"].as_u64();
    let now = now.expect("an instant");
    // On a busy host the instants may be a second on their way.
    let at = serde_json::json!({
        "start_ns": now, "measure_begin_ns": now + 4_000_000_000,
        "measure_end_ns": now + 5_000_000_000, "stop_ns": now + 5_000_000_000
    });
    let answer = ask(
        address,
        "POST",
        &format!("{run}/trials/1/start"),
        &at.to_string(),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    // Once the trial is over its record grows no more, and is kept for 30 s.
    let page = format!("{run}/trials/1?from=0");
    let deadline = Instant::now() + Duration::from_secs(40);
    let whole = loop {
        assert!(Instant::now() < deadline, "the trial goes on");
        let page = ask(address, "GET", &page, "").json();
        if page["state"]["state"] == "finished" {
            break page;
        }
    };
    let samples = whole["samples"].as_array().map(Vec::len);
    assert_eq!(samples, Some(16_384), "it is no whole page");
    let memory = memory_kib(&server, "VmRSS:");
    let request = format!("GET {page} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // As many as may wait: further ones are refused.
    let unread: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = far_connect(address);
            stream
                .write_all(request.as_bytes())
                .expect("the agent reads");
            stream
        })
        .collect();
    // Until it grows no more for two seconds: a page takes a tenth of one.
    let mut seen = (0, Instant::now());
    while seen.1.elapsed() < Duration::from_secs(2) {
        let now = memory_kib(&server, "VmRSS:");
        if now > seen.0 {
            seen = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let grown_kib = seen.0.saturating_sub(memory);
    assert!(grown_kib < GROWTH_KIB_MAX, "grew by {grown_kib} KiB");
    drop((unread, sending));
    assert_eq!(ask(address, "DELETE", &run, "").status, 200);
}

/// Starts of trials whose flows are missing are answered after 10 s, and hold nothing until then.
#[test]
fn a_pile_of_starts_delays_nobody() {
    let _alone = alone();
    let (server, _, _) = server();
    let address = server.address;
    let admitted = r#"{"run":"r","label":"pile","admission":"shared","expected":null}"#;
    let lease = ask(address, "POST", "/v1/runs", admitted).json()["lease"].clone();
    let lease = lease.as_str().expect("a lease");
    let assignment = serde_json::json!({
        "trial": 1, "end": "server", "peer": null, "bind": null, "cookie": "11".repeat(16),
        "traffic": {"kind": "stream", "direction": "to-server", "message_bytes": 1024},
        "options": {}, "flows": [{"flow": 0, "part": "receiver"}], "workers_max": null,
        "cpus": [], "sample_interval": 100_000_000u64, "length": 1_000_000_000u64
    });
    let trials = format!("/v1/runs/{lease}/trials");
    let answer = ask(address, "POST", &trials, &assignment.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let threads = || std::fs::read_dir(format!("/proc/{}/task", server.id())).map(Iterator::count);
    let before = threads().expect("the agent runs");
    let at = r#"{"start_ns":1,"measure_begin_ns":2,"measure_end_ns":3,"stop_ns":4}"#;
    let start = format!(
        "POST {trials}/1/start HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{at}",
        at.len()
    );
    let poll = format!("GET {trials}/1?wait_ns=1000000000 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let pile: Vec<TcpStream> = [start, poll]
        .iter()
        .flat_map(|request| std::iter::repeat_n(request, 100))
        .map(|request| {
            let mut stream = connect(address);
            stream
                .write_all(request.as_bytes())
                .expect("the agent reads");
            stream
        })
        .collect();
    // Every one has been taken up once what came after them is answered; the pool has 64 threads.
    let began = Instant::now();
    for _ in 0..10 {
        assert_eq!(ask(address, "GET", "/v1/inventory", "").status, 200);
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let during = threads().expect("the agent runs");
    assert!(during <= before + 4, "{before} threads, then {during}");
    measure_shared(&server);
    drop(pile);
}

/// Begins a test as a client of iperf3 does; returns its connection once streams are asked for.
fn begun(server: &Server, cookie: u8, parameters: &[u8]) -> TcpStream {
    let mut stream = connect(server.address);
    let words = [[cookie; 36].as_slice(), &[0]].concat();
    stream.write_all(&words).expect("it reads");
    let mut state = [0];
    stream.read_exact(&mut state).expect("a state");
    assert_eq!(state, [9]);
    let length = (parameters.len() as u32).to_be_bytes();
    let words = [&length[..], parameters].concat();
    stream.write_all(&words).expect("it reads");
    stream.read_exact(&mut state).expect("a state");
    assert_eq!(state, [10]);
    stream
}

/// Clients of iperf3 that never open their streams have their connection, for seconds, and nothing that
/// others want: neither the host, nor places for runs, nor the rate.
#[test]
fn clients_of_iperf3_that_say_no_more_hold_nothing() {
    let _alone = alone();
    let server = Server::start(&["--limit-runs", "8", "--limit-rate", "1G"]);
    let parameters =
        br#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072}"#;
    let began = Instant::now();
    let held: Vec<TcpStream> = (0..20)
        .map(|at| begun(&server, b'a' + at, parameters))
        .collect();
    // Neither told to wait nor refused, without --queue, --shared or --evict.
    assert!(server.info()["busy"].is_null());
    let said = linerate(&["run", &server.host(), "-t", "0.3", "-b", "10M"]).run();
    assert!(!said.err.contains("in use by"), "{said:?}");
    // One of them whose streams come has the host and what is left of the rate, and who comes then is told.
    let mut control = begun(&server, b'x', parameters);
    let mut late = begun(&server, b'y', parameters);
    let mut stream = connect(server.address);
    let cookie = |of: u8| [[of; 36].as_slice(), &[0]].concat();
    stream.write_all(&cookie(b'x')).expect("it reads");
    let mut states = [0; 2];
    control.read_exact(&mut states).expect("states");
    assert_eq!(states, [1, 2]);
    linerate(&["run", &server.host(), "-t", "0.2"])
        .run()
        .failed(1, &["in use by", "iperf3 client at 127.0.0.1"]);
    drop((control, stream));
    server.wait_busy(false);
    // The other way round: a run that has the host for itself came before the streams did.
    let admitted = r#"{"run":"r","label":"own","admission":"exclusive","expected":null}"#;
    let admitted = ask(server.address, "POST", "/v1/runs", admitted);
    assert_eq!(admitted.status, 200, "{admitted:?}");
    let mut stream = connect(server.address);
    stream.write_all(&cookie(b'y')).expect("it reads");
    let mut rest = Vec::new();
    let _ = late.read_to_end(&mut rest);
    // ACCESS_DENIED: the server is busy; on a busy machine its time to open streams was over.
    assert!(matches!(rest.first(), Some(0xff | 0xfe)), "{rest:?}");
    // Those that never came are told why they end, SERVER_ERROR, in seconds.
    for mut stream in held {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest.first(), Some(&0xfe), "{rest:?}");
    }
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

/// A refused client has 2 s to read why; what it opens meanwhile is refused, too, and holds no file.
#[test]
fn streams_of_a_refused_client_of_iperf3_are_not_kept() {
    let _alone = alone();
    let server = Server::start(&["--limit-flows", "2"]);
    let stream = |of: u8| {
        let mut stream = connect(server.address);
        let cookie = [[of; 36].as_slice(), &[0]].concat();
        stream.write_all(&cookie).expect("it reads");
        stream
    };
    // The first of two streams claims both.
    let held = begun(&server, b'a', br#"{"tcp":true,"time":10,"parallel":2}"#);
    let first = stream(b'a');
    let mut refused = begun(&server, b'b', br#"{"tcp":true,"time":10,"parallel":1}"#);
    let second = stream(b'b');
    let mut state = [0];
    refused.read_exact(&mut state).expect("a state");
    assert_eq!(state, [0xfe]);
    let mut third = stream(b'b');
    third.read_exact(&mut state).expect("a state");
    // On a busy machine the 2 s were over, and the cookie begins another test.
    assert!(matches!(state, [0xff | 9]), "{state:?}");
    drop((held, first, second));
}

/// TCP paces no flow's first ten segments, which are large on loopback: who keeps to the rate after them stays.
#[test]
fn a_guest_that_keeps_to_the_rate_is_not_ended_for_its_first_segments() {
    let _load = loading();
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef");
    let words = ["--public", "--token-file", &token, "--limit-rate", "10M"];
    let server = Server::start(&words);
    for words in [&[][..], &["-w", "1M"], &["-P", "8"], &["-R"]] {
        let run = ["run", &server.host(), "-t", "1"];
        let said = linerate(&run).words(words).words(&["-J"]).run();
        // That a busy machine spoils the number is no matter here.
        let flags = json(&said.out)["trials"][0]["flags"].to_string();
        assert!(flags.contains("limited by the agent"), "{said:?}");
        assert!(!said.out.contains("but this agent allows"), "{said:?}");
    }
}

#[test]
fn thousands_of_flows_are_opened_driven_and_closed() {
    let _load = loading();
    let (server, files, memory) = server();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit can be read");
    let flows = 2000.min(hard.saturating_sub(500));
    let parallel = flows.to_string();
    let words = ["-P", &parallel, "-t", "1", "-O", "0", "-i", "0", "-J"];
    let said = linerate(&["run", &server.host()]).words(&words).run();
    assert!(said.is_measured(), "{}", said.err);
    let document = json(&said.out);
    let trial = &document["trials"][0];
    let ends = trial["flows"].as_array().expect("flows are listed");
    assert_eq!(ends.len() as u64, 2 * flows);
    let early: Vec<_> = ends
        .iter()
        .filter(|end| !end["ended_early"].is_null())
        .collect();
    assert!(early.is_empty(), "{} of them, {}", early.len(), early[0]);
    let total = |what: &str| -> u64 { ends.iter().filter_map(|end| end[what].as_u64()).sum() };
    assert!(total("bytes_sent") > 0);
    assert_eq!(total("bytes_sent"), total("bytes_received"));
    let grown_kib = memory_most_kib(&server) - memory;
    assert!(
        grown_kib < 12 * flows,
        "{} KiB a flow",
        grown_kib as f64 / flows as f64
    );
    let deadline = Instant::now() + Duration::from_secs(30);
    while open_files(&server) > files {
        assert!(Instant::now() < deadline, "flows are left open");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn more_flows_than_files_are_refused_before_any_is_opened() {
    let _load = loading();
    let server = Server::start(&["--limit-flows", "20000"]);
    let limited = r#"ulimit -n 300; exec "$0" "$@""#;
    Call::of("sh")
        .words(&["-c", limited, PROGRAM, "run", &server.host(), "-P", "400"])
        .run()
        .failed(
            2,
            &[
                "400 flows need as many open files",
                "may have 300 (RLIMIT_NOFILE)",
                "ask for fewer flows",
                "ulimit -Hn",
            ],
        );
    server.wait_busy(false);
    measure(&server);
}
