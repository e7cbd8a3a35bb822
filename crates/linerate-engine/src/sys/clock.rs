//! CLOCK_MONOTONIC: reading it, reading its last tick, sleeping until an instant of it.
//!
//! The one address of instants. They come from the vDSO, which reads the TSC (or `cntvct_el0`)
//! where the kernel trusts it; reading it by hand would save 4 ns, see decision 0014.

use std::hint::black_box;
use std::io;
use std::time::Instant;

/// Readings in a row of which the time is taken, and how often that is done: 30 µs in all with the
/// vDSO. The least counts, since whatever interrupts only adds.
const READINGS: u32 = 32;
const ROUNDS: u32 = 4;

/// What one reading takes, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReadingCost {
    /// By [`now_ns`].
    pub(crate) ours_ns: f64,
    /// By the system call that the vDSO saves, or makes.
    pub(crate) system_call_ns: f64,
}

/// Returns the host's CLOCK_MONOTONIC in nanoseconds.
///
/// Through the vDSO: about 22 ns where the TSC is trusted, a system call (170 ns or more) where
/// the clock source is not readable from user space.
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns CLOCK_MONOTONIC as of the last timer tick: up to 10 ms late, never early.
///
/// About 5 ns, on every clock source, since it only copies what the tick left in the vDSO page.
pub(crate) fn tick_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// Returns the CPU time that the calling thread has used; a system call, 200 ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Measures what a reading takes.
pub(crate) fn reading_cost() -> ReadingCost {
    ReadingCost {
        ours_ns: least_ns(now_ns),
        system_call_ns: least_ns(|| {
            let mut now = timespec(0);
            // SAFETY: clock_gettime writes one timespec to `now`, which is valid and exclusively
            // ours; it is the same call as in `read`, by number.
            let status = unsafe {
                libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now)
            };
            status as u64 + now.tv_nsec as u64
        }),
    }
}

fn least_ns(read: impl Fn() -> u64) -> f64 {
    let round = |_| {
        let began = Instant::now();
        for _ in 0..READINGS {
            black_box(read());
        }
        began.elapsed().as_nanos() as f64 / f64::from(READINGS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Sleeps until CLOCK_MONOTONIC reaches `at_ns`; returns at once if it has.
pub(crate) fn sleep_until(at_ns: u64) {
    let at = timespec(at_ns);
    loop {
        // SAFETY: clock_nanosleep reads `at`, which outlives the call; with TIMER_ABSTIME the
        // fourth argument is not used and may be null.
        let error = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &at,
                std::ptr::null_mut(),
            )
        };
        if error != libc::EINTR {
            return;
        }
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = timespec(0);
    // SAFETY: clock_gettime writes one timespec to `now`, which is valid and exclusively ours.
    let status = unsafe { libc::clock_gettime(clock, &mut now) };
    // Both clocks exist since Linux 2.6.32; a failure would mean a kernel that cannot run us.
    assert_eq!(status, 0, "clock_gettime: {}", io::Error::last_os_error());
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timespec(at_ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as _,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    }
}
