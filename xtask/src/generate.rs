//! `cargo xtask generate`: what is made from the error table.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use motet_protocol::ErrorCode;

use crate::workspace::root;

const SOURCE: &str = "crates/motet-protocol/src/error.rs";
/// The namespace of errors that the npm package never raises.
const STORE: &str = "store";

/// The generated files: path from the root, and content.
pub(crate) fn files() -> [(&'static str, String); 2] {
    [("docs/errors.md", markdown()), ("packages/motet/src/errors.ts", typescript())]
}

/// Writes the files that are not as they should be.
pub(crate) fn write() -> Result<()> {
    for (name, content) in files() {
        if is_current(name, &content) {
            println!("Unchanged: {name}");
            continue;
        }
        let path = root().join(name);
        let folder = path.parent().context("a generated file lies in a folder")?;
        fs::create_dir_all(folder)?;
        fs::write(&path, content).with_context(|| format!("cannot write {name}"))?;
        println!("Written: {name}");
    }
    Ok(())
}

/// The generated files whose content is not what the table says.
pub(crate) fn stale() -> Vec<&'static str> {
    let stale = files().into_iter().filter(|(name, content)| !is_current(name, content));
    stale.map(|(name, _)| name).collect()
}

fn is_current(name: &str, content: &str) -> bool {
    let path: PathBuf = root().join(name);
    fs::read_to_string(path).is_ok_and(|found| found == content)
}

fn markdown() -> String {
    let mut text = format!(
        "# Errors\n\n\
         Every error that reaches an application or crosses a wire has a stable code. The name is\n\
         the same in Rust, in TypeScript, in log lines and here; the number travels in\n\
         frames. *Retryable* means that the same call may succeed later unchanged. The npm\n\
         package leaves the codes of `{STORE}` out of its table: none of its calls meets them.\n\n\
         This page is made from `{SOURCE}` by `cargo xtask generate`.\n"
    );
    let mut namespaces: Vec<_> = ErrorCode::ALL.iter().map(|code| code.info().namespace).collect();
    namespaces.dedup();
    let mut seen = Vec::new();
    for namespace in namespaces {
        if seen.contains(&namespace) {
            continue;
        }
        seen.push(namespace);
        let heading = format!("\n## {namespace}\n\n");
        text.push_str(&heading);
        text.push_str("| code | number | retryable | severity | what happened | what to do |\n");
        text.push_str("| --- | ---: | --- | --- | --- | --- |\n");
        for code in ErrorCode::ALL.iter().filter(|code| code.info().namespace == namespace) {
            let info = code.info();
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} | {} | {} |",
                info.name,
                code.number(),
                if info.retryable { "yes" } else { "no" },
                info.severity.name(),
                cell(info.message),
                cell(info.next_step),
            );
        }
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The package's table: a page carries no texts of errors that only a server's client meets.
fn typescript() -> String {
    let mut text =
        format!("// Made from {SOURCE} by `cargo xtask generate`; edit that file instead.\n\n");
    text.push_str(
        "/** How loudly an error should be reported. */\n\
         export type Severity = \"info\" | \"warning\" | \"error\";\n\n\
         /** One row of the error table. */\n\
         export interface ErrorInfo {\n\
         \x20 /** What travels between contexts. */\n\
         \x20 readonly number: number;\n\
         \x20 /** The part of Motet that raises it. */\n\
         \x20 readonly namespace: string;\n\
         \x20 /** Whether the same call may succeed later unchanged. */\n\
         \x20 readonly retryable: boolean;\n\
         \x20 /** How loudly to report it. */\n\
         \x20 readonly severity: Severity;\n\
         \x20 /** What happened, one sentence. */\n\
         \x20 readonly message: string;\n\
         \x20 /** What to do about it, one sentence. */\n\
         \x20 readonly nextStep: string;\n\
         }\n\n\
         /** Every error code of the package with its row. */\n\
         export const ERRORS = {\n",
    );
    for code in package_codes() {
        let info = code.info();
        let _ = write!(
            text,
            "  {}: {{\n    number: {},\n    namespace: {:?},\n    retryable: {},\n    \
             severity: {:?},\n    message: {},\n    nextStep: {},\n  }},\n",
            info.name,
            code.number(),
            info.namespace,
            info.retryable,
            info.severity.name(),
            string(info.message),
            string(info.next_step),
        );
    }
    text.push_str(
        "} as const satisfies Readonly<Record<string, ErrorInfo>>;\n\n\
         /** The stable name of an error. */\n\
         export type ErrorCode = keyof typeof ERRORS;\n\n\
         const NAMES: ReadonlyMap<number, ErrorCode> = new Map(\n\
         \x20 (Object.keys(ERRORS) as ErrorCode[]).map((name) => [ERRORS[name].number, name]),\n\
         );\n\n\
         /** The code with this number, if this build knows it. */\n\
         export function errorCode(number: number): ErrorCode | undefined {\n\
         \x20 return NAMES.get(number);\n\
         }\n",
    );
    text
}

fn package_codes() -> impl Iterator<Item = ErrorCode> {
    ErrorCode::ALL.iter().copied().filter(|code| code.info().namespace != STORE)
}

fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_page_and_every_code_of_the_package_in_its_table() {
        let (page, table) = (markdown(), typescript());
        for code in ErrorCode::ALL {
            assert!(page.contains(code.name()), "the page lacks {}", code.name());
        }
        for code in package_codes() {
            assert!(table.contains(code.name()), "the table lacks {}", code.name());
        }
    }

    #[test]
    fn generated_files_are_not_stale() {
        assert_eq!(stale(), Vec::<&str>::new(), "run `cargo xtask generate`");
    }
}
