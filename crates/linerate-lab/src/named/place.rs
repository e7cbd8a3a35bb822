//! The directory of a user's labs, also where anyone may write.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::registry::{RegistryError, unusable};

/// Returns the directory for the program's runtime files.
pub(super) fn base_of(user: u32, runtime: Option<PathBuf>) -> PathBuf {
    match runtime {
        _ if user == 0 => PathBuf::from("/run/linerate"),
        Some(runtime) if runtime.is_absolute() => runtime.join("linerate"),
        _ => env::temp_dir().join(format!("linerate-{user}")),
    }
}

/// Makes a directory in a place where anyone may write, and refuses one made by another.
pub(super) fn secure(path: &Path, user: u32) -> Result<(), RegistryError> {
    let failed = unusable(path);
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::unistd::geteuid;

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
}
