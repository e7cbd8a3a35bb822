//! What the host tells of itself: facts, observers, and how fast it copies memory.

use std::time::Duration;

use linerate_engine as engine;
use linerate_model::host::{Availability, Fact, FactValue};
use linerate_model::unit::Unit;
use linerate_observe::ObserveConfig;

use super::{Caller, Core, lock};
use crate::access::Scope;
use crate::api::{Inventory, InventoryRequest};

/// How long the memory copy of an inventory runs.
const MEMORY_COPY_LENGTH: Duration = Duration::from_millis(150);

impl Core {
    /// Returns the facts and observers that the caller may see.
    pub fn inventory(&self, caller: &Caller, wanted: &InventoryRequest) -> Inventory {
        let config = self.observe_config(caller.may(Scope::Observe), Vec::new());
        let address = wanted
            .address
            .as_deref()
            .and_then(|address| address.parse().ok());
        let mut snapshot = match caller.may(Scope::Observe) {
            true => linerate_observe::facts(&config),
            false => linerate_model::host::Snapshot::default(),
        };
        if caller.may(Scope::Observe) && !self.config.lab {
            snapshot.facts.push(Fact {
                name: "agent.confined".to_owned(),
                value: match self.confined.get() {
                    Some(words) => FactValue::Text(words.clone()),
                    None => FactValue::Missing("`serve` was started without --user".to_owned()),
                },
            });
        }
        if wanted.memory_copy {
            let name = "memory.copy_bytes_per_s".to_owned();
            snapshot.facts.push(Fact {
                name,
                value: self.memory_copy(caller),
            });
        }
        snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        // Facts and observers are most of the code that runs before a trial, once each.
        let own_trials = wanted.lease.as_deref().map_or(0, |run| self.trials_of(run));
        let may_give_back = self.may_give_back_text(own_trials);
        if may_give_back {
            engine::give_back_neighbours();
        }
        let observers = linerate_observe::availabilities(&config);
        if may_give_back {
            engine::give_back_neighbours();
        }
        Inventory {
            snapshot,
            observers,
            link: address
                .filter(|_| caller.may(Scope::Observe))
                .and_then(linerate_observe::link_of_address),
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

/// What of the time in interrupts was asked for and could not be measured.
pub(super) fn unseen(observers: &[Availability]) -> Option<String> {
    let observer = observers.iter().find(|all| all.observer == "irq_time")?;
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
    after
        .iter()
        .filter(|now| now.missing.is_some())
        .filter(|now| {
            before
                .iter()
                .any(|then| then.observer == now.observer && then.missing.is_none())
        })
        .map(|now| {
            format!(
                "observer {} failed: {}",
                now.observer,
                now.missing.as_deref().unwrap_or("")
            )
        })
        .collect()
}
