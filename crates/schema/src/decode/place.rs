//! Where the reader is, printed the two ways in which upstream's decoder prints it.

use std::fmt;

/// A chain of borrowed steps from the body's root; costs nothing until it is printed.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(super) const fn root() -> Place<'static> {
        Place {
            parent: None,
            step: Step::Root,
        }
    }

    /// A field of the struct here, declared or not.
    pub(super) const fn field(&'a self, name: &'a str) -> Place<'a> {
        Place {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// An entry of the dictionary here.
    pub(super) const fn key(&'a self, key: &'a str) -> Place<'a> {
        Place {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    /// An item of the list here.
    pub(super) const fn index(&'a self, index: usize) -> Place<'a> {
        Place {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// The names of the struct fields passed on the way, as type errors carry them: neither list
    /// indices nor keys of dictionaries are among them.
    pub(super) fn fields(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut here = Some(self);
        while let Some(place) = here {
            if let Step::Field(name) = place.step {
                names.push(name.to_owned());
            }
            here = place.parent;
        }
        names.reverse();
        names
    }
}

/// The full path, as strict errors carry it: `spec.containers[0].name`, keys after a dot too.
impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chain = Vec::new();
        let mut here = Some(self);
        while let Some(place) = here {
            chain.push(place.step);
            here = place.parent;
        }
        let mut first = true;
        for step in chain.iter().rev() {
            match step {
                Step::Root => continue,
                Step::Field(name) | Step::Key(name) if first => out.write_str(name)?,
                Step::Field(name) | Step::Key(name) => write!(out, ".{name}")?,
                Step::Index(index) => write!(out, "[{index}]")?,
            }
            first = false;
        }
        Ok(())
    }
}
