//! Transactions: both ends agree on their number and bytes, however they are made.
//!
//! One at a time, and in a process of their own: workers that spin take CPUs from all others.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "rim/places.rs"]
mod places;
#[path = "rim/rig.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests, which use more of it"
)]
mod rig;
#[path = "rim/steps.rs"]
mod steps;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linerate_engine::{
    Cpus, EngineConfig, Flow, FlowConfig, FlowResult, Running, adopt, connect, launch,
};
use linerate_model::histogram::Histogram;
use linerate_model::id::FlowId;
use linerate_model::manner::{Manner, SendBy, Sizes, WaitBy};
use linerate_model::metric::Metric;
use linerate_model::sample::{End, Sample, Subject};
use linerate_model::shortfall::RequestCount;
use linerate_model::workload::{FlowOptions, Part, Traffic};
use linerate_model::{Bytes, Nanos};
use proptest::prelude::*;

/// Taken by each test for as long as it runs.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens both ends of `flows` flows; the client's are requesters.
fn open(
    flows: u32,
    traffic: &Traffic,
    manner: &Manner,
    options: &FlowOptions,
) -> (Vec<Flow>, Vec<Flow>) {
    open_each(flows, traffic, &[manner.clone(), manner.clone()], options)
}

/// Does the same, with a manner for the client's end and one for the server's.
fn open_each(
    flows: u32,
    traffic: &Traffic,
    manners: &[Manner; 2],
    options: &FlowOptions,
) -> (Vec<Flow>, Vec<Flow>) {
    let listener = rig::listener();
    let peer = listener.local_addr().unwrap();
    let config = |flow, end: End, part| FlowConfig {
        manner: manners[usize::from(end == End::Server)].clone(),
        options: options.clone(),
        ..rig::config(flow, end, part, traffic)
    };
    if let Traffic::Crr { .. } = traffic {
        let calls = places::calls(&listener);
        let open = |flow| {
            let far = config(flow, End::Server, Part::Responder);
            places::place(
                config(flow, End::Client, Part::Requester),
                far,
                peer,
                &calls,
            )
        };
        return (0..flows).map(open).unzip();
    }
    let open = |flow| {
        let near = config(flow, End::Client, Part::Requester);
        let near = connect(near, peer, None, b"", rig::DEADLINE).unwrap();
        let far = config(flow, End::Server, Part::Responder);
        let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
        (near, far)
    };
    (0..flows).map(open).unzip()
}

fn run(
    flows: u32,
    traffic: &Traffic,
    manner: &Manner,
    workers: usize,
    length_ms: u64,
) -> (Vec<FlowResult>, Vec<FlowResult>) {
    let (near, far) = open(flows, traffic, manner, &FlowOptions::default());
    let schedule = rig::schedule(length_ms);
    let far = rig::start(far, schedule, workers);
    let near = rig::start(near, schedule, workers);
    (near.finish(), far.finish())
}

/// Runs places whose ends wait in manners of their own.
fn run_each(
    flows: u32,
    traffic: &Traffic,
    manners: &[Manner; 2],
    options: &FlowOptions,
    workers: usize,
    length_ms: u64,
) -> (Vec<FlowResult>, Vec<FlowResult>) {
    let (near, far) = open_each(flows, traffic, manners, options);
    let schedule = rig::schedule(length_ms);
    let far = rig::start(far, schedule, workers);
    let near = rig::start(near, schedule, workers);
    (near.finish(), far.finish())
}

/// The ways to wait that differ, where places of connections are concerned.
const WAITS: [WaitBy; 3] = [WaitBy::Epoll, WaitBy::Uring, WaitBy::Spin];

fn by(wait: WaitBy) -> Manner {
    Manner {
        wait,
        ..Manner::default()
    }
}

/// Checks that both ends of each flow moved the same bytes in the same number of transactions.
fn assert_agree(near: &[FlowResult], far: &[FlowResult]) {
    assert_eq!(near.len(), far.len());
    for near in near {
        let far = far.iter().find(|far| far.flow == near.flow).unwrap();
        assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
        assert_eq!(near.bytes_sent, far.bytes_received);
        assert_eq!(near.bytes_received, far.bytes_sent);
        assert_eq!(near.transactions, far.transactions);
    }
}

fn setting<'a>(result: &'a FlowResult, name: &str) -> &'a linerate_model::workload::Setting {
    let mut settings = result.settings.iter();
    settings.find(|setting| setting.name == name).unwrap()
}

fn wait() -> impl Strategy<Value = WaitBy> {
    prop_oneof![
        Just(WaitBy::Auto),
        Just(WaitBy::Epoll),
        Just(WaitBy::Uring),
        Just(WaitBy::Spin)
    ]
}

/// Options that are set before connecting, after it, or not at all.
fn connection_options() -> impl Strategy<Value = FlowOptions> {
    let socket_buffer = prop_oneof![2 => Just(None), 1 => Just(Some(Bytes(65_536)))];
    let delayed_ack = prop_oneof![2 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (socket_buffer, delayed_ack).prop_map(|(socket_buffer, delayed_ack)| FlowOptions {
        socket_buffer,
        delayed_ack,
        ..FlowOptions::default()
    })
}

fn manner() -> impl Strategy<Value = Manner> {
    let wait = wait();
    let sizes = prop_oneof![
        Just(None),
        prop::collection::vec(1..100_000_u64, 1..9).prop_map(|bytes| {
            let bytes = bytes.into_iter().map(Bytes).collect();
            Some(Sizes::List { bytes })
        }),
        (1..1000_u64, 0..50_000_u64).prop_map(|(low, more)| {
            let (low, high) = (Bytes(low), Bytes(low + more));
            Some(Sizes::Uniform { low, high })
        }),
    ];
    let in_flight = prop_oneof![Just(1_u32), 2..=8_u32, 9..=200_u32];
    let rhythm = prop_oneof![
        3 => Just((None, None)),
        1 => (1000..20_000_u32).prop_map(|rate| (Some(rate), None)),
        1 => (1..2_000_u64).prop_map(|us| (None, Some(Nanos(us * 1000)))),
    ];
    (wait, sizes, in_flight, 1..=16_u32, rhythm).prop_map(
        |(wait, sizes, in_flight, batch, (requests_per_s, think))| Manner {
            wait,
            sizes,
            in_flight,
            batch,
            requests_per_s,
            think,
            ..Manner::default()
        },
    )
}

proptest! {
    // 20 runs of 60 to 100 ms each.
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transactions_of_both_ends_agree(
        request_bytes in prop_oneof![Just(1_u64), 1..2000_u64, 1..200_000_u64],
        response_bytes in prop_oneof![Just(1_u64), 1..2000_u64, 1..200_000_u64],
        writes in 1..=16_u32,
        mut manner in manner(),
        flows in 1..=9_u32,
        mut workers in 1..=3_usize,
        length_ms in 40..=80_u64,
    ) {
        let _alone = alone();
        if manner.wait == WaitBy::Spin {
            workers = 1;
        }
        let writes = writes.min(request_bytes as u32);
        // What is under way at the stop has 2 s to come, on a machine that others use too.
        let largest = manner.sizes.as_ref().map_or(0, |sizes| sizes.largest().0).max(request_bytes).max(response_bytes);
        let most = (1_000_000 / largest).max(1) as u32;
        manner.in_flight = manner.in_flight.min(most);
        manner.batch = manner.batch.min(manner.in_flight);
        if writes > 1 {
            manner.sizes = None;
            manner.batch = 1;
        }
        let traffic = rig::rr(request_bytes, response_bytes, writes);
        let (near, far) = run(flows, &traffic, &manner, workers, length_ms);
        // Workers that spin may keep the others from a busy machine's CPUs: none is a number too.
        assert_agree(&near, &far);
        for near in &near {
            let recorded = near.latency.as_ref().unwrap().count();
            prop_assert!(recorded <= near.transactions);
        }
    }
}

#[test]
fn an_abort_ends_transactions_of_every_manner() {
    let _alone = alone();
    for wait in [WaitBy::Auto, WaitBy::Epoll, WaitBy::Uring, WaitBy::Spin] {
        let manner = Manner {
            wait,
            in_flight: 4,
            ..Manner::default()
        };
        let (near, far) = open(3, &rig::rr(1, 1, 1), &manner, &FlowOptions::default());
        let far = rig::start(far, rig::endless(), 1);
        let near = rig::start(near, rig::endless(), 1);
        near.abort();
        for result in near.finish() {
            assert_eq!(result.ended_early.as_deref(), Some("aborted"), "{wait:?}");
        }
        // The peers see their connections end long before the stop.
        for result in far.finish() {
            let reason = result.outcome.ended_early.unwrap();
            // Closed with a response unread, a connection is reset.
            assert!(
                reason.contains("the peer closed the connection")
                    || reason.ends_with("Connection reset by peer (os error 104)"),
                "{reason}"
            );
        }
    }
}

#[test]
fn a_requester_that_dies_is_named_and_the_rest_goes_on() {
    let _alone = alone();
    for wait in [WaitBy::Epoll, WaitBy::Uring, WaitBy::Spin] {
        let manner = Manner {
            wait,
            in_flight: 3,
            ..Manner::default()
        };
        let traffic = rig::rr(10, 10, 1);
        let (mut near, mut far) = open(3, &traffic, &manner, &FlowOptions::default());
        // The peer of the second goes away before the start: closed with requests unread.
        drop(far.remove(1));
        let schedule = rig::schedule(200);
        let far = rig::start(far, schedule, 1);
        let near = rig::start(std::mem::take(&mut near), schedule, 1).finish();
        let reason = near[1].ended_early.as_deref().unwrap();
        assert!(
            reason.starts_with("the peer closed") || reason.contains("failed: "),
            "{reason}"
        );
        assert_eq!(near[1].flow, FlowId(1));
        let alive: Vec<FlowResult> = near.into_iter().filter(|near| near.flow.0 != 1).collect();
        assert_agree(&alive, &far.finish());
    }
}

#[test]
fn how_workers_waited_is_said() {
    let _alone = alone();
    let check = |flows, manner: &Manner, expect: &[&str]| {
        let (near, far) = run(flows, &rig::rr(1, 1, 1), manner, 1, 20);
        for result in near.iter().chain(&far) {
            let wait = setting(result, "wait");
            let granted = wait.granted.as_deref().unwrap();
            assert!(expect.contains(&granted), "{wait:?}");
            // Where io_uring was to be and is not, it is said why.
            if manner.wait == WaitBy::Uring && granted == "epoll" {
                assert!(wait.capped_by.as_deref().unwrap().starts_with("io_uring: "));
            }
        }
    };
    let of = |wait| Manner {
        wait,
        ..Manner::default()
    };
    check(1, &Manner::default(), &["blocking"]);
    check(2, &Manner::default(), &["io_uring", "epoll"]);
    check(1, &of(WaitBy::Epoll), &["epoll"]);
    check(2, &of(WaitBy::Uring), &["io_uring", "epoll"]);
    check(1, &of(WaitBy::Spin), &["spin"]);
    check(2, &of(WaitBy::Spin), &["spin"]);
}

/// Two that spin on one CPU would keep it from each other.
#[test]
fn no_more_workers_spin_than_have_a_cpu() {
    let _alone = alone();
    let check = |wait, workers_max, expect: &str| {
        let manner = Manner {
            wait,
            ..Manner::default()
        };
        let pair = |flow| rig::pair_by(flow, Part::Requester, &rig::rr(1, 1, 1), &manner);
        let (near, far): (Vec<_>, Vec<_>) = (0..4).map(pair).unzip();
        let schedule = rig::schedule(100);
        let config = |workers_max| EngineConfig {
            workers_max,
            cpus: Cpus::InTurn(vec![0]),
        };
        let far = launch(far, schedule, &config(1)).unwrap();
        let near = launch(near, schedule, &config(workers_max)).unwrap();
        let threads = near.threads().len();
        let (near, _) = (near.finish(), far.finish());
        let said = setting(&near[0], "wait").effective.clone().unwrap();
        assert!(said.contains(expect), "{said}");
        threads
    };
    assert_eq!(check(WaitBy::Spin, 3, "by 1 of 3 workers"), 1);
    assert_eq!(check(WaitBy::Spin, 1, "spin"), 1);
    assert_eq!(check(WaitBy::Epoll, 3, "epoll"), 3);
}

/// What the kernel says of calls with MSG_ZEROCOPY wakes who waits for anything, until it is taken.
#[test]
fn a_sender_that_waits_for_its_rate_sleeps() {
    let _alone = alone();
    let manner = Manner {
        send: SendBy::MsgZerocopy,
        rate_bps: Some(10_000_000),
        ..Manner::default()
    };
    let (near, far) = rig::pair_by(0, Part::Sender, &rig::stream(20_000), &manner);
    let far = rig::start(vec![far], rig::endless(), 1);
    let near = rig::start(vec![near], rig::endless(), 1);
    let ran_ns = || -> u64 {
        let (_, thread) = near.threads()[0].clone();
        let path = format!("/proc/self/task/{thread}/schedstat");
        let text = std::fs::read_to_string(path).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    let begin = ran_ns();
    std::thread::sleep(Duration::from_millis(200));
    let ran_ns = ran_ns() - begin;
    assert!(ran_ns < 100_000_000, "{ran_ns} ns of 200 ms");
    near.abort();
    far.abort();
    let near = near.finish();
    far.finish();
    let count = near[0].zero_copy.unwrap();
    assert!(count.done > 2, "{count:?}");
}

/// Both ends on CPU 0: whoever spins there keeps the other end from answering, and yields.
#[test]
fn who_spins_on_the_cpu_of_its_peer_yields_and_says_so() {
    let _alone = alone();
    let manner = Manner {
        wait: WaitBy::Spin,
        ..Manner::default()
    };
    for flows in [1, 3] {
        let pair = |flow| rig::pair_by(flow, Part::Requester, &rig::rr(1, 1, 1), &manner);
        let (near, far): (Vec<_>, Vec<_>) = (0..flows).map(pair).unzip();
        let schedule = rig::schedule(400);
        let config = EngineConfig {
            workers_max: 1,
            cpus: Cpus::InTurn(vec![0]),
        };
        let far = launch(far, schedule, &config).unwrap();
        let near = launch(near, schedule, &config).unwrap();
        let (near, far) = (near.finish(), far.finish());
        assert_agree(&near, &far);
        assert!(near.iter().all(|near| near.transactions > 0));
        for result in near.iter().chain(&far) {
            assert_eq!(result.ended_early, None);
            let wait = setting(result, "wait");
            assert_eq!(wait.granted.as_deref(), Some("spin"));
            let effective = wait.effective.as_deref();
            assert_eq!(effective, Some("spin, yielding to the peer on its CPU"));
        }
    }
}

/// An open loop sends what is due and no more, and says what it could not send.
#[test]
fn an_open_loop_keeps_its_rate_or_says_what_is_missing() {
    let _alone = alone();
    let manner = Manner {
        requests_per_s: Some(2000),
        in_flight: 64,
        ..Manner::default()
    };
    let (near, far) = run(2, &rig::rr(1, 1, 1), &manner, 1, 280);
    assert_agree(&near, &far);
    assert!(near.iter().all(|near| near.transactions > 0));
    for result in &near {
        let RequestCount { due, sent } = result.requests.unwrap();
        // 300 ms from the start to the stop; the first is due within the first interval.
        assert!((599..=601).contains(&due), "{due}");
        assert_eq!(sent, result.transactions);
        assert!(sent <= due);
    }

    // Responses of 1 MiB at a rate that no host of this decade keeps.
    let manner = Manner {
        requests_per_s: Some(1_000_000),
        ..Manner::default()
    };
    let (near, far) = run(1, &rig::rr(1, 1 << 20, 1), &manner, 1, 300);
    assert_agree(&near, &far);
    let requests = near[0].requests.unwrap();
    assert!(requests.sent < requests.due, "{requests:?}");
    // What was sent last was due long before: its latency counts from then.
    let longest_ns = near[0].stall_max_ns.unwrap();
    assert!(longest_ns > 10_000_000, "{longest_ns}");
}

#[test]
fn a_think_time_lies_between_transactions() {
    let _alone = alone();
    let manner = Manner {
        think: Some(Nanos::from_ms(5)),
        ..Manner::default()
    };
    let (near, far) = run(2, &rig::rr(1, 1, 1), &manner, 1, 80);
    assert_agree(&near, &far);
    for result in &near {
        // 100 ms from the start to the stop.
        assert!(result.transactions <= 21, "{}", result.transactions);
    }
}

/// Both ends want to send more than sockets hold: neither may wait for the other.
#[test]
fn many_large_requests_under_way_do_not_wait_for_each_other() {
    let _alone = alone();
    let options = FlowOptions {
        // Four segments of loopback: less makes TCP wait for its window probes.
        socket_buffer: Some(Bytes(128 << 10)),
        ..FlowOptions::default()
    };
    for wait in [WaitBy::Epoll, WaitBy::Uring, WaitBy::Spin] {
        let manner = Manner {
            wait,
            in_flight: 4,
            ..Manner::default()
        };
        for (request, response) in [(400_000, 400_000), (900_000, 10_000), (100, 900_000)] {
            println!("{wait:?}, {request} B and {response} B");
            let traffic = rig::rr(request, response, 1);
            let (near, far) = open(2, &traffic, &manner, &options);
            let schedule = rig::schedule(50);
            let far = rig::start(far, schedule, 1);
            let near = rig::start(near, schedule, 1);
            assert_agree(&near.finish(), &far.finish());
        }
    }
}

/// A requester whose turns are used up where its socket has little room takes responses none the less:
/// the peer takes no request before the one under way is answered.
#[test]
fn responses_are_taken_while_requests_have_no_room() {
    let _alone = alone();
    let response = vec![7; 1 << 20];
    let mut sent_most = 0;
    // Which of them ends its turns there depends on the kernel's accounting.
    for request_kib in 6..40 {
        let request_bytes = request_kib << 10;
        let listener = rig::listener();
        let config = FlowConfig {
            manner: Manner {
                in_flight: 200,
                ..by(WaitBy::Epoll)
            },
            options: FlowOptions {
                socket_buffer: Some(Bytes(128 << 10)),
                ..FlowOptions::default()
            },
            ..rig::config(
                0,
                End::Client,
                Part::Requester,
                &rig::rr(request_bytes, response.len() as u64, 1),
            )
        };
        let peer = listener.local_addr().unwrap();
        let near = connect(config, peer, None, &places::hello(0), rig::DEADLINE).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let near = rig::start(vec![near], rig::schedule(10), 1);
        let answer = || {
            let mut request = vec![0; request_bytes as usize];
            while far.read_exact(&mut request).is_ok() {
                // Who gave up closes.
                let _ = far.write_all(&response);
            }
        };
        let near = std::thread::scope(|scope| {
            scope.spawn(answer);
            near.finish()
        });
        assert_eq!(near[0].ended_early, None, "{request_kib} KiB");
        let transactions = near[0].transactions;
        assert_eq!(near[0].bytes_received, transactions * response.len() as u64);
        sent_most = sent_most.max(transactions);
    }
    assert!(sent_most > 0);
}

/// Responses to what is under way take a slow path longer than the grace time: those of the window are whole.
#[test]
fn responses_that_still_come_long_after_the_stop_end_nothing_early() {
    const RESPONSE_BYTES: usize = 1 << 20;
    let _alone = alone();
    let traffic = rig::rr(100, RESPONSE_BYTES as u64, 1);
    for wait in [WaitBy::Epoll, WaitBy::Uring] {
        let listener = rig::listener();
        let peer = listener.local_addr().unwrap();
        let config = |end, part| FlowConfig {
            manner: Manner {
                in_flight: 200,
                ..by(wait)
            },
            ..rig::config(0, end, part, &traffic)
        };
        let near = config(End::Client, Part::Requester);
        let near = connect(near, peer, None, b"", rig::DEADLINE).unwrap();
        let (mut slow_server, _) = listener.accept().unwrap();
        let mut slow_client = std::net::TcpStream::connect(peer).unwrap();
        let far = config(End::Server, Part::Responder);
        let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
        let near = rig::start(vec![near], rig::schedule(200), 1);
        let far = rig::start(vec![far], rig::schedule(200), 1);
        let pause = || std::thread::sleep(Duration::from_millis(50));
        let response = vec![7; RESPONSE_BYTES];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while slow_server.write_all(&response).is_ok() {
                    pause();
                }
            });
            scope.spawn(|| {
                let mut room = vec![0; RESPONSE_BYTES];
                slow_client.write_all(&[7; 200 * 100]).unwrap();
                while let Ok(1..) = slow_client.read(&mut room[..300_000]) {
                    pause();
                }
            });
            let (near, far) = (near.finish(), far.finish());
            assert_eq!((&near[0].ended_early, &far[0].ended_early), (&None, &None));
            assert!(near[0].transactions > 1, "{wait:?}");
            assert!(near[0].transactions < 60, "{wait:?}");
        });
    }
}

fn crr(request_bytes: u64, response_bytes: u64) -> Traffic {
    Traffic::Crr {
        request_bytes: Bytes(request_bytes),
        response_bytes: Bytes(response_bytes),
    }
}

proptest! {
    // 20 runs of 100 to 150 ms each.
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn connections_of_both_ends_agree(
        bytes in prop_oneof![
            Just((0_u64, 0_u64)),
            Just((1, 1)),
            (1..2000_u64, 1..2000_u64),
            (1..200_000_u64, 1..200_000_u64),
        ],
        rate in prop_oneof![3 => Just(None), 1 => (100..2000_u32).prop_map(Some)],
        near_wait in wait(),
        far_wait in wait(),
        options in connection_options(),
        flows in 1..=9_u32,
        mut workers in 1..=3_usize,
        length_ms in 40..=80_u64,
    ) {
        let _alone = alone();
        if [near_wait, far_wait].contains(&WaitBy::Spin) {
            workers = 1;
        }
        let manner = |wait| Manner {
            wait,
            requests_per_s: rate,
            ..Manner::default()
        };
        let waits = [manner(near_wait), manner(far_wait)];
        let (near, far) = run_each(flows, &crr(bytes.0, bytes.1), &waits, &options, workers, length_ms);
        assert_agree(&near, &far);
        for near in &near {
            prop_assert_eq!(near.bytes_sent, near.transactions * bytes.0);
            prop_assert_eq!(near.bytes_received, near.transactions * bytes.1);
            let said = near.connections.as_deref().unwrap();
            prop_assert_eq!((said.made, said.failed), (near.transactions, 0));
            prop_assert_eq!(&said.last_failure, &None);
        }
    }
}

#[test]
fn a_place_that_is_gone_is_named_and_the_rest_goes_on() {
    let _alone = alone();
    // Not by spinning: that has no hundred attempts in this time where both ends share a CPU.
    for wait in [WaitBy::Epoll, WaitBy::Uring] {
        let (near, mut far) = open(3, &crr(1, 1), &by(wait), &FlowOptions::default());
        // Nobody answers for the second any more.
        drop(far.remove(1));
        let schedule = rig::schedule(800);
        let far = rig::start(far, schedule, 1);
        let near = rig::start(near, schedule, 1).finish();
        let reason = near[1].ended_early.as_deref().unwrap();
        assert!(
            reason.starts_with("100 connections in a row failed, the last: "),
            "{wait:?}: {reason}"
        );
        let said = near[1].connections.as_deref().unwrap();
        assert_eq!((said.made, said.failed), (0, 100));
        assert!(said.last_failure.is_some(), "{said:?}");
        assert_eq!(near[1].bytes_received, 0);
        let alive: Vec<FlowResult> = near.into_iter().filter(|near| near.flow.0 != 1).collect();
        assert!(alive.iter().all(|near| near.transactions > 0));
        assert_agree(&alive, &far.finish());
    }
}

/// A peer that goes after the end takes the connection under way with it, as a port that is closed does
/// with a SYN that was lost and comes again. Nothing failed in the trial.
#[test]
fn a_connection_that_outlives_its_trial_has_not_failed() {
    let _alone = alone();
    for wait in [WaitBy::Epoll, WaitBy::Uring] {
        let listener = rig::listener();
        let config = FlowConfig {
            manner: by(wait),
            ..rig::config(0, End::Client, Part::Requester, &crr(1, 1))
        };
        let peer = listener.local_addr().unwrap();
        let near = connect(config, peer, None, &places::hello(0), rig::DEADLINE).unwrap();
        let schedule = rig::schedule(50);
        let near = rig::start(vec![near], schedule, 1);
        let held = listener.accept().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        drop((held, listener));
        let near = near.finish();
        let said = near[0].connections.as_deref().unwrap();
        assert_eq!((said.made, said.failed), (0, 0), "{wait:?}: {said:?}");
        assert_eq!(near[0].ended_early, None, "{wait:?}");
    }
}

/// A place whose peer goes while connections are made ends by its failures, and not the others.
#[test]
fn a_place_that_dies_on_the_way_is_named_and_the_rest_goes_on() {
    let _alone = alone();
    // Not by spinning: that has no hundred attempts in this time where both ends share a CPU.
    for wait in [WaitBy::Epoll, WaitBy::Uring] {
        let one = |flow| {
            let listener = rig::listener();
            let config = |end, part| FlowConfig {
                manner: by(wait),
                ..rig::config(flow, end, part, &crr(1, 1))
            };
            let near = config(End::Client, Part::Requester);
            let far = config(End::Server, Part::Responder);
            let peer = listener.local_addr().unwrap();
            // What dies takes its listener with it.
            (
                places::place(near, far, peer, &places::calls(&listener)),
                listener,
            )
        };
        let (((near0, far0), _), ((near1, far1), _), ((near2, far2), _)) = (one(0), one(1), one(2));
        let near = vec![near0, near1, near2];
        let schedule = rig::schedule(800);
        let mut dying = rig::start(vec![far1], schedule, 1);
        let others = [far0, far2].map(|far| rig::start(vec![far], schedule, 1));
        let near = rig::start(near, schedule, 1);
        wait_for_transactions(&mut dying, 3);
        dying.abort();
        let dead = dying.finish();
        let near = near.finish();
        let far: Vec<_> = others.into_iter().flat_map(Running::finish).collect();
        assert_eq!(dead[0].ended_early.as_deref(), Some("aborted"));
        let reason = near[1].ended_early.as_deref().unwrap();
        assert!(
            reason.starts_with("100 connections in a row failed"),
            "{wait:?}: {reason}"
        );
        // What was answered last may have been on its way when its end was aborted.
        let (begun, answered) = (near[1].transactions, dead[0].transactions);
        assert!(
            begun > 0 && answered >= begun,
            "{wait:?}: {begun}, {answered}"
        );
        let alive: Vec<FlowResult> = near.into_iter().filter(|near| near.flow.0 != 1).collect();
        assert_agree(&alive, &far);
    }
}

/// Whoever finds the port of a place can neither stop its trial nor keep it from its end.
#[test]
fn strangers_at_the_port_of_a_place_are_put_up_with() {
    let _alone = alone();
    for wait in WAITS {
        let (near, far) = open(1, &crr(100, 100), &by(wait), &FlowOptions::default());
        let port = far[0].local().ip().unwrap();
        let schedule = rig::schedule(300);
        let far = rig::start(far, schedule, 1);
        let near = rig::start(near, schedule, 1);
        let strangers: Vec<_> = (0..20)
            .map(|at| {
                let mut stranger = std::net::TcpStream::connect(port).unwrap();
                // Half say something, and none of them a whole request.
                let garbage = &[7; 50][..50 * (at % 2)];
                std::io::Write::write_all(&mut stranger, garbage).unwrap();
                stranger
            })
            .collect();
        let (near, far) = (near.finish(), far.finish());
        drop(strangers);
        assert_eq!((&near[0].ended_early, &far[0].ended_early), (&None, &None));
        assert!(near[0].transactions > 0);
        assert!(far[0].transactions >= near[0].transactions);
        // And nobody listens there any more.
        std::net::TcpStream::connect(port).unwrap_err();
    }
}

#[test]
fn an_abort_ends_places_of_connections() {
    let _alone = alone();
    for wait in WAITS {
        let (near, far) = open(3, &crr(1, 1), &by(wait), &FlowOptions::default());
        let (far, near) = (
            rig::start(far, rig::endless(), 1),
            rig::start(near, rig::endless(), 1),
        );
        near.abort();
        far.abort();
        for result in near.finish().iter().chain(&far.finish()) {
            assert_eq!(result.ended_early.as_deref(), Some("aborted"), "{wait:?}");
        }
    }
}

/// A stop that comes while connections are made: both ends agree, and nothing is early.
#[test]
fn an_early_stop_ends_places_in_agreement() {
    let _alone = alone();
    for wait in WAITS {
        let (near, far) = open(5, &crr(10, 3000), &by(wait), &FlowOptions::default());
        let mut far = rig::start(far, rig::endless(), 1);
        let near = rig::start(near, rig::endless(), 1);
        wait_for_transactions(&mut far, 20);
        near.stop();
        let near = near.finish();
        far.stop();
        assert_agree(&near, &far.finish());
    }
}

/// A server that accepts and never answers: said so, after the time of grace, and let go of.
#[test]
fn a_response_that_never_comes_is_named() {
    let _alone = alone();
    for wait in WAITS {
        let silent = rig::listener();
        let peer = silent.local_addr().unwrap();
        let config = FlowConfig {
            manner: by(wait),
            ..rig::config(0, End::Client, Part::Requester, &crr(10, 10))
        };
        let before = descriptors();
        let near = connect(config, peer, None, &places::hello(0), rig::DEADLINE).unwrap();
        let near = rig::start(vec![near], rig::schedule(200), 1).finish();
        let reason = near[0].ended_early.as_deref().unwrap();
        let expected = "the response did not come within 2 s after the stop";
        assert_eq!(reason, expected, "{wait:?}");
        assert_eq!((near[0].bytes_sent, near[0].transactions), (10, 0));
        assert_eq!(descriptors(), before, "{wait:?}");
    }
}

/// However places end, no descriptor of theirs stays.
#[test]
fn places_leave_no_descriptors() {
    let _alone = alone();
    for wait in WAITS {
        for (request, response) in [(0, 0), (1, 1), (300, 100_000)] {
            let before = descriptors();
            let traffic = crr(request, response);
            let (near, far) = run(9, &traffic, &by(wait), 2, 30);
            assert_agree(&near, &far);
            let (near, far) = open(9, &traffic, &by(wait), &FlowOptions::default());
            let port = far[0].local().ip().unwrap();
            let mut far = rig::start(far, rig::endless(), 1);
            let near = rig::start(near, rig::endless(), 1);
            // More than a place keeps, so that some have to give way.
            let strangers: Vec<_> = (0..9)
                .map(|_| std::net::TcpStream::connect(port).unwrap())
                .collect();
            wait_for_transactions(&mut far, 20);
            // In the middle of connections at either end.
            near.abort();
            near.finish();
            far.abort();
            far.finish();
            drop(strangers);
            let what = format!("{wait:?}, {request} B and {response} B");
            assert_eq!(descriptors(), before, "{what}");
        }
    }
}

#[test]
fn how_workers_of_connections_waited_is_said() {
    let _alone = alone();
    for (wait, expect) in [
        (WaitBy::Auto, ["io_uring", "epoll"]),
        (WaitBy::Uring, ["io_uring", "epoll"]),
        (WaitBy::Epoll, ["epoll"; 2]),
        (WaitBy::Spin, ["spin"; 2]),
    ] {
        let (near, far) = run(2, &crr(1, 1), &by(wait), 1, 20);
        for result in near.iter().chain(&far) {
            let said = setting(result, "wait");
            let granted = said.granted.as_deref().unwrap();
            assert!(expect.contains(&granted), "{said:?}");
            // Where io_uring was to be and is not, it is said why.
            let missed = wait == WaitBy::Uring && granted == "epoll";
            assert_eq!(said.capped_by.is_some(), missed, "{said:?}");
            let effective = said.effective.as_deref().unwrap();
            assert!(effective.starts_with(granted), "{said:?}");
        }
    }
}

#[test]
fn latencies_are_told_while_they_come_and_add_up_to_those_of_the_window() {
    let _alone = alone();
    for traffic in [rig::rr(1, 1, 1), crr(1, 1)] {
        let (near, far) = open(3, &traffic, &Manner::default(), &FlowOptions::default());
        let schedule = rig::schedule(100);
        let far = rig::start(far, schedule, 2);
        let mut near = rig::start(near, schedule, 2);
        let (mut buckets, mut all) = (BTreeMap::new(), 0);
        loop {
            let is_last = near.done();
            near.sample_latencies(|sample| {
                assert_eq!(sample.metric, Metric::AppLatencies);
                let count = sample.value.cast_unsigned();
                match sample.subject {
                    Subject::Latency(None, None) => {
                        assert!(count >= all);
                        all = count;
                    }
                    Subject::Latency(None, Some(about)) => {
                        let before = buckets.insert(about.0, count);
                        assert!(before.is_none_or(|before| before < count), "it has grown");
                    }
                    other => panic!("{other}"),
                }
            });
            assert_eq!(buckets.values().sum::<u64>(), all);
            if is_last {
                break;
            }
            std::thread::yield_now();
        }
        // Of connections that are gone, TCP's shortest round trip is what is left.
        let mut samples = Vec::new();
        near.sample(&mut samples);
        let is_rtt = |sample: &&Sample| sample.metric == Metric::TcpMinRtt;
        let rtts: Vec<i64> = samples.iter().filter(is_rtt).map(|one| one.value).collect();
        assert!(
            rtts.len() == 3 && rtts.iter().all(|ns| (1..1_000_000_000).contains(ns)),
            "{rtts:?}"
        );
        let told = Histogram {
            buckets: buckets.into_iter().collect(),
        };
        let mut whole = Histogram::default();
        for result in near.finish() {
            whole.merge(result.latency.as_ref().unwrap());
        }
        far.finish();
        assert!(all > 0);
        assert_eq!(told.count(), whole.count());
        for q in [0.0, 0.5, 0.9, 0.99, 1.0] {
            let [told, whole] = [&told, &whole].map(|of| of.quantile(q).unwrap().0 as f64);
            // A 64th of the one, a thousandth of the other.
            assert!((told / whole - 1.0).abs() < 0.0167, "{told} for {whole}");
        }
    }
}

/// Waits until flows have made so many transactions.
fn wait_for_transactions(running: &mut Running, least: i64) {
    let began = Instant::now();
    let mut samples = Vec::new();
    loop {
        samples.clear();
        running.sample(&mut samples);
        let mut made = 0;
        for sample in samples.iter() {
            if sample.metric == Metric::AppTransactions {
                made += sample.value;
            }
        }
        if made >= least {
            return;
        }
        assert!(began.elapsed() < rig::DEADLINE, "{made} of {least}");
        std::thread::yield_now();
    }
}

/// Returns how many descriptors this process has.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
