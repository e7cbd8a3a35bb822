//! Samples that memory has no room for: of trials under way, and of a large bundle that is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::TrialId;
use linerate_model::samples::{Samples, Shelf};

use crate::durable::{FileError, Step, failed};
use crate::rows::{Odd, samples};
use crate::table::Table;

/// Samples of a bundle that is read which memory holds: 10 to 30 MB. A study of ten minutes has fewer.
const HELD_MAX: usize = if cfg!(test) { 50 } else { 2 << 20 };

/// A file without a name in the directory of a bundle, which is gone with whoever holds it: a trial that is not over when its
/// run is killed is lost, as without it.
#[derive(Debug)]
pub struct Spool {
    file: File,
    pages: Mutex<Vec<Range<u64>>>,
}

impl Spool {
    /// Makes one for the bundle in `dir`.
    pub fn new(dir: &Path) -> Result<Arc<Self>, FileError> {
        let path = dir.join("spool.tmp");
        // What somebody was killed with before it had no name.
        let _ = fs::remove_file(&path);
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let file = options.open(&path).map_err(failed(Step::Create, &path))?;
        fs::remove_file(&path).map_err(failed(Step::Remove, &path))?;
        Ok(Arc::new(Self {
            file,
            pages: Mutex::default(),
        }))
    }

    /// Takes those of `samples` out of memory that are there; where the disk does not take them they stay.
    pub fn take(self: &Arc<Self>, samples: &mut Samples) -> io::Result<()> {
        let bytes = samples.to_bytes();
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = pages.last().map_or(0, |last| last.end);
        self.file.write_all_at(&bytes, begin)?;
        pages.push(begin..begin + bytes.len() as u64);
        let shelf: Arc<dyn Shelf> = Arc::clone(self) as _;
        samples.shelve_held(&shelf, pages.len() - 1);
        Ok(())
    }

    fn read(&self, number: usize) -> Option<Samples> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let page = pages.get(number)?.clone();
        drop(pages);
        let mut bytes = vec![0; usize::try_from(page.end - page.start).ok()?];
        self.file.read_exact_at(&mut bytes, page.start).ok()?;
        Samples::from_bytes(&bytes)
    }
}

impl Shelf for Spool {
    fn page(&self, number: usize) -> Arc<Samples> {
        Arc::new(self.read(number).unwrap_or_default())
    }
}

/// The samples of a bundle as they are read: in memory, as long as that has room, then on the disk that the bundle is on. One
/// that is read-only or full leaves them in memory.
pub(crate) struct Gathering {
    dir: PathBuf,
    spool: Option<Arc<Spool>>,
    /// Whether the disk takes none.
    is_refused: bool,
    held: Samples,
    spooled: Samples,
    /// How many each trial has.
    pub(crate) counts: BTreeMap<TrialId, u64>,
}

impl Gathering {
    /// Returns that of the bundle in `dir`.
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            spool: None,
            is_refused: false,
            held: Samples::default(),
            spooled: Samples::default(),
            counts: BTreeMap::new(),
        }
    }

    /// Takes the rows of `table`; those that make no sense go to `odd`.
    pub(crate) fn take(&mut self, table: &Table, odd: &mut Odd) {
        let mut rows = Vec::with_capacity(table.rows());
        samples::read(table, &mut rows, odd);
        for own in rows.chunk_by(|one, next| one.trial == next.trial) {
            *self.counts.entry(own[0].trial).or_default() += own.len() as u64;
        }
        self.held.extend(rows);
        if self.held.len() > HELD_MAX && !self.is_refused {
            self.is_refused = self.relieve().is_err();
        }
    }

    /// Takes out of memory what it holds, each trial by itself, since so they are looked at.
    fn relieve(&mut self) -> Result<(), io::Error> {
        if self.spool.is_none() {
            self.spool = Some(Spool::new(&self.dir).map_err(|error| error.cause)?);
        }
        let Some(spool) = &self.spool else {
            return Ok(());
        };
        let held = std::mem::take(&mut self.held);
        let trials: BTreeSet<TrialId> = held.trials().collect();
        let mut taken = Ok(());
        for trial in trials {
            let mut own = held.copied(trial);
            if taken.is_ok() {
                taken = spool.take(&mut own);
            }
            self.spooled.append(own);
        }
        taken
    }

    /// Returns all samples.
    pub(crate) fn samples(mut self) -> Samples {
        self.spooled.append(self.held);
        self.spooled
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::HostName;
    use linerate_model::metric::Metric;
    use linerate_model::sample::{Subject, TrialSample};

    use super::*;

    #[test]
    fn what_memory_has_no_room_for_comes_back_and_leaves_no_file() {
        let sample = |at: i64| TrialSample {
            trial: TrialId(1 + at as u32 / 40),
            host: HostName::from(if at % 40 < 20 { "client1" } else { "server" }),
            subject: Subject::Cpu(at as u32 % 3),
            metric: Metric::CpuIdle,
            at_ns: at * 100,
            value: at,
        };
        let all: Samples = (0..1000).map(sample).collect();
        let dir = tempfile::tempdir().expect("a folder");
        let gathered = |dir: &Path| {
            let mut gathering = Gathering::new(dir);
            for table in samples::tables(all.iter()) {
                gathering.take(&table.expect("they fit"), &mut Odd::new());
            }
            assert_eq!(gathering.counts.values().sum::<u64>(), 1000);
            gathering.samples()
        };
        let on_disk = gathered(dir.path());
        assert!(on_disk.held() <= HELD_MAX, "{}", on_disk.held());
        assert_eq!(on_disk, all);
        assert!(on_disk.of_trial(TrialId(7)).eq(all.of_trial(TrialId(7))));
        assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 0);
        let in_memory = gathered(&dir.path().join("nowhere"));
        assert_eq!((in_memory.held(), in_memory), (1000, all.clone()));
    }
}
