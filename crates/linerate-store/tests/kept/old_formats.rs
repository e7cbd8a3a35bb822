//! Bundles of every format that was ever written stay readable.
//!
//! `bundles/format-N` was written once, by the version that introduced format N, and never
//! changes; `bundles/format-3-typed` by the one after which nothing in format 3 was words only: events
//! have kinds, and requests and connections columns. If a change to a document makes one of these tests
//! fail, the change needs a default for what old bundles lack, or a new format number and code for the
//! old one.

use std::path::{Path, PathBuf};

use linerate_model::capture::CaptureOutcome;
use linerate_model::experiment::{Factor, Level};
use linerate_model::flag::TrialFlag;
use linerate_model::metric::Metric;
use linerate_model::profile::Work;
use linerate_model::run::{
    BUNDLE_FORMAT, Event, EventKind, HostProgram, Incoming, Progress, Recording, TrialEvidence,
    Validity,
};
use linerate_model::sample::{End, Subject};
use linerate_model::shortfall::RequestCount;
use linerate_model::workload::Part;
use linerate_model::{BitsPerSec, Bytes, FlowId, HostName, Nanos, TrialId};
use linerate_store::{Writer, capture_path, read};

fn directory(name: &str) -> PathBuf {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles");
    bundles.join(name)
}

fn bundle(format: u32) -> Recording {
    let recording = named(&format!("format-{format}"));
    assert_eq!(recording.document.format, format);
    recording
}

fn named(name: &str) -> Recording {
    let recording = read(&directory(name)).expect("a bundle");
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
    let path = capture_path(&directory("format-3"), one).expect("a file");
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

#[test]
fn format_3_the_kinds_of_events() {
    let recording = named("format-3-typed");
    let lost = "host server: lost the agent at 10.0.0.1:5202 while asking for samples";
    let began = |over, of, left| EventKind::TrialBegan(Progress { over, of, left });
    let ended = |invalid| EventKind::TrialEnded { invalid };
    let expected = [
        (1, None, None, EventKind::RunBegan),
        (2, Some(1), None, began(0, 2, None)),
        (900, Some(1), Some("server"), ended(Some(lost.into()))),
        (
            901,
            None,
            Some("server"),
            EventKind::HostLost {
                wait: Nanos::from_s(10),
            },
        ),
        (2000, Some(2), None, began(1, 3, Some(Nanos::from_ms(1600)))),
        (2800, Some(2), None, ended(None)),
        (2801, None, None, EventKind::PlanChanged),
        (
            2900,
            None,
            None,
            EventKind::RunEnded {
                cut_short: Some("interrupted after 2 of 3 trials".to_owned()),
            },
        ),
    ]
    .map(|(at_ms, trial, host, what)| Event {
        at_ns: at_ms * 1_000_000,
        trial: trial.map(TrialId),
        host: host.map(HostName::from),
        what,
    });
    assert_eq!(recording.events, expected);
    let invalid = recording.trials[0].validity.reason();
    assert_eq!(invalid, Some(&lost.into()));
    let repeats = &recording.document.plan.repeats;
    let repeats: Vec<_> = repeats
        .iter()
        .map(|repeat| (repeat.trial.0, repeat.of.0, repeat.why.to_string()))
        .collect();
    let rose = "its rate still rose: by 20 % from half to half";
    let expected = [(3, 1, lost.to_owned()), (4, 2, rose.to_owned())];
    assert_eq!(repeats, expected);
}

#[test]
fn format_3_what_serves_and_what_was_due() {
    let old = bundle(3);
    let programs = |recording: &Recording| -> Vec<HostProgram> {
        let hosts = recording.document.hosts.iter();
        hosts.map(|host| host.program.clone()).collect()
    };
    assert_eq!(programs(&old), [HostProgram::Agent], "there was no other");
    assert_eq!(old.flows[0].requests, None, "not recorded apart then");
    let recording = named("format-3-typed");
    let foreign = HostProgram::Foreign("iperf3".to_owned());
    assert_eq!(programs(&recording), [HostProgram::Agent, foreign]);
    let flow = &recording.flows[0];
    assert_eq!(flow.requests, Some(RequestCount { due: 90, sent: 80 }));
    let connections = flow.connections.as_deref().expect("a count");
    assert_eq!((connections.made, connections.failed), (70, 3));
    let why = connections.last_failure.as_deref();
    assert_eq!(why, Some("connecting failed"));
    assert_eq!(recording.flows[1].connections, None);
}

/// Returns a recording of the bundle in `from` as it is read back once this version has written it.
fn rewritten(from: &Path, recording: &Recording) -> Recording {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dir = place.path().join("bundle");
    let mut writer = Writer::create(&dir, &recording.document).expect("a new bundle");
    for record in &recording.trials {
        let trial = record.trial;
        let captures = recording.captures.iter().filter(|it| it.trial == trial);
        let captures = captures.map(|capture| {
            let file = capture_path(from, capture);
            let frames = file.map_or(Vec::new(), |path| std::fs::read(path).expect("a file"));
            (capture.clone(), frames)
        });
        let profiles = recording.profiles.iter();
        let evidence = TrialEvidence {
            record: record.clone(),
            flows: recording.flows_of(trial).cloned().collect(),
            samples: recording.samples.of_trial(trial).collect(),
            profiles: profiles.filter(|it| it.trial == trial).cloned().collect(),
            captures: captures.collect(),
        };
        writer.append(&evidence).expect("stored");
    }
    for event in &recording.events {
        writer.event(event).expect("stored");
    }
    let document = recording.document.clone();
    writer.finish(&document).expect("finished");
    read(&dir).expect("a bundle")
}

#[test]
fn what_an_old_bundle_holds_is_what_this_version_writes_of_it() {
    for name in ["format-1", "format-2", "format-3", "format-3-typed"] {
        let mut old = named(name);
        old.document.format = BUNDLE_FORMAT;
        let new = rewritten(&directory(name), &old);
        // Trials before groups have one.
        let trials = &new.document.plan.trials;
        assert!(trials.iter().all(|trial| trial.beside.is_empty()), "{name}");
        assert!(new == old, "{name}:\n{new:?}\n{old:?}");
    }
}
