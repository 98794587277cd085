//! How deep JSON payloads may nest.

/// How deep the arrays and objects of a JSON payload may nest for a bus to hand it over.
///
/// Parsers go deeper than what copies values from one context of a browser to another: in Chromium
/// copying fails at about 2,000 levels, and takes everything along that was posted with it.
pub const JSON_DEPTH_MAX: usize = 512;

/// Whether JSON nests deeper than this. What is no JSON has some depth too.
///
/// ```
/// use motet_protocol::nests_deeper;
///
/// assert!(!nests_deeper(r#"{"a": ["]"]}"#, 2));
/// assert!(nests_deeper(r#"{"a": ["[", []]}"#, 2));
/// ```
#[must_use]
pub fn nests_deeper(json: &str, levels: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > levels {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_where_they_open_something() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!nests_deeper(&nested(512), 512));
        assert!(nests_deeper(&nested(513), 512));
        assert!(!nests_deeper(r#"["\"[[[", "\\", "{{{"]"#, 1));
        assert!(nests_deeper(r#"["\\", {}]"#, 1));
        assert!(!nests_deeper("[],[],{},[]", 1));
    }
}
