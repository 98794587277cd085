//! Where in a filter something is wrong.

use core::fmt;

use super::FILTER_DEPTH_MAX;
use crate::Error;

/// A place in a filter: a step from an outer place.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Position(usize),
}

impl<'a> Place<'a> {
    /// The filter itself.
    pub(super) const TOP: Place<'static> = Place { outer: None, step: Step::Name("") };

    pub(super) fn name(&'a self, name: &'a str) -> Self {
        Self { outer: Some(self), step: Step::Name(name) }
    }

    pub(super) fn position(&'a self, position: usize) -> Self {
        Self { outer: Some(self), step: Step::Position(position) }
    }

    /// What is wrong here.
    pub(super) fn invalid(&self, why: impl Into<String>) -> Error {
        Error::FilterInvalid { at: self.to_string(), why: why.into() }
    }

    /// That an operand is of another type than it has to be.
    pub(super) fn expected(&self, what: &str) -> Error {
        self.invalid(format!("the operand has to be {what}"))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(outer) = self.outer else { return Ok(()) };
        outer.fmt(f)?;
        match self.step {
            Step::Position(position) => write!(f, "[{position}]"),
            Step::Name(name) => {
                let separator = if outer.outer.is_none() { "" } else { "." };
                write!(f, "{separator}{}", shown(name))
            }
        }
    }
}

/// The start of a name that may be too long to be shown whole.
fn shown(name: &str) -> &str {
    const CHARACTERS: usize = 100;
    name.char_indices().nth(CHARACTERS).map_or(name, |(end, _)| &name[..end])
}

/// How deep the conditions are nested at a place.
#[derive(Clone, Copy)]
pub(super) struct Depth(usize);

impl Depth {
    pub(super) const TOP: Self = Self(0);

    /// One level further down, if that is allowed.
    pub(super) fn below(self, place: &Place<'_>) -> Result<Self, Error> {
        if self.0 == FILTER_DEPTH_MAX {
            return Err(place.invalid(format!("conditions nest at most {FILTER_DEPTH_MAX} deep")));
        }
        Ok(Self(self.0 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_a_path_from_the_top() {
        let top = Place::TOP;
        let (and, long) = (top.name("$and"), "x".repeat(1_000));
        let second = and.position(1);
        let field = second.name("a.b");
        assert_eq!(field.name("$gt").to_string(), "$and[1].a.b.$gt");
        assert_eq!(top.name(&long).to_string().len(), 100);
    }
}
