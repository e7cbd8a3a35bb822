//! Observers in network namespaces that the tests make: they must show that namespace's devices
//! and counters, whichever namespace procfs and sysfs were mounted in.

use linerate_model::host::FactValue;
use linerate_model::metric::Metric;
use linerate_model::sample::{QdiscId, Sample, Subject};
use linerate_observe::{ObserveConfig, Observer, facts, link_of_address, observers};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::sched::{CloneFlags, unshare};

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
/// Runs `inside` on a thread in a network namespace of its own; tells when that is not allowed.
fn in_own_network<T: Send + 'static>(inside: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).ok()?;
        Some(inside())
    });
    let result = thread.join().expect("the thread inside ends well");
    if result.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no privilege");
        println!("skipped: no privilege");
    }
    result
}

/// Asks the kernel to make something in the calling thread's network namespace.
fn make(message: RouteNetlinkMessage) {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let mut socket = Socket::new(NETLINK_ROUTE).expect("a netlink socket");
    socket.bind_auto().expect("its address");
    socket
        .send_to(&bytes, &SocketAddr::new(0, 0), 0)
        .expect("the message is sent");
    let (answer, _) = socket.recv_from_full().expect("an answer");
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).expect("a message");
    match answer.payload {
        NetlinkPayload::Error(error) => assert_eq!(error.code, None, "{error:?}"),
        other => panic!("not an answer: {other:?}"),
    }
}

fn named_link(name: &str) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    link
}

/// Makes a pair of devices that are up; an end can be put up only once the other exists.
fn make_pair_with_address() {
    let mut pair = named_link("left0");
    pair.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(named_link("right0")))),
    ]));
    make(RouteNetlinkMessage::NewLink(pair));
    for name in ["left0", "right0"] {
        let mut link = named_link(name);
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        make(RouteNetlinkMessage::SetLink(link));
    }
    let index = nix::net::if_::if_nametoindex("left0").expect("the device exists");
    let address = std::net::Ipv4Addr::new(192, 0, 2, 1);
    let mut message = AddressMessage::default();
    message.header.family = netlink_packet_route::AddressFamily::Inet;
    message.header.prefix_len = 24;
    message.header.index = index;
    message.attributes = vec![
        AddressAttribute::Local(address.into()),
        AddressAttribute::Address(address.into()),
    ];
    make(RouteNetlinkMessage::NewAddress(message));
}

fn config() -> ObserveConfig {
    ObserveConfig {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        lab: true,
        host_wide: true,
        threads: vec![("main".to_owned(), nix::unistd::gettid().as_raw())],
    }
}

fn sample(observers: &mut [Box<dyn Observer>]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for observer in observers {
        observer.sample(&mut samples);
    }
    samples
}

fn value(samples: &[Sample], metric: Metric) -> Option<i64> {
    let found = samples.iter().find(|sample| sample.metric == metric);
    found.map(|sample| sample.value)
}

fn links(samples: &[Sample]) -> Vec<&str> {
    let mut names: Vec<_> = samples
        .iter()
        .filter_map(|sample| match &sample.subject {
            Subject::Link(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn observers_stay_with_the_namespace_in_which_they_were_opened() {
    let inside = in_own_network(|| {
        make_pair_with_address();
        observers(&config())
    });
    let Some(mut observers) = inside else { return };
    // Sampled from this thread, which lives in another namespace.
    let samples = sample(&mut observers);
    assert_eq!(links(&samples), ["left0", "right0"]);
    assert_eq!(value(&samples, Metric::SnmpTcpInSegs), Some(0));
    assert_eq!(value(&samples, Metric::SnmpTcpOutSegs), Some(0));
    for observer in [&observers[2], &observers[3]] {
        assert_eq!(observer.availability().missing, None);
    }
}

/// Gives a device the discipline that drops nothing and counts: a queue of packets.
fn make_queue(device: &str) {
    let mut qdisc = TcMessage::default();
    qdisc.header.index = nix::net::if_::if_nametoindex(device).expect("the device exists") as i32;
    qdisc.header.handle = TcHandle {
        major: 0x8001,
        minor: 0,
    };
    qdisc.header.parent = TcHandle::ROOT;
    qdisc.attributes.push(TcAttribute::Kind("pfifo".to_owned()));
    make(RouteNetlinkMessage::NewQueueDiscipline(qdisc));
}

/// Sends datagrams to nobody.
fn send_through(address: std::net::Ipv4Addr, datagrams: usize) {
    let socket = std::net::UdpSocket::bind("192.0.2.1:0").expect("a socket");
    // Broadcast needs no neighbour, so each of them leaves.
    socket.set_broadcast(true).expect("allowed");
    for _ in 0..datagrams {
        socket.send_to(&[0; 1000], (address, 9)).expect("sent");
    }
}

#[test]
fn a_discipline_counts_what_was_sent_through_it() {
    let found = in_own_network(|| {
        make_pair_with_address();
        make_queue("left0");
        let mut observers = observers(&config());
        let begin = sample(&mut observers);
        send_through(std::net::Ipv4Addr::new(192, 0, 2, 255), 20);
        (begin, sample(&mut observers))
    });
    let Some((begin, end)) = found else { return };
    let subject = Subject::Qdisc("left0".to_owned(), QdiscId(0x8001_0000));
    let of = |samples: &[Sample], metric| {
        let ours = samples.iter().filter(|sample| sample.subject == subject);
        value(&ours.cloned().collect::<Vec<_>>(), metric).expect("it is counted")
    };
    let grown = |metric| of(&end, metric) - of(&begin, metric);
    let packets = grown(Metric::QdiscTxPackets);
    assert!((20..40).contains(&packets), "{packets} packets");
    // Payload, and headers of UDP, IP and Ethernet.
    assert!(grown(Metric::QdiscTxBytes) >= 20 * (1000 + 8 + 20 + 14));
    assert_eq!(of(&end, Metric::QdiscDrops), 0);
    assert_eq!(of(&end, Metric::QdiscBacklogPackets), 0);
    // The other end has no discipline that counts.
    let others =
        |sample: &&Sample| matches!(&sample.subject, Subject::Qdisc(name, _) if name != "left0");
    assert_eq!(end.iter().find(others), None);
}

#[test]
fn a_new_namespace_has_no_device_that_is_up() {
    let inside = in_own_network(|| (observers(&config()), facts(&config())));
    let Some((mut observers, facts)) = inside else {
        return;
    };
    assert_eq!(links(&sample(&mut observers)), [""; 0]);
    assert!(
        !facts
            .facts
            .iter()
            .any(|fact| fact.name.starts_with("link."))
    );
}

#[test]
fn facts_are_those_of_the_namespace_and_a_veth_has_no_rate() {
    let Some(facts) = in_own_network(|| {
        make_pair_with_address();
        facts(&config())
    }) else {
        return;
    };
    for device in ["left0", "right0"] {
        let name = |fact: &str| format!("link.{device}.{fact}");
        assert_eq!(facts.text(&name("kind")), Some("veth"));
        assert_eq!(facts.text(&name("driver")), Some("veth"));
        assert_eq!(facts.number(&name("mtu_bytes")), Some(1500.0));
        for feature in ["tso", "gso", "gro"] {
            let state = facts.text(&name(feature));
            assert!(matches!(state, Some("on" | "off")), "{feature}: {state:?}");
        }
        let address = facts.text(&name("address")).unwrap_or_default();
        assert_eq!(address.len(), "00:00:00:00:00:00".len());
        let no_rate = FactValue::Missing("veth has no rate of its own".to_owned());
        assert_eq!(facts.value(&name("speed_bps")), Some(&no_rate));
        let width = facts.value(&name("pcie_width"));
        assert!(matches!(width, Some(FactValue::Missing(_))), "{width:?}");
        assert!(
            facts
                .number(&name("rx_queues"))
                .is_some_and(|queues| queues >= 1.0)
        );
    }
}

#[test]
fn addresses_are_those_of_the_namespace() {
    let own = std::net::Ipv4Addr::new(192, 0, 2, 1).into();
    let peer = std::net::Ipv4Addr::new(192, 0, 2, 77).into();
    let Some((owner, foreign)) = in_own_network(move || {
        make_pair_with_address();
        let foreign = link_of_address(peer);
        (link_of_address(own), foreign)
    }) else {
        return;
    };
    assert_eq!(owner.as_deref(), Some("left0"));
    assert_eq!(foreign, None);
}
