//! The file of tokens: a line `NAME SCOPES EXPIRES DIGEST` each.
//!
//! A token is 256 random bits, so its SHA-256 digest tells whoever reads the file nothing that could
//! be guessed from: there is no dictionary of such tokens to go through, against which the slow
//! digests of passwords are made.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_model::hex;

use crate::draft;

use super::digest;
use super::scope::Scopes;

/// The file in the state directory.
const FILE: &str = "tokens";
/// The file beside it that says that there were tokens, which outlives the last of them.
const HAD_TOKENS: &str = "tokens-were-here";
/// Longest file: 4096 tokens of the longest names.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest name of a token.
const NAME_BYTES_MAX: usize = 64;
/// What stands for no expiry.
const NEVER: &str = "-";

/// A digest of a token.
pub(super) type Digest = [u8; 32];

/// A token, without what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its name, for lists and logs.
    pub name: String,
    /// What it is good for.
    pub scopes: Scopes,
    /// From when on it is good for nothing, in seconds of the UNIX epoch.
    pub expires_s: Option<u64>,
    pub(super) digest: Digest,
}

/// The tokens of an agent, in their file.
#[derive(Debug, Clone)]
pub struct Register {
    directory: PathBuf,
}

/// What was read of the file, and when it was another.
#[derive(Debug, Default)]
pub(super) struct Reading {
    stamp: Option<Stamp>,
    tokens: Vec<Token>,
}

/// What changes whenever the file does: a change is another file in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed: (i64, i64),
}

/// Why tokens could not be read or changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegisterError {
    /// The file cannot be used.
    #[error("cannot {doing} the tokens in {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A line is no token.
    #[error("line {line} of {} is not NAME SCOPES EXPIRES DIGEST", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The name cannot be one.
    #[error("`{0}` cannot name a token: 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// There is one of that name.
    #[error("there is a token `{0}` already")]
    Exists(String),
}

impl Register {
    /// Returns the register in a directory; neither need exist yet.
    pub fn of(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Returns the directory that it is in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns its file.
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Returns all tokens.
    pub fn tokens(&self) -> Result<Vec<Token>, RegisterError> {
        let path = self.path();
        match draft::read_private(&path, FILE_BYTES_MAX) {
            Ok(text) => parse(&text).map_err(|line| RegisterError::Line { path, line }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.io("read")(error)),
        }
    }

    /// Returns whether there ever were tokens here, so that callers without one are not trusted for where they call
    /// from.
    pub fn had_tokens(&self) -> bool {
        // What cannot be told is taken to be so.
        self.mark().try_exists().unwrap_or(true)
    }

    /// Returns the file that says so; without it and without tokens the agent trusts its host's callers.
    pub fn mark(&self) -> PathBuf {
        self.directory.join(HAD_TOKENS)
    }

    /// Notes that there are tokens, or were.
    pub fn note_tokens(&self) -> Result<(), RegisterError> {
        let made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.mark());
        let made = made.and_then(|file| file.sync_all());
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(self.io("note that there are")),
        }
    }

    /// Makes a token and returns what its holder shows; it is kept nowhere.
    pub fn add(
        &self,
        name: &str,
        scopes: Scopes,
        expires_s: Option<u64>,
    ) -> Result<String, RegisterError> {
        if !is_name(name) {
            return Err(RegisterError::Name(name.to_owned()));
        }
        let _guard = self.lock()?;
        let mut tokens = self.tokens()?;
        if tokens.iter().any(|token| token.name == name) {
            return Err(RegisterError::Exists(name.to_owned()));
        }
        self.note_tokens()?;
        let secret = hex::encode(&self.random::<32>()?);
        tokens.push(Token {
            name: name.to_owned(),
            scopes,
            expires_s,
            digest: digest(secret.as_bytes()),
        });
        self.write(&tokens)?;
        Ok(secret)
    }

    /// Removes a token; returns whether there was one of that name.
    pub fn remove(&self, name: &str) -> Result<bool, RegisterError> {
        if !self.path().exists() {
            return Ok(false);
        }
        let _guard = self.lock()?;
        let mut tokens = self.tokens()?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            return Ok(false);
        }
        self.write(&tokens)?;
        Ok(true)
    }

    /// Returns the tokens as they are now; the file is read where it is another than before.
    pub(super) fn renewed<'a>(
        &self,
        reading: &'a mut Reading,
    ) -> Result<&'a [Token], RegisterError> {
        let stamp = match std::fs::metadata(self.path()) {
            Ok(metadata) => Some(Stamp {
                inode: metadata.ino(),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.io("read")(error)),
        };
        if stamp != reading.stamp {
            *reading = Reading::default();
            reading.tokens = self.tokens()?;
            reading.stamp = stamp;
        }
        Ok(&reading.tokens)
    }

    /// Puts another file in the place of the present one.
    fn write(&self, tokens: &[Token]) -> Result<(), RegisterError> {
        let text: String = tokens.iter().map(line).collect();
        let kept = draft::keep(&self.path(), &text, |draft, file| {
            self.give_to_owner(file)?;
            std::fs::rename(draft, self.path())
        });
        kept.map_err(self.io("write"))
    }

    /// Gives a draft to whom the present file belongs, or its directory where there is none: root makes
    /// tokens for an agent that is another user.
    fn give_to_owner(&self, draft: &File) -> std::io::Result<()> {
        let present = std::fs::symlink_metadata(self.path());
        let owner = present.or_else(|_| std::fs::metadata(&self.directory))?;
        if owner.uid() == draft.metadata()?.uid() {
            return Ok(());
        }
        std::os::unix::fs::fchown(draft, Some(owner.uid()), Some(owner.gid()))
    }

    /// Makes the file where there is none: whom it belongs to has those that follow it, too.
    pub fn make(&self) -> Result<(), RegisterError> {
        let _guard = self.lock()?;
        match std::fs::symlink_metadata(self.path()) {
            Ok(_) => Ok(()),
            Err(_) => self.write(&[]),
        }
    }

    /// Holds other writers back until the guard is dropped.
    fn lock(&self) -> Result<File, RegisterError> {
        let locked = draft::make_directory(&self.directory)
            .and_then(|()| draft::check_directory(&self.directory))
            .and_then(|()| File::open(&self.directory))
            .and_then(|directory| directory.lock().map(|()| directory));
        locked.map_err(self.io("change"))
    }

    fn random<const BYTES: usize>(&self) -> Result<[u8; BYTES], RegisterError> {
        let mut bytes = [0; BYTES];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(|error| self.io("make")(std::io::Error::other(error.to_string())))?;
        Ok(bytes)
    }

    fn io(&self, doing: &'static str) -> impl Fn(std::io::Error) -> RegisterError {
        let path = self.path();
        move |source| RegisterError::Io {
            doing,
            path: path.clone(),
            source: Arc::new(source),
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

fn line(token: &Token) -> String {
    let expires = token.expires_s;
    let expires = expires.map_or(NEVER.to_owned(), |expires| expires.to_string());
    let digits = hex::encode(&token.digest);
    format!("{} {} {expires} {digits}\n", token.name, token.scopes)
}

/// Returns the tokens of a file, or the number of the line that is none.
fn parse(text: &str) -> Result<Vec<Token>, usize> {
    let lines = draft::entries(text);
    lines.map(|(at, line)| token(line).ok_or(at)).collect()
}

fn token(line: &str) -> Option<Token> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, scopes, expires, digits] = words[..] else {
        return None;
    };
    Some(Token {
        name: is_name(name).then(|| name.to_owned())?,
        scopes: scopes.parse().ok()?,
        expires_s: match expires {
            NEVER => None,
            expires => Some(expires.parse().ok()?),
        },
        digest: hex::decode(digits)?,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_shown_is_not_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::of(&folder.path().join("state"));
        assert_eq!(register.tokens().unwrap(), []);
        assert!(!register.remove("ci").unwrap());
        let scopes: Scopes = "measure".parse().unwrap();
        let one = register.add("ci", scopes, None).unwrap();
        let two = register.add("lab.2", Scopes::ALL, Some(7)).unwrap();
        assert!(one.len() == 64 && one != two);
        let text = std::fs::read_to_string(register.path()).unwrap();
        assert!(!text.contains(&one) && !text.contains(&two), "{text}");
        assert!(text.starts_with("ci measure - "), "{text}");
        let mode = register.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let tokens = register.tokens().unwrap();
        assert_eq!(tokens[0].digest, digest(one.as_bytes()));
        assert_eq!(
            (tokens[1].name.as_str(), tokens[1].expires_s),
            ("lab.2", Some(7))
        );
        assert!(matches!(
            register.add("ci", scopes, None),
            Err(RegisterError::Exists(_))
        ));
        for bad in ["", "a b", "a\n", "ä", &"x".repeat(65)] {
            let refused = register.add(bad, scopes, None);
            assert!(matches!(refused, Err(RegisterError::Name(_))), "{bad}");
        }
        assert!(register.remove("ci").unwrap());
        assert_eq!(register.tokens().unwrap().len(), 1);
    }

    /// An agent's user owns the directory of its tokens, and would own what it makes root give away.
    #[test]
    fn what_is_given_to_the_agents_user_is_what_was_written() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (own, victim) = (folder.path().join("state"), folder.path().join("victim"));
        std::fs::create_dir(&own).unwrap();
        std::fs::write(&victim, "").unwrap();
        std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
        let (path, at) = (own.join("tokens"), own.join("there"));
        let kept = draft::keep(&path, "", |draft, file| {
            std::fs::remove_file(draft)?;
            std::os::unix::fs::symlink(&victim, draft)?;
            Register::of(&own).give_to_owner(file)?;
            std::fs::rename(draft, &at)
        });
        kept.unwrap();
        assert_eq!(std::fs::metadata(&at).unwrap().uid(), 0);
    }

    #[test]
    fn several_at_once_lose_none() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::of(folder.path());
        let writers: Vec<_> = (0..8)
            .map(|at| {
                let register = register.clone();
                std::thread::spawn(move || {
                    register.add(&format!("t{at}"), Scopes::ALL, None).unwrap()
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(register.tokens().unwrap().len(), 8);
    }

    #[test]
    fn lines_that_are_no_tokens_are_named() {
        let digits = "0".repeat(64);
        let good = format!("# ours\n\nci measure - {digits}\n");
        assert_eq!(parse(&good).map(|tokens| tokens.len()), Ok(1));
        for bad in [
            "ci".to_owned(),
            format!("ci all - {digits}"),
            format!("ci measure soon {digits}"),
            format!("ci measure - {}", &digits[1..]),
            format!("ci measure - {digits} more"),
        ] {
            assert_eq!(parse(&format!("{good}{bad}\n")), Err(4), "{bad}");
        }
    }
}
