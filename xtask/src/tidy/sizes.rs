//! Files stay small enough to be read in one sitting.

use super::Finding;
use super::sources::{Source, Sources};

const LINES_MAX: usize = 750;
const LINES_MAX_WITH_REASON: usize = 1_500;
/// Files that may be longer, each with the reason.
const LONG_FILES: [(&str, &str); 0] = [];

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    for source in sources.all().filter(|source| is_code(source) && !source.is_generated()) {
        let lines = source.text.lines().count();
        let has_reason = LONG_FILES.iter().any(|(path, _)| *path == source.path);
        let limit = if has_reason { LINES_MAX_WITH_REASON } else { LINES_MAX };
        if lines > limit {
            let text = format!("{lines} lines: split the file by concept (limit {limit})");
            findings.push(Finding::new(&source.path, 1, text));
        }
    }
}

fn is_code(source: &Source) -> bool {
    matches!(source.extension(), "rs" | "ts" | "tsx" | "mts" | "mjs" | "js")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_past_the_limit_is_found_and_a_generated_one_is_not() {
        let long = "x\n".repeat(LINES_MAX + 1);
        let generated = format!("// Made from x by `cargo xtask generate`.\n{long}");
        let sources = Sources::of(&[("a.rs", &long), ("b.ts", &generated), ("c.md", &long)]);
        let mut findings = Vec::new();
        check(&sources, &mut findings);
        assert_eq!(findings.len(), 1, "{findings:?}");
    }
}
