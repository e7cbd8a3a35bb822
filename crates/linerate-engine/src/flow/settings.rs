//! Settings as requested, granted and effective: the arithmetic, without a socket.
//!
//! Sizes are bytes of payload, as text without a prefix; switches are `0` and `1` as the kernel
//! spells them.

use linerate_model::workload::Setting;

/// Returns the usable bytes of what SO_SNDBUF or SO_RCVBUF says.
///
/// The kernel doubles what is asked for, to leave room for its bookkeeping, and says the doubled
/// value (socket(7)). Half of it is what was asked for, and about the payload that fits.
pub(crate) fn usable_bytes(kernel_value: i32) -> u64 {
    u64::try_from(kernel_value).unwrap_or(0) / 2
}

/// Returns the setting of a socket buffer; `sysctl` is the limit of unprivileged requests.
///
/// Granted less than requested has one cause in the kernel (sock_setsockopt in net/core/sock.c):
/// the limit, and then what was granted is its value. More than requested is the floor of 2304
/// bytes, which is not a cap.
pub(crate) fn buffer(
    name: &str,
    sysctl: &str,
    requested: Option<u64>,
    kernel_value: i32,
) -> Setting {
    let granted = usable_bytes(kernel_value);
    let capped_by = requested
        .filter(|&requested| granted < requested)
        .map(|_| format!("{sysctl} = {granted}"));
    let requested = requested.map(|bytes| bytes.to_string());
    Setting {
        capped_by,
        ..Setting::granted(name, requested, Some(granted.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_named_with_its_value() {
        let check = |requested, kernel_value, granted: &str, capped_by: Option<&str>| {
            let setting = buffer("SO_SNDBUF", "net.core.wmem_max", requested, kernel_value);
            assert_eq!(setting.granted.as_deref(), Some(granted));
            assert_eq!(setting.capped_by.as_deref(), capped_by);
        };
        check(None, 16_384, "8192", None);
        check(Some(65_536), 131_072, "65536", None);
        check(
            Some(1 << 20),
            425_984,
            "212992",
            Some("net.core.wmem_max = 212992"),
        );
        check(Some(1024), 4608, "2304", None);
        check(None, -1, "0", None);
    }
}
