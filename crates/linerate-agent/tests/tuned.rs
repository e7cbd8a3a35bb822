//! Who may have a host changed for a trial, and that it is put back however the trial ends.

#[path = "common/plain.rs"]
mod plain;

use std::sync::Arc;

use linerate_agent::access::Caller;
use linerate_agent::api::{AdmitRequest, Assignment, Changes, LimitsInfo, Refusal, RefusalCode};
use linerate_agent::{AgentConfig, Core};
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::run::Admission;
use linerate_model::sample::End;
use linerate_model::workload::{Direction, Part, Traffic};
use linerate_model::{Bytes, TrialId};
use nix::sched::{CloneFlags, unshare};

const LIMIT: &str = "/proc/sys/net/ipv4/tcp_limit_output_bytes";

/// Returns an agent that a lab started.
fn agent_of_a_lab() -> Arc<Core> {
    Arc::new(Core::new(AgentConfig {
        host_name: "test".to_owned(),
        limits: LimitsInfo::default(),
        lab: true,
    }))
}

fn admit(core: &Core, caller: &Caller, admission: Admission) -> String {
    let request = AdmitRequest {
        admission,
        ..plain::request()
    };
    let admitted = core.admit(caller, None, &request);
    admitted.expect("nobody else is here").lease
}

/// Returns a trial that expects a stream and changes the host.
fn trial(number: u32, levels: &[(Factor, Level)]) -> Assignment {
    let stream = Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(1024),
    };
    Assignment {
        trial: TrialId(number),
        cookie: format!("{number:032x}"),
        changes: Some(Changes {
            device: None,
            levels: levels.iter().cloned().collect::<Cell>(),
        }),
        ..plain::assignment(End::Server, Part::Receiver, stream, 1)
    }
}

fn limit() -> String {
    let text = std::fs::read_to_string(LIMIT).expect("every kernel has it");
    text.trim().to_owned()
}

const SET: (Factor, Level) = (Factor::TcpLimitOutputBytes, Level::Size(Bytes(77_000)));

#[track_caller]
fn is_refused(told: Result<impl Sized, Refusal>, code: RefusalCode) {
    let refusal = told.map(drop).expect_err("refused");
    assert_eq!(refusal.code, code, "{}", refusal.error);
    assert!(refusal.error.contains(&*SET.0.name()) || code == RefusalCode::Busy);
}

#[test]
fn no_host_is_changed_that_is_not_a_labs() {
    let before = limit();
    let mut agents = vec![plain::core(LimitsInfo::default())];
    // One that says it is of a lab, where this network is the machine's first.
    if std::path::Path::new("/proc/sys/net/core/netdev_budget").exists() {
        agents.push(agent_of_a_lab());
    }
    for core in agents {
        let lease = admit(&core, &Caller::Trusted, Admission::Exclusive);
        let told = core.prepare(&Caller::Trusted, &lease, trial(1, &[SET]));
        is_refused(told, RefusalCode::Limited);
        assert_eq!(limit(), before);
    }
}

/// Runs `check` in a network namespace of its own, where that may be made.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn in_own_network(check: fn()) {
    let within = std::thread::spawn(move || match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => check(),
        Err(error) if std::env::var("CI").as_deref() != Ok("true") => println!("skipped: {error}"),
        Err(error) => panic!("no network namespace: {error}"),
    });
    within.join().expect("it held");
}

#[test]
fn what_a_trial_changed_is_put_back_however_it_ends() {
    in_own_network(|| {
        let before = limit();
        let core = agent_of_a_lab();
        let trusted = Caller::Trusted;
        let lease = admit(&core, &trusted, Admission::Exclusive);
        let prepare = |number, levels: &[_]| core.prepare(&trusted, &lease, trial(number, levels));
        let change = |number| {
            prepare(number, &[SET]).expect("a lab's host");
            assert_eq!(limit(), "77000");
        };
        change(1);
        core.abort(&lease, TrialId(1)).expect("it was there");
        assert_eq!(limit(), before, "the controller ended it");
        change(2);
        change(2);
        is_refused(prepare(3, &[SET]), RefusalCode::Busy);
        core.leave(&lease).expect("it was there");
        assert_eq!(limit(), before, "the run ended");
        let lease = admit(&core, &trusted, Admission::Exclusive);
        let device = (Factor::Gro, Level::Switch(false));
        let told = core.prepare(&trusted, &lease, trial(4, &[SET, device]));
        assert_eq!(
            told.map(drop).expect_err("no device").code,
            RefusalCode::Limited
        );
        assert_eq!(limit(), before, "all of it or nothing");
    });
}

#[test]
fn neither_guests_nor_those_who_share_a_host_change_it() {
    in_own_network(|| {
        let before = limit();
        let check = |caller: &Caller, admission, code| {
            let core = agent_of_a_lab();
            let lease = admit(&core, caller, admission);
            is_refused(core.prepare(caller, &lease, trial(1, &[SET])), code);
            assert_eq!(limit(), before);
        };
        let guest = Caller::Stranger("far away".to_owned());
        check(&guest, Admission::Exclusive, RefusalCode::Unauthorized);
        check(&Caller::Trusted, Admission::Shared, RefusalCode::Limited);
    });
}
