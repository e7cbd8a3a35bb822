//! Samples of a bundle that memory has no room for: they stay in their files, and are read a row group at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::samples::{Samples, Shelf};
use linerate_model::{HostName, TrialId};

use crate::durable;
use crate::layout::TableName;
use crate::rows::{Odd, format_of, samples};
use crate::table::{Table, TableFile};

/// Samples that are kept in memory: 20 to 60 MB. A study of ten minutes has half as many.
const HELD_MAX: usize = 4 << 20;

/// A row group of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'p> {
    pub(crate) path: &'p Path,
    pub(crate) number: usize,
}

/// Takes the samples of a bundle as they are read: into memory, as long as it has room, and down where they lie.
#[derive(Default)]
pub(crate) struct Gathering {
    held: Samples,
    is_full: bool,
    groups: Vec<GroupContent>,
    /// How many each trial has.
    pub(crate) counts: BTreeMap<TrialId, u64>,
}

/// What a row group of samples holds.
struct GroupContent {
    path: PathBuf,
    number: usize,
    places: BTreeSet<(TrialId, HostName)>,
    samples: usize,
}

impl Gathering {
    /// Takes the rows of `table`, which is of `group`; those that make no sense go to `odd`.
    pub(crate) fn take(&mut self, group: Group<'_>, table: &Table, odd: &mut Odd) {
        let mut rows = Vec::with_capacity(table.rows());
        samples::read(table, &mut rows, odd);
        let is_same = |last: &GroupContent| last.number == group.number && last.path == group.path;
        if !self.groups.last().is_some_and(is_same) {
            self.groups.push(GroupContent {
                path: group.path.to_owned(),
                number: group.number,
                places: BTreeSet::new(),
                samples: 0,
            });
        }
        let Some(content) = self.groups.last_mut() else {
            return;
        };
        content.samples += rows.len();
        for own in rows.chunk_by(|one, next| one.trial == next.trial && one.host == next.host) {
            let (trial, host) = (own[0].trial, &own[0].host);
            *self.counts.entry(trial).or_default() += own.len() as u64;
            if !content.places.contains(&(trial, host.clone())) {
                content.places.insert((trial, host.clone()));
            }
        }
        if !self.is_full {
            self.held.extend(rows);
            self.is_full = self.held.len() > HELD_MAX;
            if self.is_full {
                self.held = Samples::default();
            }
        }
    }

    /// Returns all samples.
    pub(crate) fn samples(self) -> Samples {
        if !self.is_full {
            return self.held;
        }
        let place = |content: &GroupContent| (content.path.clone(), content.number);
        let shelf: Arc<dyn Shelf> = Arc::new(Groups {
            of: self.groups.iter().map(place).collect(),
            read: Mutex::default(),
        });
        let mut all = Samples::default();
        for (number, content) in self.groups.into_iter().enumerate() {
            all.shelve(&shelf, number, content.places, content.samples);
        }
        all
    }
}

/// Row groups of files as pages.
struct Groups {
    of: Vec<(PathBuf, usize)>,
    read: Mutex<LastRead>,
}

/// The file and the page that were read last: neighbours share them.
#[derive(Default)]
struct LastRead {
    file: Option<(PathBuf, TableFile)>,
    page: Option<(usize, Arc<Samples>)>,
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.of).finish()
    }
}

impl Shelf for Groups {
    fn page(&self, number: usize) -> Arc<Samples> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match &read.page {
            Some((last, page)) if *last == number => return Arc::clone(page),
            _ => {}
        }
        let page = Arc::new(self.of.get(number).map_or_else(Samples::default, |place| {
            read.group(place).unwrap_or_default()
        }));
        read.page = Some((number, Arc::clone(&page)));
        page
    }
}

impl LastRead {
    /// Returns the samples of a row group, as far as they can be read; what cannot was told of when it was read first.
    fn group(&mut self, (path, number): &(PathBuf, usize)) -> Option<Samples> {
        self.page = None;
        if self.file.as_ref().is_none_or(|(last, _)| last != path) {
            let (name, file) = (TableName::Samples, durable::open(path).ok()?);
            let file = TableFile::open(file, format_of(name), name.rows_max()).ok()?;
            self.file = Some((path.clone(), file));
        }
        let (_, file) = self.file.as_ref()?;
        let mut all = Samples::default();
        let _ = file.read_group(*number, |table| {
            let mut rows = Vec::with_capacity(table.rows());
            samples::read(&table, &mut rows, &mut Odd::new());
            all.extend(rows);
        });
        Some(all)
    }
}
