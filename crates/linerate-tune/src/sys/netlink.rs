//! What rtnetlink knows of a device in the calling thread's network namespace: the size of its aggregates, and its
//! queueing discipline.

use std::io;
use std::time::{Duration, Instant};

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, Nla as _, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Longest answer: the kernel's own datagrams stay below 32 KiB.
const ANSWER_BYTES_MAX: usize = 32 << 10;
/// The token bucket filter, and two of its attributes (`include/uapi/linux/pkt_sched.h`): its peak rate in bytes per second,
/// which a lab's filter has above 32 bits, and the depth of its second bucket.
const TBF: &str = "tbf";
const TBF_PEAK_RATE64: u16 = 5;
const TBF_PEAK_BURST: u16 = 7;
/// How long the frames of trials that are over may take to leave, and how often it is looked: a full queue of a lab's host
/// takes half a second at 1 Gbit/s.
const EMPTY_DEADLINE: Duration = Duration::from_secs(2);
const EMPTY_LOOK: Duration = Duration::from_millis(1);
/// After how long what waits in a filter that was changed is taken for a frame that is too long for it: what else comes between
/// trials are single segments and ACKs, and a whole one leaves a link of 1 Mbit/s in 12 ms.
const STUCK_LOOK: Duration = Duration::from_millis(50);
/// Ethernet's header, which an MTU does not count, and room for a VLAN tag.
const HEADER_BYTES: u32 = 14;
const VLAN_TAG_BYTES: u32 = 4;
/// The longest packet that is no aggregate: IP's length has 16 bits.
const PACKET_BYTES_MAX: u32 = 65_535;

/// The largest GSO aggregate of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// Of IPv4.
    Ipv4,
    /// Of everything else; up to 64 KiB a change is one of IPv4 too (`netif_set_gso_max_size`).
    Others,
}

/// A queueing discipline at the root of a device.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Discipline {
    /// What it is called.
    pub(crate) kind: String,
    /// Whether the kernel chose it: it has no handle then.
    pub(crate) is_default: bool,
}

/// Returns the bytes of the largest aggregate; absent where the kernel keeps none of that kind.
pub(crate) fn aggregate_bytes(device: &str, of: Aggregate) -> io::Result<Option<u32>> {
    let link = link(device)?;
    Ok(link
        .attributes
        .iter()
        .find_map(|attribute| match (of, attribute) {
            (Aggregate::Ipv4, LinkAttribute::GsoIpv4MaxSize(bytes))
            | (Aggregate::Others, LinkAttribute::GsoMaxSize(bytes)) => Some(*bytes),
            _ => None,
        }))
}

/// Sets the bytes of the largest aggregate.
pub(crate) fn set_aggregate_bytes(device: &str, of: Aggregate, bytes: u32) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = link(device)?.header.index;
    message.attributes.push(match of {
        Aggregate::Ipv4 => LinkAttribute::GsoIpv4MaxSize(bytes),
        Aggregate::Others => LinkAttribute::GsoMaxSize(bytes),
    });
    ask(RouteNetlinkMessage::SetLink(message), 0).map(drop)
}

/// Returns the queueing discipline at the root.
pub(crate) fn discipline(device: &str) -> io::Result<Discipline> {
    let message = root(device)?;
    // Without an echo the kernel tells a group of listeners, and not who asked (`qdisc_get_notify`).
    let Some(RouteNetlinkMessage::NewQueueDiscipline(found)) =
        ask(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_ECHO)?
    else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let kind = found
        .attributes
        .into_iter()
        .find_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind),
            _ => None,
        });
    Ok(Discipline {
        kind: kind.ok_or(io::ErrorKind::InvalidData)?,
        is_default: found.header.handle == TcHandle::UNSPEC,
    })
}

/// Puts the queueing discipline `kind` at the root, in place of what is there.
pub(crate) fn set_discipline(device: &str, kind: &str) -> io::Result<()> {
    let mut message = root(device)?;
    message.attributes.push(TcAttribute::Kind(kind.to_owned()));
    let made = ask(
        RouteNetlinkMessage::NewQueueDiscipline(message),
        NLM_F_CREATE | NLM_F_REPLACE,
    );
    made.map(drop).map_err(|error| match error.raw_os_error() {
        // What it says of a qdisc that it does not have (`qdisc_create` in net/sched/sch_api.c).
        Some(libc::ENOENT) => io::Error::new(
            io::ErrorKind::Unsupported,
            format!("this kernel has no queueing discipline `{kind}`"),
        ),
        _ => error,
    })
}

/// Lets the token bucket filter at the root cut aggregates into frames of packets of `mtu_bytes`, once nothing waits there;
/// does nothing where there is no such filter, or none that cuts.
///
/// A filter with a peak rate takes frames up to the depth of its second bucket, and cuts aggregates that are longer
/// (`tbf_segment` in net/sched/sch_tbf.c). A frame that came before and is longer than a new depth would wait for ever, and
/// all behind it. One may come between the look and the change: what does not leave after it leaves by a bucket that
/// is deep enough for any packet, and the change is made once more. All other settings stay: they are written as the kernel tells them.
pub(crate) fn cut_to(device: &str, mtu_bytes: u32) -> io::Result<()> {
    if root(device).is_err() {
        // A device of a test, or one that went away: who wrote its MTU has been told.
        return Ok(());
    }
    let deadline = Instant::now() + EMPTY_DEADLINE;
    loop {
        let Some(filter) = Filter::of(device)? else {
            return Ok(());
        };
        if !is_empty_by(device, deadline)? {
            let why = format!("frames still wait in the filter of {device}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        if cut(device, &filter, mtu_bytes)? {
            return Ok(());
        }
    }
}

/// Gives `filter` the depth for packets of `mtu_bytes`; returns whether what waits leaves it. Where it does not, the filter takes
/// frames of any length from then on.
fn cut(device: &str, filter: &Filter, mtu_bytes: u32) -> io::Result<bool> {
    filter.deepen(device, mtu_bytes)?;
    let leaves = is_empty_by(device, Instant::now() + STUCK_LOOK)?;
    if !leaves {
        filter.deepen(device, PACKET_BYTES_MAX)?;
    }
    Ok(leaves)
}

/// A token bucket filter that cuts aggregates.
struct Filter {
    options: Vec<DefaultNla>,
    /// Frames and aggregates that wait.
    waiting: u32,
}

impl Filter {
    /// Returns the one at the root of `device`, where there is one.
    fn of(device: &str) -> io::Result<Option<Self>> {
        let asked = RouteNetlinkMessage::GetQueueDiscipline(root(device)?);
        let Some(RouteNetlinkMessage::NewQueueDiscipline(found)) = ask(asked, NLM_F_ECHO)? else {
            return Ok(None);
        };
        let filter = cutting_filter(&found)?.map(|options| Self {
            options,
            waiting: waiting(&found),
        });
        Ok(filter)
    }

    /// Gives its second bucket the depth of the frames of packets of `mtu_bytes`.
    fn deepen(&self, device: &str, mtu_bytes: u32) -> io::Result<()> {
        let frame_bytes = mtu_bytes + HEADER_BYTES + VLAN_TAG_BYTES;
        let mut options = self.options.clone();
        let depth = frame_bytes.to_ne_bytes().to_vec();
        options.push(DefaultNla::new(TBF_PEAK_BURST, depth));
        let mut message = root(device)?;
        let options = options.into_iter().map(TcOption::Other);
        message.attributes = vec![
            TcAttribute::Kind(TBF.to_owned()),
            TcAttribute::Options(options.collect()),
        ];
        ask(RouteNetlinkMessage::NewQueueDiscipline(message), 0).map(drop)
    }
}

/// Returns whether nothing waits in the filter of `device` at some moment before `deadline`.
fn is_empty_by(device: &str, deadline: Instant) -> io::Result<bool> {
    loop {
        if Filter::of(device)?.is_none_or(|filter| filter.waiting == 0) {
            return Ok(true);
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::thread::sleep(EMPTY_LOOK);
    }
}

/// Returns the options of a token bucket filter that cuts; absent for anything else.
fn cutting_filter(found: &TcMessage) -> io::Result<Option<Vec<DefaultNla>>> {
    let is_tbf = |it: &TcAttribute| matches!(it, TcAttribute::Kind(kind) if kind == TBF);
    let options = found.attributes.iter().find_map(|it| match it {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    let (Some(options), true) = (options, found.attributes.iter().any(is_tbf)) else {
        return Ok(None);
    };
    let told = options.iter().map(plain).collect::<io::Result<Vec<_>>>()?;
    let told = told.concat();
    let cuts = told.iter().any(|it| it.kind() == TBF_PEAK_RATE64);
    Ok(cuts.then_some(told))
}

/// Returns the frames and aggregates that wait.
fn waiting(found: &TcMessage) -> u32 {
    let stats = found.attributes.iter().find_map(|it| match it {
        TcAttribute::Stats2(stats) => Some(stats),
        _ => None,
    });
    let queue = stats.into_iter().flatten().find_map(|it| match it {
        TcStats2::Queue(queue) => Some(queue.qlen),
        _ => None,
    });
    queue.unwrap_or(0)
}

/// Returns the options that are in one of a filter that the parser does not know: it leaves them as they came.
fn plain(option: &TcOption) -> io::Result<Vec<DefaultNla>> {
    let mut nested = vec![0; option.value_len()];
    option.emit_value(&mut nested);
    let inner = NlasIterator::new(&nested).map(|inner| {
        let inner = inner.map_err(invalid)?;
        Ok(DefaultNla::new(inner.kind(), inner.value().to_vec()))
    });
    inner.collect()
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Takes the queueing discipline away: the kernel puts its default there.
pub(crate) fn remove_discipline(device: &str) -> io::Result<()> {
    ask(RouteNetlinkMessage::DelQueueDiscipline(root(device)?), 0).map(drop)
}

fn root(device: &str) -> io::Result<TcMessage> {
    let mut message = TcMessage::default();
    message.header.index = link(device)?.header.index as i32;
    message.header.parent = TcHandle::ROOT;
    Ok(message)
}

fn link(device: &str) -> io::Result<LinkMessage> {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(device.to_owned()));
    match ask(RouteNetlinkMessage::GetLink(message), 0)? {
        Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sends one request over a socket of its own and takes its one answer: a message, or that it was done.
fn ask(message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    // An answer comes even where there is nothing to tell.
    header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    header.sequence_number = 1;
    let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
    socket.recv(&mut answer, 0)?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    match answer.payload {
        NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::LinkFlags;

    use super::*;

    #[test]
    fn the_loopback_device_has_what_every_kernel_gives_it() {
        let queues = discipline("lo").expect("everyone may read it");
        assert_eq!(queues.kind, "noqueue");
        assert!(queues.is_default);
        let bytes = aggregate_bytes("lo", Aggregate::Others).expect("everyone may read it");
        assert!(bytes.is_some_and(|bytes| bytes >= 1500), "{bytes:?}");
        assert!(discipline("no-such-device").is_err());
    }

    /// Bytes per second of the filter of the test, and what passes at once.
    const SLOW_BYTES_PER_S: u64 = 20_000;
    const BURST_BYTES: u32 = 6000;
    /// Payload of a datagram that is longer than an Ethernet's packets: a quarter of a second of that rate.
    const LONG_BYTES: usize = 5000;

    /// Runs `test` in a network of its own, of which it has the loopback device; where nobody may make one, it is left out.
    fn in_own_network(test: fn()) {
        let run = move || {
            // SAFETY: no pointers; this thread alone is in the new network, and it ends with the test.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            if made == 0 {
                test();
            } else {
                let why = io::Error::last_os_error();
                assert!(std::env::var_os("CI").is_none(), "no network: {why}");
            }
        };
        std::thread::spawn(run).join().expect("the test");
    }

    /// Brings the loopback device up, with a slow filter that takes jumbo frames.
    fn slow_loopback() {
        let mut up = LinkMessage::default();
        up.header.index = link("lo").expect("it is there").header.index;
        (up.header.flags, up.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
        ask(RouteNetlinkMessage::SetLink(up), 0).expect("up");
        let peak = 1u64 << 37;
        let rate = |bytes_per_s: u64| {
            // Cell, link layer (Ethernet), overhead, alignment and least bytes; then the rate, as far as 32 bits hold it.
            let rate = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
            [&[0, 1, 0, 0, 0, 0, 0, 0], &rate.to_ne_bytes()[..]].concat()
        };
        let limit = 1_000_000u32.to_ne_bytes();
        let parameters = [
            rate(SLOW_BYTES_PER_S),
            rate(peak),
            limit.to_vec(),
            vec![0; 8],
        ]
        .concat();
        let depth = 9018u32.to_ne_bytes().to_vec();
        let options = [
            (1, parameters),
            (4, SLOW_BYTES_PER_S.to_ne_bytes().to_vec()),
            (TBF_PEAK_RATE64, peak.to_ne_bytes().to_vec()),
            (6, BURST_BYTES.to_ne_bytes().to_vec()),
            (TBF_PEAK_BURST, depth),
        ];
        let options = options.map(|(kind, value)| TcOption::Other(DefaultNla::new(kind, value)));
        let mut message = root("lo").expect("it is there");
        message.attributes = vec![
            TcAttribute::Kind(TBF.to_owned()),
            TcAttribute::Options(options.into()),
        ];
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        ask(RouteNetlinkMessage::NewQueueDiscipline(message), flags).expect("a filter");
    }

    /// Takes the filter away at the end, also of a test that failed: a frame that never leaves keeps its network, and a CPU busy.
    struct Away;

    impl Drop for Away {
        fn drop(&mut self) {
            let _gone = remove_discipline("lo");
        }
    }

    #[test]
    fn a_frame_that_comes_between_the_look_and_the_change_does_not_stop_the_filter() {
        in_own_network(|| {
            let _away = Away;
            slow_loopback();
            let filter = Filter::of("lo").expect("read").expect("a filter that cuts");
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let own = socket.local_addr().expect("an address");
            for _ in 0..2 {
                socket.send_to(&[0; LONG_BYTES], own).expect("sent");
            }
            let soon = || Instant::now() + Duration::from_secs(5);
            assert!(!cut("lo", &filter, 1500).expect("changed"), "one waits");
            assert!(is_empty_by("lo", soon()).expect("read"), "it left");
            cut_to("lo", 1500).expect("nothing waits");
            // Now what is longer is not taken at all, and stops nothing.
            let _too_long = socket.send_to(&[0; LONG_BYTES], own);
            socket.send_to(&[0; 100], own).expect("sent");
            assert!(is_empty_by("lo", soon()).expect("read"));
        });
    }
}
