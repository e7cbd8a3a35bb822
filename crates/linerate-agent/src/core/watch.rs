//! The host as its watchers see it: every observer, read when somebody asks.
//!
//! Watchers cost the host one reading however many they are, and nothing while nobody asks.

use linerate_engine::now_ns;
use linerate_observe::Observer;

use super::{Caller, Core, lock, refuse};
use crate::api::{Observation, Refusal, RefusalCode};

/// How old a reading may be to be given to the next watcher too.
const SHARED_NS: u64 = 10_000_000;
/// How long the observers stay open after the last question: several turns of a slow watcher.
const KEPT_NS: u64 = 60_000_000_000;

/// The observers while somebody watches, and their last reading.
#[derive(Default)]
pub(super) struct Watch {
    observers: Vec<Box<dyn Observer>>,
    last: Option<Observation>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("at_ns", &self.last.as_ref().map(|last| last.at_ns))
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Closes the observers once nobody has asked for a while.
    pub(super) fn poll_deadline(&mut self, now_ns: u64) {
        let asked_ns = self.last.as_ref().map(|last| last.at_ns);
        if asked_ns.is_some_and(|asked_ns| now_ns.saturating_sub(asked_ns) > KEPT_NS) {
            *self = Self::default();
        }
    }

    fn observe(
        &mut self,
        host_name: &str,
        open: impl FnOnce() -> Vec<Box<dyn Observer>>,
    ) -> Observation {
        if let Some(last) = &self.last
            && now_ns().saturating_sub(last.at_ns) < SHARED_NS
        {
            return last.clone();
        }
        if self.observers.is_empty() {
            self.observers = open();
        }
        let mut samples = Vec::new();
        for observer in &mut self.observers {
            observer.sample(&mut samples);
        }
        let observers = &self.observers;
        let observation = Observation {
            host_name: host_name.to_owned(),
            at_ns: now_ns(),
            samples,
            observers: observers.iter().map(|it| it.availability()).collect(),
        };
        self.last.insert(observation).clone()
    }
}

impl Core {
    /// Returns what every observer of this host reads, at most 10 ms old.
    pub fn observe(&self, caller: &Caller) -> Result<Observation, Refusal> {
        if let Caller::Stranger(why) = caller {
            return Err(refuse(RefusalCode::Unauthorized, why));
        }
        let open = || linerate_observe::observers(&self.observe_config(true, Vec::new()));
        Ok(lock(&self.watch).observe(&self.config.host_name, open))
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Availability;
    use linerate_model::metric::Metric;
    use linerate_model::sample::{Sample, Subject};

    use super::*;

    /// Counts its own readings.
    struct Counting(i64);

    impl Observer for Counting {
        fn availability(&self) -> Availability {
            Availability {
                observer: "counting".to_owned(),
                missing: None,
                note: None,
            }
        }

        fn sample(&mut self, out: &mut Vec<Sample>) {
            self.0 += 1;
            out.push(Sample {
                metric: Metric::CpuUser,
                subject: Subject::Host,
                at_ns: now_ns(),
                value: self.0,
            });
        }
    }

    fn readings(watch: &mut Watch) -> i64 {
        let open = || vec![Box::new(Counting(0)) as Box<dyn Observer>];
        watch.observe("host", open).samples[0].value
    }

    #[test]
    fn watchers_share_a_reading_and_observers_close_after_the_last() {
        let mut watch = Watch::default();
        assert_eq!(readings(&mut watch), 1);
        // Another watcher at the same moment, whenever this machine comes to it.
        if let Some(last) = &mut watch.last {
            last.at_ns = now_ns() + SHARED_NS;
        }
        assert_eq!(readings(&mut watch), 1);
        if let Some(last) = &mut watch.last {
            last.at_ns = now_ns() - SHARED_NS;
        }
        assert_eq!(readings(&mut watch), 2);
        let asked_ns = watch.last.as_ref().map_or(0, |last| last.at_ns);
        watch.poll_deadline(asked_ns + KEPT_NS);
        assert_eq!(watch.observers.len(), 1);
        watch.poll_deadline(asked_ns + KEPT_NS + 1);
        assert!(watch.observers.is_empty() && watch.last.is_none());
    }
}
