//! The labs of one user, and their state files.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::end::{DownError, end};
use super::place::{base_of, secure};
use super::state::{FORMAT, State};
use crate::spec::{name_is_valid, name_rule};

/// Most bytes of a state file: 64 hosts need 20 KiB.
const STATE_BYTES_MAX: u64 = 1 << 20;
/// Name of the state file in a lab's directory.
const STATE_FILE: &str = "state.json";

/// The directory of all labs of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    root: PathBuf,
}

/// A state file that was written: this very file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    path: PathBuf,
    identity: Identity,
}

/// What tells a file from others: device, inode and the time of writing, since inodes are used again.
type Identity = (u64, u64, i64, i64);

fn identity(file: &fs::Metadata) -> Identity {
    (file.dev(), file.ino(), file.mtime(), file.mtime_nsec())
}

/// Why the labs could not be found or read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A directory could not be made or read.
    #[error("cannot use the directory {path}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A directory in a shared place belongs to someone else, or others may write to it.
    #[error(
        "cannot trust the directory {path}: it must belong to user {user} with mode 0700; remove it or set XDG_RUNTIME_DIR"
    )]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// This user's id.
        user: u32,
    },
    /// A state file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The name cannot name a lab.
    #[error("a lab cannot be called `{name}`: allowed are {rule}")]
    Name {
        /// The name.
        name: String,
        /// The rule.
        rule: String,
    },
    /// There is no such lab.
    #[error("there is no lab `{name}`: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The labs there are, as a sentence.
        known: String,
    },
}

/// Says that a directory cannot be used.
pub(super) fn unusable(path: &Path) -> impl Fn(io::Error) -> RegistryError {
    move |source| RegistryError::Directory {
        path: path.to_owned(),
        source,
    }
}

impl Written {
    fn at(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&fs::metadata(&path)?);
        Ok(Self { path, identity })
    }

    /// Returns whether it is still there, and no other in its place; what cannot be looked at may be.
    pub(crate) fn is_there(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(file) => identity(&file) == self.identity,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Registry {
    /// Returns the registry at `root`, making the directory if it is not there.
    pub fn at(root: PathBuf) -> Result<Self, RegistryError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root);
        made.map_err(unusable(&root))?;
        Ok(Self { root })
    }

    /// Returns this user's registry, as the module says.
    pub fn of_user() -> Result<Self, RegistryError> {
        let user = geteuid().as_raw();
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let base = base_of(user, runtime);
        if base.starts_with(env::temp_dir()) {
            secure(&base, user)?;
        }
        Self::at(base.join("lab"))
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns all labs by name, the crashed ones included, and why others cannot be read: another version
    /// may have made them.
    pub fn list(&self) -> Result<(Vec<State>, Vec<RegistryError>), RegistryError> {
        let (mut states, mut unreadable) = (Vec::new(), Vec::new());
        for name in self.names()? {
            match self.read(&name) {
                // A directory without a state is a lab that is coming up, or crashed on its way.
                Ok(state) => states.extend(state),
                Err(error) => unreadable.push(error),
            }
        }
        Ok((states, unreadable))
    }

    /// Returns lab `name`; an error if there is none.
    pub fn find(&self, name: &str) -> Result<State, RegistryError> {
        if let Some(state) = self.read(name)? {
            return Ok(state);
        }
        let names = self.names()?;
        let known = match names.as_slice() {
            [] => "none is known".to_owned(),
            [one] => format!("only `{one}` is known"),
            many => format!("known are {}", many.join(", ")),
        };
        Err(RegistryError::Unknown {
            name: name.to_owned(),
            known,
        })
    }

    /// Takes down lab `name` and waits until nothing of it is left.
    ///
    /// 1. SIGTERM to the holder, which takes the lab down. 2. SIGKILL, if it has not ended in
    ///    time; the kernel then ends the hosts. 3. The hosts' first processes are waited for.
    /// 4. The directory is removed.
    pub fn down(&self, name: &str) -> Result<(), DownError> {
        let _lock = self.lock()?;
        self.find(name)?;
        self.end_and_remove(name)
    }

    /// Takes down all labs and removes what crashed ones left; returns their names.
    ///
    /// One of which nobody can tell who holds it stays, and is an error once the others are gone.
    pub fn down_all(&self) -> Result<Vec<String>, DownError> {
        let _lock = self.lock()?;
        let names = self.names()?;
        let mut failed = None;
        for name in &names {
            if let Err(error) = self.end_and_remove(name) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(names), Err)
    }

    fn end_and_remove(&self, name: &str) -> Result<(), DownError> {
        if let Some(state) = self.read(name)? {
            end(name, &state)?;
        }
        self.remove(name)
    }

    /// Waits until no other process brings labs up or down, and keeps it so until dropped.
    pub(crate) fn lock(&self) -> Result<File, RegistryError> {
        // No lab's name begins with a dot.
        let path = self.root.join(".lock");
        let lock = || -> io::Result<File> {
            let file = File::create(&path)?;
            file.lock()?;
            Ok(file)
        };
        lock().map_err(unusable(&self.root))
    }

    /// Reads the state of lab `name`; `None` if there is no such file.
    pub(crate) fn read(&self, name: &str) -> Result<Option<State>, RegistryError> {
        let path = self.directory(name)?.join(STATE_FILE);
        let failed = |source| RegistryError::Read {
            path: path.clone(),
            source,
        };
        let text = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
            Ok(file) if file.len() > STATE_BYTES_MAX => {
                return Err(failed(io::ErrorKind::FileTooLarge.into()));
            }
            Ok(_) => fs::read_to_string(&path).map_err(failed)?,
        };
        let state: State = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        if state.format != FORMAT {
            let text = format!("format {} is not {FORMAT}", state.format);
            return Err(failed(io::Error::other(text)));
        }
        Ok(Some(state))
    }

    /// Writes the state of a lab; a reader sees all of it or nothing.
    pub(crate) fn write(&self, state: &State) -> io::Result<Written> {
        let directory = self.root.join(&state.spec.name);
        let text = serde_json::to_string_pretty(state)?;
        let draft = directory.join("state.json.new");
        fs::write(&draft, text)?;
        let path = directory.join(STATE_FILE);
        fs::rename(draft, &path)?;
        Written::at(path)
    }

    /// Returns the directory of lab `name`.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, RegistryError> {
        if !name_is_valid(name) {
            return Err(RegistryError::Name {
                name: name.to_owned(),
                rule: name_rule(),
            });
        }
        Ok(self.root.join(name))
    }

    /// Removes the directory of lab `name`.
    pub(crate) fn remove(&self, name: &str) -> Result<(), DownError> {
        let path = self.directory(name)?;
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(DownError::Remove { path, source })
            }
            _ => Ok(()),
        }
    }

    fn names(&self) -> Result<Vec<String>, RegistryError> {
        let failed = unusable(&self.root);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(&failed)? {
            let name = entry.map_err(&failed)?.file_name();
            names.extend(name.into_string().ok().filter(|name| name_is_valid(name)));
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let registry = Registry::at(place.path().join("lab")).expect("made");
        assert!(matches!(
            registry.find("../x"),
            Err(RegistryError::Name { .. })
        ));
        let error = registry.find("x").expect_err("there is none");
        assert!(error.to_string().contains("none is known"), "{error}");
    }

    #[test]
    fn a_lab_that_crashed_on_its_way_up_is_cleaned() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let registry = Registry::at(place.path().join("lab")).expect("made");
        fs::create_dir(registry.root().join("half")).expect("our own directory");
        assert_eq!(registry.list().expect("readable").0.len(), 0);
        assert_eq!(registry.down_all().expect("cleaned"), ["half"]);
        assert!(!registry.root().join("half").exists());
    }

    #[test]
    fn one_that_cannot_be_read_does_not_keep_others() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let registry = Registry::at(place.path().join("lab")).expect("made");
        for name in ["a", "b", "c"] {
            fs::create_dir(registry.root().join(name)).expect("our own directory");
        }
        let newer = registry.root().join("b").join(STATE_FILE);
        fs::write(newer, r#"{"format": 1, "later": true}"#).expect("our own file");
        let (states, unreadable) = registry.list().expect("readable");
        assert_eq!((states.len(), unreadable.len()), (0, 1));
        let error = registry.down_all().expect_err("one cannot be read");
        assert!(error.to_string().contains("state.json"), "{error}");
        let left = registry.names().expect("our own directory");
        assert_eq!(left, ["b"]);
    }
}
