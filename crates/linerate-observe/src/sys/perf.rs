//! Events of the kernel's perf subsystem (include/uapi/linux/perf_event.h): opened, read, and taken
//! from a ring that is shared with the kernel.
//!
//! Written out rather than taken from a crate: three calls and one structure are all there is to
//! it, and bindings are ten times as long.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::page_bytes;
use super::memory::SharedMemory;

/// The kind of event that software makes (PERF_TYPE_SOFTWARE), and hardware (PERF_TYPE_HARDWARE).
const TYPE_SOFTWARE: u32 = 1;
const TYPE_HARDWARE: u32 = 0;

/// Bits of `sample_type`: what a sample carries, in this order.
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_CPU: u64 = 1 << 7;

/// Bits of `read_format`.
const READ_TIMES: u64 = 1 << 0 | 1 << 1;
const READ_GROUP: u64 = 1 << 3;

/// Bits of `flags`.
const FLAG_DISABLED: u64 = 1 << 0;
const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_NO_USER_CHAIN: u64 = 1 << 22;
const FLAG_CLOCK: u64 = 1 << 25;

/// `PERF_EVENT_IOC_ENABLE`, with the flag that means the whole group.
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_FLAG_GROUP: libc::c_ulong = 1;
/// PERF_FLAG_FD_CLOEXEC.
const OPEN_CLOEXEC: libc::c_ulong = 8;

/// Where the kernel's and our position in the ring lie in its first page.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;
/// Bytes of a record's head: type, miscellaneous, size.
const HEADER_BYTES: usize = 8;

/// struct perf_event_attr, as far as PERF_ATTR_SIZE_VER5 (Linux 4.1) has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

/// What an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Cycles of the CPU while it is not halted.
    Cycles,
    /// Instructions that were completed.
    Instructions,
    /// Misses of the last level of cache, as the kernel chooses them for this CPU.
    CacheMisses,
    /// Nanoseconds that the CPU was busy; made by software, so that every machine has it.
    #[cfg(test)]
    CpuClock,
}

impl Attributes {
    /// Counts `counted`; the first of a group is read for all of them.
    pub(crate) fn counter(counted: Counted) -> Self {
        let (kind, config) = match counted {
            Counted::Cycles => (TYPE_HARDWARE, 0),
            Counted::Instructions => (TYPE_HARDWARE, 1),
            Counted::CacheMisses => (TYPE_HARDWARE, 3),
            #[cfg(test)]
            Counted::CpuClock => (TYPE_SOFTWARE, 0),
        };
        Self {
            kind,
            config,
            size: size_of::<Self>() as u32,
            read_format: READ_TIMES | READ_GROUP,
            ..Self::default()
        }
    }

    /// Samples where the CPU is, `hz` times in a second of its own time, with the chain of callers
    /// inside the kernel. Instants are of CLOCK_MONOTONIC.
    pub(crate) fn sampler(hz: u64) -> Self {
        Self {
            kind: TYPE_SOFTWARE,
            config: 0,
            size: size_of::<Self>() as u32,
            sample_frequency: hz,
            sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN,
            flags: FLAG_DISABLED | FLAG_FREQUENCY | FLAG_NO_USER_CHAIN | FLAG_CLOCK,
            clockid: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// One CPU, whoever runs there.
    Cpu(u32),
    /// One thread, wherever it runs; as the caller's pid namespace numbers it.
    Thread(i32),
}

/// An open event.
#[derive(Debug)]
pub(crate) struct PerfEvent {
    fd: OwnedFd,
}

impl PerfEvent {
    /// Opens an event; `group` is the one that it is started and read with.
    pub(crate) fn open(
        attributes: &Attributes,
        target: Target,
        group: Option<&PerfEvent>,
    ) -> io::Result<Self> {
        let (pid, cpu) = match target {
            Target::Cpu(cpu) => (-1, cpu.cast_signed()),
            Target::Thread(tid) => (tid, -1),
        };
        let leader = group.map_or(-1, |leader| leader.fd.as_raw_fd());
        // SAFETY: the attributes are a whole `perf_event_attr` whose `size` says how long it is,
        // and live through the call; the other arguments are numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
                pid,
                cpu,
                leader,
                OPEN_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the call returned this descriptor just now and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Starts an event that was opened without running.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the request takes a number and no pointer.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_ENABLE, IOC_FLAG_GROUP) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Reads the group that the event leads into `words`: how many events, time enabled, time
    /// running, then a value each. Returns how many words were filled.
    pub(crate) fn read(&self, words: &mut [u64]) -> io::Result<usize> {
        let bytes = size_of_val(words);
        // SAFETY: the buffer is `words`, writable for its whole length; any bytes are a `u64`.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
        match usize::try_from(read) {
            Ok(read) => Ok(read / size_of::<u64>()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// The records of an event, in memory that the kernel writes.
#[derive(Debug)]
pub(crate) struct Ring {
    event: PerfEvent,
    memory: SharedMemory,
    page_bytes: usize,
    data_bytes: usize,
    /// A record in one piece.
    record: Vec<u8>,
}

impl Ring {
    /// Makes room of `pages`, a power of two, for the records of `event`.
    pub(crate) fn map(event: PerfEvent, pages: usize) -> io::Result<Self> {
        assert!(pages.is_power_of_two(), "the kernel takes powers of two");
        let page_bytes = usize::try_from(page_bytes()).map_err(io::Error::other)?;
        Ok(Self {
            memory: SharedMemory::map(&event.fd, (pages + 1) * page_bytes)?,
            event,
            page_bytes,
            data_bytes: pages * page_bytes,
            record: Vec::new(),
        })
    }

    /// Starts the event.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.event.enable()
    }

    /// Hands every new record to `take`, as its type, its miscellaneous bits and its bytes without
    /// the head, and makes room for others.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(u32, u16, &[u8])) {
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        let mut tail = self.position(TAIL_AT).load(Ordering::Relaxed);
        let mut record = std::mem::take(&mut self.record);
        while tail < head {
            let mut header = [0; HEADER_BYTES];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            // A record is never shorter than its head; if one is, nothing behind it can be found.
            let Some(length) = size.checked_sub(HEADER_BYTES) else {
                tail = head;
                break;
            };
            record.resize(length, 0);
            self.copy(tail + HEADER_BYTES as u64, &mut record);
            take(kind, misc, &record);
            tail += size as u64;
        }
        self.record = record;
        self.position(TAIL_AT).store(tail, Ordering::Release);
    }

    /// Returns a position that both sides look at.
    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the kernel keeps an aligned 64-bit number there, in the first page, for as long as the
        // mapping lives, which is as long as `self`, and both sides change it atomically.
        unsafe { AtomicU64::from_ptr(self.memory.at(at).cast()) }
    }

    /// Copies what lies at position `from` and on, round the end of the ring.
    fn copy(&self, from: u64, into: &mut [u8]) {
        let begin = from as usize & (self.data_bytes - 1);
        let first = into.len().min(self.data_bytes - begin);
        let (one, other) = into.split_at_mut(first);
        let other_length = other.len().min(begin);
        for (at, into) in [(begin, one), (0, &mut other[..other_length])] {
            let source = self.memory.at(self.page_bytes + at);
            // SAFETY: `at + into.len()` does not pass the end of the data, and the kernel does not
            // write between tail and head, where this reads.
            unsafe { std::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len()) };
        }
    }
}

/// Returns why `error` came of opening an event, and what would help.
pub(crate) fn why_not(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let path = "/proc/sys/kernel/perf_event_paranoid";
            let level = std::fs::read_to_string(path);
            let level = level.map_or("hidden".to_owned(), |text| text.trim().to_owned());
            format!(
                "not allowed (kernel.perf_event_paranoid is {level}): run the agent as root or \
                 with CAP_PERFMON"
            )
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine has no hardware counters, as most virtual machines".to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        Some(libc::EMFILE) => "too many open files; raise RLIMIT_NOFILE".to_owned(),
        _ => error.to_string(),
    }
}
