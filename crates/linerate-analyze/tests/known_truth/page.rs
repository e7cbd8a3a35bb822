//! Tiles, headline and chapters of a page: what they say where it is so, and not where it is not.

use linerate_model::answer::Tile;

use crate::prelude::*;

fn tile<'a>(analysis: &'a Analysis, what: &str) -> Option<&'a Tile> {
    let mut tiles = analysis.answer.tiles.iter();
    tiles.find(|tile| tile.what == what)
}

fn chapter(analysis: &Analysis, number: u32) -> &Chapter {
    let mut chapters = analysis.chapters.iter();
    let found = chapters.find(|chapter| chapter.number == Some(number));
    found.expect("the study has the chapter")
}

fn caution<'a>(analysis: &'a Analysis, id: &str) -> Option<&'a Finding> {
    let mut cautions = analysis.cautions.iter();
    cautions.find(|caution| caution.id.ends_with(id))
}

/// Fixed buffers against the kernel's tuning with one connection and with ten: the rates of each fixed buffer.
fn buffers(one: [f64; 3], ten: [f64; 3], truth: &Truth) -> Analysis {
    let mut run = begun(GIGABIT, "socket-buffer", Some(3), stream());
    for (connections, fixed) in [(1, one), (10, ten)] {
        let count = (Factor::Connections, Level::Count(connections));
        let of = |buffer: Level| [count.clone(), (Factor::SocketBuffer, buffer)];
        let at = |bps: f64| like!(truth; throughput_bps: bps);
        run.cell(&of(size(65_536)), &fixed.map(at));
        let auto = Level::Word("auto".to_owned());
        run.cell(&of(auto), &[500e6, 501e6, 502e6].map(at));
    }
    analyze(&run.recording)
}

#[test]
fn the_smallest_buffer_is_that_of_the_fewest_connections() {
    // Nothing smaller was measured.
    let what = "Sufficient buffer";
    let (same, unknown) = ([500e6, 501e6, 502e6], [100e6, 500e6, 900e6]);
    let truth = Truth::usual();
    let decided = buffers(same, unknown, &truth);
    let found = tile(&decided, what).expect("one connection decides");
    assert!(found.note.starts_with("with 1 connection"), "{found:?}");
    let undecided = buffers(unknown, same, &truth);
    assert_eq!(tile(&undecided, what), None, "ten say nothing of one");
}

#[test]
fn a_buffer_that_is_the_limit_suffices_for_nothing() {
    let same = [500e6, 501e6, 502e6];
    let limited = like!(Truth::usual(); window_bytes: 65_536, rwnd_share: 0.95, rtt_ns: 1_050_000);
    let analysis = buffers(same, same, &limited);
    for what in ["Smallest sufficient buffer", "Sufficient buffer"] {
        assert_eq!(tile(&analysis, what), None);
    }
    assert!(tile(&analysis, "Window needed").is_some());
}

#[test]
fn a_window_is_that_of_the_path_where_the_path_is_the_limit() {
    let needed = |truth: Truth, rate| {
        let run = thrice(rate, stream(), &truth);
        let analysis = analyze(&run.recording);
        let tile = tile(&analysis, "Window needed");
        tile.map(|tile| (tile.note.clone(), tile.value.value))
    };
    let queued = || Truth::sending(100e6, 60_000_000, 20_000_000);
    // 100 Mbit/s × 20 ms, whatever the link could do.
    for rate in [Some(1e9), None] {
        let (note, bytes) = needed(queued(), rate).expect("the path's rate is known");
        assert!(note.starts_with("path rate × shortest"), "{note}");
        assert!((245e3..255e3).contains(&bytes), "{bytes}");
    }
    let (note, bytes) = needed(Truth::stream(100e6), Some(1e9)).expect("the link's rate is known");
    assert!(note.starts_with("link rate × "), "{note}");
    assert_eq!(bytes, 12_500.0, "1 Gbit/s × 0.1 ms");
    assert_eq!(needed(Truth::stream(100e6), None), None);
}

#[test]
fn a_window_is_of_the_links_that_lose_nothing_on_purpose() {
    let needed = |loss_ppm| {
        let mut run = studied(GIGABIT, "streams", None, stream());
        run.cell(&[], &[Truth::stream(500e6)]);
        let lossy = like!(stream(); link_loss_ppm: loss_ppm);
        run.experiment("loss", None, lossy);
        // Full, with a queue of 14 ms.
        run.cell(&[], &[Truth::sending(940e6, 14 * MS, MS / 10)]);
        let analysis = analyze(&run.recording);
        let tile = tile(&analysis, "Window needed");
        tile.map(|tile| tile.note.clone()).expect("a window")
    };
    assert!(needed(None).contains("under load"), "{}", needed(None));
    assert!(needed(Some(0)).contains("shortest"), "{}", needed(Some(0)));
}

#[test]
fn the_chapter_on_the_window_says_why_there_is_none() {
    let of_rate = |rate| {
        let mut run = studied(rate, "latency", Some(1), rr(4));
        run.cell(&[], &[Truth::transactions(50_000)]);
        let analysis = analyze(&run.recording);
        chapter(&analysis, 2).answer.clone().expect("an answer")
    };
    let none = "The rate of the link is not known, so no window can be computed.";
    assert_eq!(of_rate(None), none);
    says!(of_rate(GIGABIT); "for 1 Gbit/s over");
}

#[test]
fn what_raises_throughput_need_not_raise_packets() {
    let consequence = |response: &str| {
        let mut run = begun(GIGABIT, "rates", Some(10), stream());
        let experiments = &mut run.recording.document.plan.experiments;
        experiments[0].response = response.to_owned();
        run.cell(&[], &[Truth::stream(941e6)]);
        let analysis = analyze(&run.recording);
        let told = chapter(&analysis, 10).consequence.clone();
        told.expect("the link is full")
    };
    says!(consequence(name::DATA_SEGMENTS); "a faster link raise throughput,");
    says!(consequence(name::THROUGHPUT); "a faster link raise it,");
}

#[test]
fn more_than_a_link_carries_is_not_called_all_of_it() {
    let at = |rates: [f64; 3]| {
        let mut run = begun(GIGABIT, "rates", None, stream());
        run.cell(&[], &rates.map(Truth::stream));
        run
    };
    worlds! {
        /// 941.5 Mbit/s is what is left of headers.
        LinkRate: at([941.9e6, 942.0e6, 942.1e6]), claim "more than";
        LinkRate: at([941.3e6, 941.4e6, 941.6e6]), claim "100 % of";
    }
    let more = named(&at([941.9e6, 942.0e6, 942.1e6]), Limiter::LinkRate);
    says!(more.claim; no "100 %");
}

#[test]
fn the_headline_names_a_direction_that_was_varied() {
    let verdict = |directions: &[&str]| {
        let mut run = studied(GIGABIT, "streams", None, stream());
        for (at, direction) in directions.iter().enumerate() {
            let level = Level::Word((*direction).to_owned());
            let truth = Truth::stream(500e6 + 100e6 * at as f64);
            run.alike(&[(Factor::Direction, level)], &truth);
        }
        analyze(&run.recording).answer.verdict
    };
    let both = ["to-server", "from-server"];
    says!(verdict(&both); begins "One connection to the server reaches 500");
    says!(verdict(&both[..1]); begins "One connection reaches 500");
}

#[test]
fn a_rate_that_holds_what_came_before_is_about_right() {
    let answer = |flagged: &[(usize, f64)]| {
        let truth = Truth::stream(500e6);
        let mut run = thrice(GIGABIT, stream(), &truth);
        for (at, share) in flagged {
            let flags = &mut run.recording.trials[*at].flags;
            flags.push(TrialFlag::HeldBack(*share));
        }
        let analysis = analyze(&run.recording);
        let note = tile(&analysis, "Throughput").map(|tile| tile.note.clone());
        (analysis.answer.verdict, note.expect("it was measured"))
    };
    let (verdict, note) = answer(&[(0, 0.08), (2, 0.03)]);
    says!(verdict; "reaches about 500");
    says!(note; "holds what came before the window");
    // One trial of three, and little in most.
    for few in [vec![(0, 0.08)], vec![(0, 0.02), (1, 0.02), (2, 0.02)]] {
        let (verdict, note) = answer(&few);
        says!(verdict; "reaches 500");
        says!(note; no "before the window");
    }
}

/// Requests in two writes that a delayed ACK stalls; the longest of them is of `longest_ns`.
fn stalled(longest_ns: u64, timeouts: Option<f64>) -> Analysis {
    let mut run = studied(GIGABIT, "split-request", Some(9), rr(200));
    for writes in [1, 2] {
        for (nagle, ack) in [(true, true), (true, false), (false, true), (false, false)] {
            let stalls = writes == 2 && nagle && ack;
            let mut levels = switches(nagle, ack).to_vec();
            levels.push((Factor::RequestWrites, Level::Count(writes)));
            let truth = |wobble: u64| {
                if stalls {
                    like!(Truth::usual(); rtt_ns: 60_000,
                        latency: vec![(44_000_000 + wobble, 20), (longest_ns, 1)], timeouts)
                } else {
                    Truth::transactions(60_000 + wobble)
                }
            };
            run.cell(&levels, &[truth(0), truth(100), truth(200)]);
        }
    }
    analyze(&run.recording)
}

#[test]
fn a_longest_stall_that_a_timer_may_have_made_has_no_cause() {
    let check = |analysis: &Analysis, cause: &str| {
        let mut bars = analysis.answer.bars.iter();
        let stalls = bars.any(|bar| bar.limiter == Some(Limiter::NagleDelayedAck));
        assert!(stalls, "{:#?}", analysis.answer);
        let stall = tile(analysis, "Longest stall").expect("it stalls");
        assert!(stall.note.starts_with(cause), "{stall:?}");
    };
    check(&stalled(48_000_000, None), "Nagle and delayed ACK");
    check(&stalled(260_000_000, None), "longest round trip");
    check(&stalled(48_000_000, Some(1.0)), "longest round trip");
}

#[test]
fn cells_without_a_valid_trial_have_too_few() {
    let analysis = |invalid: &[usize]| {
        let mut run = begun(GIGABIT, "sizes", None, stream());
        for (at, bytes) in [1000, 2000, 4000].into_iter().enumerate() {
            let truth = like!(Truth::stream(500e6);
                invalid: invalid.contains(&at).then(|| "a host was lost".to_owned()));
            run.alike(&[(Factor::MessageBytes, size(bytes))], &truth);
        }
        analyze(&run.recording)
    };
    let one = analysis(&[1]);
    let few = caution(&one, "replicates").expect("a cell has none");
    assert_eq!(few.claim, "1 of 3 cells has fewer than 3 valid replicates.");
    let invalid = caution(&one, "invalid").expect("three are");
    let claim = "3 of 9 trials are invalid and were not measured again.";
    assert_eq!(invalid.claim, claim);
    assert_eq!(caution(&analysis(&[]), "replicates"), None);
    // Nothing was measured: that is told.
    assert_eq!(caution(&analysis(&[0, 1, 2]), "replicates"), None);
}
