//! Captures to measure with: full-size frames of twenty flows, and a million connections.

use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The blocks of pcapng.
#[path = "../../tests/common/blocks.rs"]
mod blocks;

const FLOWS: u16 = 20;
const SEGMENT_BYTES: usize = 1448;
const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// A capture that is being made.
struct Making {
    file: BufWriter<std::fs::File>,
    now_ns: u64,
    bytes: u64,
    frame: Vec<u8>,
}

/// One segment, from the lower address to the higher or back.
struct Segment<'a> {
    client: u32,
    port: u16,
    up: bool,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    payload: usize,
    options: &'a [u8],
}

impl Making {
    fn new(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
        file.write_all(&blocks::heads())?;
        Ok(Self {
            file,
            now_ns: 1_700_000_000_000_000_000,
            bytes: 0,
            frame: Vec::new(),
        })
    }

    fn send(&mut self, segment: &Segment<'_>) -> io::Result<()> {
        const SERVER: u32 = 0xc0a8_0001;
        let frame = &mut self.frame;
        frame.clear();
        frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        let length = 40 + segment.options.len() + segment.payload;
        frame.extend((length as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (from, to) = if segment.up {
            ((segment.client, segment.port), (SERVER, 5201))
        } else {
            ((SERVER, 5201), (segment.client, segment.port))
        };
        frame.extend(from.0.to_be_bytes());
        frame.extend(to.0.to_be_bytes());
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend(segment.sequence.to_be_bytes());
        frame.extend(segment.acknowledgement.to_be_bytes());
        frame.push(((20 + segment.options.len()) as u8 / 4) << 4);
        frame.push(segment.flags);
        frame.extend([16, 0, 0, 0, 0, 0]);
        frame.extend(segment.options);
        frame.resize(14 + length, b'x');
        self.now_ns += 1200;
        self.bytes += frame.len() as u64;
        self.file.write_all(&blocks::frame(self.now_ns, frame))
    }

    fn shake_hands(&mut self, client: u32, port: u16, options: &[u8]) -> io::Result<()> {
        for (up, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK)] {
            let is_syn = flags & SYN != 0;
            self.send(&Segment {
                client,
                port,
                up,
                sequence: u32::from(!is_syn),
                acknowledgement: u32::from(flags & ACK != 0),
                flags,
                payload: 0,
                options: if is_syn { options } else { &[] },
            })?;
        }
        Ok(())
    }
}

/// Makes a capture of `bytes` of full-size frames, an acknowledgement for each four.
pub fn bulk(path: &Path, bytes: u64) -> io::Result<()> {
    let mut making = Making::new(path)?;
    let mut next = [1u32; FLOWS as usize];
    for flow in 0..FLOWS {
        let options = [
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
        ];
        making.shake_hands(0x0a00_0001, 1000 + flow, &options)?;
    }
    let mut packets = 0u32;
    while making.bytes < bytes {
        let flow = packets / 16 % u32::from(FLOWS);
        let stamp = (packets / 1000 + 2).to_be_bytes();
        let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        options[4..8].copy_from_slice(&stamp);
        options[8..].copy_from_slice(&stamp);
        let mut segment = Segment {
            client: 0x0a00_0001,
            port: 1000 + flow as u16,
            up: true,
            sequence: next[flow as usize],
            acknowledgement: 1,
            flags: ACK,
            payload: SEGMENT_BYTES,
            options: &options,
        };
        making.send(&segment)?;
        let end = segment.sequence.wrapping_add(SEGMENT_BYTES as u32);
        next[flow as usize] = end;
        packets += 1;
        if packets.is_multiple_of(4) {
            segment.up = false;
            (segment.sequence, segment.acknowledgement, segment.payload) = (1, end, 0);
            making.send(&segment)?;
        }
    }
    making.file.flush()
}

/// Makes a capture of `count` connections with a request and an answer each, closed or not.
pub fn many(path: &Path, count: u32, closes: bool) -> io::Result<()> {
    let mut making = Making::new(path)?;
    let data: [(bool, u32, u32, u8, usize); 3] = [
        (true, 1, 1, ACK, 120),
        (false, 1, 121, ACK, 300),
        (true, 121, 301, ACK, 0),
    ];
    let farewell: [(bool, u32, u32, u8, usize); 3] = [
        (true, 121, 301, FIN | ACK, 0),
        (false, 301, 122, FIN | ACK, 0),
        (true, 122, 302, ACK, 0),
    ];
    for number in 0..count {
        let (client, port) = (0x0a00_0000 + (number >> 4), 1024 + (number & 15) as u16);
        making.shake_hands(client, port, &[2, 4, 5, 0xb4, 1, 3, 3, 7])?;
        let rest = if closes { &farewell[..] } else { &[] };
        for &(up, sequence, acknowledgement, flags, payload) in data.iter().chain(rest) {
            making.send(&Segment {
                client,
                port,
                up,
                sequence,
                acknowledgement,
                flags,
                payload,
                options: &[],
            })?;
        }
    }
    making.file.flush()
}
