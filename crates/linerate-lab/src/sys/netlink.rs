//! Links, addresses and queueing disciplines over rtnetlink, one request at a time.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    LinkXdp,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::tbf::{self, Shape};

/// Longest answer: the kernel's own datagrams stay below 32 KiB.
const ANSWER_BYTES_MAX: usize = 32 << 10;

/// A connection to the network namespace in which it was opened.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// One end of a pair of devices.
#[derive(Debug, Clone)]
pub struct VethEnd<'a> {
    /// Name of the device.
    pub name: &'a str,
    /// The network namespace it is put into; `None` is that of the connection.
    pub network: Option<BorrowedFd<'a>>,
    /// Its queues of either kind; both ends have those of the one with more. veth hands a frame to the receive queue of
    /// the number of the transmit queue that it came from.
    pub queues: u32,
}

impl<'a> VethEnd<'a> {
    /// Returns an end in the network namespace of the connection, with one queue.
    pub fn here(name: &'a str) -> Self {
        Self {
            name,
            network: None,
            queues: 1,
        }
    }
}

/// A pair of devices to be made: what goes in at one end comes out at the other.
#[derive(Debug, Clone)]
pub struct Pair<'a> {
    /// The two ends.
    pub ends: [VethEnd<'a>; 2],
    /// The largest IP packet of each.
    pub mtu_bytes: [u32; 2],
}

impl Netlink {
    /// Connects to the calling thread's network namespace.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Makes a pair of devices.
    pub fn add_pair(&mut self, pair: &Pair<'_>) -> io::Result<()> {
        let [first, second] = &pair.ends;
        let [first_mtu, second_mtu] = pair.mtu_bytes;
        let mut message = end_message(first, second, first_mtu);
        let peer = end_message(second, first, second_mtu);
        let peer = InfoData::Veth(InfoVeth::Peer(peer));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(peer),
        ]));
        self.create(RouteNetlinkMessage::NewLink(message))
    }

    /// Makes a switch; it forwards at once and floods multicast.
    pub fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        let settings = vec![InfoBridge::MulticastSnooping(false)];
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(settings)),
            ]),
        ];
        self.create(RouteNetlinkMessage::NewLink(message))
    }

    /// Returns the index of device `name`.
    pub fn index_of(&mut self, name: &str) -> io::Result<u32> {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        let request = RouteNetlinkMessage::GetLink(message);
        match self.exchange(request, NLM_F_REQUEST)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link.header.index),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Turns device `index` on.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut message = device(index);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    /// Gives device `index` an alias, which everyone who sees it can read.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> io::Result<()> {
        self.set(index, LinkAttribute::IfAlias(alias.to_owned()))
    }

    /// Lets superframes that leave device `index` have `segments` at the most.
    pub fn set_superframe_segments(&mut self, index: u32, segments: u32) -> io::Result<()> {
        self.set(index, LinkAttribute::GsoMaxSegs(segments))
    }

    /// Makes device `index` a port of switch `bridge`.
    pub fn set_port(&mut self, index: u32, bridge: u32) -> io::Result<()> {
        self.set(index, LinkAttribute::Controller(bridge))
    }

    /// Gives device `index` an XDP program, or takes it away with `None`.
    pub fn set_first_look(
        &mut self,
        index: u32,
        program: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let fd = program.map_or(-1, |program| program.as_raw_fd());
        self.set(index, LinkAttribute::Xdp(vec![LinkXdp::Fd(fd)]))
    }

    /// Removes device `index`, and with it its other end.
    pub fn remove(&mut self, index: u32) -> io::Result<()> {
        self.change(RouteNetlinkMessage::DelLink(device(index)))
    }

    /// Gives device `index` an address, usable at once.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix;
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        if address.is_ipv6() {
            // There is nobody to ask whether the address is taken.
            let flags = AddressFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(flags));
        }
        self.create(RouteNetlinkMessage::NewAddress(message))
    }

    /// Puts a token bucket filter with the settings of `shape` at the root of device `index`.
    pub fn add_filter(&mut self, index: u32, shape: &Shape) -> io::Result<()> {
        let mut message = TcMessage::default();
        message.header.index = index as i32;
        message.header.parent = TcHandle::ROOT;
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.attributes = vec![
            TcAttribute::Kind("tbf".to_owned()),
            TcAttribute::Options(tbf::options(shape)),
        ];
        let made = self.create(RouteNetlinkMessage::NewQueueDiscipline(message));
        made.map_err(|error| match error.raw_os_error() {
            // What it says of a qdisc that it does not have (`qdisc_create` in net/sched/sch_api.c).
            Some(libc::ENOENT) => io::Error::from_raw_os_error(libc::EOPNOTSUPP),
            _ => error,
        })
    }

    fn set(&mut self, index: u32, attribute: LinkAttribute) -> io::Result<()> {
        let mut message = device(index);
        message.attributes.push(attribute);
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.exchange(message, flags).map(drop)
    }

    fn change(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.exchange(message, NLM_F_REQUEST | NLM_F_ACK).map(drop)
    }

    /// Sends one request and takes its one answer: a message, or that it was done.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
            self.socket.recv(&mut answer, 0)?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
                NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
                _ => Ok(None),
            };
        }
    }
}

fn device(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn end_message(end: &VethEnd<'_>, other: &VethEnd<'_>, mtu_bytes: u32) -> LinkMessage {
    let queues = end.queues.max(other.queues);
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Mtu(mtu_bytes),
        LinkAttribute::NumTxQueues(queues),
        LinkAttribute::NumRxQueues(queues),
    ];
    if let Some(network) = end.network {
        let fd = network.as_raw_fd();
        message.attributes.push(LinkAttribute::NetNsFd(fd));
    }
    message
}
