//! Failures for programs: whoever parses what a command prints finds a document, whatever fails.

use linerate_analyze::single::Summary;
use serde::Serialize;

use super::single::Form;
use super::{json_document, json_line};
use crate::exit::Failure;

/// The document of a command that did not come to a result.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    nothing: Option<Nothing>,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

/// What the document of a run has where nothing was measured, so that what asks for a key finds it.
#[derive(Serialize, schemars::JsonSchema)]
struct Nothing {
    summary: Summary,
    trials: [(); 0],
    findings: [(); 0],
    cautions: [(); 0],
}

impl<'a> ErrorDocument<'a> {
    /// Returns the document of `failure`, in the place of one of this schema.
    pub fn of(failure: &'a Failure, (schema, schema_version): (&'static str, u32)) -> Self {
        Self {
            schema,
            schema_version,
            nothing: None,
            error: failure.to_string(),
            next: failure.next.as_deref(),
        }
    }

    /// Returns it with the keys of a run that came to nothing.
    pub fn of_run(self) -> Self {
        Self {
            nothing: Some(Nothing {
                summary: Summary::of_nothing(),
                trials: [],
                findings: [],
                cautions: [],
            }),
            ..self
        }
    }

    /// Prints it where documents are asked for.
    pub fn print(&self, form: Form) {
        match form {
            Form::Text | Form::Csv => {}
            Form::Json => json_document(self),
            Form::JsonStream => json_line("error", self),
        }
    }
}

/// Prints `failure` of a command that prints in this form.
pub fn print(form: Form, failure: &Failure) {
    ErrorDocument::of(failure, ("linerate.error", 1)).print(form);
}
