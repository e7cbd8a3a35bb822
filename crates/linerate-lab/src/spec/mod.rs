//! What a lab shall look like: hosts and the links that join them to the switch.
//!
//! A [`LabSpec`] is written by a person as TOML or by code; either way it is checked against the
//! limits below before anything is made.

mod file;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use linerate_model::lab_link::{LabLink, full_queue_time};
use linerate_model::{BitsPerSec, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::shape::{queue_min, shape_of};

/// Most hosts in a lab; addresses and the switch are laid out for a /24, and 64 hosts are plenty.
pub const HOSTS_MAX: usize = 64;
/// Longest name of a lab or a host, in characters; a host name may have 64 in Linux.
pub const NAME_CHARS_MAX: usize = 32;
/// Lowest link rate: below it one full-size frame takes longer than a scheduler tick.
pub const RATE_MIN: BitsPerSec = BitsPerSec(1e6);
/// Highest link rate: beyond what a virtual link carries on any machine of today.
pub const RATE_MAX: BitsPerSec = BitsPerSec(100e9);
/// Longest one-way delay: three times that of a geostationary satellite hop.
pub const DELAY_MAX: Nanos = Nanos::from_s(2);
/// Highest loss per frame and direction; TCP makes no progress worth measuring beyond it.
pub const LOSS_MAX: f64 = 0.5;
/// Highest share of frames that others overtake: with more of them the others would be those out of order.
pub const REORDER_MAX: f64 = 0.5;
/// Highest share of frames that come twice: every one.
pub const DUPLICATE_MAX: f64 = 1.0;
/// Smallest MTU: what every IPv4 host must take (RFC 791).
pub const MTU_BYTES_MIN: u32 = 576;
/// The most that may wait before the rate of a link, or before the device of a host.
pub const QUEUE_MAX: Bytes = Bytes(1 << 30);
/// Largest MTU: the usual size of jumbo frames.
pub const MTU_BYTES_MAX: u32 = 9000;
/// Most transmit and receive queues of one device.
pub const QUEUES_MAX: u32 = 16;
/// Most bytes that one direction of a delayed link may hold: rate × delay stays below it.
pub const HELD_BYTES_MAX: u64 = 256 << 20;

/// A network of hosts on this machine, joined by one switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabSpec {
    /// The lab's name: `[a-z0-9-]`, 1 to 32 characters.
    pub name: String,
    /// The hosts, in the order of their addresses.
    pub hosts: Vec<HostSpec>,
}

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// The host's name, also its UTS host name: `[a-z0-9-]`, 1 to 32 characters.
    pub name: String,
    /// The link between this host and the switch.
    pub link: LinkSpec,
}

/// The link between a host and the switch; the same in both directions but for what [`up`](Self::up) says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The signalling rate of the wire; `None` is as fast as the machine can.
    pub rate: Option<BitsPerSec>,
    /// The time a frame needs from one end to the other; a path crosses two links.
    pub delay: Nanos,
    /// The probability that a frame is lost, for each direction by itself.
    pub loss: f64,
    /// How much longer than the delay a frame takes at the most, in each direction: uniformly, in order (see
    /// [`Jitter`](crate::relay::Jitter)).
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub jitter: Nanos,
    /// The probability that three frames overtake a frame, for each direction by itself.
    #[serde(default, skip_serializing_if = "is_never")]
    pub reorder: f64,
    /// The probability that a frame comes twice, for each direction by itself.
    #[serde(default, skip_serializing_if = "is_never")]
    pub duplicate: f64,
    /// The largest IP packet.
    pub mtu_bytes: u32,
    /// The receive queues of the host's device.
    pub queues: u32,
    /// Bytes that may wait before the host's own device; `None` is more than TCP puts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_queue: Option<Bytes>,
    /// Bytes that may wait in the switch before the rate of this link; `None` is 20 ms of it, or 5 ms above
    /// 2.5 Gbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// What is different on the way from the host to the switch.
    #[serde(default, skip_serializing_if = "UpSpec::is_empty")]
    pub up: UpSpec,
}

/// A way over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the switch to the host.
    Down,
    /// From the host to the switch.
    Up,
}

/// What is different on the way from a host to the switch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpSpec {
    /// The signalling rate; `None` is that of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitsPerSec>,
    /// The time that a frame needs; `None` is that of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Nanos>,
    /// Bytes that may wait in a modem between the host and the switch, which then has the rate; with `None`
    /// the host's own device has it, and TCP leaves little of a flow there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
}

fn is_nothing(time: &Nanos) -> bool {
    time.0 == 0
}

fn is_never(share: &f64) -> bool {
    *share == 0.0
}

impl UpSpec {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns this with what it leaves open taken from `below`.
    pub fn over(self, below: Self) -> Self {
        Self {
            rate: self.rate.or(below.rate),
            delay: self.delay.or(below.delay),
            queue: self.queue.or(below.queue),
        }
    }
}

/// Why a text is no lab.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The text is not TOML, or has an unknown key or a value of the wrong kind.
    #[error("cannot read the lab `{origin}`")]
    Parse {
        /// Where the text came from.
        origin: String,
        /// What the TOML reader says, with the line.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A value is outside its limits.
    #[error("{origin}: {fault}")]
    Limit {
        /// Where the text came from.
        origin: String,
        /// The value.
        fault: Fault,
    },
}

/// A value outside its limits.
#[derive(Debug, thiserror::Error)]
#[error("{key} is {value}, allowed is {allowed}")]
pub struct Fault {
    /// Its key, with the host it belongs to.
    key: String,
    value: String,
    allowed: String,
}

impl Default for LinkSpec {
    /// Returns a link without limit, delay or loss, MTU 1500, one queue.
    fn default() -> Self {
        Self {
            rate: None,
            delay: Nanos(0),
            loss: 0.0,
            jitter: Nanos(0),
            reorder: 0.0,
            duplicate: 0.0,
            mtu_bytes: 1500,
            queues: 1,
            host_queue: None,
            queue: None,
            up: UpSpec::default(),
        }
    }
}

/// Returns the largest IP packet that the links of `hosts` carry, whatever a host is told to send: jumbo frames where none
/// of them counts frames, and where all hosts cut their own aggregates into frames before anything counts them
/// ([`shape`](crate::shape)); else what a frame of the wire is follows from the smallest MTU.
pub fn carried_bytes(hosts: &[HostSpec]) -> u32 {
    let shapes = |host: &HostSpec| [Way::Down, Way::Up].map(|way| shape_of(&host.link, way));
    let is_cut = |host: &HostSpec| {
        let all = shapes(host).into_iter();
        let mut all = all.map(|shape| shape.is_some_and(|shape| shape.cut.is_some()));
        host.link.up.queue.is_none() && all.all(|is_cut| is_cut)
    };
    let is_free = |host: &HostSpec| shapes(host).iter().all(Option::is_none);
    if hosts.iter().all(is_free) || hosts.iter().all(is_cut) {
        return MTU_BYTES_MAX;
    }
    let least = hosts.iter().map(|host| host.link.mtu_bytes).min();
    least.unwrap_or(MTU_BYTES_MAX)
}

impl LinkSpec {
    /// Returns the signalling rate on `way`.
    pub fn rate_of(&self, way: Way) -> Option<BitsPerSec> {
        match way {
            Way::Down => self.rate,
            Way::Up => self.up.rate.or(self.rate),
        }
    }

    /// Returns the time that a frame needs on `way`.
    pub fn delay_of(&self, way: Way) -> Nanos {
        match way {
            Way::Down => self.delay,
            Way::Up => self.up.delay.unwrap_or(self.delay),
        }
    }

    /// Returns the time that a frame needs on `way` at the most.
    pub fn longest_delay_of(&self, way: Way) -> Nanos {
        Nanos(self.delay_of(way).0 + self.jitter.0)
    }

    /// Tells whether what happens on this link happens to single frames, and to no superframes of dozens.
    pub fn is_of_frames(&self) -> bool {
        self.loss > 0.0 || self.reorder > 0.0 || self.duplicate > 0.0
    }

    /// Returns the bytes that wait before the rate on `way` at the most; absent where none do, or only what
    /// a host's own programs put there.
    pub fn queue_of(&self, way: Way) -> Option<Bytes> {
        self.rate_of(way)?;
        match way {
            Way::Down => Some(Bytes(shape_of(self, way)?.queue_bytes.into())),
            Way::Up => self.up.queue.or(self.host_queue),
        }
    }

    /// Returns how long a frame waits in a full queue on `way`.
    pub fn queue_time_of(&self, way: Way) -> Option<Nanos> {
        Some(full_queue_time(self.queue_of(way)?, self.rate_of(way)?))
    }

    /// Returns what is told of this link beside its rates.
    pub fn told(&self) -> LabLink {
        LabLink {
            delay: self.delay_of(Way::Down),
            up_delay: self.delay_of(Way::Up),
            jitter: self.jitter,
            loss: self.loss,
            reorder: self.reorder,
            duplicate: self.duplicate,
            queue: self.queue_of(Way::Down),
            up_queue: self.queue_of(Way::Up),
        }
    }
}

impl LabSpec {
    /// Returns the round trip that the delays of their links make between two hosts: every packet
    /// crosses both links, there and back.
    pub fn round_trip(one: &HostSpec, other: &HostSpec) -> Nanos {
        one.link.told().round_trip(&other.link.told())
    }

    /// Reads a lab from TOML; `origin` names the text in errors.
    ///
    /// `[link]` gives what holds for every host that does not say otherwise.
    ///
    /// ```
    /// let spec = linerate_lab::LabSpec::from_toml(r#"
    ///     name = "office"
    ///     [link]
    ///     rate = "1G"
    ///     [[host]]
    ///     name = "server"
    ///     [[host]]
    ///     name = "far"
    ///     link = { delay = "5ms", loss = 0.001, mtu_bytes = 1500, queues = 2 }
    /// "#, "office.toml")?;
    /// assert_eq!(spec.hosts[1].link.rate, Some(linerate_model::BitsPerSec(1e9)));
    /// # Ok::<(), linerate_lab::SpecError>(())
    /// ```
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, SpecError> {
        let file: file::LabFile = toml::from_str(text).map_err(|source| SpecError::Parse {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        let spec = file.resolve();
        spec.check(origin)?;
        Ok(spec)
    }

    /// Holds every value against its limit; `origin` names the lab in the error.
    pub fn check(&self, origin: &str) -> Result<(), SpecError> {
        self.hold().map_err(|fault| SpecError::Limit {
            origin: origin.to_owned(),
            fault,
        })
    }

    fn hold(&self) -> Result<(), Fault> {
        hold_name("name", &self.name)?;
        hold_within("the number of hosts", self.hosts.len(), 1..=HOSTS_MAX)?;
        let mut seen = BTreeSet::new();
        for host in &self.hosts {
            let (key, name) = ("a host's name", &host.name);
            hold_name(key, name)?;
            hold(
                seen.insert(name),
                key,
                quoted(name),
                "one host of each name",
            )?;
            host.link.hold().map_err(|fault| Fault {
                key: format!("{} of host `{name}`", fault.key),
                ..fault
            })?;
        }
        Ok(())
    }
}

impl LinkSpec {
    /// Tells whether frames must pass the relay, because the link does more than limit them.
    pub fn is_relayed(&self) -> bool {
        let longest = [Way::Down, Way::Up].map(|way| self.longest_delay_of(way));
        longest.into_iter().any(|delay| delay.0 > 0) || self.is_of_frames()
    }

    fn hold(&self) -> Result<(), Fault> {
        hold_within("loss", self.loss, 0.0..=LOSS_MAX)?;
        hold_within("reorder", self.reorder, 0.0..=REORDER_MAX)?;
        hold_within("duplicate", self.duplicate, 0.0..=DUPLICATE_MAX)?;
        let (jitter, allowed) = (self.jitter, format!("0 to {DELAY_MAX}"));
        hold(jitter <= DELAY_MAX, "jitter", jitter, allowed)?;
        hold_within("mtu_bytes", self.mtu_bytes, MTU_BYTES_MIN..=MTU_BYTES_MAX)?;
        hold_within("queues", self.queues, 1..=QUEUES_MAX)?;
        self.hold_way(Way::Down, ["rate", "delay", "queue"], self.queue)?;
        self.hold_way(Way::Up, ["up.rate", "up.delay", "up.queue"], self.up.queue)?;
        if let Some(bytes) = self.host_queue {
            let why = "left out with up.queue: nothing waits there";
            hold(self.up.queue.is_none(), "host_queue", bytes, why)?;
            self.hold_queue(Way::Up, "host_queue", bytes)?;
        }
        Ok(())
    }

    fn hold_way(&self, way: Way, keys: [&str; 3], queue: Option<Bytes>) -> Result<(), Fault> {
        let [rate_key, delay_key, queue_key] = keys;
        let (rate, delay) = (self.rate_of(way), self.delay_of(way));
        if let Some(rate) = rate {
            hold_within(rate_key, rate, RATE_MIN..=RATE_MAX)?;
        }
        let allowed = format!("0 to {DELAY_MAX}");
        hold(delay <= DELAY_MAX, delay_key, delay, allowed)?;
        if let Some(bytes) = queue {
            self.hold_queue(way, queue_key, bytes)?;
        }
        let longest = self.longest_delay_of(way);
        let held = rate.map_or(0.0, |rate| rate.0 * longest.as_s() / 8.0);
        let is_within = held <= HELD_BYTES_MAX as f64;
        let allowed = format!("at most {} MiB in flight", HELD_BYTES_MAX >> 20);
        let held = format!("{:.0} MiB", held / 1048576.0);
        let key = if self.jitter.0 > 0 {
            format!("{rate_key} × ({delay_key} + jitter)")
        } else {
            format!("{rate_key} × {delay_key}")
        };
        hold(is_within, &key, held, allowed)
    }

    fn hold_queue(&self, way: Way, key: &str, bytes: Bytes) -> Result<(), Fault> {
        let rate = self.rate_of(way);
        let why = "left out without a rate: nothing waits there";
        hold(rate.is_some(), key, bytes, why)?;
        let least = queue_min(rate, self.mtu_bytes);
        hold_within(key, bytes, least..=QUEUE_MAX)
    }
}

/// Tells whether `name` may name a lab or a host.
pub fn name_is_valid(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && !name.starts_with('-')
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Returns the rule that [`name_is_valid`] keeps, for error texts.
pub fn name_rule() -> String {
    format!("a to z, 0 to 9 and `-` (not first), 1 to {NAME_CHARS_MAX} characters")
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

fn hold(
    is_within: bool,
    key: &str,
    value: impl ToString,
    allowed: impl Into<String>,
) -> Result<(), Fault> {
    if is_within {
        return Ok(());
    }
    Err(Fault {
        key: key.to_owned(),
        value: value.to_string(),
        allowed: allowed.into(),
    })
}

fn hold_within<T: PartialOrd + Display>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), Fault> {
    let allowed = format!("{} to {}", range.start(), range.end());
    hold(range.contains(&value), key, value, allowed)
}

fn hold_name(key: &str, name: &str) -> Result<(), Fault> {
    hold(name_is_valid(name), key, quoted(name), name_rule())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<(), &str>) {
        let found = LabSpec::from_toml(text, "lab.toml");
        match (found, expect) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(part)) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let full = format!("{error} {}", source.unwrap_or_default());
                assert!(full.contains(part), "`{full}` lacks `{part}`");
            }
            (found, expect) => panic!("{text}: {found:?}, expected {expect:?}"),
        }
    }

    fn one_host(link: &str) -> String {
        format!("name = \"x\"\n[[host]]\nname = \"a\"\nlink = {{ {link} }}\n")
    }

    #[test]
    fn limits_are_named() {
        check(&one_host("rate = \"1G\""), Ok(()));
        check(&one_host("rate = \"1M\", delay = \"2s\""), Ok(()));
        check(&one_host("rate = \"0.5M\""), Err("1 Mbit/s to 100 Gbit/s"));
        check(&one_host("rate = -3"), Err("negative"));
        check(&one_host("rate = \"101G\""), Err("rate of host `a`"));
        check(&one_host("delay = \"2001ms\""), Err("0 to 2 s"));
        check(&one_host("loss = 0.6"), Err("loss of host `a` is 0.6"));
        check(&one_host("loss = nan"), Err("loss of host `a`"));
        check(
            &one_host("jitter = \"2001ms\""),
            Err("jitter of host `a` is 2.001 s, allowed is 0 to 2 s"),
        );
        check(
            &one_host("reorder = \"51%\""),
            Err("reorder of host `a` is 0.51, allowed is 0 to 0.5"),
        );
        check(
            &one_host("duplicate = 1.5"),
            Err("duplicate of host `a` is 1.5, allowed is 0 to 1"),
        );
        check(&one_host("duplicate = \"some\""), Err("not a share"));
        check(
            &one_host("jitter = \"1ms\", reorder = \"50%\", duplicate = 1"),
            Ok(()),
        );
        check(
            &one_host("rate = \"100G\", jitter = \"1s\""),
            Err("rate × (delay + jitter)"),
        );
        check(&one_host("mtu_bytes = 575"), Err("576 to 9000"));
        check(&one_host("queues = 17"), Err("1 to 16"));
        check(&one_host("rate = \"1G\", host_queue = \"4K\""), Ok(()));
        check(&one_host("host_queue = \"4K\""), Err("without a rate"));
        let jumbo = "rate = \"1G\", mtu_bytes = 9000, host_queue = \"4K\"";
        check(&one_host(jumbo), Err("17.61 KiB"));
        let whole = "rate = \"10G\", host_queue = \"4K\"";
        check(&one_host(whole), Err("128 KiB"));
        check(
            &one_host("rate = \"100G\", delay = \"1s\""),
            Err("in flight"),
        );
        check(&one_host("speed = 3"), Err("unknown field `speed`"));
    }

    #[test]
    fn queues_and_the_way_up_have_their_limits() {
        let line =
            |queue, up| one_host(&format!("rate = \"20M\", queue = {queue}, up = {{ {up} }}"));
        check(
            &line(750_000, "rate = \"5M\", queue = 187_500, delay = \"1ms\""),
            Ok(()),
        );
        check(
            &line(2000, ""),
            Err("queue of host `a` is 1.953 KiB, allowed is 2.965 KiB to 1 GiB"),
        );
        check(&line(750_000, "queue = 2000"), Err("up.queue of host `a`"));
        check(
            &line(750_000, "rate = \"0.5M\""),
            Err("up.rate of host `a`"),
        );
        check(
            &line(750_000, "delay = \"3s\""),
            Err("up.delay of host `a` is 3 s, allowed is 0 to 2 s"),
        );
        check(&line(750_000, "loss = 1"), Err("unknown field `loss`"));
        check(&one_host("queue = 100_000"), Err("without a rate"));
        check(&one_host("up = { queue = 100_000 }"), Err("without a rate"));
        check(&one_host("up = { rate = \"1G\", queue = 100_000 }"), Ok(()));
        let both = "rate = \"1G\", host_queue = 100_000, up = { queue = 100_000 }";
        check(&one_host(both), Err("host_queue of host `a`"));
        let far = "rate = \"1M\", up = { rate = \"100G\", delay = \"1s\" }";
        check(&one_host(far), Err("up.rate × up.delay"));
    }

    #[test]
    fn each_way_has_its_rate_delay_and_queue() {
        let text = "name = \"x\"\nlink = { rate = \"20M\", delay = \"10ms\", queue = 750_000, up = { rate = \"5M\" } }\n\
                    [[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\nlink = { up = { delay = \"30ms\", queue = 187_500 } }";
        let spec = LabSpec::from_toml(text, "x").expect("the text is valid");
        let [a, b] = &spec.hosts[..] else {
            panic!("two hosts");
        };
        assert_eq!(b.link.rate_of(Way::Down), Some(BitsPerSec(20e6)));
        assert_eq!(b.link.rate_of(Way::Up), Some(BitsPerSec(5e6)));
        assert_eq!(a.link.queue_time_of(Way::Down), Some(Nanos::from_ms(300)));
        assert_eq!(
            a.link.queue_time_of(Way::Up),
            None,
            "TCP leaves little there"
        );
        assert_eq!(b.link.queue_time_of(Way::Up), Some(Nanos::from_ms(300)));
        assert_eq!(LabSpec::round_trip(a, b), Nanos::from_ms(10 + 10 + 10 + 30));
    }

    #[test]
    fn names_are_held_to_the_rule() {
        check("name = \"x\"", Err("number of hosts is 0"));
        check(
            "name = \"../x\"\n[[host]]\nname=\"a\"",
            Err("name is `../x`"),
        );
        check("name = \"x\"\n[[host]]\nname=\"A\"", Err("name is `A`"));
        check(
            "name = \"x\"\n[[host]]\nname=\"a\"\n[[host]]\nname=\"a\"",
            Err("one host of each name"),
        );
    }

    #[test]
    fn hosts_take_the_common_link() {
        let spec = LabSpec::from_toml(
            "name = \"x\"\nlink = { rate = \"1G\", queues = 2 }\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\nlink = { queues = 4 }",
            "x",
        )
        .expect("the text is valid");
        assert_eq!(spec.hosts[0].link.queues, 2);
        assert_eq!(spec.hosts[1].link.queues, 4);
        assert_eq!(spec.hosts[1].link.rate, Some(BitsPerSec(1e9)));
    }
}
