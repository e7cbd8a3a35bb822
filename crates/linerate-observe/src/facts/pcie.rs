//! The PCIe links between a network card and the CPU: each one's width and speed, and the narrowest.
//!
//! Every device on the way, the card and each bridge above it, tells the link that leads up from
//! it. What a link carries is lanes × transfers × coding (PCI Express Base Specification 6.0,
//! 4.2): 8 bits of 10 up to 5 GT/s, 128 of 130 up to 32, 242 of 256 bytes of a flit at 64. Headers
//! of packets take some 10 % of that at the usual payload of 256 bytes.

use std::path::Path;

use linerate_model::host::FactValue;
use linerate_model::unit::Unit;

use super::Facts;
use crate::sys::file::read_value;

/// Most bridges looked at on the way up.
const BRIDGES_MAX: usize = 16;

/// The link that leads up from one device.
#[derive(Debug, Clone, PartialEq)]
struct Link {
    address: String,
    lanes: f64,
    lanes_max: Option<f64>,
    gts: f64,
    gts_max: Option<f64>,
}

impl Link {
    /// Returns what it carries in each direction, in bits per second, before packets' headers.
    fn bits_per_second(&self) -> f64 {
        let coding = match self.gts {
            ..=5.0 => 8.0 / 10.0,
            ..=32.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        self.lanes * self.gts * 1e9 * coding
    }

    fn words(&self) -> String {
        let of = |now: f64, most: Option<f64>| match most {
            Some(most) if most > now => format!("{now} of {most}"),
            _ => format!("{now}"),
        };
        format!(
            "{}: x{} at {} GT/s",
            self.address,
            of(self.lanes, self.lanes_max),
            of(self.gts, self.gts_max)
        )
    }
}

/// Adds what the way from the card at `device` (its folder in sysfs) to the CPU can carry.
pub(super) fn add_path(facts: &mut Facts, prefix: &str, device: Result<&Path, &String>) {
    let path = device.map_err(Clone::clone).and_then(|device| {
        let path = links_up(device);
        if path.is_empty() {
            Err("not a PCIe device".to_owned())
        } else {
            Ok(path)
        }
    });
    let narrowest = path.clone().map(|path| narrowest(&path).cloned());
    let narrowest = narrowest.and_then(|link| link.ok_or_else(|| "no link".to_owned()));
    let words = path.map(|path| path.iter().map(Link::words).collect::<Vec<_>>());
    facts.add(
        format!("{prefix}.pcie_path"),
        words.map(|words| FactValue::Text(words.join("; "))),
    );
    facts.add(
        format!("{prefix}.pcie_narrowest"),
        narrowest.clone().map(|link| FactValue::Text(link.words())),
    );
    facts.add(
        format!("{prefix}.pcie_bps"),
        narrowest.map(|link| FactValue::Number(link.bits_per_second(), Unit::BitsPerSecond)),
    );
}

/// Returns the links from the card up to the root, as far as sysfs tells them. Two ends of a link
/// tell the same, and both are kept: a bridge's other side may be wider.
fn links_up(device: &Path) -> Vec<Link> {
    let Ok(device) = std::fs::canonicalize(device) else {
        return Vec::new();
    };
    device
        .ancestors()
        .take(BRIDGES_MAX)
        .filter_map(link_at)
        .collect()
}

fn link_at(folder: &Path) -> Option<Link> {
    let number = |file: &str| {
        let value = read_value(&folder.join(file)).ok()?;
        // Speeds read `16.0 GT/s PCIe`; an unknown one reads `Unknown`.
        value.split(' ').next()?.parse::<f64>().ok()
    };
    Some(Link {
        address: folder.file_name()?.to_string_lossy().into_owned(),
        lanes: number("current_link_width").filter(|lanes| *lanes > 0.0)?,
        lanes_max: number("max_link_width"),
        gts: number("current_link_speed")?,
        gts_max: number("max_link_speed"),
    })
}

fn narrowest(path: &[Link]) -> Option<&Link> {
    let mut links = path.iter();
    let first = links.next()?;
    Some(links.fold(first, |narrowest, link| {
        if link.bits_per_second() < narrowest.bits_per_second() {
            link
        } else {
            narrowest
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A card below a bridge below a root port, each with lanes and speed, now and at most.
    fn path(links: [[&str; 4]; 3]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        let mut folder = root.path().to_owned();
        for (name, link) in ["0000:00:01.0", "0000:01:00.0", "0000:02:00.0"]
            .iter()
            .zip(links)
        {
            folder.push(name);
            fs::create_dir(&folder).expect("a folder");
            let files = [
                "current_link_width",
                "max_link_width",
                "current_link_speed",
                "max_link_speed",
            ];
            for (file, value) in files.iter().zip(link) {
                fs::write(folder.join(file), value).expect("a file");
            }
        }
        root
    }

    fn facts_of(root: &tempfile::TempDir) -> (Option<String>, Option<f64>) {
        let device = root.path().join("0000:00:01.0/0000:01:00.0/0000:02:00.0");
        let mut facts = Facts::default();
        add_path(&mut facts, "link.eth0", Ok(&device));
        let snapshot = facts.into_snapshot();
        (
            snapshot.text("link.eth0.pcie_narrowest").map(str::to_owned),
            snapshot.number("link.eth0.pcie_bps"),
        )
    }

    #[test]
    fn the_narrowest_link_of_the_way_is_found() {
        let wide = ["16", "16", "16.0 GT/s PCIe", "16.0 GT/s PCIe"];
        let slow = ["8", "16", "2.5 GT/s PCIe", "8.0 GT/s PCIe"];
        let (words, rate) = facts_of(&path([wide, slow, wide]));
        assert_eq!(
            words.as_deref(),
            Some("0000:01:00.0: x8 of 16 at 2.5 of 8 GT/s")
        );
        // Eight lanes of 2.5 GT/s, 8 bits in 10: 16 Gbit/s.
        assert_eq!(rate, Some(16e9));
        let (words, rate) = facts_of(&path([slow, wide, wide]));
        assert_eq!(
            words.as_deref(),
            Some("0000:00:01.0: x8 of 16 at 2.5 of 8 GT/s")
        );
        assert_eq!(rate, Some(16e9));
    }

    #[test]
    fn a_way_that_is_even_is_its_cards() {
        let link = ["4", "4", "8.0 GT/s PCIe", "8.0 GT/s PCIe"];
        let (words, rate) = facts_of(&path([link; 3]));
        assert_eq!(words.as_deref(), Some("0000:02:00.0: x4 at 8 GT/s"));
        assert_eq!(
            rate.map(f64::round),
            Some((4.0 * 8e9 * 128.0 / 130.0_f64).round())
        );
    }

    #[test]
    fn what_has_no_links_has_no_rate() {
        let unknown = ["0", "255", "Unknown", "Unknown"];
        assert_eq!(facts_of(&path([unknown; 3])), (None, None));
    }
}
