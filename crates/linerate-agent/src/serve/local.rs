//! Callers of this host: the kernel says which user they are. Of a Unix socket no page in a browser and
//! nothing that forwards connections can have it say so; over loopback it is the user of what connected.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::access::User;

/// How old a socket's file is before it is taken to be what an agent left.
const SETTLED: Duration = Duration::from_secs(60);

/// A bound socket; its file goes with it.
#[derive(Debug)]
pub(super) struct LocalSocket {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
    inode: u64,
}

impl LocalSocket {
    /// Binds `path`, whose folder is made where it is missing. Of an agent that is gone the file is
    /// taken over; of one that answers it is not.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o755).create(folder)?;
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        let listener = std::os::unix::net::UnixListener::bind(path)?;
        // Whoever may connect is looked at again when it does: see `is_ours`.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let inode = std::fs::symlink_metadata(path)?.ino();
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode,
        })
    }

    /// Returns the socket as the runtime has it; to be called inside one.
    pub(super) fn listener(&self) -> io::Result<UnixListener> {
        UnixListener::from_std(self.listener.try_clone()?)
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let is_own = |meta: std::fs::Metadata| meta.ino() == self.inode;
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // Whoever removed it meanwhile wanted the same.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes what killed agents left in the folder of their sockets: `PORT.sock`, on which nobody listens.
/// One made a moment ago may be about to be listened on.
pub fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let port = name.to_str().and_then(|name| name.strip_suffix(".sock"));
        if port.is_none_or(|port| port.parse::<u16>().is_err()) {
            continue;
        }
        let is_old = |meta: std::fs::Metadata| {
            let age = meta.modified().ok().and_then(|made| made.elapsed().ok());
            meta.file_type().is_socket() && age.is_some_and(|age| age >= SETTLED)
        };
        let refused = || std::os::unix::net::UnixStream::connect(&path).err();
        if std::fs::symlink_metadata(&path).is_ok_and(is_old)
            && refused().is_some_and(|why| why.kind() == io::ErrorKind::ConnectionRefused)
        {
            // Whoever removed it meanwhile wanted the same.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns whether the other end is root or the agent's own user.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| is_own(peer.uid()))
}

/// Returns whose the other end of a connection from `peer` is. Who cannot be found is somebody else.
pub(crate) fn user_of(stream: &TcpStream, peer: SocketAddr) -> User {
    let own = stream.local_addr().ok();
    let own = own.filter(|_| peer.ip().to_canonical().is_loopback());
    let owner = own.and_then(|own| linerate_observe::owner_of(peer, own).ok());
    match owner {
        Some(uid) if is_own(uid) => User::Own,
        _ => User::Other,
    }
}

/// Returns whether a user is root or the agent's own.
fn is_own(uid: u32) -> bool {
    uid == 0 || (uid == nix::unistd::geteuid().as_raw() && !(uid == UNMAPPED && has_unmapped()))
}

/// What the kernel calls users that the agent's user namespace does not know, usually
/// (`kernel.overflowuid`).
const UNMAPPED: u32 = 65_534;

/// Returns whether there may be users whom the agent's user namespace does not know.
fn has_unmapped() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_agents_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let listens = std::os::unix::net::UnixListener::bind(at("1.sock")).unwrap();
        for name in ["2.sock", "3.sock", "other.sock"] {
            drop(std::os::unix::net::UnixListener::bind(at(name)).unwrap());
        }
        std::fs::write(at("4.sock"), "no socket").unwrap();
        let old = nix::sys::time::TimeSpec::new(1, 0);
        for name in ["1.sock", "2.sock", "4.sock", "other.sock"] {
            let flags = nix::sys::stat::UtimensatFlags::NoFollowSymlink;
            nix::sys::stat::utimensat(nix::fcntl::AT_FDCWD, &at(name), &old, &old, flags).unwrap();
        }
        sweep(folder.path());
        let left =
            ["1.sock", "2.sock", "3.sock", "4.sock", "other.sock"].map(|name| at(name).exists());
        assert_eq!(left, [true, false, true, true, true]);
        drop(listens);
        sweep(&at("nosuch"));
    }

    #[test]
    fn what_an_agent_left_is_taken_over_and_what_is_in_use_is_not() {
        let folder = std::env::temp_dir().join(format!("linerate-local-{}", std::process::id()));
        let path = folder.join("agent.sock");
        let first = LocalSocket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = LocalSocket::bind(&path).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        // An agent that was killed leaves its file.
        let LocalSocket { ref listener, .. } = first;
        let left = listener.try_clone().unwrap();
        std::mem::forget(first);
        drop(left);
        std::fs::remove_file(&path).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let again = LocalSocket::bind(&path).unwrap();
        drop(again);
        assert!(!path.exists());
        std::fs::write(&path, "no socket").unwrap();
        assert!(LocalSocket::bind(&path).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
