//! Small programs inside the kernel (bpf(2)): made of instructions, loaded, and hung on tracepoints.
//!
//! Only what counting needs: an array with a copy for each CPU, programs on raw tracepoints, and
//! reading the array back. The kernel checks each program before it runs it; nothing here can write
//! to the host. No compiler and no object file are involved.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const COMMAND_MAP_CREATE: libc::c_int = 0;
const COMMAND_MAP_LOOKUP: libc::c_int = 1;
const COMMAND_PROGRAM_LOAD: libc::c_int = 5;
const COMMAND_RAW_TRACEPOINT_OPEN: libc::c_int = 17;

const MAP_PERCPU_ARRAY: u32 = 6;
const PROGRAM_RAW_TRACEPOINT: u32 = 17;

/// CPUs believed in: what the kernel can be built for at the most (NR_CPUS of x86-64).
const CPUS_MAX: usize = 8192;

/// The licence that the program declares; it calls nothing that asks for another.
const LICENCE: &CStr = c"Dual MIT/GPL";

/// Registers: `R0` is a call's result, `R1` to `R5` its arguments, `R6` to `R9` outlive calls.
pub(crate) const R0: u8 = 0;
pub(crate) const R1: u8 = 1;
pub(crate) const R2: u8 = 2;
pub(crate) const R6: u8 = 6;
pub(crate) const R7: u8 = 7;
/// The stack, which is used below it.
pub(crate) const R10: u8 = 10;

/// What a program may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helper {
    /// `bpf_map_lookup_elem`: R1 map, R2 key; returns a pointer or 0.
    MapLookup = 1,
    /// `bpf_ktime_get_ns`: CLOCK_MONOTONIC.
    KtimeGetNs = 5,
}

/// One instruction of 64 bits: operation, registers, offset, constant.
pub(crate) type Instruction = u64;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Instruction {
    let bytes = (from << 4 | to) as u64;
    code as u64 | bytes << 8 | (offset as u16 as u64) << 16 | (value as u32 as u64) << 32
}

/// `to = from`
pub(crate) const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}
/// `to = value`
pub(crate) const fn set(to: u8, value: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, value)
}
/// `to += value`
pub(crate) const fn add_value(to: u8, value: i32) -> Instruction {
    instruction(0x07, to, 0, 0, value)
}
/// `to += from`
pub(crate) const fn add(to: u8, from: u8) -> Instruction {
    instruction(0x0f, to, from, 0, 0)
}
/// `to -= from`
pub(crate) const fn subtract(to: u8, from: u8) -> Instruction {
    instruction(0x1f, to, from, 0, 0)
}
/// `to <<= bits`
pub(crate) const fn shift_left(to: u8, bits: i32) -> Instruction {
    instruction(0x67, to, 0, 0, bits)
}
/// `to = *(u64 *)(from + offset)`
pub(crate) const fn load(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x79, to, from, offset, 0)
}
/// `*(u64 *)(to + offset) = from`
pub(crate) const fn store(to: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x7b, to, from, offset, 0)
}
/// `*(u64 *)(to + offset) = value`
pub(crate) const fn store_value(to: u8, offset: i16, value: i32) -> Instruction {
    instruction(0x7a, to, 0, offset, value)
}
/// `*(u32 *)(to + offset) = value`
pub(crate) const fn store_value_32(to: u8, offset: i16, value: i32) -> Instruction {
    instruction(0x62, to, 0, offset, value)
}
/// Passes over `over` instructions if `register` is `value`.
pub(crate) const fn skip_if_equal(register: u8, value: i32, over: i16) -> Instruction {
    instruction(0x15, register, 0, over, value)
}
/// Passes over `over` instructions if `register` is more than `value`, without sign.
pub(crate) const fn skip_if_more(register: u8, value: i32, over: i16) -> Instruction {
    instruction(0x25, register, 0, over, value)
}
/// Calls a helper.
pub(crate) const fn call(helper: Helper) -> Instruction {
    instruction(0x85, 0, 0, 0, helper as i32)
}
/// Ends the program.
pub(crate) const fn exit() -> Instruction {
    instruction(0x95, 0, 0, 0, 0)
}

/// One value of fixed length for each CPU.
#[derive(Debug)]
pub(crate) struct PerCpu {
    fd: OwnedFd,
    value_bytes: usize,
    cpus: usize,
}

/// A program that runs as long as this lives.
#[derive(Debug)]
pub(crate) struct Attached {
    _link: OwnedFd,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapLookup {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
#[derive(Default)]
struct RawTracepointOpen {
    name: u64,
    program_fd: u32,
    padding: u32,
}

/// Asks the kernel; `arguments` is the beginning of a `union bpf_attr`, whose rest is zero.
///
/// # Safety
///
/// Every pointer inside `arguments` must be good for what `command` does with it.
unsafe fn bpf<T>(command: libc::c_int, arguments: &T) -> io::Result<libc::c_long> {
    let size = size_of::<T>();
    let arguments = std::ptr::from_ref(arguments);
    // SAFETY: `arguments` is readable for `size` bytes; the caller vouches for what it points to.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, arguments, size) };
    match answer {
        0.. => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    }
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel made this descriptor for the call before, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl PerCpu {
    /// Makes values of `value_bytes`, a multiple of 8, all zero.
    pub(crate) fn new(value_bytes: usize) -> io::Result<Self> {
        assert!(value_bytes.is_multiple_of(8), "the kernel rounds up to 8");
        let cpus = possible_cpus()?;
        let arguments = MapCreate {
            map_type: MAP_PERCPU_ARRAY,
            key_size: 4,
            value_size: u32::try_from(value_bytes).map_err(io::Error::other)?,
            max_entries: 1,
        };
        // SAFETY: the arguments hold numbers only.
        let fd = unsafe { bpf(COMMAND_MAP_CREATE, &arguments) }?;
        Ok(Self {
            fd: owned(fd)?,
            value_bytes,
            cpus,
        })
    }

    /// Returns the two instructions of `to = this map`.
    pub(crate) fn address(&self, to: u8) -> [Instruction; 2] {
        [
            instruction(0x18, to, 1, 0, self.fd.as_raw_fd()),
            instruction(0, 0, 0, 0, 0),
        ]
    }

    /// Reads the values of all CPUs, one behind the other, as words of 64 bits.
    pub(crate) fn read(&self, words: &mut Vec<u64>) -> io::Result<()> {
        words.clear();
        words.resize(self.cpus * self.value_bytes / 8, 0);
        let key = 0_u32;
        let arguments = MapLookup {
            map_fd: self.fd.as_raw_fd().cast_unsigned(),
            key: std::ptr::from_ref(&key) as u64,
            value: words.as_mut_ptr() as u64,
            ..MapLookup::default()
        };
        // SAFETY: the key is four readable bytes; the kernel writes a value for each CPU that the
        // machine may ever have, which is what `words` has room for: the number is the kernel's own
        // and does not change while it runs.
        unsafe { bpf(COMMAND_MAP_LOOKUP, &arguments) }.map(drop)
    }
}

/// Returns why `error` came of loading a program, and what would help.
pub(crate) fn why_not(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "not allowed: run the agent as root or with CAP_BPF and CAP_PERFMON".to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no BPF".to_owned(),
        Some(libc::EINVAL | libc::ENOENT) => {
            format!("this kernel does not take the program ({error}); it needs Linux 5.8")
        }
        _ => error.to_string(),
    }
}

/// Returns how many CPUs the machine may ever have, which is how many values the kernel keeps.
///
/// The list is `0-N` on every machine that starts at 0 without gaps, as all do that run Linux; any
/// other is not believed, since the length of what the kernel writes follows from it.
fn possible_cpus() -> io::Result<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = match list.trim().strip_prefix("0-") {
        Some(last) => last.parse().ok(),
        None => (list.trim() == "0").then_some(0),
    };
    let cpus = last.filter(|&last: &usize| last < CPUS_MAX);
    cpus.map(|last| last + 1)
        .ok_or_else(|| io::Error::other(format!("the CPUs `{}` have gaps", list.trim())))
}

/// Loads a program and hangs it on the raw tracepoint called `tracepoint`.
pub(crate) fn attach(tracepoint: &CStr, program: &[Instruction]) -> io::Result<Attached> {
    let arguments = ProgramLoad {
        kind: PROGRAM_RAW_TRACEPOINT,
        count: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        ..ProgramLoad::default()
    };
    // SAFETY: `count` instructions are readable at `instructions`, the licence ends in zero, and
    // both live through the call.
    let program = owned(unsafe { bpf(COMMAND_PROGRAM_LOAD, &arguments) }?)?;
    let arguments = RawTracepointOpen {
        name: tracepoint.as_ptr() as u64,
        program_fd: program.as_raw_fd().cast_unsigned(),
        padding: 0,
    };
    // SAFETY: the name ends in zero and lives through the call.
    let link = owned(unsafe { bpf(COMMAND_RAW_TRACEPOINT_OPEN, &arguments) }?)?;
    Ok(Attached { _link: link })
}
