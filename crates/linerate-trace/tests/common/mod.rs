//! Captures made by hand, packet by packet, with known truth.
#![allow(dead_code)]

/// The blocks of pcapng.
pub mod blocks;

use std::sync::atomic::{AtomicU32, Ordering};

use linerate_trace::capture::Reader;
use linerate_trace::{Limits, Trace, Tracker};

/// 2023-11-14T22:13:20Z.
pub const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;

/// Which end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    Client,
    Server,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct Packet {
    pub from: From,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub window: u16,
    pub payload: usize,
    pub options: Vec<u8>,
    pub identification: u16,
}

/// A connection that is written packet by packet; each end's numbers go on by themselves.
pub struct Talk {
    pub frames: Vec<(u64, Vec<u8>)>,
    pub now_ns: u64,
    next: [u32; 2],
    window: [u16; 2],
    ports: [u16; 2],
    identification: u16,
    v6: bool,
    /// The timestamps that the ends sent last.
    stamps: Option<[u32; 2]>,
}

impl Talk {
    /// Returns a talk of which nothing was captured yet; the ends' first numbers are given.
    pub fn new(client_first: u32, server_first: u32) -> Self {
        Self {
            frames: Vec::new(),
            now_ns: BEGIN_NS,
            next: [client_first, server_first],
            window: [1000, 1000],
            ports: [40_000, 80],
            identification: 1,
            v6: false,
            stamps: None,
        }
    }

    pub fn v6(mut self) -> Self {
        self.v6 = true;
        self
    }

    /// Lets every segment but SYNs carry timestamps: milliseconds of the end's clock.
    pub fn with_stamps(mut self) -> Self {
        self.stamps = Some([0; 2]);
        self
    }

    pub fn client_port(mut self, port: u16) -> Self {
        self.ports[0] = port;
        self
    }

    pub fn server_port(mut self, port: u16) -> Self {
        self.ports[1] = port;
        self
    }

    pub fn begin_at(mut self, ms: u64) -> Self {
        self.now_ns = BEGIN_NS + ms * 1_000_000;
        self
    }

    /// Lets time pass.
    pub fn wait_us(&mut self, us: u64) -> &mut Self {
        self.now_ns += us * 1000;
        self
    }

    pub fn window(&mut self, from: From, window: u16) -> &mut Self {
        self.window[from as usize] = window;
        self
    }

    /// SYN, SYN-ACK and ACK with a round trip of 200 µs, half of it on each side of the capture.
    pub fn shake_hands(&mut self, mss: u16, scale: Option<u8>) -> &mut Self {
        self.shake_hands_as((mss, scale), (mss, scale))
    }

    pub fn shake_hands_as(
        &mut self,
        client: (u16, Option<u8>),
        server: (u16, Option<u8>),
    ) -> &mut Self {
        self.control(From::Client, SYN, syn_options(client));
        self.wait_us(100);
        self.control(From::Server, SYN | ACK, syn_options(server));
        self.wait_us(100);
        self.ack(From::Client)
    }

    pub fn control(&mut self, from: From, flags: u8, options: Vec<u8>) -> &mut Self {
        let mut packet = self.packet(from, 0);
        packet.flags = flags;
        packet.options = options;
        if flags & ACK == 0 {
            packet.acknowledgement = 0;
        }
        self.next[from as usize] = self.next[from as usize].wrapping_add(1);
        self.send(packet)
    }

    /// Sends new payload.
    pub fn data(&mut self, from: From, payload: usize) -> &mut Self {
        let packet = self.packet(from, payload);
        self.next[from as usize] = self.next[from as usize].wrapping_add(payload as u32);
        self.send(packet)
    }

    /// Sends `payload` from `back` bytes before the next number.
    pub fn again(&mut self, from: From, back: u32, payload: usize) -> &mut Self {
        let mut packet = self.packet(from, payload);
        packet.sequence = packet.sequence.wrapping_sub(back);
        self.send(packet)
    }

    /// Goes on as if `payload` had been sent, but not captured.
    pub fn skip(&mut self, from: From, payload: u32) -> &mut Self {
        self.next[from as usize] = self.next[from as usize].wrapping_add(payload);
        self
    }

    /// Acknowledges everything.
    pub fn ack(&mut self, from: From) -> &mut Self {
        let packet = self.packet(from, 0);
        self.send(packet)
    }

    /// Acknowledges all but the last `missing` bytes.
    pub fn ack_but(&mut self, from: From, missing: u32) -> &mut Self {
        let mut packet = self.packet(from, 0);
        packet.acknowledgement = packet.acknowledgement.wrapping_sub(missing);
        self.send(packet)
    }

    /// Acknowledges all but the last `missing` bytes, with a selective block of the last `have`.
    pub fn sack(&mut self, from: From, missing: u32, have: u32) -> &mut Self {
        let mut packet = self.packet(from, 0);
        let end = packet.acknowledgement;
        packet.acknowledgement = end.wrapping_sub(missing);
        packet.options = sack_option(end.wrapping_sub(have), end);
        self.send(packet)
    }

    pub fn finish(&mut self) -> &mut Self {
        for from in [From::Client, From::Server] {
            self.control(from, FIN | ACK, Vec::new());
            self.wait_us(100);
        }
        self.ack(From::Client)
    }

    pub fn packet(&self, from: From, payload: usize) -> Packet {
        let to = match from {
            From::Client => From::Server,
            From::Server => From::Client,
        };
        Packet {
            from,
            sequence: self.next[from as usize],
            acknowledgement: self.next[to as usize],
            flags: if payload > 0 { ACK | PSH } else { ACK },
            window: self.window[from as usize],
            payload,
            options: Vec::new(),
            identification: 0,
        }
    }

    pub fn send(&mut self, mut packet: Packet) -> &mut Self {
        if packet.identification == 0 {
            self.identification += 1;
            packet.identification = self.identification;
        }
        if let Some(stamps) = &mut self.stamps
            && packet.flags & SYN == 0
        {
            let value = 1 + ((self.now_ns - BEGIN_NS) / 1_000_000) as u32;
            stamps[packet.from as usize] = value;
            let mut options = vec![1, 1, 8, 10];
            options.extend(value.to_be_bytes());
            options.extend(stamps[1 - packet.from as usize].to_be_bytes());
            options.extend(packet.options);
            packet.options = options;
        }
        let bytes = self.frame(&packet);
        self.frames.push((self.now_ns, bytes));
        self
    }

    /// Sends the last frame once more, as a capture on a bridge shows it.
    pub fn same_frame(&mut self) -> &mut Self {
        let (_, bytes) = self.frames.last().expect("a frame").clone();
        self.frames.push((self.now_ns, bytes));
        self
    }

    fn frame(&self, packet: &Packet) -> Vec<u8> {
        let (source, target) = match packet.from {
            From::Client => (0, 1),
            From::Server => (1, 0),
        };
        let mut options = packet.options.clone();
        while !options.len().is_multiple_of(4) {
            options.push(0);
        }
        let mut tcp = Vec::new();
        tcp.extend(self.ports[source].to_be_bytes());
        tcp.extend(self.ports[target].to_be_bytes());
        tcp.extend(packet.sequence.to_be_bytes());
        tcp.extend(packet.acknowledgement.to_be_bytes());
        tcp.push(((20 + options.len()) as u8 / 4) << 4);
        tcp.push(packet.flags);
        tcp.extend(packet.window.to_be_bytes());
        // Not the checksum that a stack would compute, but one that tells options apart.
        let sum = options.iter().fold(packet.payload as u16, |sum, &byte| {
            sum.rotate_left(3).wrapping_add(byte.into())
        });
        tcp.extend(sum.to_be_bytes());
        tcp.extend([0; 2]);
        tcp.extend(options);
        tcp.resize(tcp.len() + packet.payload, b'x');
        let ip = if self.v6 {
            ipv6(source as u8, &tcp)
        } else {
            ipv4(source as u8, packet.identification, &tcp)
        };
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend(if self.v6 { [0x86, 0xdd] } else { [8, 0] });
        frame.extend(ip);
        frame
    }
}

pub fn ipv4(source: u8, identification: u16, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((20 + payload.len() as u16).to_be_bytes());
    ip.extend(identification.to_be_bytes());
    ip.extend([0x40, 0, 64, 6, 0, 0]);
    ip.extend([10, 0, 0, source + 1]);
    ip.extend([10, 0, 0, 2 - source]);
    ip.extend(payload);
    ip
}

pub fn ipv6(source: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend((payload.len() as u16).to_be_bytes());
    ip.extend([6, 64]);
    let address = |last: u8| {
        let mut bytes = [0u8; 16];
        (bytes[0], bytes[1], bytes[15]) = (0xfd, 0, last);
        bytes
    };
    ip.extend(address(source + 1));
    ip.extend(address(2 - source));
    ip.extend(payload);
    ip
}

pub fn syn_options((mss, scale): (u16, Option<u8>)) -> Vec<u8> {
    let mut options = vec![2, 4];
    options.extend(mss.to_be_bytes());
    options.extend([1, 1, 4, 2]);
    if let Some(scale) = scale {
        options.extend([1, 3, 3, scale]);
    }
    options
}

pub fn sack_option(start: u32, end: u32) -> Vec<u8> {
    let mut options = vec![1, 1, 5, 10];
    options.extend(start.to_be_bytes());
    options.extend(end.to_be_bytes());
    options
}

/// Writes frames as pcap: in which byte order, with which fraction of a second.
pub fn pcap(frames: &[(u64, Vec<u8>)], link: u32, big: bool, nanos: bool) -> Vec<u8> {
    let u32 = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let u16 = |value: u16| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let mut out = Vec::new();
    out.extend(u32(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    out.extend(u16(2));
    out.extend(u16(4));
    out.extend([0; 8]);
    out.extend(u32(262_144));
    out.extend(u32(link));
    for (time_ns, bytes) in frames {
        let fraction = time_ns % 1_000_000_000;
        out.extend(u32((time_ns / 1_000_000_000) as u32));
        out.extend(u32(if nanos { fraction } else { fraction / 1000 } as u32));
        out.extend(u32(bytes.len() as u32));
        out.extend(u32(bytes.len() as u32));
        out.extend(bytes);
    }
    out
}

/// Writes frames as pcap, at most `snap` bytes of each.
pub fn pcap_cut(frames: &[(u64, Vec<u8>)], snap: usize) -> Vec<u8> {
    let mut out = pcap(&[], 1, false, true);
    for (time_ns, frame) in frames {
        let captured = frame.len().min(snap);
        out.extend(((time_ns / 1_000_000_000) as u32).to_le_bytes());
        out.extend(((time_ns % 1_000_000_000) as u32).to_le_bytes());
        out.extend((captured as u32).to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend(&frame[..captured]);
    }
    out
}

/// Writes frames as pcapng.
pub fn pcapng(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let blocks = frames
        .iter()
        .flat_map(|(time_ns, bytes)| blocks::frame(*time_ns, bytes));
    blocks::heads().into_iter().chain(blocks).collect()
}

/// Returns the block in which whoever captured says how many frames of the first interface it lost.
pub fn statistics(lost: u64) -> Vec<u8> {
    // Interface and time; the two options with which libpcap counts: received, and lost.
    let mut body = vec![0; 12];
    for (code, number) in [(4u16, 1000u64), (5, lost)] {
        body.extend(code.to_le_bytes());
        body.extend(8u16.to_le_bytes());
        body.extend(number.to_le_bytes());
    }
    body.extend([0; 4]);
    blocks::block(5, &body)
}

/// Keeps a capture in the directory that `LINERATE_TRACE_CAPTURES` names, for `bench/trace-accuracy --from`.
fn keep(bytes: &[u8]) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Some(folder) = std::env::var_os("LINERATE_TRACE_CAPTURES") else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").replace("::", "-");
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{test}-{}-{number}.pcap", std::process::id());
    let path = std::path::Path::new(&folder).join(name);
    std::fs::write(path, bytes).expect("the directory can be written");
}

/// Traces a capture.
pub fn trace_bytes(bytes: &[u8]) -> Trace {
    keep(bytes);
    let mut tracker = Tracker::new(Limits::default());
    let mut reader = Reader::new(bytes).expect("a capture");
    tracker.read(&mut reader, "made").expect("of Ethernet");
    tracker.finish()
}

/// Traces frames.
pub fn trace(frames: &[(u64, Vec<u8>)]) -> Trace {
    trace_bytes(&pcapng(frames))
}

/// Notes that a test cannot run here; where CI=true it fails instead.
#[expect(
    clippy::print_stdout,
    reason = "whoever reads the results counts what was skipped"
)]
pub fn skip(why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!ci, "in CI this must run: {why}");
    println!("skipped: {why}");
}
