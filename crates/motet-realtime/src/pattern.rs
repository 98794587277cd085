//! Wildcard patterns of the Motet extension: `prefix.*` and `*`.
//!
//! `prefix.*` matches every channel that starts with `prefix.`, not `prefix` itself. A pattern
//! stays within one namespace: permissions belong to namespaces, and a right in one must not open
//! another. Channels that need a token (`$`) or belong to certain users (`#`) match no pattern.

/// Separates a channel's namespace from its name.
const NAMESPACE_BOUNDARY: char = ':';

/// Whether this names a pattern rather than a channel.
pub(crate) fn is_pattern(channel: &str) -> bool {
    channel == "*" || (channel.len() > 2 && channel.ends_with(".*"))
}

/// The patterns that match a concrete channel, the most specific first.
pub(crate) fn matching(channel: &str) -> impl Iterator<Item = String> + '_ {
    let open = !channel.starts_with('$') && !channel.contains('#');
    let name_start = channel.find(NAMESPACE_BOUNDARY).map_or(0, |at| at + 1);
    let prefixes = channel
        .rmatch_indices('.')
        .map(|(at, _)| at)
        .filter(move |at| open && *at > name_start)
        .map(|at| format!("{}*", &channel[..=at]));
    let all = (open && name_start == 0).then(|| "*".to_owned());
    prefixes.chain(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(channel: &str) -> Vec<String> {
        matching(channel).collect()
    }

    #[test]
    fn a_channel_is_matched_by_each_of_its_prefixes_and_the_star() {
        assert_eq!(patterns("chat.room.1"), ["chat.room.*", "chat.*", "*"]);
        assert_eq!(patterns("chat"), ["*"]);
    }

    #[test]
    fn a_pattern_stays_within_its_namespace() {
        assert_eq!(patterns("game:chess.1"), ["game:chess.*"]);
        assert!(patterns("a.b:c").is_empty());
    }

    #[test]
    fn private_and_user_limited_channels_match_no_pattern() {
        assert!(patterns("$chat.1").is_empty());
        assert!(patterns("chat.dialog#1,2").is_empty());
    }

    #[test]
    fn only_a_trailing_star_after_a_dot_makes_a_pattern() {
        for pattern in ["*", "a.*", "ns:a.*"] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for channel in ["", "a", ".*", "a*", "a.*.b"] {
            assert!(!is_pattern(channel), "{channel}");
        }
    }
}
