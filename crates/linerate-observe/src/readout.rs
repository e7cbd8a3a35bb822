//! The samples of one instant, as an observer makes them.

use std::io;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::sys::clock::timed;

/// Takes the samples of one instant.
pub(crate) struct Readout<'a> {
    out: &'a mut Vec<Sample>,
    at_ns: u64,
}

impl<'a> Readout<'a> {
    /// Begins with what was read at `at_ns`.
    pub(crate) fn at(at_ns: u64, out: &'a mut Vec<Sample>) -> Self {
        Self { out, at_ns }
    }

    /// Runs `read`, whose samples are of the instant halfway through it; where it fails there are
    /// none.
    pub(crate) fn halfway<T>(
        out: &mut Vec<Sample>,
        read: impl FnOnce(&mut Readout<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let before = out.len();
        let (answer, at_ns) = timed(|| read(&mut Readout::at(0, out)));
        if answer.is_err() {
            out.truncate(before);
        }
        for sample in out.iter_mut().skip(before) {
            sample.at_ns = at_ns;
        }
        answer
    }

    /// Appends a sample; a counter beyond i64, which would be 8 exabytes, is not believed.
    pub(crate) fn push(&mut self, metric: Metric, subject: Subject, value: impl TryInto<i64>) {
        let Ok(value) = value.try_into() else { return };
        let at_ns = self.at_ns;
        self.out.push(Sample {
            metric,
            subject,
            at_ns,
            value,
        });
    }
}
