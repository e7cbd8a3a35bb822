//! Where a knob stands on a host, and its value as text.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linerate_model::experiment::{Factor, Level};
use linerate_model::knob::{Feature, Number, Place};

use crate::error::TuneError;
use crate::sys::netlink::Aggregate;
use crate::sys::{ethtool, netlink};
use crate::target::Target;

/// Most receive queues of a device that are looked at.
const QUEUES_MAX: usize = 1024;
/// What a queueing discipline is read as that nobody asked for.
const BY_DEFAULT: &str = " (the default)";
/// The file with the MTU of a device.
const MTU: &str = "mtu";
/// Longest name of a device (`IFNAMSIZ` less its end).
const DEVICE_CHARS_MAX: usize = 15;

/// One place that can be read and written.
#[derive(Debug)]
pub(crate) enum Spot {
    /// A file with one value.
    File(PathBuf),
    /// The file with the MTU of a device, whose filter cuts aggregates into frames of it.
    Mtu(PathBuf, String),
    /// One of the values of a file, from 0.
    Field(PathBuf, usize),
    /// A file with CPUs as hexadecimal digits in groups.
    Mask(PathBuf),
    /// A feature of a device.
    Feature(String, Feature),
    /// A number that the driver of a device keeps.
    Number(String, Number),
    /// The largest aggregate of a device.
    Aggregate(String, Aggregate),
    /// The queueing discipline at the root of a device.
    Discipline(String),
}

/// Returns where `place` of knob `factor` is on `host`.
pub(crate) fn spots(
    host: &Target<'_>,
    factor: Factor,
    place: Place,
) -> Result<Vec<Spot>, TuneError> {
    let sysctl = |name: &str| host.root.join("proc/sys").join(name);
    let device = || {
        let device = host.device.ok_or(TuneError::NoDevice(factor))?;
        if is_device(device) {
            Ok(device)
        } else {
            Err(TuneError::Device {
                knob: factor,
                device: device.to_owned(),
            })
        }
    };
    let folder = |device: &str| host.root.join("sys/class/net").join(device);
    Ok(match place {
        Place::Sysctl(name) => vec![Spot::File(sysctl(name))],
        Place::SysctlField(name, at) => vec![Spot::Field(sysctl(name), at)],
        Place::Device(MTU) => {
            let device = device()?;
            vec![Spot::Mtu(folder(device).join(MTU), device.to_owned())]
        }
        Place::Device(name) => vec![Spot::File(folder(device()?).join(name))],
        Place::ReceiveQueues => {
            let queues = folder(device()?).join("queues");
            receive_queues(&queues).map_err(|source| TuneError::Read {
                knob: factor,
                place: queues.display().to_string(),
                source,
            })?
        }
        Place::Feature(feature) => vec![Spot::Feature(device()?.to_owned(), feature)],
        Place::Number(number) => vec![Spot::Number(device()?.to_owned(), number)],
        Place::Aggregate => aggregates(device()?),
        Place::Discipline => vec![discipline(device()?, factor)?],
    })
}

/// Returns the sizes of aggregates that the kernel keeps of a device. That of IPv4 is put back last: until then each
/// change of the other may be one of it.
fn aggregates(device: &str) -> Vec<Spot> {
    let of_ipv4 = netlink::aggregate_bytes(device, Aggregate::Ipv4);
    let has_ipv4 = matches!(of_ipv4, Ok(Some(_)));
    let all = [(Aggregate::Ipv4, has_ipv4), (Aggregate::Others, true)];
    let kept = all.into_iter().filter(|(_, is_kept)| *is_kept);
    kept.map(|(of, _)| Spot::Aggregate(device.to_owned(), of))
        .collect()
}

/// Returns the queueing discipline of a device, unless somebody put it there: what it was made of would not be put back.
fn discipline(device: &str, factor: Factor) -> Result<Spot, TuneError> {
    let spot = Spot::Discipline(device.to_owned());
    match netlink::discipline(device) {
        Ok(found) if found.is_default => Ok(spot),
        Ok(found) => Err(TuneError::Taken {
            knob: factor,
            place: spot.to_string(),
            has: found.kind,
        }),
        Err(source) => Err(TuneError::Read {
            knob: factor,
            place: spot.to_string(),
            source,
        }),
    }
}

/// Returns whether `name` can be that of a device, and nothing else of a path (`dev_valid_name`).
fn is_device(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_graphic() && letter != '/' && letter != ':';
    (1..=DEVICE_CHARS_MAX).contains(&name.len())
        && name.chars().all(is_plain)
        && name != "."
        && name != ".."
}

fn receive_queues(queues: &Path) -> io::Result<Vec<Spot>> {
    let is_receiving = |number: &usize| queues.join(format!("rx-{number}")).is_dir();
    let numbers = (0..QUEUES_MAX).take_while(is_receiving);
    let spots: Vec<Spot> = numbers
        .map(|number| Spot::Mask(queues.join(format!("rx-{number}/rps_cpus"))))
        .collect();
    if spots.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(spots)
}

/// Returns what `level` is at `place`; absent where it is of another kind.
pub(crate) fn text_of(place: Place, level: &Level, cpus: &[u32]) -> Option<String> {
    match (place, level) {
        (Place::ReceiveQueues, Level::Switch(true)) => Some(mask_of(cpus)),
        (_, Level::Switch(on)) if is_switch(place) => Some(u8::from(*on).to_string()),
        (Place::Sysctl(_) | Place::SysctlField(..), Level::Size(size)) => Some(size.0.to_string()),
        (Place::Device(MTU), Level::Size(size)) => Some(size.0.to_string()),
        (Place::Aggregate, Level::Size(size)) => Some(size.0.to_string()),
        (Place::Sysctl(_) | Place::Number(_), Level::Count(count)) => Some(count.to_string()),
        (Place::Sysctl(_) | Place::Discipline, Level::Word(word)) => Some(word.clone()),
        _ => None,
    }
}

fn is_switch(place: Place) -> bool {
    match place {
        Place::ReceiveQueues | Place::Feature(_) => true,
        Place::Device(name) => name != MTU,
        Place::Sysctl(_) | Place::SysctlField(..) => false,
        Place::Number(_) | Place::Aggregate | Place::Discipline => false,
    }
}

/// Returns CPUs as the kernel writes and reads them: 32 a group, the highest first (`bitmap_parse`).
fn mask_of(cpus: &[u32]) -> String {
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let group = |number: u32| {
        let own = cpus.iter().filter(|cpu| *cpu / 32 == number);
        own.fold(0_u32, |mask, cpu| mask | 1 << (cpu % 32))
    };
    let words: Vec<String> = (0..groups)
        .rev()
        .map(|number| format!("{:08x}", group(number)))
        .collect();
    bare_mask(&words.join(","))
}

/// Returns a mask without what says nothing, so that two that are equal look so.
fn bare_mask(mask: &str) -> String {
    let bare = mask.trim().trim_start_matches(['0', ',']);
    if bare.is_empty() { "0" } else { bare }.to_owned()
}

impl Spot {
    /// Returns the value that stands there.
    pub(crate) fn read(&self) -> io::Result<String> {
        match self {
            Spot::File(path) | Spot::Mtu(path, _) => {
                Ok(fs::read_to_string(path)?.trim().to_owned())
            }
            Spot::Mask(path) => Ok(bare_mask(&fs::read_to_string(path)?)),
            Spot::Field(path, at) => {
                let text = fs::read_to_string(path)?;
                let value = text.split_whitespace().nth(*at);
                value.map(str::to_owned).ok_or_else(|| too_short(&text))
            }
            Spot::Feature(device, feature) => {
                let is_on = ethtool::is_on(device, *feature)?;
                Ok(u8::from(is_on).to_string())
            }
            Spot::Number(device, number) => Ok(ethtool::number(device, *number)?.to_string()),
            Spot::Aggregate(device, of) => {
                let bytes = netlink::aggregate_bytes(device, *of)?;
                let bytes = bytes.ok_or(io::ErrorKind::Unsupported)?;
                Ok(bytes.to_string())
            }
            Spot::Discipline(device) => {
                let found = netlink::discipline(device)?;
                let note = if found.is_default { BY_DEFAULT } else { "" };
                Ok(found.kind + note)
            }
        }
    }

    /// Writes a value that [`read`](Self::read) returned, or [`text_of`].
    pub(crate) fn write(&self, value: &str) -> io::Result<()> {
        match self {
            Spot::File(path) | Spot::Mask(path) => write(path, value),
            Spot::Mtu(path, device) => {
                // No frame is longer than what the filter lets pass.
                let mtu = whole(value)?;
                if mtu > whole(&self.read()?)? {
                    netlink::cut_to(device, mtu)?;
                    write(path, value)
                } else {
                    write(path, value)?;
                    netlink::cut_to(device, mtu)
                }
            }
            Spot::Field(path, at) => {
                let text = fs::read_to_string(path)?;
                let mut values: Vec<&str> = text.split_whitespace().collect();
                *values.get_mut(*at).ok_or_else(|| too_short(&text))? = value;
                write(path, &values.join(" "))
            }
            Spot::Feature(device, feature) => ethtool::set(device, *feature, value == "1"),
            Spot::Number(device, number) => ethtool::set_number(device, *number, whole(value)?),
            Spot::Aggregate(device, of) => netlink::set_aggregate_bytes(device, *of, whole(value)?),
            Spot::Discipline(device) if value.ends_with(BY_DEFAULT) => {
                netlink::remove_discipline(device)
            }
            Spot::Discipline(device) => netlink::set_discipline(device, value),
        }
    }
}

/// Writes a file that is there: none is made.
fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)?;
    file.write_all(value.as_bytes())
}

fn whole(value: &str) -> io::Result<u32> {
    let bad = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    value.parse().map_err(bad)
}

fn too_short(text: &str) -> io::Error {
    let words = format!("it has too few values: {}", text.trim());
    io::Error::new(io::ErrorKind::InvalidData, words)
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spot::File(path) | Spot::Field(path, _) | Spot::Mask(path) | Spot::Mtu(path, _) => {
                path.display().fmt(f)
            }
            Spot::Feature(device, feature) => {
                let name = match feature {
                    Feature::Tso => "tso",
                    Feature::Gso => "gso",
                    Feature::Gro => "gro",
                };
                write!(f, "ethtool -K {device} {name}")
            }
            Spot::Number(device, Number::ReceiveCoalescing) => {
                write!(f, "ethtool -C {device} rx-usecs")
            }
            Spot::Number(device, Number::Queues) => write!(f, "ethtool -L {device}"),
            Spot::Number(device, Number::TransmitQueues) => write!(f, "ethtool -L {device} tx"),
            Spot::Aggregate(device, Aggregate::Ipv4) => {
                write!(f, "ip link set {device} gso_ipv4_max_size")
            }
            Spot::Aggregate(device, Aggregate::Others) => {
                write!(f, "ip link set {device} gso_max_size")
            }
            Spot::Discipline(device) => write!(f, "tc qdisc replace dev {device} root"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_written_in_groups_of_32() {
        let check = |cpus: &[u32], expected: &str| assert_eq!(mask_of(cpus), expected);
        check(&[0, 1], "3");
        check(&[1], "2");
        check(&[0, 31, 32], "1,80000001");
        check(&[64], "1,00000000,00000000");
        assert_eq!(bare_mask("00000000,00000003\n"), "3");
        assert_eq!(bare_mask("0\n"), "0");
    }

    #[test]
    fn a_name_of_a_device_leads_nowhere_else() {
        assert!(is_device("eth0") && is_device("enp3s0.7"));
        for name in ["", ".", "..", "a/b", "eth 0", "sixteen-letters-", "a:1"] {
            assert!(!is_device(name), "{name}");
        }
    }
}
