//! The C library's allocator, where it is glibc's.

/// Size from which a piece of memory is mapped on its own: what glibc begins with.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: libc::c_int = 128 << 10;

/// Lets the allocator hold little memory that nobody uses: one arena for all threads, so that what
/// one thread gave back serves the next, and large pieces that go back to the kernel when freed.
///
/// glibc makes an arena of its own for each thread that allocates while another does, up to eight a
/// CPU, and gives freed memory of one arena to no other. A controller whose short threads each take
/// over thousands of readings held 130 MB for 8000 flows that way, and 90 in one arena. What it
/// costs is a lock between threads that allocate; those that move payload never do.
///
/// glibc also raises the size from which pieces are mapped on their own up to 32 MiB as such pieces
/// are freed; later ones then lie in the heap, and what is allocated after them keeps it from
/// shrinking. Naming the size, even its first value, ends that.
///
/// To be called before the first thread is started; without effect with another C library.
pub fn frugal_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt asks for nothing but a parameter that it knows; one that it does not know
    // makes it return 0 and change nothing, which is no harm.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: as above.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    }
}

/// Gives back to the kernel what lies free in the heap between pieces that are held.
///
/// glibc gives back the end of the heap only, and one small piece there keeps what is free before it: an
/// agent whose measurements leave nothing behind still grows by some hundred bytes of each.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim asks for nothing; it takes the heap's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
