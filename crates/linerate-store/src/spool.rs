//! Samples of trials under way that memory has no room for.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::samples::{Samples, Shelf};

use crate::durable::{FileError, Step, failed};
use crate::layout::PARTIAL;

/// A file without a name beside the parts of a bundle, which is gone with whoever holds it: a trial that is not over when its
/// run is killed is lost, as without it.
#[derive(Debug)]
pub struct Spool {
    file: File,
    pages: Mutex<Vec<Range<u64>>>,
}

impl Spool {
    /// Makes one for the bundle in `dir`.
    pub fn new(dir: &Path) -> Result<Arc<Self>, FileError> {
        let path = dir.join(PARTIAL).join("spool");
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
    pub fn take(self: &Arc<Self>, samples: &mut Samples) -> std::io::Result<()> {
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
