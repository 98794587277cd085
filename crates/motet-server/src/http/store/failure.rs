//! Errors as the store's API answers them.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use motet_protocol::ErrorCode;
use motet_store::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// A request that was not carried out.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: ErrorCode,
    /// Where the same error has another status than its code has by itself.
    status: Option<StatusCode>,
    message: String,
    details: Box<Details>,
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Failure)]
pub(super) struct FailureForm {
    error: ErrorForm,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Error)]
struct ErrorForm {
    /// The stable name of the error.
    code: &'static str,
    /// What happened, for people.
    message: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    details: Details,
}

/// What the error is about, as far as it is about that.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ErrorDetails)]
struct Details {
    /// What to do about it.
    next_step: &'static str,
    /// The document's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    type_name: Option<String>,
    /// The document's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<String>,
    /// The version that the write was for; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expected: Option<u64>,
    /// The version that the document has; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    found: Option<u64>,
    /// The index.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    index: Option<String>,
    /// The place in the filter, patch or request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    at: Option<String>,
    /// The first clock that the log still has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    kept_from: Option<u64>,
    /// The process that holds the right to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pid: Option<u32>,
}

impl Failure {
    pub(super) fn new(code: ErrorCode) -> Self {
        Self::because(code, code.info().message)
    }

    pub(super) fn because(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, status: None, message: message.into(), details: Box::default() }
    }

    /// A request that cannot be understood, and where.
    pub(super) fn invalid(at: impl Into<String>, why: impl Into<String>) -> Self {
        let mut failure = Self::because(ErrorCode::RequestInvalid, why);
        failure.details.at = Some(at.into());
        failure
    }

    pub(super) fn not_found(type_name: &str, key: &str) -> Self {
        Error::NotFound { type_name: type_name.into(), key: key.into() }.into()
    }

    pub(super) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| status(self.code))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            code: error.code(),
            status: None,
            message: error.to_string(),
            details: Box::new(Details::of(error)),
        }
    }
}

impl Details {
    fn of(error: Error) -> Self {
        let none = Self::default();
        match error {
            Error::NotFound { type_name, key } | Error::Conflict { type_name, key } => {
                Self { type_name: Some(type_name), key: Some(key), ..none }
            }
            Error::AlreadyExists { type_name, key, version } => Self {
                type_name: Some(type_name),
                key: Some(key),
                found: Some(version.number()),
                ..none
            },
            Error::VersionMismatch { type_name, key, expected, found } => Self {
                type_name: Some(type_name),
                key: Some(key),
                expected: Some(expected.number()),
                found: Some(found.number()),
                ..none
            },
            Error::UniqueViolation { type_name, index, other } => {
                Self { type_name: Some(type_name), key: Some(other), index: Some(index), ..none }
            }
            Error::IndexExists { type_name, name } | Error::IndexNotFound { type_name, name } => {
                Self { type_name: Some(type_name), index: Some(name), ..none }
            }
            Error::IndexInvalid { name: index, .. } | Error::IndexEntriesTooMany { index, .. } => {
                Self { index: Some(index), ..none }
            }
            Error::PatchInvalid { path: at, .. }
            | Error::PathInvalid { path: at, .. }
            | Error::FilterInvalid { at, .. }
            | Error::RegexUnsupported { at, .. } => Self { at: Some(at), ..none },
            Error::LogTruncated { kept_from, .. } => {
                Self { kept_from: Some(kept_from.number()), ..none }
            }
            Error::SchemaViolation { type_name, key, .. } => {
                Self { type_name: Some(type_name), key: Some(key), ..none }
            }
            Error::ReferenceMissing(broken) | Error::ReferenceRestricted(broken) => Self {
                type_name: Some(broken.type_name),
                key: Some(broken.key),
                at: Some(broken.path),
                ..none
            },
            Error::WriterStalled { pid, .. } => Self { pid: Some(pid), ..none },
            _ => none,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let info = self.code.info();
        let status = self.status();
        let details = Details { next_step: info.next_step, ..*self.details };
        let error = ErrorForm {
            code: info.name,
            message: self.message,
            retryable: info.retryable,
            details,
        };
        let mut response = (status, Json(FailureForm { error })).into_response();
        let headers = response.headers_mut();
        if info.retryable && (status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self.code);
        response
    }
}

/// The HTTP status of a code.
pub(super) const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::KeyInvalid
        | ErrorCode::NameInvalid
        | ErrorCode::PatchInvalid
        | ErrorCode::IndexInvalid
        | ErrorCode::IndexEntriesTooMany
        | ErrorCode::FilterInvalid
        | ErrorCode::RegexUnsupported
        | ErrorCode::PathInvalid
        | ErrorCode::CursorInvalid
        | ErrorCode::ResultTooLarge
        | ErrorCode::ValueTooDeep
        | ErrorCode::SchemaInvalid
        | ErrorCode::RequestInvalid => StatusCode::BAD_REQUEST,
        ErrorCode::TokenInvalid => StatusCode::UNAUTHORIZED,
        ErrorCode::OriginForbidden | ErrorCode::PermissionDenied | ErrorCode::EnvironmentsFull => {
            StatusCode::FORBIDDEN
        }
        ErrorCode::NotFound
        | ErrorCode::IndexNotFound
        | ErrorCode::EnvironmentNotFound
        | ErrorCode::RouteNotFound => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::AlreadyExists
        | ErrorCode::VersionMismatch
        | ErrorCode::TransactionConflict
        | ErrorCode::IndexExists
        | ErrorCode::UniqueViolation
        | ErrorCode::ReferenceMissing
        | ErrorCode::ReferenceRestricted
        | ErrorCode::ReferencesBuilding
        | ErrorCode::IdempotencyKeyReused
        | ErrorCode::LogPositionAhead
        | ErrorCode::CopyUnfinished
        | ErrorCode::BackupUnavailable => StatusCode::CONFLICT,
        ErrorCode::LogTruncated => StatusCode::GONE,
        ErrorCode::ValueTooLarge | ErrorCode::TransactionTooLarge | ErrorCode::PayloadTooLarge => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        ErrorCode::MediaTypeUnsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::SchemaViolation => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::WriterStalled
        | ErrorCode::WriterBusy
        | ErrorCode::WriteQueueFull
        | ErrorCode::ReadViewExpired
        | ErrorCode::ReadersFull
        | ErrorCode::ResourceBusy
        | ErrorCode::RequestTimeout
        | ErrorCode::StoreClosed => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::OutcomeUnknown => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::StoreFull | ErrorCode::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// When to try again what is retryable.
const RETRY_AFTER_SECONDS: &str = "1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_may_try_again_is_told_by_a_status_that_says_so() {
        let client_side = [ErrorCode::TransactionConflict, ErrorCode::ReferencesBuilding];
        let raised = ErrorCode::ALL.iter().filter(|code| code.info().namespace == "store");
        for code in raised.filter(|code| code.retryable() && !client_side.contains(code)) {
            let status = status(*code).as_u16();
            assert!(status == 503 || status == 507, "{code:?} has {status}");
        }
    }
}
