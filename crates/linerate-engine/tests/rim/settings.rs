//! Options as requested, granted and effective.

use linerate_engine::FlowResult;
use linerate_model::Bytes;
use linerate_model::setting::Settings;
use linerate_model::workload::{FlowOptions, Part, Setting, Traffic};

use crate::rig;

fn setting<'a>(settings: &'a Settings, name: &str) -> &'a Setting {
    settings
        .iter()
        .find(|setting| setting.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn sysctl(name: &str) -> u64 {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::read_to_string(path)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn run(options: &FlowOptions, traffic: &Traffic, part: Part) -> [FlowResult; 2] {
    let (near, far) = rig::pair(0, part, traffic, options);
    let schedule = rig::schedule(20);
    let far = rig::start(vec![far], schedule, 1);
    let near = rig::start(vec![near], schedule, 1);
    [near.finish().remove(0), far.finish().remove(0)]
}

#[test]
fn a_buffer_above_the_limit_names_the_sysctl() {
    let asked = 1 << 30;
    let options = FlowOptions {
        socket_buffer: Some(Bytes(asked)),
        ..FlowOptions::default()
    };
    let (near, far) = rig::pair(0, Part::Sender, &rig::stream(1), &options);
    for flow in [near, far] {
        for (name, limit) in [
            ("SO_SNDBUF", "net.core.wmem_max"),
            ("SO_RCVBUF", "net.core.rmem_max"),
        ] {
            let got = setting(flow.settings(), name);
            let limit_bytes = sysctl(limit);
            assert_eq!(got.requested, Some(asked.to_string()));
            if limit_bytes < asked {
                assert_eq!(got.granted, Some(limit_bytes.to_string()));
                assert_eq!(got.capped_by, Some(format!("{limit} = {limit_bytes}")));
            } else {
                assert_eq!(got.capped_by, None);
            }
        }
    }
}

#[test]
fn what_was_asked_for_is_in_force() {
    let options = FlowOptions {
        socket_buffer: Some(Bytes(32_768)),
        nagle: Some(false),
        congestion: Some("reno".to_owned()),
        mss_bytes: Some(1000),
        cork: Some(true),
        tos: Some(0xb8),
        ..FlowOptions::default()
    };
    for result in run(&options, &rig::stream(5000), Part::Sender) {
        let check = |name: &str, requested: &str, effective: &[&str]| {
            let got = setting(&result.settings, name);
            assert_eq!(got.requested.as_deref(), Some(requested), "{got:?}");
            assert!(got.granted.is_some() && got.capped_by.is_none(), "{got:?}");
            let seen = got.effective.as_deref().unwrap();
            assert!(effective.contains(&seen), "{got:?}");
        };
        check("SO_SNDBUF", "32768", &["32768"]);
        check("SO_RCVBUF", "32768", &["32768"]);
        check("TCP_NODELAY", "1", &["1"]);
        // reno needs no module: it is in every kernel.
        check("TCP_CONGESTION", "reno", &["reno"]);
        // Less the 12 bytes of timestamps, where they are on.
        check("TCP_MAXSEG", "1000", &["1000", "988"]);
        check("TCP_CORK", "1", &["1"]);
        check("IP_TOS", "184", &["184"]);
    }
}

#[test]
fn what_was_left_alone_is_reported_too() {
    for result in run(&FlowOptions::default(), &rig::stream(5000), Part::Receiver) {
        for name in [
            "SO_SNDBUF",
            "SO_RCVBUF",
            "TCP_NODELAY",
            "TCP_QUICKACK",
            "TCP_CONGESTION",
            "TCP_MAXSEG",
        ] {
            let got = setting(&result.settings, name);
            assert_eq!(got.requested, None);
            assert!(got.granted.is_some() && got.effective.is_some(), "{got:?}");
        }
        let window = setting(&result.settings, "tcpi_snd_wnd");
        assert!(window.effective.as_ref().unwrap().parse::<u64>().unwrap() > 0);
    }
}

/// Nagle's algorithm holds the second write of a request until the first is acknowledged, and a
/// responder that delays acknowledgements sends that only with its timer (40 ms, 200 ms at most):
/// the transaction stalls. Acknowledging after every receive ends the stall, and so does sending
/// without Nagle's algorithm.
#[test]
fn nagle_meets_delayed_ack_only_where_both_are_on() {
    let check = |nagle, delayed_ack, stalls: bool| {
        let options = FlowOptions {
            nagle: Some(nagle),
            delayed_ack: Some(delayed_ack),
            ..FlowOptions::default()
        };
        let (near, far) = rig::pair(0, Part::Requester, &rig::rr(200, 100, 2), &options);
        let schedule = rig::schedule(400);
        let far = rig::start(vec![far], schedule, 1);
        let near = rig::start(vec![near], schedule, 1).finish();
        let median_ns = near[0].latency.as_ref().unwrap().quantile(0.5).unwrap().0;
        let at_timer = (30_000_000..=250_000_000).contains(&median_ns);
        assert_eq!(
            at_timer, stalls,
            "nagle {nagle}, delayed ACK {delayed_ack}: {median_ns} ns"
        );
        assert_eq!(far.finish()[0].ended_early, None);
    };
    check(true, true, true);
    check(true, false, false);
    check(false, true, false);
    check(false, false, false);
}

/// Instants are worth what reading them takes, so each flow says how they were read.
#[test]
fn how_instants_were_read_is_said() {
    for result in run(&FlowOptions::default(), &rig::rr(1, 1, 1), Part::Requester) {
        let clock = setting(&result.settings, "clock");
        let effective = clock.effective.as_deref().unwrap();
        let (cost, why) = effective.split_once(": ").unwrap_or((effective, ""));
        assert!(cost.ends_with(" ns per reading"), "{effective}");
        assert_eq!(cost.starts_with("vDSO, "), why.is_empty(), "{effective}");
    }
}

#[test]
fn a_flow_over_loopback_comes_in_on_a_cpu_and_by_no_napi() {
    let [near, far] = run(&FlowOptions::default(), &rig::stream(1000), Part::Sender);
    for flow in [near, far] {
        let cpu = flow.incoming.cpu.expect("packets came");
        assert!(cpu < 8192, "{cpu}");
        assert_eq!(flow.incoming.napi, None);
    }
}
