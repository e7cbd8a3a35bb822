//! What holds a stream, over paths whose rate nobody told: neighbours that TCP_INFO shows alike, told
//! apart by what differs between them, and each beside a healthy counterpart.

use linerate_analyze::analyze;
use linerate_analyze::reduce::{name, outcomes};
use linerate_model::datagram::Datagrams;
use linerate_model::finding::{Finding, FindingKind};
use linerate_model::flag::TrialFlag;
use linerate_model::host::{CPU_QUOTA_VISIBLE, Fact, FactValue};
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::sample::{End, QdiscId, QueueKind, Subject, TrialSample};
use linerate_model::unit::{Bytes, Unit};
use linerate_model::workload::{Direction, Group, Part, Traffic, Workload};
use linerate_model::{FlowId, HostName};

use crate::builder::{MadeRun, Truth, rr, stream};

pub(crate) const MS: i64 = 1_000_000;

/// Three trials over a path of unknown rate.
pub(crate) fn run(workload: Workload, truth: &Truth) -> MadeRun {
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, workload);
    run.cell(&[], &[truth.clone(), truth.clone(), truth.clone()]);
    run
}

pub(crate) fn limiter_of(run: &MadeRun) -> Option<(Limiter, Finding)> {
    let mut findings = analyze(&run.recording).findings.into_iter();
    findings.find_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding)),
        _ => None,
    })
}

/// Asserts which limiter is named, and that claim and explanation say `words`.
#[track_caller]
fn named(workload: Workload, truth: &Truth, expected: Limiter, words: &[&str]) -> Finding {
    let found = limiter_of(&run(workload, truth));
    let (limiter, finding) = found.unwrap_or_else(|| panic!("nothing is named: {truth:?}"));
    assert_eq!(limiter, expected, "{}: {truth:?}", finding.claim);
    let text = format!("{} {}", finding.claim, finding.explanation);
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    finding
}

#[track_caller]
fn silent(workload: Workload, truth: &Truth) {
    let found = limiter_of(&run(workload, truth));
    let claim = found.map(|(_, finding)| finding.claim);
    assert_eq!(claim, None, "{truth:?}");
}

/// Always sending over a path of 20 ms, `bps` of which is in flight for `rtt_ns`.
fn sending(bps: f64, rtt_ns: i64) -> Truth {
    Truth::sending(bps, rtt_ns, 20 * MS)
}

#[test]
fn a_deep_queue_without_loss_is_a_full_path() {
    // A: a shaper of 100 Mbit/s, told by nobody.
    let truth = sending(95e6, 100 * MS);
    let words = ["100 Mbit/s Ethernet", "80 ms"];
    let finding = named(stream(), &truth, Limiter::PathRate, &words);
    let text = format!("{} {}", finding.claim, finding.explanation);
    assert!(
        !text.contains("SO_RCVBUF") && !text.contains("dropped"),
        "{text}"
    );
    // A rate that is no Ethernet's is told as it is.
    let odd = sending(37e6, 100 * MS);
    named(stream(), &odd, Limiter::PathRate, &["Mbit/s with headers"]);
    // The same without a queue: nothing is known to hold it.
    let healthy = Truth {
        rtt_ns: 20 * MS,
        busy_share: 0.5,
        ..truth
    };
    silent(stream(), &healthy);
}

/// A stream of each of two clients.
fn near_and_far() -> Workload {
    Workload {
        connections: 2,
        clients: 2,
        ..stream()
    }
}

#[test]
fn clients_at_different_distances_are_no_queue() {
    let of = |workload: &Workload, truth: &Truth| {
        let mut run = MadeRun::new(2, None);
        run.experiment("one", None, workload.clone());
        run.cell(&[], &[truth.clone(), truth.clone(), truth.clone()]);
        let queued = outcomes(&run.recording)[0].value(name::QUEUED);
        (queued, limiter_of(&run))
    };
    // 0.2 and 20 ms, and nothing waits anywhere.
    let idle = Truth {
        distances: vec![100.0],
        busy_share: 0.5,
        cwnd: 900,
        ..Truth::sending(95e6, MS / 5, MS / 5)
    };
    let (queued, limiter) = of(&near_and_far(), &idle);
    assert_eq!(queued, Some(0.0));
    assert_eq!(limiter.map(|(_, finding)| finding.claim), None);
    // A window that is full at both distances is one, by what both carry: 64 KiB in 2 and in 20 ms.
    let window = Truth {
        distances: vec![10.0],
        window_bytes: 65_536,
        rwnd_share: 0.98,
        agreed: Some("timestamps, SACK, window scaling"),
        ..Truth::sending(65_536.0 * 8.0 * (500.0 + 50.0), 2 * MS, 2 * MS)
    };
    let (_, limiter) = of(&near_and_far(), &window);
    assert_eq!(
        limiter.map(|(limiter, _)| limiter),
        Some(Limiter::ReceiverWindow)
    );
    // 40 ms wait before the path of both.
    let full = Truth {
        distances: vec![100.0],
        ..Truth::sending(95e6, 40 * MS + MS / 5, MS / 5)
    };
    let (queued, limiter) = of(&near_and_far(), &full);
    assert_eq!(queued, Some(1.0));
    let (limiter, finding) = limiter.expect("the path is full");
    assert_eq!(limiter, Limiter::PathRate, "{}", finding.claim);
    assert!(finding.claim.contains("(40 ms) wait"), "{}", finding.claim);
}

#[test]
fn a_window_that_is_full_behind_a_queue_is_not_the_limit() {
    // B: the queue holds the whole window of 3 MiB.
    let rtt_ns = (f64::from(3 << 20) * 8e9 / 95e6) as i64;
    let truth = Truth {
        rwnd_share: 1.0,
        ..sending(95e6, rtt_ns)
    };
    named(
        stream(),
        &truth,
        Limiter::PathRate,
        &["100 Mbit/s Ethernet"],
    );
    // The same window at the shortest round trip is one.
    let window = Truth {
        rwnd_share: 1.0,
        ..sending(f64::from(3 << 20) * 8.0 / 0.0204, 20 * MS + MS / 2)
    };
    named(
        stream(),
        &window,
        Limiter::ReceiverWindow,
        &["no queue on the path"],
    );
}

#[test]
fn loss_with_a_queue_and_without_are_told_apart() {
    // C: a shallow queue that overflows.
    let queue = Truth {
        lost_share: 0.003,
        ..sending(95e6, 28 * MS)
    };
    named(
        stream(),
        &queue,
        Limiter::PathRate,
        &["overflows", "segments per trial were lost"],
    );
    // As deep a queue that lost 3 of 80 000 segments: a bad cable does that, too.
    let cable = Truth {
        lost_share: 3.0 / 80_000.0,
        ..sending(80_000.0 * 1448.0 * 8.0, 28 * MS)
    };
    let finding = named(stream(), &cable, Limiter::PathRate, &[]);
    assert!(
        !finding.explanation.contains("overflows"),
        "{}",
        finding.explanation
    );
    // D: 0.3 % are lost at the shortest round trip: 12.9 Mbit/s by Mathis.
    let random = Truth {
        lost_share: 0.003,
        ..sending(12.9e6, 20 * MS)
    };
    let words = ["loss keeps small", "no queue stood for long"];
    named(stream(), &random, Limiter::CongestionWindow, &words);
    // The same rate where as many segments were marked instead: nothing was lost, and nobody is to look for it.
    let marked = Truth {
        marked_share: 0.003,
        ..sending(12.9e6, 20 * MS)
    };
    let words = ["congestion marks (ECN) keep small", "marks segments before"];
    named(stream(), &marked, Limiter::CongestionWindow, &words);
    // Marks that are far too rare to explain the rate.
    let rarely_marked = Truth {
        marked_share: 0.003,
        cwnd: 400,
        ..sending(1e6, 20 * MS)
    };
    silent(stream(), &rarely_marked);
    // What was sent again had arrived: segments overtook each other, and nothing was lost.
    let overtaken = Truth {
        spurious_share: 1.0,
        cwnd: 200,
        ..random.clone()
    };
    silent(stream(), &overtaken);
    // The same without SACK, where the receiver's host alone counts what came twice.
    let told_by_host = Truth {
        spurious_share: 0.0,
        twice: Some(12.9e6 / 8.0 / 1448.0 * 0.003),
        agreed: Some("timestamps, window scaling"),
        ..overtaken.clone()
    };
    silent(stream(), &told_by_host);
    // With it, what the host counts is of other connections.
    let of_others = Truth {
        agreed: Some("timestamps, SACK, window scaling"),
        cwnd: random.cwnd,
        ..told_by_host
    };
    named(
        stream(),
        &of_others,
        Limiter::CongestionWindow,
        &["loss keeps small"],
    );
    // Loss that is far too rare to explain the rate.
    let rare = Truth {
        lost_share: 0.003,
        cwnd: 400,
        ..sending(1e6, 20 * MS)
    };
    silent(stream(), &rare);
}

#[test]
fn what_loses_is_told_by_how_losses_lie() {
    // 10 of 1500 segments a trial.
    let lost = |loss_parts: &[f64]| Truth {
        lost_share: 0.0067,
        loss_parts: loss_parts.to_vec(),
        ..sending(15e3 * 1448.0 * 8.0 / 10.0, 20 * MS)
    };
    let told = |truth: &Truth, workload: Workload, words: &str, others: [&str; 2]| {
        let finding = named(workload, truth, Limiter::CongestionWindow, &[words]);
        for other in others {
            assert!(
                !finding.explanation.contains(other),
                "{}",
                finding.explanation
            );
        }
    };
    let (random, bursts, open) = (
        "independently of each other",
        "in bursts",
        "random loss and a queue too short to be seen look like this",
    );
    // A wire that damages some frames.
    let independent = || lost(&[1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0, 3.0, 1.0, 1.0]);
    told(&independent(), stream(), random, [bursts, open]);
    // A policer takes many at once.
    told(
        &lost(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        stream(),
        bursts,
        [random, open],
    );
    // So few, or a sawtooth: neither.
    let few = Truth {
        lost_share: 0.0027,
        ..lost(&[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    };
    told(&few, stream(), open, [random, bursts]);
    told(&lost(&[1.0; 10]), stream(), open, [random, bursts]);
    // Losses of several flows hide a sawtooth, but not bursts.
    let four = || Workload {
        connections: 4,
        ..stream()
    };
    let of_four = |truth: Truth| Truth {
        throughput_bps: 4.0 * truth.throughput_bps,
        variation: 0.1,
        ..truth
    };
    told(&of_four(independent()), four(), open, [random, bursts]);
    let truth = lost(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    told(&of_four(truth), four(), bursts, [random, open]);
}

#[test]
fn what_to_do_about_loss_is_told_by_how_losses_lie() {
    let next = |loss_parts: &[f64]| {
        let truth = Truth {
            lost_share: 0.0067,
            loss_parts: loss_parts.to_vec(),
            ..sending(15e3 * 1448.0 * 8.0 / 10.0, 20 * MS)
        };
        let made = run(stream(), &truth);
        let single = crate::as_single(&made.recording);
        assert_eq!(single.summary.next, single.next);
        assert_eq!(single.summary.limiter, Some(Limiter::CongestionWindow));
        single.next.unwrap_or_default()
    };
    let by_chance = next(&[1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0, 3.0, 1.0, 1.0]);
    assert!(!by_chance.contains("--fq-rate"), "{by_chance}");
    // Half of 17.4 Mbit/s.
    for others in [
        [1.0; 10],
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ] {
        let others = next(&others);
        assert!(others.contains("--fq-rate 8.7M"), "{others}");
    }
}

#[test]
fn why_a_window_is_small_is_told() {
    // E: 64 KiB less one byte in 20 ms, since scaling is off.
    let truth = Truth {
        window_bytes: 65_535,
        rwnd_share: 0.97,
        ..sending(26.2e6, 20 * MS)
    };
    let advice = |run: &MadeRun| {
        let (limiter, finding) = limiter_of(run).expect("the window limits");
        assert_eq!(limiter, Limiter::ReceiverWindow, "{}", finding.claim);
        finding.explanation
    };
    let mut by_fact = run(stream(), &truth);
    for host in &mut by_fact.recording.document.hosts {
        host.snapshot.facts.push(Fact {
            name: "sysctl.net.ipv4.tcp_window_scaling".to_owned(),
            value: FactValue::Number(0.0, Unit::Count),
        });
        host.snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let text = advice(&by_fact);
    assert!(
        text.contains("tcp_window_scaling") && text.contains("cannot help"),
        "{text}"
    );
    let by_handshake = Truth {
        agreed: Some("timestamps, SACK"),
        ..truth.clone()
    };
    let text = advice(&run(stream(), &by_handshake));
    assert!(text.contains("cannot help"), "{text}");
    // With scaling, and a buffer that was set, the buffer is why.
    let mut buffer = stream();
    buffer.options.socket_buffer = Some(Bytes(65_535));
    let set = Truth {
        agreed: Some("timestamps, SACK, window scaling"),
        ..truth
    };
    let text = advice(&run(buffer, &set));
    assert!(text.contains("SO_RCVBUF was set"), "{text}");
}

#[test]
fn a_window_is_held_against_the_limit_of_its_own_host() {
    // 4 MiB in each 20 ms; the two hosts' buffers may grow to 4 and to 64 MiB.
    let window = f64::from(4 << 20);
    let truth = Truth {
        window_bytes: 4 << 20,
        rwnd_share: 0.97,
        ..sending(window * 8.0 / 0.0201, 20 * MS + MS / 10)
    };
    let advice = |direction, limits: &[(&str, &str)]| {
        let mut run = run(Workload::stream(direction), &truth);
        for host in &mut run.recording.document.hosts {
            let own = limits
                .iter()
                .filter(|(name, _)| host.name == HostName::from(*name));
            host.snapshot.facts.extend(own.map(|(_, most)| Fact {
                name: "sysctl.net.ipv4.tcp_rmem".to_owned(),
                value: FactValue::Text(format!("4096 131072 {most}")),
            }));
            host.snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let (limiter, finding) = limiter_of(&run).expect("the window limits");
        assert_eq!(limiter, Limiter::ReceiverWindow, "{}", finding.claim);
        finding.explanation
    };
    let (small, large) = ("4194304", "67108864");
    let at_server = [("server", small), ("client1", large)];
    let at_client = [("server", large), ("client1", small)];
    for (direction, limits, words) in [
        (
            Direction::ToServer,
            &at_server[..],
            "third value of net.ipv4.tcp_rmem, 4 MiB",
        ),
        (
            Direction::ToServer,
            &at_client[..],
            "below what autotuning may reach",
        ),
        (
            Direction::FromServer,
            &at_client[..],
            "third value of net.ipv4.tcp_rmem, 4 MiB",
        ),
        (
            Direction::FromServer,
            &at_server[..],
            "below what autotuning may reach",
        ),
        // Nothing is known of the receiver.
        (
            Direction::ToServer,
            &at_client[1..],
            "tcp_rmem was not read",
        ),
    ] {
        let text = advice(direction, limits);
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_reader_that_is_behind_is_named() {
    // F: 47 of 64 KiB wait unread; the round trip holds the reader's time.
    let truth = Truth {
        rwnd_share: 1.0,
        window_bytes: 17_000,
        unread_bytes: 47_000,
        ..sending(12.9e6, 40 * MS)
    };
    named(
        stream(),
        &truth,
        Limiter::SlowReader,
        &["wait unread", "faster reader"],
    );
    // A prompt reader over the same round trips: the path.
    let prompt = Truth {
        unread_bytes: 0,
        window_bytes: 64_000,
        ..truth
    };
    named(stream(), &prompt, Limiter::PathRate, &[]);
}

#[test]
fn a_reader_that_was_stopped_is_named_by_its_closed_window() {
    let stopped = Truth {
        closed_share: 0.6,
        rwnd_share: 0.6,
        unread_bytes: 100_000,
        ..sending(40e6, 20 * MS)
    };
    let words = ["read nothing for 60 %", "was stopped"];
    named(stream(), &stopped, Limiter::SlowReader, &words);
    // From before the window on, so that nothing counts and no trial is valid; two segments were sent again.
    let whole = Truth {
        throughput_bps: 0.0,
        in_vain: 4.0,
        closed_share: 1.0,
        rwnd_share: 1.0,
        unread_bytes: 100_000,
        invalid: Some("a flow moved nothing".to_owned()),
        ..sending(0.0, 20 * MS)
    };
    named(
        stream(),
        &whole,
        Limiter::SlowReader,
        &["No trial of it is valid"],
    );
    // The receiver has nothing unread: the window is a proxy's.
    let proxy = Truth {
        unread_bytes: 0,
        ..stopped.clone()
    };
    let found = limiter_of(&run(stream(), &proxy));
    assert_ne!(found.map(|it| it.0), Some(Limiter::SlowReader));
    // Workers wait for a CPU meanwhile, but nobody as long as the reader stood.
    let busy = Truth {
        cpus: 1.98,
        others_cpus: 0.95,
        others_kernel_cpus: 0.95,
        worker_share: 0.08,
        worker_wait_share: 0.4,
        unsent_bytes: Some(0),
        ..stopped.clone()
    };
    named(stream(), &busy, Limiter::SlowReader, &words);
    // A reader without a CPU does not read either, and is no slow one.
    let starved = Truth {
        worker_wait_share: 0.7,
        ..busy
    };
    named(stream(), &starved, Limiter::OtherPrograms, &[]);
    // Whoever else ran: it waited for a CPU, and for nothing else, however long the window was closed.
    let alone = Truth {
        closed_share: 0.7,
        rwnd_share: 0.7,
        worker_wait_share: 0.85,
        others_cpus: 0.0,
        others_kernel_cpus: 0.0,
        throttled: Some(0.0),
        ..starved
    };
    let found = limiter_of(&run(stream(), &alone));
    assert_ne!(found.map(|it| it.0), Some(Limiter::SlowReader));
    // For a quarter of the time: the path has the rest.
    let partly = Truth {
        closed_share: 0.3,
        rwnd_share: 0.3,
        unread_bytes: 100_000,
        variation: 0.02,
        delivered_variation: None,
        ..sending(95e6, 100 * MS)
    };
    let limiters = limiter_of(&run(stream(), &partly));
    assert!(
        limiters
            .as_ref()
            .is_none_or(|(limiter, _)| *limiter != Limiter::SlowReader),
        "{limiters:?}"
    );
}

#[test]
fn a_path_that_carries_nothing_is_named_from_trials_that_may_not_be_averaged() {
    // G: eight segments of 1448 B, half of them sent again.
    let truth = Truth {
        in_vain: 8.0,
        invalid: Some("a flow moved nothing".to_owned()),
        ..sending(0.0, 20 * MS)
    };
    let words = ["4 segments per trial", "3 of 3 trials", "1448 B", "MTU"];
    named(stream(), &truth, Limiter::NothingArrives, &words);
    let valid = Truth {
        invalid: None,
        ..truth.clone()
    };
    named(stream(), &valid, Limiter::NothingArrives, &[]);
    // Requests of a byte, with pauses: no larger segment was sent than those of the handshake.
    let mut paced = rr(1);
    paced.manner.requests_per_s = Some(1);
    let requests = Truth {
        latency: vec![(20 * MS as u64, 0)],
        timeouts: Some(4.0),
        ..truth.clone()
    };
    let small = named(paced, &requests, Limiter::NothingArrives, &[]);
    let text = format!("{} {}", small.explanation, small.action.unwrap_or_default());
    assert!(!text.contains("1448 B") && !text.contains("MTU"), "{text}");
    assert!(text.contains("firewall"), "{text}");
    // Nothing was asked to move, and nothing was sent again.
    let quiet = Truth {
        in_vain: 0.0,
        ..truth
    };
    silent(stream(), &quiet);
}

#[test]
fn an_algorithm_that_paces_tracks_a_bottleneck_or_holds_itself() {
    // bbr keeps the round trip behind a shaper at 1.3 of the shortest; a cap keeps it at 1.01.
    let behind = Truth {
        congestion: Some("bbr"),
        pacing_bps: Some(19.3e6),
        cwnd: 80,
        ..sending(19.3e6, 26 * MS)
    };
    named(stream(), &behind, Limiter::PathRate, &[]);
    let itself = Truth {
        cwnd: 80,
        ..Truth {
            congestion: Some("bbr"),
            pacing_bps: Some(19.3e6),
            ..sending(19.3e6, 20 * MS + MS / 5)
        }
    };
    named(stream(), &itself, Limiter::Pacing, &["bbr"]);
    // A policer of 50 Mbit/s drops what probing sends beyond it, and keeps no queue.
    let policed = Truth {
        throughput_bps: 47.5e6,
        pacing_bps: Some(53.3e6),
        lost_share: 0.079,
        ..itself.clone()
    };
    silent(stream(), &policed);
    // Probing fills a queue for an eighth of the time, which damaged frames keep short: as steady, that is a line's.
    let probing = Truth {
        rtt_ns: 23 * MS,
        ..itself
    };
    let words = ["The queue is short against the round trip"];
    named(stream(), &probing, Limiter::PathRate, &words);
    let uneven = Truth {
        variation: 0.05,
        ..probing
    };
    silent(stream(), &uneven);
}

#[test]
fn bursts_of_one_rack_are_not_those_of_a_far_client() {
    // 0.1 ms, where the best of short bursts is far above the mean; the second is 20 ms away.
    let limiter = |distances: Vec<f64>| {
        let truth = Truth {
            congestion: Some("bbr"),
            pacing_bps: Some(40e9),
            cwnd: 4000,
            unacked: 800,
            distances,
            ..Truth::sending(16e9, MS / 10, MS / 10)
        };
        let mut run = MadeRun::new(2, None);
        run.experiment("one", None, near_and_far());
        run.cell(&[], &[truth.clone(), truth.clone(), truth]);
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(vec![1.0]), Some(Limiter::Pacing));
    assert_eq!(limiter(vec![200.0]), None);
}

#[test]
fn a_lost_segment_does_not_make_the_rate_of_a_full_path_vary() {
    // 20 Mbit/s, 100 ms and a queue that overflows: behind a hole the receiver's count in order waits.
    let full = Truth {
        variation: 0.43,
        delivered_variation: Some(0.01),
        lost_share: 0.003,
        ..sending(18.8e6, 50 * MS)
    };
    named(stream(), &full, Limiter::PathRate, &["overflows"]);
    // What is delivered varies as much, or nothing was lost: that is no full path.
    for (delivered_variation, lost_share) in [(0.35, 0.003), (0.01, 0.0)] {
        let varies = Truth {
            delivered_variation: Some(delivered_variation),
            lost_share,
            ..full.clone()
        };
        silent(stream(), &varies);
    }
    // Nobody read the receiving host: ACKs that wait on their way back are told by the sender.
    let one_sided = |delivered_variation| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, stream());
        let truth = Truth {
            delivered_variation: Some(delivered_variation),
            ..sending(0.9e6, 400 * MS)
        };
        run.cell(&[], &[truth]);
        let samples = std::mem::take(&mut run.recording.samples);
        let of_client = |sample: &TrialSample| sample.host == HostName::from("client1");
        run.recording.samples = samples.iter().filter(of_client).collect();
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(one_sided(0.02), Some(Limiter::PathRate));
    assert_eq!(one_sided(0.13), None);
}

#[test]
fn a_send_buffer_that_the_clock_missed_is_named() {
    // 32 KiB were asked for, twice that is in flight, and nothing waits: the clock ran a fifth of the time.
    let mut workload = stream();
    workload.options.socket_buffer = Some(Bytes(32_768));
    let truth = Truth {
        sndbuf_share: 0.19,
        unsent_bytes: Some(0),
        cwnd: 200,
        ..sending(24.8e6, 20 * MS + MS / 5)
    };
    named(
        workload.clone(),
        &truth,
        Limiter::SendBuffer,
        &["32 KiB", "waited to be sent"],
    );
    // Behind a queue the same flight is the path's.
    let queued = Truth {
        rtt_ns: 30 * MS,
        ..truth.clone()
    };
    named(workload, &queued, Limiter::PathRate, &[]);
    // Nobody set a buffer: nothing to hold it against.
    silent(stream(), &truth);
    // Tuned up to 64 KiB, of which a half is payload: twice that and one piece more are in flight. A megabyte
    // is another matter.
    let tuned = |in_flight_bytes: f64| {
        let truth = Truth {
            sndbuf_share: 0.0,
            cwnd: 3000,
            ..sending(in_flight_bytes * 8e9 / 20e6, 20 * MS)
        };
        let mut tuned = run(
            stream(),
            &Truth {
                unsent_bytes: Some(0),
                ..truth
            },
        );
        for host in &mut tuned.recording.document.hosts {
            host.snapshot.facts.push(Fact {
                name: "sysctl.net.ipv4.tcp_wmem".to_owned(),
                value: FactValue::Text("4096 16384 65536".to_owned()),
            });
            host.snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        limiter_of(&tuned).map(|(limiter, _)| limiter)
    };
    assert_eq!(tuned(131_000.0), Some(Limiter::SendBuffer));
    assert_eq!(tuned(1e6), None);
}

#[test]
fn a_writer_that_pauses_is_named() {
    let truth = Truth {
        busy_share: 0.4,
        unsent_bytes: Some(0),
        delivery_bps: Some(24e6),
        cwnd: 100,
        ..sending(8.7e6, 20 * MS)
    };
    named(
        stream(),
        &truth,
        Limiter::Application,
        &["60 %", "nothing to send"],
    );
    // As much idle time without a burst between: not told apart.
    let even = Truth {
        delivery_bps: Some(9e6),
        ..truth
    };
    silent(stream(), &even);
}

#[test]
fn drops_of_the_own_host_count_for_tcp_too() {
    let truth = Truth {
        qdisc_drops: 104.0,
        cwnd: 100,
        ..sending(60e6, 20 * MS)
    };
    named(
        stream(),
        &truth,
        Limiter::HostDrops,
        &["packets per trial", "qdisc"],
    );
    // Behind a full path its queue is where that path drops.
    let full = Truth {
        qdisc_drops: 104.0,
        ..sending(95e6, 60 * MS)
    };
    named(stream(), &full, Limiter::PathRate, &[]);
}

/// Has a counter of `host` grow by `amount` in the window of every trial.
pub(crate) fn grow(run: &mut MadeRun, host: &str, subject: &Subject, metric: Metric, amount: i64) {
    let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
    for trial in trials {
        let readings = [(50_000, 7), (1_000_050_000, 7 + amount)];
        let samples = readings.map(|(at_ns, value)| TrialSample {
            trial,
            host: HostName::from(host),
            subject: subject.clone(),
            metric,
            at_ns,
            value,
        });
        run.recording.samples.extend(samples);
    }
}

#[test]
fn what_a_machine_drops_counts_once_whoever_of_its_hosts_reads_it() {
    let dropped = |lab: bool| {
        let mut run = MadeRun::new(2, Some(1e9));
        let workload = Workload {
            connections: 2,
            clients: 2,
            ..Workload::stream(Direction::FromServer)
        };
        run.experiment("one", None, workload);
        run.cell(&[], &[Truth::usual()]);
        for (host, last) in run.recording.document.hosts.iter_mut().zip(1..) {
            host.lab = lab;
            host.data_address = format!("10.0.0.{last}");
        }
        for client in ["client1", "client2"] {
            let cpu = Subject::Cpu(0);
            grow(&mut run, client, &cpu, Metric::SoftnetDropped, 100);
        }
        outcomes(&run.recording)[0].value(name::DROPPED_BACKLOG)
    };
    assert_eq!(dropped(false), Some(200.0));
    assert_eq!(dropped(true), Some(100.0));
}

#[test]
fn drops_of_other_devices_and_of_other_times_are_not_of_these_flows() {
    let unread = || {
        let mut run = run(stream(), &sending(60e6, 20 * MS));
        let samples = run.recording.samples.iter();
        let kept = samples.filter(|sample| sample.metric != Metric::QdiscDrops);
        run.recording.samples = kept.collect();
        run
    };
    let limiter = |device: &str, of_trial: i64, in_window: i64| {
        let mut run = unread();
        let qdisc = Subject::Qdisc(device.to_owned(), QdiscId(0x8001_0000));
        let own = Subject::Qdisc("eth0".to_owned(), QdiscId(0x8002_0000));
        if device != "eth0" {
            grow(&mut run, "client1", &own, Metric::QdiscDrops, 0);
        }
        grow(&mut run, "client1", &qdisc, Metric::QdiscDrops, in_window);
        let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
        run.recording
            .samples
            .extend(trials.into_iter().map(|trial| TrialSample {
                trial,
                host: HostName::from("client1"),
                subject: qdisc.clone(),
                metric: Metric::QdiscDrops,
                at_ns: -199_950_000,
                value: 7 - of_trial + in_window,
            }));
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    // The discipline of the flows' device, in the window.
    assert_eq!(limiter("eth0", 104, 104), Some(Limiter::HostDrops));
    // Packets of others that a backlog drops do not become these flows' where nothing was lost.
    let mut beside = run(
        stream(),
        &Truth {
            qdisc_drops: 104.0,
            ..sending(60e6, 20 * MS)
        },
    );
    grow(
        &mut beside,
        "server",
        &Subject::Cpu(0),
        Metric::SoftnetDropped,
        500,
    );
    let (_, finding) = limiter_of(&beside).expect("the qdisc drops");
    assert!(
        finding
            .claim
            .contains("104 packets per trial were dropped by the sending host's qdisc"),
        "{}",
        finding.claim
    );
    // That of another device, or while the flows began.
    assert_ne!(limiter("wlan0", 104, 104), Some(Limiter::HostDrops));
    assert_ne!(limiter("eth0", 104, 0), Some(Limiter::HostDrops));
    // A device that has none hands on to others.
    let mut run = unread();
    let lower = Subject::Qdisc("eth1".to_owned(), QdiscId(0x8001_0000));
    grow(&mut run, "client1", &lower, Metric::QdiscDrops, 104);
    let named = limiter_of(&run).map(|(limiter, _)| limiter);
    assert_eq!(named, Some(Limiter::HostDrops));
}

#[test]
fn a_few_drops_among_many_segments_are_not_the_limit() {
    // Nothing is sent again: 12 of 1000 segments, and 12 of 1.7 million.
    let limiter = |bps: f64| {
        let truth = Truth {
            qdisc_drops: 12.0,
            ..sending(bps, 20 * MS)
        };
        limiter_of(&run(stream(), &truth)).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(12e6), Some(Limiter::HostDrops));
    assert_ne!(limiter(20e9), Some(Limiter::HostDrops));
}

#[test]
fn frames_that_nobody_handles_are_not_lost_segments() {
    // 18 segments are lost in the first half of a second; the device drops 15 frames then, or after it.
    let dropped = |begin_ns: i64| {
        let mut run = run(stream(), &sending(12.9e6, 20 * MS));
        let eth0 = Subject::Link("eth0".to_owned());
        grow(&mut run, "client1", &eth0, Metric::LinkTxDropped, 0);
        let samples = std::mem::take(&mut run.recording.samples);
        let lost = samples.iter().map(|sample| match sample.metric {
            Metric::TcpRetrans => TrialSample {
                value: (sample.at_ns / 25_000_000).clamp(0, 18),
                ..sample
            },
            _ => sample,
        });
        run.recording.samples = lost.collect();
        let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
        let readings = (-2..=11).map(|tenth| tenth * 100_000_000 + 50_000);
        for (trial, at_ns) in trials
            .iter()
            .flat_map(|it| readings.clone().map(move |at| (it, at)))
        {
            run.recording.samples.extend([TrialSample {
                trial: *trial,
                host: HostName::from("server"),
                subject: eth0.clone(),
                metric: Metric::LinkRxDropped,
                at_ns,
                value: ((at_ns - begin_ns) / 20_000_000).clamp(0, 15),
            }]);
        }
        let outcome = outcomes(&run.recording).remove(0);
        let limiter = limiter_of(&run).map(|(limiter, _)| limiter);
        (outcome.value(name::DROPPED_DEVICE), limiter)
    };
    assert_eq!(dropped(100_000_000), (Some(15.0), Some(Limiter::HostDrops)));
    // Half of them come when nothing is lost: so may the others.
    for begin_ns in [620_000_000, 350_000_000] {
        let (told, limiter) = dropped(begin_ns);
        assert_eq!(told, Some(0.0));
        assert_ne!(limiter, Some(Limiter::HostDrops));
    }
}

#[test]
fn what_a_backlog_drops_is_counted_once() {
    let truth = Truth {
        lost_share: 0.01,
        ..sending(60e6, 20 * MS)
    };
    let mut run = run(stream(), &truth);
    let eth0 = Subject::Link("eth0".to_owned());
    grow(&mut run, "client1", &eth0, Metric::LinkTxDropped, 0);
    grow(&mut run, "server", &eth0, Metric::LinkRxDropped, 130);
    grow(
        &mut run,
        "server",
        &Subject::Cpu(0),
        Metric::SoftnetDropped,
        100,
    );
    let outcome = outcomes(&run.recording).remove(0);
    assert_eq!(outcome.value(name::DROPPED_BACKLOG), Some(100.0));
    assert_eq!(outcome.value(name::DROPPED_DEVICE), Some(30.0));
    // A VLAN does not count what the card below it drops.
    tell(
        &mut run,
        "server",
        "link.eth0.kind",
        FactValue::Text("vlan".to_owned()),
    );
    let outcome = outcomes(&run.recording).remove(0);
    assert_eq!(outcome.value(name::DROPPED_DEVICE), None);
}

#[test]
fn what_keeps_a_window_small_beside_its_buffer_is_told() {
    let truth = Truth {
        window_bytes: 65_535,
        rwnd_share: 0.97,
        ..sending(26.2e6, 20 * MS)
    };
    let action = |run: &MadeRun| {
        let (limiter, finding) = limiter_of(run).expect("the window limits");
        assert_eq!(limiter, Limiter::ReceiverWindow, "{}", finding.claim);
        finding.action.unwrap_or_default()
    };
    // SYN cookies of a server, without the timestamps that keep the scale: always, or for some connections.
    let by_cookies = |cookies: f64, timestamps: f64, opened: Option<i64>| {
        let unscaled = Truth {
            agreed: Some("none"),
            ..truth.clone()
        };
        let mut run = run(stream(), &unscaled);
        for (name, value) in [("syncookies", cookies), ("timestamps", timestamps)] {
            let value = FactValue::Number(value, Unit::Count);
            tell(
                &mut run,
                "server",
                &format!("sysctl.net.ipv4.tcp_{name}"),
                value,
            );
        }
        sort_facts(&mut run);
        if let Some(count) = opened {
            // Counters begin at 7.
            let metric = Metric::NetstatSyncookiesRecv;
            grow(&mut run, "server", &Subject::Host, metric, count - 7);
        }
        action(&run).contains("tcp_syncookies")
    };
    assert!(by_cookies(2.0, 0.0, None));
    assert!(by_cookies(1.0, 0.0, Some(3)));
    assert!(!by_cookies(1.0, 0.0, Some(0)));
    assert!(!by_cookies(0.0, 0.0, None));
    assert!(!by_cookies(2.0, 1.0, None));
    // The memory of all sockets: the kernel begins to take from them at 20 000 pages of 4 KiB.
    let with_memory = |pages: i64| {
        let mut run = run(stream(), &truth);
        let limits = FactValue::Text("10000 20000 30000".to_owned());
        tell(&mut run, "server", "sysctl.net.ipv4.tcp_mem", limits);
        sort_facts(&mut run);
        let trial = run.recording.trials[0].trial;
        for at_ns in [50_000, 1_000_050_000] {
            run.recording.samples.extend([TrialSample {
                trial,
                host: HostName::from("server"),
                subject: Subject::Host,
                metric: Metric::MemoryTcp,
                at_ns,
                value: pages * 4096,
            }]);
        }
        action(&run)
    };
    let short = with_memory(20_001);
    assert!(short.contains("net.ipv4.tcp_mem"), "{short}");
    assert!(!short.contains("tcp_rmem"), "{short}");
    let enough = with_memory(9_999);
    assert!(!enough.contains("net.ipv4.tcp_mem"), "{enough}");
}

/// Puts the facts of all hosts in their order.
fn sort_facts(run: &mut MadeRun) {
    for host in &mut run.recording.document.hosts {
        host.snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

#[test]
fn a_shaper_of_the_receiving_host_is_no_slow_hop() {
    // 94.1 Mbit/s through a queue, all of which passes an ifb of the receiving host, or a tenth of it.
    let claim = |bps: i64, overlimits: i64| {
        let truth = sending(94.1e6, 20 * MS);
        let truth = Truth {
            min_rtt_ns: Some(2 * MS),
            ..truth
        };
        let mut run = run(stream(), &truth);
        for (fact, value) in [("kind", "ifb"), ("qdisc", "tbf")] {
            let value = FactValue::Text(value.to_owned());
            tell(&mut run, "server", &format!("link.ifb0.{fact}"), value);
        }
        sort_facts(&mut run);
        let qdisc = Subject::Qdisc("ifb0".to_owned(), QdiscId(0x8001_0000));
        grow(&mut run, "server", &qdisc, Metric::QdiscTxBytes, bps / 8);
        grow(
            &mut run,
            "server",
            &qdisc,
            Metric::QdiscOverlimits,
            overlimits,
        );
        let (limiter, finding) = limiter_of(&run).expect("a queue");
        assert_eq!(limiter, Limiter::PathRate, "{}", finding.claim);
        (finding.claim, finding.action.unwrap_or_default())
    };
    let (own, action) = claim(98_400_000, 5_000);
    assert!(own.contains("ifb0 (tbf)"), "{own}");
    assert!(action.contains("tc -s qdisc show dev ifb0"), "{action}");
    for (bps, overlimits) in [(9_840_000, 5_000), (98_400_000, 0)] {
        let (path, action) = claim(bps, overlimits);
        assert!(
            !path.contains("ifb0") && !action.contains("ifb0"),
            "{path}: {action}"
        );
    }
}

#[test]
fn what_a_receiving_host_does_not_deliver_is_lost_in_it() {
    // 6 % of what comes is sent again: the packet filter of the receiver, or something on the way, drops it.
    let limiter = |undelivered: i64| {
        let truth = Truth {
            lost_share: 0.06,
            beside_bps: Some(3e6),
            ..sending(20e6, 20 * MS)
        };
        let mut run = run(stream(), &truth);
        let lost = outcomes(&run.recording)[0].value(name::RETRANSMITTED);
        assert_eq!(lost.map(f64::round), Some(103.0));
        for (metric, amount) in [
            (Metric::SnmpIpInReceives, 2_000 + undelivered),
            (Metric::SnmpIpInDelivers, 2_000),
        ] {
            grow(&mut run, "server", &Subject::Host, metric, amount);
        }
        let outcome = outcomes(&run.recording).remove(0);
        assert_eq!(
            outcome.value(name::DROPPED_RECEIVER_IP),
            Some(undelivered as f64)
        );
        limiter_of(&run).map(|(limiter, finding)| (limiter, finding.action.unwrap_or_default()))
    };
    let (named, action) = limiter(102).expect("the filter drops");
    assert_eq!(named, Limiter::HostDrops);
    assert!(action.contains("nft list ruleset"), "{action}");
    assert_ne!(limiter(0).map(|it| it.0), Some(Limiter::HostDrops));
    // Far more than these flows lost is somebody else's.
    assert_ne!(limiter(5_000).map(|it| it.0), Some(Limiter::HostDrops));
}

#[test]
fn a_message_to_either_side_of_the_middle_is_no_change() {
    let flags = |rate_bps: Option<u64>| {
        let mut workload = stream();
        workload.manner.rate_bps = rate_bps;
        let mut run = run(workload, &sending(10e6, 20 * MS));
        let samples = std::mem::take(&mut run.recording.samples);
        let arrived = [Metric::TcpBytesReceived, Metric::AppBytesReceived];
        // Messages of 128 KiB: five in the first half of a second, four in the other.
        let whole = samples.iter().map(|sample| match sample.metric {
            metric if arrived.contains(&metric) => TrialSample {
                value: (9.5 * sample.at_ns.max(0) as f64 / 1e9 + 0.4).floor() as i64 * 131_072,
                ..sample
            },
            _ => sample,
        });
        run.recording.samples = whole.collect();
        let outcome = outcomes(&run.recording).remove(0);
        assert_eq!(outcome.value(name::HALVES), Some(0.8));
        let mut flags = outcome.flags.iter();
        flags.any(|flag| matches!(flag, TrialFlag::Unsteady { .. }))
    };
    assert!(!flags(Some(10_000_000)));
    assert!(flags(None));
}

/// Adds a fact to a host.
fn tell(run: &mut MadeRun, host: &str, name: &str, value: FactValue) {
    let mut hosts = run.recording.document.hosts.iter_mut();
    let host = hosts.find(|record| record.name == HostName::from(host));
    let facts = &mut host.expect("a host of the run").snapshot.facts;
    facts.retain(|fact| fact.name != name);
    facts.push(Fact {
        name: name.to_owned(),
        value,
    });
}

#[test]
fn queues_that_are_not_in_use_are_none() {
    let mut run = run(stream(), &sending(60e6, 20 * MS));
    for queue in 0..64 {
        let subject = Subject::Queue("eth0".to_owned(), QueueKind::Rx, queue);
        let packets = if queue < 8 { 1000 } else { 0 };
        grow(
            &mut run,
            "server",
            &subject,
            Metric::QueueRxPackets,
            packets,
        );
    }
    let of = |run: &MadeRun| {
        let outcome = outcomes(&run.recording).remove(0);
        [name::RX_QUEUES, name::RX_QUEUE_IMBALANCE].map(|name| outcome.value(name))
    };
    assert_eq!(of(&run), [Some(64.0), Some(8.0)]);
    let in_use = FactValue::Number(8.0, Unit::Count);
    tell(&mut run, "server", "link.eth0.rx_queues", in_use);
    assert_eq!(of(&run), [Some(8.0), Some(1.0)]);
}

#[test]
fn what_a_short_queue_drops_is_no_damage() {
    // 80 Mbit/s, 25 ms and room for 100 kB: four flows under reno meet a queue four readings of ten.
    let truth = |short: bool| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, stream());
        let truth = Truth {
            lost_share: 0.00118,
            variation: 0.06,
            ..sending(17.8e6, 20 * MS + MS / 2)
        };
        run.cell(&[], &[truth]);
        let samples = std::mem::take(&mut run.recording.samples);
        let queued = samples.iter().map(|sample| match sample.metric {
            Metric::TcpRtt if short && sample.at_ns / 100_000_000 % 5 < 2 => TrialSample {
                value: 25 * MS,
                ..sample
            },
            _ => sample,
        });
        run.recording.samples = queued.collect();
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(truth(false), Some(Limiter::CongestionWindow));
    assert_eq!(truth(true), None);
}

/// While the send buffer is full as well, the kernel counts the time at it alone.
#[test]
fn a_small_buffer_that_was_set_is_the_limit_whichever_end_is_waited_for() {
    let mut workload = stream();
    workload.options.socket_buffer = Some(Bytes(16_384));
    let truth = Truth {
        window_bytes: 20_480,
        rwnd_share: 0.08,
        sndbuf_share: 0.4,
        ..sending(8.0e6, 20 * MS)
    };
    named(workload, &truth, Limiter::ReceiverWindow, &["16 KiB"]);
    // A window that grew by itself is not waited for.
    let grown = limiter_of(&run(stream(), &truth)).map(|(limiter, _)| limiter);
    assert_ne!(grown, Some(Limiter::ReceiverWindow));
}

/// What each group asked for holds it, whatever the others take.
#[test]
fn a_rate_that_a_group_asked_for_is_its_limiter() {
    let limiter = |rate_bps: Option<u64>| {
        let mut workload = stream();
        workload.manner.rate_bps = rate_bps;
        let mut made = run(workload, &sending(10e6, 20 * MS));
        for experiment in &mut made.recording.document.plan.experiments {
            experiment.beside.push(Group {
                name: "bulk".to_owned(),
                workload: stream(),
            });
        }
        limiter_of(&made).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(Some(10_000_000)), Some(Limiter::Pacing));
    // What path and hosts have left for it is no limit of theirs.
    assert_eq!(limiter(None), None);
}

#[test]
fn several_limiters_share_the_time() {
    // Both buffers were set, and each holds for a part of it.
    let mut workload = stream();
    workload.options.socket_buffer = Some(Bytes(65_536));
    let truth = Truth {
        window_bytes: 65_536,
        rwnd_share: 0.6,
        sndbuf_share: 0.3,
        ..sending(26.2e6, 20 * MS)
    };
    let words = ["It held 70 % of the time, the send buffer 30 %"];
    let finding = named(workload, &truth, Limiter::ReceiverWindow, &words);
    let of_causes = finding.evidence.as_slice().iter();
    let shares: f64 = of_causes
        .filter(|piece| piece.what.starts_with("share of the time whose cause is"))
        .map(|piece| piece.estimate.value)
        .sum();
    assert!((shares - 1.0).abs() < 0.01, "{shares}");
    // Trials that do not agree make no verdict.
    let mut mixed = MadeRun::new(1, None);
    mixed.experiment("one", None, stream());
    let path = sending(95e6, 100 * MS);
    let idle = Truth {
        busy_share: 0.3,
        ..sending(95e6, 20 * MS)
    };
    mixed.cell(&[], &[path.clone(), idle.clone(), idle, path]);
    assert!(limiter_of(&mixed).is_none());
}

#[test]
fn a_fast_path_is_not_judged_by_ratios_of_round_trips() {
    // As on a free pair of veth with bbr: 17 times the shortest round trip is the scheduler's.
    let free = Truth {
        congestion: Some("bbr"),
        pacing_bps: Some(25e9),
        min_rtt_ns: Some(10_000),
        delivery_bps: Some(17.6e9),
        lost_share: 0.01,
        spurious_share: 1.0,
        cwnd: 900,
        worker_share: 0.9,
        ..sending(11e9, 170_000)
    };
    silent(stream(), &free);
    // A shaper on such a path has a queue of its own.
    let shaped = Truth {
        min_rtt_ns: Some(11_000),
        ..sending(95.6e6, 3_800_000)
    };
    named(
        stream(),
        &shaped,
        Limiter::PathRate,
        &["100 Mbit/s Ethernet"],
    );
}

#[test]
fn a_far_path_with_a_tenth_of_queue_is_not_said_to_be_free() {
    let far = |rtt_ns: i64| Truth {
        cwnd: 1359,
        ..Truth::sending(95.4e6, rtt_ns, 150 * MS)
    };
    named(
        stream(),
        &far(152 * MS),
        Limiter::CongestionWindow,
        &["Next to nothing was lost"],
    );
    silent(stream(), &far(166 * MS));
    let window = |rtt_ns: i64| Truth {
        rwnd_share: 1.0,
        window_bytes: 2_000_000,
        ..Truth::sending(95.4e6, rtt_ns, 150 * MS)
    };
    named(stream(), &window(152 * MS), Limiter::ReceiverWindow, &[]);
    silent(stream(), &window(168 * MS));
}

#[test]
fn one_run_at_nine_tenths_of_a_link_is_a_full_path_of_its_own() {
    let limiter = |bps: f64, trials: usize| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("one", None, stream());
        run.cell(&[], &vec![sending(bps, 40 * MS); trials]);
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(861e6, 1), Some(Limiter::PathRate));
    assert_eq!(limiter(861e6, 3), Some(Limiter::PathRate));
    assert_eq!(limiter(925e6, 1), Some(Limiter::LinkRate));
}

/// Leaves out what was read of a metric.
fn unseen(run: &mut MadeRun, metric: Metric) {
    let kept = run.recording.samples.iter();
    let kept: Vec<TrialSample> = kept.filter(|it| it.metric != metric).collect();
    run.recording.samples = Default::default();
    run.recording.samples.extend(kept);
}

#[test]
fn where_nobody_read_the_receiver_it_may_be_a_slow_reader() {
    let of = |rwnd_share: f64| {
        let truth = Truth {
            rwnd_share,
            ..sending(95e6, 40 * MS)
        };
        let mut run = run(stream(), &truth);
        unseen(&mut run, Metric::AppBytesReceived);
        limiter_of(&run)
    };
    let (limiter, finding) = of(0.0).expect("a queue that the sender saw");
    assert_eq!(limiter, Limiter::PathRate, "{}", finding.claim);
    assert!(
        finding.explanation.contains("the sender keeps up"),
        "{}",
        finding.explanation
    );
    assert_eq!(of(0.9).map(|(_, finding)| finding.claim), None);
}

#[test]
fn flows_of_one_client_over_ways_of_unlike_length_meet_no_queue() {
    let workload = Workload {
        connections: 2,
        ..stream()
    };
    let of = |rtt_ns: [i64; 2], min_rtt_ns: [i64; 2]| {
        let mut run = run(workload.clone(), &sending(95e6, 20 * MS));
        let changed: Vec<TrialSample> = run
            .recording
            .samples
            .iter()
            .map(|mut sample| {
                let flow = match &sample.subject {
                    Subject::Flow(flow, _) => flow.0 as usize,
                    _ => return sample,
                };
                match sample.metric {
                    Metric::TcpRtt => sample.value = rtt_ns[flow],
                    Metric::TcpMinRtt => sample.value = min_rtt_ns[flow],
                    _ => {}
                }
                sample
            })
            .collect();
        run.recording.samples = Default::default();
        run.recording.samples.extend(changed);
        outcomes(&run.recording)[0].value(name::QUEUED)
    };
    // Ways of 10 and of 14 ms, both empty.
    assert_eq!(of([10 * MS, 14 * MS], [10 * MS, 14 * MS]), Some(0.0));
    // A queue of both, which the second never saw empty.
    assert_eq!(of([20 * MS, 20 * MS], [10 * MS, 18 * MS]), Some(1.0));
    // A queue on one of the ways.
    assert_eq!(of([10 * MS, 28 * MS], [10 * MS, 14 * MS]), Some(0.5));
}

#[test]
fn packets_that_wait_for_a_cpu_wait_before_no_path() {
    let limiter = |share: f64| {
        let mut run = run(stream(), &sending(95e6, 40 * MS));
        for (cpu, share) in [0.1, 0.2, 0.1, share].into_iter().enumerate() {
            let cpu = Subject::Cpu(cpu as u32);
            let busy = (share * 1e9) as i64;
            grow(&mut run, "server", &cpu, Metric::CpuSoftIrq, busy);
        }
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(0.5), Some(Limiter::PathRate));
    assert_eq!(limiter(0.99), None);
}

#[test]
fn drops_that_allow_far_more_than_came_do_not_limit() {
    // 40 of 259 000 segments: at 0.1 ms cubic makes 11 Gbit/s of it.
    let limiter = |bps: f64, timeouts: i64| {
        let truth = Truth {
            qdisc_drops: 1.5e-4 * bps / 8.0 / 1448.0,
            ..Truth::sending(bps, MS / 10, MS / 10)
        };
        let mut run = run(stream(), &truth);
        let flow = Subject::Flow(FlowId(0), End::Client);
        grow(&mut run, "client1", &flow, Metric::TcpTimeouts, timeouts);
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(3e9, 0), None);
    assert_eq!(limiter(9e9, 0), Some(Limiter::HostDrops));
    // What ends in timeouts costs far more than the formula has.
    assert_eq!(limiter(3e9, 3), Some(Limiter::HostDrops));
}

#[test]
fn a_slow_rate_that_was_asked_for_arrives() {
    let mut asked = stream();
    asked.manner.rate_bps = Some(64_000);
    let truth = |throughput_bps: f64| Truth {
        payload_bytes: 8948.0,
        lost_share: 0.3,
        timeouts: Some(3.0),
        ..sending(throughput_bps, 20 * MS)
    };
    let claim = |bps: f64| {
        let found = limiter_of(&run(asked.clone(), &truth(bps)));
        found.map(|(limiter, _)| limiter)
    };
    assert_ne!(claim(60_000.0), Some(Limiter::NothingArrives));
    let lost = Truth {
        in_vain: 8.0,
        ..truth(0.0)
    };
    let found = limiter_of(&run(asked, &lost));
    assert_eq!(
        found.map(|(limiter, _)| limiter),
        Some(Limiter::NothingArrives)
    );
}

/// What the receiver has, and the sender does not know of, went through the path: ACKs are lost.
#[test]
fn where_acks_are_lost_something_arrives() {
    let limiter = |on_its_way_bytes| {
        let lost = Truth {
            in_vain: 8.0,
            unacked: 100,
            on_its_way_bytes,
            invalid: Some("a flow moved nothing".to_owned()),
            ..sending(0.0, 20 * MS)
        };
        limiter_of(&run(stream(), &lost)).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(Some(144_800)), Some(Limiter::NothingArrives));
    assert_eq!(limiter(Some(0)), None);
}

/// A kernel that was told not to tune leaves the window as it begins.
#[test]
fn a_window_that_is_not_tuned_says_so() {
    let small = Truth {
        rwnd_share: 0.99,
        window_bytes: 80_000,
        ..sending(31e6, 20 * MS)
    };
    let told = |tunes: f64| {
        let mut run = run(stream(), &small);
        for host in &mut run.recording.document.hosts {
            host.snapshot.facts.push(Fact {
                name: "sysctl.net.ipv4.tcp_moderate_rcvbuf".to_owned(),
                value: FactValue::Number(tunes, Unit::Count),
            });
            host.snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let (limiter, finding) = limiter_of(&run).expect("the window limits");
        assert_eq!(limiter, Limiter::ReceiverWindow);
        let next = crate::as_single(&run.recording).next.unwrap_or_default();
        [finding.explanation, next].map(|text| text.contains("tcp_moderate_rcvbuf"))
    };
    assert_eq!(told(0.0), [true, true]);
    assert_eq!(told(1.0), [false, false]);
}

/// A window that is larger than what `-w 4M` gives is not made larger by it.
#[test]
fn what_to_do_about_a_large_window_depends_on_the_limit() {
    let large = Truth {
        rwnd_share: 0.99,
        window_bytes: 3_400_000,
        ..sending(1.3e9, 20 * MS)
    };
    let next = |most: u32| {
        let mut run = run(stream(), &large);
        for host in &mut run.recording.document.hosts {
            host.snapshot.facts.push(Fact {
                name: "sysctl.net.ipv4.tcp_rmem".to_owned(),
                value: FactValue::Text(format!("4096 131072 {most}")),
            });
            host.snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let found = limiter_of(&run).map(|(limiter, _)| limiter);
        assert_eq!(found, Some(Limiter::ReceiverWindow));
        crate::as_single(&run.recording).next.unwrap_or_default()
    };
    let (at_limit, below) = (next(6 << 20), next(64 << 20));
    assert!(at_limit.contains("third value"), "{at_limit}");
    assert!(below.contains("for longer"), "{below}");
    assert!(!at_limit.contains("4M") && !below.contains("4M"));
}

/// What is in flight twice is a buffer's doing only while the rate stays.
#[test]
fn a_rate_that_collapses_is_no_buffers() {
    let buffer = Truth {
        sndbuf_share: 0.8,
        ..sending(50e6, 20 * MS)
    };
    named(stream(), &buffer, Limiter::SendBuffer, &[]);
    let collapsed = Truth {
        halves: 0.3,
        ..buffer
    };
    let found = limiter_of(&run(stream(), &collapsed));
    assert_ne!(found.map(|it| it.0), Some(Limiter::SendBuffer));
}

#[test]
fn a_rate_is_not_the_limit_where_the_path_does_not_carry_it() {
    let mut asked = stream();
    asked.options.pacing_bps = Some(100_000_000);
    let limiter = |rtt_ns: i64, bps: f64| {
        let found = limiter_of(&run(asked.clone(), &sending(bps, rtt_ns)));
        found.map(|(limiter, _)| limiter)
    };
    // 1448 of 1514 B are 95.6 % of what the kernel paces.
    assert_eq!(limiter(20 * MS, 92e6), Some(Limiter::Pacing));
    assert_eq!(limiter(60 * MS, 92e6), Some(Limiter::PathRate));
    assert_eq!(limiter(60 * MS, 95.6e6), Some(Limiter::Pacing));
}

/// A stream of datagrams of `bytes`, at a rate where one is asked for.
pub(crate) fn datagrams(rate_bps: Option<u64>, bytes: u64) -> Workload {
    let mut workload = stream();
    workload.manner.transport = Transport::Udp;
    workload.manner.rate_bps = rate_bps;
    if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
        *message_bytes = Bytes(bytes);
    }
    workload
}

#[test]
fn where_the_path_loses_datagrams_neither_generator_nor_request_is_the_limit() {
    let told = |arrived: u64, unread: u64, asked_bps: Option<u64>, reader: Option<f64>| {
        let workload = datagrams(asked_bps, 1448);
        // A sender spins through gaps of up to 50 µs.
        let truth = Truth {
            worker_share: 0.99,
            // All CPUs are busy where what is asked for is sent whole.
            cpus: match asked_bps {
                Some(192_000_000) => 1.99,
                _ => 0.5,
            },
            ..Truth::stream(300e6 * arrived as f64 / 100_000.0)
        };
        let mut run = run(workload, &truth);
        if let Some(share) = reader {
            let worker = Subject::Thread("worker-0".to_owned());
            grow(
                &mut run,
                "server",
                &worker,
                Metric::ThreadRun,
                (share * 1e9) as i64,
            );
        }
        for flow in &mut run.recording.flows {
            flow.outcome.datagrams = Some(Box::new(match flow.part {
                Part::Sender => Datagrams {
                    sent: 100_000,
                    ..Datagrams::default()
                },
                _ => Datagrams {
                    received: arrived,
                    highest: 100_000,
                    announced: Some(100_000),
                    socket_drops: Some(unread),
                    ..Datagrams::default()
                },
            }));
        }
        let analysis = analyze(&run.recording);
        let mut told = analysis.findings.iter().chain(&analysis.cautions);
        told.find_map(|finding| match finding.kind {
            FindingKind::Limiter(limiter) => Some(limiter),
            _ => None,
        })
    };
    let limiter = |arrived, unread, asked_bps| told(arrived, unread, asked_bps, None);
    // A small receive buffer overflows while its reader is idle: neither end's program is behind.
    assert_eq!(told(64_000, 36_000, None, Some(0.2)), None);
    assert_eq!(
        told(64_000, 36_000, None, Some(0.97)),
        Some(Limiter::Generator)
    );
    // A third is lost on the way: the path carries no more.
    assert_eq!(limiter(64_000, 0, Some(300_000_000)), None);
    assert_eq!(limiter(64_000, 0, Some(192_000_000)), None);
    // All arrive; what does not is left by our own reader, of which nothing is known.
    assert_eq!(limiter(100_000, 0, None), Some(Limiter::Generator));
    assert_eq!(limiter(64_000, 36_000, None), None);
    // Loss on the way of 4 % of what was asked for, and of none.
    assert_eq!(limiter(96_000, 0, Some(300_000_000)), None);
    assert_eq!(limiter(99_900, 0, Some(300_000_000)), Some(Limiter::Pacing));
}

#[test]
fn datagrams_that_wait_in_the_own_qdisc_are_not_sent() {
    // 150 of 200 Mbit/s are sent, and all arrive: the sender waits for its socket buffer, which the qdisc empties.
    let limiter = |backlog: i64, asked_bps: u64, worker_share: f64| {
        let workload = datagrams(Some(asked_bps), 1448);
        let truth = Truth {
            worker_share,
            ..Truth::stream(150e6)
        };
        let mut run = run(workload, &truth);
        crate::forget(&mut run.recording, Metric::AppBytesSent);
        let mut samples = Vec::new();
        for flow in &mut run.recording.flows {
            flow.outcome.datagrams = Some(Box::new(match flow.part {
                Part::Sender => Datagrams {
                    sent: 13_000,
                    ..Datagrams::default()
                },
                _ => Datagrams {
                    received: 13_000,
                    highest: 13_000,
                    announced: Some(13_000),
                    socket_drops: Some(0),
                    ..Datagrams::default()
                },
            }));
            let sent = (Subject::Flow(flow.flow, flow.end), Metric::AppBytesSent);
            let waits = (
                Subject::Qdisc("eth0".to_owned(), QdiscId(0x8001_0000)),
                Metric::QdiscBacklogBytes,
            );
            let reading = |at_ns: i64, (subject, metric): &(Subject, Metric), value| TrialSample {
                trial: flow.trial,
                host: flow.host.clone(),
                subject: subject.clone(),
                metric: *metric,
                at_ns,
                value,
            };
            if flow.part == Part::Sender {
                samples
                    .extend((0..=10).map(|step| reading(step * 100 * MS, &sent, step * 1_875_000)));
                samples.extend((0..=10).map(|step| reading(step * 100 * MS, &waits, backlog)));
            }
        }
        run.recording.samples.extend(samples);
        limiter_of(&run).map(|found| found.0)
    };
    assert_eq!(limiter(96_000, 200_000_000, 0.06), Some(Limiter::PathRate));
    // A datagram on its way out is no queue; what was asked for was sent; the sender has no time.
    assert_eq!(limiter(1_500, 200_000_000, 0.06), None);
    assert_eq!(limiter(96_000, 150_000_000, 0.06), Some(Limiter::Pacing));
    assert_ne!(limiter(96_000, 200_000_000, 0.98), Some(Limiter::PathRate));
}

#[test]
fn a_round_trip_that_a_window_or_an_ack_makes_longer_is_no_full_path() {
    // A path of 10 ms that became one of 14 ms; the window of 80 kB holds the sender.
    let rerouted = Truth {
        rwnd_share: 0.999,
        window_bytes: 80_000,
        ..Truth::sending(45.2e6, 14_200_000, 10_200_000)
    };
    let names_path = |truth: &Truth| {
        let found = limiter_of(&run(stream(), truth));
        found.is_some_and(|(limiter, _)| limiter == Limiter::PathRate)
    };
    assert!(!names_path(&rerouted));
    // The same with a window that has room: a queue.
    let queued = Truth {
        rwnd_share: 0.0,
        window_bytes: 3 << 20,
        ..rerouted.clone()
    };
    assert!(names_path(&queued));
    // What Ethernet carries is a full path, whoever holds the sender; a queue of twice the way, too.
    let line = Truth::sending(94.1e6, 14_200_000, 10_200_000);
    let held = Truth {
        rwnd_share: 0.999,
        window_bytes: 160_000,
        ..line
    };
    named(stream(), &held, Limiter::PathRate, &["looks the same"]);
    // Two segments on a slow line: each takes 2.5 ms of it.
    let few = Truth::sending(900_000.0, 26_200_000, 20_600_000);
    assert!(!names_path(&few));
    // One segment at a time, whose ACK waits for the timer.
    let alone = |delayed_acks| Truth {
        cwnd: 3,
        delayed_acks,
        ..Truth::sending(5e6, 40 * MS, 2 * MS)
    };
    assert!(!names_path(&alone(Some(300.0))));
    assert!(names_path(&alone(Some(0.0))));
}

#[test]
fn a_rate_just_below_what_was_asked_for_is_the_lines() {
    let limiter = |asked_bps: u64, bps: f64, rtt_ns: i64| {
        let mut asked = stream();
        asked.manner.rate_bps = Some(asked_bps);
        let found = limiter_of(&run(asked, &sending(bps, rtt_ns)));
        found.map(|(limiter, _)| limiter)
    };
    // 95 Mbit/s over a line that carries 94.1, with a queue and without.
    assert_eq!(
        limiter(95_000_000, 94.14e6, 60 * MS),
        Some(Limiter::PathRate)
    );
    assert_eq!(limiter(95_000_000, 94.14e6, 20 * MS), Some(Limiter::Pacing));
    assert_eq!(limiter(94_000_000, 93.98e6, 60 * MS), Some(Limiter::Pacing));
    // 0.6 % less at no Ethernet's rate, behind a queue; of 100 segments it is one at an edge of the window.
    assert_eq!(
        limiter(50_000_000, 49.7e6, 60 * MS),
        Some(Limiter::PathRate)
    );
    assert_eq!(limiter(50_000_000, 49.7e6, 20 * MS), Some(Limiter::Pacing));
    assert_eq!(limiter(1_160_000, 1.153e6, 60 * MS), Some(Limiter::Pacing));
}

#[test]
fn acks_that_wait_on_their_way_back_are_no_full_path() {
    // 12 Mbit/s and 162 ms where 22 ms are the shortest: 243 kB are in flight.
    let flight = |on_its_way_bytes| Truth {
        on_its_way_bytes,
        ..Truth::sending(12e6, 162 * MS, 22 * MS)
    };
    // Next to nothing of it is on its way to the receiver, or half of what a long way holds when it is empty.
    silent(stream(), &flight(Some(21_000)));
    let far = Truth {
        on_its_way_bytes: Some(62_500),
        ..Truth::sending(10e6, 200 * MS, 100 * MS)
    };
    silent(stream(), &far);
    // Most of it is; or nobody knows.
    for on_its_way in [Some(220_000), None] {
        named(
            stream(),
            &flight(on_its_way),
            Limiter::PathRate,
            &["140 ms"],
        );
    }
}

#[test]
fn a_round_trip_that_does_not_go_with_the_flight_is_no_queues() {
    // A way of 25 ms that takes up to 30 ms longer as it likes, and one segment in a thousand is lost.
    let path = |swings| Truth {
        swings,
        variation: 0.15,
        ..Truth::sending(18.9e6, 46 * MS, 25 * MS)
    };
    silent(stream(), &path(Some((0.18, 0.02))));
    // Nor one that grows by more than what is in flight: the way became longer, and the rate fell.
    silent(stream(), &path(Some((0.18, 1.4))));
    // Behind a queue of its own, others in it or not, round trips go with what is in flight. A flight that hardly varies
    // shows neither.
    for swings in [
        Some((0.18, 1.0)),
        Some((0.18, 0.4)),
        Some((0.05, 0.0)),
        None,
    ] {
        named(
            stream(),
            &path(swings),
            Limiter::PathRate,
            &["wait before it"],
        );
    }
    // Nor is a rate as steady as a line's that of a way that takes as long as it likes: a queue of ten packets.
    let short = Truth {
        swings: Some((0.3, 0.05)),
        variation: 0.01,
        lost_share: 0.03,
        ..Truth::sending(147.5e6, 750_000, 9_000)
    };
    named(stream(), &short, Limiter::PathRate, &["wait before it"]);
    let varies = Truth {
        variation: 0.15,
        ..short
    };
    silent(stream(), &varies);
}

#[test]
fn a_few_segments_on_a_slow_line_are_no_queue_of_their_own() {
    // 5.2 of 20 Mbit/s: one segment in a hundred is lost, and each of ten in flight takes 0.6 ms on the line.
    let lossy = |elasticity: f64| Truth {
        lost_share: 0.01,
        variation: 0.25,
        swings: Some((0.3, elasticity)),
        ..Truth::sending(5.2e6, 22 * MS + MS / 2, 20 * MS)
    };
    named(
        stream(),
        &lossy(0.0),
        Limiter::CongestionWindow,
        &["which loss keeps small"],
    );
    silent(stream(), &lossy(0.6));
}

#[test]
fn a_window_of_something_between_is_not_the_receivers() {
    let window = |offered_bytes| Truth {
        window_bytes: 65_536,
        rwnd_share: 0.98,
        offered_bytes,
        ..sending(26e6, 20 * MS)
    };
    let words = ["not the receiver's own", "proxy"];
    let between = window(Some(3_400_000));
    named(stream(), &between, Limiter::ReceiverWindow, &words);
    let own = named(
        stream(),
        &window(Some(65_536)),
        Limiter::ReceiverWindow,
        &[],
    );
    assert!(!own.explanation.contains("proxy"), "{}", own.explanation);
    // A field of 16 bits that is full says nothing of who has it: a receiver that does not scale offers no more.
    let full = Truth {
        window_bytes: 65_535,
        agreed: Some("timestamps, SACK, window scaling"),
        ..window(Some(300_000))
    };
    let words = ["65 535 B", "ip route"];
    let full = named(stream(), &full, Limiter::ReceiverWindow, &words);
    let is_anothers = full.explanation.contains("not the receiver's own");
    assert!(!is_anothers, "{}", full.explanation);
    let unscaled = Truth {
        agreed: Some("timestamps, SACK"),
        ..window(Some(300_000))
    };
    let unscaled = Truth {
        window_bytes: 65_535,
        ..unscaled
    };
    let words = ["did not negotiate window scaling"];
    named(stream(), &unscaled, Limiter::ReceiverWindow, &words);
}

#[test]
fn a_worker_that_rests_is_not_missed_behind_a_long_queue() {
    // It runs 0.9 % of the time and waits for a CPU 32 % of it, beside two CPUs' worth of other programs.
    let busy = |worker_wait_share, rtt_ns| Truth {
        cpus: 1.98,
        others_cpus: 0.95,
        others_kernel_cpus: 0.95,
        worker_share: 0.009,
        worker_wait_share,
        unsent_bytes: Some(0),
        variation: 0.3,
        ..sending(10e6, rtt_ns)
    };
    silent(stream(), &busy(0.32, 135 * MS));
    // Without the queue, or where it waits nearly all the time, others have what it needs.
    for (waited, rtt_ns) in [(0.32, 21 * MS), (0.86, 135 * MS)] {
        named(stream(), &busy(waited, rtt_ns), Limiter::OtherPrograms, &[]);
    }
}

#[test]
fn a_slow_path_is_none_that_carries_nothing() {
    // 64 kbit/s that carried four full segments in the window beside its retransmissions.
    let slow = Truth {
        in_vain: 8.0,
        ..sending(1448.0 * 8.0, 2000 * MS)
    };
    let found = limiter_of(&run(stream(), &slow));
    let claim = found.map(|(limiter, _)| limiter);
    assert_ne!(claim, Some(Limiter::NothingArrives));
}

#[test]
fn where_a_quota_would_not_be_seen_nobody_is_said_to_have_the_cpus() {
    // A worker that a quota of a fifth of a CPU holds, beside others that are busy.
    let held = Truth {
        cpus: 1.98,
        others_cpus: 0.95,
        others_kernel_cpus: 0.95,
        worker_share: 0.19,
        worker_wait_share: 0.76,
        unsent_bytes: Some(0),
        variation: 0.3,
        ..sending(1e9, 21 * MS)
    };
    named(stream(), &held, Limiter::OtherPrograms, &[]);
    let found = limiter_of(&hiding_quota(run(stream(), &held)));
    let of_cpus = [Limiter::OtherPrograms, Limiter::Cpu, Limiter::CpuQuota];
    let is_of_cpus = |(limiter, _): &(Limiter, Finding)| of_cpus.contains(limiter);
    assert!(!found.as_ref().is_some_and(is_of_cpus), "{found:?}");
}

/// A run on hosts where a CPU quota would not be seen.
fn hiding_quota(mut run: MadeRun) -> MadeRun {
    for host in &mut run.recording.document.hosts {
        host.snapshot.facts.push(Fact {
            name: CPU_QUOTA_VISIBLE.to_owned(),
            value: FactValue::Number(0.0, Unit::Count),
        });
    }
    run
}

#[test]
fn cpus_full_of_our_own_work_need_no_sight_of_a_quota() {
    // Two workers of ours for each of two CPUs.
    let limiter = |cpus: f64, others_cpus: f64, ran: f64| {
        let truth = Truth {
            cpus,
            worker_share: ran,
            worker_wait_share: 0.99 - ran,
            ..sending(130e9, 100_000)
        };
        let mut run = run(stream(), &truth);
        let rest = Subject::Thread("worker-1".to_owned());
        let ran_ns = (cpus - others_cpus - ran) * 1e9;
        grow(&mut run, "client1", &rest, Metric::ThreadRun, ran_ns as i64);
        limiter_of(&hiding_quota(run)).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(1.99, 0.02, 0.49), Some(Limiter::Cpu));
    // A program of others among it, a CPU that has time left, or a worker that gets a fifth of what it waits: there may be
    // a quota.
    for (cpus, others_cpus, ran) in [(1.99, 0.5, 0.49), (1.7, 0.0, 0.49), (1.99, 0.02, 0.16)] {
        assert_ne!(limiter(cpus, others_cpus, ran), Some(Limiter::Cpu));
    }
}

#[test]
fn datagrams_lost_while_their_reader_waits_for_a_cpu_are_others_doing() {
    // A sender that spins sends all of 60 Mbit/s, and a fifth of it is read.
    let told = |unread: u64, waited: f64, cpus: f64| {
        let workload = datagrams(Some(60_000_000), 1448);
        let truth = Truth {
            worker_share: 0.49,
            worker_wait_share: 0.5,
            throttled: Some(0.0),
            cpus,
            others_cpus: cpus / 2.0,
            others_kernel_cpus: cpus / 2.0,
            ..Truth::stream(60e6)
        };
        let mut run = run(workload, &truth);
        let worker = Subject::Thread("worker-0".to_owned());
        for (metric, share) in [(Metric::ThreadRun, 0.008), (Metric::ThreadWait, waited)] {
            grow(&mut run, "server", &worker, metric, (share * 1e9) as i64);
        }
        for flow in &mut run.recording.flows {
            flow.outcome.datagrams = Some(Box::new(match flow.part {
                Part::Sender => Datagrams {
                    sent: 100_000,
                    ..Datagrams::default()
                },
                _ => Datagrams {
                    received: 100_000 - unread,
                    highest: 100_000,
                    announced: Some(100_000),
                    socket_drops: Some(unread),
                    ..Datagrams::default()
                },
            }));
        }
        let next = crate::as_single(&run.recording).next.unwrap_or_default();
        (limiter_of(&run), next)
    };
    let (found, next) = told(80_000, 0.5, 1.5);
    let (limiter, finding) = found.expect("others have the CPUs");
    assert_eq!(limiter, Limiter::OtherPrograms);
    let words = "ran 0.8 % of the time and waited for a CPU 50 %";
    assert!(finding.claim.contains(words), "{}", finding.claim);
    assert!(next.contains("stop the other programs"), "{next}");
    // A small buffer whose reader has a CPU, a reader that waits for no other program, or one whose buffer holds all.
    for (unread, waited, cpus) in [(80_000, 0.05, 1.5), (80_000, 0.5, 0.1), (0, 0.5, 1.5)] {
        let (found, next) = told(unread, waited, cpus);
        let limiter = found.map(|(limiter, _)| limiter);
        assert_ne!(limiter, Some(Limiter::OtherPrograms));
        assert!(!next.contains("other programs"), "{next}");
    }
}

#[test]
fn kernel_time_that_ticks_lost_is_no_user_time_of_others() {
    // Of two CPUs' 1.1 counted ones half is user time and half the kernel's; our threads ran 0.95 by the scheduler's clock.
    let limiter = |user_cpus: f64| {
        let truth = Truth {
            cpus: 1.1,
            worker_share: 0.55,
            worker_wait_share: 0.44,
            unsent_bytes: Some(1 << 20),
            ..sending(40e9, 60_000)
        };
        let mut run = run(stream(), &truth);
        let thread = |name: &str| Subject::Thread(name.to_owned());
        let ns = |cpus: f64| (cpus * 1e9) as i64;
        for (name, ran) in [("worker-0", 0.55), ("worker-1", 0.4)] {
            let user = user_cpus * ran / 0.95;
            let mut add = |metric, cpus| grow(&mut run, "client1", &thread(name), metric, ns(cpus));
            add(Metric::ThreadUser, user);
            add(Metric::ThreadSystem, ran - user);
            if name == "worker-1" {
                add(Metric::ThreadRun, ran);
            }
        }
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(0.02), Some(Limiter::OtherPrograms));
    // User time that is our own is no other program's.
    assert_ne!(limiter(0.5), Some(Limiter::OtherPrograms));
}

#[test]
fn other_programs_are_those_of_the_host_whose_worker_waits() {
    // Both hosts' CPUs are full; of the server's another program has 0.67, of the client's our own threads all user time.
    let limiter = |own_cpus: f64| {
        let truth = Truth {
            cpus: 1.99,
            others_cpus: 0.67,
            worker_share: 0.77,
            worker_wait_share: 0.23,
            ..Truth::usual()
        };
        let mut run = run(stream(), &truth);
        let second = Subject::Thread("worker-1".to_owned());
        let ns = (own_cpus * 1e9) as i64;
        grow(&mut run, "client1", &second, Metric::ThreadUser, ns);
        limiter_of(&run).map(|(limiter, _)| limiter)
    };
    assert_eq!(limiter(0.0), Some(Limiter::OtherPrograms));
    assert_eq!(limiter(0.67), Some(Limiter::Cpu));
}

/// A CPU that a worker has and softirqs, beside one that has time left.
#[test]
fn a_cpu_that_is_full_with_the_worker_and_softirqs_is_named() {
    let told = |ran: f64, waited: f64, softirq: f64, idle: f64, on: [i64; 3]| {
        let truth = Truth {
            worker_share: ran,
            worker_wait_share: waited,
            variation: 0.1,
            ..sending(20e9, 100_000)
        };
        let mut run = run(stream(), &truth);
        let samples = std::mem::take(&mut run.recording.samples);
        let is_cpu = |sample: &TrialSample| matches!(sample.subject, Subject::Cpu(_));
        run.recording.samples = samples.iter().filter(|one| !is_cpu(one)).collect();
        for (number, [softirq, idle]) in [[softirq, idle], [0.1, 0.5]].into_iter().enumerate() {
            let cpu = Subject::Cpu(number as u32);
            let ns = |share: f64| (share * 1e9) as i64;
            let mut add = |metric, share| grow(&mut run, "client1", &cpu, metric, ns(share));
            add(Metric::CpuUser, 0.0);
            add(Metric::CpuSystem, 1.0 - softirq - idle);
            add(Metric::CpuSoftIrq, softirq);
            add(Metric::CpuIdle, idle);
        }
        let rest = Subject::Thread("worker-1".to_owned());
        grow(&mut run, "client1", &rest, Metric::ThreadRun, 490_000_000);
        let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
        for trial in trials {
            let samples = (0..).zip(on).map(|(at, cpu)| TrialSample {
                trial,
                host: HostName::from("client1"),
                subject: Subject::Thread("worker-0".to_owned()),
                metric: Metric::ThreadCpu,
                at_ns: 50_000 + at * 500 * MS,
                value: cpu,
            });
            run.recording.samples.extend(samples);
        }
        let single = crate::as_single(&run.recording);
        single.limiter().map(|(limiter, _)| limiter)
    };
    let there = [0, 0, 0];
    for (ran, waited) in [(0.858, 0.07), (0.871, 0.1)] {
        assert_eq!(told(ran, waited, 0.25, 0.02, there), Some(Limiter::Cpu));
    }
    // Where it waits for softirqs and never rests, none of what its CPU has left is its own.
    assert_eq!(told(0.9, 0.06, 0.3, 0.09, there), Some(Limiter::Cpu));
    assert_eq!(told(0.97, 0.01, 0.3, 0.01, there), Some(Limiter::Generator));
    assert_eq!(told(0.9, 0.06, 0.0, 0.09, there), Some(Limiter::Generator));
    // Time left, or nobody knows on which CPU.
    assert_ne!(told(0.8, 0.1, 0.25, 0.1, there), Some(Limiter::Cpu));
    assert_ne!(told(0.871, 0.05, 0.25, 0.02, [0, 1, 0]), Some(Limiter::Cpu));
    // One that waits for long and finds its CPU full is held by no quota.
    assert_eq!(told(0.55, 0.4, 0.2, 0.01, there), Some(Limiter::Cpu));
}

#[test]
fn workers_that_share_one_cpu_beside_an_idle_one_are_on_too_few() {
    // Both ends had half of a CPU each, of two.
    let told = |on: &[i64], cpus: [f64; 2], throttled: Option<f64>| {
        let truth = Truth {
            worker_share: 0.49,
            worker_wait_share: 0.5,
            throttled,
            variation: 0.1,
            ..sending(74e9, 100_000)
        };
        let mut run = run(stream(), &truth);
        let samples = std::mem::take(&mut run.recording.samples);
        let is_cpu = |sample: &TrialSample| matches!(sample.subject, Subject::Cpu(_));
        run.recording.samples = samples.iter().filter(|one| !is_cpu(one)).collect();
        for (number, busy) in cpus.into_iter().enumerate() {
            let cpu = Subject::Cpu(number as u32);
            let ns = |share: f64| (share * 1e9) as i64;
            let mut add = |metric, share| grow(&mut run, "client1", &cpu, metric, ns(share));
            add(Metric::CpuUser, 0.0);
            add(Metric::CpuSystem, busy);
            add(Metric::CpuIdle, 1.0 - busy);
        }
        let rest = Subject::Thread("worker-1".to_owned());
        grow(&mut run, "client1", &rest, Metric::ThreadRun, 490_000_000);
        let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
        for trial in trials {
            let samples = on.iter().enumerate().map(|(at, cpu)| TrialSample {
                trial,
                host: HostName::from("client1"),
                subject: Subject::Thread("worker-0".to_owned()),
                metric: Metric::ThreadCpu,
                at_ns: 50_000 + at as i64 * 500 * MS,
                value: *cpu,
            });
            run.recording.samples.extend(samples);
        }
        let next = crate::as_single(&run.recording).next;
        let limiter = limiter_of(&run).map(|(limiter, _)| limiter);
        (limiter, next.unwrap_or_default())
    };
    let full = [0.99, 0.02];
    for throttled in [Some(0.0), None] {
        let (limiter, next) = told(&[0, 0, 0], full, throttled);
        assert_eq!(limiter, Some(Limiter::Cpu), "{throttled:?}");
        assert!(next.contains("CPUs of its own"), "{next}");
    }
    // They were on both: the scheduler was free, and so it is where the CPU that they are on has time left.
    for (on, cpus) in [([0, 1, 0], full), ([0, 0, 0], [0.6, 0.5])] {
        let (limiter, next) = told(&on, cpus, Some(0.0));
        assert_ne!(limiter, Some(Limiter::Cpu));
        assert!(!next.contains("CPUs of its own"), "{next}");
    }
    // A quota leaves the CPU idle that its workers are on.
    let (limiter, _) = told(&[0, 0, 0], [0.5, 0.02], None);
    assert_eq!(limiter, Some(Limiter::CpuQuota));
}

#[test]
fn needless_retransmissions_are_no_loss() {
    // All of a small window is in flight, and what was sent again had arrived.
    let overtaken = Truth {
        lost_share: 0.05,
        spurious_share: 1.0,
        cwnd: 6,
        ..sending(6.0 * 1448.0 * 8.0 / 0.0202, 20 * MS)
    };
    let words = ["needless retransmissions", "Next to nothing was lost"];
    let finding = named(stream(), &overtaken, Limiter::CongestionWindow, &words);
    assert!(
        !finding.explanation.contains("still growing"),
        "{}",
        finding.explanation
    );
}

/// Both where the numbers stand: the line of a measurement and the report.
#[test]
fn retransmissions_of_what_had_arrived_are_told_as_reordering() {
    let told = |lost_share: f64, spurious_share: f64| {
        let truth = Truth {
            lost_share,
            spurious_share,
            ..sending(100e6, 20 * MS)
        };
        let run = run(stream(), &truth);
        let told = crate::as_single(&run.recording).trials[0].needless();
        let summary = format!("{:?}", analyze(&run.recording).summary);
        let said = told.as_deref().map(|words| summary.contains(words));
        assert_ne!(said, Some(false), "{summary}");
        assert_eq!(summary.contains("had arrived"), told.is_some(), "{summary}");
        told.unwrap_or_default()
    };
    let all = told(0.01, 1.0);
    assert!(all.contains("all") && all.contains("nothing lost"), "{all}");
    let most = told(0.01, 0.9);
    assert!(
        most.contains(" % of them") && !most.contains("nothing"),
        "{most}"
    );
    assert_eq!(told(0.01, 0.3), "");
    assert_eq!(told(0.0, 0.0), "");
}

#[test]
fn flows_that_share_a_short_queue_are_not_held_by_losses_of_the_way() {
    // 0.3 % are lost of eight flows at the shortest round trip. Lost by chance, each flow varies for itself; where they
    // share a path that drops what is more, the sum does not.
    let flows = |connections: u32, variation: f64| {
        let mut workload = stream();
        workload.connections = connections;
        let truth = Truth {
            lost_share: 0.003,
            variation,
            cwnd: 22,
            ..sending(12.9e6 * f64::from(connections), 20 * MS)
        };
        limiter_of(&run(workload, &truth)).map(|(limiter, _)| limiter)
    };
    assert_eq!(flows(8, 0.08), Some(Limiter::CongestionWindow));
    assert_eq!(flows(8, 0.015), None);
    // A flow alone that loses less than it needs to vary: the formula holds.
    assert_eq!(flows(1, 0.015), Some(Limiter::CongestionWindow));
}

#[test]
fn a_quota_that_nobody_misses_is_none() {
    // A tenth of the periods is throttled, each for half of it: 2 MB last for 170 ms.
    let queued = Truth {
        throttled: Some(0.15),
        unsent_bytes: Some(2_000_000),
        ..sending(95e6, 100 * MS)
    };
    named(stream(), &queued, Limiter::PathRate, &["100 Mbit/s"]);
    // The sender had nothing left while it was stopped, in which time the queue ran dry.
    let missed = Truth {
        unsent_bytes: Some(0),
        rtt_ns: 23 * MS,
        variation: 0.4,
        ..queued.clone()
    };
    named(stream(), &missed, Limiter::CpuQuota, &["throttled in 10 %"]);
    let uneven = Truth {
        variation: 0.4,
        ..queued.clone()
    };
    named(stream(), &uneven, Limiter::CpuQuota, &["throttled in 10 %"]);
    // Where all periods were, it ran dry in each, between readings that are as far apart.
    let short = Truth {
        throttled: Some(1.0),
        unsent_bytes: Some(400_000),
        rtt_ns: 23 * MS,
        ..queued.clone()
    };
    named(stream(), &short, Limiter::CpuQuota, &["throttled in"]);
    // The second half carried seven times as much: there was none any more, and no periods were counted.
    let ended = Truth {
        halves: 7.0,
        ..short.clone()
    };
    let found = limiter_of(&run(stream(), &ended)).map(|it| it.0);
    assert_ne!(found, Some(Limiter::CpuQuota));
    let bridged = Truth {
        throttled: Some(1.0),
        ..queued
    };
    named(stream(), &bridged, Limiter::PathRate, &["100 Mbit/s"]);
}

#[test]
fn a_late_reader_holds_nobody_while_the_window_is_open() {
    // A radio's rate, and a reader that waits for CPUs that others have: 20 kB lie unread of 60 Mbit/s.
    let late = Truth {
        variation: 0.28,
        cpus: 1.9,
        others_cpus: 0.9,
        others_kernel_cpus: 0.4,
        worker_share: 0.04,
        worker_wait_share: 0.4,
        unread_bytes: 20_000,
        ..Truth::sending(60e6, 12 * MS, 3 * MS)
    };
    let limiter = |truth: &Truth| limiter_of(&run(stream(), truth)).map(|(limiter, _)| limiter);
    assert_ne!(limiter(&late), Some(Limiter::OtherPrograms));
    let held = Truth {
        rwnd_share: 0.3,
        ..late.clone()
    };
    assert_eq!(limiter(&held), Some(Limiter::OtherPrograms));
    // Where another program sends, the reader alone is known.
    let mut foreign = run(stream(), &late);
    let is_senders = |sample: &TrialSample| {
        matches!(
            sample.metric,
            Metric::TcpNotSent | Metric::TcpSndMss | Metric::TcpRwndLimited
        )
    };
    let samples = std::mem::take(&mut foreign.recording.samples);
    foreign.recording.samples = samples
        .iter()
        .filter(|sample| !is_senders(sample))
        .collect();
    let limiter = limiter_of(&foreign).map(|(limiter, _)| limiter);
    assert_ne!(limiter, Some(Limiter::OtherPrograms));
}

#[test]
fn what_the_hypervisor_took_is_told_whatever_workers_ran() {
    // Their time has nothing of what was taken from them.
    let taken = Truth {
        cpus: 0.7,
        stolen_share: 0.62,
        worker_share: 0.28,
        worker_wait_share: 0.05,
        unread_bytes: 2 << 20,
        rwnd_share: 0.9,
        variation: 0.3,
        ..sending(300e6, 60 * MS)
    };
    named(
        stream(),
        &taken,
        Limiter::Cpu,
        &["the hypervisor took 62 %"],
    );
    // One that the window holds is not short of CPU time.
    let window = Truth {
        unread_bytes: 0,
        window_bytes: 256 << 10,
        variation: 0.01,
        ..Truth::sending(35e6, 60 * MS, 60 * MS)
    };
    let window = Truth {
        cpus: 0.7,
        stolen_share: 0.62,
        worker_share: 0.05,
        worker_wait_share: 0.05,
        rwnd_share: 0.98,
        ..window
    };
    named(stream(), &window, Limiter::ReceiverWindow, &[]);
    // A full path beside it holds the rate steady.
    let path = Truth {
        unread_bytes: 0,
        rwnd_share: 0.0,
        variation: 0.02,
        ..taken
    };
    named(stream(), &path, Limiter::PathRate, &["wait before it"]);
}

#[test]
fn a_rate_that_falls_short_for_another_reason_is_not_what_was_asked_for() {
    let mut asked = stream();
    asked.manner.rate_bps = Some(100_000_000);
    let paced = Truth {
        busy_share: 0.5,
        ..sending(97e6, 20 * MS)
    };
    named(asked.clone(), &paced, Limiter::Pacing, &["requested rate"]);
    let limiter = |truth: Truth| limiter_of(&run(asked.clone(), &truth)).map(|found| found.0);
    let lossy = Truth {
        lost_share: 0.001,
        ..paced.clone()
    };
    assert_ne!(limiter(lossy.clone()), Some(Limiter::Pacing));
    let saturated = Truth {
        worker_share: 0.99,
        ..paced.clone()
    };
    assert_ne!(limiter(saturated), Some(Limiter::Pacing));
    // A few of many are not why.
    let cable = Truth {
        throughput_bps: 0.97 * 5e9,
        lost_share: 4e-5,
        window_bytes: 1 << 30,
        ..paced.clone()
    };
    let mut faster = asked.clone();
    faster.manner.rate_bps = Some(5_000_000_000);
    named(faster, &cable, Limiter::Pacing, &["requested rate"]);
    // Whole, nothing of that matters.
    let whole = Truth {
        throughput_bps: 100e6,
        ..lossy
    };
    assert_eq!(limiter(whole), Some(Limiter::Pacing));
}

#[test]
fn a_path_is_not_full_while_the_send_buffer_holds_the_sender() {
    // A way of 110 ms that radio makes 30 ms longer: nothing is lost, and the flight does not vary.
    let held = Truth {
        sndbuf_share: 0.6,
        variation: 0.1,
        ..Truth::sending(166e6, 140 * MS, 110 * MS)
    };
    let limiter = |truth: &Truth| limiter_of(&run(stream(), truth)).map(|found| found.0);
    assert_ne!(limiter(&held), Some(Limiter::PathRate));
    let free = Truth {
        sndbuf_share: 0.1,
        ..held
    };
    assert_eq!(limiter(&free), Some(Limiter::PathRate));
}

#[test]
fn a_queue_before_another_device_is_none_of_these_flows() {
    // A way that takes longer as it likes, beside a gateway's other device whose queue is full.
    let jitter = Truth {
        variation: 0.15,
        swings: Some((0.18, 0.02)),
        ..Truth::sending(18.9e6, 46 * MS, 25 * MS)
    };
    let limiter = |device: &str, bytes: i64| {
        let mut run = run(stream(), &jitter);
        let own = Subject::Qdisc("eth0".to_owned(), QdiscId(0x8002_0000));
        let queue = Subject::Qdisc(device.to_owned(), QdiscId(0x8001_0000));
        let trials: Vec<_> = run.recording.trials.iter().map(|it| it.trial).collect();
        for trial in trials {
            let at = [50_000, 500_050_000, 1_000_050_000];
            let both = [(&own, 0), (&queue, bytes)];
            let samples = both.into_iter().flat_map(|(subject, value)| {
                at.map(|at_ns| TrialSample {
                    trial,
                    host: HostName::from("client1"),
                    subject: subject.clone(),
                    metric: Metric::QdiscBacklogBytes,
                    at_ns,
                    value,
                })
            });
            run.recording.samples.extend(samples);
        }
        limiter_of(&run).map(|found| found.0)
    };
    assert_eq!(limiter("wlan0", 200_000), None);
    // A few bytes before the own device are not what makes the round trip longer either.
    assert_eq!(limiter("eth0", 400), None);
    assert_eq!(limiter("eth0", 45_000), Some(Limiter::PathRate));
}

#[test]
fn a_steady_rate_behind_a_little_more_delay_is_no_clamped_window() {
    // 94 Mbit/s over 59 ms, and 4.5 ms wait: others fill the way of the ACKs, and the path has just become full.
    let full = |rtt_ns: i64, variation: f64| Truth {
        variation,
        ..Truth::sending(94.25e6, rtt_ns, 59 * MS)
    };
    silent(stream(), &full(63 * MS + MS / 2, 0.027));
    // A window that a route clamps is steady at the shortest round trip, and one that grows is not steady.
    for (rtt_ns, variation) in [(59 * MS + MS / 2, 0.01), (63 * MS, 0.12)] {
        let words = ["still growing, from its start or after an earlier loss, or is clamped"];
        named(
            stream(),
            &full(rtt_ns, variation),
            Limiter::CongestionWindow,
            &words,
        );
    }
    // One that grows by 16 % is not held by it where the round trip grows by as much.
    let grows = |elasticity: f64| Truth {
        swings: Some((0.08, elasticity)),
        ..full(63 * MS, 0.12)
    };
    silent(stream(), &grows(0.5));
    named(
        stream(),
        &grows(0.05),
        Limiter::CongestionWindow,
        &["still growing"],
    );
}

#[test]
fn workers_that_others_made_wait_at_times_are_under_no_quota() {
    // 80 % of a CPU went to another program, half of the time; nobody can see whether there is a quota.
    let truth = |others_cpus: f64| Truth {
        cpus: 0.6 + others_cpus,
        worker_share: 0.6,
        worker_wait_share: 0.38,
        variation: 0.6,
        ..Truth::stream(3e9)
    };
    let limiter =
        |truth: &Truth| limiter_of(&hiding_quota(run(stream(), truth))).map(|(limiter, _)| limiter);
    assert_eq!(limiter(&truth(0.0)), Some(Limiter::CpuQuota));
    assert_ne!(limiter(&truth(0.6)), Some(Limiter::CpuQuota));
}

#[test]
fn of_several_flows_what_waits_is_beyond_their_own_shortest_round_trips() {
    // One of 20 ms that waits for 2, and one of 80 that waits for 30.
    let mut two = stream();
    two.connections = 2;
    let truth = Truth {
        min_rtt_ns: Some(20 * MS),
        ..Truth::sending(95e6, 22 * MS, 20 * MS)
    };
    let mut run = run(two, &truth);
    let samples = std::mem::take(&mut run.recording.samples);
    let far = samples.iter().map(|sample| {
        let is_far = matches!(sample.subject, Subject::Flow(FlowId(1), _));
        match sample.metric {
            Metric::TcpRtt if is_far => TrialSample {
                value: 110 * MS,
                ..sample
            },
            Metric::TcpMinRtt if is_far => TrialSample {
                value: 80 * MS,
                ..sample
            },
            _ => sample,
        }
    });
    run.recording.samples = far.collect();
    let (limiter, finding) = limiter_of(&run).expect("a full path");
    assert_eq!(limiter, Limiter::PathRate);
    // 16 ms on average, not 46.
    assert!(
        finding.claim.contains("at least 190\u{202f}000 B (16 ms)"),
        "{}",
        finding.claim
    );
}

#[test]
fn datagrams_of_which_none_arrives_are_told() {
    let told = |arrived: u64, bytes: u64, stray: i64| {
        let workload = datagrams(Some(10_000_000), bytes);
        let mut run = run(
            workload,
            &Truth::stream(arrived as f64 * 8.0 * bytes as f64),
        );
        grow(
            &mut run,
            "server",
            &Subject::Cpu(0),
            Metric::SoftnetDropped,
            stray,
        );
        for flow in &mut run.recording.flows {
            let counts = match flow.part {
                Part::Sender => Datagrams {
                    sent: 1000,
                    ..Datagrams::default()
                },
                _ => Datagrams {
                    received: arrived,
                    highest: arrived,
                    announced: Some(1000),
                    socket_drops: Some(0),
                    ..Datagrams::default()
                },
            };
            flow.outcome.datagrams = Some(Box::new(counts));
        }
        limiter_of(&run).map(|(limiter, finding)| (limiter, finding.explanation))
    };
    let (limiter, text) = told(0, 4000, 0).expect("nothing arrives");
    assert_eq!(limiter, Limiter::NothingArrives);
    assert!(text.contains("fragments"), "{text}");
    let (limiter, text) = told(0, 1400, 1).expect("nothing arrives, beside one stray drop");
    assert_eq!(limiter, Limiter::NothingArrives);
    assert!(!text.contains("fragments"), "{text}");
    // Dropped at the host, that is no firewall's or path's.
    let (limiter, at_host) = told(0, 1400, 900).expect("the host drops it");
    assert_eq!(limiter, Limiter::NothingArrives);
    assert_ne!(at_host, text);
    // One that arrives is something else.
    assert_ne!(
        told(500, 1400, 0).map(|it| it.0),
        Some(Limiter::NothingArrives)
    );
}
