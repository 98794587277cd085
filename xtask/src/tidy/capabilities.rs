//! Every capability of `docs/capabilities.md` is proved by tests that exist.

use super::Finding;
use super::sources::{Source, Sources};

const DOCUMENT: &str = "docs/capabilities.md";

/// The ids that must be listed: prefix, and the ranges of numbers.
const REQUIRED: [(&str, &[(u32, u32)]); 4] = [
    ("B", &[(1, 6), (8, 12), (14, 16), (18, 19), (25, 32), (35, 35)]),
    ("RT", &[(1, 13)]),
    ("D", &[(1, 12)]),
    ("H", &[(1, 8)]),
];

/// Whether a row without a test breaks the rule.
const UNPROVED_IS_REFUSED: bool = true;

struct Row<'a> {
    line: usize,
    id: &'a str,
    tests: Vec<&'a str>,
}

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    let Some(document) = sources.find(DOCUMENT) else {
        findings.push(Finding::new(DOCUMENT, 1, "the list of capabilities is missing"));
        return;
    };
    let rows = rows(&document.text);
    for id in required() {
        match rows.iter().filter(|row| row.id == id).count() {
            1 => {}
            0 => findings.push(Finding::new(DOCUMENT, 1, format!("{id} is not listed"))),
            _ => findings.push(Finding::new(DOCUMENT, 1, format!("{id} is listed twice"))),
        }
    }
    for row in &rows {
        if row.tests.is_empty() && UNPROVED_IS_REFUSED {
            findings.push(Finding::new(DOCUMENT, row.line, format!("{} has no test", row.id)));
        }
        for test in row.tests.iter().filter(|test| !exists(sources, test)) {
            let text = format!("{}: there is no test {test:?}", row.id);
            findings.push(Finding::new(DOCUMENT, row.line, text));
        }
    }
}

/// The ids whose row names no test yet.
pub(super) fn unproved(sources: &Sources) -> Vec<&str> {
    let Some(document) = sources.find(DOCUMENT) else { return Vec::new() };
    let rows = rows(&document.text).into_iter();
    rows.filter(|row| row.tests.is_empty()).map(|row| row.id).collect()
}

fn required() -> impl Iterator<Item = String> {
    REQUIRED.into_iter().flat_map(|(prefix, ranges)| {
        let numbers = ranges.iter().flat_map(|(first, last)| *first..=*last);
        numbers.map(move |number| format!("{prefix}{number}"))
    })
}

/// The rows of all tables whose first cell is an id.
fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<_> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, tests] = cells.as_slice() else { continue };
        if is_id(id) {
            let tests = tests.split('`').skip(1).step_by(2).collect();
            rows.push(Row { line: index + 1, id, tests });
        }
    }
    rows
}

fn is_id(cell: &str) -> bool {
    let digits = cell.trim_start_matches(|character: char| character.is_ascii_uppercase());
    !digits.is_empty()
        && digits.len() < cell.len()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a test is there: `crate::path::function`, or `path/of/file.test.ts: title`.
fn exists(sources: &Sources, test: &str) -> bool {
    match test.split_once(": ") {
        Some((path, title)) => sources.find(path).is_some_and(|file| has_title(file, title)),
        None => is_rust_test(sources, test),
    }
}

fn has_title(file: &Source, title: &str) -> bool {
    ['"', '\'', '`'].iter().any(|quote| file.text.contains(&format!("{quote}{title}{quote}")))
}

fn is_rust_test(sources: &Sources, test: &str) -> bool {
    let (Some((package, _)), Some((_, function))) = (test.split_once("::"), test.rsplit_once("::"))
    else {
        return false;
    };
    let folder = format!("crates/{}/", package.replace('_', "-"));
    let declaration = format!("fn {function}(");
    let mut files = sources.rust().filter(|file| file.path.starts_with(&folder));
    files.any(|file| {
        let mut places = file.text.match_indices(&declaration);
        places.any(|(at, _)| has_test_attribute(&file.text[..at]))
    })
}

/// Whether the lines just above a function mark it as a test.
fn has_test_attribute(before: &str) -> bool {
    let mut above = before.lines().rev().take_while(|line| !line.trim_end().ends_with('}'));
    above.any(|line| line.contains("#[test]") || line.contains("::test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 2] = [
        ("crates/motet-x/src/a.rs", "fn plain() {}\n#[test]\nfn it_holds() {}\n"),
        ("tests/browser/a.test.ts", "test(\"B1: a page sees it\", () => {});"),
    ];

    #[test]
    fn tests_are_found_by_function_and_by_title() {
        let sources = Sources::of(&FILES);
        assert!(exists(&sources, "motet_x::a::tests::it_holds"));
        assert!(exists(&sources, "tests/browser/a.test.ts: B1: a page sees it"));
        assert!(!exists(&sources, "motet_x::tests::plain"));
        assert!(!exists(&sources, "motet_y::a::it_holds"));
        assert!(!exists(&sources, "tests/browser/a.test.ts: a page"));
    }

    #[test]
    fn rows_are_read_with_their_tests() {
        let rows = rows("| id | what | tests |\n| -- | -- | -- |\n| B1 | x | `a::b`, `c: d` |\n");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].id, rows[0].line), ("B1", 3));
        assert_eq!(rows[0].tests, ["a::b", "c: d"]);
    }

    #[test]
    fn a_capability_that_is_missing_or_has_no_test_is_found() {
        let mut findings = Vec::new();
        check(&Sources::of(&[(DOCUMENT, "| B1 | x | |\n")]), &mut findings);
        let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
        let refused = texts.iter().any(|text| text.ends_with("B1 has no test"));
        assert_eq!(refused, UNPROVED_IS_REFUSED, "{texts:?}");
        assert!(texts.iter().any(|text| text.ends_with("RT13 is not listed")), "{texts:?}");
    }
}
