//! The OpenAPI document, made from the types of this module's parent.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

use super::{
    API_VERSION, AdmitRequest, Admitted, AgentInfo, Assignment, ClockReading, Inventory,
    Observation, Prepared, Refusal, StartRequest, TrialStatus,
};

/// One operation of the API.
struct Operation {
    path: &'static str,
    method: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    request: Option<Value>,
    answer: Option<Value>,
    /// Content type of the answer.
    content: &'static str,
}

/// Returns the OpenAPI 3.1 document of the agent.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let refusal = value(&mut schemas, |schemas| schemas.subschema_for::<Refusal>());
    let mut paths = serde_json::Map::new();
    for operation in operations(&mut schemas) {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        let method = operation.method;
        entry[method] = describe(operation, &refusal);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linerate agent",
            "version": API_VERSION.to_string(),
            "summary": "One host's part in a trial.",
            "description": "Instants are nanoseconds on the agent's CLOCK_MONOTONIC. A run is \
                admitted once and then named by its lease, a secret that ends 20 s after the last \
                request that used it. Measuring needs no token, within the agent's limits; \
                observing the host from another host and making it connect elsewhere do.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" }
        },
        "paths": paths,
        "components": {
            "schemas": Value::Object(schemas.take_definitions(true)),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } }
        },
        "security": [{}, { "token": [] }]
    })
}

fn value(
    schemas: &mut SchemaGenerator,
    schema: impl FnOnce(&mut SchemaGenerator) -> schemars::Schema,
) -> Value {
    schema(schemas).to_value()
}

fn operations(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    macro_rules! schema {
        ($type:ty) => {
            Some(value(schemas, |schemas| schemas.subschema_for::<$type>()))
        };
    }
    let operation = |method, path, id, summary| Operation {
        path,
        method,
        id,
        summary,
        query: &[],
        request: None,
        answer: None,
        content: "application/json",
    };
    vec![
        Operation {
            answer: schema!(AgentInfo),
            ..operation(
                "get",
                "/v1/agent",
                "info",
                "Who the agent is and whether it is busy.",
            )
        },
        Operation {
            answer: Some(json!({ "type": "object" })),
            ..operation("get", "/v1/openapi.json", "openapi", "This document.")
        },
        Operation {
            answer: schema!(ClockReading),
            ..operation(
                "get",
                "/v1/clock",
                "clock",
                "Both instants of a clock exchange.",
            )
        },
        Operation {
            query: &[
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
            ],
            answer: schema!(Inventory),
            ..operation(
                "get",
                "/v1/inventory",
                "inventory",
                "Facts and observers of the host.",
            )
        },
        Operation {
            query: &[(
                "sockets",
                "string",
                "Which TCP sockets are wanted as rows, as in `state connected and dport 5201`.",
            )],
            answer: schema!(Observation),
            ..operation(
                "get",
                "/v1/observation",
                "observe",
                "What every observer reads now; readings within 10 ms are shared. Needs the token.",
            )
        },
        Operation {
            request: schema!(AdmitRequest),
            answer: schema!(Admitted),
            ..operation("post", "/v1/runs", "admit", "Ask to use the host.")
        },
        Operation {
            answer: schema!(Admitted),
            ..operation(
                "get",
                "/v1/runs/{lease}",
                "renew",
                "Keep the lease, or see the queue.",
            )
        },
        operation("delete", "/v1/runs/{lease}", "leave", "Give the host back."),
        Operation {
            request: schema!(Assignment),
            answer: schema!(Prepared),
            ..operation(
                "post",
                "/v1/runs/{lease}/trials",
                "prepare",
                "Make or expect the flows of a trial.",
            )
        },
        Operation {
            query: &[
                ("from", "integer", "Number of the first sample wanted."),
                (
                    "flow",
                    "integer",
                    "Number of the first flow outcome wanted.",
                ),
            ],
            answer: schema!(TrialStatus),
            ..operation(
                "get",
                "/v1/runs/{lease}/trials/{trial}",
                "poll",
                "State, new samples, and results once finished.",
            )
        },
        operation(
            "delete",
            "/v1/runs/{lease}/trials/{trial}",
            "abort",
            "End a trial before its time.",
        ),
        Operation {
            request: schema!(StartRequest),
            ..operation(
                "post",
                "/v1/runs/{lease}/trials/{trial}/start",
                "start",
                "Set the instants; waits up to 10 s until every flow exists.",
            )
        },
        operation(
            "post",
            "/v1/runs/{lease}/trials/{trial}/stop",
            "stop",
            "End the traffic of a running trial now and keep what was measured.",
        ),
        Operation {
            query: &[(
                "part",
                "integer",
                "Number of the part wanted, from 0; those before it are forgotten.",
            )],
            answer: Some(json!({ "type": "string", "format": "binary" })),
            content: "application/octet-stream",
            ..operation(
                "get",
                "/v1/runs/{lease}/trials/{trial}/capture",
                "capture",
                "A part of the pcapng file that a finished trial captured, empty behind the last. \
                 Needs the token.",
            )
        },
    ]
}

fn describe(operation: Operation, refusal: &Value) -> Value {
    let mut parameters: Vec<Value> = ["lease", "trial"]
        .into_iter()
        .filter(|name| operation.path.contains(&format!("{{{name}}}")))
        .map(|name| {
            let kind = if name == "trial" { "integer" } else { "string" };
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } })
        })
        .collect();
    for (name, kind, help) in operation.query {
        parameters.push(json!({
            "name": name, "in": "query", "description": help, "schema": { "type": kind }
        }));
    }
    let answer = operation
        .answer
        .unwrap_or_else(|| json!({ "type": "object" }));
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": {
            "200": { "description": "Done.", "content": { (operation.content): { "schema": answer } } },
            "default": {
                "description": "Refused: 400 bad request, 401 token, 403 limit, 404 path, \
                    405 method, 409 busy, 410 lease or trial gone, 424 flows, 500 internal.",
                "content": { "application/json": { "schema": refusal } }
            }
        }
    });
    if !parameters.is_empty() {
        described["parameters"] = Value::Array(parameters);
    }
    if let Some(request) = operation.request {
        described["requestBody"] = json!({
            "required": true, "content": { "application/json": { "schema": request } }
        });
    }
    described
}
