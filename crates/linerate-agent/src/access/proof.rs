//! Showing that a token is known without showing it.
//!
//! A caller that meets an agent for the first time knows its token and not its certificate, so it must not send the
//! one before it trusts the other. It sends a proof instead, and the agent answers with its own:
//!
//! ```text
//! proof = HMAC-SHA256(key = SHA-256(token), role || channel)
//! channel = 32 bytes exported from the TLS connection (RFC 8446, section 7.5; RFC 9266)
//! ```
//!
//! 1. Both ends of a TLS connection export the same bytes, and no other connection has them: who stands between two
//!    connections cannot hand a proof on from one to the other.
//! 2. The roles differ, so a caller's own proof is no answer to it.
//! 3. The agent answers only who was right: it gives nobody what guesses could be tried on.
//! 4. A proof lets nobody in, so a reader of the agent's digests cannot call it: requests need the token itself.

use std::fmt;

use linerate_model::hex;
use ring::hmac;

use super::register::Digest;

/// What the exported bytes are for (RFC 5705, section 4).
pub(crate) const LABEL: &[u8] = b"EXPORTER-linerate-token-proof";
/// Their number, and that of a proof.
const BYTES: usize = 32;

/// What both ends of one TLS connection know, and nobody else.
#[derive(Clone, Copy)]
pub(crate) struct Channel([u8; BYTES]);

/// Who proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Who calls.
    Caller,
    /// Who is called.
    Agent,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").finish_non_exhaustive()
    }
}

impl Channel {
    /// Returns that of a connection, which `export` exports from.
    pub(crate) fn of(
        export: impl FnOnce([u8; BYTES]) -> Result<[u8; BYTES], rustls::Error>,
    ) -> Result<Self, rustls::Error> {
        export([0; BYTES]).map(Self)
    }

    /// Returns the proof that `role` knows the token of a digest, in hexadecimal digits.
    pub(crate) fn proof(&self, role: Role, token: &Digest) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, token);
        hex::encode(hmac::sign(&key, &self.said_by(role)).as_ref())
    }

    /// Returns whether `proof` is that one, in a time that does not depend on where they differ.
    pub(crate) fn is_proof(&self, role: Role, token: &Digest, proof: &[u8]) -> bool {
        let proof: Option<[u8; BYTES]> = std::str::from_utf8(proof).ok().and_then(hex::decode);
        let key = hmac::Key::new(hmac::HMAC_SHA256, token);
        proof.is_some_and(|proof| hmac::verify(&key, &self.said_by(role), &proof).is_ok())
    }

    fn said_by(&self, role: Role) -> Vec<u8> {
        let role: &[u8] = match role {
            Role::Caller => b"caller",
            Role::Agent => b"agent",
        };
        [role, &self.0].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_token_one_role_and_one_connection() {
        let channel = |byte: u8| Channel([byte; BYTES]);
        let token = [7; 32];
        let proof = channel(1).proof(Role::Caller, &token);
        let is_right = |channel: Channel, role, token: &Digest, proof: &str| {
            channel.is_proof(role, token, proof.as_bytes())
        };
        assert!(is_right(channel(1), Role::Caller, &token, &proof));
        assert!(!is_right(channel(2), Role::Caller, &token, &proof));
        assert!(!is_right(channel(1), Role::Agent, &token, &proof));
        assert!(!is_right(channel(1), Role::Caller, &[8; 32], &proof));
        for wrong in ["", "00", &proof[1..], &format!("{proof}00")] {
            assert!(
                !is_right(channel(1), Role::Caller, &token, wrong),
                "{wrong}"
            );
        }
    }
}
