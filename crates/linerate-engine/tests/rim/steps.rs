//! Exchanges of several steps: what goes over the wire, in which order, and how long pauses take.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_engine::{Flow, FlowConfig, connect};
use linerate_model::manner::{Manner, WaitBy};
use linerate_model::sample::End;
use linerate_model::step::{Step, exchanged};
use linerate_model::workload::{Part, Traffic};
use proptest::prelude::*;

use crate::{alone, assert_agree, rig, run};

pub fn steps(words: &[&str]) -> Vec<Step> {
    let step = |text: &&str| Step::named(text).unwrap();
    words.iter().map(step).collect()
}

/// Returns the traffic and the manner of `steps`.
pub fn by(wait: WaitBy, steps: &[Step]) -> (Traffic, Manner) {
    let (request, response) = exchanged(steps);
    let manner = Manner {
        wait,
        steps: Some(steps.into()),
        ..Manner::default()
    };
    (rig::rr(request.0, response.0, 1), manner)
}

const WAITS: [WaitBy; 4] = [WaitBy::Auto, WaitBy::Epoll, WaitBy::Uring, WaitBy::Spin];
/// Reads of one end that follow each other, calls that do, and who is first after a pause.
const MIXED: [&str; 9] = [
    "send 70",
    "send 3000",
    "receive 35",
    "pause 1ms",
    "receive 4000",
    "send 1",
    "server spin 1ms",
    "receive 2",
    "receive 415",
];

/// Opens a flow that plays `part` of `steps`, and the bare socket of its peer.
fn with_bare_peer(part: Part, wait: WaitBy, steps: &[Step]) -> (Flow, TcpStream) {
    let (traffic, manner) = by(wait, steps);
    let listener = rig::listener();
    let end = if part == Part::Requester {
        End::Client
    } else {
        End::Server
    };
    let config = FlowConfig {
        manner,
        ..rig::config(0, end, part, &traffic)
    };
    let flow = connect(
        config,
        listener.local_addr().unwrap(),
        None,
        b"",
        rig::DEADLINE,
    )
    .unwrap();
    (flow, listener.accept().unwrap().0)
}

/// Plays the other part once; returns false if the connection ended in it. Whoever receives sees that no byte comes
/// before its step.
fn play_once(peer: &mut TcpStream, own: End, steps: &[Step]) -> bool {
    let mut room = vec![0; 1 << 16];
    let messages: Vec<(End, usize)> = steps
        .iter()
        .filter_map(|step| step.message())
        .map(|(end, bytes)| (end, bytes.0 as usize))
        .collect();
    for (at, &(end, bytes)) in messages.iter().enumerate() {
        if end == own {
            if peer.write_all(&room[..bytes]).is_err() {
                return false;
            }
            continue;
        }
        if peer.read_exact(&mut room[..bytes]).is_err() {
            return false;
        }
        // It is our turn now: the other end may not go on.
        if messages.get(at + 1).is_some_and(|next| next.0 == own) {
            peer.set_nonblocking(true).unwrap();
            let more = peer.peek(&mut room);
            peer.set_nonblocking(false).unwrap();
            // Nothing, or the end: it leaves in a pause.
            let nothing = more.map_err(|error| error.kind());
            assert!(
                matches!(nothing, Ok(0) | Err(ErrorKind::WouldBlock)),
                "{nothing:?}"
            );
        }
    }
    true
}

#[test]
fn each_end_sends_what_is_its_own_when_it_is_its_turn() {
    let _alone = alone();
    let steps = steps(&MIXED);
    let (request, response) = exchanged(&steps);
    for wait in WAITS {
        let (near, mut peer) = with_bare_peer(Part::Requester, wait, &steps);
        let near = rig::start(vec![near], rig::schedule(60), 1);
        let mut whole = 0;
        while play_once(&mut peer, End::Server, &steps) {
            whole += 1;
        }
        let [near] = near.finish().try_into().unwrap();
        assert_eq!(near.ended_early, None, "{wait:?}");
        assert_eq!(near.transactions, whole);
        assert_eq!(near.bytes_received / response.0, whole);
        let latency = near.latency.as_ref().unwrap();
        assert!(latency.count() <= whole && whole > 0);

        let (far, mut peer) = with_bare_peer(Part::Responder, wait, &steps);
        let far = rig::start(vec![far], rig::schedule(60), 1);
        (0..5).for_each(|_| assert!(play_once(&mut peer, End::Client, &steps)));
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let [far] = far.finish().try_into().unwrap();
        assert_eq!((far.transactions, far.bytes_received), (5, 5 * request.0));
        assert_eq!(far.bytes_sent, 5 * response.0);
    }
}

#[test]
fn what_are_no_steps_is_refused_before_a_connection_is_made() {
    let refused = |steps: &[Step]| {
        let (traffic, manner) = by(WaitBy::Auto, steps);
        let config = FlowConfig {
            manner,
            ..rig::config(0, End::Client, Part::Requester, &traffic)
        };
        let peer = rig::listener().local_addr().unwrap();
        connect(config, peer, None, b"", rig::DEADLINE)
            .unwrap_err()
            .to_string()
    };
    for (words, told) in [
        (&[][..], "request_bytes is 0"),
        (
            &["send 1", "receive 1"].repeat(501),
            "number of steps is 1002",
        ),
        (
            &["send 64M", "send 1", "receive 1"],
            "request_bytes is 67108865",
        ),
        (&["receive 1", "send 1"], "sent by the client"),
    ] {
        let error = refused(&steps(words));
        assert!(
            error.contains(told) || error == "the flow's configuration is not possible",
            "{error}"
        );
    }
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let size = || prop_oneof![Just(1_u64), 1..2000_u64, 1..100_000_u64];
    let word = prop_oneof![
        4 => size().prop_map(|size| format!("send {size}")),
        4 => size().prop_map(|size| format!("receive {size}")),
        1 => (1..900_u64).prop_map(|us| format!("pause {us}us")),
        1 => (1..900_u64).prop_map(|us| format!("spin {us}us")),
        1 => (1..900_u64).prop_map(|us| format!("server pause {us}us")),
        1 => (1..900_u64).prop_map(|us| format!("server spin {us}us")),
    ];
    prop::collection::vec(word, 0..12).prop_map(|middle| {
        let ends = |word: &str| vec![word.to_owned()];
        let words = [ends("send 5"), middle, ends("receive 7")].concat();
        let step = |word: &String| Step::named(word).unwrap();
        words.iter().map(step).collect()
    })
}

proptest! {
    // 20 runs of 60 ms each.
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ends_walk_along_any_steps(
        steps in any_steps(),
        wait in prop::sample::select(&WAITS[..]),
        flows in 1..=5_u32,
    ) {
        let _alone = alone();
        let (traffic, manner) = by(wait, &steps);
        let (near, far) = run(flows, &traffic, &manner, 1, 40);
        if !manner.has_pauses() {
            assert_agree(&near, &far);
        }
        let (request, response) = exchanged(&steps);
        for (near, far) in near.iter().zip(&far) {
            prop_assert_eq!((&near.ended_early, &far.ended_early), (&None, &None));
            // Those with pauses end in the middle.
            let whole = near.transactions;
            prop_assert!((whole..=whole + 1).contains(&far.transactions));
            prop_assert!((whole * request.0..=(whole + 1) * request.0).contains(&near.bytes_sent));
            prop_assert!((whole * response.0..=(whole + 1) * response.0).contains(&near.bytes_received));
        }
    }
}

/// Pauses are as long as they say: that is all that a clock can be asked on a shared machine.
#[test]
fn pauses_bound_what_is_exchanged() {
    let _alone = alone();
    let check = |words: &[&str], pass_ms: u64, latency_ms: u64| {
        let steps = steps(words);
        for wait in WAITS {
            let (traffic, manner) = by(wait, &steps);
            let (near, _) = run(1, &traffic, &manner, 1, 100);
            // Workers that spin may keep the others from a busy machine's CPUs: none is a number too.
            let least = u64::from(wait != WaitBy::Spin);
            let (most, whole) = (120 / pass_ms + 1, near[0].transactions);
            assert!(
                (least..=most).contains(&whole),
                "{words:?} {wait:?}: {whole}"
            );
            let shortest = near[0].latency.as_ref().unwrap().quantile(0.01);
            assert!(shortest.is_none_or(|time| time.0 >= latency_ms * 980_000));
        }
    };
    check(&["send 1", "receive 1", "pause 10ms"], 10, 0);
    check(&["spin 10ms", "send 1", "receive 1"], 10, 0);
    check(&["send 1", "pause 10ms", "receive 1"], 10, 10);
    check(&["send 1", "server spin 10ms", "receive 1"], 10, 10);
    check(
        &["send 1", "pause 5ms", "receive 1", "spin 5ms", "receive 1"],
        10,
        10,
    );
    // Both ends pause at the same time.
    check(
        &["send 1", "pause 10ms", "server pause 10ms", "receive 1"],
        10,
        10,
    );
}

#[test]
fn busy_pauses_take_a_cpu_and_not_the_worker_from_its_other_flows() {
    let _alone = alone();
    let spent = |words: &[&str], flows| {
        let (traffic, manner) = by(WaitBy::Auto, &steps(words));
        let (near, far): (Vec<Flow>, Vec<Flow>) = (0..flows)
            .map(|flow| rig::pair_by(flow, Part::Requester, &traffic, &manner))
            .unzip();
        let schedule = rig::schedule(200);
        let far = rig::start(far, schedule, 1);
        let near = rig::start(near, schedule, 1);
        while !near.done() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (user_ns, system_ns) = near.spent_by_ended_ns();
        let whole: u64 = near.finish().iter().map(|near| near.transactions).sum();
        drop(far.finish());
        (user_ns + system_ns, whole)
    };
    let idle = spent(&["send 1", "receive 1", "pause 20ms"], 1);
    let busy = spent(&["send 1", "receive 1", "spin 20ms"], 1);
    assert!(busy.0 > 4 * idle.0, "{busy:?}, {idle:?}");
    // One after another they would come to eleven.
    let many = spent(&["send 1", "receive 1", "spin 20ms"], 8);
    assert!(many.1 > 22, "{many:?}");
}
