//! Which connections are wanted: `--flow`.
//!
//! A filter is words joined by `,`, all of which must hold: an address (`10.0.0.1`), a network
//! (`10.0.0.0/8`), a port (`:5201`), or both (`10.0.0.1:5201`, `[fe80::1]:22`). Each is looked for
//! at either end; two words are two different ends where both have an address or both a port.

use std::str::FromStr;

use linerate_model::network::Network;

use crate::connection::Endpoint;

/// Words that must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    words: Vec<Word>,
}

/// Why a filter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is none of ADDRESS, NETWORK/BITS, :PORT, ADDRESS:PORT, [ADDRESS]:PORT")]
pub struct FilterError {
    word: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word {
    network: Option<Network>,
    port: Option<u16>,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words = text.split(',').map(|word| {
            Word::parse(word.trim()).ok_or_else(|| FilterError {
                word: word.trim().to_owned(),
            })
        });
        Ok(Self {
            words: words.collect::<Result<_, _>>()?,
        })
    }
}

impl Filter {
    /// Returns whether what goes between these ends is wanted.
    pub(crate) fn wants(&self, [source, target]: [Endpoint; 2]) -> bool {
        let holds = |word: &Word| word.holds(source) || word.holds(target);
        match &self.words[..] {
            // Two words of one kind name both ends.
            [one, other] if one.kind() == other.kind() => {
                (one.holds(source) && other.holds(target))
                    || (one.holds(target) && other.holds(source))
            }
            words => words.iter().all(holds),
        }
    }
}

impl Word {
    fn parse(text: &str) -> Option<Self> {
        let word = |network, port| Some(Self { network, port });
        // Before ports: an address may begin with a colon.
        if let Ok(network) = text.parse() {
            return word(Some(network), None);
        }
        if let Some(port) = text.strip_prefix(':') {
            return word(None, Some(port.parse().ok()?));
        }
        let socket = text.parse::<std::net::SocketAddr>().ok()?;
        word(Some(socket.ip().into()), Some(socket.port()))
    }

    fn kind(&self) -> (bool, bool) {
        (self.network.is_some(), self.port.is_some())
    }

    fn holds(&self, end: Endpoint) -> bool {
        self.port.is_none_or(|wanted| wanted == end.port)
            && self.network.is_none_or(|network| network.has(end.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let check = |text: &str, good: bool| {
            assert_eq!(text.parse::<Filter>().is_ok(), good, "{text}");
        };
        check("10.0.0.1", true);
        check("10.0.0.0/8, :5201", true);
        check("[fe80::1]:22", true);
        check("fe80::1", true);
        check("::1, ::ffff:0:0/96", true);
        check(":99999", false);
        check("10.0.0.1:99999", false);
        check("10.0.0.0/33", false);
        check("localhost", false);
        check("", false);
    }
}
