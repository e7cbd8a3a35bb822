//! Steps on one device, each with its error.

use std::os::fd::BorrowedFd;

use linerate_model::host::{LAB_LINK_ALIAS, LAB_LINK_UP};

use super::{LabError, at_step};
use crate::shape::{Shape, is_framed, shape_of, superframe_segments};
use crate::spec::{LinkSpec, Way};
use crate::sys::ethtool::{TSO_OFF, set_feature};
use crate::sys::netlink::Netlink;
use crate::sys::packet::PacketSocket;

/// Makes the far end of `name` take the path through NAPI and GRO, where the rate allows it.
pub(super) fn tune_end(name: &str, link: &LinkSpec) -> Result<(), LabError> {
    if !(is_framed(link.rate) || link.is_of_frames()) {
        return Ok(());
    }
    set_feature(name, TSO_OFF).map_err(at_step(format!("turn off tso of {name}")))
}

/// Lets device `index`, a host's veth that is on, know the numbers of its receive queues.
///
/// veth numbers them when it is given an XDP program and keeps the numbers when that is taken away
/// (`veth_enable_xdp_range` in drivers/net/veth.c); without, all are number 0. Since Linux 6.16 a
/// receive queue that is full stops the sender's queue of its number, and when it has room again it
/// wakes the one of the number it knows (`veth_poll`): a sender's queue other than 0 then stops for
/// ever, and with it the filter that limits the link.
pub(super) fn number_queues(
    netlink: &mut Netlink,
    index: u32,
    program: BorrowedFd<'_>,
) -> Result<(), LabError> {
    let mut look = |program| {
        netlink
            .set_first_look(index, program)
            .map_err(at_step(format!("number the queues of device {index}")))
    };
    look(Some(program))?;
    look(None)
}

/// Limits what leaves device `name` of a host to the rate of `link`, unless a modem does.
pub(super) fn limit_host(
    netlink: &mut Netlink,
    name: &str,
    link: &LinkSpec,
) -> Result<(), LabError> {
    if link.up.queue.is_some() {
        return Ok(());
    }
    let shape = shape_of(link, Way::Up).map(|shape| shape.of_host(link.host_queue));
    limit(netlink, name, shape)?;
    let Some(rate) = link.rate_of(Way::Up) else {
        return Ok(());
    };
    let index = index_of(netlink, name)?;
    let segments = superframe_segments(rate, link.mtu_bytes);
    netlink
        .set_superframe_segments(index, segments)
        .map_err(at_step(format!("limit aggregates (GSO) of {name}")))
}

/// Limits what leaves device `name`, where there is a limit.
pub(super) fn limit(
    netlink: &mut Netlink,
    name: &str,
    shape: Option<Shape>,
) -> Result<(), LabError> {
    let Some(shape) = shape else {
        return Ok(());
    };
    let index = index_of(netlink, name)?;
    netlink
        .add_filter(index, &shape)
        .map_err(at_step(format!("limit {name}")))
}

/// Writes the rates of `link` on device `index`, for programs that enter the host by hand.
pub(super) fn tell_rate(
    netlink: &mut Netlink,
    index: u32,
    link: &LinkSpec,
) -> Result<(), LabError> {
    let Some(rate) = link.rate else {
        return Ok(());
    };
    let up = link.up.rate.filter(|up| *up != rate);
    let up = up.map_or(String::new(), |up| format!("{LAB_LINK_UP}{:.0}", up.0));
    netlink
        .set_alias(index, &format!("{LAB_LINK_ALIAS}{:.0}{up}", rate.0))
        .map_err(at_step(format!("write the rate on device {index}")))
}

/// Makes device `port` a port of `switch`.
pub(super) fn plug(netlink: &mut Netlink, port: &str, switch: &str) -> Result<(), LabError> {
    let (port_index, switch_index) = (index_of(netlink, port)?, index_of(netlink, switch)?);
    netlink
        .set_port(port_index, switch_index)
        .map_err(at_step(format!("plug {port} into {switch}")))
}

/// Turns device `name` on and returns its index.
pub(super) fn turn_on(netlink: &mut Netlink, name: &str) -> Result<u32, LabError> {
    let index = index_of(netlink, name)?;
    netlink
        .set_up(index)
        .map_err(at_step(format!("turn on {name}")))?;
    Ok(index)
}

fn index_of(netlink: &mut Netlink, name: &str) -> Result<u32, LabError> {
    netlink
        .index_of(name)
        .map_err(at_step(format!("find {name}")))
}

/// Opens device `name` for raw frames.
pub(super) fn open_frames(netlink: &mut Netlink, name: &str) -> Result<PacketSocket, LabError> {
    let index = turn_on(netlink, name)?;
    PacketSocket::open(index).map_err(at_step(format!("open the frames of {name}")))
}
