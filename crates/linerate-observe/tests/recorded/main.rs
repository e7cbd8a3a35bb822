//! Observers and facts on recorded and made roots of procfs and sysfs; see `tests/roots/README.md`.

mod facts;
mod observers;

use std::path::{Path, PathBuf};

use linerate_observe::ObserveConfig;

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/roots")
        .join(name)
}

fn config_of(root: &Path, threads: &[(&str, i32)]) -> ObserveConfig {
    ObserveConfig {
        proc_root: root.join("proc"),
        sys_root: root.join("sys"),
        lab: false,
        host_wide: true,
        threads: threads
            .iter()
            .map(|(name, tid)| ((*name).to_owned(), *tid))
            .collect(),
    }
}
