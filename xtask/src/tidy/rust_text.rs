//! Rust source with comments and literals blanked out, so that what is left is code.

/// The text with every comment and the inside of every literal replaced by spaces.
///
/// Line breaks stay where they are, so that positions and line numbers still hold.
pub(super) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(bytes, at) {
            length
        } else if rest[0] == b'"' {
            quoted(rest, b'"')
        } else if rest[0] == b'\'' && is_character(rest) {
            quoted(rest, b'\'')
        } else {
            at += 1;
            continue;
        };
        blank(&mut code[at..at + length]);
        at += length;
    }
    String::from_utf8(code).expect("only whole characters are replaced, by spaces")
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a raw string that starts here, if one does.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let continues_a_name =
        at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    if continues_a_name {
        return None;
    }
    let after = &rest[prefix.len()..];
    let hashes = after.iter().take_while(|byte| **byte == b'#').count();
    if after.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let open = prefix.len() + hashes + 1;
    let inside = rest[open..].windows(end.len()).position(|window| window == end);
    Some(inside.map_or(rest.len(), |length| open + length + end.len()))
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether a quote starts a character literal; otherwise it starts a lifetime.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(byte) if byte.is_ascii() => rest.get(2) == Some(&b'\''),
        Some(_) => true,
        None => false,
    }
}

/// The position just after the bracket that closes the one at `open`.
pub(super) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return offset + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The number of the line that a position lies in, from 1.
pub(super) fn line_of(text: &str, position: usize) -> usize {
    1 + text.as_bytes()[..position].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let code =
            code_only("a /* { /* \n */ } */ \"}\\\"{\" r#\"{\"{\"# b'{' '\\'' 'x: &'a c // }\nd");
        assert!(!code.contains(['{', '}']), "{code}");
        assert!(code.starts_with("a ") && code.ends_with("\nd") && code.contains("&'a c"));
        assert_eq!(code.lines().count(), 3);
    }

    #[test]
    fn a_name_that_ends_in_r_starts_no_raw_string() {
        assert_eq!(code_only("for\"x\"y"), "for   y");
    }

    #[test]
    fn a_closing_brace_is_found_past_inner_ones() {
        assert_eq!(closing_brace("f { a { b } } g", 2), 13);
    }
}
