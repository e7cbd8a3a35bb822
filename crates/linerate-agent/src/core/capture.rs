//! The capture of a trial on this host: bounded, and kept in memory until it is fetched.
//!
//! 1. It begins before the flows connect, so that it holds their handshakes. The kernel keeps the
//!    headers of frames of the trial's ports only: what a request says of ports is not believed, by
//!    whomever it comes. Ports are those that this agent listens on, at this end of a frame, or that its
//!    flows connect to, at the other.
//! 2. Until all flows exist, those frames wait. Then those of the trial's own conversations go into
//!    the file, and others of this agent, or of the peer at its address, are counted: the control connection may use
//!    the same port. How much else this host exchanges with that port is nobody's business. Of connections
//!    that come and go each waits until its client has said whose it is.
//! 3. The first limit ends it, and with it what it costs. What was kept until then stays.
//! 4. A thread of its own follows it and says what CPU time it took. A capture that nobody ends is
//!    ended by being dropped.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_engine::Flow;
use linerate_model::capture::{CaptureOptions, CaptureTaken, SNAP_BYTES_MAX};
use linerate_model::manner::Transport;
use linerate_model::number;
use linerate_model::reason::with_causes;
use linerate_model::sample::End;
use linerate_model::{Bytes, hex};
use linerate_observe::capture::{
    Anonymiser, BLOCK_BYTES_MORE, Capture, CaptureConfig, Frame, Introductions, Ports, Selection,
    Whose, Writer, has_end, unix_ns,
};

use super::flows::words_of_connections;
use crate::api::Assignment;

/// Memory of the ring between kernel and agent: 60 000 frames cut to 128 bytes, a tenth of a second
/// of what one flow of small segments makes.
const RING_BYTES: usize = 8 << 20;
/// Memory of frames that wait until the flows exist; handshakes of 20 000 flows take 14 MB.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Longest wait for frames: that of the kernel for a block to be full (20 ms), and a look at the
/// words of the trial.
const LOOK: Duration = Duration::from_millis(25);
/// How long a client may take to say whose its connection is: a handshake, of which one segment may be lost.
const SILENT_NS_MAX: u64 = 1_500_000_000;
/// How long after the end of the flows frames are taken up: what closes them is on its way.
const LINGER_NS: u64 = 100_000_000;
/// Bytes that are handed over at once.
pub(super) const PART_BYTES: usize = 1 << 20;

/// Returns the memory that a capture may take: its ring, what waits, and its file until that is fetched.
pub(super) fn memory_bytes(options: CaptureOptions) -> u64 {
    (RING_BYTES + WAITING_BYTES_MAX) as u64 + options.bytes.0
}

/// What a trial says to its capture.
enum CaptureOrder {
    /// The flows exist: these are their frames.
    Select(Selection),
    /// The flows are over.
    End,
}

/// A capture under way.
pub(super) struct RunningCapture {
    words: Sender<CaptureOrder>,
    thread: JoinHandle<io::Result<FinishedCapture>>,
}

/// What a capture left.
pub(super) struct FinishedCapture {
    pub(super) taken: CaptureTaken,
    /// The file, in parts of [`PART_BYTES`] at the most.
    pub(super) parts: Vec<Vec<u8>>,
}

impl RunningCapture {
    /// Begins the capture that `assignment` asks for; says why there is none.
    pub(super) fn begin(
        options: CaptureOptions,
        assignment: &Assignment,
        own: &OwnPorts,
    ) -> Result<Self, String> {
        if assignment.manner.transport == Transport::Unix && assignment.beside.is_empty() {
            return Err("Unix sockets have no frames".to_owned());
        }
        let at = assignment.capture_at.as_ref();
        let at = at.ok_or("the device of its data address is not known")?;
        let options = CaptureOptions {
            snap: Bytes(options.snap.0.min(SNAP_BYTES_MAX)),
            ..options
        };
        let ports = own.of(assignment)?;
        let introductions = own.introductions(assignment, &ports);
        let snap_bytes = introductions.as_ref().map_or(0, Introductions::snap_bytes);
        let config = CaptureConfig {
            device: at.device.clone(),
            snap_bytes: snap_bytes.max(options.snap.0 as u32),
            ring_bytes: RING_BYTES,
            ports,
        };
        let capture = Capture::open(&config).map_err(|error| with_causes(&error))?;
        let follower = Follower::new(options, &config.device, capture.link_type());
        let mut follower = follower.map_err(|error| error.to_string())?;
        follower.introductions = introductions;
        follower.peer = peer(assignment).filter(|_| assignment.end == End::Client);
        let (words, told) = channel();
        let thread = std::thread::Builder::new().name("capture".to_owned());
        let thread = thread.spawn(move || follower.follow(capture, &told));
        Ok(Self {
            words,
            thread: thread.map_err(|error| format!("no thread: {error}"))?,
        })
    }

    /// Says which flows it is about.
    pub(super) fn select(&self, flows: &[Flow]) {
        let selection = Selection::conversations(
            flows
                .iter()
                .filter_map(|flow| flow.local().ip().zip(flow.remote().ip())),
        );
        // A thread that has ended says why when it is asked for what it has.
        let _ = self.words.send(CaptureOrder::Select(selection));
    }

    /// Ends it and returns what it has, or why that is nothing.
    pub(super) fn end(self) -> Result<FinishedCapture, String> {
        let _ = self.words.send(CaptureOrder::End);
        match self.thread.join() {
            Ok(Ok(ended)) => Ok(ended),
            Ok(Err(error)) => Err(format!("the capture ended early: {error}")),
            Err(_) => Err("the capture's thread failed".to_owned()),
        }
    }
}

/// What this agent has of ports, whatever a request says of them.
pub(super) struct OwnPorts {
    /// The one that it listens on, where it does.
    pub(super) listens: Option<u16>,
}

impl OwnPorts {
    /// Returns the ports that frames of a trial have; says why its frames cannot be told from others'.
    fn of(&self, assignment: &Assignment) -> Result<Ports, String> {
        match assignment.end {
            End::Server => {
                let own = self.listens.map(|port| Ports::Own(vec![port]));
                own.ok_or_else(|| "it does not listen".to_owned())
            }
            // A flow's first frames come before the flow: they wait, and all but those of the flows'
            // own conversations are dropped.
            End::Client => {
                let peer = peer(assignment).map(|peer| Ports::Theirs(vec![peer.port()]));
                peer.ok_or_else(|| "its peer has no port".to_owned())
            }
        }
    }
}

impl OwnPorts {
    /// Returns what tells the connections of a trial from others, where they come and go.
    fn introductions(&self, assignment: &Assignment, ports: &Ports) -> Option<Introductions> {
        let (Ports::Own(ports) | Ports::Theirs(ports)) = ports else {
            return None;
        };
        let port = *ports.first()?;
        let cookie = hex::decode(&assignment.cookie)?;
        let groups = assignment.of_groups();
        let placed = groups.iter().find(|group| group.traffic.is_placed())?;
        let flow = placed.flows.first()?.flow;
        Some(Introductions::new(port, words_of_connections(cookie, flow)))
    }
}

fn peer(assignment: &Assignment) -> Option<SocketAddr> {
    assignment.peer.as_deref()?.parse().ok()
}

/// The file as it grows.
#[derive(Default)]
struct Parts {
    parts: Vec<Vec<u8>>,
    bytes: u64,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full = |part: &Vec<u8>| part.len() == PART_BYTES;
        if self.parts.last().is_none_or(is_full) {
            // Only what is used of it becomes resident.
            self.parts.push(Vec::with_capacity(PART_BYTES));
        }
        let last = self.parts.last_mut().ok_or(io::ErrorKind::OutOfMemory)?;
        let taken = bytes.len().min(PART_BYTES - last.len());
        last.extend_from_slice(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames that wait until the flows exist.
#[derive(Default)]
struct WaitingFrames {
    bytes: Vec<u8>,
    /// Each without its bytes, and where those end.
    frames: Vec<(Frame<'static>, usize)>,
}

impl WaitingFrames {
    /// Keeps a frame; returns whether there was room.
    fn push(&mut self, frame: &Frame<'_>) -> bool {
        let each = size_of::<(Frame<'static>, usize)>();
        let used = self.bytes.len() + self.frames.len() * each;
        if used + frame.bytes.len() + each > WAITING_BYTES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(frame.bytes);
        self.frames.push((without_bytes(frame), self.bytes.len()));
        true
    }
}

fn without_bytes(frame: &Frame<'_>) -> Frame<'static> {
    Frame {
        at_unix_ns: frame.at_unix_ns,
        length: frame.length,
        bytes: &[],
        vlan: frame.vlan,
        is_outgoing: frame.is_outgoing,
    }
}

/// What follows a capture.
struct Follower {
    options: CaptureOptions,
    device: String,
    link_type: u16,
    writer: Writer<Parts>,
    anonymiser: Option<Anonymiser>,
    selection: Option<Selection>,
    waiting: WaitingFrames,
    /// What tells conversations, in place of the selection, and the frames behind the first that waits for it.
    introductions: Option<Introductions>,
    unknown: VecDeque<(Frame<'static>, Vec<u8>)>,
    unknown_bytes: usize,
    frames: u64,
    /// The other end, where that is the one that has the port.
    peer: Option<SocketAddr>,
    others: u64,
    /// Frames that found no room while they would have waited.
    lost: u64,
    /// Frames after this are not taken up.
    until_unix_ns: u64,
    /// The limit that was reached.
    ended: Option<String>,
}

impl Follower {
    fn new(options: CaptureOptions, device: &str, link_type: u16) -> io::Result<Self> {
        let snap_bytes = options.snap.0 as u32;
        Ok(Self {
            options,
            device: device.to_owned(),
            link_type,
            writer: Writer::new(Parts::default(), link_type, device, snap_bytes)?,
            anonymiser: options.anonymous.then(|| Anonymiser::new(link_type)),
            selection: None,
            waiting: WaitingFrames::default(),
            introductions: None,
            unknown: VecDeque::new(),
            unknown_bytes: 0,
            frames: 0,
            peer: None,
            others: 0,
            lost: 0,
            until_unix_ns: u64::MAX,
            ended: None,
        })
    }

    /// Takes up frames until the trial or a limit ends it; the body of the capture's thread.
    fn follow(
        mut self,
        mut capture: Capture,
        words: &Receiver<CaptureOrder>,
    ) -> io::Result<FinishedCapture> {
        let mut is_ending = false;
        while self.ended.is_none() {
            let mut is_late = false;
            let mut failure = None;
            let seen = capture.read(LOOK, |frame| {
                is_late |= frame.at_unix_ns > self.until_unix_ns;
                if !is_late && self.ended.is_none() && failure.is_none() {
                    failure = self.frame(frame).err();
                }
            })?;
            failure.map_or(Ok(()), Err)?;
            if is_late && !is_ending {
                self.ended = self.options.time.map(|time| format!("{time} were over"));
            }
            // What passed before the end is still in the ring, and is read first.
            if is_ending && (seen == 0 || is_late) {
                break;
            }
            match words.try_recv() {
                Ok(CaptureOrder::Select(selection)) => self.select(selection)?,
                Ok(CaptureOrder::End) => {
                    self.until_unix_ns = self.until_unix_ns.min(unix_ns() + LINGER_NS);
                    is_ending = true;
                }
                Err(TryRecvError::Empty) => {}
                // The trial failed: nobody will fetch it.
                Err(TryRecvError::Disconnected) if !is_ending => {
                    return Err(io::Error::other("the trial failed"));
                }
                Err(TryRecvError::Disconnected) => {}
            }
        }
        let counts = capture.counts()?;
        // From here on frames cost nothing any more.
        drop(capture);
        self.end(counts.drops)
    }

    fn select(&mut self, selection: Selection) -> io::Result<()> {
        self.selection = Some(selection);
        let waiting = std::mem::take(&mut self.waiting);
        let mut begin = 0;
        for (frame, end) in waiting.frames {
            let frame = Frame {
                bytes: &waiting.bytes[begin..end],
                ..frame
            };
            self.frame(&frame)?;
            begin = end;
        }
        if let Some(time) = self.options.time {
            self.until_unix_ns = unix_ns().saturating_add(time.0);
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        if let Some(introductions) = &mut self.introductions {
            return match introductions.look(self.link_type, frame) {
                Whose::Ours if self.unknown.is_empty() => self.own_frame(frame),
                Whose::Others => {
                    self.count_other(frame);
                    self.sort(frame.at_unix_ns)
                }
                Whose::Ours | Whose::Unknown => self.keep_unknown(frame),
            };
        }
        let Some(selection) = &self.selection else {
            self.lost += u64::from(!self.waiting.push(frame));
            return Ok(());
        };
        if !selection.has(self.link_type, frame) {
            self.count_other(frame);
            return Ok(());
        }
        self.own_frame(frame)
    }

    /// Counts a frame that is none of the trial's, if it is of this agent or of the peer.
    fn count_other(&mut self, frame: &Frame<'_>) {
        let peer = self.peer;
        let is_near = peer.is_none_or(|peer| has_end(self.link_type, frame, peer));
        self.others += u64::from(is_near);
    }

    /// Keeps a frame behind those of which nobody knows whose they are: all go into the file in their order.
    fn keep_unknown(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let each = size_of::<(Frame<'static>, Vec<u8>)>() + frame.bytes.len();
        if self.unknown_bytes + each > WAITING_BYTES_MAX {
            self.lost += 1;
        } else {
            self.unknown_bytes += each;
            let bare = without_bytes(frame);
            self.unknown.push_back((bare, frame.bytes.to_vec()));
        }
        self.sort(frame.at_unix_ns)
    }

    /// Takes up those that waited and wait no more: whose they are is known, or will not be.
    fn sort(&mut self, now_unix_ns: u64) -> io::Result<()> {
        while let (Some((frame, bytes)), Some(introductions)) =
            (self.unknown.front(), &mut self.introductions)
        {
            let frame = Frame {
                bytes: bytes.as_slice(),
                ..*frame
            };
            let is_over = now_unix_ns > frame.at_unix_ns.saturating_add(SILENT_NS_MAX);
            let whose = introductions.whose(self.link_type, &frame);
            if whose == Whose::Unknown && !is_over {
                break;
            }
            let Some((bare, bytes)) = self.unknown.pop_front() else {
                break;
            };
            self.unknown_bytes -= size_of::<(Frame<'static>, Vec<u8>)>() + bytes.len();
            let frame = Frame {
                bytes: &bytes,
                ..bare
            };
            match whose {
                Whose::Ours => self.own_frame(&frame)?,
                Whose::Others | Whose::Unknown => self.count_other(&frame),
            }
        }
        Ok(())
    }

    /// Writes a frame of the trial's own.
    fn own_frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let kept = frame.bytes.len().min(self.options.snap.0 as usize);
        let frame = &Frame {
            bytes: &frame.bytes[..kept],
            ..*frame
        };
        if self.ended.is_some() {
            return Ok(());
        }
        // One more block, and the counts at the end.
        let needed = (frame.bytes.len() + 2 * BLOCK_BYTES_MORE) as u64;
        if self.writer.get_ref().bytes + needed > self.options.bytes.0 {
            let most = Bytes(self.options.bytes.0);
            self.ended = Some(format!("its file was full ({most})"));
            return Ok(());
        }
        if self.frames == self.options.packets {
            self.ended = Some(format!(
                "it had {}",
                number::counted(self.options.packets, "packet")
            ));
            return Ok(());
        }
        let hidden = match &mut self.anonymiser {
            None => Some(*frame),
            Some(anonymiser) => anonymiser.anonymise(frame),
        };
        if let Some(frame) = hidden {
            self.writer.frame(&frame)?;
            self.frames += 1;
        }
        Ok(())
    }

    fn end(mut self, drops: u64) -> io::Result<FinishedCapture> {
        self.sort(u64::MAX)?;
        let dropped = drops + self.lost;
        let seen = self.frames + self.others + dropped;
        let parts = self.writer.finish(unix_ns(), seen, dropped)?;
        Ok(FinishedCapture {
            taken: CaptureTaken {
                device: self.device,
                snap_bytes: self.options.snap.0,
                anonymous: self.options.anonymous,
                frames: self.frames,
                bytes: parts.bytes,
                dropped,
                others: self.others,
                ended: self.ended,
                cpu_ns: Capture::thread_cpu_ns(),
            },
            parts: parts.parts,
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::Nanos;
    use linerate_observe::capture::LINKTYPE_RAW;

    use super::*;

    const OURS: u16 = 40_000;
    const OTHERS: u16 = 40_001;

    /// A TCP segment from this port of 192.0.2.1 to port 5201 of 192.0.2.2.
    fn segment(port: u16) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
        bytes.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        bytes.extend(port.to_be_bytes());
        bytes.extend(5201_u16.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes
    }

    fn follower(options: CaptureOptions) -> Follower {
        Follower::new(options, "eth0", LINKTYPE_RAW).unwrap()
    }

    fn pass(follower: &mut Follower, port: u16) {
        let bytes = segment(port);
        let frame = Frame {
            at_unix_ns: 1_700_000_000_000_000_000,
            length: 40,
            bytes: &bytes,
            vlan: None,
            is_outgoing: true,
        };
        follower.frame(&frame).unwrap();
    }

    fn select(follower: &mut Follower) {
        let end = |text: String| text.parse().unwrap();
        let ours = (
            end(format!("192.0.2.1:{OURS}")),
            end("192.0.2.2:5201".into()),
        );
        follower.select(Selection::conversations([ours])).unwrap();
    }

    #[test]
    fn what_came_before_the_flows_were_known_is_sorted_then() {
        let mut all = follower(CaptureOptions::default());
        for port in [OURS, OTHERS, OURS] {
            pass(&mut all, port);
        }
        assert_eq!((all.frames, all.others), (0, 0), "nobody knows yet");
        select(&mut all);
        assert_eq!((all.frames, all.others), (2, 1));
        pass(&mut all, OTHERS);
        pass(&mut all, OURS);
        let ended = all.end(7).unwrap();
        let taken = &ended.taken;
        assert_eq!((taken.frames, taken.others, taken.dropped), (3, 2, 7));
        let bytes: usize = ended.parts.iter().map(Vec::len).sum();
        assert_eq!(taken.bytes, bytes as u64);
    }

    /// What else the host exchanges with a port of that number is nobody's business.
    #[test]
    fn where_the_port_is_the_peers_no_frames_of_other_addresses_are_counted() {
        let check = |peer: &str, expected: u64| {
            let mut all = follower(CaptureOptions::default());
            all.peer = Some(peer.parse().unwrap());
            pass(&mut all, OTHERS);
            select(&mut all);
            pass(&mut all, OTHERS);
            pass(&mut all, OURS);
            assert_eq!((all.frames, all.others), (1, expected), "{peer}");
        };
        check("192.0.2.2:5201", 2);
        check("192.0.2.3:5201", 0);
        check("192.0.2.2:443", 0);
        check("[::ffff:192.0.2.2]:5201", 2);
    }

    #[test]
    fn frames_wait_in_so_much_memory_and_no_more() {
        let mut all = follower(CaptureOptions::default());
        while all.lost == 0 {
            pass(&mut all, OURS);
        }
        let frames = all.waiting.frames.len();
        let each = 40 + size_of::<(Frame<'static>, usize)>();
        assert_eq!(frames, WAITING_BYTES_MAX / each);
        select(&mut all);
        assert_eq!(all.frames, frames as u64);
        assert_eq!(all.end(0).unwrap().taken.dropped, 1);
    }

    #[test]
    fn the_file_stays_within_its_limits() {
        let check = |options: CaptureOptions, why: &str| {
            let mut all = follower(options);
            select(&mut all);
            for _ in 0..1000 {
                pass(&mut all, OURS);
            }
            let ended = all.end(0).unwrap();
            assert_eq!(ended.taken.ended.as_deref(), Some(why));
            assert!(ended.taken.bytes <= options.bytes.0, "{:?}", ended.taken);
            ended.taken
        };
        let small = CaptureOptions {
            bytes: Bytes(20_000),
            time: Some(Nanos::from_s(1)),
            ..CaptureOptions::default()
        };
        let full = check(small, "its file was full (19.53 KiB)");
        assert!(full.bytes > 19_500, "{full:?}");
        let few = CaptureOptions {
            packets: 10,
            ..CaptureOptions::default()
        };
        assert_eq!(check(few, "it had 10 packets").frames, 10);
    }

    #[test]
    fn parts_are_as_long_as_they_may_be() {
        let mut parts = Parts::default();
        let bytes: Vec<u8> = (0..=255).cycle().take(PART_BYTES * 2 + 5).collect();
        for piece in bytes.chunks(4099) {
            parts.write_all(piece).unwrap();
        }
        let lengths: Vec<usize> = parts.parts.iter().map(Vec::len).collect();
        assert_eq!(lengths, [PART_BYTES, PART_BYTES, 5]);
        assert_eq!(parts.bytes, bytes.len() as u64);
        assert!(parts.parts.concat() == bytes);
    }
}
