//! What the host tells of itself: facts, observers, and how fast it copies memory.

use std::time::Duration;

use linerate_engine as engine;
use linerate_model::host::{Availability, Fact, FactValue, IRQ_TIME_OBSERVER};
use linerate_model::unit::Unit;
use linerate_observe::{ObserveConfig, Observer};

use super::{Caller, Core};
use crate::access::Scope;
use crate::api::{Inventory, InventoryRequest};
use crate::sync::lock;

/// How long the memory copy of an inventory runs.
const MEMORY_COPY_LENGTH: Duration = Duration::from_millis(150);

impl Core {
    /// Returns the facts and observers that the caller may see.
    pub fn inventory(&self, caller: &Caller, wanted: &InventoryRequest) -> Inventory {
        let may_observe = caller.may(Scope::Observe);
        let config = self.observe_config(may_observe, Vec::new());
        let address = wanted.address.as_deref().filter(|_| may_observe);
        let mut snapshot = if may_observe {
            linerate_observe::facts(&config)
        } else {
            linerate_model::host::Snapshot::default()
        };
        if may_observe && !self.config.lab {
            snapshot.facts.push(Fact {
                name: "agent.confined".to_owned(),
                value: match self.confined.get() {
                    Some(words) => FactValue::Text(words.clone()),
                    None => {
                        FactValue::Missing("`serve` was started by an ordinary user".to_owned())
                    }
                },
            });
        }
        if wanted.memory_copy {
            snapshot.facts.push(Fact {
                name: "memory.copy_bytes_per_s".to_owned(),
                value: self.memory_copy(caller),
            });
        }
        snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        // Facts and observers are most of the code that runs before a trial, once each.
        let own_trials = wanted.lease.as_deref().map_or(0, |run| self.trials_of(run));
        self.give_back_neighbours(own_trials);
        let observers = linerate_observe::availabilities(&config);
        self.give_back_neighbours(own_trials);
        Inventory {
            snapshot,
            observers,
            link: address.and_then(|of| linerate_observe::link_of_address(of.parse().ok()?)),
        }
    }

    /// Measures the memory's copy rate, unless that would disturb a run.
    fn memory_copy(&self, caller: &Caller) -> FactValue {
        match caller.check(Scope::Observe) {
            Err(refusal) => FactValue::Missing(refusal.error),
            Ok(()) if lock(&self.leases).holder().is_some() => {
                FactValue::Missing("the host was in use".to_owned())
            }
            Ok(()) => FactValue::Number(
                engine::memory_copy_bytes_per_s(MEMORY_COPY_LENGTH),
                Unit::Bytes,
            ),
        }
    }

    pub(super) fn observe_config(
        &self,
        host_wide: bool,
        threads: Vec<(String, i32)>,
    ) -> ObserveConfig {
        ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: self.config.lab,
            host_wide,
            threads,
        }
    }
}

/// Returns what each observer can see.
pub(super) fn availabilities<'a>(
    observers: impl IntoIterator<Item = &'a Box<dyn Observer>>,
) -> Vec<Availability> {
    let each = observers.into_iter();
    each.map(|observer| observer.availability()).collect()
}

/// What of the time in interrupts was asked for and could not be measured.
pub(super) fn unseen(observers: &[Availability]) -> Option<String> {
    let observer = observers
        .iter()
        .find(|all| all.observer == IRQ_TIME_OBSERVER)?;
    let why = observer.missing.as_ref()?;
    Some(format!("time in interrupts was not measured: {why}"))
}

/// What a profile that was asked for does not show.
pub(super) fn limits_of_profile(profile: &Availability) -> Option<String> {
    match (&profile.missing, &profile.note) {
        (Some(why), _) => Some(format!("no profile: {why}")),
        (None, Some(note)) => Some(format!("profile of {note}")),
        (None, None) => None,
    }
}

/// What an observer said when asked after a trial.
pub(super) fn degraded(before: &[Availability], after: &[Availability]) -> Vec<String> {
    let worked = |name: &str| {
        let mut then = before.iter().filter(|then| then.observer == name);
        then.any(|then| then.missing.is_none())
    };
    let failed = after.iter().filter_map(|now| {
        let why = now.missing.as_ref().filter(|_| worked(&now.observer))?;
        Some(format!("observer {} failed: {why}", now.observer))
    });
    failed.collect()
}
