//! Passwords: RSA tokens and the file of users.
//!
//! The client encrypts user, password and time with the server's public key; the server decrypts
//! them, compares the password's digest with its file of users, and the time with its clock. The
//! token is not bound to anything else: who reads it on the wire can use it until the clock has
//! moved on, which is what the skew threshold is for.
//!
//! Two paddings exist. OAEP is what iperf3 uses since 3.17; PKCS#1 v1.5 is what 3.16 and earlier
//! use, and what a server asks for with `--use-pkcs1-padding`. A server takes one of them only:
//! answers that depend on the padding are what CVE-2024-26306 was about. Whatever is wrong with a
//! token, the client is told the same number.

use std::convert::Infallible;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How far the clocks may be apart if nobody says otherwise, in seconds.
pub const SKEW_S: u64 = 10;
/// Users of a file; a file with more is refused.
const USERS_MAX: usize = 10_000;
/// Bytes of a token in base64: a key of 16384 bits makes 2732.
const TOKEN_BYTES_MAX: usize = 4096;
/// Bytes of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// Fills a slice with random bytes that cannot be foreseen.
pub type FillRandom<'a> = &'a mut dyn FnMut(&mut [u8]);

/// How the token is padded before it is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1, since 3.17.
    Oaep,
    /// PKCS#1 v1.5, up to 3.16.
    Pkcs1,
}

/// The key with which a client encrypts.
#[derive(Debug, Clone)]
pub struct PublicKey(RsaPublicKey);

/// The key with which a server decrypts.
#[derive(Clone)]
pub struct PrivateKey(RsaPrivateKey);

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// Why a key or a file of users is not taken.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// The text is no public RSA key.
    #[error("no RSA public key in PEM (\"BEGIN PUBLIC KEY\")")]
    PublicKey(#[source] rsa::pkcs8::spki::Error),
    /// The text is no private RSA key.
    #[error("no RSA private key in PEM without a passphrase (\"BEGIN PRIVATE KEY\")")]
    PrivateKey(#[source] rsa::pkcs8::Error),
    /// A line of the file of users.
    #[error("line {line} of the users is not NAME,DIGEST with a SHA-256 digest of 64 hex digits")]
    User {
        /// The line, from 1.
        line: usize,
    },
    /// Nobody could ever get in.
    #[error("the users file has no entry")]
    Nobody,
    /// Too many users.
    #[error("the file of users names more than {USERS_MAX}")]
    Users,
}

/// Why a token could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A line break would change the meaning of the token.
    #[error("user and password may not contain a line break")]
    LineBreak,
    /// User and password are too long for the key.
    #[error("user and password are too long for the key")]
    Encrypt(#[source] rsa::Error),
}

/// Why somebody is not let in. The client is told the same number for all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token came.
    #[error("the client sent no user and password")]
    NoToken,
    /// The token cannot be read.
    #[error("the token cannot be decrypted; the client may use another key or padding")]
    Token,
    /// User or password is wrong.
    #[error("user \"{0}\" is unknown or the password is wrong")]
    Password(String),
    /// The clocks are too far apart, or the token is an old one.
    #[error("the client's clock differs by {skew_s} s, more than {threshold_s} s")]
    Skew {
        /// How far apart.
        skew_s: u64,
        /// What is allowed.
        threshold_s: u64,
    },
}

impl PublicKey {
    /// Reads a key in PEM.
    pub fn from_pem(text: &str) -> Result<Self, AuthSetupError> {
        let key = RsaPublicKey::from_public_key_pem(text.trim());
        key.map(Self).map_err(AuthSetupError::PublicKey)
    }
}

impl PrivateKey {
    /// Reads a key in PEM, of PKCS#8 or PKCS#1.
    pub fn from_pem(text: &str) -> Result<Self, AuthSetupError> {
        let text = text.trim();
        if let Ok(key) = RsaPrivateKey::from_pkcs1_pem(text) {
            return Ok(Self(key));
        }
        let key = RsaPrivateKey::from_pkcs8_pem(text);
        key.map(Self).map_err(AuthSetupError::PrivateKey)
    }
}

/// Who may use a server: a line `NAME,DIGEST` each, the digest being that of `{NAME}password`.
#[derive(Debug, Clone)]
pub struct Users(Vec<(String, [u8; DIGEST_BYTES])>);

impl Users {
    /// Reads a file of users; empty lines and lines that begin with `#` are skipped.
    pub fn parse(text: &str) -> Result<Self, AuthSetupError> {
        let mut users = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user = user(line).ok_or(AuthSetupError::User { line: at + 1 })?;
            users.push(user);
        }
        match users.len() {
            0 => Err(AuthSetupError::Nobody),
            count if count > USERS_MAX => Err(AuthSetupError::Users),
            _ => Ok(Self(users)),
        }
    }

    /// Returns whether `name` is a user with this password.
    ///
    /// Every user is looked at and every digest compared in full, so that time tells nothing about
    /// who is in the file or how much of a digest fits.
    pub fn admits(&self, name: &str, password: &str) -> bool {
        let digest = digest(name, password);
        let mut found = subtle::Choice::from(0);
        for (user, expected) in &self.0 {
            found |= user.as_bytes().ct_eq(name.as_bytes()) & expected.ct_eq(&digest);
        }
        found.into()
    }
}

fn user(line: &str) -> Option<(String, [u8; DIGEST_BYTES])> {
    let (name, hex) = line.split_once(',')?;
    let hex = hex.trim();
    if name.is_empty() || hex.len() != 2 * DIGEST_BYTES || !hex.is_ascii() {
        return None;
    }
    let mut digest = [0; DIGEST_BYTES];
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
    }
    Some((name.trim().to_owned(), digest))
}

fn digest(name: &str, password: &str) -> [u8; DIGEST_BYTES] {
    Sha256::digest(format!("{{{name}}}{password}")).into()
}

/// What a server checks a token with.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The key.
    pub key: PrivateKey,
    /// Who may enter.
    pub users: Users,
    /// The padding that is taken.
    pub padding: Padding,
    /// How far the clocks may be apart, in seconds.
    pub skew_s: u64,
}

impl Gate {
    /// Returns the user that `token` lets in at `unix_s`, or why it lets nobody in.
    ///
    /// `random` blinds the decryption, so that its time tells nothing about the key.
    pub fn check(
        &self,
        token: Option<&str>,
        unix_s: u64,
        random: FillRandom<'_>,
    ) -> Result<String, Denied> {
        let token = token.ok_or(Denied::NoToken)?;
        let text = self.open(token, random).ok_or(Denied::Token)?;
        let (name, password, then_s) = fields(&text).ok_or(Denied::Token)?;
        // The password is looked at before the clock, so that a stranger learns nothing of either.
        let admitted = self.users.admits(name, password);
        let skew_s = unix_s.abs_diff(then_s);
        if !admitted {
            return Err(Denied::Password(name.to_owned()));
        }
        if skew_s > self.skew_s {
            let threshold_s = self.skew_s;
            return Err(Denied::Skew {
                skew_s,
                threshold_s,
            });
        }
        Ok(name.to_owned())
    }

    fn open(&self, token: &str, random: FillRandom<'_>) -> Option<String> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let letters: String = token.split_ascii_whitespace().collect();
        let sealed = STANDARD.decode(letters).ok()?;
        let mut random = Random(random);
        let key = &self.key.0;
        let opened = match self.padding {
            Padding::Oaep => key.decrypt_blinded(&mut random, Oaep::<Sha1>::new(), &sealed),
            Padding::Pkcs1 => key.decrypt_blinded(&mut random, Pkcs1v15Encrypt, &sealed),
        };
        String::from_utf8(opened.ok()?).ok()
    }
}

/// Returns user, password and time of the text inside a token.
fn fields(text: &str) -> Option<(&str, &str, u64)> {
    let mut lines = text.split('\n');
    let name = lines.next()?.strip_prefix("user: ")?;
    let password = lines.next()?.strip_prefix("pwd:  ")?;
    let time = lines.next()?.strip_prefix("ts:   ")?;
    let time = time.trim_end_matches('\0').trim().parse().ok()?;
    (lines.next().is_none() && !name.is_empty()).then_some((name, password, time))
}

/// Returns the token with which `name` asks to be let in at `unix_s`.
pub fn make_token(
    name: &str,
    password: &str,
    unix_s: u64,
    key: &PublicKey,
    padding: Padding,
    random: FillRandom<'_>,
) -> Result<String, TokenError> {
    if name.contains('\n') || password.contains('\n') {
        return Err(TokenError::LineBreak);
    }
    let text = format!("user: {name}\npwd:  {password}\nts:   {unix_s}");
    let mut random = Random(random);
    let sealed = match padding {
        Padding::Oaep => key
            .0
            .encrypt(&mut random, Oaep::<Sha1>::new(), text.as_bytes()),
        Padding::Pkcs1 => key.0.encrypt(&mut random, Pkcs1v15Encrypt, text.as_bytes()),
    };
    let sealed = sealed.map_err(TokenError::Encrypt)?;
    Ok(STANDARD.encode(sealed))
}

/// The caller's random bytes in the form that the crate `rsa` takes.
struct Random<'a>(FillRandom<'a>);

impl TryRng for Random<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        (self.0)(&mut bytes);
        Ok(u32::from_ne_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        (self.0)(&mut bytes);
        Ok(u64::from_ne_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        (self.0)(bytes);
        Ok(())
    }
}

impl TryCryptoRng for Random<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: &str = include_str!("../../tests/keys/only-for-tests-private.pem");
    const PRIVATE_PKCS1: &str = include_str!("../../tests/keys/only-for-tests-private-pkcs1.pem");
    const PUBLIC: &str = include_str!("../../tests/keys/only-for-tests-public.pem");
    /// SHA-256 of `{mario}rossi`, by coreutils.
    const USERS: &str =
        "# who\n\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
    /// Recorded from 3.12: user mario, password rossi.
    const TOKEN_OF_3_12: &str = "ADWSWIenQxI0km2W8GSVgeypCQSrgNfKtfXXf+BiRU/5X0oTmJ/cfUcAIcP7B3P9k9kPwLy4rkEjjsNq+jPkYD/3S4MtXDz+BKkrAu9DEfJt6GPM2Jd5mv8625By04vGKQ5VB/hdW0ESdJIy+tjUefiF8f7avyHlO8dG0P/K26X0b95QppP8gp0WRbweWWlhOGjaq1F5ber6xV49EwrK6dg7ObEGzjD2yfMupLEN82BiuUcD1B8NEj/yyTf0fxv7mNt7aCZXCDRMBpqwgQwd06gedIX80QCQmimDXP0fHiU4qkL9M8/i2KoFbbUsrV20VN5hqnDJT4E0A27ErGN11Q==";
    const TOKEN_UNIX_S: u64 = 1795191325;

    /// Returns a source of bytes that differ from call to call.
    fn random() -> impl FnMut(&mut [u8]) {
        let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
        move |bytes| {
            for byte in bytes {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = (state >> 24) as u8 | 1;
            }
        }
    }

    fn gate(padding: Padding) -> Gate {
        Gate {
            key: PrivateKey::from_pem(PRIVATE).unwrap(),
            users: Users::parse(USERS).unwrap(),
            padding,
            skew_s: SKEW_S,
        }
    }

    #[test]
    fn a_token_of_3_12_is_opened() {
        let check = |gate: &Gate, after_s: u64, expected: Result<String, Denied>| {
            let now = TOKEN_UNIX_S + after_s;
            assert_eq!(
                gate.check(Some(TOKEN_OF_3_12), now, &mut random()),
                expected
            );
        };
        let mut old = gate(Padding::Pkcs1);
        check(&old, 0, Ok("mario".into()));
        check(&old, 10, Ok("mario".into()));
        let skew = Denied::Skew {
            skew_s: 11,
            threshold_s: 10,
        };
        check(&old, 11, Err(skew));
        old.key = PrivateKey::from_pem(PRIVATE_PKCS1).unwrap();
        check(&old, 0, Ok("mario".into()));
        check(&gate(Padding::Oaep), 0, Err(Denied::Token));
    }

    #[test]
    fn what_is_sealed_is_opened_with_either_padding() {
        let key = PublicKey::from_pem(PUBLIC).unwrap();
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let check = |name: &str, password: &str, expected: Result<String, Denied>| {
                let token = make_token(name, password, 100, &key, padding, &mut random()).unwrap();
                let got = gate(padding).check(Some(&token), 95, &mut random());
                assert_eq!(got, expected, "{padding:?}");
            };
            check("mario", "rossi", Ok("mario".into()));
            check("mario", "rossi ", Err(Denied::Password("mario".into())));
            check("luigi", "rossi", Err(Denied::Password("luigi".into())));
        }
    }

    #[test]
    fn what_is_no_token_lets_nobody_in() {
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let gate = gate(padding);
            assert_eq!(gate.check(None, 0, &mut random()), Err(Denied::NoToken));
            let long = "A".repeat(TOKEN_BYTES_MAX + 1);
            let zeros = STANDARD.encode([0; 256]);
            for token in ["", "!", "AAAA", &long, &zeros] {
                let got = gate.check(Some(token), 0, &mut random());
                assert_eq!(got, Err(Denied::Token), "{padding:?} {token}");
            }
        }
    }

    #[test]
    fn a_password_cannot_say_what_time_it_is() {
        let key = PublicKey::from_pem(PUBLIC).unwrap();
        let forged = make_token(
            "mario",
            "rossi\nts:   9",
            0,
            &key,
            Padding::Oaep,
            &mut random(),
        );
        assert!(matches!(forged, Err(TokenError::LineBreak)));
        assert_eq!(fields("user: a\npwd:  b\nts:   9\nts:   1"), None);
        assert_eq!(fields("user: a\npwd:  b c\nts:   9"), Some(("a", "b c", 9)));
        assert_eq!(fields("user: \npwd:  b\nts:   9"), None);
    }

    #[test]
    fn files_of_users() {
        let check = |text: &str, expected: &str| {
            let error = Users::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("", "has no entry");
        check("#\n\nmario", "line 3");
        check("mario,12", "line 1");
        check(&format!("mario,{}", "g".repeat(64)), "line 1");
        check(&format!("mario,{}", "ä".repeat(32)), "line 1");
    }

    #[test]
    fn keys_that_are_none() {
        assert!(PublicKey::from_pem(PRIVATE).is_err());
        assert!(PrivateKey::from_pem(PUBLIC).is_err());
        assert!(PrivateKey::from_pem("").is_err());
        assert!(!format!("{:?}", PrivateKey::from_pem(PRIVATE).unwrap()).contains("BEGIN"));
    }
}
