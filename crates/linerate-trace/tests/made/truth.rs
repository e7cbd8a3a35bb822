//! How often findings are right: captures of simulated traffic, each with one cause of trouble or none and
//! everything else drawn at random, taken at the client, in the middle or at the server.
//!
//! Said is *right* if the cause is named at the right end, *silent* if nothing is named where a capture there
//! can show it, *wrong* if anything is named that cannot be. `TRACE_TRUTH=N` tries N worlds of each cause and
//! prints the table of docs/accuracy.md, and what was not right.

use crate::common;
use crate::simulation;

use std::collections::BTreeMap;

use linerate_model::sample::End;
use linerate_trace::TcpFindingKind as Kind;
use simulation::{At, Draw, MS, Path, Program, World, play};

/// Worlds of each cause, where nobody asks for more.
const WORLDS: u64 = 12;

/// One cause of trouble.
struct Case {
    name: &'static str,
    /// What names the cause, one of them; none: there is no trouble.
    causes: &'static [(Kind, End)],
    /// Where a capture shows it.
    shows_at: &'static [At],
    /// What is true beside it.
    also: &'static [Kind],
    make: fn(&mut World, &mut Draw),
}

const EVERYWHERE: &[At] = &[At::Client, At::Middle, At::Server];
const LOSSES: &[(Kind, End)] = &[
    (Kind::Loss, End::Client),
    (Kind::LossBurst, End::Client),
    (Kind::RetransmissionTimeout, End::Client),
];

const CASES: &[Case] = &[
    Case {
        name: "bulk, nothing wrong",
        causes: &[],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            world.program = Program::Bulk {
                bytes: draw.within(20, 60) * 10_000,
            };
        },
    },
    Case {
        name: "requests, nothing wrong",
        causes: &[],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| world.program = requests(draw),
    },
    Case {
        name: "requests on a long way",
        causes: &[(Kind::RoundTrips, End::Server)],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            world.program = waiting(requests(draw), 0, draw.within(0, 10) * MS);
            if let Program::Requests { count, answer, .. } = &mut world.program {
                (*count, *answer) = (draw.within(18, 60), draw.one_of(&[120, 900, 5000]));
            }
            for path in &mut world.paths {
                path.delay_ns = draw.within(35, 120) * MS;
            }
        },
    },
    Case {
        name: "requests on a jittery path",
        causes: &[],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            world.program = requests(draw);
            for path in &mut world.paths {
                path.delay_ns += 10 * MS;
                path.jitter_ns = path.delay_ns / draw.within(4, 10);
            }
        },
    },
    Case {
        name: "server thinks",
        causes: &[(Kind::SlowAnswer, End::Server)],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            let trip_ns = world.paths[0].delay_ns * 2;
            let program = requests(draw);
            let think_ns = trip_ns + draw.within(20, 300) * MS;
            world.program = waiting(program, think_ns, 0);
        },
    },
    Case {
        name: "client pauses",
        causes: &[(Kind::ClientPause, End::Client)],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            let trip_ns = world.paths[0].delay_ns * 2;
            let program = requests(draw);
            let pause_ns = trip_ns * 2 + draw.within(30, 300) * MS;
            world.program = waiting(program, 0, pause_ns);
        },
    },
    Case {
        name: "random loss",
        causes: LOSSES,
        shows_at: EVERYWHERE,
        also: &[Kind::Spurious],
        make: |world, draw| {
            world.program = Program::Bulk {
                bytes: draw.within(80, 200) * 10_000,
            };
            world.paths[0].loss = draw.within(5, 30) as f64 / 1000.0;
        },
    },
    Case {
        name: "acknowledgements lost",
        causes: &[],
        shows_at: EVERYWHERE,
        // The last of them may be the only one.
        also: &[Kind::RetransmissionTimeout, Kind::Spurious, Kind::Loss],
        make: |world, draw| {
            world.program = Program::Bulk {
                bytes: draw.within(80, 200) * 10_000,
            };
            world.paths[1].loss = draw.within(10, 100) as f64 / 1000.0;
        },
    },
    Case {
        name: "short queue overflows",
        causes: LOSSES,
        shows_at: EVERYWHERE,
        also: &[Kind::Spurious, Kind::Queue],
        make: |world, draw| {
            world.program = Program::Bulk {
                bytes: draw.within(150, 300) * 10_000,
            };
            world.paths[0].bits_per_second = draw.within(5, 40) * 1_000_000;
            world.paths[0].queue_bytes = draw.within(10, 30) * 1500;
        },
    },
    Case {
        name: "long queue",
        causes: &[(Kind::Queue, End::Client)],
        // It stands before the first half of the way.
        shows_at: &[At::Client],
        also: &[
            Kind::Loss,
            Kind::LossBurst,
            Kind::RetransmissionTimeout,
            Kind::Spurious,
        ],
        make: |world, draw| {
            world.program = Program::Bulk {
                bytes: draw.within(200, 400) * 10_000,
            };
            world.paths[0].bits_per_second = draw.within(4, 12) * 1_000_000;
            world.paths[0].queue_bytes = 1 << 20;
            for path in &mut world.paths {
                path.delay_ns = draw.within(2, 15) * MS;
            }
            world.until_ns = 20_000 * MS;
        },
    },
    Case {
        name: "packets overtaken",
        causes: &[(Kind::Reordering, End::Client)],
        shows_at: EVERYWHERE,
        // Its link has a queue as well.
        also: &[Kind::Spurious, Kind::Loss, Kind::LossBurst, Kind::Queue],
        make: |world, draw| {
            world.program = Program::Bulk {
                bytes: draw.within(150, 300) * 10_000,
            };
            world.paths[0].overtaken = draw.within(3, 8) as f64 / 100.0;
            // Two or three segments are overtaken, fewer than what starts a recovery.
            world.paths[0].bits_per_second = 100_000_000;
            world.paths[0].queue_bytes = 1 << 20;
            world.paths[0].late_ns = draw.within(150, 250) * 1000;
        },
    },
    Case {
        name: "small receive window",
        causes: &[(Kind::WindowLimit, End::Server)],
        // At the receiver what is on its way does not show.
        shows_at: &[At::Client, At::Middle],
        also: &[],
        make: |world, draw| {
            world.receive_buffer_bytes = draw.within(6, 40) * 1500;
            world.program = Program::Bulk {
                bytes: world.receive_buffer_bytes * 60,
            };
        },
    },
    Case {
        name: "small send buffer",
        causes: &[(Kind::SendLimit, End::Client)],
        shows_at: &[At::Client],
        also: &[],
        make: |world, draw| {
            world.send_buffer_bytes = draw.within(6, 40) * world.mss;
            world.program = Program::Bulk {
                bytes: world.send_buffer_bytes * 80,
            };
            for path in &mut world.paths {
                path.delay_ns = path.delay_ns.max(5 * MS);
            }
        },
    },
    Case {
        name: "slow reader",
        // A reader that is nearly fast enough leaves a little room.
        causes: &[
            (Kind::ZeroWindow, End::Server),
            (Kind::SlowReader, End::Server),
            (Kind::WindowLimit, End::Server),
        ],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            world.receive_buffer_bytes = 64_000;
            world.reads = Some((draw.within(30, 60) * 1000, draw.within(80, 200) * MS));
            world.program = Program::Bulk { bytes: 1_200_000 };
        },
    },
    Case {
        name: "sender has little",
        causes: &[(Kind::IdleSender, End::Client)],
        shows_at: &[At::Client, At::Middle],
        also: &[],
        make: |world, draw| {
            world.program = Program::Bursts {
                bytes: draw.within(40, 80) * 1111,
                every_ns: world.paths[0].delay_ns * 12 + draw.within(100, 200) * MS,
                count: 30,
            };
        },
    },
    Case {
        name: "Nagle waits for delayed ACKs",
        causes: &[(Kind::NagleDelayedAck, End::Client)],
        shows_at: EVERYWHERE,
        also: &[Kind::SlowAnswer],
        make: |world, draw| {
            world.nagle = true;
            world.delayed_ack_ns = Some(draw.one_of(&[40, 100, 200]) * MS);
            world.program = two_writes(draw);
        },
    },
    Case {
        name: "two writes without Nagle",
        causes: &[],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            world.nagle = false;
            world.delayed_ack_ns = Some(draw.one_of(&[40, 100, 200]) * MS);
            world.program = two_writes(draw);
        },
    },
    Case {
        name: "Nagle, acknowledged at once",
        causes: &[],
        shows_at: EVERYWHERE,
        also: &[],
        make: |world, draw| {
            world.nagle = true;
            world.delayed_ack_ns = None;
            world.program = two_writes(draw);
        },
    },
    Case {
        name: "black hole for full segments",
        causes: &[(Kind::PathMtu, End::Client)],
        shows_at: &[At::Client],
        also: &[
            Kind::RetransmissionTimeout,
            Kind::LossBurst,
            Kind::Loss,
            Kind::PeerSilent,
        ],
        make: |world, draw| {
            world.paths[0].payload_bytes_max = draw.within(900, world.mss - 20);
            let tail = draw.within(100, 800);
            let bytes = world.mss * draw.within(3, 9) + tail;
            world.program = Program::Bulk { bytes };
            // The short end arrives only if it does not wait for the others.
            world.nagle = false;
            world.until_ns = 12_000 * MS;
        },
    },
    Case {
        name: "path is cut",
        causes: &[(Kind::PeerSilent, End::Server)],
        shows_at: &[At::Client],
        also: &[Kind::RetransmissionTimeout, Kind::Loss, Kind::LossBurst],
        make: |world, draw| {
            world.program = Program::Bulk { bytes: 4_000_000 };
            let trip_ns = world.paths[0].delay_ns * 2;
            let cut_ns = Some(trip_ns * draw.within(3, 6));
            for path in &mut world.paths {
                path.cut_at_ns = cut_ns;
            }
            world.until_ns = 8000 * MS;
        },
    },
];

fn requests(draw: &mut Draw) -> Program {
    Program::Requests {
        ask: draw.within(40, 900),
        parts: 1,
        answer: draw.one_of(&[120, 900, 5000, 13_000]),
        count: draw.within(10, 40),
        think_ns: 0,
        pause_ns: 0,
    }
}

/// Returns requests whose server thinks and whose client pauses for so long.
fn waiting(mut program: Program, think: u64, pause: u64) -> Program {
    let Program::Requests {
        think_ns, pause_ns, ..
    } = &mut program
    else {
        unreachable!("a stream asks for nothing");
    };
    (*think_ns, *pause_ns) = (think, pause);
    program
}

fn two_writes(draw: &mut Draw) -> Program {
    Program::Requests {
        ask: draw.within(30, 300),
        parts: 2,
        answer: draw.within(100, 1200),
        count: draw.within(8, 30),
        think_ns: 0,
        pause_ns: 0,
    }
}

/// A world in which nothing is wrong.
fn world(seed: u64, at: At, draw: &mut Draw) -> World {
    let path = Path {
        delay_ns: draw.within(1, 40) * MS,
        jitter_ns: draw.within(5, 100) * 1000,
        ..Path::default()
    };
    let stamps = draw.chance(0.5);
    World {
        seed,
        at,
        program: Program::Bulk { bytes: 100_000 },
        paths: [path; 2],
        mss: if stamps { 1448 } else { 1460 },
        stamps,
        nagle: draw.chance(0.5),
        delayed_ack_ns: draw.one_of(&[None, Some(40 * MS), Some(200 * MS)]),
        receive_buffer_bytes: 4 << 20,
        send_buffer_bytes: u64::MAX,
        reads: None,
        until_ns: 60_000 * MS,
    }
}

#[derive(Default, Clone, Copy)]
struct Score {
    right: u64,
    silent: u64,
    wrong: u64,
}

/// Plays one world of a case, and judges what is said of it.
fn judge(case: &Case, number: u64, score: &mut Score) -> Option<String> {
    let at = [At::Client, At::Middle, At::Server][number as usize % 3];
    let mut draw = Draw(number * 1000 + case.name.len() as u64);
    let seed = draw.next();
    let mut world = world(seed, at, &mut draw);
    (case.make)(&mut world, &mut draw);
    let frames = play(world.clone());
    let trace = common::trace(&frames);
    let named: Vec<(Kind, End)> = trace
        .findings
        .iter()
        .map(|one| (one.kind, one.who_is))
        .collect();
    // Requests one behind the other, for which the way took half of what is told at the least.
    let is_far = match world.program {
        Program::Requests { count, .. } => {
            let trip_ns = world.paths.iter().map(|path| path.delay_ns).sum::<u64>();
            count * trip_ns >= 500 * MS
        }
        _ => false,
    };
    let is_foreign = |name: &&(Kind, End)| {
        let is_true = match name.0 {
            Kind::RoundTrips => is_far,
            // It describes the traffic, whatever else is wrong, but only of who has such a timer. All have the MSS of
            // Ethernet, and none sends trains of short segments.
            Kind::DelayedAck => world.delayed_ack_ns.is_some(),
            kind => case.also.contains(&kind),
        };
        !case.causes.contains(name) && !is_true
    };
    let shows = case.shows_at.contains(&at);
    let is_named = named.iter().any(|name| case.causes.contains(name));
    let what = if named.iter().any(|name| is_foreign(&name)) {
        score.wrong += 1;
        "wrong"
    } else if case.causes.is_empty() || !shows || is_named {
        score.right += 1;
        return None;
    } else {
        score.silent += 1;
        "silent"
    };
    let claims: Vec<&str> = trace.findings.iter().map(|one| &*one.claim).collect();
    Some(format!(
        "{} #{number} at {at:?}: {what}: {claims:#?} {world:?}",
        case.name
    ))
}

#[test]
fn findings_name_the_cause_and_nothing_else() {
    let asked: Option<u64> = std::env::var("TRACE_TRUTH")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut scores = BTreeMap::new();
    let mut failed = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        let mut score = Score::default();
        for number in 0..asked.unwrap_or(WORLDS) {
            failed.extend(judge(case, number, &mut score));
        }
        scores.insert(at, (case.name, score));
    }
    println!("| cause | right | silent | wrong |\n|---|---:|---:|---:|");
    let mut all = Score::default();
    for (name, score) in scores.values() {
        println!(
            "| {name} | {} | {} | {} |",
            score.right, score.silent, score.wrong
        );
        all.right += score.right;
        all.silent += score.silent;
        all.wrong += score.wrong;
    }
    println!("| all | {} | {} | {} |", all.right, all.silent, all.wrong);
    if asked.is_some() {
        println!("{}", failed.join("\n"));
    }
    let total = all.right + all.silent + all.wrong;
    assert!(
        all.wrong * 100 <= total && all.silent * 20 <= total,
        "{}",
        failed.join("\n")
    );
}
