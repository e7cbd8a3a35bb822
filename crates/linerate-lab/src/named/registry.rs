//! Where the state files are, and taking labs down.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;

use super::state::{FORMAT, State};
use crate::spec::{name_is_valid, name_rule};
use crate::sys::process;

/// How long a holder may take to end after SIGTERM before it is killed.
const POLITE_LIMIT: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of a state file: 64 hosts need 20 KiB.
const STATE_BYTES_MAX: u64 = 1 << 20;
/// Name of the state file in a lab's directory.
const STATE_FILE: &str = "state.json";

/// The directory of all labs of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    root: PathBuf,
}

/// Why the labs could not be found or read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A directory could not be made or read.
    #[error("use the directory {path}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A directory in a shared place belongs to someone else, or others may write to it.
    #[error(
        "trust the directory {path}: it must belong to user {user} with mode 0700; remove it or set XDG_RUNTIME_DIR"
    )]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// This user's id.
        user: u32,
    },
    /// A state file could not be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The name cannot name a lab.
    #[error("name a lab `{name}`: allowed are {rule}")]
    Name {
        /// The name.
        name: String,
        /// The rule.
        rule: String,
    },
    /// There is no such lab.
    #[error("find lab `{name}`: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The labs there are, as a sentence.
        known: String,
    },
}

/// Why a lab could not be taken down.
#[derive(Debug, thiserror::Error)]
pub enum DownError {
    /// The labs could not be found or read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A process of the lab could not be signalled.
    #[error("end process {pid} of lab `{name}`")]
    Signal {
        /// The lab.
        name: String,
        /// The process.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A process of the lab is still there.
    #[error("end process {pid} of lab `{name}`: it is still there after SIGKILL")]
    StillThere {
        /// The lab.
        name: String,
        /// The process.
        pid: u32,
    },
    /// The lab's directory could not be removed.
    #[error("remove {path}")]
    Remove {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl Registry {
    /// Returns the registry at `root`, making the directory if it is not there.
    pub fn at(root: PathBuf) -> Result<Self, RegistryError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root);
        made.map_err(|source| RegistryError::Directory {
            path: root.clone(),
            source,
        })?;
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

    /// Returns all labs by name, the crashed ones included.
    pub fn list(&self) -> Result<Vec<State>, RegistryError> {
        let mut states = Vec::new();
        for name in self.names()? {
            // A directory without a state is a lab that is coming up, or crashed on its way.
            states.extend(self.read(&name)?);
        }
        Ok(states)
    }

    /// Returns lab `name`; an error if there is none.
    pub fn find(&self, name: &str) -> Result<State, RegistryError> {
        if let Some(state) = self.read(name)? {
            return Ok(state);
        }
        let names = self.names()?;
        let known = if names.is_empty() {
            "there is none; bring one up first".to_owned()
        } else {
            format!("there are {}", names.join(", "))
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
        let state = self.find(name)?;
        self.end(name, &state)?;
        self.remove(name)
    }

    /// Takes down all labs and removes what crashed ones left; returns their names.
    pub fn down_all(&self) -> Result<Vec<String>, DownError> {
        let _lock = self.lock()?;
        let names = self.names()?;
        for name in &names {
            if let Some(state) = self.read(name)? {
                self.end(name, &state)?;
            }
            self.remove(name)?;
        }
        Ok(names)
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
        lock().map_err(|source| RegistryError::Directory {
            path: self.root.clone(),
            source,
        })
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
    pub(crate) fn write(&self, state: &State) -> io::Result<()> {
        let directory = self.root.join(&state.spec.name);
        let text = serde_json::to_string_pretty(state)?;
        let draft = directory.join("state.json.new");
        fs::write(&draft, text)?;
        fs::rename(draft, directory.join(STATE_FILE))
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
        let failed = |source| RegistryError::Directory {
            path: self.root.clone(),
            source,
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            names.extend(name.into_string().ok().filter(|name| name_is_valid(name)));
        }
        names.sort();
        Ok(names)
    }

    /// Ends every process of a lab and waits until they are gone.
    pub(crate) fn end(&self, name: &str, state: &State) -> Result<(), DownError> {
        if let Some(holder) = state.holder.open() {
            end_process(name, state.holder.pid, &holder)?;
            // Fails unless this process started it; then it would stay a zombie.
            let _reaped = process::reap(&holder);
        }
        for host in &state.hosts {
            if let Some(init) = host.init.open() {
                // It is ending with its holder; the signal only makes sure.
                kill(name, host.init.pid, &init)?;
            }
        }
        Ok(())
    }
}

/// Returns the directory for the program's runtime files.
fn base_of(user: u32, runtime: Option<PathBuf>) -> PathBuf {
    match runtime {
        _ if user == 0 => PathBuf::from("/run/linerate"),
        Some(runtime) if runtime.is_absolute() => runtime.join("linerate"),
        _ => env::temp_dir().join(format!("linerate-{user}")),
    }
}

/// Makes a directory in a place where anyone may write, and refuses one made by another.
fn secure(path: &Path, user: u32) -> Result<(), RegistryError> {
    let failed = |source| RegistryError::Directory {
        path: path.to_owned(),
        source,
    };
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Not followed if it is a link: then it is no directory.
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(RegistryError::Untrusted {
            path: path.to_owned(),
            user,
        });
    }
    Ok(())
}

fn end_process(name: &str, pid: u32, process: &OwnedFd) -> Result<(), DownError> {
    let failed = |source| DownError::Signal {
        name: name.to_owned(),
        pid,
        source,
    };
    signal(process, libc::SIGTERM).map_err(failed)?;
    if process::wait_ended(process.as_fd(), POLITE_LIMIT).map_err(failed)? {
        return Ok(());
    }
    kill(name, pid, process)
}

fn kill(name: &str, pid: u32, process: &OwnedFd) -> Result<(), DownError> {
    let failed = |source| DownError::Signal {
        name: name.to_owned(),
        pid,
        source,
    };
    signal(process, libc::SIGKILL).map_err(failed)?;
    if !process::wait_ended(process.as_fd(), KILL_LIMIT).map_err(failed)? {
        return Err(DownError::StillThere {
            name: name.to_owned(),
            pid,
        });
    }
    Ok(())
}

/// Signals a process; one that has just ended is as good.
fn signal(process: &OwnedFd, signal: libc::c_int) -> io::Result<()> {
    match process::signal(process.as_fd(), signal) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_place_depends_on_the_user() {
        let runtime = || Some(PathBuf::from("/run/user/7"));
        assert_eq!(base_of(0, runtime()), Path::new("/run/linerate"));
        assert_eq!(base_of(7, runtime()), Path::new("/run/user/7/linerate"));
        let shared = env::temp_dir().join("linerate-7");
        assert_eq!(base_of(7, None), shared);
        assert_eq!(base_of(7, Some("relative".into())), shared);
    }

    #[test]
    fn a_shared_directory_must_be_ours_alone() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let user = geteuid().as_raw();
        let own = place.path().join("own");
        secure(&own, user).expect("made with mode 0700");
        secure(&own, user).expect("found with mode 0700");
        assert!(secure(&own, user + 1).is_err(), "another user's");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&own, open).expect("our own directory");
        assert!(matches!(
            secure(&own, user),
            Err(RegistryError::Untrusted { .. })
        ));
        let link = place.path().join("link");
        symlink("/", &link).expect("our own directory");
        assert!(secure(&link, user).is_err(), "a link to elsewhere");
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let registry = Registry::at(place.path().join("lab")).expect("made");
        assert!(matches!(
            registry.find("../x"),
            Err(RegistryError::Name { .. })
        ));
        let error = registry.find("x").expect_err("there is none");
        assert!(error.to_string().contains("bring one up"), "{error}");
    }

    #[test]
    fn a_lab_that_crashed_on_its_way_up_is_cleaned() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let registry = Registry::at(place.path().join("lab")).expect("made");
        fs::create_dir(registry.root().join("half")).expect("our own directory");
        assert_eq!(registry.list().expect("readable").len(), 0);
        assert_eq!(registry.down_all().expect("cleaned"), ["half"]);
        assert!(!registry.root().join("half").exists());
    }
}
