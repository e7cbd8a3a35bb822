//! What a host's own counters prove.

use linerate_model::analysis::{HostInterrupts, InterruptCpu, InterruptLine};
use linerate_model::run::HostRecord;

use crate::prelude::*;

/// Returns what is said of a run whose hosts read `values` of `metric` at begin and end.
fn said_of_counter(metric: Metric, values: [i64; 2], lab: bool) -> Vec<(String, String)> {
    let run = with_counter(metric, values, |host| host.lab = lab);
    let findings = told(&run.recording).into_iter();
    findings.map(|found| (found.id, found.claim)).collect()
}

/// Returns a run whose hosts, changed by `change`, read `values` of `metric` at begin and end.
fn with_counter(metric: Metric, values: [i64; 2], change: impl Fn(&mut HostRecord)) -> MadeRun {
    let mut run = thrice(GIGABIT, stream(), &Truth::usual());
    run.recording.document.hosts.iter_mut().for_each(change);
    let is_of_cpu = metric.name().starts_with("thermal");
    let subject = if is_of_cpu {
        Subject::Cpu(0)
    } else {
        Subject::Host
    };
    let readings = [(50_000, values[0]), (1_000_050_000, values[1])];
    for host in ["server", "client1"] {
        run.put(host, &subject, metric, &readings);
    }
    run
}

#[test]
fn both_ends_over_loopback_are_one_namespace() {
    let loopback = |host: &mut HostRecord| "127.0.0.1".clone_into(&mut host.data_address);
    let overflows = Metric::NetstatListenOverflows;
    let run = with_counter(overflows, [7, 11], loopback);
    let said = told(&run.recording).into_iter();
    let said = said.filter(|found| found.id == "caution/listen-overflow");
    let claims: Vec<String> = said.map(|found| found.claim).collect();
    let claim = "12 connections were dropped because a listener's accept queue was full: 12 on client1, in 3 of \
                 3 trials.";
    assert_eq!(claims, [claim]);
    // ACKs of the delayed-ACK timer are one namespace's, too, and of two hosts the sum.
    let delayed = |change: fn(&mut HostRecord)| {
        let run = with_counter(Metric::NetstatDelayedAcks, [7, 47], change);
        outcomes(&run.recording)[0].value(name::DELAYED_ACKS)
    };
    assert_eq!(delayed(loopback), Some(40.0));
    assert_eq!(delayed(|_| ()), Some(80.0));
}

#[test]
fn one_drop_is_told_as_one() {
    let loopback = |host: &mut HostRecord| "127.0.0.1".clone_into(&mut host.data_address);
    let mut run = with_counter(Metric::NetstatRcvQDrop, [0, 1], loopback);
    run.keep(|sample| sample.metric != Metric::NetstatRcvQDrop || sample.trial.0 == 1);
    let found = found(&run.recording, "caution/queue-pruned");
    says!(found.expect("a packet was dropped").claim;
        begins "1 packet was dropped because the receive queue of its connection was full: 1 on client1, in 1");
}

#[test]
fn counters_that_prove_a_drop_are_cautions() {
    let check = |metric, values, lab, id: &str, claim: Option<&str>| {
        let said = said_of_counter(metric, values, lab);
        let found = said.iter().find(|(found, _)| found == id);
        assert_eq!(found.map(|(_, claim)| claim.as_str()), claim, "{id}");
    };
    let id = "caution/listen-overflow";
    let overflows = Metric::NetstatListenOverflows;
    check(overflows, [7, 7], false, id, None);
    let claim = "24 connections were dropped because a listener's accept queue was full: 12 on client1 and \
                 12 on server, in 3 of 3 trials.";
    check(overflows, [7, 11], false, id, Some(claim));
    let id = "caution/throttled";
    let throttled = Metric::ThermalCoreThrottled;
    let claim = "6 times a CPU was throttled because it was hot: 6 on client1, in 3 of 3 trials.";
    check(throttled, [0, 2], true, id, Some(claim));
    check(throttled, [2, 2], true, id, None);
    for metric in [
        Metric::NetstatReqQFullDrop,
        Metric::NetstatMemoryPressures,
        Metric::NetstatAbortOnMemory,
        Metric::NetstatRcvQDrop,
        Metric::ConntrackDrop,
        Metric::ConntrackInsertFailed,
        Metric::ThermalPackageThrottled,
    ] {
        let said = said_of_counter(metric, [0, 1], false);
        let before = said_of_counter(metric, [1, 1], false);
        assert_eq!(said.len(), before.len() + 1, "{}", metric.name());
    }
}

#[test]
fn a_table_of_connections_that_is_nearly_full_is_a_caution() {
    let said = |count: i64| {
        let mut run = thrice(GIGABIT, stream(), &Truth::usual());
        let trial = run.recording.trials[0].trial;
        let most = (Metric::ConntrackMax, 1000);
        for (metric, value) in [(Metric::ConntrackCount, count), most] {
            let readings = [(50_000, value)];
            read(
                &mut run.recording,
                trial,
                "server",
                &Subject::Host,
                metric,
                &readings,
            );
        }
        found(&run.recording, "caution/conntrack-full").map(|found| found.claim)
    };
    assert_eq!(said(899), None);
    let claim = "The conntrack table of server was 95 % full.";
    assert_eq!(said(950).as_deref(), Some(claim));
}

/// A host, its trials, their seconds, and its counters: name, trouble, distance, a second.
type Told<'a> = (&'a str, u32, f64, Vec<(&'a str, bool, f64, f64)>);

#[test]
fn protocol_counters_are_summed_over_valid_trials_with_trouble_first() {
    let spoilt = like!(Truth::usual(); invalid: Some("the host was lost".to_owned()));
    let mut run = trials(GIGABIT, stream(), &[Truth::usual(), Truth::usual(), spoilt]);
    let mut put = |at: usize, host: &str, name: &str, values: [i64; 2]| {
        let trial = run.recording.trials[at].trial;
        let subject = Subject::Counter(name.to_owned());
        let readings = [(50_000, values[0]), (1_000_050_000, values[1])];
        read(
            &mut run.recording,
            trial,
            host,
            &subject,
            Metric::ProtocolCounter,
            &readings,
        );
    };
    put(0, "server", "Tcp.RetransSegs", [100, 105]);
    put(1, "server", "Tcp.RetransSegs", [100, 107]);
    put(2, "server", "Tcp.RetransSegs", [100, 1100]);
    put(0, "server", "Tcp.CurrEstab", [9, 6]);
    put(0, "server", "Udp.RcvbufErrors", [0, 40]);
    put(0, "server", "TcpExt.TCPNewDrop", [i64::MAX, i64::MAX]);
    put(0, "server", "Udp.InDatagrams", [0, 4_000_000]);
    put(1, "client1", "Ip.OutRequests", [-5, 5]);
    let counters = analyze(&run.recording).counters;
    let told = counters.iter().map(|host| {
        let lines = host.counters.iter();
        let lines = lines.map(|line| (&*line.name, line.trouble, line.moved, line.per_s));
        (&*host.host.0, host.trials, host.seconds, lines.collect())
    });
    let told: Vec<Told<'_>> = told.collect();
    let of_server = vec![
        ("Udp.RcvbufErrors", true, 40.0, 20.0),
        ("Tcp.RetransSegs", true, 12.0, 6.0),
        ("Tcp.CurrEstab", false, -3.0, -1.5),
        ("Udp.InDatagrams", false, 4e6, 2e6),
    ];
    let of_client = vec![("Ip.OutRequests", false, 10.0, 10.0)];
    let expected = [
        ("server", 2, 2.0, of_server),
        ("client1", 1, 1.0, of_client),
    ];
    assert_eq!(told, expected);
    let meaning = counters[0].counters[1].meaning.as_deref();
    assert_eq!(meaning, Some("segments retransmitted"));

    // The document of a measurement has them trial by trial, the invalid one's too.
    let single = crate::as_single(&run.recording);
    let moved = |trial: usize| {
        let hosts = &single.trials[trial].protocol_counters;
        let lines = hosts.iter().flat_map(|host| &host.counters);
        let again = lines.filter(|line| line.name == "Tcp.RetransSegs");
        again.map(|line| line.moved).collect::<Vec<_>>()
    };
    assert_eq!([moved(0), moved(1), moved(2)], [[5.0], [7.0], [1000.0]]);
}

#[test]
fn interrupts_are_told_by_queue_and_cpu() {
    let mut run = once(GIGABIT, stream(), &Truth::usual());
    run.recording.document.hosts[0].snapshot.facts.clear();
    for (name, words) in [("action", "eth0-rx-0"), ("link", "eth0"), ("queue", "rx:0")] {
        run.tell("server", &format!("irq.38.{name}"), text(words));
    }
    let (begin, middle, end) = (50_000, 500_000_000, 1_000_050_000);
    let (all, each) = (Metric::IrqCount, Metric::IrqCpuCount);
    for host in ["server", "client1"] {
        run.put(host, &Subject::Irq(38), all, &[(begin, 1000), (end, 1400)]);
    }
    run.put("server", &Subject::Irq(39), all, &[(begin, 7), (end, 7)]);
    let mut put = |cpu, readings: &[(i64, i64)]| {
        run.put("server", &Subject::IrqCpu(38, cpu), each, readings);
    };
    put(0, &[(begin, 900), (end, 1000)]);
    // A CPU that took none before the middle of the window is told from there on.
    put(5, &[(middle, 0), (end, 300)]);
    put(6, &[(begin, 100), (end, 100)]);
    run.recording.document.hosts[1].lab = true;
    let told = analyze(&run.recording).interrupts;
    let cpu = |cpu, per_s| InterruptCpu { cpu, per_s };
    let expected = HostInterrupts {
        host: "server".into(),
        trials: 1,
        seconds: 1.0,
        interrupts: vec![InterruptLine {
            irq: 38,
            device: Some("eth0".to_owned()),
            queue: Some("rx:0".to_owned()),
            name: Some("eth0-rx-0".to_owned()),
            per_s: 400.0,
            cpus: vec![cpu(5, 300.0), cpu(0, 100.0)],
        }],
    };
    assert_eq!(told, [expected]);
}
