//! Throttling: the control group that limits this process's CPU time, from its `cpu.stat`.
//!
//! A quota stands still all threads of a group for the rest of a period once they have used it up,
//! whatever CPUs are idle. Groups nest, and the tightest quota on the way to the root holds: that group
//! is watched, or the process's own where there is none. Version 1 mounts the controller by itself
//! (`cpu` or `cpu,cpuacct`), version 2 has one tree; a container sees its own group as the root.

use std::path::{Path, PathBuf};

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::files::{Files, Named, Source, named};
use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::file::read_text;

/// Groups inside groups that are looked at: systemd and container engines make about ten.
const DEPTH_MAX: usize = 32;

/// How often and how long the group was throttled.
struct Throttling {
    stat: Source,
    /// CPU time a second, as it was on opening.
    quota_ns: Option<i64>,
}

/// Opens the group of this process with the tightest quota.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let own = std::fs::read(config.proc_root.join("self/cgroup"));
    let folders = own.map_or_else(|_| Vec::new(), |text| folders(&text, &config.sys_root));
    let quota = |folder: &PathBuf| quota_ns(folder).unwrap_or(i64::MAX);
    // The first of several is the innermost.
    let tightest = folders.iter().min_by_key(|folder| quota(folder));
    let throttling = tightest.and_then(|folder| {
        let stat = Source::open(&folder.join("cpu.stat"), Subject::Host, throttling).ok()?;
        let quota_ns = quota_ns(folder);
        Some(Throttling { stat, quota_ns })
    });
    let absent = || "no control group with the cpu controller is in sight".to_owned();
    observer("cgroup", throttling.ok_or_else(absent), None)
}

impl Interface for Throttling {
    const COST_NS: Option<fn() -> u64> = Files::COST_NS;

    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let before = out.len();
        self.stat.read(out)?;
        let read_at = out.get(before).map(|sample| sample.at_ns);
        if let Some((at_ns, value)) = read_at.zip(self.quota_ns) {
            Readout::at(at_ns, out).push(Metric::CgroupQuota, Subject::Host, value);
        }
        Ok(())
    }
}

/// A group that may limit CPU time, as one mount would have it.
struct Place {
    mount: PathBuf,
    group: PathBuf,
}

/// The groups that `text`, a `/proc/PID/cgroup`, names and that may limit CPU time, each as its possible mounts
/// would have it.
fn places(text: &[u8], sys_root: &Path) -> Vec<[Place; 2]> {
    let root = sys_root.join("fs/cgroup");
    let text = String::from_utf8_lossy(text);
    let named = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        fields.next()?.parse::<u32>().ok()?;
        let (controllers, path) = (fields.next()?, fields.next()?);
        let mounts = match controllers {
            "" => ["", "unified"],
            list if list.split(',').any(|name| name == "cpu") => ["cpu,cpuacct", "cpu"],
            _ => return None,
        };
        Some(mounts.map(|name| {
            let mount = root.join(name);
            // Nothing of a path leads out of the mount.
            let inside = Path::new(path).components().filter_map(|part| match part {
                std::path::Component::Normal(name) => Some(name),
                _ => None,
            });
            let group = inside
                .take(DEPTH_MAX)
                .fold(mount.clone(), |at, name| at.join(name));
            Place { mount, group }
        }))
    });
    named.collect()
}

/// The folders of those groups, each before those around it; only those that count throttling, which version 2's
/// root does not.
fn folders(text: &[u8], sys_root: &Path) -> Vec<PathBuf> {
    let places = places(text, sys_root).into_iter().flatten();
    let around = places.flat_map(|place| {
        let around = place
            .group
            .ancestors()
            .take_while(|folder| folder.starts_with(&place.mount));
        around.map(Path::to_path_buf).collect::<Vec<_>>()
    });
    around.filter(|folder| counts(folder)).collect()
}

/// Whether a quota of this process would be seen: its groups are.
///
/// The error says why that is not known; a kernel without control groups has no quota.
pub(crate) fn is_quota_visible(config: &ObserveConfig) -> Result<bool, String> {
    let own = read_text(&config.proc_root.join("self/cgroup"))?;
    Ok(is_visible(own.as_bytes(), &config.sys_root))
}

/// The same of `text`, a `/proc/PID/cgroup`. Who entered another mount namespace, as `ip netns exec` does, may have a
/// /sys without control groups; and the root of a namespace of control groups may be a group that has a quota.
fn is_visible(text: &[u8], sys_root: &Path) -> bool {
    let is_mounted = |place: &Place| place.group.join("cgroup.procs").exists();
    let places = places(text, sys_root);
    !folders(text, sys_root).is_empty() || places.iter().all(|group| group.iter().any(is_mounted))
}

fn counts(folder: &Path) -> bool {
    let mut has = false;
    if let Ok(text) = std::fs::read(folder.join("cpu.stat")) {
        throttling(&text, &mut |_, _| has = true);
    }
    has
}

/// CPU time a second that a group may use; absent without a quota.
fn quota_ns(folder: &Path) -> Option<i64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<i64>().ok()?, period.parse::<i64>().ok()?)
        }
        None => {
            let number = |name| read(name)?.trim().parse::<i64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        }
    };
    // Version 1 writes −1 for none.
    let is_quota = quota > 0 && period > 0;
    is_quota.then(|| (1_000_000_000_i128 * i128::from(quota) / i128::from(period)) as i64)
}

/// Reads lines such as `nr_throttled 3`; version 2 counts microseconds, version 1 nanoseconds.
fn throttling(text: &[u8], push: &mut dyn FnMut(Metric, i64)) {
    const WANTED: [Named; 4] = [
        ("nr_periods", Metric::CgroupPeriods, 1),
        ("nr_throttled", Metric::CgroupThrottled, 1),
        ("throttled_usec", Metric::CgroupThrottledTime, 1000),
        ("throttled_time", Metric::CgroupThrottledTime, 1),
    ];
    named(text, &WANTED, push);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Makes a root with these files below `fs/cgroup`, and returns the group that is watched, and its
    /// quota.
    fn check(own: &str, files: &[(&str, &str)], expect: Option<(&str, Option<i64>)>) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let base = root.path().join("fs/cgroup");
        for (path, text) in files {
            let path = base.join(path);
            fs::create_dir_all(path.parent().expect("a file in a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        let folders = folders(own.as_bytes(), root.path());
        let tightest = folders
            .iter()
            .min_by_key(|one| quota_ns(one).unwrap_or(i64::MAX));
        let found = tightest.map(|one| {
            let inside = one.strip_prefix(&base).expect("below the mount");
            (inside.to_str().expect("a name"), quota_ns(one))
        });
        assert_eq!(found, expect, "{own}");
    }

    #[test]
    fn the_tightest_quota_on_the_way_to_the_root_is_watched() {
        let stat = "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 250000\n";
        let bare = "usage_usec 5\n";
        check(
            "0::/a/b\n",
            &[
                ("cpu.stat", bare),
                ("a/cpu.stat", stat),
                ("a/cpu.max", "50000 100000\n"),
                ("a/b/cpu.stat", stat),
                ("a/b/cpu.max", "max 100000\n"),
            ],
            Some(("a", Some(500_000_000))),
        );
        // A container's own root, with the limit on it.
        check(
            "0::/\n",
            &[("cpu.stat", stat), ("cpu.max", "150000 100000\n")],
            Some(("", Some(1_500_000_000))),
        );
        // Version 1, and a path from outside of the container.
        let one = "nr_periods 10\nnr_throttled 3\nthrottled_time 250000000\n";
        check(
            "4:memory:/x\n2:cpu,cpuacct:/docker/0123\n",
            &[
                ("cpu,cpuacct/cpu.stat", one),
                ("cpu,cpuacct/cpu.cfs_quota_us", "20000\n"),
                ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ],
            Some(("cpu,cpuacct", Some(200_000_000))),
        );
        check(
            "1:cpu:/\n0::/\n",
            &[
                ("cpu/cpu.stat", one),
                ("cpu/cpu.cfs_quota_us", "-1\n"),
                ("cpu/cpu.cfs_period_us", "100000\n"),
                ("unified/cpu.stat", bare),
            ],
            Some(("cpu", None)),
        );
        check("0::/../../etc\n", &[], None);
        check("nonsense\n::\n", &[("cpu.stat", stat)], None);
    }

    #[test]
    fn a_group_that_is_not_mounted_hides_its_quota() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let check = |own: &str, expect| {
            assert_eq!(is_visible(own.as_bytes(), root.path()), expect, "{own}");
        };
        // As under `ip netns exec`, which mounts a /sys of its own.
        check("0::/system.slice/agent.service\n", false);
        check("2:cpu:/limited\n0::/\n", false);
        check("0::/\n", false);
        // Without the cpu controller there is no quota to see.
        let group = root.path().join("fs/cgroup/system.slice/agent.service");
        fs::create_dir_all(&group).expect("folders");
        fs::write(group.join("cgroup.procs"), "1\n").expect("a file");
        check("0::/system.slice/agent.service\n", true);
        fs::write(root.path().join("fs/cgroup/cgroup.procs"), "1\n").expect("a file");
        check("0::/\n", true);
        fs::write(group.join("cpu.stat"), "nr_periods 10\n").expect("a file");
        check("0::/system.slice/agent.service\n", true);
    }

    #[test]
    fn both_versions_count_the_same() {
        let expect = [
            ("cgroup_cpu_periods", 10),
            ("cgroup_cpu_throttled_periods", 3),
            ("cgroup_cpu_throttled_ns", 250_000_000),
        ];
        let two =
            "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 250000\nnr_bursts 0\n";
        assert_eq!(crate::files::found(throttling, two), expect);
        let one = "nr_periods 10\nnr_throttled 3\nthrottled_time 250000000\n";
        assert_eq!(crate::files::found(throttling, one), expect);
        assert_eq!(crate::files::found(throttling, "nr_periods x\nnr"), []);
    }
}
