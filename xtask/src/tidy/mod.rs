//! `cargo xtask tidy`: the house rules that no other tool checks.

mod capabilities;
mod functions;
mod links;
mod modules;
mod planted_faults;
mod rust_text;
mod sizes;
mod sources;
mod words;

use std::fmt;

use anyhow::{Result, bail};

use sources::Sources;

/// A place that breaks a rule.
#[derive(Debug)]
struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

type Rule = fn(&Sources, &mut Vec<Finding>);

const RULES: [Rule; 7] = [
    sizes::check,
    functions::check,
    words::check,
    modules::check,
    planted_faults::check,
    capabilities::check,
    links::check,
];

/// Every place of the repository that breaks a rule.
fn findings(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        rule(sources, &mut findings);
    }
    findings
}

/// Prints what breaks a rule; fails if anything does.
pub(crate) fn report() -> Result<()> {
    let sources = Sources::load()?;
    let findings = findings(&sources);
    let unproved = capabilities::unproved(&sources);
    if !unproved.is_empty() {
        println!("Capabilities without a test: {}", unproved.join(" "));
    }
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} places break a house rule", findings.len());
    }
    println!("The house rules are kept");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_keeps_the_house_rules() {
        let findings = super::findings(&Sources::load().expect("git lists the sources"));
        let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
