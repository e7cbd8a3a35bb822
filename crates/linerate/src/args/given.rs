//! Flags of the catalogue of parameters, as they were typed.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Error};
use linerate_model::experiment::Level;
use linerate_model::parameter::{Flag, Gives, PARAMETERS, Parameter};

/// A flag that was typed, for the parameter that it gives.
#[derive(Debug)]
pub struct Typed {
    /// The parameter.
    pub parameter: &'static Parameter,
    /// The flag.
    pub flag: &'static Flag,
    /// What it stands for; absent where the command line makes several things of it.
    pub level: Option<Level>,
}

/// Every flag of the catalogue that was typed, in the order of the catalogue.
///
/// It adds no flags: their lines, with types and help, are in the structures beside it.
#[derive(Debug, Default)]
pub struct Given(pub Vec<Typed>);

fn typed(
    parameter: &'static Parameter,
    flag: &'static Flag,
    matches: &ArgMatches,
) -> Result<Option<Typed>, Error> {
    let (id, value) = flag.id();
    if matches.value_source(&id) != Some(ValueSource::CommandLine) {
        return Ok(None);
    }
    let raw = matches.get_raw(&id).and_then(Iterator::last);
    let text = raw.unwrap_or_default().to_string_lossy();
    if value.is_some_and(|value| value != text) {
        return Ok(None);
    }
    let parse = |text: &str| {
        let wrong = |why| {
            let why = format!("{} `{text}`: {why}\n", flag.name);
            Error::raw(clap::error::ErrorKind::ValueValidation, why)
        };
        parameter.parse(text).map(Some).map_err(wrong)
    };
    let level = match flag.gives {
        Gives::Value => parse(&text)?,
        Gives::Word(word) => parse(word)?,
        Gives::Part => None,
    };
    Ok(Some(Typed {
        parameter,
        flag,
        level,
    }))
}

impl clap::FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let flags = PARAMETERS
            .iter()
            .flat_map(|parameter| parameter.flags.iter().map(move |flag| (parameter, flag)));
        let given =
            flags.filter_map(|(parameter, flag)| typed(parameter, flag, matches).transpose());
        given.collect::<Result<_, _>>().map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
