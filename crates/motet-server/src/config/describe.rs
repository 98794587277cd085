//! From the keys' own documentation to a printed configuration file.

use super::keys::{Config, NamespaceKeys, StoreTokenKeys};
use super::span::Span;
use super::token_environments::TokenEnvironments;

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

values!(bool, u16, u32, u64, usize, String, Span, TokenEnvironments, Vec<String>);

/// Lists that are written as tables of their own, at the end of the file. Were one printed as an
/// empty list, its first table would set it again.
macro_rules! tables {
    ($($type:ty, $heading:literal;)*) => {
        $(impl Entry for Vec<$type> {
            fn value(&self) -> Option<String> {
                Some($heading.to_owned())
            }

            fn section(&self, _: &str, _: &mut String) {}
        })*

        const TABLES: &[&str] = &[$($heading),*];
    };
}

tables! {
    NamespaceKeys, "[[channel.namespaces]]\n# name = \"chat\"";
    StoreTokenKeys, "[[store.tokens]]\n# name = \"backend\"";
}

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
    if TABLES.contains(&value) {
        page.push_str("#\n# ");
        page.push_str(value);
        page.push_str("\n\n");
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
