//! The pages of programs and libraries that this process has mapped.

use std::ffi::{c_int, c_long, c_void};
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::buffer::PAGE_BYTES;

/// Whether [`map_single_pages`] was granted.
static IS_BY_PAGE: AtomicBool = AtomicBool::new(false);

/// Lets the kernel map no more of the program and its libraries than the pages that are touched, where it
/// can (Linux 6.7), and gives back what it has mapped until now.
///
/// Around each page of a file that is touched it otherwise maps 64 KiB (`do_fault_around` in mm/memory.c). A
/// measurement runs through a thousand places of 19 MB, so that two thirds of what was resident had never
/// been used. A mapping in which userfaultfd watches writes is exempt (`should_fault_around`); watched
/// asynchronously (`UFFD_FEATURE_WP_ASYNC`) nobody is told of anything, and nothing else changes. A page
/// then takes a fault of its own, which costs a third of one of 16 pages.
///
/// Returns whether it was granted: containers, for one, may not use userfaultfd, and the kernel then goes on
/// as before.
pub fn map_single_pages() -> bool {
    let granted = watch_unwritten().is_some();
    if granted {
        IS_BY_PAGE.store(true, Ordering::Relaxed);
        give_back_text();
    }
    granted
}

/// Gives back what the kernel has mapped around the code that was needed so far, if it does so: see
/// [`give_back_text`].
pub fn give_back_neighbours() {
    if !IS_BY_PAGE.load(Ordering::Relaxed) {
        give_back_text();
    }
}

/// Gives the code and the constants that were needed so far back to the kernel, for as long as nobody
/// asks for them again.
///
/// The kernel lets them lie: at the end of a short measurement most of what is resident is code
/// that ran once, such as reading the command line. Who calls this between the
/// phases of a run holds no more than the largest phase needs. The pages stay in the page cache, and
/// each that is needed again costs a fault of up to a microsecond: not to be called while
/// something is measured, but for its first milliseconds.
pub fn give_back_text() {
    advise(libc::MADV_DONTNEED);
}

/// Asks the kernel to read the code and constants that are not in its page cache, and returns at
/// once: 0.2 ms where all of them are.
///
/// Some hosts reclaim what was not used for half a minute (DAMON's scheme `pageout`), and the code
/// behind a measurement is not used during it. Read page by page when it is needed, it took 2 to
/// 10 ms of a run of a second on such a host.
pub fn read_text_ahead() {
    advise(libc::MADV_WILLNEED);
}

/// Gives an advice on all that [`unwritten`] returns.
fn advise(advice: c_int) {
    for pages in unwritten() {
        // SAFETY: whole pages of a private mapping of a file that nothing was written to: they are
        // read from the file again, with the same content. An error changes nothing.
        unsafe {
            libc::madvise(pages.start as *mut c_void, pages.len(), advice);
        }
    }
}

/// `struct uffdio_api` of linux/userfaultfd.h.
#[repr(C)]
struct Api {
    version: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register` there.
#[repr(C)]
struct Register {
    start: u64,
    bytes: u64,
    mode: u64,
    ioctls: u64,
}

const UFFD_USER_MODE_ONLY: c_int = 1;
const UFFD_API: u64 = 0xaa;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFDIO_API: libc::Ioctl = libc::_IOWR::<Api>(UFFD_API as u32, 0x3f);
const UFFDIO_REGISTER: libc::Ioctl = libc::_IOWR::<Register>(UFFD_API as u32, 0);

/// Watches what [`unwritten`] returns for writes, which there are none of, for as long as the process lives.
fn watch_unwritten() -> Option<()> {
    let flags = libc::O_CLOEXEC | UFFD_USER_MODE_ONLY;
    // SAFETY: takes flags and makes a descriptor, or returns -1.
    let made: c_long = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    let made = c_int::try_from(made).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has made it just now, and nobody else knows it.
    let watch = unsafe { OwnedFd::from_raw_fd(made) };
    let mut api = Api {
        version: UFFD_API,
        features: UFFD_FEATURE_WP_ASYNC,
        ioctls: 0,
    };
    // SAFETY: the descriptor is open, and the request reads and writes an `uffdio_api`, which `api` is.
    let granted = unsafe { libc::ioctl(watch.as_raw_fd(), UFFDIO_API, &raw mut api) };
    if granted != 0 {
        return None;
    }
    for pages in unwritten() {
        let mut register = Register {
            start: pages.start as u64,
            bytes: pages.len() as u64,
            mode: UFFDIO_REGISTER_MODE_WP,
            ioctls: 0,
        };
        // SAFETY: as above, of an `uffdio_register`. What cannot be watched, such as the vDSO, stays as it is.
        unsafe {
            libc::ioctl(watch.as_raw_fd(), UFFDIO_REGISTER, &raw mut register);
        }
    }
    // Closing it would end the watch.
    let _ = watch.into_raw_fd();
    Some(())
}

/// Returns the pages that are mapped from the files of the program and its libraries and were never
/// written.
fn unwritten() -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // SAFETY: the callback takes what dl_iterate_phdr gives it and keeps nothing, `found` outlives
    // the call; it returns 0 so that all objects are shown.
    unsafe {
        libc::dl_iterate_phdr(Some(find), (&raw mut found).cast());
    }
    found
}

/// Adds those parts of an object that are mapped from its file and were never written to `found`.
unsafe extern "C" fn find(
    object: *mut libc::dl_phdr_info,
    _bytes: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes an object that is valid during the call.
    let object = unsafe { &*object };
    // SAFETY: it passes on the pointer that `unwritten` gave it, to a list that outlives the call.
    let found = unsafe { &mut *found.cast::<Vec<Range<usize>>>() };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the headers are `dlpi_phnum` structures at `dlpi_phdr`, which live as long as the
    // object is loaded.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let is_written = |header: &libc::Elf64_Phdr| header.p_flags & libc::PF_W != 0;
    let loaded = headers.iter().filter(|one| one.p_type == libc::PT_LOAD);
    for header in loaded.filter(|header| !is_written(header)) {
        let begin = object.dlpi_addr as usize + header.p_vaddr as usize;
        // Where pages are larger, the kernel takes none of what is asked that is no whole number of them.
        let end = (begin + header.p_memsz as usize).next_multiple_of(PAGE_BYTES);
        found.push(begin & !(PAGE_BYTES - 1)..end);
    }
    0
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn resident_file_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("procfs is there");
        let line = status.lines().find(|line| line.starts_with("RssFile:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.expect("Linux 4.5").parse().expect("a number")
    }

    #[test]
    fn what_was_given_back_is_there_again_when_it_is_needed() {
        let text: String = (0..100).map(|number| number.to_string()).collect();
        let before_kib = resident_file_kib();
        give_back_text();
        let after_kib = resident_file_kib();
        assert!(after_kib < before_kib, "{after_kib} of {before_kib} KiB");
        read_text_ahead();
        let again: String = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(text, again);
    }

    /// Constants that nobody but a test touches.
    static UNTOUCHED: [u8; 64 * PAGE_BYTES] = [1; 64 * PAGE_BYTES];

    /// Returns whether the page at an address is mapped.
    fn is_resident(address: *const u8) -> bool {
        let pagemap = File::open("/proc/self/pagemap").expect("procfs is there");
        let mut entry = [0; 8];
        let offset = (address as usize / PAGE_BYTES * entry.len()) as u64;
        pagemap.read_exact_at(&mut entry, offset).expect("an entry");
        u64::from_ne_bytes(entry) >> 63 == 1
    }

    #[test]
    fn a_page_is_mapped_without_its_neighbours() {
        if !map_single_pages() {
            println!("skipped: userfaultfd does not watch files here (Linux 6.7)");
            return;
        }
        let middle = UNTOUCHED[UNTOUCHED.len() / 2..].as_ptr();
        assert!(!is_resident(middle));
        assert_eq!(std::hint::black_box(&UNTOUCHED)[UNTOUCHED.len() / 2], 1);
        assert!(is_resident(middle));
        assert!(!is_resident(middle.wrapping_add(PAGE_BYTES)));
        assert!(!is_resident(middle.wrapping_sub(PAGE_BYTES)));
    }
}
