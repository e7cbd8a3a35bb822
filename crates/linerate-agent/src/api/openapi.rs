//! The OpenAPI document, made from the types of this module's parent.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

use super::operation::{ALL, Answer, Method, Operation};
use super::{API_VERSION, Refusal};

/// Returns the OpenAPI 3.1 document of the agent.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let refusal = schemas.subschema_for::<Refusal>().to_value();
    let mut paths = serde_json::Map::new();
    for operation in ALL {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        let method = match operation.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::Delete => "delete",
        };
        entry[method] = describe(operation, &mut schemas, &refusal);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linerate agent",
            "version": API_VERSION.to_string(),
            "summary": "One host's part in a trial.",
            "description": "Instants are nanoseconds on the agent's CLOCK_MONOTONIC. A run is \
                admitted once and then named by its lease, a secret that ends 20 s after the last \
                request that used it. Callers on other hosts speak TLS and show a token \
                (`Authorization: Bearer`), whose scopes say what they may do; with `serve --public` \
                measuring needs none, within the agent's limits.",
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

fn describe(operation: &Operation, schemas: &mut SchemaGenerator, refusal: &Value) -> Value {
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
    let request = operation.request.map(|request| request(schemas).to_value());
    let (content, answer) = match operation.answer {
        Answer::Object => ("application/json", json!({ "type": "object" })),
        Answer::Json(schema) => ("application/json", schema(schemas).to_value()),
        Answer::Bytes => (
            "application/octet-stream",
            json!({ "type": "string", "format": "binary" }),
        ),
    };
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": {
            "200": { "description": "Done.", "content": { content: { "schema": answer } } },
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
    if let Some(request) = request {
        described["requestBody"] = json!({
            "required": true, "content": { "application/json": { "schema": request } }
        });
    }
    described
}
