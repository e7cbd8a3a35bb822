//! The places where datagrams were lost, in words, and what helps there.

use linerate_model::datagram::Place;

use crate::dataset::CellOutcomes;
use crate::reduce::LOSS_PLACES;

/// Returns the places that lost any, with the response and the count of each, the one with the most first.
pub(super) fn places(cell: &CellOutcomes<'_>) -> Vec<(Place, &'static str, f64)> {
    let mut lost: Vec<(Place, &str, f64)> = LOSS_PLACES
        .iter()
        .filter_map(|(place, response)| Some((*place, *response, cell.mean(response)?)))
        .filter(|(_, _, count)| *count > 0.0)
        .collect();
    lost.sort_by(|a, b| b.2.total_cmp(&a.2));
    lost
}

/// Returns what a place is called.
pub(super) fn place_words(place: Place) -> &'static str {
    match place {
        Place::NotLocated => "an unknown location (no counter covers it)",
        Place::Checksum => "the receiver's checksum check",
        _ => place.words(),
    }
}

/// What a loss at `place` means and what to do about it.
pub(super) fn advice(place: Place) -> &'static str {
    match place {
        Place::SenderQueue => {
            "The sending host refused them itself. As a rule its qdisc is full (ENOBUFS), because the \
             requested rate is above what the device or a shaper takes: lower the rate (-b), or raise the \
             queue's limit for bursts. Without a route to the peer it refuses them, too."
        }
        Place::SenderQdisc => {
            "A qdisc of the sending host took them and dropped them later, because they waited too long \
             (codel, fq_codel), because of its policy (red, cake) or as configured (netem): `tc -s qdisc` \
             shows which one. Lower the rate (-b), or give the device another qdisc."
        }
        Place::SenderDevice => {
            "The devices of the sending host count them as dropped: their queues are full. Lower the rate \
             (-b), or use longer rings (`ethtool -G`)."
        }
        Place::ReceiverDevice => {
            "The devices of the receiving host count them as dropped: packets arrive faster than the host \
             processes them. Use longer rings (`ethtool -G`), or spread flows over more queues."
        }
        Place::ReceiverBacklog => {
            "A CPU of the receiving host had more packets waiting than net.core.netdev_max_backlog \
             allows (softnet_stat). Raise it for bursts, or spread packets over CPUs (RPS)."
        }
        Place::ReceiverQdisc => {
            "A qdisc of the receiving host dropped them on their way in: a policer at ingress, or the shaper of a device \
             that what comes is redirected to (ifb). `tc -s qdisc` names it; lower the rate (-b), or change it."
        }
        Place::Reassembly => {
            "They are longer than a packet of the path and come in fragments, for which the receiving host had no memory \
             (Ip: ReasmFails): what misses a fragment takes it for net.ipv4.ipfrag_time, and everything that is cut is \
             dropped meanwhile. Send datagrams that are one packet (`-l 1472` at an MTU of 1500 B, `-l 1452` over IPv6); \
             net.ipv4.ipfrag_high_thresh is the memory."
        }
        Place::ReceiverIp => {
            "They came to the receiving host's IP, which did not deliver them: its packet filter or its connection tracking \
             drops them, as a rule. `nft list ruleset`, `iptables -nvL` and `conntrack -S` of that host name it; `nstat` \
             has what IP counts else."
        }
        Place::Checksum => {
            "They arrived damaged: check for a bad cable, a bad device or a broken offload."
        }
        Place::ReceiveBuffer => {
            "They reached the receiving socket, whose buffer was full: the reader is slower than the \
             sender, or sleeps longer than the buffer lasts. A larger buffer (-w, up to \
             net.core.rmem_max) helps against bursts, a cheaper way to receive (--gro, --batch) or a \
             CPU of its own against a reader that is too slow."
        }
        Place::NotLocated => {
            "Neither host counts them as dropped: they were lost between the hosts, in a switch or on a \
             link, or where this kernel has no counter."
        }
    }
}
