//! Functions stay short: fewer than two in a hundred are longer than the limit.

use std::sync::LazyLock;

use regex::Regex;

use super::Finding;
use super::rust_text::{closing_brace, code_only, line_of};
use super::sources::Sources;

const LINES_MAX: usize = 70;
/// Longer than this, a function is refused however few long ones there are.
const LINES_MAX_EVER: usize = 150;
const LONG_SHARE_MAX: f64 = 0.02;

static FUNCTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bfn\s+(\w+)").expect("the pattern is valid"));

struct Function {
    path: String,
    line: usize,
    name: String,
    lines: usize,
}

pub(super) fn check(sources: &Sources, findings: &mut Vec<Finding>) {
    let functions: Vec<_> =
        sources.rust().flat_map(|source| functions_of(&source.path, &source.text)).collect();
    let long: Vec<_> = functions.iter().filter(|function| function.lines > LINES_MAX).collect();
    let too_many = long.len() as f64 > functions.len() as f64 * LONG_SHARE_MAX;
    for Function { path, line, name, lines } in long {
        if too_many || *lines > LINES_MAX_EVER {
            let text = format!("fn {name} has {lines} lines: split it (limit {LINES_MAX})");
            findings.push(Finding::new(path, *line, text));
        }
    }
}

fn functions_of(path: &str, text: &str) -> Vec<Function> {
    let code = code_only(text);
    let mut functions = Vec::new();
    for found in FUNCTION.captures_iter(&code) {
        let (whole, [name]) = found.extract();
        let start = whole.as_ptr() as usize - code.as_ptr() as usize;
        let Some(open) = body(&code, start + whole.len()) else { continue };
        let line = line_of(&code, start);
        let lines = 1 + line_of(&code, closing_brace(&code, open)) - line;
        functions.push(Function { path: path.to_owned(), line, name: name.to_owned(), lines });
    }
    functions
}

/// Where the body of a function opens; a declaration without a body has none.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut nesting = 0_i32;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => nesting += 1,
            b')' | b']' => nesting -= 1,
            b'{' if nesting == 0 => return Some(offset),
            b';' if nesting == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_the_signature_to_the_closing_brace() {
        let text =
            "trait T { fn none(&self, a: [u8; 2]); }\nfn two(\n  a: u8,\n) -> u8 {\n  a\n}\n";
        let functions = functions_of("a.rs", text);
        assert_eq!(functions.len(), 1);
        assert_eq!((functions[0].name.as_str(), functions[0].lines), ("two", 5));
    }

    #[test]
    fn one_long_function_among_few_is_found() {
        let text = format!("fn long() {{\n{}}}\n", "x;\n".repeat(LINES_MAX));
        let mut findings = Vec::new();
        check(&Sources::of(&[("a.rs", &text)]), &mut findings);
        assert_eq!(findings.len(), 1, "{findings:?}");
    }
}
