//! Classic filters on sockets (Documentation/networking/filter.rst): programs that say which packets they get.

use std::io;
use std::os::fd::RawFd;

use crate::sys::socket::set_option;

/// BPF_LD of include/uapi/linux/bpf_common.h: loads the accumulator.
const LOAD: u32 = libc::BPF_LD | libc::BPF_W;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_K;

/// One instruction of a filter.
#[derive(Clone, Copy)]
pub(crate) struct Instruction(libc::sock_filter);

impl Instruction {
    /// Takes the packet, all of it.
    pub(crate) const TAKE: Self = Self::new(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX);
    /// Drops the packet.
    pub(crate) const DROP: Self = Self::new(libc::BPF_RET | libc::BPF_K, 0, 0, 0);

    const fn new(code: u32, when_true: u8, when_false: u8, k: u32) -> Self {
        Self(libc::sock_filter {
            code: code as u16,
            jt: when_true,
            jf: when_false,
            k,
        })
    }

    /// Loads the length of the packet.
    pub(crate) const fn load_length() -> Self {
        Self::new(LOAD | libc::BPF_LEN, 0, 0, 0)
    }

    /// Loads the four bytes at `from`, big-endian; a packet that ends before is dropped.
    pub(crate) const fn load_word(from: u32) -> Self {
        Self::new(LOAD | libc::BPF_ABS, 0, 0, from)
    }

    /// Skips `next` instructions unless `value` was loaded.
    pub(crate) const fn skip_unless_equal(value: u32, next: u8) -> Self {
        Self::new(JUMP | libc::BPF_JEQ, 0, next, value)
    }

    /// Skips `next` instructions if `value` or more was loaded.
    pub(crate) const fn skip_if_at_least(value: u32, next: u8) -> Self {
        Self::new(JUMP | libc::BPF_JGE, next, 0, value)
    }
}

/// Hangs a filter on a socket, in place of the one that it has.
pub(crate) fn attach(fd: RawFd, program: &[Instruction]) -> io::Result<()> {
    let mut instructions: Vec<libc::sock_filter> = program.iter().map(|one| one.0).collect();
    let len = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog {
        len,
        filter: instructions.as_mut_ptr(),
    };
    // The kernel copies the instructions during the call, which `instructions` outlives.
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Takes the filter off a socket, if it has one.
pub(crate) fn detach(fd: RawFd) {
    let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0_i32);
}
