//! A program for the first look at a frame (XDP) that lets every frame pass.

use std::io;
use std::mem::size_of;
use std::os::fd::{FromRawFd, OwnedFd};

use super::check;

/// `BPF_PROG_LOAD`, `BPF_PROG_TYPE_XDP` and `BPF_F_XDP_HAS_FRAGS` of include/uapi/linux/bpf.h.
const PROGRAM_LOAD: libc::c_int = 5;
const PROGRAM_TYPE_XDP: u32 = 6;
/// Without it, veth takes no program while its MTU is more than a page holds.
const WITH_FRAGMENTS: u32 = 1 << 5;

/// `r0 = XDP_PASS` and `exit`.
const PASS: [u64; 2] = [0x0000_0002_0000_00b7, 0x95];

/// The head of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
struct Load {
    program_type: u32,
    instruction_count: u32,
    instructions: *const u64,
    licence: *const libc::c_char,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Loads the program; only a process that may use bpf(2) can.
pub fn pass_program() -> io::Result<OwnedFd> {
    let load = Load {
        program_type: PROGRAM_TYPE_XDP,
        instruction_count: PASS.len() as u32,
        instructions: PASS.as_ptr(),
        licence: c"Dual MIT/GPL".as_ptr(),
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: WITH_FRAGMENTS,
    };
    // SAFETY: the kernel reads `size_of::<Load>()` bytes of `load`, and through it the instructions
    // and the licence, which ends in zero; all live across the call, and it writes to none of them.
    let fd = check(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROGRAM_LOAD,
            &raw const load,
            size_of::<Load>(),
        )
    })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}
