//! Whatever records are written, the same are read back; whatever bytes a file has, reading ends.

use crate::common;

use linerate_model::datagram::Datagrams;
use linerate_model::flag::TrialFlag;
use linerate_model::histogram::Histogram;
use linerate_model::metric::Metric;
use linerate_model::run::{
    FlowOutcome, FlowRecord, Incoming, TrialEvidence, TrialRecord, Validity, ZeroCopyCount,
};
use linerate_model::sample::{End, QdiscId, QueueKind, Subject, TrialSample};
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::workload::{Part, Setting};
use linerate_model::{FlowId, HostName, TrialId};
use linerate_store::{Writer, read};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z:\"\\\\µ\n]{1,12}"]
}

prop_compose! {
    fn setting()(
        name in text(),
        requested in option::of(text()),
        granted in option::of(text()),
        effective in option::of(text()),
        capped_by in option::of(text()),
        why in option::of(text()),
    ) -> Setting {
        Setting { name, requested, granted, effective, capped_by, why }
    }
}

fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        Just(Subject::Host),
        any::<u32>().prop_map(Subject::Cpu),
        text().prop_map(Subject::Link),
        text().prop_map(Subject::Thread),
        (any::<u32>(), end()).prop_map(|(flow, end)| Subject::Flow(FlowId(flow), end)),
        any::<u32>().prop_map(Subject::Node),
        any::<u32>().prop_map(Subject::Irq),
        (text(), any::<u32>()).prop_map(|(link, n)| Subject::Queue(link, QueueKind::Rx, n)),
        (text(), any::<u32>()).prop_map(|(link, id)| Subject::Qdisc(link, QdiscId(id))),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Client), Just(End::Server)]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::Sender),
        Just(Part::Receiver),
        Just(Part::Requester),
        Just(Part::Responder)
    ]
}

prop_compose! {
    fn flow_of(trial: u32)(
        flow in any::<u32>(),
        host in text(),
        end in end(),
        part in part(),
        addresses in (text(), text()),
        cpu in option::of(any::<u32>()),
        incoming in (option::of(any::<u32>()), option::of(any::<u32>())),
        first_payload_ns in option::of(any::<i64>()),
        (bytes, counted_ns) in ((any::<u64>(), any::<u64>()), option::of(any::<u64>())),
        settings in vec(setting(), 0..3),
        latency in option::of(vec(any::<(u64, u64)>(), 0..5)),
        ended_early in option::of(text()),
        datagrams in option::of((any::<u64>(), option::of(vec(any::<(u64, u64)>(), 0..5)))),
        requests in option::of(any::<(u64, u64)>()),
        connections in option::of((any::<(u64, u64)>(), option::of(text()))),
        zero_copy in option::of(any::<(u64, u64)>()),
    ) -> FlowRecord {
        FlowRecord {
            trial: TrialId(trial),
            host: HostName::from(host),
outcome: FlowOutcome {
            flow: FlowId(flow),
            end,
            part,
            local: addresses.0,
            remote: addresses.1,
            cpu,
            incoming: Incoming { cpu: incoming.0, napi: incoming.1 },
            first_payload_ns,
            bytes_sent: bytes.0,
            bytes_received: bytes.1,
            counted_ns,
            settings: settings.into(),
            lateness: latency.clone().map(|buckets| Histogram { buckets }),
            latency: latency.map(|buckets| Histogram { buckets }),
            datagrams: datagrams.map(|(sent, departures)| {
                Box::new(Datagrams {
                    sent,
                    jitter_ns: Some(sent / 2),
                    transit: None,
                    departures: departures.map(|buckets| Histogram { buckets }),
                    ..Datagrams::default()
                })
            }),
            requests: requests.map(|(due, sent)| RequestCount { due, sent }),
            connections: connections.map(|((made, failed), last_failure)| {
                Box::new(ConnectionCount { made, failed, last_failure })
            }),
            zero_copy: zero_copy.map(|(done, copied)| ZeroCopyCount { done, copied }),
            ended_early,

stall_max_ns: None,
},
}
    }
}

prop_compose! {
    fn sample_of(trial: u32)(
        host in text(),
        subject in subject(),
        metric in 0..Metric::ALL.len(),
        at_ns in any::<i64>(),
        value in any::<i64>(),
    ) -> TrialSample {
        TrialSample {
            trial: TrialId(trial),
            host: HostName::from(host),
            subject,
            metric: Metric::ALL[metric],
            at_ns,
            value,
        }
    }
}

prop_compose! {
    fn trial_of(trial: u32)(
        invalid in option::of(text()),
        flags in vec(text().prop_map(TrialFlag::Told), 0..3),
        offset_ns in any::<u64>(),
        window_ns in any::<u64>(),
        start_skew_ns in option::of(any::<u64>()),
        start_skew_uncertainty_ns in option::of(any::<u64>()),
    ) -> TrialRecord {
        TrialRecord {
            trial: TrialId(trial),
            validity: invalid.map_or(Validity::Valid, |why| Validity::Invalid(why.into())),
            flags,
            offset_ns,
            window_ns,
            start_skew_ns,
            start_skew_uncertainty_ns,
        }
    }
}

type Stored = (TrialRecord, Vec<FlowRecord>, Vec<TrialSample>);

fn stored(trial: u32) -> impl Strategy<Value = Stored> {
    let flows = vec(flow_of(trial), 0..4);
    (trial_of(trial), flows, vec(sample_of(trial), 0..40))
}

/// Trials as a plan numbers them, and one number at the end of the range.
fn run() -> impl Strategy<Value = Vec<Stored>> {
    (stored(1), stored(2), stored(u32::MAX)).prop_map(|(a, b, c)| vec![a, b, c])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn records_survive(run in run(), finish in any::<bool>()) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mut document = common::document(3);
        document.plan.trials[2].id = TrialId(u32::MAX);
        let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
        // Out of order, since nothing promises that trials are stored in the order of the plan.
        for (trial, flows, samples) in run.iter().rev() {
            let evidence = TrialEvidence {
                record: trial.clone(),
                flows: flows.clone(),
                samples: samples.iter().cloned().collect(),
                ..common::evidence(1, 0, 0)
            };
            writer.append(&evidence).expect("a trial");
        }
        if finish {
            writer.finish(&document).expect("the end");
        }
        let recording = read(place.path()).expect("a bundle");
        prop_assert_eq!(&recording.damage, &Vec::<String>::new());
        prop_assert_eq!(&recording.document, &document);
        let trials: Vec<_> = run.iter().map(|stored| stored.0.clone()).collect();
        prop_assert_eq!(&recording.trials, &trials);
        let flows: Vec<_> = run.iter().flat_map(|stored| stored.1.clone()).collect();
        prop_assert_eq!(&recording.flows, &flows);
        let mut samples: Vec<_> = run.iter().flat_map(|stored| stored.2.clone()).collect();
        let key = |s: &TrialSample| (s.trial, s.host.clone(), s.subject.clone(), s.metric, s.at_ns);
        samples.sort_by_key(key);
        prop_assert_eq!(recording.samples.iter().collect::<Vec<_>>(), samples);
    }

    #[test]
    fn spoiled_bytes_end_in_damage_or_in_an_error(
        file in 0..5usize,
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in option::of(any::<prop::sample::Index>()),
    ) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let document = common::document(1);
        let mut writer = Writer::create(place.path(), &document).expect("a new bundle");
        writer.append(&common::evidence(1, 20, 5)).expect("a trial");
        writer.finish(&document).expect("the end");
        let names =
            ["run.json", "trials.parquet", "flows.parquet", "samples.parquet", "events.ndjson"];
        let path = place.path().join(names[file]);
        let mut bytes = std::fs::read(&path).expect("a file");
        for (index, byte) in places.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let at = index.index(bytes.len());
            bytes[at] = *byte;
        }
        if let (Some(cut), false) = (cut, bytes.is_empty()) {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, bytes).expect("spoiled");
        match read(place.path()) {
            Ok(recording) => prop_assert!(recording.samples.len() <= 200),
            Err(error) => prop_assert!(file == 0, "{}", error),
        }
    }
}
