//! Labs with a name: a server, and clients behind links of a kind that there is.
//!
//! What a kind has of delay, loss and difference between the two ways is in the links of the clients; that of the
//! server has a rate. So a path has it once, and clients that share the server share nothing else.
//!
//! Light takes 5 µs for a kilometre of fibre, so 100 km there and back are 1 ms; what routes add to that is
//! in the round trips below.

use linerate_model::{BitsPerSec, Bytes, Nanos};

use crate::spec::{HostSpec, LabSpec, LinkSpec, UpSpec};

/// Labs with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// One switch: 1 Gbit/s, as 1000BASE-T has it, without delay.
    #[default]
    Lan,
    /// Two sites of a city or its surroundings, 1 Gbit/s: 4 ms there and back, which is 100 km, their detours and
    /// some routers.
    Metro,
    /// Two countries of a continent, 100 Mbit/s: 40 ms there and back, which is 2000 km and as much again for
    /// the way that cables take.
    Wan,
    /// A path that loses a frame in 200 each way, 100 Mbit/s and 20 ms: losses, and not the rate, decide there what
    /// one stream carries. Reno's is 1.22 segments / √p for each round trip (Mathis and others 1997), here 10 Mbit/s.
    Lossy,
    /// A home behind an access line of 20 Mbit/s down and 5 Mbit/s up and 20 ms, whose boxes let 300 ms of either
    /// wait and then drop what comes last: 750 000 and 187 500 bytes. Access lines had 128 to 256 KiB and more upwards
    /// (Kreibich and others, Netalyzr, IMC 2010), and delays of hundreds of ms (Gettys and Nichols 2011).
    Bloated,
}

impl Preset {
    /// All of them, from the nearest to the strangest.
    pub const ALL: [Self; 5] = [
        Self::Lan,
        Self::Metro,
        Self::Wan,
        Self::Lossy,
        Self::Bloated,
    ];

    /// Returns its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lan => "lan",
            Self::Metro => "metro",
            Self::Wan => "wan",
            Self::Lossy => "lossy",
            Self::Bloated => "bloated",
        }
    }

    /// Returns the link of the server.
    pub fn server(self) -> LinkSpec {
        LinkSpec {
            rate: Some(match self {
                Self::Lan | Self::Metro | Self::Bloated => GIGABIT,
                Self::Wan | Self::Lossy => FAST,
            }),
            ..LinkSpec::default()
        }
    }

    /// Returns the link of each client.
    pub fn client(self) -> LinkSpec {
        let server = self.server();
        match self {
            Self::Lan => server,
            Self::Metro => LinkSpec {
                delay: Nanos::from_ms(2),
                ..server
            },
            Self::Wan => LinkSpec {
                delay: Nanos::from_ms(20),
                ..server
            },
            Self::Lossy => LinkSpec {
                delay: Nanos::from_ms(10),
                loss: 0.005,
                ..server
            },
            Self::Bloated => LinkSpec {
                rate: Some(BitsPerSec(20e6)),
                delay: Nanos::from_ms(10),
                queue: Some(Bytes(750_000)),
                up: UpSpec {
                    rate: Some(BitsPerSec(5e6)),
                    queue: Some(Bytes(187_500)),
                    ..UpSpec::default()
                },
                ..server
            },
        }
    }
}

impl LabSpec {
    /// Returns the lab of the built-in study: `server` and `client1`… on 1 Gbit/s links.
    pub fn study_default(clients: u32) -> Self {
        Self::of_preset(Preset::Lan, clients)
    }

    /// Returns the lab of `preset`: `server` and `client1`….
    pub fn of_preset(preset: Preset, clients: u32) -> Self {
        let names = (1..=clients).map(|number| format!("client{number}"));
        let clients = names.map(|name| HostSpec {
            name,
            link: preset.client(),
        });
        let server = HostSpec {
            name: "server".to_owned(),
            link: preset.server(),
        };
        Self {
            name: "study".to_owned(),
            hosts: std::iter::once(server).chain(clients).collect(),
        }
    }
}

/// 1000BASE-T.
const GIGABIT: BitsPerSec = BitsPerSec(1e9);
/// 100BASE-TX, or what a site buys.
const FAST: BitsPerSec = BitsPerSec(100e6);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Way;

    #[test]
    fn presets_are_what_they_are_said_to_be() {
        let check = |preset: Preset, rates: [f64; 2], round_trip_ms, queue_ms: [Option<u64>; 2]| {
            let spec = LabSpec::of_preset(preset, 2);
            spec.check(preset.name()).expect("within the limits");
            let [server, client, _] = &spec.hosts[..] else {
                panic!("a server and two clients");
            };
            let ways = [Way::Down, Way::Up];
            assert_eq!(
                ways.map(|way| client.link.rate_of(way)),
                rates.map(|rate| Some(BitsPerSec(rate)))
            );
            assert_eq!(
                LabSpec::round_trip(server, client),
                Nanos::from_ms(round_trip_ms)
            );
            let queue = ways.map(|way| client.link.queue_time_of(way));
            assert_eq!(
                queue,
                queue_ms.map(|ms| ms.map(Nanos::from_ms)),
                "{preset:?}"
            );
        };
        check(Preset::Lan, [1e9; 2], 0, [Some(20), None]);
        check(Preset::Metro, [1e9; 2], 4, [Some(20), None]);
        check(Preset::Wan, [1e8; 2], 40, [Some(20), None]);
        check(Preset::Lossy, [1e8; 2], 20, [Some(20), None]);
        check(Preset::Bloated, [20e6, 5e6], 20, [Some(300), Some(300)]);
    }

    #[test]
    fn the_default_study_is_valid_and_survives_json() {
        let spec = LabSpec::study_default(5);
        spec.check("study").expect("within the limits");
        assert_eq!(spec.hosts.len(), 6);
        assert_eq!(spec.hosts[5].name, "client5");
        let text = serde_json::to_string(&spec).expect("plain values");
        let back: LabSpec = serde_json::from_str(&text).expect("just written");
        assert_eq!(back, spec);
    }
}
