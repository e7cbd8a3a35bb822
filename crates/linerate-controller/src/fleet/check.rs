//! What there is to know of hosts before anything is measured with them.

use linerate_agent::api::{AgentError, AgentInfo, Inventory};
use linerate_model::HostName;
use linerate_model::run::ClockFit;

use super::clock::{Clock, ClockFilter};
use super::{EXCHANGES_AT_START, Fleet, HostSpec, inventory};

/// What a host said.
pub struct Checked {
    /// The host.
    pub name: HostName,
    /// What its agent answered, or why there is no answer.
    pub answer: Result<Answer, AgentError>,
}

/// What an agent answered.
pub struct Answer {
    /// Who it is.
    pub info: AgentInfo,
    /// Its clock against ours.
    pub clock: ClockFit,
    /// What its host has.
    pub inventory: Inventory,
}

impl Fleet {
    /// Asks all hosts at the same time; none of them is occupied by it, and one that does not answer keeps no other waiting.
    pub fn check(specs: &[HostSpec]) -> Vec<Checked> {
        let clock = Clock::start();
        clock.together(specs, |spec| Checked {
            name: spec.name.clone(),
            answer: answer(&clock, spec),
        })
    }
}

fn answer(clock: &Clock, spec: &HostSpec) -> Result<Answer, AgentError> {
    let info = spec.agent.info()?;
    let mut filter = ClockFilter::default();
    Ok(Answer {
        info,
        clock: clock.exchange(&*spec.agent, &mut filter, EXCHANGES_AT_START)?,
        inventory: inventory(spec, None)?,
    })
}
