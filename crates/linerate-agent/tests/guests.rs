//! What callers without the token may have under way in all, whatever they open and however often.

#[path = "common/plain.rs"]
mod plain;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use linerate_agent::Core;
use linerate_agent::access::Caller;
use linerate_agent::api::{
    AdmitRequest, Assignment, GroupAssignment, InventoryRequest, LimitsInfo, PollFrom, Refusal,
    RefusalCode, StartRequest, TrialState, Trigger, TriggerKey,
};
use linerate_model::manner::Transport;
use linerate_model::run::Admission;
use linerate_model::sample::End;
use linerate_model::workload::{Direction, Part, Traffic};
use linerate_model::{BitsPerSec, Bytes, Nanos, TrialId};

fn guest() -> Caller {
    Caller::Stranger("far away".to_owned())
}

/// Returns the address number `at` of one /64 after another.
fn v6(network: u64, at: u64) -> IpAddr {
    Ipv6Addr::from_bits(u128::from(0x2001_0db8_0000_0000 + network) << 64 | u128::from(at)).into()
}

fn admit(core: &Core, caller: &Caller, from: IpAddr, how: Admission) -> Result<String, Refusal> {
    ask(core, caller, from, how, false)
}

fn ask(
    core: &Core,
    caller: &Caller,
    from: IpAddr,
    how: Admission,
    evict: bool,
) -> Result<String, Refusal> {
    let request = AdmitRequest {
        admission: how,
        expected: Some(Nanos(u64::MAX)),
        evict,
        ..plain::request()
    };
    core.admit(caller, Some(from), &request)
        .map(|admitted| admitted.lease)
}

static COOKIES: AtomicU32 = AtomicU32::new(0);

/// Returns the accepting end of `flows` streams, or places of connections.
fn assignment(trial: u32, flows: u32, traffic: Traffic) -> Assignment {
    let part = match traffic {
        Traffic::Crr { .. } => Part::Responder,
        _ => Part::Receiver,
    };
    Assignment {
        trial: TrialId(trial),
        // Of its own, as callers draw them.
        cookie: format!("{:032x}", COOKIES.fetch_add(1, Relaxed)),
        length: Nanos::from_s(3600),
        ..plain::assignment(End::Server, part, traffic, flows)
    }
}

fn stream() -> Traffic {
    Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(1024),
    }
}

fn places() -> Traffic {
    Traffic::Crr {
        request_bytes: Bytes(1),
        response_bytes: Bytes(1),
    }
}

#[test]
fn places_of_guests_leave_half_of_the_files() {
    let core = plain::core(LimitsInfo {
        flows: Some(64),
        ..LimitsInfo::default()
    });
    let mut opened = 0;
    let mut told = Vec::new();
    for network in 0..8 {
        for run in 0..4 {
            // Every run from another address of its network.
            let lease = admit(&core, &guest(), v6(network, run), Admission::Shared).unwrap();
            for trial in 0..4 {
                match core.prepare(&guest(), &lease, assignment(trial, 32, places())) {
                    Ok(_) => opened += 32,
                    Err(refusal) => told.push((network, refusal)),
                }
            }
        }
    }
    // Four networks have theirs, 64 each; then all together have what all may.
    assert_eq!(opened, 256);
    assert!(
        told.iter()
            .all(|(_, refusal)| refusal.code == RefusalCode::Busy)
    );
    let of = |network| {
        let mut own = told.iter().filter(|(other, _)| *other == network);
        own.next().unwrap().1.error.clone()
    };
    let first = of(0);
    assert!(
        first.starts_with("2001:db8::/64 may have 64 flows"),
        "{first}"
    );
    assert!(first.contains("(--limit-flows)"), "{first}");
    assert!(
        of(7).starts_with("all callers together may have 256 flows"),
        "{}",
        of(7)
    );
    // Who holds the token is not held up by them.
    let lease = admit(&core, &Caller::Trusted, v6(9, 0), Admission::Shared).unwrap();
    core.prepare(&Caller::Trusted, &lease, assignment(1, 100, places()))
        .unwrap();
}

#[test]
fn what_a_trial_took_is_there_again_when_it_is_over() {
    let core = plain::core(LimitsInfo {
        flows: Some(8),
        ..LimitsInfo::default()
    });
    let lease = admit(&core, &guest(), v6(0, 0), Admission::Exclusive).unwrap();
    for trial in 0..100 {
        core.prepare(&guest(), &lease, assignment(trial, 8, places()))
            .unwrap();
        core.abort(&lease, TrialId(trial)).unwrap();
    }
    core.prepare(&guest(), &lease, assignment(100, 8, places()))
        .unwrap();
    core.leave(&lease).unwrap();
    let lease = admit(&core, &guest(), v6(0, 1), Admission::Exclusive).unwrap();
    core.prepare(&guest(), &lease, assignment(1, 8, stream()))
        .unwrap();
}

/// Returns instants of a trial whose window of `length_ns` begins soon.
fn instants(length_ns: u64) -> StartRequest {
    let begin_ns = linerate_engine::now_ns() + 200_000_000;
    StartRequest {
        start_ns: begin_ns,
        measure_begin_ns: begin_ns,
        measure_end_ns: begin_ns + length_ns,
        stop_ns: begin_ns + length_ns,
        skew_ns: 0,
        trigger: None,
    }
}

/// A host that joins a group has its network forward what is sent there.
#[test]
fn a_datagram_starts_trials_of_those_with_a_token() {
    let core = plain::core(LimitsInfo::default());
    let key = TriggerKey::new([3; 32]);
    let trigger = |group: [u8; 4]| Trigger {
        group: SocketAddrV4::new(group.into(), 5202),
        interface: Ipv4Addr::LOCALHOST,
        key,
    };
    let at = |group, length_ns| StartRequest {
        trigger: Some(trigger(group)),
        ..instants(length_ns)
    };
    let scoped = [239, 255, 76, 82];
    let refused = |caller: &Caller, network, at: StartRequest, code| {
        let lease = admit(&core, caller, v6(network, 0), Admission::Shared).unwrap();
        core.prepare(caller, &lease, assignment(0, 1, places()))
            .unwrap();
        let refusal = core.start(&lease, TrialId(0), &at).unwrap_err();
        assert_eq!(refusal.code, code, "{}", refusal.error);
    };
    refused(&guest(), 0, at(scoped, 50_000_000), RefusalCode::Limited);
    let trusted = Caller::Trusted;
    refused(&trusted, 1, at([224, 0, 0, 1], 1), RefusalCode::BadRequest);
    refused(&trusted, 2, at([10, 0, 0, 1], 1), RefusalCode::BadRequest);

    let lease = admit(&core, &trusted, v6(3, 0), Admission::Shared).unwrap();
    let ended = |trial| {
        let began = std::time::Instant::now();
        loop {
            let poll = core.poll_trial(&lease, TrialId(trial), PollFrom::default());
            let state = poll.unwrap().state;
            if state.is_over() {
                return state;
            }
            assert!(began.elapsed().as_secs() < 20, "{state:?}");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    };
    let start = |trial| {
        core.prepare(&trusted, &lease, assignment(trial, 1, places()))
            .unwrap();
        core.start(&lease, TrialId(trial), &at(scoped, 50_000_000))
            .unwrap();
        let again = core.start(&lease, TrialId(trial), &at(scoped, 50_000_000));
        assert_eq!(again.unwrap_err().code, RefusalCode::BadRequest);
    };
    // Nobody says when.
    start(1);
    assert!(matches!(ended(1), TrialState::Failed { .. }));
    start(2);
    let sender = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    sender.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    let to = std::net::SocketAddr::from(trigger(scoped).group).into();
    sender.send_to(&key.datagram(20_000_000), &to).unwrap();
    assert_eq!(ended(2), TrialState::Finished);
}

#[test]
fn what_a_trial_took_that_is_about_to_end_is_waited_for() {
    let core = plain::core(LimitsInfo {
        flows: Some(8),
        ..LimitsInfo::default()
    });
    let lease = admit(&core, &guest(), v6(0, 0), Admission::Exclusive).unwrap();
    let begin = |trial| {
        core.prepare(&guest(), &lease, assignment(trial, 8, places()))
            .unwrap();
        let at = instants(3_000_000_000_000);
        core.start(&lease, TrialId(trial), &at).unwrap();
    };
    begin(0);
    core.abort(&lease, TrialId(0)).unwrap();
    begin(1);
    // Prepared once more, which ends it.
    begin(1);
    core.leave(&lease).unwrap();
}

#[test]
fn a_run_keeps_the_results_of_one_trial() {
    let core = plain::core(LimitsInfo::default());
    let lease = admit(&core, &guest(), v6(0, 0), Admission::Exclusive).unwrap();
    for trial in 0..4 {
        core.prepare(&guest(), &lease, assignment(trial, 1, places()))
            .unwrap();
    }
    for trial in 0..4 {
        core.start(&lease, TrialId(trial), &instants(60_000_000))
            .unwrap();
    }
    let is_kept = |trial: &u32| {
        core.poll_trial(&lease, TrialId(*trial), PollFrom::default())
            .is_ok()
    };
    let began = std::time::Instant::now();
    while (0..4).filter(is_kept).count() > 1 {
        let passed_s = began.elapsed().as_secs();
        assert!(passed_s < 15, "results of several are kept");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_rate_is_the_sum_of_all_trials() {
    let core = plain::core(LimitsInfo {
        rate: Some(BitsPerSec(10e6)),
        ..LimitsInfo::default()
    });
    let mut granted = 0.0;
    let mut refused = 0;
    for network in 0..6 {
        let lease = admit(&core, &guest(), v6(network, 0), Admission::Shared).unwrap();
        for trial in 0..4 {
            let mut asked = assignment(trial, 2, stream());
            asked.flow_rate_max = Some(BitsPerSec(1e6));
            match core.prepare(&guest(), &lease, asked) {
                Ok(prepared) => granted += prepared.rate_limit.unwrap().0,
                Err(refusal) => {
                    assert!(refusal.error.contains("10 Mbit/s together (--limit-rate)"));
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((granted, refused), (10e6, 19));
}

#[test]
fn limits_count_the_flows_and_the_rates_of_all_groups() {
    let core = plain::core(LimitsInfo {
        flows: Some(8),
        rate: Some(BitsPerSec(10e6)),
        ..LimitsInfo::default()
    });
    let lease = admit(&core, &guest(), v6(0, 0), Admission::Shared).unwrap();
    let group = |first: u32, flows: u32| GroupAssignment {
        traffic: stream(),
        options: Default::default(),
        manner: Default::default(),
        flows: plain::assignment(End::Server, Part::Receiver, stream(), first + flows).flows
            [first as usize..]
            .to_vec(),
    };
    let asked = |trial, beside| Assignment {
        beside,
        flow_rate_max: Some(BitsPerSec(1e6)),
        ..assignment(trial, 2, stream())
    };
    let refused = |trial, beside| {
        let refusal = core.prepare(&guest(), &lease, asked(trial, beside));
        refusal.unwrap_err()
    };
    let refusal = refused(1, vec![group(2, 3), group(5, 4)]);
    assert_eq!(refusal.code, RefusalCode::Limited);
    assert!(refusal.error.contains("9 flows"), "{}", refusal.error);
    let prepared = core.prepare(&guest(), &lease, asked(2, vec![group(2, 3)]));
    assert_eq!(prepared.unwrap().rate_limit, Some(BitsPerSec(5e6)));
    let many = (0..8).map(|at| group(2 + at, 1)).collect();
    let refusal = refused(3, many);
    assert_eq!(refusal.code, RefusalCode::BadRequest);
    assert!(refusal.error.contains("9 groups"), "{}", refusal.error);
    // What a group may not have beside others is not had by asking an agent oneself.
    let mut volume = group(2, 1);
    volume.manner.bytes_max = Some(Bytes(1));
    let refusal = refused(4, vec![volume]);
    assert_eq!(refusal.code, RefusalCode::BadRequest);
}

#[test]
fn the_host_is_taken_back_with_the_token_only() {
    let core = plain::core(LimitsInfo::default());
    let lease = admit(&core, &guest(), v6(0, 0), Admission::Exclusive).unwrap();
    core.prepare(&guest(), &lease, assignment(1, 1, stream()))
        .unwrap();
    let busy = admit(&core, &Caller::Trusted, v6(1, 0), Admission::Exclusive).unwrap_err();
    assert_eq!(busy.code, RefusalCode::Busy);
    assert_eq!(
        core.evict(&guest()).unwrap_err().code,
        RefusalCode::Unauthorized
    );
    assert_eq!(core.evict(&Caller::Trusted).unwrap(), 1);
    let gone = core.renew(&lease).unwrap_err();
    assert_eq!(gone.code, RefusalCode::Gone);
    assert!(gone.error.contains("took the host back"), "{}", gone.error);
    let own = admit(&core, &Caller::Trusted, v6(1, 0), Admission::Exclusive).unwrap();
    core.prepare(&Caller::Trusted, &own, assignment(1, 1, stream()))
        .unwrap();
    let status = core
        .poll_trial(&own, TrialId(1), PollFrom::default())
        .unwrap();
    assert_eq!(status.state, TrialState::Gathering { missing: 1 });
}

#[test]
fn an_admission_may_take_the_host_back_from_everybody() {
    let core = plain::core(LimitsInfo::default());
    let holder = |scopes: &str| Caller::Holder {
        name: "ci".to_owned(),
        scopes: scopes.parse().unwrap(),
    };
    let admin = holder("measure,admin");
    let theirs = admit(&core, &guest(), v6(0, 0), Admission::Exclusive).unwrap();
    for (caller, code) in [
        (guest(), RefusalCode::Unauthorized),
        (holder("measure"), RefusalCode::Limited),
    ] {
        let refused = ask(&core, &caller, v6(1, 0), Admission::Exclusive, true).unwrap_err();
        assert_eq!(refused.code, code, "{}", refused.error);
    }
    core.renew(&theirs).unwrap();
    let ours = ask(&core, &admin, v6(1, 0), Admission::Exclusive, true).unwrap();
    assert_eq!(core.renew(&theirs).unwrap_err().code, RefusalCode::Gone);
    // From whoever has a token as well.
    let busy = admit(&core, &admin, v6(2, 0), Admission::Exclusive).unwrap_err();
    assert_eq!(busy.code, RefusalCode::Busy);
    let again = ask(&core, &admin, v6(2, 0), Admission::Exclusive, true).unwrap();
    assert_eq!(core.renew(&ours).unwrap_err().code, RefusalCode::Gone);
    core.renew(&again).unwrap();
}

#[test]
fn unix_sockets_are_for_callers_of_this_host() {
    let core = plain::core(LimitsInfo::default());
    let mut unix = assignment(1, 1, stream());
    unix.manner.transport = Transport::Unix;
    for caller in [guest(), Caller::Trusted] {
        let lease = admit(&core, &caller, v6(0, 0), Admission::Shared).unwrap();
        let refused = core.prepare(&caller, &lease, unix.clone()).unwrap_err();
        assert!(
            refused.error.contains("on the agent's own host"),
            "{}",
            refused.error
        );
    }
    let here = IpAddr::from([127, 0, 0, 1]);
    let lease = admit(&core, &Caller::Trusted, here, Admission::Shared).unwrap();
    assert!(
        core.prepare(&Caller::Trusted, &lease, unix)
            .unwrap()
            .socket_name
            .is_some()
    );
}

#[test]
fn guests_are_not_told_of_devices() {
    let core = plain::core(LimitsInfo::default());
    let wanted = InventoryRequest {
        address: Some("127.0.0.1".to_owned()),
        ..InventoryRequest::default()
    };
    let told = |caller: &Caller| core.inventory(caller, &wanted).link;
    assert_eq!(told(&guest()), None);
    assert_eq!(told(&Caller::Trusted).as_deref(), Some("lo"));
}

#[test]
fn messages_of_guests_leave_the_memory_to_others() {
    let core = plain::core(LimitsInfo::default());
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Each worker sends calls of 64 MiB.
    let sends = |trial, message_bytes| {
        let traffic = Traffic::Stream {
            direction: Direction::FromServer,
            message_bytes: Bytes(message_bytes),
        };
        let mut sends = assignment(trial, cpus as u32, traffic);
        for flow in &mut sends.flows {
            flow.part = Part::Sender;
        }
        sends
    };
    let admitted = |caller: &Caller| admit(&core, caller, v6(0, 0), Admission::Shared).unwrap();
    let mut told = None;
    for _ in 0..6 {
        let lease = admitted(&guest());
        let mut trials = (0..4).map(|trial| core.prepare(&guest(), &lease, sends(trial, 64 << 20)));
        told = trials.find_map(Result::err);
        if told.is_some() {
            core.prepare(&guest(), &lease, sends(0, 1 << 10)).unwrap();
            break;
        }
    }
    let Some(told) = told else {
        println!("skipped: this host has more than 24 GiB of memory for each CPU");
        return;
    };
    let words = "MiB of memory without a token";
    assert!(told.error.contains(words), "{}", told.error);
    let lease = admitted(&Caller::Trusted);
    core.prepare(&Caller::Trusted, &lease, sends(0, 64 << 20))
        .unwrap();
}

/// A host without traffic is nobody's: between trials, as the leases hold, and in one.
#[test]
fn a_guest_holds_the_host_with_nothing_no_longer_than_between_trials() {
    let core = plain::core(LimitsInfo::default());
    let check = |caller: &Caller, length: Nanos| {
        let lease = admit(&core, caller, v6(0, 0), Admission::Shared).unwrap();
        let idle = Assignment {
            length,
            ..assignment(0, 1, Traffic::Idle)
        };
        let prepared = core.prepare(caller, &lease, idle);
        core.leave(&lease).unwrap();
        prepared.map_err(|refusal| refusal.code).map(drop)
    };
    assert_eq!(check(&guest(), Nanos::from_s(30)), Ok(()));
    assert_eq!(
        check(&guest(), Nanos::from_s(3600)),
        Err(RefusalCode::Limited)
    );
    assert_eq!(check(&Caller::Trusted, Nanos::from_s(3600)), Ok(()));
}

#[test]
fn guests_are_not_told_who_measures_what_nor_the_number_of_the_boot() {
    let core = plain::core(LimitsInfo::default());
    admit(&core, &Caller::Trusted, v6(0, 0), Admission::Exclusive).unwrap();
    let busy = |caller: &Caller| core.info(caller).busy.expect("a run has the host");
    assert_eq!(busy(&Caller::Trusted).label.as_deref(), Some("test"));
    assert_eq!(busy(&guest()).label, None);
    let refused = |caller: &Caller| {
        let refused = admit(&core, caller, v6(1, 0), Admission::Exclusive);
        refused.expect_err("another has it").error
    };
    assert!(refused(&Caller::Trusted).contains("\"test\""));
    assert!(!refused(&guest()).contains("test"), "{}", refused(&guest()));
    // Two agents of one kernel are known as one machine all the same.
    let boot = |caller: &Caller| core.info(caller).boot;
    let number = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    if let (Some(number), Some(told)) = (number, boot(&guest())) {
        assert!(!told.contains(number.trim()), "{told}");
        assert_eq!(boot(&Caller::Trusted), Some(told.clone()));
        assert_eq!(
            plain::core(LimitsInfo::default()).info(&guest()).boot,
            Some(told)
        );
    }
}
