//! Words and names that do not belong into the repository, and tests that sleep.

use super::Finding;
use super::sources::{Source, Sources};

/// Word and what to do instead. Split, so that this file does not break its own rule.
const BANNED: [(&str, &str); 14] = [
    (concat!("TO", "DO"), "do it, or write an issue"),
    (concat!("FIX", "ME"), "fix it, or write an issue"),
    (concat!("XX", "X"), "say what is meant"),
    (concat!("HA", "CK"), "say why it has to be so"),
    (concat!("todo", "!("), "write the code"),
    (concat!("unimplemented", "!("), "write the code"),
    (concat!("dbg", "!("), "remove it"),
    (concat!(".on", "ly("), "run all tests"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("registry.", "npmjs"), "name packages, not registry hosts"),
    (concat!("static.", "crates.io"), "name packages, not registry hosts"),
    (concat!("index.", "crates.io"), "name packages, not registry hosts"),
    (concat!("python", "hosted.org"), "name packages, not registry hosts"),
];

/// File and folder names that say nothing.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];

/// Ways of sleeping that tests use as a synchronisation device.
const SLEEPS: [&str; 4] = [
    concat!("sle", "ep("),
    concat!("setTim", "eout(resolve"),
    concat!("setTim", "eout(done"),
    concat!("setTim", "eout(r,"),
];

/// Files whose tests may sleep, each with the reason.
const SLEEPING_TESTS: [(&str, &str); 2] = [
    (
        "crates/motet-server/tests/server/process.rs",
        "a bounded poll for the end of a child process",
    ),
    ("tests/browser/driver/deadline.ts", "the one bounded poll that all browser tests wait with"),
];

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    for source in sources.all() {
        if source.is_lock() {
            check_lock(source, findings);
            continue;
        }
        check_name(source, findings);
        let mut in_tests = source.is_test();
        for (index, line) in source.text.lines().enumerate() {
            in_tests |= line.trim_start().starts_with("#[cfg(test)]");
            let mut find =
                |text: String| findings.push(Finding::new(&source.path, index + 1, text));
            for (word, instead) in BANNED.iter().filter(|(word, _)| has_word(line, word)) {
                find(format!("{word:?}: {instead}"));
            }
            if must_be_ascii(source) && !line.is_ascii() {
                find("a character outside ASCII: write it as an escape".into());
            }
            if in_tests && sleeps(source, line) {
                find("a test that sleeps: wait for the event itself".into());
            }
        }
    }
}

fn check_name(source: &Source, findings: &mut Vec<Finding>) {
    for part in source.path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            let text = format!("a name that says nothing ({stem}): name the concept");
            findings.push(Finding::new(&source.path, 1, text));
        }
    }
}

/// A lock file names packages and checksums, but no machine that they were fetched from.
fn check_lock(source: &Source, findings: &mut Vec<Finding>) {
    let names_a_host = |line: &str| line.contains("\"resolved\": \"http");
    if let Some(index) = source.text.lines().position(names_a_host) {
        let text = "a registry host: `.npmrc` keeps them out, run npm install again";
        findings.push(Finding::new(&source.path, index + 1, text));
    }
}

fn must_be_ascii(source: &Source) -> bool {
    source.extension() != "md"
}

/// Whether the word stands alone, not inside a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let open_end = !word.ends_with(char::is_alphanumeric);
        let starts_a_name = word.starts_with(is_name);
        let whole_before = if starts_a_name || word.starts_with('/') {
            !before.is_some_and(is_name)
        } else {
            true
        };
        whole_before && (open_end || !after.is_some_and(is_name))
    })
}

fn sleeps(source: &Source, line: &str) -> bool {
    let allowed = SLEEPING_TESTS.iter().any(|(path, _)| *path == source.path);
    let is_code = matches!(source.extension(), "rs" | "ts" | "tsx" | "mjs" | "js" | "py");
    // A method of that name moves the virtual clock of a core's test.
    let on_a_clock = [concat!(".sle", "ep("), concat!("fn sle", "ep(")];
    let real =
        on_a_clock.iter().fold(line.to_owned(), |line, virtual_one| line.replace(virtual_one, ""));
    is_code && !allowed && SLEEPS.iter().any(|sleep| has_word(&real, sleep))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let mut findings = Vec::new();
        check(&Sources::of(&[(path, text)]), &mut findings);
        findings.len()
    }

    #[test]
    fn banned_words_are_found_where_they_stand_alone() {
        assert_eq!(found("a.rs", concat!("// TO", "DO: later")), 1);
        assert_eq!(found("a.rs", concat!("let x = TO", "DOS;")), 0);
        assert_eq!(found("a.ts", concat!("test.on", "ly('x')")), 1);
        assert_eq!(found("a.md", concat!("see /wo", "rk/x")), 1);
        assert_eq!(found("a.md", concat!("see docs/wo", "rk/x")), 0);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        assert_eq!(found("src/utils/x.rs", ""), 1);
        assert_eq!(found("src/helpers.ts", ""), 1);
        assert_eq!(found("src/utility.rs", ""), 0);
    }

    #[test]
    fn sleeping_is_found_in_tests_only() {
        let sleep = concat!("sle", "ep(Duration::ZERO);\n");
        assert_eq!(found("src/a.rs", sleep), 0);
        assert_eq!(found("src/a.rs", &format!("#[cfg(test)]\n{sleep}")), 1);
        assert_eq!(found("crates/a/tests/b.rs", sleep), 1);
        assert_eq!(found("crates/a/tests/b.rs", concat!("pair.sle", "ep(SECOND);\n")), 0);
    }

    #[test]
    fn a_lock_file_that_names_a_host_is_found_once() {
        let lock = "\"resolved\": \"https://one\"\n\"resolved\": \"https://two\"\n";
        assert_eq!(found("package-lock.json", lock), 1);
        assert_eq!(found("package-lock.json", "\"resolved\": \"tests/browser\"\n"), 0);
    }

    #[test]
    fn sources_are_ascii_and_prose_need_not_be() {
        assert_eq!(found("a.rs", "// \u{2192}"), 1);
        assert_eq!(found("a.md", "\u{2192}"), 0);
    }
}
