//! What is changed for a while: read, written, read back, put back.

use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::knob::{Knob, Place};
use linerate_model::workload::Setting;

use crate::error::TuneError;
use crate::spot::{Spot, spots, text_of};
use crate::target::{Target, is_first_user_namespace};

/// What is changed of a host; dropping it puts everything back.
#[derive(Debug, Default)]
pub struct Changed {
    undo: Vec<Undo>,
    settings: Vec<Setting>,
}

/// One value that was another.
#[derive(Debug)]
struct Undo {
    knob: Factor,
    spot: Spot,
    before: String,
    /// What was read back.
    now: String,
}

/// Sets every knob of `levels` on `host`, or none.
pub fn change(host: &Target<'_>, levels: &Cell) -> Result<Changed, TuneError> {
    let mut changed = Changed::default();
    for (&factor, level) in levels.iter().filter(|(_, level)| !level.is_auto()) {
        let knob = factor.knob().ok_or(TuneError::NoKnob(factor))?;
        changed.set(host, factor, knob, level)?;
    }
    Ok(changed)
}

/// Tells whether `host` takes a level, by setting it and putting it back.
///
/// What stands in files of a device is not tried: `/sys` shows the devices of whoever mounted it, which need not be
/// those of the calling thread's network namespace.
pub fn try_out(host: &Target<'_>, factor: Factor, level: &Level) -> Result<(), TuneError> {
    let knob = factor.knob().ok_or(TuneError::NoKnob(factor))?;
    match knob.place {
        Place::Device(_) => return Ok(()),
        Place::ReceiveQueues if is_first_user_namespace(host.root) => return Ok(()),
        Place::ReceiveQueues => return Err(TuneError::MachineRoot(factor)),
        _ => {}
    }
    change(host, &Cell::from([(factor, level.clone())])).map(drop)
}

impl Changed {
    /// Returns each knob as it was asked for and as it was read back, with what it was before.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    fn set(
        &mut self,
        host: &Target<'_>,
        factor: Factor,
        knob: &Knob,
        level: &Level,
    ) -> Result<(), TuneError> {
        let wanted = text_of(knob.place, level, host.cpus).ok_or_else(|| TuneError::Level {
            knob: factor,
            level: level.clone(),
        })?;
        let mut seen = None;
        for spot in spots(host, factor, knob.place)? {
            let place = spot.to_string();
            let read = |spot: &Spot| {
                spot.read().map_err(|source| TuneError::Read {
                    knob: factor,
                    place: place.clone(),
                    source,
                })
            };
            let before = read(&spot)?;
            if let Err(source) = spot.write(&wanted) {
                return Err(TuneError::Write {
                    knob: factor,
                    level: level.clone(),
                    place,
                    source,
                });
            }
            let at = self.undo.len();
            self.undo.push(Undo {
                knob: factor,
                spot,
                before: before.clone(),
                now: wanted.clone(),
            });
            // From here on it is put back, whatever comes.
            let now = read(&self.undo[at].spot)?;
            self.undo[at].now.clone_from(&now);
            seen = Some((before, now.clone()));
            let is_kept = now == wanted;
            if !is_kept {
                return Err(TuneError::Kept {
                    knob: factor,
                    level: level.clone(),
                    place,
                    wanted,
                    kept: now,
                });
            }
        }
        // A device has at least one receive queue, and every other knob one place.
        if let Some((before, now)) = seen {
            let setting = Setting::granted(&factor.name(), Some(wanted), Some(now));
            self.settings
                .push(setting.because(Some(format!("for this trial; it was {before}"))));
        }
        Ok(())
    }

    /// Puts everything back, the last change first; returns what could not be, in words.
    pub fn put_back(&mut self) -> Vec<String> {
        self.settings.clear();
        let undone = self.undo.drain(..).rev();
        undone.filter_map(|undo| undo.put_back()).collect()
    }
}

impl Undo {
    fn put_back(self) -> Option<String> {
        let Self {
            knob,
            spot,
            before,
            now,
        } = self;
        let why = match spot.read() {
            Ok(value) if value == before => return None,
            Ok(value) if value == now => match spot.write(&before) {
                Ok(()) => match spot.read() {
                    Ok(value) if value == before => return None,
                    Ok(value) => format!("the host kept {value}"),
                    Err(error) => error.to_string(),
                },
                Err(error) => error.to_string(),
            },
            Ok(value) => format!("somebody else set it to {value}"),
            Err(error) => error.to_string(),
        };
        Some(format!(
            "{knob} was {before} and is not put back ({spot}: {why})"
        ))
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // Nobody is left to tell.
        self.put_back();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use linerate_model::Bytes;

    use super::*;

    /// A host of files, with a device of two receive queues.
    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let files = [
            ("proc/sys/net/ipv4/tcp_limit_output_bytes", "4194304\n"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("sys/class/net/eth0/mtu", "1500\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
            (
                "sys/class/net/eth0/queues/rx-1/rps_cpus",
                "00000000,00000000\n",
            ),
        ];
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    fn host(root: &Path) -> Target<'_> {
        Target {
            root,
            device: Some("eth0"),
            cpus: &[0, 1],
        }
    }

    fn of(root: &Path, path: &str) -> String {
        fs::read_to_string(root.join(path)).expect("a file")
    }

    #[test]
    fn knobs_are_set_told_and_put_back() {
        let root = root();
        let root = root.path();
        let levels = Cell::from([
            (Factor::Mtu, Level::Size(Bytes(9000))),
            (Factor::Rps, Level::Switch(true)),
            (Factor::Tso, Level::Word("auto".to_owned())),
            (Factor::TcpLimitOutputBytes, Level::Size(Bytes(32_048))),
            (Factor::TcpRmemMax, Level::Size(Bytes(65_536))),
        ]);
        let changed = change(&host(root), &levels).expect("set");
        assert_eq!(of(root, "sys/class/net/eth0/mtu"), "9000");
        assert_eq!(of(root, "sys/class/net/eth0/queues/rx-1/rps_cpus"), "3");
        let rmem = "proc/sys/net/ipv4/tcp_rmem";
        assert_eq!(of(root, rmem), "4096 131072 65536");
        let told: Vec<_> = changed
            .settings()
            .iter()
            .map(|setting| (&*setting.name, setting.granted.as_deref()))
            .collect();
        let expected = [
            ("mtu", Some("9000")),
            ("rps", Some("3")),
            ("tcp_limit_output_bytes", Some("32048")),
            ("tcp_rmem_max", Some("65536")),
        ];
        assert_eq!(told, expected);
        drop(changed);
        assert_eq!(of(root, "sys/class/net/eth0/mtu"), "1500");
        assert_eq!(of(root, "sys/class/net/eth0/queues/rx-0/rps_cpus"), "0");
        assert_eq!(of(root, rmem), "4096 131072 6291456");
        let limit = "proc/sys/net/ipv4/tcp_limit_output_bytes";
        assert_eq!(of(root, limit), "4194304");
    }

    #[test]
    fn what_cannot_be_set_leaves_everything_as_it_was() {
        let root = root();
        let root = root.path();
        let check =
            |host: &Target<'_>, levels: &[(Factor, Level)], expected: fn(&TuneError) -> bool| {
                let levels: Cell = levels.iter().cloned().collect();
                let error = change(host, &levels).expect_err("refused");
                assert!(expected(&error), "{error:?}");
                assert_eq!(of(root, "sys/class/net/eth0/mtu").trim(), "1500");
            };
        let mtu = (Factor::Mtu, Level::Size(Bytes(9000)));
        let threaded = (Factor::ThreadedNapi, Level::Switch(true));
        let missing = |error: &TuneError| {
            matches!(
                error,
                TuneError::Read {
                    knob: Factor::ThreadedNapi,
                    ..
                }
            )
        };
        check(&host(root), &[mtu.clone(), threaded], missing);
        let nowhere = Target {
            device: None,
            ..host(root)
        };
        let no_device = |error: &TuneError| matches!(error, TuneError::NoDevice(Factor::Mtu));
        check(&nowhere, std::slice::from_ref(&mtu), no_device);
        let elsewhere = Target {
            device: Some("../eth0"),
            ..host(root)
        };
        check(&elsewhere, &[mtu], |error| {
            matches!(error, TuneError::Device { .. })
        });
        let connections = (Factor::Connections, Level::Count(2));
        check(&host(root), &[connections], |error| {
            matches!(error, TuneError::NoKnob(_))
        });
        let word = (Factor::Mtu, Level::Switch(true));
        check(&host(root), &[word], |error| {
            matches!(error, TuneError::Level { .. })
        });
    }

    #[test]
    fn what_somebody_else_changed_is_not_put_back_over() {
        let root = root();
        let root = root.path();
        let levels = Cell::from([(Factor::Mtu, Level::Size(Bytes(9000)))]);
        let mut changed = change(&host(root), &levels).expect("set");
        fs::write(root.join("sys/class/net/eth0/mtu"), "4000\n").expect("written");
        let told = changed.put_back();
        assert_eq!(told.len(), 1);
        assert!(
            told[0].contains("mtu was 1500") && told[0].contains("4000"),
            "{told:?}"
        );
        assert_eq!(of(root, "sys/class/net/eth0/mtu"), "4000\n");
    }

    #[test]
    fn the_first_network_of_a_machine_is_told_from_others() {
        let root = root();
        let root = root.path();
        let core = root.join("proc/sys/net/core");
        let is_own = || crate::target::is_own_network(root);
        assert!(!is_own(), "what is not there says nothing");
        fs::create_dir_all(&core).expect("made");
        fs::write(core.join("somaxconn"), "4096\n").expect("written");
        assert!(is_own());
        fs::write(core.join("netdev_budget"), "300\n").expect("written");
        assert!(!is_own());
    }
}
