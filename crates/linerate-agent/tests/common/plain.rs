//! An agent, a request for its host and an assignment in which nothing is asked for that a test does not name.

use std::sync::Arc;

use linerate_agent::api::{AdmitRequest, Assignment, FlowAssignment, LimitsInfo};
use linerate_agent::{AgentConfig, Core};
use linerate_model::manner::Manner;
use linerate_model::run::Admission;
use linerate_model::sample::End;
use linerate_model::workload::{FlowOptions, Part, Traffic};
use linerate_model::{FlowId, Nanos, RunId, TrialId};

/// Returns an agent that nobody uses yet, with these limits for callers without a token.
pub fn core(limits: LimitsInfo) -> Arc<Core> {
    Arc::new(Core::new(AgentConfig {
        host_name: "test".to_owned(),
        limits,
        lab: false,
    }))
}

/// Returns the request of a run that is called `test` and shares the host.
pub fn request() -> AdmitRequest {
    AdmitRequest {
        run: RunId("test".to_owned()),
        label: "test".to_owned(),
        admission: Admission::Shared,
        expected: None,
        evict: false,
    }
}

/// Returns one end of `flows` flows, as trial 0 of at most five seconds.
pub fn assignment(end: End, part: Part, traffic: Traffic, flows: u32) -> Assignment {
    let plan = |flow| FlowAssignment {
        flow: FlowId(flow),
        part,
    };
    Assignment {
        trial: TrialId(0),
        end,
        peer: None,
        bind: None,
        server: None,
        cookie: "ab".repeat(16),
        traffic,
        options: FlowOptions::default(),
        manner: Manner::default(),
        flows: (0..flows).map(plan).collect(),
        beside: Vec::new(),
        workers_max: None,
        cpus: Vec::new(),
        placement: Default::default(),
        probes: Default::default(),
        capture_at: None,
        changes: None,
        sample_interval: Nanos::from_ms(100),
        length: Nanos::from_s(5),
        warm_up_more: Nanos(0),
        flow_rate_max: None,
    }
}
