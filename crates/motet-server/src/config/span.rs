//! A length of time in a configuration: text such as `25s`, `5m`, `720h`.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time, written as `25s`, `500ms`, `5m` or `720h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// A number of seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map(Self).map_err(|_| {
            de::Error::invalid_value(
                de::Unexpected::Str(&text),
                &"a time such as \"25s\", \"5m\" or \"720h\"",
            )
        })
    }
}
