//! All flags with their values as texts, for people who ask how a server was started.

use std::collections::BTreeMap;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::Arguments;

/// Flags by name; those that are not set are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags(pub BTreeMap<String, String>);

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Flags, Error> {
        let grammar = Arguments::grammar();
        let flags = grammar.get_arguments().filter_map(|argument| {
            let values = matches.try_get_raw(argument.get_id().as_str()).ok()?;
            let values = values.into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            Some((argument.get_long()?.to_owned(), values.join(",")))
        });
        Ok(Flags(flags.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Flags::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It reads flags and adds none.
impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
