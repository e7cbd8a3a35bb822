//! The life of one worker thread: set up, sleep until the start, play, hand back.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use linerate_model::manner::SendBy;
use linerate_model::workload::{Part, Setting};

use crate::flow::calls::Callees;
use crate::flow::datagram::is_datagram;
use crate::flow::{FlowConfig, Shared};
use crate::measure::Window;
use crate::measure::latency::{Latency, LatencyCounts};
use crate::schedule::{Control, Ending};
use crate::sys::buffer::PageBuffer;
use crate::sys::clock::now_ns;
use crate::sys::datagram::{Inbox, Outbox};
use crate::sys::splice::Pipe;
use crate::sys::{socket, thread};
use crate::worker::datagrams::DatagramWaiting;
use crate::worker::places::PlaceLoop;
use crate::worker::waiting::Waiting;
use crate::worker::{EndedFlow, Memory, Seat, Wait};
use crate::workload::{self, CpuYield, Seated, datagram};

/// Records of times that one worker keeps; more flows share one. A record takes 20 to 60 KiB.
const RECORDS_MAX: usize = 64;

/// What a worker is given.
pub(super) struct WorkerShare {
    /// Its flows, with their places in the list that was launched.
    pub(super) flows: Vec<(usize, Arc<Shared>)>,
    pub(super) control: Arc<Control>,
    pub(super) window: Window,
    /// The CPUs to run on; none leaves it to the scheduler.
    pub(super) cpus: Vec<usize>,
    /// Whether each requester has a latency record of its own.
    pub(super) latency_per_flow: bool,
    /// Where it counts its transactions by their latency, if it has any.
    pub(super) latency_counts: Option<Arc<LatencyCounts>>,
    /// The flows of the trial that answer connections, if there are any.
    pub(super) callees: Option<Arc<Callees>>,
    /// How many workers spin, and how many were asked for, where those are more than have a CPU.
    pub(super) spinners: Option<(usize, usize)>,
}

/// Why a worker could not get ready.
#[derive(Debug)]
pub(super) enum Unready {
    /// It may not run on the CPU chosen for it.
    Pin(Vec<usize>, io::Error),
    /// A socket or the epoll set could not be prepared.
    Prepare(io::Error),
}

/// Runs a worker; says on `ready` that it is set up, with its thread id.
///
/// Flows of one trial are alike, and a worker has one kind of them.
pub(super) fn run_worker(
    share: &WorkerShare,
    ready: &SyncSender<Result<i32, Unready>>,
) -> Vec<EndedFlow> {
    let any = |is: fn(&FlowConfig) -> bool| share.flows.iter().any(|(_, flow)| is(&flow.config));
    if any(is_datagram) {
        return run::<DatagramWaiting>(share, ready);
    }
    if any(|config| config.traffic.is_placed()) {
        return run::<PlaceLoop>(share, ready);
    }
    run::<Waiting>(share, ready)
}

/// Everything that allocates comes before the word on `ready`.
fn run<W: Wait>(share: &WorkerShare, ready: &SyncSender<Result<i32, Unready>>) -> Vec<EndedFlow> {
    let Some((mut seats, mut memory, waiting, mut said)) = get_ready::<W>(share, ready) else {
        return Vec::new();
    };
    memory.control.sleep_until_start();
    seats.iter().for_each(|seat| seat.flow.greet());
    waiting.play(&mut seats, &mut memory, &mut said);
    if let Some((spin, asked)) = share.spinners
        && let Some(effective) = said.as_mut().and_then(|said| said.effective.as_mut())
    {
        effective.push_str(&format!(
            ", by {spin} of {asked} workers: each has a CPU to itself"
        ));
    }
    ended_flows(seats, &memory, said)
}

impl<P: Seated> Seat<P> {
    /// Ends the flow now and tells its peer.
    pub(super) fn end(&mut self, mut ending: Ending) {
        if let Ending::Unheard(unheard) = &mut ending {
            // Where the kernel does not tell, nothing is known to lie there.
            unheard.unread_bytes = socket::unread_bytes(self.flow.socket()).unwrap_or(0);
        }
        if matches!(ending, Ending::Early(_)) {
            self.flow.counters.break_off();
        }
        if let Some(how) = self.player.shutdown(&self.flow, &ending) {
            // An error means that the connection is gone, which is what the peer would have been told.
            let _ = socket::shutdown(self.flow.socket(), how);
        }
        let at_ns = now_ns();
        self.ended = Some(EndedFlow {
            index: self.index,
            ending,
            at_ns,
            stall_max_ns: self.player.stall_max_ns(at_ns),
            cpu: thread::cpu(),
            zero_copy: self.player.zero_copy(),
            ..EndedFlow::default()
        });
    }
}

/// What a worker plays with: its flows, what they share, how it waits and how that is said.
pub(super) type Ready<W> = (Vec<Seat<<W as Wait>::Player>>, Memory, W, Option<Setting>);

/// Pins the thread, makes its memory, prepares its sockets, and says on `ready` how that went; nothing
/// if it failed.
///
/// Pinning comes first, since the kernel gives memory near the CPU that first writes to it.
fn get_ready<W: Wait>(
    share: &WorkerShare,
    ready: &SyncSender<Result<i32, Unready>>,
) -> Option<Ready<W>> {
    let pinned = match share.cpus.as_slice() {
        [] => Ok(()),
        cpus => thread::pin(cpus).map_err(|error| Unready::Pin(cpus.to_vec(), error)),
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
pub(super) fn set_up<W: Wait>(share: &WorkerShare) -> io::Result<Ready<W>> {
    let recording = share
        .flows
        .iter()
        .filter(|(_, flow)| records(&flow.config))
        .count();
    let each_has_one = share.latency_per_flow && recording <= RECORDS_MAX;
    let memory = memory(
        share,
        if each_has_one {
            recording
        } else {
            recording.min(1)
        },
    )?;
    let mut next = 0;
    let seat = |(index, flow): &(usize, Arc<Shared>)| {
        let record = if each_has_one { next } else { 0 };
        next += usize::from(records(&flow.config));
        Seat {
            index: *index,
            flow: Arc::clone(flow),
            player: W::Player::new(flow, &share.control, share.window, record),
            ended: None,
        }
    };
    let mut seats: Vec<_> = share.flows.iter().map(seat).collect();
    let (waiting, said) = W::choose(&mut seats, &memory)?;
    Ok((seats, memory, waiting, said))
}

/// Returns whether the part of a flow has a record of times: of transactions, or of a datagram after
/// the one before.
fn records(config: &FlowConfig) -> bool {
    match config.part {
        Part::Requester => true,
        Part::Sender => is_datagram(config),
        Part::Receiver | Part::Responder => false,
    }
}

/// Returns about how many bytes of buffers one worker has whose `flows` flows are like `config`, from its
/// launch to its end.
pub fn worker_bytes(config: &FlowConfig, flows: usize) -> usize {
    let (payload, room) = (
        workload::payload_bytes(config),
        workload::room_bytes(config, flows),
    );
    let traffic = &config.traffic;
    let of_rings = match (traffic.is_transactional(), config.part) {
        (true, Part::Requester) if traffic.is_placed() => payload + room,
        // It receives by calls.
        (true, _) if traffic.is_placed() => 0,
        (true, _) => room,
        (false, _) => 0,
    };
    if is_datagram(config) {
        2 * datagram::BUFFERS_BYTES_MAX
    } else {
        payload + room + of_rings
    }
}

fn memory(share: &WorkerShare, records: usize) -> io::Result<Memory> {
    let configs = || share.flows.iter().map(|flow| &flow.1.config);
    let longest =
        |bytes: &dyn Fn(&FlowConfig) -> usize| configs().map(bytes).max().unwrap_or(0).max(1);
    let room_bytes = |config: &FlowConfig| workload::room_bytes(config, share.flows.len());
    // The flows of a trial are alike, so those of one part share the buffers of its calls.
    let datagrams = |not: Part| {
        let mut does = configs().filter(|config| is_datagram(config));
        does.find(|config| config.part != not)
    };
    let rate = configs().find_map(|config| config.manner.requests_per_s);
    let mut frames = share.flows.iter().filter_map(|flow| flow.1.take_frames());
    let outbox = match frames.next() {
        Some(frames) => Outbox::past_sockets(frames),
        None => datagrams(Part::Receiver).map_or_else(|| Outbox::new(1, 1), datagram::outbox),
    };
    let mut flows = share.flows.iter();
    let splices = flows.any(|(_, flow)| flow.send == SendBy::Vmsplice);
    Ok(Memory {
        control: Arc::clone(&share.control),
        payload: PageBuffer::new(longest(&workload::payload_bytes)),
        room: PageBuffer::new(longest(&room_bytes)),
        pipe: splices.then(Pipe::new).transpose()?,
        cpu_yield: CpuYield::before(share.window.begin_ns),
        outbox,
        inbox: datagrams(Part::Sender).map_or_else(|| Inbox::new(1, 1, false), datagram::inbox),
        latencies: (0..records)
            .map(|_| Latency::new(share.window, rate, share.latency_counts.clone()))
            .collect(),
        callees: share.callees.clone(),
    })
}

/// Returns how the flows ended, each record of times with the first flow that used it.
fn ended_flows<P: Seated>(
    seats: Vec<Seat<P>>,
    memory: &Memory,
    wait: Option<Setting>,
) -> Vec<EndedFlow> {
    let mut latencies = memory.latencies.iter();
    let wait = wait.map(Arc::new);
    let ended = |seat: Seat<P>| {
        let mut ended = seat.ended?;
        ended.requests = seat.player.requests(&memory.control, ended.at_ns);
        ended.connections = seat.player.connections(&seat.flow).map(Box::new);
        ended.settings.extend(wait.clone());
        if records(&seat.flow.config) {
            let record = latencies.next();
            ended.latency = record.map(Latency::to_histogram);
            ended.lateness = record.and_then(Latency::lateness);
        }
        Some(ended)
    };
    seats.into_iter().filter_map(ended).collect()
}
