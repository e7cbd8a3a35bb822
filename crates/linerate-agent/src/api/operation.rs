//! The operations of the API, each once: router, client and document read this table.

use std::time::Duration;

use linerate_model::TrialId;
use schemars::Schema;
use schemars::generate::SchemaGenerator;

use super::{
    AdmitRequest, Admitted, AgentInfo, Assignment, ClockReading, Evicted, Inventory, Observation,
    Prepared, StartRequest, TokenProof, TrialStatus,
};
use crate::access::Scope;

/// Longest wait for an answer; `start` may take 10 s while flows arrive, an inventory 2 s.
const ANSWER: Duration = Duration::from_secs(15);
/// Longest wait for the first answer, which no agent has to think about: a program that says
/// nothing is soon told from one.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// Longest wait for an agent to take note of an end. It has nothing to think about either, and
/// one that does not answer ends by its own deadlines.
const END: Duration = Duration::from_secs(3);

/// One operation of the API.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    /// Its path, in which `{lease}` and `{trial}` stand for what names run and trial.
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    /// What a client that waits for it is doing.
    pub(crate) doing: &'static str,
    pub(crate) summary: &'static str,
    /// Longest wait of a client.
    pub(crate) timeout: Duration,
    /// Name, type and meaning of each parameter of its query.
    pub(crate) query: &'static [(&'static str, &'static str, &'static str)],
    /// The type of its body, if it has one.
    pub(crate) request: Option<SchemaOf>,
    pub(crate) answer: Answer,
    /// What a caller must be allowed to do; nothing but to be let in, where absent.
    pub(crate) scope: Option<Scope>,
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// An object without a schema of its own.
    Object,
    /// A value of a type.
    Json(SchemaOf),
    /// Bytes.
    Bytes,
}

impl Operation {
    const fn new(
        (method, path): (Method, &'static str),
        (id, doing): (&'static str, &'static str),
        summary: &'static str,
    ) -> Self {
        Self {
            method,
            path,
            id,
            doing,
            summary,
            timeout: match method {
                Method::Get | Method::Post => ANSWER,
                Method::Delete => END,
            },
            query: &[],
            request: None,
            answer: Answer::Object,
            scope: None,
        }
    }

    const fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    const fn for_callers_who_may(self, scope: Scope) -> Self {
        Self {
            scope: Some(scope),
            ..self
        }
    }

    const fn query(self, query: &'static [(&'static str, &'static str, &'static str)]) -> Self {
        Self { query, ..self }
    }

    const fn takes(self, schema: SchemaOf) -> Self {
        Self {
            request: Some(schema),
            ..self
        }
    }

    const fn gives(self, schema: SchemaOf) -> Self {
        Self {
            answer: Answer::Json(schema),
            ..self
        }
    }

    const fn gives_bytes(self) -> Self {
        Self {
            answer: Answer::Bytes,
            ..self
        }
    }

    /// Returns the path for a run and a trial, where they are named in it.
    pub(crate) fn path_of(&self, lease: &str, trial: Option<TrialId>) -> String {
        let trial = trial.map_or(String::new(), |trial| trial.0.to_string());
        self.path
            .replace("{lease}", lease)
            .replace("{trial}", &trial)
    }
}

const RUN: &str = "/v1/runs/{lease}";
const TRIAL: &str = "/v1/runs/{lease}/trials/{trial}";

pub(crate) static INFO: Operation = Operation::new(
    (Method::Get, "/v1/agent"),
    ("info", "asking who it is"),
    "Who the agent is and whether it is busy.",
)
.gives(|schemas| schemas.subschema_for::<AgentInfo>())
.within(FIRST_ANSWER);

pub(crate) static PROVE: Operation = Operation::new(
    (Method::Get, "/v1/proof"),
    ("prove", "asking for a proof of the token"),
    "Show that both ends know a token, which is not sent: `Authorization: Proof` with what the answer has, over `caller`.",
)
.gives(|schemas| schemas.subschema_for::<TokenProof>());

pub(crate) static DOCUMENT: Operation = Operation::new(
    (Method::Get, "/v1/openapi.json"),
    ("openapi", "reading its document"),
    "This document.",
);

pub(crate) static CLOCK: Operation = Operation::new(
    (Method::Get, "/v1/clock"),
    ("clock", "reading its clock"),
    "Both instants of a clock exchange.",
)
.gives(|schemas| schemas.subschema_for::<ClockReading>());

pub(crate) static INVENTORY: Operation = Operation::new(
    (Method::Get, "/v1/inventory"),
    ("inventory", "taking its inventory"),
    "Facts and observers of the host.",
)
.query(&[
    ("address", "string", "Address whose device is wanted."),
    (
        "memory_copy",
        "boolean",
        "Measure the memory's copy rate for 150 ms.",
    ),
    (
        "lease",
        "string",
        "Lease of the run that asks, if it has one.",
    ),
])
.gives(|schemas| schemas.subschema_for::<Inventory>());

pub(crate) static OBSERVE: Operation = Operation::new(
    (Method::Get, "/v1/observation"),
    ("observe", "observing"),
    "What every observer reads now; readings within 10 ms are shared. Needs the token.",
)
.for_callers_who_may(Scope::Observe)
.query(&[
    (
        "sockets",
        "string",
        "Which TCP sockets are wanted as rows, as in `state connected and dport 5201`.",
    ),
    (
        "interval_ns",
        "integer",
        "Time until the caller asks again; for three of them, of an hour at the most, totals go on. A minute when absent.",
    ),
])
.gives(|schemas| schemas.subschema_for::<Observation>());

pub(crate) static ADMIT: Operation = Operation::new(
    (Method::Post, "/v1/runs"),
    ("admit", "asking for admission"),
    "Ask to use the host.",
)
.for_callers_who_may(Scope::Measure)
.takes(|schemas| schemas.subschema_for::<AdmitRequest>())
.gives(|schemas| schemas.subschema_for::<Admitted>());

pub(crate) static EVICT: Operation = Operation::new(
    (Method::Delete, "/v1/runs"),
    ("evict", "taking the host back"),
    "End the runs of all callers without the token. Needs it.",
)
.for_callers_who_may(Scope::Admin)
.gives(|schemas| schemas.subschema_for::<Evicted>());

pub(crate) static RENEW: Operation = Operation::new(
    (Method::Get, RUN),
    ("renew", "keeping the lease"),
    "Keep the lease, or see the queue.",
)
.for_callers_who_may(Scope::Measure)
.gives(|schemas| schemas.subschema_for::<Admitted>());

pub(crate) static LEAVE: Operation = Operation::new(
    (Method::Delete, RUN),
    ("leave", "leaving"),
    "Give the host back.",
)
.for_callers_who_may(Scope::Measure);

pub(crate) static PREPARE: Operation = Operation::new(
    (Method::Post, "/v1/runs/{lease}/trials"),
    ("prepare", "preparing a trial"),
    "Make or expect the flows of a trial.",
)
.for_callers_who_may(Scope::Measure)
.takes(|schemas| schemas.subschema_for::<Assignment>())
.gives(|schemas| schemas.subschema_for::<Prepared>());

pub(crate) static POLL: Operation = Operation::new(
    (Method::Get, TRIAL),
    ("poll", "following a trial"),
    "State, new samples, and results once finished.",
)
.for_callers_who_may(Scope::Measure)
.query(&[
    ("from", "integer", "Number of the first sample wanted."),
    (
        "flow",
        "integer",
        "Number of the first flow outcome wanted.",
    ),
    (
        "wait_ns",
        "integer",
        "How long the answer may wait for the end of the trial, 1 s at the most.",
    ),
])
.gives(|schemas| schemas.subschema_for::<TrialStatus>());

pub(crate) static ABORT: Operation = Operation::new(
    (Method::Delete, TRIAL),
    ("abort", "ending a trial"),
    "End a trial before its time.",
)
.for_callers_who_may(Scope::Measure);

pub(crate) static START: Operation = Operation::new(
    (Method::Post, "/v1/runs/{lease}/trials/{trial}/start"),
    ("start", "starting a trial"),
    "Set the instants; waits up to 10 s until every flow exists.",
)
.for_callers_who_may(Scope::Measure)
.takes(|schemas| schemas.subschema_for::<StartRequest>());

pub(crate) static STOP: Operation = Operation::new(
    (Method::Post, "/v1/runs/{lease}/trials/{trial}/stop"),
    ("stop", "stopping a trial"),
    "End the traffic of a running trial now and keep what was measured.",
)
.for_callers_who_may(Scope::Measure);

pub(crate) static CAPTURE: Operation = Operation::new(
    (Method::Get, "/v1/runs/{lease}/trials/{trial}/capture"),
    ("capture", "fetching a capture"),
    "A part of the pcapng file that a finished trial captured, empty behind the last. Needs the token.",
)
.for_callers_who_may(Scope::Capture)
.query(&[(
    "part",
    "integer",
    "Number of the part wanted, from 0; those before it are forgotten.",
)])
.gives_bytes();

/// All operations, in the order of the document.
pub(crate) static ALL: [&Operation; 16] = [
    &INFO, &PROVE, &DOCUMENT, &CLOCK, &INVENTORY, &OBSERVE, &ADMIT, &EVICT, &RENEW, &LEAVE,
    &PREPARE, &POLL, &ABORT, &START, &STOP, &CAPTURE,
];
