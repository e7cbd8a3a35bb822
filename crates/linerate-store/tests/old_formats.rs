//! Bundles of every format that was ever written stay readable.
//!
//! `bundles/format-N` was written once, by the version that introduced format N, and never
//! changes. If a change to a document makes one of these tests fail, the change needs a default for
//! what old bundles lack, or a new format number and code for the old one.

use std::path::{Path, PathBuf};

use linerate_model::capture::CaptureOutcome;
use linerate_model::experiment::{Factor, Level};
use linerate_model::flag::TrialFlag;
use linerate_model::metric::Metric;
use linerate_model::profile::Work;
use linerate_model::run::{EventKind, Incoming, Recording, Validity};
use linerate_model::sample::{End, Subject};
use linerate_model::workload::Part;
use linerate_model::{BitsPerSec, Bytes, FlowId, TrialId};
use linerate_store::{capture_path, read};

fn directory(format: u32) -> PathBuf {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles");
    bundles.join(format!("format-{format}"))
}

fn bundle(format: u32) -> Recording {
    let recording = read(&directory(format)).expect("a bundle");
    assert_eq!(recording.document.format, format);
    assert_eq!(recording.damage, Vec::<String>::new());
    recording
}

#[test]
fn format_1_the_document() {
    let document = bundle(1).document;
    assert_eq!(document.run.0, "20261120T125330Z-1a2b3c4d");
    assert_eq!(document.asked, "study --lab");
    assert_eq!(document.ended_utc.as_deref(), Some("2026-11-20T12:56:30Z"));
    assert!(document.study);
    assert_eq!(document.plan.trials.len(), 2);
    let cell = &document.plan.trials[1].cell;
    assert_eq!(
        cell.get(&Factor::SocketBuffer),
        Some(&Level::Size(Bytes(65_536)))
    );
    assert_eq!(cell.get(&Factor::Nagle), Some(&Level::Switch(true)));
    let server = document.server().expect("a server");
    assert_eq!(server.link_rate, Some(BitsPerSec(333_333_333.333_333_3)));
    assert_eq!(server.clock.offset_ns, -17);
    assert_eq!(
        server.snapshot.number("cpu.mhz"),
        Some(2_593.904_999_999_999_7)
    );
}

#[test]
fn format_1_the_tables() {
    let recording = bundle(1);
    let [first, second] = recording.trials.as_slice() else {
        panic!("{:?}", recording.trials);
    };
    assert_eq!(first.trial, TrialId(1));
    assert_eq!(first.validity, Validity::Valid);
    assert_eq!(
        first.flags,
        [TrialFlag::Told("the host is shared".to_owned())]
    );
    assert_eq!(
        (first.offset_ns, first.window_ns),
        (1_000_000_000, 500_000_000)
    );
    assert_eq!(
        (first.start_skew_ns, first.start_skew_uncertainty_ns),
        (Some(12_345), None)
    );
    assert_eq!(
        second.validity,
        Validity::Invalid("client1 went away".into())
    );

    assert_eq!(recording.flows.len(), 4);
    let flow = &recording.flows[0];
    assert_eq!(
        (flow.flow, flow.end, flow.part),
        (FlowId(0), End::Client, Part::Sender)
    );
    assert_eq!((&*flow.host.0, flow.cpu), ("client1", Some(1)));
    assert_eq!(flow.incoming, Incoming::default(), "not read then: absent");
    assert_eq!(
        (flow.local.as_str(), flow.remote.as_str()),
        ("10.0.0.2:40000", "10.0.0.1:5202")
    );
    assert_eq!(
        (flow.first_payload_ns, flow.bytes_sent),
        (Some(-200_000_000), 60_000_000)
    );
    assert_eq!(flow.settings[0].granted.as_deref(), Some("131072"));
    let latency = flow.latency.as_ref().expect("a histogram");
    assert_eq!(latency.buckets, [(70_000, 10), (71_000, 3)]);
    assert_eq!(recording.flows[1].latency, None);
    assert_eq!(flow.lateness, None, "not recorded then: absent");

    assert_eq!(recording.samples.len(), 120);
    let sample = recording.samples.iter().next().unwrap();
    assert_eq!(sample.subject, Subject::Flow(FlowId(0), End::Client));
    assert_eq!((sample.metric, sample.value), (Metric::AppBytesSent, 1448));
    let told = EventKind::Told {
        text: "measured".to_owned(),
    };
    let events: Vec<_> = recording.events.iter().map(|event| &event.what).collect();
    assert_eq!(events, [&told, &told]);
}

#[test]
fn format_2_the_stacks() {
    assert_eq!(bundle(1).profiles, [], "format 1 had none");
    let profiles = bundle(2).profiles;
    let hosts: Vec<&str> = profiles.iter().map(|profile| &*profile.host.0).collect();
    assert_eq!(hosts, ["client1", "server"]);
    let stacks = &profiles[0].stacks;
    assert_eq!(stacks.len(), 2);
    assert_eq!(stacks[0].frames, "worker;tcp_sendmsg;_copy_from_iter");
    assert_eq!((stacks[0].work, stacks[0].samples), (Work::Copy, 700));
}

#[test]
fn format_3_the_captures() {
    assert_eq!(bundle(2).captures, [], "format 2 had none");
    let captures = bundle(3).captures;
    assert_eq!(captures.len(), 2);
    let [one, none] = &captures[..] else { return };
    assert_eq!((one.trial, &*one.host.0), (TrialId(1), "client1"));
    assert_eq!(one.file.as_deref(), Some("captures/000001-client1.pcapng"));
    let path = capture_path(&directory(3), one).expect("a file");
    assert_eq!(std::fs::metadata(path).expect("it is there").len(), 84);
    let CaptureOutcome::Taken(taken) = &one.outcome else {
        panic!("{one:?}");
    };
    assert_eq!((&*taken.device, taken.snap_bytes), ("eth0", 128));
    assert_eq!(
        (taken.frames, taken.bytes, taken.dropped, taken.others),
        (0, 84, 7, 3)
    );
    assert_eq!(taken.ended.as_deref(), Some("its file was full (32 MiB)"));
    assert_eq!((taken.anonymous, taken.cpu_ns), (true, 5_000_000));
    let why = CaptureOutcome::Missing("cannot capture on eth0".to_owned());
    assert_eq!(
        (&*none.host.0, &none.outcome, &none.file),
        ("server", &why, &None)
    );
}
