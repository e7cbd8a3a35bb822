//! The blocks of pcapng: type, length, body padded to four bytes, and the length again.

/// Returns the heads of a section, and of an interface of Ethernet that counts nanoseconds.
pub fn heads() -> Vec<u8> {
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    // Version 1.0, of a length that is not known.
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    // No limit to what is kept of a frame; if_tsresol: 10⁻⁹ s, padded; the end of options.
    let interface = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    [block(0x0a0d_0d0a, &section), block(1, &interface)].concat()
}

/// Returns the block of a whole frame.
pub fn frame(time_ns: u64, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u32;
    let numbers = [0, (time_ns >> 32) as u32, time_ns as u32, length, length];
    let mut body: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    body.extend(bytes);
    block(6, &body)
}

/// Returns a block.
pub fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = 12 + body.len().next_multiple_of(4);
    let mut block = Vec::with_capacity(length);
    block.extend(kind.to_le_bytes());
    block.extend((length as u32).to_le_bytes());
    block.extend(body);
    block.resize(length - 4, 0);
    block.extend((length as u32).to_le_bytes());
    block
}
