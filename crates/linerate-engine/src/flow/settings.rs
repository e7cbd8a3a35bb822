//! Settings as requested, granted and effective: the arithmetic, without a socket.
//!
//! Sizes are bytes of payload, as text without a prefix; switches are `0` and `1` as the kernel
//! spells them.

use linerate_model::setting::name;
use linerate_model::workload::{Part, Setting};

/// What keeps an algorithm from a connection: that of its route, which connecting takes in place of the one
/// that was set (tcp_ca_dst_init in net/ipv4/tcp_output.c), and says nothing.
const BY_ROUTE: &str = "congctl of the route (`ip route get ADDRESS` shows it)";
/// What DCTCP is where the handshake did not agree on ECN (dctcp_init in net/ipv4/tcp_dctcp.c).
const DCTCP_WITHOUT_ECN: &str = "dctcp-reno";
/// What kept it from that.
const WITHOUT_ECN: &str =
    "a handshake without ECN (net.ipv4.tcp_ecn, and an algorithm with ECN at the listening host)";

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

/// Returns the setting of the congestion control; `granted` is what a connection has.
pub(crate) fn congestion(requested: Option<&str>, granted: Option<String>, part: Part) -> Setting {
    let capped_by = instead(requested, granted.as_deref(), part);
    Setting {
        capped_by,
        ..Setting::granted(name::TCP_CONGESTION, requested.map(str::to_owned), granted)
    }
}

/// Notes the congestion control that a connection has at its end.
pub(crate) fn see_congestion(setting: &mut Setting, effective: Option<String>, part: Part) {
    let cap = instead(setting.requested.as_deref(), effective.as_deref(), part);
    setting.capped_by = cap.or(setting.capped_by.take());
    setting.effective = effective;
}

/// Returns what put another algorithm in the place of the requested one, if another is in force. An end that
/// only receives has no window to keep, and what it has changes nothing.
fn instead(requested: Option<&str>, in_force: Option<&str>, part: Part) -> Option<String> {
    let (requested, in_force) = requested.zip(in_force)?;
    if requested == in_force || part == Part::Receiver {
        return None;
    }
    Some(match (requested, in_force) {
        ("dctcp", DCTCP_WITHOUT_ECN) => WITHOUT_ECN.to_owned(),
        _ => BY_ROUTE.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_that_a_route_puts_in_the_place_of_the_requested_one_is_told() {
        let check =
            |requested, granted: &str, effective: &str, part, capped_by: [Option<&str>; 2]| {
                let mut setting = congestion(requested, Some(granted.to_owned()), part);
                assert_eq!(setting.granted.as_deref(), Some(granted));
                assert_eq!(setting.capped_by.as_deref(), capped_by[0], "granted");
                see_congestion(&mut setting, Some(effective.to_owned()), part);
                assert_eq!(setting.effective.as_deref(), Some(effective));
                assert_eq!(setting.capped_by.as_deref(), capped_by[1], "effective");
            };
        let route = Some(BY_ROUTE);
        check(Some("bbr"), "bbr", "bbr", Part::Sender, [None, None]);
        check(Some("bbr"), "cubic", "cubic", Part::Sender, [route, route]);
        check(Some("bbr"), "bbr", "cubic", Part::Requester, [None, route]);
        check(Some("bbr"), "cubic", "cubic", Part::Receiver, [None, None]);
        check(None, "cubic", "bbr", Part::Sender, [None, None]);
        let ecn = Some(WITHOUT_ECN);
        check(
            Some("dctcp"),
            "dctcp-reno",
            "dctcp-reno",
            Part::Responder,
            [ecn, ecn],
        );
    }

    #[test]
    fn an_algorithm_that_cannot_be_read_is_not_another_one() {
        let mut setting = congestion(Some("bbr"), None, Part::Sender);
        see_congestion(&mut setting, None, Part::Sender);
        assert_eq!((setting.effective, setting.capped_by), (None, None));
    }

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
