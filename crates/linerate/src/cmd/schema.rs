//! `linerate schema`: the JSON Schema of a document that the program prints.

use anyhow::anyhow;

use crate::args::SchemaArgs;
use crate::exit::{CmdResult, Exit, Failure};
use crate::{similar, term};

/// A document, by the name that its `schema` key has, with what prints it.
struct Document {
    name: &'static str,
    printed_by: &'static str,
    schema: fn() -> schemars::Schema,
}

/// Every document that has a name.
const DOCUMENTS: &[Document] = &[
    Document {
        name: "linerate.run",
        printed_by: "linerate run -J",
        schema: || written::<linerate_analyze::single::Single<'static>>(),
    },
    Document {
        name: "linerate.loaded",
        printed_by: "linerate run --loaded -J",
        schema: || written::<linerate_analyze::loaded::Loaded>(),
    },
    Document {
        name: "linerate.report",
        printed_by: "linerate report --format json",
        schema: || written::<linerate_model::analysis::Analysis>(),
    },
    Document {
        name: "linerate.trace",
        printed_by: "linerate trace --json",
        schema: || written::<linerate_trace::Trace>(),
    },
    Document {
        name: "linerate.compare",
        printed_by: "linerate compare -J, linerate run -J of several levels",
        schema: || written::<linerate_model::compared::Compared>(),
    },
    Document {
        name: "linerate.capacity",
        printed_by: "linerate capacity -J",
        schema: || written::<linerate_analyze::capacity::Capacity>(),
    },
    Document {
        name: "linerate.plan",
        printed_by: "linerate plan -J",
        schema: || written::<super::plan::PlanDocument<'static>>(),
    },
    Document {
        name: "linerate.watch",
        printed_by: "linerate watch --json-stream, each line",
        schema: || written::<super::watch::WatchLine<'static>>(),
    },
    Document {
        name: "linerate.explain",
        printed_by: "linerate explain --port N -J",
        schema: || written::<linerate_analyze::watch::service::Explained>(),
    },
    Document {
        name: "linerate.error",
        printed_by: "a command with -J that fails",
        schema: || written::<crate::term::failure::ErrorDocument<'static>>(),
    },
];

/// Returns the schema of what is written of a `T`: what may be left out is not required.
fn written<T: schemars::JsonSchema>() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// Runs the command.
pub fn schema(args: &SchemaArgs) -> CmdResult {
    let Some(name) = &args.name else {
        for document in DOCUMENTS {
            term::line(&format!("{:<17} {}", document.name, document.printed_by));
        }
        return Ok(Exit::Ok);
    };
    let whole = format!("linerate.{name}");
    let mut documents = DOCUMENTS.iter();
    let found = documents.find(|document| document.name == name || document.name == whole);
    let Some(document) = found else {
        let names = DOCUMENTS.iter().map(|document| document.name);
        let near = similar::nearest(name, names).map(|near| format!("did you mean `{near}`?"));
        let next = near.unwrap_or_else(|| "`linerate schema` lists the documents".to_owned());
        return Err(Failure::usage(anyhow!("no document is called `{name}`")).next(next));
    };
    term::json_pretty(&(document.schema)());
    Ok(Exit::Ok)
}
