//! Questions to the `ethtool` family of generic netlink and its answers, as views of bytes.
//!
//! The family is described in Documentation/networking/ethtool-netlink.rst; numbers are those of
//! include/uapi/linux/ethtool_netlink.h. What a driver does not support has no attribute.

use super::{Channels, Features, Mode, Moderation, Pause, Rings};
use crate::attributes::{attribute, each_attribute, first_attribute, until_zero};
use crate::bytes::u32_at;
use crate::generic::{attributes_of, header};

/// Set in the type of an attribute that holds others; the kernel insists on it.
const NLA_F_NESTED: u16 = 1 << 15;
/// The header of every question: the first attribute.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
/// Most bits of a set that are read; the kernel has some 120 link modes and 70 features.
const BITS_MAX: usize = 1024;
/// Numbers of a device by the number of their attribute.
pub(super) type Lookup<'a> = &'a dyn Fn(u16) -> Option<u32>;

/// What can be asked of a device, by the number of the command (ETHTOOL_MSG_…_GET).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    LinkModes = 4,
    LinkState = 6,
    Features = 11,
    Rings = 15,
    Channels = 17,
    Coalesce = 19,
    Pause = 21,
}

/// Makes the payload of a question about one device. Sets of bits are asked for with their names.
pub(super) fn question(command: Command, device: &str) -> Vec<u8> {
    let name = attribute(HEADER_DEV_NAME, &[device.as_bytes(), &[0]].concat());
    let mut payload = header(command as u8);
    payload.extend(attribute(HEADER | NLA_F_NESTED, &name));
    payload
}

/// Reads how a link runs and could run.
pub(super) fn read_mode(payload: &[u8]) -> Option<Mode> {
    const AUTONEG: u16 = 2;
    const OURS: u16 = 3;
    const PEER: u16 = 4;
    const SPEED: u16 = 5;
    const DUPLEX: u16 = 6;
    let attributes = attributes_of(payload)?;
    let ours = first_attribute(attributes, OURS).map(bits);
    let of = |kind| number(attributes, kind);
    Some(Mode {
        // The mask of our modes is what is supported, the value what is advertised.
        supported: ours.as_ref().map(|ours| names(ours, |_| true)),
        advertised: ours.as_ref().map(|ours| names(ours, |bit| bit.set)),
        peer: first_attribute(attributes, PEER).map(|peer| names(&bits(peer), |_| true)),
        ..Mode::of(of(SPEED), of(DUPLEX)?, of(AUTONEG)?)
    })
}

/// Reads whether the device has a link; absent where the driver does not say.
pub(super) fn read_state(payload: &[u8]) -> Option<Option<bool>> {
    const LINK: u16 = 2;
    let link = number(attributes_of(payload)?, LINK);
    Some(link.map(|link| link != 0))
}

/// Reads the features.
pub(super) fn read_features(payload: &[u8]) -> Option<Features> {
    const HW: u16 = 2;
    const ACTIVE: u16 = 4;
    let attributes = attributes_of(payload)?;
    let active = names(&bits(first_attribute(attributes, ACTIVE)?), |bit| bit.set);
    let changeable = bits(first_attribute(attributes, HW)?);
    let is_on = |name: &str| active.iter().any(|on| on == name);
    // NETIF_F_ALL_TSO.
    let tso = [
        "tx-tcp-segmentation",
        "tx-tcp-ecn-segmentation",
        "tx-tcp-mangleid-segmentation",
        "tx-tcp6-segmentation",
    ];
    Some(Features {
        tso: tso.into_iter().any(is_on),
        gso: is_on("tx-generic-segmentation"),
        gro: is_on("rx-gro"),
        off: Some(names(&changeable, |bit| bit.set && !is_on(&bit.name))),
        on: Some(active.clone()),
    })
}

/// Reads what `read` wants of the numbers in an answer.
pub(super) fn read_numbers<T>(payload: &[u8], read: fn(Lookup<'_>) -> Option<T>) -> Option<T> {
    let attributes = attributes_of(payload)?;
    read(&|kind| number(attributes, kind))
}

/// Reads the entries of the rings.
pub(super) fn rings(of: Lookup<'_>) -> Option<Rings> {
    let rings = Rings {
        rx_max: of(2),
        tx_max: of(5),
        rx: of(6),
        tx: of(9),
    };
    (rings.rx.is_some() || rings.tx.is_some()).then_some(rings)
}

/// Reads the numbers of queues; what is absent is none.
pub(super) fn channels(of: Lookup<'_>) -> Option<Channels> {
    let of = |kind| of(kind).unwrap_or(0);
    let (combined_max, combined) = (of(5), of(9));
    Some(Channels {
        rx_max: of(2).max(combined_max),
        tx_max: of(3).max(combined_max),
        rx: of(6).saturating_add(combined),
        tx: of(7).saturating_add(combined),
    })
}

/// Reads when the card interrupts.
pub(super) fn moderation(of: Lookup<'_>) -> Option<Moderation> {
    Some(Moderation {
        rx_usecs: of(2),
        rx_frames: of(3),
        tx_usecs: of(6),
        tx_frames: of(7),
        adaptive_rx: of(11).map(|on| on != 0),
        adaptive_tx: of(12).map(|on| on != 0),
    })
}

/// Reads whether pause frames are negotiated, honoured and sent.
pub(super) fn pause(of: Lookup<'_>) -> Option<Pause> {
    let of = |kind| of(kind).map(|on| on != 0);
    Some(Pause {
        autoneg: of(2)?,
        rx: of(3)?,
        tx: of(4)?,
    })
}

/// Returns the number in the first attribute of a type: of 32 bits, or of 8.
fn number(attributes: &[u8], wanted: u16) -> Option<u32> {
    match first_attribute(attributes, wanted)? {
        [byte] => Some(u32::from(*byte)),
        bytes => u32_at(bytes, 0),
    }
}

/// One bit of a set.
struct Bit {
    name: String,
    set: bool,
}

/// Reads a set of bits with names. One without a mask lists those that are set.
fn bits(set: &[u8]) -> Vec<Bit> {
    const NOMASK: u16 = 1;
    const BITS: u16 = 3;
    const BIT: u16 = 1;
    const BIT_NAME: u16 = 2;
    const BIT_VALUE: u16 = 3;
    let is_list = first_attribute(set, NOMASK).is_some();
    let mut bits = Vec::new();
    let all = first_attribute(set, BITS).unwrap_or_default();
    each_attribute(all, |kind, bit| {
        let Some(name) = first_attribute(bit, BIT_NAME).filter(|_| kind == BIT) else {
            return;
        };
        if bits.len() < BITS_MAX {
            bits.push(Bit {
                name: String::from_utf8_lossy(until_zero(name)).into_owned(),
                set: is_list || first_attribute(bit, BIT_VALUE).is_some(),
            });
        }
    });
    bits
}

fn names(bits: &[Bit], wanted: impl Fn(&Bit) -> bool) -> Vec<String> {
    let wanted = bits.iter().filter(|bit| wanted(bit));
    wanted.map(|bit| bit.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Answers of Linux 6.18 for a virtio card and for loopback.
    macro_rules! recorded {
        ($name:literal) => {
            include_bytes!(concat!("../../tests/messages/ethtool/", $name, ".bin"))
        };
    }

    #[test]
    fn a_question_names_the_device() {
        let asked = question(Command::Rings, "eth0");
        let name = [9, 0, 2, 0, b'e', b't', b'h', b'0', 0, 0, 0, 0];
        let expected = [[15, 1, 0, 0].as_slice(), &[16, 0, 1, 0x80], &name].concat();
        assert_eq!(asked, expected);
    }

    #[test]
    fn a_recorded_card_of_a_virtual_machine() {
        let mode = Mode {
            speed_mbps: None,
            full_duplex: None,
            autoneg: false,
            supported: Some(Vec::new()),
            advertised: Some(Vec::new()),
            peer: None,
        };
        assert_eq!(read_mode(recorded!("virtio-linkmodes")), Some(mode));
        assert_eq!(read_state(recorded!("virtio-linkstate")), Some(Some(true)));
        let expected = Rings {
            rx: Some(256),
            rx_max: Some(256),
            tx: Some(256),
            tx_max: Some(256),
        };
        assert_eq!(
            read_numbers(recorded!("virtio-rings"), rings),
            Some(expected)
        );
        let one = Channels {
            rx: 1,
            rx_max: 1,
            tx: 1,
            tx_max: 1,
        };
        assert_eq!(
            read_numbers(recorded!("virtio-channels"), channels),
            Some(one)
        );
        // What the driver does not have is not in the answer.
        let moderation = Moderation {
            rx_usecs: Some(0),
            rx_frames: Some(1),
            tx_usecs: Some(0),
            tx_frames: Some(1),
            adaptive_rx: Some(false),
            adaptive_tx: None,
        };
        assert_eq!(
            read_numbers(recorded!("virtio-coalesce"), self::moderation),
            Some(moderation)
        );
        let features = read_features(recorded!("virtio-features")).expect("features");
        assert!(features.gso && features.gro);
        let on = features.on.expect("names");
        assert!(on.iter().any(|name| name == "tx-scatter-gather"), "{on:?}");
        let off = [
            "tx-tcp-mangleid-segmentation",
            "tx-nocache-copy",
            "rx-gro-list",
            "rx-udp-gro-forwarding",
        ];
        assert_eq!(features.off.expect("names"), off);
    }

    #[test]
    fn a_recorded_loopback_has_features_only() {
        assert_eq!(read_state(recorded!("lo-linkstate")), Some(Some(true)));
        let features = read_features(recorded!("lo-features")).expect("features");
        assert!(features.tso && features.gso && features.gro);
    }

    /// Makes a bit of a set.
    fn bit(name: &str, set: bool) -> Vec<u8> {
        let mut bit = attribute(1, &7_u32.to_ne_bytes());
        bit.extend(attribute(2, &[name.as_bytes(), &[0]].concat()));
        if set {
            bit.extend(attribute(3, &[]));
        }
        attribute(1 | NLA_F_NESTED, &bit)
    }

    /// Makes a set of bits; one without a mask is a list.
    fn set(is_list: bool, bits: &[Vec<u8>]) -> Vec<u8> {
        let mut set = if is_list {
            attribute(1, &[])
        } else {
            Vec::new()
        };
        set.extend(attribute(2, &120_u32.to_ne_bytes()));
        set.extend(attribute(3 | NLA_F_NESTED, &bits.concat()));
        set
    }

    #[test]
    fn modes_are_supported_and_some_of_them_advertised() {
        let ours = [
            bit("Autoneg", true),
            bit("10000baseT/Full", false),
            bit("25000baseCR/Full", true),
        ];
        let peer = [bit("25000baseCR/Full", false)];
        let answer = [
            vec![4, 1, 0, 0],
            attribute(2, &[1]),
            attribute(3 | NLA_F_NESTED, &set(false, &ours)),
            attribute(4 | NLA_F_NESTED, &set(true, &peer)),
            attribute(5, &25_000_u32.to_ne_bytes()),
            attribute(6, &[1]),
        ];
        let texts = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let expected = Mode {
            speed_mbps: Some(25_000),
            full_duplex: Some(true),
            autoneg: true,
            supported: texts(&["Autoneg", "10000baseT/Full", "25000baseCR/Full"]),
            advertised: texts(&["Autoneg", "25000baseCR/Full"]),
            peer: texts(&["25000baseCR/Full"]),
        };
        assert_eq!(read_mode(&answer.concat()), Some(expected));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload: Vec<u8>) {
            let _ = (read_mode(&payload), read_state(&payload), read_features(&payload));
            let _ = (read_numbers(&payload, rings), read_numbers(&payload, channels));
            let _ = (read_numbers(&payload, moderation), read_numbers(&payload, pause));
        }

        #[test]
        fn no_damaged_answer_panics(at in 0_usize..2932, byte: u8, end in 0_usize..2932) {
            let mut answer = recorded!("virtio-features").to_vec();
            answer[at] = byte;
            let _ = read_features(&answer[..end]);
            let _ = read_mode(&answer);
        }
    }
}
