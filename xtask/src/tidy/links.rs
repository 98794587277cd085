//! Links of the documentation lead to files that are there.

use std::sync::LazyLock;

use regex::Regex;

use super::Finding;
use super::sources::{Source, Sources};
use crate::workspace::root;

static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s]+)\)").expect("the pattern is valid"));

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    for source in sources.all().filter(|source| source.extension() == "md") {
        for (index, line) in source.text.lines().enumerate() {
            for link in links(line).filter(|link| !leads_somewhere(sources, source, link)) {
                let text = format!("a link to nothing: {link}");
                findings.push(Finding::new(&source.path, index + 1, text));
            }
        }
    }
}

/// The links of a line that stay inside the repository, without their anchors.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = LINK.captures_iter(line).map(|found| found.extract::<1>().1[0]);
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|path| !path.is_empty())
}

fn leads_somewhere(sources: &Sources, source: &Source, link: &str) -> bool {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = super::modules::normalised(folder, link.trim_end_matches('/'));
    sources.find(&path).is_some() || root().join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_that_are_missing_are_found() {
        let text =
            "[a](b.md#part) [c](../top.md) [d](https://example.org/x) [e](#here) [f](gone.md)\n";
        let sources = Sources::of(&[("docs/a.md", text), ("docs/b.md", ""), ("top.md", "")]);
        let mut findings = Vec::new();
        check(&sources, &mut findings);
        let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["docs/a.md:1: a link to nothing: gone.md"]);
    }
}
