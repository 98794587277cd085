//! No dead files: every Rust file under `src` is reached from a crate root by `mod`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::Finding;
use super::rust_text::code_only;
use super::sources::{Source, Sources};

static DECLARATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bmod\s+(\w+)\s*([;{])").expect("the pattern is valid"));
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:#\[path\s*=\s*|include(?:_str)?!\(\s*)"([^"]+)""#)
        .expect("the pattern is valid")
});

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> =
        sources.rust().filter(|source| is_root(source)).map(|root| root.path.clone()).collect();
    while let Some(path) = waiting.pop() {
        let Some(source) = sources.find(&path) else { continue };
        if reached.insert(path) {
            waiting.extend(children(source));
        }
    }
    for source in sources.rust().filter(|source| !reached.contains(&source.path)) {
        let text = "no `mod` leads to this file: declare it or remove it";
        findings.push(Finding::new(&source.path, 1, text));
    }
}

/// Whether cargo builds the file as the root of a crate.
fn is_root(source: &Source) -> bool {
    let parts: Vec<_> = source.path.split('/').collect();
    let [.., folder, name] = parts.as_slice() else { return true };
    match *folder {
        "src" => matches!(*name, "lib.rs" | "main.rs"),
        "bin" | "tests" | "benches" | "examples" | "fuzz_targets" => true,
        _ => *name == "main.rs" || *name == "build.rs",
    }
}

/// The files that a file may mean by its declarations; those that do not exist are passed over.
fn children(source: &Source) -> Vec<String> {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = source.name().trim_end_matches(".rs");
    let is_folder_root = matches!(own, "lib" | "main" | "mod") || is_root(source);
    let base = if is_folder_root { folder.to_owned() } else { format!("{folder}/{own}") };

    let mut files = Vec::new();
    let code = code_only(&source.text);
    for (depth, name) in declarations(&code) {
        // The place of a file that is declared inside an inline module is told by that module.
        let inner: String = depth.iter().map(|outer| format!("/{outer}")).collect();
        files.push(format!("{base}{inner}/{name}.rs"));
        files.push(format!("{base}{inner}/{name}/mod.rs"));
    }
    let paths = PATH.captures_iter(&source.text).map(|found| found.extract::<1>().1[0]);
    files.extend(paths.map(|path| normalised(folder, path)));
    files
}

/// Declared modules without a body, each with the inline modules around it.
fn declarations(code: &str) -> Vec<(Vec<&str>, &str)> {
    let mut found = Vec::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    for declaration in DECLARATION.captures_iter(code) {
        let start = declaration.get(0).map_or(0, |whole| whole.start());
        open.retain(|(_, end)| start < *end);
        let (_, [name, kind]) = declaration.extract();
        if kind == ";" {
            found.push((open.iter().map(|(outer, _)| *outer).collect(), name));
        } else {
            let brace = declaration.get(2).map_or(start, |brace| brace.start());
            open.push((name, super::rust_text::closing_brace(code, brace)));
        }
    }
    found
}

/// A path relative to a folder, as a path from the root.
pub(super) fn normalised(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_no_declaration_reaches_are_found() {
        let sources = Sources::of(&[
            ("c/src/lib.rs", "mod a;\npub mod b { mod inner; }\n#[path = \"odd/e.rs\"] mod e;"),
            ("c/src/a.rs", "mod below; // mod dead;"),
            ("c/src/a/below.rs", ""),
            ("c/src/b/inner.rs", ""),
            ("c/src/odd/e.rs", ""),
            ("c/src/dead.rs", ""),
            ("c/tests/whole.rs", "mod part;"),
            ("c/tests/part/mod.rs", ""),
        ]);
        let mut findings = Vec::new();
        check(&sources, &mut findings);
        let paths: Vec<_> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["c/src/dead.rs"]);
    }
}
