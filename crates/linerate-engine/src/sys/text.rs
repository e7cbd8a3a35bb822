//! The pages of programs and libraries that this process has mapped.

use std::ffi::{c_int, c_void};

/// Mappings begin at multiples of this. Where pages are larger, the kernel takes none of what is asked
/// here that is not a whole number of them, and nothing changes.
const PAGE_BYTES: usize = 4096;

/// Gives the code and the constants that were needed so far back to the kernel, for as long as nobody
/// asks for them again.
///
/// The kernel maps 64 KiB around each page of a file that is touched (`fault_around_bytes` in
/// mm/memory.c) and lets them lie: at the end of a short measurement most of what is resident is code
/// that ran once, such as reading the command line, and its neighbours. Who calls this between the
/// phases of a run holds no more than the largest phase needs. The pages stay in the page cache, and
/// each 64 KiB that are needed again cost a fault of about a microsecond: not to be called while
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

/// Gives an advice on all that is mapped from the files of the program and its libraries and was never
/// written.
fn advise(mut advice: c_int) {
    // SAFETY: the callback takes what dl_iterate_phdr gives it and keeps nothing, `advice` outlives
    // the call; it returns 0 so that all objects are shown.
    unsafe {
        libc::dl_iterate_phdr(Some(advise_on), (&raw mut advice).cast());
    }
}

/// Gives an advice, at `advice`, on those parts of an object that are mapped from its file and were never
/// written.
unsafe extern "C" fn advise_on(
    object: *mut libc::dl_phdr_info,
    _bytes: usize,
    advice: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes an object that is valid during the call.
    let object = unsafe { &*object };
    // SAFETY: it passes on the pointer that `advise` gave it, to a number that outlives the call.
    let advice = unsafe { *advice.cast::<c_int>() };
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
        let end = (begin + header.p_memsz as usize).next_multiple_of(PAGE_BYTES);
        let begin = begin & !(PAGE_BYTES - 1);
        // SAFETY: whole pages of a private mapping of a file that nothing was written to: they are
        // read from the file again, with the same content. An error changes nothing.
        unsafe {
            libc::madvise(begin as *mut c_void, end - begin, advice);
        }
    }
    0
}

#[cfg(test)]
mod tests {
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
}
