//! What a thread can say and set about itself: identity, CPU, timer slack.

use std::io;

/// Returns the kernel's id of the calling thread.
pub(crate) fn id() -> i32 {
    // SAFETY: gettid takes no argument and cannot fail.
    unsafe { libc::gettid() }
}

/// Returns the CPU that the calling thread runs on at this moment.
pub(crate) fn cpu() -> Option<u32> {
    // SAFETY: sched_getcpu takes no argument; -1 reports a kernel that cannot tell.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

/// Returns the CPU time that the calling thread has used so far, in user and in system mode, in
/// nanoseconds.
pub(crate) fn cpu_times_ns() -> (u64, u64) {
    // SAFETY: rusage is numbers only, for which all zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage, which is ours; a failure leaves zeros.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Lets the calling thread run on `cpus` only.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    const BITS: usize = usize::BITS as usize;
    // One bit a CPU; the kernel takes a mask of any length, so none of its CPUs is out of reach.
    let most = cpus.iter().max().copied().unwrap_or(0);
    let mut mask = vec![0_usize; most / BITS + 1];
    for cpu in cpus {
        mask[cpu / BITS] |= 1 << (cpu % BITS);
    }
    // SAFETY: the kernel reads `size_of_val` bytes of the mask, which is that long and outlives
    // the call; it is passed as the cpu_set_t that glibc declares, of which only bytes are read.
    let status = unsafe {
        libc::sched_setaffinity(0, std::mem::size_of_val(&mask[..]), mask.as_ptr().cast())
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Lets timers of the calling thread fire when they are due instead of up to 50 µs later.
///
/// The slack of prctl(2) exists to batch wake-ups; it would be a skew between flows that should
/// start at one instant. A kernel that refuses leaves 50 µs, which the measured skew shows.
pub(crate) fn sharpen_timers() {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: PR_SET_TIMERSLACK takes one number and no pointer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
}

/// Has the calling thread run only while nobody else wants its CPU: SCHED_IDLE of sched(7), which every thread may
/// take and only a privileged one may give back.
pub fn run_when_idle() -> io::Result<()> {
    // struct sched_param of the kernel: one number. musl's has the rest of POSIX, too.
    let least: libc::c_int = 0;
    // SAFETY: the kernel reads one sched_param, which outlives the call; 0 is the calling thread. The C
    // library's own function does not exist in musl, which speaks POSIX threads only.
    let status = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_IDLE,
            &raw const least,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_always_step_back() {
        let thread = std::thread::spawn(|| {
            run_when_idle().unwrap();
            // The 41st field: policy (proc(5)).
            std::fs::read_to_string("/proc/thread-self/stat").unwrap()
        });
        let stat = thread.join().unwrap();
        let after_name = stat.rsplit(')').next().unwrap();
        assert_eq!(after_name.split_whitespace().nth(38), Some("5"));
    }

    #[test]
    fn pinning_to_a_cpu_that_does_not_exist_is_refused() {
        assert!(pin(&[100_000]).is_err());
        assert!(id() > 0);
        assert!(cpu().is_some());
    }
}
