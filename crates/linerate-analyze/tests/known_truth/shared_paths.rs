//! Others on the path and on the CPUs: who has what the flows do not get.

use crate::prelude::*;

/// One trial.
fn run(truth: &Truth) -> MadeRun {
    once(None, stream(), truth)
}

/// One flow of nine over a full path of 155 Mbit/s: it loses as if by chance, and its shortest round trip holds the queue of
/// the others.
fn one_of_nine() -> Truth {
    like!(Truth::sending(11.6e6, 21 * MS, 18 * MS); lost_share: 0.004, swings: Some((0.2, 0.01)), variation: 0.25,
        unsent_bytes: Some(400_000), beside_bps: Some(137e6), others_fill: true)
}

#[test]
fn a_path_that_others_fill_as_well_is_full_whatever_the_own_losses_look_like() {
    worlds! {
        PathRate: run(&one_of_nine()), "path is full: 11.6 Mbit/s", "other traffic has the rest of the 149 Mbit/s",
            next "stop the other traffic";
        /// The same beside a few percent of others is random loss.
        CongestionWindow: run(&like!(one_of_nine(); beside_bps: Some(0.1e6), others_fill: false)),
            "which loss keeps small";
    }
    // What a tenth of a line carries is no line of its own, even where the number is that of one.
    let tenth = like!(one_of_nine(); throughput_bps: 9.5e6);
    let (_, finding) = limiter_of(&run(&tenth)).expect("the path is full");
    says!(finding.claim; no "Ethernet");
}

#[test]
fn others_that_do_not_take_what_is_left_fill_no_path() {
    worlds! {
        /// They are as they are while the flow varies: nothing is full, and the round trip may still hold their queue.
        none: run(&like!(one_of_nine(); others_fill: false));
        /// A quarter of them are others', of which a fifth is too few for a queue that never empties.
        CongestionWindow: run(&like!(one_of_nine(); others_fill: false, beside_bps: Some(2e6)));
    }
    // Where the flow is as steady as all that passes, nothing shows that it has what others leave.
    let steady = limiter_of(&run(&like!(one_of_nine(); variation: 0.02)));
    says!(steady.map_or(String::new(), |(_, finding)| finding.claim); no "other traffic");
}

#[test]
fn traffic_against_the_flows_is_told_where_acks_wait_for_it() {
    let trust_and_next = |against_bps: f64| {
        let truth = like!(Truth::sending(40e6, 59 * MS, 40 * MS); swings: None, variation: 0.14,
            unsent_bytes: Some(400_000), on_its_way_bytes: Some(66_000), against_bps: Some(against_bps));
        let run = run(&truth);
        let single = crate::as_single(&run.recording);
        let reasons = single.trust.reasons.join("; ");
        (single.trust.level, reasons, single.next.unwrap_or_default())
    };
    let (level, reasons, next) = trust_and_next(22e6);
    assert_eq!(level, TrustLevel::Limited);
    says!(reasons; "what eth0 of server sent");
    says!(next; "stop the other traffic");
    // A tenth of what the flows carry are a download of next to nothing, and ACKs alone are nobody's traffic.
    for little in [4e6, 0.0] {
        let (level, reasons, next) = trust_and_next(little);
        assert_eq!(level, TrustLevel::Good, "{reasons}");
        says!(next; no "other traffic");
    }
}

#[test]
fn traffic_of_others_is_told_of_datagrams_as_well() {
    let told = |beside_bps: f64| {
        let truth = like!(Truth::stream(25e6); beside_bps: Some(beside_bps));
        let run = once(None, datagrams(None, 1400), &truth);
        let single = crate::as_single(&run.recording);
        let flags = single.trials[0].flags.iter().map(ToString::to_string);
        flags
            .filter(|flag| flag.contains("neither the flows'"))
            .count()
    };
    assert_eq!(told(20e6), 1);
    assert_eq!(told(0.2e6), 0);
}

/// Two programs that never rest on both CPUs of one machine that has both ends: the flow's workers wait for them, and with
/// them all that the kernel does for the flow.
fn between_hogs() -> Truth {
    like!(Truth::stream(34e9); cpus: 2.0, others_cpus: 0.84, others_kernel_cpus: 0.84, worker_share: 0.38,
        worker_wait_share: 0.35, busy_share: 0.67, unsent_bytes: Some(200_000), unacked: 100, window_bytes: 3 << 20,
        variation: 0.08, rtt_ns: 140_000, min_rtt_ns: Some(4000), throttled: Some(0.0), congestion: Some("cubic"))
}

#[test]
fn workers_between_programs_that_fill_all_cpus_are_missed() {
    let paced: Workload = like!(stream(); manner.rate_bps: Some(40_000_000_000));
    worlds! {
        OtherPrograms: run(&between_hogs()), "Other programs have the CPUs", "ran 38 % of the time";
        /// Others that leave CPU time, a worker that hardly waits, a sender that has always something outstanding, and a
        /// path with a queue: there nobody is known to miss the sender.
        not OtherPrograms: run(&like!(between_hogs(); cpus: 1.7, others_cpus: 0.7, others_kernel_cpus: 0.7));
        not OtherPrograms: run(&like!(between_hogs(); worker_share: 0.6, worker_wait_share: 0.13));
        not OtherPrograms: run(&like!(between_hogs(); busy_share: 1.0));
        not OtherPrograms: run(&like!(between_hogs(); rtt_ns: 10 * MS));
        /// A quota would not be seen.
        not OtherPrograms: run(&like!(between_hogs(); throttled: None));
        /// A rate that was asked for pauses by itself.
        not OtherPrograms: once(None, paced, &between_hogs());
    }
}

/// A study whose identical trials differ by far says who took the CPUs meanwhile.
#[test]
fn a_study_that_is_not_to_be_used_says_who_took_cpu_time() {
    let reasons = |others_cpus: f64| {
        let mut run = MadeRun::new(1, None);
        run.recording.document.study = true;
        run.experiment("latency", Some(1), rr(4));
        let truth = |ns: u64| like!(Truth::transactions(ns); cpus: 1.8, others_cpus);
        run.cell(&[], &[50_000, 150_000, 400_000].map(truth));
        let trust = analyze(&run.recording).trust.expect("a judgement");
        assert_eq!(trust.level, TrustLevel::DoNotUse);
        trust.reasons
    };
    let disturbed = reasons(0.85);
    says!(disturbed[0]; begins "identical trials differ");
    says!(disturbed[1]; begins "others took CPU time");
    assert_eq!(reasons(0.0).len(), 1);
}
