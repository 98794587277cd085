//! Conditions of a write that stand in the head of its request (RFC 9110, section 13).

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use motet_protocol::ErrorCode;
use motet_store::Clock;

use super::failure::Failure;

/// On what a write depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// On nothing.
    None,
    /// That there is no document: `If-None-Match: *`.
    Absent,
    /// That there is one: `If-Match: *`.
    Present,
    /// That the document has this version: `If-Match: "<version>"`.
    Version(Clock),
}

impl<S: Send + Sync> FromRequestParts<S> for Precondition {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Self::of(&parts.headers)
    }
}

impl Precondition {
    fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        match (one(headers, &header::IF_MATCH)?, one(headers, &header::IF_NONE_MATCH)?) {
            (None, None) => Ok(Self::None),
            (None, Some("*")) => Ok(Self::Absent),
            (Some("*"), None) => Ok(Self::Present),
            (Some(tag), None) => version(tag).map(Self::Version).ok_or_else(|| {
                Failure::invalid("If-Match", "expected one version in quotes, such as \"12\"")
            }),
            (None, Some(_)) => Err(Failure::invalid("If-None-Match", "expected *")),
            (Some(_), Some(_)) => {
                Err(Failure::invalid("If-None-Match", "expected no If-Match beside it"))
            }
        }
    }

    /// The failure of a write that depended on this: a condition of the head has a status of its
    /// own.
    pub(super) fn explain(self, failure: Failure) -> Failure {
        match failure.code {
            ErrorCode::VersionMismatch => failure.with_status(StatusCode::PRECONDITION_FAILED),
            _ => failure,
        }
    }
}

/// The value of a header that is there once at most.
pub(super) fn one<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let wrong = || Failure::invalid(name.as_str(), "expected one value");
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(|text| Some(text.trim())).map_err(|_| wrong()),
        (Some(_), Some(_)) => Err(wrong()),
    }
}

fn version(tag: &str) -> Option<Clock> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain).map(Clock::new)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(pairs: &[(HeaderName, &'static str)]) -> Option<Precondition> {
        let pairs =
            pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        Precondition::of(&pairs.collect()).ok()
    }

    #[test]
    fn conditions_are_a_version_or_a_star() {
        use header::{IF_MATCH, IF_NONE_MATCH};
        assert_eq!(of(&[]), Some(Precondition::None));
        assert_eq!(of(&[(IF_NONE_MATCH, "*")]), Some(Precondition::Absent));
        assert_eq!(of(&[(IF_MATCH, "*")]), Some(Precondition::Present));
        let version = Precondition::Version(Clock::new(12));
        assert_eq!(of(&[(IF_MATCH, "\"12\"")]), Some(version));
        for tag in ["12", "W/\"12\"", "\"12\", \"13\"", "\"+1\"", "\"\"", ""] {
            assert_eq!(of(&[(IF_MATCH, tag)]), None, "{tag}");
        }
        assert_eq!(of(&[(IF_NONE_MATCH, "\"1\"")]), None);
        assert_eq!(of(&[(IF_MATCH, "\"1\""), (IF_NONE_MATCH, "*")]), None);
    }
}
