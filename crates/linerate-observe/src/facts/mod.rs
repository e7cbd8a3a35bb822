//! What the host is: kernel, CPUs, memory, sysctls, links.
//!
//! Facts are read once and held against numbers later, so each is either what the kernel says or
//! missing with the reason; none is guessed.

mod cpu;
mod hidden;
mod irq;
mod kernel;
mod link;
mod nic;
mod pcie;
mod queue;
mod sysctl;
mod virtualisation;

pub use kernel::memory_bytes;
use linerate_model::host::{Fact, FactValue, Snapshot};
use linerate_model::unit::Unit;

use crate::observer::{NEEDS_TOKEN, ObserveConfig};

/// Reads all facts of the host, sorted by name.
///
/// Files come from the roots of `config`; devices come from the network namespace of the calling
/// thread. A caller who may not see the whole host gets the names with the reason.
pub fn facts(config: &ObserveConfig) -> Snapshot {
    let mut facts = Facts::default();
    kernel::read(config, &mut facts);
    cpu::read(config, &mut facts);
    sysctl::read(config, &mut facts);
    if config.host_wide {
        link::read(config, &mut facts);
        irq::read(config, &mut facts);
        queue::read(config, &mut facts);
    } else {
        facts.refuse_all();
    }
    facts.into_snapshot()
}

/// What reading one fact came to; the error is the reason why it is missing.
type Reading = Result<FactValue, String>;

/// Facts on their way into a snapshot.
#[derive(Debug, Default)]
struct Facts(Vec<Fact>);

impl Facts {
    /// Adds what reading the fact called `name` came to.
    fn add(&mut self, name: impl Into<String>, reading: Reading) {
        self.0.push(Fact {
            name: name.into(),
            value: reading.unwrap_or_else(FactValue::Missing),
        });
    }

    fn refuse_all(&mut self) {
        for fact in &mut self.0 {
            fact.value = FactValue::Missing(NEEDS_TOKEN.to_owned());
        }
    }

    fn into_snapshot(mut self) -> Snapshot {
        self.0.sort_by(|a, b| a.name.cmp(&b.name));
        Snapshot { facts: self.0 }
    }
}

/// Reads the decimal number that `value` is.
fn number(value: &str, unit: Unit) -> Reading {
    match value.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(FactValue::Number(number, unit)),
        _ => Err(format!("`{value}` is not a number")),
    }
}
