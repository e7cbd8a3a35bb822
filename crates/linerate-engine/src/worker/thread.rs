//! The life of one worker thread: set up, sleep until the start, play, hand back.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use linerate_model::manner::SendBy;
use linerate_model::sample::End;
use linerate_model::workload::{Part, Setting};

use crate::flow::{FlowConfig, Shared};
use crate::measure::Window;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending};
use crate::sys::buffer::PageBuffer;
use crate::sys::clock::now_ns;
use crate::sys::splice::Pipe;
use crate::sys::{socket, thread};
use crate::worker::waiting::Waiting;
use crate::worker::{EndedFlow, Memory, Seat, datagrams, places};
use crate::workload::{self, CpuYield, Play, Player};

/// What a worker is given.
pub(super) struct WorkerShare {
    /// Its flows, with their places in the list that was launched.
    pub(super) flows: Vec<(usize, Arc<Shared>)>,
    pub(super) control: Arc<Control>,
    pub(super) window: Window,
    /// The CPU to run on, if one was chosen.
    pub(super) cpu: Option<usize>,
    /// Whether each requester has a latency record of its own.
    pub(super) latency_per_flow: bool,
}

/// Why a worker could not get ready.
#[derive(Debug)]
pub(super) enum Unready {
    /// It may not run on the CPU chosen for it.
    Pin(usize, io::Error),
    /// A socket or the epoll set could not be prepared.
    Prepare(io::Error),
}

/// Runs a worker; says on `ready` that it is set up, with its thread id.
///
/// Everything that allocates comes before the word on `ready`.
pub(super) fn run_worker(
    share: &WorkerShare,
    ready: &SyncSender<Result<i32, Unready>>,
) -> Vec<EndedFlow> {
    if datagrams::are_datagrams(share) {
        return datagrams::run_worker(share, ready);
    }
    if places::are_places(share) {
        return places::run_worker(share, ready);
    }
    let Some((mut seats, mut memory, (waiting, mut wait))) = get_ready(share, ready, set_up) else {
        return Vec::new();
    };
    memory.control.sleep_until_start();
    seats.iter().for_each(|seat| seat.flow.greet());
    waiting.play(&mut seats, &mut memory, &mut wait);
    ended_flows(seats, &memory, &wait)
}

impl Seat {
    /// Ends the flow now and tells its peer.
    pub(super) fn end(&mut self, ending: Ending) {
        // The other end has said that it is over, and reads what is under way: iperf3's client waits for
        // the rest of a block until it sees the end of the stream.
        let is_stopped = self.flow.config.end == End::Server && !self.player.has_sent_all();
        let how = match (self.flow.config.part, &ending) {
            // It hears of the end by its own protocol, and would take this for a connection that broke.
            (Part::Sender, Ending::Complete) if self.flow.stranger && !is_stopped => None,
            // The peer of a sender reads on to this mark; what is under way is still delivered.
            (Part::Sender | Part::Requester, Ending::Complete) => Some(Shutdown::Write),
            _ => Some(Shutdown::Both),
        };
        if let Some(how) = how {
            // An error means that the connection is gone, which is what the peer would have been told.
            let _ = socket::shutdown(self.flow.socket(), how);
        }
        self.ended = Some(EndedFlow {
            index: self.index,
            ending,
            stall_max_ns: self.player.stall_max_ns(now_ns()),
            cpu: thread::cpu(),
            latency: None,
            completions: self.player.completions(),
            settings: Vec::new(),
        });
    }
}

/// What a worker plays with: its flows, what they share, how it waits and how that is said.
type Ready = (Vec<Seat>, Memory, (Waiting, Setting));

/// Pins the thread, lets `set_up` make its memory and prepare its sockets, and says on `ready` how
/// that went; nothing if it failed.
///
/// Pinning comes first, since the kernel gives memory near the CPU that first writes to it.
pub(super) fn get_ready<'a, T>(
    share: &'a WorkerShare,
    ready: &SyncSender<Result<i32, Unready>>,
    set_up: impl FnOnce(&'a WorkerShare) -> io::Result<T>,
) -> Option<T> {
    let pinned = match share.cpu {
        Some(cpu) => thread::pin(cpu).map_err(|error| Unready::Pin(cpu, error)),
        None => Ok(()),
    };
    let made = pinned.and_then(|()| {
        thread::sharpen_timers();
        set_up(share).map_err(Unready::Prepare)
    });
    let (word, made) = match made {
        Ok(made) => (Ok(thread::id()), Some(made)),
        Err(unready) => (Err(unready), None),
    };
    // The launcher waits for this word; if it has gone, so has the trial.
    let _ = ready.send(word);
    made
}

/// Makes the memory of a worker and prepares its sockets.
fn set_up(share: &WorkerShare) -> io::Result<Ready> {
    let mut seats = seats(share);
    let memory = memory(share)?;
    let waiting = Waiting::choose(&mut seats, &memory)?;
    Ok((seats, memory, waiting))
}

fn seats(share: &WorkerShare) -> Vec<Seat> {
    let mut requesters = 0;
    let seat = |(index, flow): &(usize, Arc<Shared>)| {
        let latency = if share.latency_per_flow {
            requesters
        } else {
            0
        };
        requesters += usize::from(flow.config.part == Part::Requester);
        Seat {
            index: *index,
            flow: Arc::clone(flow),
            player: Player::new(flow, &share.control, share.window, latency),
            ended: None,
        }
    };
    share.flows.iter().map(seat).collect()
}

fn memory(share: &WorkerShare) -> io::Result<Memory> {
    let configs = || share.flows.iter().map(|flow| &flow.1.config);
    let longest =
        |bytes: &dyn Fn(&FlowConfig) -> usize| configs().map(bytes).max().unwrap_or(0).max(1);
    let room_bytes = |config: &FlowConfig| workload::room_bytes(config, share.flows.len());
    let requesters = configs()
        .filter(|config| config.part == Part::Requester)
        .count();
    let records = if share.latency_per_flow {
        requesters
    } else {
        requesters.min(1)
    };
    let mut flows = share.flows.iter();
    let splices = flows.any(|(_, flow)| flow.send == SendBy::Vmsplice);
    Ok(Memory {
        control: Arc::clone(&share.control),
        payload: PageBuffer::new(longest(&workload::payload_bytes)),
        room: PageBuffer::new(longest(&room_bytes)),
        pipe: splices.then(Pipe::new).transpose()?,
        cpu_yield: CpuYield::default(),
        latencies: (0..records).map(|_| Latency::new(share.window)).collect(),
    })
}

/// Returns how the flows ended, each latency record with the first requester that used it.
fn ended_flows(seats: Vec<Seat>, memory: &Memory, wait: &Setting) -> Vec<EndedFlow> {
    let mut records = memory.latencies.iter();
    let now_ns = now_ns();
    let wait = Arc::new(wait.clone());
    seats
        .into_iter()
        .filter_map(|seat| {
            let mut ended = seat.ended?;
            ended.settings.push(Arc::clone(&wait));
            let said = seat.player.setting(&memory.control, now_ns);
            ended.settings.extend(said.into_iter().map(Arc::new));
            if matches!(seat.player, Player::Requester(_)) {
                ended.latency = records.next().map(Latency::to_histogram);
            }
            Some(ended)
        })
        .collect()
}
