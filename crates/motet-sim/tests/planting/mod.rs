//! The planted faults that sources have, and those that a simulation lists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Fails unless the list names exactly the planted faults of these crates; gives how many.
pub(crate) fn check_list(crates: &[&str], all: &[&str]) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
    let mut files = Vec::new();
    for name in crates {
        sources(&folder.join(name).join("src"), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a source file");
        for part in text.split("planted(\"").skip(1) {
            names.insert(part.split('"').next().expect("a quoted name").to_owned());
        }
    }
    let listed: BTreeSet<String> = all.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, names);
    listed.len()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
