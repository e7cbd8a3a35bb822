//! The answer on page one: what it says of recordings of a known truth, and that it says no more.

use linerate_model::answer::Answer;

use crate::prelude::*;

fn answer_of(rate: Option<f64>, workload: Workload, truths: &[Truth]) -> Answer {
    let run = trials(rate, workload, truths);
    analyze(&run.recording).answer
}

#[track_caller]
fn check(answer: &Answer, begins: &str, tiles: &[&str], limiters: &[Option<Limiter>]) {
    assert!(answer.verdict.starts_with(begins), "{}", answer.verdict);
    let shown: Vec<&str> = answer.tiles.iter().map(|tile| &*tile.what).collect();
    assert_eq!(shown, tiles, "{answer:#?}");
    let named: Vec<_> = answer.bars.iter().map(|bar| bar.limiter).collect();
    assert_eq!(named, limiters);
}

#[test]
fn a_full_link_is_named_with_its_share() {
    let truth = Truth::stream(941e6);
    let answer = answer_of(Some(1e9), stream(), &[truth.clone(), truth.clone(), truth]);
    let tiles = [
        "Throughput",
        "Round trip under load",
        "Window needed",
        "Longest stall",
    ];
    let link = Some(Limiter::LinkRate);
    let begin = "One connection fills the link: 941";
    check(&answer, begin, &tiles, &[link]);
    says!(answer.tiles[0].note; begins "99.9 % of the wire");
    let share = answer.bars[0].share(941e6).expect("the wire is known");
    assert!(share > 0.99, "{share}");
}

#[test]
fn the_longest_stall_is_the_longest_and_no_mean() {
    let truth = |stall_ns| like!(Truth::stream(941e6); stall_ns);
    let truths = [truth(100_000_000), truth(200_000_000), truth(120_000_000)];
    let answer = answer_of(Some(1e9), stream(), &truths);
    let mut tiles = answer.tiles.iter();
    let stall = tiles.find(|tile| tile.what == "Longest stall");
    let value = stall.expect("a stall").value;
    assert_eq!((value.value, value.low), (200e6, None));
}

/// Over a path whose rate nobody knows there is no ceiling, no window, and no share.
#[test]
fn what_is_not_known_is_not_said() {
    let truth = Truth::stream(500e6);
    let answer = answer_of(None, stream(), &[truth]);
    let tiles = ["Throughput", "Round trip under load", "Longest stall"];
    check(&answer, "One connection reaches 500", &tiles, &[None]);
    says!(answer.verdict; "the limiter is not known");
    assert_eq!(answer.bars[0].ceiling, None);
    assert!(!answer.tiles[0].note.contains('%'), "{answer:#?}");
}

#[test]
fn our_own_generator_gives_a_lower_bound() {
    let truth = like!(Truth::stream(500e6); worker_share: 0.99);
    let answer = answer_of(Some(1e9), stream(), &[truth]);
    says!(answer.verdict; begins "One connection reaches at least 500");
    assert!(answer.bars[0].is_lower_bound());
    assert!(answer.tiles[0].note.contains("lower bound"), "{answer:#?}");
}

#[test]
fn an_exchange_is_told_by_its_round_trip() {
    let truth = Truth::transactions(100_000);
    let answer = answer_of(Some(1e9), rr(1), &[truth]);
    says!(answer.verdict; begins "A round trip of 1 B takes 100");
    assert_eq!(answer.tiles[0].what, "Transactions");
    assert_eq!(answer.tiles[1].what, "Round trip, 1 B");
    assert_eq!(answer.bars[0].value.unit, Unit::PerSecond);
}

#[test]
fn clients_at_different_distances_have_ceilings_of_their_own() {
    let of_two = |workload: Workload, truth: Truth| {
        let two = like!(workload; connections: 2, clients: 2);
        analyze(&once(GIGABIT, two, &truth).recording).answer
    };
    // One is 0.1 ms away, the other 10 ms: 10 000 and 100 exchanges per second.
    let exchange =
        like!(Truth::transactions(5_000_000); min_rtt_ns: Some(100_000), distances: vec![100.0]);
    let answer = of_two(rr(1), exchange);
    let ceiling = answer.bars[0].ceiling.as_ref().map(|it| it.value.round());
    assert_eq!(ceiling, Some(10_100.0), "{answer:#?}");
    // The farthest needs the largest window: 1 Gbit/s × 10 ms.
    let stream_of_two =
        like!(Truth::stream(100e6); min_rtt_ns: Some(100_000), distances: vec![100.0]);
    let answer = of_two(stream(), stream_of_two);
    let mut tiles = answer.tiles.iter();
    let window = tiles.find(|tile| tile.what == "Window needed");
    let bytes = window.expect("the link's rate is known").value.value;
    assert!((1.2e6..1.3e6).contains(&bytes), "{bytes}");
}

#[test]
fn a_study_names_the_stall_and_its_cure() {
    let answer = analyze(&study().recording).answer;
    let begins = "Requests in 2 writes take 44";
    assert!(answer.verdict.starts_with(begins), "{}", answer.verdict);
    says!(answer.verdict; ends "with Nagle off");
    let tile = |what: &str| answer.tiles.iter().find(|tile| tile.what == what);
    assert!(tile("Smallest sufficient buffer").is_some(), "{answer:#?}");
    let stall = tile("Longest stall").expect("a stall is there");
    assert_eq!(stall.note, "Nagle and delayed ACK");
    // The stalled requests are far below what the path allows.
    let mut bars = answer.bars.iter();
    let stalled = bars.find(|bar| bar.limiter == Some(Limiter::NagleDelayedAck));
    let stalled = stalled.expect("the stall has a bar");
    let share = stalled.share(stalled.value.value);
    assert!(share.is_none_or(|share| share < 0.1));
}

#[test]
fn nothing_valid_gives_no_number() {
    let truth = like!(Truth::stream(941e6); invalid: Some("a host was lost".to_owned()));
    let answer = answer_of(Some(1e9), stream(), &[truth]);
    assert_eq!(answer.verdict, "Nothing valid was measured");
    assert_eq!((answer.tiles.len(), answer.bars.len()), (0, 0));
    let nothing = answer_of(Some(1e9), Workload::stream(Direction::Both), &[]);
    assert_eq!(nothing.verdict, "Nothing was measured");
}

/// The 99th percentiles of three trials of a healthy lab: the worst says nothing of the two others.
#[test]
fn one_bad_trial_does_not_rule_the_tail() {
    let truth = |tail_ns: u64| like!(Truth::usual(); latency: vec![(50_000, 1960), (tail_ns, 40)]);
    let answer = answer_of(Some(1e9), rr(1), &[79_000, 76_000, 716_000].map(truth));
    let mut tiles = answer.tiles.iter();
    let tile = tiles.find(|tile| tile.what.starts_with("Round trip"));
    let note = &tile.expect("a round trip").note;
    assert!(note.contains("p99 79 (3 values: 76–716) µs"), "{note}");
}
