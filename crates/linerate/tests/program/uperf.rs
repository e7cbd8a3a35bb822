//! Profiles of uperf as experiments: over loopback with the profile's one host, in a lab with several.

use std::path::Path;

use linerate_model::run::Recording;
use linerate_model::sample::End;

use crate::common::{NamedLab, Said, Server, file, folder, linerate, loading};

/// Write and read over two connections, and the same over `$nthr` others for each pass of which uperf pauses.
const EXCHANGES: &str = r#"<?xml version="1.0"?>
<profile name="exchanges">
  <group nthreads="2">
    <transaction><flowop type="connect" options="remotehost=$h tcp_nodelay"/></transaction>
    <transaction duration="0.4s">
      <flowop type="write" options="size=100"/>
      <flowop type="read" options="size=300"/>
    </transaction>
    <transaction><flowop type="disconnect"/></transaction>
  </group>
  <group nthreads="$nthr">
    <transaction><flowop type="connect" options="remotehost=$h"/></transaction>
    <transaction iterations="50">
      <flowop type="write" options="size=7"/>
      <flowop type="think" options="duration=10ms"/>
      <flowop type="read" options="size=9"/>
    </transaction>
  </group>
</profile>
"#;

/// Reads the bundle at `out`, whose run `said` so.
fn recording(said: &Said, out: &str) -> Recording {
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    linerate_store::read(Path::new(out)).expect("a bundle")
}

#[test]
fn a_profile_runs_with_the_variables_of_the_environment() {
    let (_load, server, folder) = (loading(), Server::start(&[]), folder());
    let profile = file(&folder, "exchanges.xml", EXCHANGES);
    let refused = linerate(&["plan", &profile]).run();
    refused.failed(2, &["line 11", "`nthr`"]);
    let out = folder.path().join("bundle").display().to_string();
    let words = ["run", &server.host(), "--experiment", &profile, "-o", &out];
    let said = linerate(&words).with("nthr", "3").run();
    let recording = recording(&said, &out);
    let [trial] = recording.document.plan.trials.as_slice() else {
        panic!("{:?}", recording.document.plan.trials);
    };
    assert_eq!(trial.timing.measure.0, 400_000_000);
    let moved = |end: End, flows: std::ops::Range<u32>| -> Vec<(u64, u64)> {
        let ends = recording.flows.iter().filter(|flow| flow.end == end);
        let ends = ends.filter(|flow| flows.contains(&flow.flow.0));
        ends.map(|flow| (flow.bytes_sent, flow.bytes_received))
            .collect()
    };
    let (first, second) = (moved(End::Client, 0..2), moved(End::Client, 2..5));
    assert_eq!((first.len(), second.len()), (2, 3));
    // Whole exchanges only: the client writes as many bytes of each as the profile's master does.
    for ((sent, received), (request, response)) in first
        .iter()
        .zip([(100, 300); 2])
        .chain(second.iter().zip([(7, 9); 3]))
    {
        assert!(*sent > 0 && sent % request == 0, "{sent}");
        assert_eq!(received % response, 0);
        assert!(sent / request - received / response <= 1);
    }
}

#[test]
fn an_exchange_of_several_reads_and_writes_runs_as_it_stands_in_its_profile() {
    let (_load, server, folder) = (loading(), Server::start(&[]), folder());
    let flowops = [
        ("read", "size=73"),
        ("read", "size=415"),
        ("write", "size=170"),
        ("think", "duration=1ms busy"),
        ("read", "size=35"),
        ("write", "size=20 count=3"),
        ("think", "duration=1ms idle"),
    ];
    let flowops = flowops
        .map(|(kind, options)| format!("<flowop type=\"{kind}\" options=\"{options}\"/>\n"))
        .concat();
    let profile = EXCHANGES
        .split_once("<flowop type=\"write\"")
        .and_then(|(before, rest)| Some((before, rest.split_once("size=300\"/>")?.1)))
        .map(|(before, after)| format!("{before}{flowops}{after}"))
        .expect("the first group");
    let profile = file(&folder, "steps.xml", &profile);
    let planned = linerate(&["plan", &profile]).with("nthr", "1").run().done();
    assert!(planned.out.contains("11 steps"), "{}", planned.out);
    let out = folder.path().join("bundle").display().to_string();
    let words = ["run", &server.host(), "--experiment", &profile, "-o", &out];
    let said = linerate(&words).with("nthr", "1").run();
    let recording = recording(&said, &out);
    for flow in recording.flows.iter().filter(|flow| flow.flow.0 < 2) {
        assert_eq!(flow.ended_early, None);
        // The stop may come in a pass, after the first parts of what an end sends in it.
        let (whole, parts): (u64, &[u64]) = match flow.end {
            End::Client => (230, &[0, 170]),
            End::Server => (523, &[0, 35, 108]),
        };
        let sent = flow.bytes_sent;
        assert!(sent > whole && parts.contains(&(sent % whole)), "{sent}");
    }
}

#[test]
fn clients_of_a_lab_play_the_remote_hosts_of_a_profile() {
    let (_load, folder) = (loading(), folder());
    // Whether there can be labs here.
    if NamedLab::up(&[]).is_none() {
        return;
    }
    let group = |host: &str, act: &str| {
        format!(
            "<group nthreads=\"2\"><transaction><flowop type=\"connect\" options=\"remotehost={host}\"/></transaction>\
             <transaction duration=\"300m\"><flowop type=\"{act}\" options=\"size=8k\"/></transaction></group>"
        )
    };
    let groups = group("$h", "write") + &group("$h2", "read");
    let profile = file(&folder, "hosts", &format!("<profile>{groups}</profile>"));
    let out = folder.path().join("bundle").display().to_string();
    let words = ["run", "--lab", "--experiment", &profile, "-o", &out];
    let recording = recording(&linerate(&words).run(), &out);
    let sent = |flow: u32, end: End| {
        let mut ends = recording.flows.iter().filter(|flow| flow.end == end);
        ends.find(|one| one.flow.0 == flow)
            .map(|one| (&*one.host.0, one.bytes_sent > 0))
    };
    // What the master writes, the server sends.
    for flow in [0, 1] {
        assert_eq!(sent(flow, End::Client), Some(("client1", false)));
        assert_eq!(sent(flow, End::Server).map(|end| end.1), Some(true));
    }
    for flow in [2, 3] {
        assert_eq!(sent(flow, End::Client), Some(("client2", true)));
        assert_eq!(sent(flow, End::Server).map(|end| end.1), Some(false));
    }
}
