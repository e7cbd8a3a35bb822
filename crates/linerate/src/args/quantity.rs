//! Times and shares as people type them, wherever a flag takes one.

use std::fmt;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_lab::Preset;
use linerate_model::unit::ParseUnitError;
use linerate_model::{BitsPerSec, Nanos};

/// The rate of a lab's links; none is as fast as the machine can.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRate(pub Option<BitsPerSec>);

impl fmt::Display for LinkRate {
    /// Writes it as it would be typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(rate) => write!(f, "{:.0}", rate.0),
        }
    }
}

/// Reads the rate of a link: `1G`, `100Mbit`, or `none`.
pub fn link_rate(text: &str) -> Result<LinkRate, String> {
    if text == "none" {
        return Ok(LinkRate(None));
    }
    let rate = text
        .parse()
        .map_err(|_| format!("`{text}` is not a rate: 100M, 1G, or none"))?;
    Ok(LinkRate(Some(rate)))
}

/// Reads the name of a lab.
pub fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).map(|name| {
        let mut all = Preset::ALL.into_iter();
        all.find(|preset| preset.name() == name)
            .expect("it is one of their names")
    })
}

/// Reads a time: `10`, which is seconds, `10s`, `500ms`, `3m`, `1m30s`.
pub fn seconds(text: &str) -> Result<f64, String> {
    // A number alone comes first: one below zero or without end is refused with its limits.
    match text.parse::<f64>() {
        Ok(seconds) => Ok(seconds),
        Err(_) => text.parse().map(Nanos::as_s).map_err(|error| match error {
            ParseUnitError::OutOfRange(_) => error.to_string(),
            _ => format!("`{text}` is not a time: 10 or 10s, 500ms, 3m, 1m30s, 1h"),
        }),
    }
}

/// Reads a time of whole seconds.
pub fn whole_seconds(text: &str) -> Result<u64, String> {
    let seconds = seconds(text)?;
    if seconds.fract() == 0.0 && (0.0..1e9).contains(&seconds) {
        Ok(seconds as u64)
    } else {
        Err(format!("`{text}` is not a number of whole seconds"))
    }
}

/// Reads a time of whole seconds, at least one.
pub fn some_seconds(text: &str) -> Result<u64, String> {
    match whole_seconds(text)? {
        0 => Err("it must be at least 1 s".to_owned()),
        seconds => Ok(seconds),
    }
}

/// Reads a share: `0.01`, or `1%`.
pub fn share(text: &str) -> Result<f64, String> {
    linerate_model::unit::parse_share(text)
        .ok_or_else(|| format!("`{text}` is not a share: 0.01, or 1%"))
}

/// Reads `2%` or `2` as a share.
pub fn half_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let percent: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a number"))?;
    if percent > 0.0 && percent <= 50.0 {
        Ok(percent / 100.0)
    } else {
        Err(format!("{percent} % is not above 0 and at most 50"))
    }
}

/// Reads an address of this host, with the name or number of a device behind `%` if there is one.
pub fn bind_address(text: &str) -> Result<std::net::SocketAddr, String> {
    let (address, device) = match text.split_once('%') {
        Some((address, device)) => (address, Some(device)),
        None => (text, None),
    };
    let ip: std::net::IpAddr = address
        .parse()
        .map_err(|_| "not an address, as in 192.0.2.1 or fe80::1%eth0".to_owned())?;
    let Some(device) = device else {
        return Ok((ip, 0).into());
    };
    let number = device.parse().ok().filter(|number| *number > 0);
    let number = number.map_or_else(|| nix::net::if_::if_nametoindex(device), Ok);
    let number = number.map_err(|_| format!("this host has no device `{device}`"))?;
    let v6 = match ip {
        std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        std::net::IpAddr::V6(v6) => v6,
    };
    Ok(std::net::SocketAddrV6::new(v6, 0, 0, number).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_seconds() {
        for (text, expected) in [("10", 10.0), ("10s", 10.0), ("500ms", 0.5), ("1m30s", 90.0)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        assert!(seconds("soon").is_err());
        assert!(seconds("99999999h").is_err_and(|why| why.contains("too large")));
        assert_eq!(whole_seconds("2m"), Ok(120));
        assert!(whole_seconds("1500ms").is_err());
        assert!(some_seconds("0").is_err());
    }

    #[test]
    fn a_link_has_a_rate_or_none() {
        assert_eq!(link_rate("none"), Ok(LinkRate(None)));
        assert_eq!(link_rate("1G"), Ok(LinkRate(Some(BitsPerSec(1e9)))));
        assert!(link_rate("fast").is_err());
        for text in ["none", "100000000"] {
            assert_eq!(
                link_rate(text).map(|rate| rate.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn shares_are_numbers_or_percentages() {
        assert_eq!(share("0.01"), Ok(0.01));
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.5 %"), Ok(0.005));
        assert!(share("some").is_err());
    }
}
