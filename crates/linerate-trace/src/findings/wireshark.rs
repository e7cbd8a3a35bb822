//! What Wireshark and tshark call what was found, as display filters.
//!
//! Each matches a frame at the least wherever its finding is told, also where the line between two of Wireshark's words
//! is not ours: it is better to show a few frames more than none. `dns.response_in` and `ntp.response_in` need a second
//! pass, which Wireshark makes and tshark does with `-2`.

use std::net::IpAddr;

use super::{TcpFinding, TcpFindingKind};
use crate::frame::PORT_NTP;

impl TcpFinding {
    /// Returns the filter for all frames of its kind.
    pub(crate) fn display_filter(&self) -> Option<String> {
        use TcpFindingKind as Kind;
        let is_v4 = matches!(self.who, IpAddr::V4(_));
        let is_ntp = self.who_port == Some(PORT_NTP);
        let of_family = |v4, v6| if is_v4 { v4 } else { v6 };
        let of_protocol = |dns, ntp| if is_ntp { ntp } else { dns };
        let filter = match self.kind {
            Kind::PathMtu if self.is_by_router() => {
                of_family("icmp.type == 3 && icmp.code == 4", "icmpv6.type == 2")
            }
            Kind::RetransmissionTimeout | Kind::SackReneging | Kind::PathMtu => {
                "tcp.analysis.retransmission"
            }
            // What comes 3 ms after the gap is out of order to Wireshark, whoever asked for it; what the receiver has
            // is spurious to it only where that was acknowledged before.
            Kind::Loss | Kind::LossBurst | Kind::Spurious => {
                "tcp.analysis.retransmission || tcp.analysis.out_of_order"
            }
            // At the sender its receiver's words are all that shows.
            Kind::Reordering => {
                "tcp.analysis.out_of_order || tcp.options.sack_le || tcp.analysis.duplicate_ack"
            }
            Kind::ZeroWindow => "tcp.analysis.zero_window",
            // `window_full` is said of a window that is filled to its last byte, which few are.
            Kind::WindowLimit | Kind::SendLimit => "tcp.analysis.bytes_in_flight",
            Kind::SlowReader => {
                let half = self.value / 2;
                return Some(format!("tcp.window_size <= {half} && tcp.flags.syn == 0"));
            }
            Kind::NagleDelayedAck | Kind::DelayedAck => "tcp.analysis.ack_rtt > 0.025",
            Kind::Refused | Kind::Reset | Kind::ResetUnused | Kind::HalfOpen => {
                "tcp.flags.reset == 1"
            }
            Kind::Unanswered => "tcp.flags.syn == 1 && tcp.flags.ack == 0",
            Kind::SynAgain => "tcp.flags.syn == 1 && tcp.analysis.retransmission",
            Kind::QuestionsUnanswered => of_protocol(
                "dns.flags.response == 0 && !dns.response_in || dns.time > 5",
                "ntp.flags.mode == 3 && !ntp.response_in || ntp.delta_time > 5",
            ),
            Kind::AnswersLate => of_protocol("dns.time >= 0.05", "ntp.delta_time >= 0.05"),
            Kind::Unreachable => of_family(
                "icmp.type == 3 || icmp.type == 11",
                "icmpv6.type == 1 || icmpv6.type == 3",
            ),
            Kind::PeerSilent => {
                "tcp.analysis.retransmission || tcp.analysis.keep_alive || tcp.analysis.zero_window_probe"
            }
            Kind::KeepaliveUnanswered => "tcp.analysis.keep_alive",
            Kind::Queue | Kind::RoundTrips => "tcp.analysis.ack_rtt",
            Kind::CongestionMarks => of_family("ip.dsfield.ecn == 3", "ipv6.tclass.ecn == 3"),
            Kind::NoWindowScaling | Kind::ClampedMss | Kind::HandshakeIncomplete => {
                "tcp.flags.syn == 1"
            }
            Kind::SlowHandshake => "tcp.flags.syn == 1 && tcp.flags.ack == 1",
            // Of programs, and of what only the host's own frames show, Wireshark has no word.
            Kind::SlowAnswer
            | Kind::ClientPause
            | Kind::IdleSender
            | Kind::SmallSegments
            | Kind::Superframes => return None,
        };
        Some(filter.to_owned())
    }
}
