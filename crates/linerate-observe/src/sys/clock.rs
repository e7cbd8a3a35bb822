//! CLOCK_MONOTONIC and the tick that procfs counts in.

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time that the calling thread took so far, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid, writable timespec for the whole call, and both clocks exist on every
    // Linux, so the call cannot fail and always fills it.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Runs `read` and returns its result with the instant halfway through it.
///
/// The kernel takes the values somewhere inside the call; halfway is off by at most half of it.
pub(crate) fn timed<T>(read: impl FnOnce() -> T) -> (T, u64) {
    let begin_ns = now_ns();
    let result = read();
    (result, begin_ns + (now_ns() - begin_ns) / 2)
}

/// Returns the size of a page of memory, in bytes.
pub(crate) fn page_bytes() -> i64 {
    // SAFETY: as in `user_hz`: sysconf touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes.max(1)
}

/// USER_HZ where the kernel does not say: 100 on every architecture that Rust runs on.
const USER_HZ_USUAL: u64 = 100;

/// Returns the ticks per second in which procfs counts CPU time (USER_HZ, not the kernel's HZ).
pub(crate) fn user_hz() -> u64 {
    // SAFETY: sysconf takes any name, touches no memory of ours and returns -1 when it is unknown.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks)
        .ok()
        .filter(|&ticks| ticks > 0)
        .unwrap_or(USER_HZ_USUAL)
}
