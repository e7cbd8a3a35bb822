//! Failures for programs: whoever parses what a command prints finds a document, whatever fails.

use serde::Serialize;

use super::single::Form;
use super::{json_document, json_line};
use crate::exit::Failure;

/// The document of a command that did not come to a result.
#[derive(Serialize)]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    schema_version: u32,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

impl<'a> ErrorDocument<'a> {
    /// Returns the document of `failure`, in the place of one of this schema.
    pub fn of(failure: &'a Failure, (schema, schema_version): (&'static str, u32)) -> Self {
        Self {
            schema,
            schema_version,
            error: failure.to_string(),
            next: failure.next.as_deref(),
        }
    }

    /// Prints it where documents are asked for.
    pub fn print(&self, form: Form) {
        match form {
            Form::Text => {}
            Form::Json => json_document(self),
            Form::JsonStream => json_line("error", self),
        }
    }
}

/// Prints `failure` of a command that prints in this form.
pub fn print(form: Form, failure: &Failure) {
    ErrorDocument::of(failure, ("linerate.error", 1)).print(form);
}
