//! What the examples share: the CPU time of their own process.

use std::io;

/// Ticks a second in /proc (USER_HZ), the same on every Linux that we run on.
const TICKS_PER_S: f64 = 100.0;

/// Returns user and system time of this process so far, in seconds.
pub fn cpu_s() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // After the name in parentheses, which may hold blanks: field 3 and on; 14 and 15 are utime
    // and stime.
    let after_name = text.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at - 3)
            .and_then(|ticks| ticks.parse::<f64>().ok())
    };
    let (Some(user), Some(system)) = (ticks(14), ticks(15)) else {
        return Err(io::Error::other("read utime and stime of /proc/self/stat"));
    };
    Ok((user + system) / TICKS_PER_S)
}
