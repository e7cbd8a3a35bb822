//! Hosts that are not there, and programs that are no agents: each is told in reasonable time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{Server, free_port, linerate};

/// Longest that a program which says nothing may keep the user waiting.
const PATIENCE: Duration = Duration::from_secs(25);

/// Listens on a port and does `what` with whoever connects.
fn stranger(what: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            what(stream);
        }
    });
    address
}

/// Asserts that measuring against `address` fails with all of `said`.
#[track_caller]
fn fails(address: &str, said: &[&str]) {
    let began = Instant::now();
    linerate(&["run", address, "-t", "1"]).run().failed(1, said);
    linerate(&["study", address, "--budget", "1m"])
        .run()
        .failed(1, said);
    assert!(began.elapsed() < 2 * PATIENCE, "took {:?}", began.elapsed());
}

#[test]
fn nothing_listens() {
    let address = format!("127.0.0.1:{}", free_port());
    fails(
        &address,
        &[&address, "host server", "linerate serve", "-p", "refused"],
    );
}

/// It answers a cookie with the state in which parameters are exchanged.
#[test]
fn a_server_of_iperf3_is_recognised() {
    let iperf3 = stranger(|mut stream| {
        let mut cookie = [0; 37];
        if stream.read_exact(&mut cookie).is_ok() {
            let _ = stream.write_all(&[9]);
        }
    });
    linerate(&["run", &iperf3.to_string(), "-t", "1"])
        .run()
        .failed(
            1,
            &["this looks like iperf3: `linerate run HOST --peer iperf3`"],
        );
}

/// It serves one client, as with `-1`: nobody is left to be asked what it was.
#[test]
fn a_server_of_iperf3_for_one_client_is_guessed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        drop(listener);
        let mut cookie = [0; 37];
        if stream.read_exact(&mut cookie).is_ok() {
            let _ = stream.write_all(&[9]);
        }
    });
    linerate(&["run", &address.to_string(), "-t", "1"])
        .run()
        .failed(1, &["has exited", "`iperf3 -s -1`", "`--peer iperf3`"]);
    server.join().expect("it served one");
}

#[test]
fn the_name_is_unknown() {
    fails(
        "nosuch.invalid",
        &[
            "cannot find the address of nosuch.invalid",
            "check the name",
        ],
    );
}

#[test]
fn there_is_no_address_of_the_family() {
    linerate(&["run", "127.0.0.1", "-6"])
        .run()
        .failed(1, &["127.0.0.1 has no IPv6 address"]);
}

#[test]
fn a_program_says_nothing() {
    let address = stranger(|stream| {
        // Held open, never answered.
        std::mem::forget(stream);
    });
    let began = Instant::now();
    linerate(&["run", &address.to_string()])
        .run()
        .failed(1, &[&address.to_string(), "takes connections", "with -p"]);
    assert!(began.elapsed() < PATIENCE, "took {:?}", began.elapsed());
}

#[test]
fn a_program_says_nonsense() {
    let address = stranger(|mut stream| {
        let _ = stream.write_all(b"\x00\xff220 mail.example ESMTP\r\n\x07\x07");
        let _ = stream.read(&mut [0; 512]);
    });
    fails(
        &address.to_string(),
        &[
            &address.to_string(),
            "another program",
            "name another port with -p",
        ],
    );
}

#[test]
fn a_program_speaks_http_but_is_no_agent() {
    let page = "<html>welcome</html>";
    let pages = [
        format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        ),
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
            .to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
    ];
    for page in pages {
        let address = stranger(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(page.as_bytes());
        });
        fails(
            &address.to_string(),
            &[&address.to_string(), "another program", "with -p"],
        );
    }
}

#[test]
fn a_program_closes_at_once() {
    let address = stranger(drop);
    fails(
        &address.to_string(),
        &[
            &address.to_string(),
            "another program",
            "name another port with -p",
        ],
    );
}

#[test]
fn an_agent_of_another_version_is_told_apart() {
    let address = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let info = r#"{"program":"linerate","version":"9.9.9","api":99,"host_name":"x","lab":false,
            "observe_refused":null,"busy":null,"limits":{"flows":null,"trial":null,"rate":null}}"#;
        let length = info.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        let _ = stream.write_all((head + info).as_bytes());
    });
    fails(
        &address.to_string(),
        &["9.9.9", "API 99", "the same version on both hosts"],
    );
}

#[test]
fn a_client_host_is_not_there() {
    let server = Server::start(&[]);
    let address = format!("127.0.0.1:{}", free_port());
    linerate(&["run", &server.host(), "--client", &address])
        .run()
        .failed(1, &["host client1", &address, "linerate serve"]);
    assert!(server.info()["busy"].is_null(), "the server is given back");
}

#[test]
fn the_port_is_taken() {
    let server = Server::start(&[]);
    let port = server.address.port().to_string();
    linerate(&["serve", "-B", "127.0.0.1", "-p", &port])
        .run()
        .failed(
            1,
            &[&server.host(), "another program has the port", "--port"],
        );
    assert!(server.info()["busy"].is_null(), "the first one serves on");
}

#[test]
fn the_address_to_serve_on_is_not_ours() {
    linerate(&["serve", "-B", "192.0.2.1", "-p", "0"])
        .run()
        .failed(1, &["192.0.2.1", "assign"]);
}

#[test]
fn what_the_kernel_refuses_is_named() {
    let server = Server::start(&[]);
    let check = |flags: &[&str], said: &[&str]| {
        let said = [said, &["next:"]].concat();
        linerate(&["run", &server.host(), "-t", "0.2"])
            .words(flags)
            .run()
            .failed(2, &said);
        assert!(server.info()["busy"].is_null(), "the host is given back");
    };
    let sysctl = "net.ipv4.tcp_available_congestion_control";
    let nothing = "nothing was measured";
    check(&["-C", "nosuch"], &["`nosuch`", "this host", sysctl]);
    check(
        &["-B", "192.0.2.1"],
        &["192.0.2.1", "--bind (-B)", "assign"],
    );
    check(&["-A", "4095"], &["CPU 4095", "this host"]);
    check(&["-A", "0,4095"], &["CPU 4095", "server", nothing]);
    // What refuses one level refuses it in every block.
    let levels = ["-w", "16K,32K", "-A", "0,4095"];
    check(&levels, &["CPU 4095", "server", "a level"]);
}
