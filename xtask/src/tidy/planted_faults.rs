//! Planted faults stay out of what is released: no default feature and no dependency turns
//! them on, but for the simulator's own.

use toml::{Table, Value};

use super::Finding;
use super::sources::{Source, Sources};

const FEATURE: &str = "planted-faults";
/// The one crate that exists to plant them.
const SIMULATOR: &str = "motet-sim";

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    for source in sources.all().filter(|source| source.name() == "Cargo.toml") {
        match source.text.parse::<Table>() {
            Ok(manifest) => check_manifest(source, &manifest, findings),
            Err(error) => findings.push(Finding::new(&source.path, 1, error.message())),
        }
    }
}

fn check_manifest(source: &Source, manifest: &Table, findings: &mut Vec<Finding>) {
    let mut find = |text: &str| findings.push(Finding::new(&source.path, 1, text));
    let defaults = manifest.get("features").and_then(|features| features.get("default"));
    if defaults.is_some_and(names_feature) {
        find("a default feature turns planted faults on");
    }
    let package = manifest.get("package").and_then(|package| package.get("name"));
    if package.and_then(Value::as_str) == Some(SIMULATOR) {
        return;
    }
    let workspace = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    for dependencies in manifest.get("dependencies").into_iter().chain(workspace) {
        let features = dependencies.as_table().into_iter().flatten();
        let mut features = features.filter_map(|(_, dependency)| dependency.get("features"));
        if features.any(names_feature) {
            find("a dependency turns planted faults on; only the simulator may");
        }
    }
}

fn names_feature(features: &Value) -> bool {
    let mut names = features.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.any(|name| name == FEATURE || name.ends_with("/planted-faults"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(manifest: &str) -> usize {
        let mut findings = Vec::new();
        check(&Sources::of(&[("c/Cargo.toml", manifest)]), &mut findings);
        findings.len()
    }

    #[test]
    fn planted_faults_may_be_on_in_the_simulator_only() {
        let dependency = "[dependencies]\na = { path = \"a\", features = [\"planted-faults\"] }\n";
        assert_eq!(found(&format!("[package]\nname = \"motet-server\"\n{dependency}")), 1);
        assert_eq!(found(&format!("[package]\nname = \"motet-sim\"\n{dependency}")), 0);
    }

    #[test]
    fn no_default_feature_turns_planted_faults_on() {
        assert_eq!(found("[features]\ndefault = [\"a/planted-faults\"]\n"), 1);
        assert_eq!(found("[features]\ndefault = []\nplanted-faults = []\n"), 0);
    }
}
