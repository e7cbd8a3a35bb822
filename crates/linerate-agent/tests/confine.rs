//! What the kernel refuses to a confined agent, asked by calls that no safe function makes.

use std::io;

use linerate_agent::confine::denies;

/// What x32 adds to the numbers of calls (`__X32_SYSCALL_BIT` of asm/unistd.h).
const X32_BIT: libc::c_long = 0x4000_0000;
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Makes a call that has to fail; whoever comes out of one that did not ends at once.
fn errno_of(number: libc::c_long, [first, second]: [u64; 2]) -> Option<i32> {
    // SAFETY: the calls under test take numbers, or memory that the caller of this function still has.
    let made = unsafe { libc::syscall(number, first, second, 0_u64, 0_u64, 0_u64) };
    if made == 0 {
        // SAFETY: it ends this process and runs nothing of it.
        unsafe { libc::_exit(1) }
    }
    assert!(made < 0, "call {number:#x} was let through");
    io::Error::last_os_error().raw_os_error()
}

#[test]
fn no_call_makes_a_namespace() {
    // It holds for the calling thread.
    let confined = std::thread::spawn(|| {
        denies().expect("every kernel that runs this has seccomp");
        for flag in NAMESPACES {
            let flag = u64::from(flag.unsigned_abs());
            let signal = u64::from(libc::SIGCHLD.unsigned_abs());
            let cloned = errno_of(libc::SYS_clone, [flag | signal, 0]);
            assert_eq!(cloned, Some(libc::EPERM), "clone {flag:#x}");
            let unshared = errno_of(libc::SYS_unshare, [flag, 0]);
            assert_eq!(unshared, Some(libc::EPERM), "unshare {flag:#x}");
            // By a number of 32 bits the same call is another.
            let by_x32 = errno_of(libc::SYS_clone | X32_BIT, [flag | signal, 0]);
            assert_eq!(by_x32, Some(libc::ENOSYS), "clone {flag:#x} of x32");
        }
        let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
        let arguments = [user, 0, 0, 0, 0, 0, 0, 0];
        let size = size_of_val(&arguments) as u64;
        let cloned = errno_of(libc::SYS_clone3, [arguments.as_ptr() as u64, size]);
        assert_eq!(cloned, Some(libc::ENOSYS));
        let joined = errno_of(libc::SYS_setns, [u64::MAX, user]);
        assert_eq!(joined, Some(libc::EPERM));
        // Threads are made all the same.
        let beside = std::thread::spawn(|| 7);
        assert_eq!(beside.join().expect("a thread"), 7);
    });
    confined.join().expect("it ends");
}
