//! From the keys' own documentation to a printed configuration file.

use super::keys::{Config, NamespaceKeys};
use super::span::Span;

/// A section of the configuration that knows its keys and what they are for.
pub(super) trait Section {
    /// Appends the section's own keys, then its subsections under `path`.
    fn describe(&self, path: &str, page: &mut String);
}

/// A key's value, or a section of its own.
pub(super) trait Entry {
    /// The value as TOML; `None` for a section.
    fn value(&self) -> Option<String>;

    /// Appends the section.
    fn section(&self, path: &str, page: &mut String);
}

macro_rules! values {
    ($($type:ty),*) => {$(
        impl Entry for $type {
            fn value(&self) -> Option<String> {
                Some(toml::Value::try_from(self).map_or_else(|_| String::new(), |v| v.to_string()))
            }

            fn section(&self, _: &str, _: &mut String) {}
        }
    )*};
}

values!(bool, u16, u32, u64, usize, String, Span, Vec<String>);

impl Entry for Vec<NamespaceKeys> {
    fn value(&self) -> Option<String> {
        Some(TABLES.to_owned())
    }

    fn section(&self, _: &str, _: &mut String) {}
}

/// The value of a key that is written as tables of its own, at the end of the file. Were it printed
/// as an empty list, the first table would set it again.
const TABLES: &str = "[[channel.namespaces]]";

pub(super) fn document(config: &Config) -> String {
    let mut page = String::from("# Every key of the configuration with its default.\n");
    config.describe("", &mut page);
    page
}

/// Appends one key with its documentation.
pub(super) fn key(page: &mut String, docs: &[&str], name: &str, value: &str) {
    for line in docs {
        page.push('#');
        page.push_str(line);
        page.push('\n');
    }
    if value == TABLES {
        page.push_str("#\n# ");
        page.push_str(TABLES);
        page.push_str("\n# name = \"chat\"\n\n");
        return;
    }
    // A key that is a word of Rust carries a mark there.
    page.push_str(name.trim_start_matches("r#"));
    page.push_str(" = ");
    page.push_str(value);
    page.push_str("\n\n");
}

/// Begins a section.
pub(super) fn header(page: &mut String, docs: &[&str], path: &str) {
    for line in docs {
        page.push('#');
        page.push_str(line);
        page.push('\n');
    }
    page.push('[');
    page.push_str(path);
    page.push_str("]\n");
}
