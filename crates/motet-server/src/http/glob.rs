//! Patterns in which `*` stands for any text.

/// Whether `text` matches `pattern`, in which `*` stands for any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text_and_the_rest_for_itself() {
        for (pattern, text) in
            [("*", ""), ("a*", "abc"), ("*c", "abc"), ("a*c*e", "abcde"), ("a", "a")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*", "ba"), ("a*b*a", "aba_"), ("*aa", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
