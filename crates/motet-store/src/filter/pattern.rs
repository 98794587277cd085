//! Regular expressions in time linear in the text.

use regex::{Regex, RegexBuilder};
use regex_syntax::ast;

use super::place::Place;
use crate::Error;

/// The longest regular expression, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1_000;
/// The most bytes that a compiled regular expression takes.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 1 << 20;

/// A regular expression.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Regex);

/// What the letters of `$options` switch on.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    ignore_case: bool,
    lines: bool,
    dot_is_any: bool,
    ignore_space: bool,
}

impl Pattern {
    pub(super) fn new(text: &str, options: Options, place: &Place<'_>) -> Result<Self, Error> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(place.invalid("the regular expression is longer than 1,000 bytes"));
        }
        check(text, options, place)?;
        let regex = RegexBuilder::new(text)
            .case_insensitive(options.ignore_case)
            .multi_line(options.lines)
            .dot_matches_new_line(options.dot_is_any)
            .ignore_whitespace(options.ignore_space)
            .nest_limit(NESTING_MAX)
            .size_limit(PATTERN_PROGRAM_BYTES_MAX)
            .dfa_size_limit(PATTERN_PROGRAM_BYTES_MAX)
            .build();
        regex.map(Self).map_err(|cause| place.invalid(explain(&cause)))
    }

    /// Whether the text has a match.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl Options {
    pub(super) fn parse(letters: &str, place: &Place<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        for letter in letters.chars() {
            match letter {
                'i' => options.ignore_case = true,
                'm' => options.lines = true,
                's' => options.dot_is_any = true,
                'x' => options.ignore_space = true,
                _ => return Err(place.invalid("the options are i, m, s and x")),
            }
        }
        Ok(options)
    }
}

/// Tells what cannot be done in linear time from what is no regular expression.
fn check(text: &str, options: Options, place: &Place<'_>) -> Result<(), Error> {
    let mut parser = ast::parse::ParserBuilder::new()
        .nest_limit(NESTING_MAX)
        .ignore_whitespace(options.ignore_space)
        .build();
    let Err(cause) = parser.parse(text) else { return Ok(()) };
    match unsupported(text, &cause) {
        Some(what) => Err(Error::RegexUnsupported { at: place.to_string(), what }),
        None => {
            let at = cause.span().start.offset;
            let why = format!("the regular expression is wrong at byte {at}: {}", cause.kind());
            Err(place.invalid(why))
        }
    }
}

fn unsupported(text: &str, cause: &ast::Error) -> Option<&'static str> {
    let from = text.get(cause.span().start.offset..).unwrap_or_default();
    match cause.kind() {
        ast::ErrorKind::UnsupportedLookAround => Some("lookaround"),
        ast::ErrorKind::UnsupportedBackreference => Some("backreferences"),
        // A named one.
        ast::ErrorKind::EscapeUnrecognized if from.starts_with(r"\k") => Some("backreferences"),
        _ => None,
    }
}

/// What the compiler said, without its drawing of where.
fn explain(cause: &regex::Error) -> String {
    match cause {
        regex::Error::CompiledTooBig(_) => {
            "the regular expression takes more than 1 MiB compiled: repeat less in it".to_owned()
        }
        _ => {
            let text = cause.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("the regular expression is wrong: {last}")
        }
    }
}

const NESTING_MAX: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, letters: &str) -> Result<Pattern, Error> {
        let place = Place::TOP;
        Pattern::new(text, Options::parse(letters, &place)?, &place)
    }

    fn is_in(text: &str, letters: &str, subject: &str) -> bool {
        pattern(text, letters).unwrap().is_in(subject)
    }

    #[test]
    fn the_options_are_those_of_mongodb() {
        assert!(is_in("^B.r", "", "Bern") && !is_in("^b", "", "Bern"));
        assert!(is_in("^b", "i", "Bern") && is_in("\u{e9}", "i", "\u{c9}"));
        assert!(is_in("^b$", "m", "a\nb\nc") && !is_in("^b$", "", "a\nb\nc"));
        assert!(is_in("a.b", "s", "a\nb") && !is_in("a.b", "", "a\nb"));
        assert!(is_in("a b # the first", "x", "ab"));
        assert!(matches!(pattern("a", "g"), Err(Error::FilterInvalid { .. })));
    }

    #[test]
    fn what_needs_more_than_linear_time_is_told_apart() {
        for text in ["a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"(a)\1", r"(?<n>a)\k<n>"] {
            let refused = pattern(text, "");
            assert!(matches!(refused, Err(Error::RegexUnsupported { .. })), "{text}: {refused:?}");
        }
    }

    #[test]
    fn what_is_no_regular_expression_or_too_large_is_invalid() {
        let nested = format!("{}a{}", "(".repeat(60), ")".repeat(60));
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        for text in ["(", "[a", "a**{", r"\p{Nothing}", r"\w{1000}", "(((a{100}){100}){100})"] {
            let refused = pattern(text, "");
            assert!(matches!(refused, Err(Error::FilterInvalid { .. })), "{text}: {refused:?}");
        }
        for text in [nested, long] {
            assert!(matches!(pattern(&text, ""), Err(Error::FilterInvalid { .. })), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_backtracking_would_hang_on_answers() {
        assert!(!is_in("^(a+)+$", "", &("a".repeat(50_000) + "b")));
    }
}
