//! Settings of a flow: their names, how they are made, and lists of them, shared where flows have
//! the same.
//!
//! The flows of a trial differ in a few values only, and a trial may have 20 000 flows: a list of
//! texts for each would be most of the memory that a run takes.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::workload::Setting;

/// Names of settings; socket options have the kernel's.
pub mod name {
    /// Bytes of payload that the send buffer takes.
    pub const SO_SNDBUF: &str = "SO_SNDBUF";
    /// Bytes of payload that the receive buffer takes.
    pub const SO_RCVBUF: &str = "SO_RCVBUF";
    /// Bytes that a receiver sleeps until.
    pub const SO_RCVLOWAT: &str = "SO_RCVLOWAT";
    /// The congestion control.
    pub const TCP_CONGESTION: &str = "TCP_CONGESTION";
    /// Bytes of payload in a segment, at the most.
    pub const TCP_MAXSEG: &str = "TCP_MAXSEG";
    /// What the handshake agreed on.
    pub const TCPI_OPTIONS: &str = "tcpi_options";
    /// The window that the peer advertised, at the most.
    pub const TCPI_SND_WND: &str = "tcpi_snd_wnd";
    /// The window that this end advertised, at the most.
    pub const TCPI_RCV_WND: &str = "tcpi_rcv_wnd";
    /// How long a call polls the device, in µs.
    pub const SO_BUSY_POLL: &str = "SO_BUSY_POLL";
    /// What carries the payload, where that is not TCP or UDP.
    pub const TRANSPORT: &str = "transport";
    /// How instants are read.
    pub const CLOCK: &str = "clock";
    /// The CPUs that workers are pinned to.
    pub const PLACEMENT: &str = "placement";
    /// By which calls payload is sent.
    pub const SEND: &str = "send";
    /// By which calls payload is received.
    pub const RECEIVE: &str = "receive";
    /// How a worker waits.
    pub const WAIT: &str = "wait";
    /// Who keeps a rate, and how.
    pub const PACE: &str = "pace";
}

/// What is asked of [`name::PLACEMENT`] where the choice is left to us.
pub const AUTO: &str = "auto";
/// In the effective value of [`name::TCPI_OPTIONS`]: windows are scaled.
pub const WINDOW_SCALING: &str = "window scaling";
/// In the same: what arrived out of order is acknowledged selectively.
pub const SACK: &str = "SACK";

impl Setting {
    /// Returns a setting as asked for, or left to the host, and as granted.
    pub fn granted(name: &str, requested: Option<String>, granted: Option<String>) -> Self {
        Self {
            requested,
            granted,
            ..Self::seen(name, None)
        }
    }

    /// Returns a setting that was only seen in force, never set.
    pub fn seen(name: &str, effective: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            requested: None,
            granted: None,
            effective,
            capped_by: None,
            why: None,
        }
    }

    /// Returns the setting with why it was chosen.
    pub fn because(self, why: Option<String>) -> Self {
        Self { why, ..self }
    }

    /// Returns what is in force: as it was seen, else as it was granted.
    pub fn in_force(&self) -> Option<&str> {
        self.effective.as_deref().or(self.granted.as_deref())
    }
}

/// The settings of one end of a flow; cheap to clone, in documents a plain list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct Settings(Arc<[Arc<Setting>]>);

impl Settings {
    /// Returns the setting of this name.
    pub fn named(&self, name: &str) -> Option<&Setting> {
        self.into_iter().find(|setting| setting.name == name)
    }

    /// Returns whether the handshake agreed on `option`, [`SACK`] for instance, where that was read.
    pub fn agreed_on(&self, option: &str) -> Option<bool> {
        let agreed = self.named(name::TCPI_OPTIONS)?.effective.as_deref()?;
        Some(agreed.split(", ").any(|one| one == option))
    }

    /// Returns the same settings and one more.
    pub fn with(&self, one: &Arc<Setting>) -> Self {
        Self(self.0.iter().chain([one]).map(Arc::clone).collect())
    }
}

impl Deref for Settings {
    type Target = [Arc<Setting>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<Setting> for Settings {
    fn from_iter<I: IntoIterator<Item = Setting>>(all: I) -> Self {
        Self(all.into_iter().map(Arc::new).collect())
    }
}

impl From<Vec<Setting>> for Settings {
    fn from(all: Vec<Setting>) -> Self {
        all.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Settings {
    type Item = &'a Setting;
    type IntoIter =
        std::iter::Map<std::slice::Iter<'a, Arc<Setting>>, fn(&Arc<Setting>) -> &Setting>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(Arc::as_ref)
    }
}

/// Settings that were seen, each kept once.
#[derive(Debug, Default)]
pub struct SettingPool {
    seen: HashSet<Arc<Setting>>,
    /// The list that was asked for last: most flows have the very same.
    last: Settings,
}

impl SettingPool {
    /// Returns `settings` made of what was seen before, as far as it was.
    pub fn share(&mut self, settings: &Settings) -> Settings {
        if *settings != self.last {
            let all: Vec<Arc<Setting>> = settings.0.iter().map(|one| self.keep(one)).collect();
            self.last = Settings(all.into());
        }
        self.last.clone()
    }

    fn keep(&mut self, setting: &Arc<Setting>) -> Arc<Setting> {
        if let Some(have) = self.seen.get(setting) {
            return Arc::clone(have);
        }
        self.seen.insert(Arc::clone(setting));
        Arc::clone(setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, granted: u32) -> Setting {
        Setting::granted(name, None, Some(granted.to_string()))
    }

    #[test]
    fn what_is_equal_is_kept_once_and_what_differs_stays_different() {
        let mut pool = SettingPool::default();
        let list = |bytes| Settings::from(vec![setting("a", 1), setting("b", bytes)]);
        let first = pool.share(&list(10));
        let same = pool.share(&list(10));
        assert!(Arc::ptr_eq(&first.0, &same.0));
        let other = pool.share(&list(20));
        let longer = first.with(&Arc::new(setting("c", 3)));
        assert_eq!((longer.len(), &*longer[2].name), (3, "c"));
        assert_eq!(other, list(20));
        assert!(Arc::ptr_eq(&first[0], &other[0]));
        let again = pool.share(&list(10));
        assert_eq!(again, first);
        assert!(Arc::ptr_eq(&first[1], &again[1]));
    }

    #[test]
    fn documents_have_a_plain_list() {
        let list = vec![setting("a", 1), setting("b", 2)];
        let shared = Settings::from(list.clone());
        let text = serde_json::to_string(&shared).unwrap();
        assert_eq!(text, serde_json::to_string(&list).unwrap());
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), shared);
    }
}
