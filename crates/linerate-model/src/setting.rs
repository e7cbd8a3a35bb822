//! Settings of a flow, shared where flows have the same.
//!
//! The flows of a trial differ in a few values only, and a trial may have 20 000 flows: a list of
//! texts for each would be most of the memory that a run takes.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::workload::Setting;

/// The settings of one end of a flow; cheap to clone, in documents a plain list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings(Arc<[Arc<Setting>]>);

impl Settings {
    /// Returns the same settings and one more.
    pub fn with(&self, one: &Arc<Setting>) -> Self {
        Self(self.0.iter().chain([one]).map(Arc::clone).collect())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self(Arc::new([]))
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

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Setting>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Settings {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Vec::<Setting>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<Setting>::json_schema(generator)
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
        Setting {
            name: name.to_owned(),
            requested: None,
            granted: Some(granted.to_string()),
            effective: None,
            capped_by: None,
        }
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
