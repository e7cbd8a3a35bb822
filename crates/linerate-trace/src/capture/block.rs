//! Room for a block of the input, and what is visible of it.

/// Bytes of the input that are read to one place: a system call for 340 full-size frames. What is copied to lines that
/// are in the second-level cache takes a quarter longer than to others, so that who reads ahead should have more of them
/// than fit in there.
pub(super) const BLOCK_BYTES: usize = 512 * 1024;

/// A page of the kernel.
pub(super) const PAGE_BYTES: usize = 4096;

/// Room before a block for a record that began in the one before.
pub(super) const HEAD_BYTES: usize = 64 * 1024;

/// Room for a block of the input and for what is moved to before it.
pub struct Block {
    bytes: Vec<u8>,
    /// Where the block begins: at the beginning of a page.
    at: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self::longer(0)
    }
}

impl Block {
    /// Returns room for a block, and for `more_bytes` behind it.
    fn longer(more_bytes: usize) -> Self {
        let bytes = vec![0; HEAD_BYTES + PAGE_BYTES + BLOCK_BYTES + more_bytes];
        let to_page = bytes[HEAD_BYTES..].as_ptr().align_offset(PAGE_BYTES);
        let at = HEAD_BYTES + to_page.min(PAGE_BYTES);
        Self { bytes, at }
    }

    /// Returns where the block is to be read to, from `offset` bytes on.
    pub(super) fn place(&mut self, offset: usize) -> &mut [u8] {
        &mut self.bytes[self.at + offset..self.at + BLOCK_BYTES]
    }
}

/// Bytes of a block.
pub struct Piece {
    block: Block,
    start: usize,
    end: usize,
}

impl Piece {
    /// Returns the `count` bytes of `block` from `offset` on.
    pub(super) fn new(block: Block, offset: usize, count: usize) -> Self {
        let start = block.at + offset;
        Self {
            block,
            start,
            end: start + count,
        }
    }

    /// Returns its block, to be read to again, or another where it had to grow.
    pub(super) fn into_block(self) -> Block {
        if self.block.bytes.len() > HEAD_BYTES + PAGE_BYTES + BLOCK_BYTES {
            Block::default()
        } else {
            self.block
        }
    }

    /// Returns whether there is nothing in it, which is the end of an input.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.block.bytes[self.start..self.end]
    }

    /// Takes `count` bytes away from its beginning.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.start += count;
    }

    /// Goes on with `next`, and returns the piece that is not needed any more.
    ///
    /// Each byte is moved a few times at most: the shorter of the two goes to the longer, unless a begun record is
    /// longer than the room before a block.
    pub(super) fn join(&mut self, mut next: Self) -> Self {
        if self.len() <= HEAD_BYTES.min(next.len()) {
            next.put_before(self.bytes());
            std::mem::replace(self, next)
        } else {
            self.put_behind(next.bytes());
            next
        }
    }

    fn put_before(&mut self, begun: &[u8]) {
        let end = self.start;
        self.start -= begun.len();
        self.block.bytes[self.start..end].copy_from_slice(begun);
    }

    fn put_behind(&mut self, more: &[u8]) {
        if self.end + more.len() > self.block.bytes.len() {
            let twice = 2 * (self.len() + more.len());
            let block = Block::longer(twice.saturating_sub(BLOCK_BYTES));
            let mut moved = Self::new(block, 0, self.len());
            moved.block.bytes[moved.start..moved.end].copy_from_slice(self.bytes());
            *self = moved;
        }
        let end = self.end + more.len();
        self.block.bytes[self.end..end].copy_from_slice(more);
        self.end = end;
    }
}
