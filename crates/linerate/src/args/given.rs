//! Flags of the catalogue of parameters, as they were typed.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};
use linerate_model::experiment::{Factor, Level};
use linerate_model::parameter::{Flag, Gives, PARAMETERS, Parameter};

/// A flag that was typed, for the parameter that it gives.
#[derive(Debug)]
pub struct Typed {
    /// The parameter.
    pub parameter: &'static Parameter,
    /// The flag.
    pub flag: &'static Flag,
    /// What it stands for; none where the command line makes several things of it, and several where these are to be
    /// compared.
    pub levels: Vec<Level>,
}

/// Reads what a flag of a factor is given: one value, or several with commas between them, of which the first that `one`
/// reads is what the flag is taken for; [`Given`] has all.
#[derive(Debug, Clone)]
pub struct Levels<P> {
    one: P,
    /// A level that is none of the flag's own values, beside others.
    also: &'static str,
}

impl<P> Levels<P> {
    /// Returns what reads several of what `one` reads.
    pub fn of(one: P) -> Self {
        Self { one, also: "" }
    }

    /// Returns it with a level that stands beside others only.
    pub fn or(self, also: &'static str) -> Self {
        Self { also, ..self }
    }
}

impl<P: TypedValueParser> TypedValueParser for Levels<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        let read = |value: &OsStr| self.one.parse_ref(command, argument, value);
        let Some(text) = value.to_str().filter(|text| text.contains(',')) else {
            return read(value);
        };
        let mut first = None;
        let own = |level: &&str| level.is_empty() || *level != self.also;
        for level in text.split(',').filter(own) {
            let level = read(OsStr::new(level))?;
            first.get_or_insert(level);
        }
        first.map_or_else(|| read(value), Ok)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.one.possible_values()
    }
}

/// Every flag of the catalogue that was typed, in the order of the catalogue.
///
/// It adds no flags: their lines, with types and help, are in the structures beside it.
#[derive(Debug, Default)]
pub struct Given(pub Vec<Typed>);

impl Given {
    /// Returns what is to be compared: the factors of which several levels were typed.
    pub fn varied(&self) -> Vec<(Factor, Vec<Level>)> {
        let several = self.0.iter().filter(|typed| typed.levels.len() > 1);
        let factor = |typed: &Typed| Some((typed.parameter.factor?.0, typed.levels.clone()));
        several.filter_map(factor).collect()
    }
}

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
        parameter.parse(text).map_err(wrong)
    };
    let levels = match flag.gives {
        Gives::Value if parameter.factor.is_some() => {
            let levels = text.split(',').map(parse);
            let levels = levels.collect::<Result<Vec<_>, _>>()?;
            if let Some(twice) = (1..levels.len()).find(|at| levels[..*at].contains(&levels[*at])) {
                let why = format!("{} `{text}` has {} twice\n", flag.name, levels[twice]);
                return Err(Error::raw(clap::error::ErrorKind::ValueValidation, why));
            }
            levels
        }
        Gives::Value => vec![parse(&text)?],
        Gives::Word(word) => vec![parse(word)?],
        Gives::Part => Vec::new(),
    };
    Ok(Some(Typed {
        parameter,
        flag,
        levels,
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
