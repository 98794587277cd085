//! The one table of error codes. `docs/errors.md` and the TypeScript table are generated from it.

use core::fmt;

use minicbor::{Decode, Encode};

/// How loudly an error should be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Expected in normal operation; the caller handles it.
    Info,
    /// Something was degraded or refused.
    Warning,
    /// Work was lost or cannot go on without a person.
    Error,
}

impl Severity {
    /// Lower-case name, as in the generated tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One row of the error table.
#[derive(Clone, Copy, Debug)]
pub struct ErrorInfo {
    /// Stable name, the same in Rust, TypeScript, on the wire and in the docs.
    pub name: &'static str,
    /// The part of Motet that raises it.
    pub namespace: &'static str,
    /// Whether the same call may succeed later unchanged.
    pub retryable: bool,
    /// How loudly to report it.
    pub severity: Severity,
    /// What happened, one sentence.
    pub message: &'static str,
    /// What to do about it, one sentence.
    pub next_step: &'static str,
}

macro_rules! error_codes {
    ($($number:literal $variant:ident $name:literal $namespace:literal $retry:ident $severity:ident
       $message:literal $next:literal;)*) => {
        /// A stable error code. The number is what travels between contexts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum ErrorCode {
            $(#[doc = $message] $variant = $number,)*
        }

        impl ErrorCode {
            /// Every code, in table order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code with this number.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// Whether the same call may succeed later unchanged. Apart from the row, so that a
            /// module that asks nothing else carries no texts.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => error_codes!(@retry $retry),)* }
            }

            /// The code's row.
            #[must_use]
            pub const fn info(self) -> &'static ErrorInfo {
                match self {
                    $(Self::$variant => &ErrorInfo {
                        name: $name,
                        namespace: $namespace,
                        retryable: error_codes!(@retry $retry),
                        severity: Severity::$severity,
                        message: $message,
                        next_step: $next,
                    },)*
                }
            }
        }
    };
    (@retry retry) => { true };
    (@retry final) => { false };
}

error_codes! {
    1 RequestTimeout "REQUEST_TIMEOUT" "protocol" retry Warning
        "No answer came within the time allowed." "Try again, or allow more time for this call.";
    2 DeadlineExceeded "DEADLINE_EXCEEDED" "protocol" final Warning
        "The deadline passed before the work was started; it was not done." "Send it again with a later deadline if it is still wanted.";
    3 Aborted "ABORTED" "protocol" final Info
        "The caller aborted the call." "Nothing to do; the caller asked for it.";
    4 OutcomeUnknown "OUTCOME_UNKNOWN" "protocol" final Warning
        "The other side went away after the message was written; it may or may not have been done." "Check the state before repeating, or use an idempotency key so that repeating is safe.";
    5 PeerGone "PEER_GONE" "protocol" retry Warning
        "The addressed context is gone and has not received the message." "Send it again; another context will take it.";
    6 Backpressure "BACKPRESSURE" "protocol" retry Warning
        "Too many calls are waiting; this one was not sent." "Wait for pending calls to settle, or raise the limit.";
    7 ResourceBusy "RESOURCE_BUSY" "protocol" retry Warning
        "The receiver's queue is full." "Try again after the delay that the error names.";
    8 RateLimited "RATE_LIMITED" "protocol" retry Warning
        "More messages or requests were sent than the limit allows." "Slow down; the limit is in the server's configuration.";
    9 PayloadTooLarge "PAYLOAD_TOO_LARGE" "protocol" final Warning
        "The payload is larger than the limit." "Send less, or raise the limit on both sides.";
    10 Uncloneable "UNCLONEABLE" "protocol" final Error
        "The payload cannot be copied between contexts." "Send plain data that nests at most 512 levels: no functions, DOM nodes or class instances with methods.";
    11 IdempotencyKeyReused "IDEMPOTENCY_KEY_REUSED" "protocol" final Error
        "The idempotency key was used before with another payload." "Use a new key for a new operation.";
    12 UnsupportedSchema "UNSUPPORTED_SCHEMA" "protocol" final Error
        "The receiver does not know this version of the message." "Update the older side; reload tabs that run an old build.";
    13 ReplyAfterDeadline "REPLY_AFTER_DEADLINE" "protocol" final Warning
        "The work completed, but its reply came after the deadline and was not applied." "Read the state afresh.";
    14 TransportUnavailable "TRANSPORT_UNAVAILABLE" "protocol" retry Warning
        "There is no connection to send over." "Wait for the connection; the status shows when it is back.";
    15 HandlerFailed "HANDLER_FAILED" "protocol" final Error
        "The receiver's handler failed." "See the cause; repeating the call unchanged fails again.";
    16 BadFrame "BAD_FRAME" "protocol" final Warning
        "A frame was malformed, oversized or not allowed for its sender." "Nothing to do; it was counted and dropped. If it repeats, look for foreign code using the same channel names.";
    17 Unrecognised "UNRECOGNISED" "protocol" final Error
        "The other side reported an error that this build does not know." "Reload the older of the two; the newer one's console has the details.";

    40 TopicInvalid "TOPIC_INVALID" "bus" final Error
        "The topic name is empty, longer than 255 bytes or contains characters that are not allowed." "Use 1 to 255 bytes of printable ASCII without a wildcard.";
    41 Closed "CLOSED" "bus" final Info
        "The bus is closed." "Connect again for a new bus.";
    42 Suspended "SUSPENDED" "bus" retry Info
        "The page is suspended in the back/forward cache or frozen." "The bus resumes by itself when the page is shown again.";
    43 ClusterConfigMismatch "CLUSTER_CONFIG_MISMATCH" "bus" final Error
        "This page already uses the cluster with other options." "Use the same options everywhere, or another cluster name.";
    44 HostUnavailable "HOST_UNAVAILABLE" "bus" final Warning
        "The wanted host for the node cannot be used here; the next one of the order is used." "Serve the worker script from the same origin and allow it in worker-src.";
    45 LocksUnavailable "LOCKS_UNAVAILABLE" "bus" final Error
        "The Web Locks API is missing or refused, so tabs cannot coordinate; the bus does not start." "Serve the page over HTTPS or from localhost, and allow site data for its origin.";
    46 ChannelUnavailable "CHANNEL_UNAVAILABLE" "bus" final Error
        "BroadcastChannel is missing, so tabs cannot reach each other; the bus does not start." "Use a browser that has BroadcastChannel.";
    47 NodeUnavailable "NODE_UNAVAILABLE" "bus" retry Error
        "The node of this page stopped, or could not be started." "It is started again by itself, at most five times a minute; see the console for the first error.";
    48 SubscribeRejected "SUBSCRIBE_REJECTED" "bus" final Error
        "The server refused the subscription." "See the server code: check the channel's namespace, permission or token.";
    49 PublishRejected "PUBLISH_REJECTED" "bus" final Error
        "The server refused the publication." "See the server code: check the channel's permission and the payload.";
    50 ConnectRejected "CONNECT_REJECTED" "bus" final Error
        "The server refused the connection for good." "See the server code; supply a new token, then call retry().";
    51 TokenUnavailable "TOKEN_UNAVAILABLE" "bus" retry Error
        "The application's token function failed or did not answer in time." "Make token() resolve with a token, or reject once the user is signed out.";
    52 QueueOverflow "QUEUE_OVERFLOW" "bus" final Warning
        "The publish queue was full; its oldest entry was rejected." "Publish less while offline, or raise publishQueue.";
    53 WasmBlocked "WASM_BLOCKED" "bus" final Error
        "The page's security policy does not allow WebAssembly." "Allow 'wasm-unsafe-eval' in script-src.";
    54 EnvironmentUnsupported "ENVIRONMENT_UNSUPPORTED" "bus" final Error
        "This is no browser page, so there is nothing to connect to." "Call connect() in the browser only; importing is safe anywhere.";
    55 DispatchFailed "DISPATCH_FAILED" "bus" final Error
        "A message handler threw; other handlers were served." "Fix the handler; the error's cause is what it threw.";
    56 TransportUnsupported "TRANSPORT_UNSUPPORTED" "bus" final Error
        "The transport's kind or URL is not known." "Use kind \"centrifuge\" with a ws: or wss: URL.";
    57 BuildSkew "BUILD_SKEW" "bus" final Warning
        "Tabs of this cluster run different builds; the features that all of them know are used." "Reload older tabs after a deployment.";
    58 ConfigInvalid "CONFIG_INVALID" "bus" final Error
        "An option is not known, or has a value outside its range." "The error names the option and its range.";
    59 HistoryUnavailable "HISTORY_UNAVAILABLE" "bus" final Warning
        "The server gave no history of the topic." "See the server code: the namespace keeps none, or it may not be read, or the position is of an earlier life of the stream.";
    60 WildcardUnsupported "WILDCARD_UNSUPPORTED" "bus" final Error
        "The server does not offer patterns." "Subscribe to concrete topics, or use a server with the pattern extension.";
    61 StorageUnavailable "STORAGE_UNAVAILABLE" "bus" final Warning
        "The page's session storage cannot be used; after a reload it counts as a new tab." "Allow site data for this origin if tabs are to keep their id; nothing else depends on it.";
    62 WasmUnavailable "WASM_UNAVAILABLE" "bus" retry Error
        "The WebAssembly file could not be loaded." "Serve it at the address that the error names, or give its address as wasmUrl.";
    63 WasmInvalid "WASM_INVALID" "bus" final Error
        "What was loaded as the WebAssembly file is none." "Serve the file itself, and no page in its place, at the address that the error names, or give its address as wasmUrl.";

    80 ServerConfigInvalid "SERVER_CONFIG_INVALID" "server" final Error
        "The configuration cannot be used." "Correct what the message names: a file, a key of the configuration or an option.";
    81 ServerConfigUnknownKey "SERVER_CONFIG_UNKNOWN_KEY" "server" final Error
        "The configuration has a key that the server does not know." "Correct the spelling or remove the key; `motet config` prints all keys.";
    82 AddressInUse "ADDRESS_IN_USE" "server" final Error
        "Another process listens on this address." "Stop it, or choose another address with --listen.";
    83 AddressRefused "ADDRESS_REFUSED" "server" final Error
        "The server cannot listen on this address." "Give an IP address of this machine and a port that this user may use, such as one above 1023.";
    84 TlsInvalid "TLS_INVALID" "server" final Error
        "The certificate or key cannot be read or do not belong together." "Give a PEM certificate chain and its PEM key.";
    85 ApiUnauthorized "API_UNAUTHORIZED" "server" final Warning
        "The API key is missing or wrong." "Send the key in the X-API-Key header.";
    86 JwksUnavailable "JWKS_UNAVAILABLE" "server" retry Error
        "The key set could not be fetched." "Check the JWKS address; tokens signed with known keys still work.";
    87 RouteNotFound "ROUTE_NOT_FOUND" "server" final Info
        "The server has nothing at this path." "See /api/openapi.json for all routes.";
    88 MethodNotAllowed "METHOD_NOT_ALLOWED" "server" final Info
        "The path does not take this method." "Use one that the Allow header names.";
    89 MediaTypeUnsupported "MEDIA_TYPE_UNSUPPORTED" "server" final Warning
        "The body is not declared to be JSON." "Send Content-Type: application/json.";
    90 RequestInvalid "REQUEST_INVALID" "server" final Warning
        "The request cannot be understood." "See the reason that the error names; /api/openapi.json describes every request.";
    91 OriginForbidden "ORIGIN_FORBIDDEN" "server" final Warning
        "A web page of another origin asked, or one by a name that is not this machine's." "List the page's origin in store.allowed_origins, or configure store.tokens.";
    92 TokenInvalid "TOKEN_INVALID" "server" final Warning
        "The API token is missing or wrong." "Send one of store.tokens as Authorization: Bearer.";
    93 PermissionDenied "PERMISSION_DENIED" "server" final Warning
        "The API token does not allow this." "Use a token whose environments and permissions in store.tokens cover it.";
    94 TokensRequired "TOKENS_REQUIRED" "server" final Error
        "A store without API tokens is served on loopback addresses only." "Configure store.tokens, or listen on 127.0.0.1.";
    95 EnvironmentNotFound "ENVIRONMENT_NOT_FOUND" "server" final Info
        "The store has no environment of this name." "Write to it: the first write makes it.";
    96 EnvironmentsFull "ENVIRONMENTS_FULL" "server" final Warning
        "The store has as many environments as the server may make." "Use one of them, or raise store.environments_max.";
    97 BackupUnavailable "BACKUP_UNAVAILABLE" "server" final Warning
        "No directory for backups is configured." "Set store.backup_path and start the server again.";
    98 ServerInternal "SERVER_INTERNAL" "server" final Error
        "The server failed while it answered." "See the server's log under the request's id.";
    99 CommandInvalid "COMMAND_INVALID" "server" final Error
        "What was given to the command is not what it takes." "See the reason that the error names, and --help.";
    100 FileUnusable "FILE_UNUSABLE" "server" final Error
        "A file cannot be read or written." "Correct the path or its permissions, or choose another.";

    110 KeyInvalid "KEY_INVALID" "store" final Error
        "A key is empty or longer than allowed." "Use 1 to 480 bytes of UTF-8.";
    111 ValueTooLarge "VALUE_TOO_LARGE" "store" final Error
        "A document is larger than allowed." "Split it, or raise the limit where the store is opened.";
    112 TransactionTooLarge "TRANSACTION_TOO_LARGE" "store" final Error
        "A transaction writes more than allowed." "Split it into several.";
    113 StoreFull "STORE_FULL" "store" final Error
        "The environment has reached the size that it was given." "Remove documents, keep less of the log, or raise the size.";
    114 DiskFull "DISK_FULL" "store" retry Error
        "The disk has no room left; nothing of the write was done." "Free space, then repeat the write.";
    115 StoreReadOnly "STORE_READ_ONLY" "store" final Error
        "The store's files cannot be written." "Give this user the right to write to the path, or open the store elsewhere.";
    116 NotAStore "NOT_A_STORE" "store" final Error
        "The path holds something that is no Motet store; it was left as it is." "Choose an empty directory or the path of a store.";
    117 StoreNewer "STORE_NEWER" "store" final Error
        "The store was written by a newer version; it was left as it is." "Open it with that version or a later one.";
    118 StoreCorrupt "STORE_CORRUPT" "store" final Error
        "The store's files are damaged; they were left as they are." "Restore a backup, and keep the damaged files for examination.";
    119 WriterStalled "WRITER_STALLED" "store" retry Error
        "Another process holds the right to write and does not go on." "Continue or end the process that the error names, then repeat the write.";
    120 WriterBusy "WRITER_BUSY" "store" retry Warning
        "Others wrote all the time, and the turn did not come." "Repeat the write, or write in larger batches.";
    121 WriteQueueFull "WRITE_QUEUE_FULL" "store" retry Warning
        "Too many writes wait already; this one was not queued." "Wait for pending writes, or write in larger batches.";
    122 ReadViewExpired "READ_VIEW_EXPIRED" "store" retry Warning
        "A view was kept longer than allowed, which would keep the file growing." "Take a new view, and read in smaller pieces.";
    123 StorePoisoned "STORE_POISONED" "store" final Error
        "A sync to disk failed, so what is on the disk is not known; nothing more is written." "Check the disk, then open the store again.";
    124 StoreClosed "STORE_CLOSED" "store" final Info
        "The store was closed." "Open it again.";
    125 LogTruncated "LOG_TRUNCATED" "store" final Warning
        "Changes that were asked for are no longer kept." "Begin at the log's beginning if it keeps the latest change of each document; otherwise read the documents afresh, then follow the log from its head.";
    126 StoreIo "STORE_IO" "store" final Error
        "The system refused to read or write the store's files." "See the cause that the error names.";
    127 NameInvalid "NAME_INVALID" "store" final Error
        "A name of a type or environment is not allowed." "Start with a letter, then use letters, digits, '-', '_' and '.', 64 bytes at most.";
    128 AlreadyExists "ALREADY_EXISTS" "store" final Info
        "There is a document with this key already." "Use put to replace it, or another key.";
    129 NotFound "NOT_FOUND" "store" final Info
        "There is no document with this key." "Use put or create to make one.";
    130 VersionMismatch "VERSION_MISMATCH" "store" final Info
        "The document was changed since it was read." "Read it again, and repeat the change on what it is now.";
    131 TransactionConflict "TRANSACTION_CONFLICT" "store" retry Info
        "Something that the transaction read was changed before it committed; nothing of it was done." "Run the transaction again.";
    132 PatchInvalid "PATCH_INVALID" "store" final Error
        "The patch cannot be applied to the document." "See the path and reason that the error names.";
    133 IndexInvalid "INDEX_INVALID" "store" final Error
        "An index is described in a way that cannot be." "See the reason that the error names.";
    134 IndexExists "INDEX_EXISTS" "store" final Error
        "There is an index of this name with another description." "Drop it first, or choose another name.";
    135 IndexNotFound "INDEX_NOT_FOUND" "store" final Error
        "The type has no index of this name." "List the type's indexes.";
    136 IndexEntriesTooMany "INDEX_ENTRIES_TOO_MANY" "store" final Error
        "A document's arrays make too many entries in an index." "Store fewer elements, or index another field.";
    137 UniqueViolation "UNIQUE_VIOLATION" "store" final Info
        "Another document has the same values in a unique index." "Use other values, or change the document that the error names.";
    138 CursorInvalid "CURSOR_INVALID" "store" final Warning
        "A cursor does not belong to the query, or its index is no more." "Ask for the first page again.";
    139 ResultTooLarge "RESULT_TOO_LARGE" "store" final Warning
        "A query gives too many documents, or has too much to sort." "Set a limit, and ask page by page; an index that has the order needs no sorting.";
    145 IntegrityViolated "INTEGRITY_VIOLATED" "store" final Error
        "A check found what must not be." "Keep the files for examination, and restore a backup, or export what can be read.";
    146 StoreInUse "STORE_IN_USE" "store" final Error
        "Another process has the store open." "Stop the servers and commands that use it, then try again.";
    148 LogPositionAhead "LOG_POSITION_AHEAD" "store" final Warning
        "A position is beyond the log's end: it is of another store, or of this one before a backup was restored." "Read the documents afresh, then follow the log from its head.";
    149 CopyUnfinished "COPY_UNFINISHED" "store" final Error
        "The directory holds a part of a copy: it is being made, or was cut short." "Wait for it to end; if nothing makes it any more, remove the directory and make the copy again.";
    140 FilterInvalid "FILTER_INVALID" "store" final Error
        "A filter has an unknown operator, an operand of the wrong type, or too much of something." "Correct it at the place that the error names.";
    141 RegexUnsupported "REGEX_UNSUPPORTED" "store" final Error
        "A regular expression uses lookaround or backreferences, which take more than linear time." "Write it without them, or say the rest with further conditions.";
    147 ValueTooDeep "VALUE_TOO_DEEP" "store" final Error
        "A document's arrays and objects nest deeper than allowed." "Nest at most 100 levels, or keep the inner parts as documents of their own.";
    142 PathInvalid "PATH_INVALID" "store" final Error
        "A path into documents is empty, has an empty step or is too long." "Use 1 to 32 names or positions with single dots between them, at most 1,024 bytes.";
    143 ReadersFull "READERS_FULL" "store" retry Warning
        "Every slot for a view is taken." "End views that are no longer needed, or allow more where the store is opened.";
    144 DeciderPanicked "DECIDER_PANICKED" "store" final Error
        "The code of a transaction panicked; nothing of it was written." "Correct the code; the message names what it said.";
    150 SchemaInvalid "SCHEMA_INVALID" "store" final Error
        "A schema is no JSON Schema, or one that cannot be used here." "See the reason that the error names; references to other files and lookaround in patterns are not offered.";
    151 SchemaViolation "SCHEMA_VIOLATION" "store" final Info
        "A document does not fit the schema of its type." "Correct the place that the error names.";
    152 ReferenceMissing "REFERENCE_MISSING" "store" final Info
        "A document refers to one that is not there." "Write that document first, or in the same batch.";
    153 ReferenceRestricted "REFERENCE_RESTRICTED" "store" final Info
        "A document cannot be removed while another refers to it." "Remove or change the document that the error names first, or in the same batch.";
    154 ReferencesBuilding "REFERENCES_BUILDING" "store" retry Info
        "A reference was defined just now, and who refers to what is still being found out." "Try again when the index of the reference is ready.";
}

impl ErrorCode {
    /// The number that travels between contexts.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}

impl<C> Encode<C> for ErrorCode {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.u16(self.number())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for ErrorCode {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        // A newer build may have codes of its own: the frame around one must still be understood.
        Ok(Self::from_number(d.u16()?).unwrap_or(Self::Unrecognised))
    }
}

/// An error as it is handed to an application or travels between contexts.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Error {
    /// What happened.
    #[n(0)]
    pub code: ErrorCode,
    /// The server's own code, where a server refused something.
    #[n(1)]
    pub server_code: Option<u32>,
    /// What it concerns: a topic, an option, the server's text. Never a payload or credential.
    #[n(2)]
    pub detail: Option<String>,
    /// Milliseconds to wait before trying again, where the refuser named them.
    #[n(3)]
    pub retry_after_ms: Option<u32>,
}

impl Error {
    /// An error with nothing but its code.
    #[must_use]
    pub const fn new(code: ErrorCode) -> Self {
        Self { code, server_code: None, detail: None, retry_after_ms: None }
    }

    /// The same error, saying what it concerns.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same error, with the code by which a server refused.
    #[must_use]
    pub const fn with_server_code(mut self, code: u32) -> Self {
        self.server_code = Some(code);
        self
    }

    /// Whether the same call may succeed later unchanged.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        self.code.retryable()
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.code.info();
        f.write_str(info.name)?;
        f.write_str(": ")?;
        f.write_str(info.message)?;
        if let Some(detail) = &self.detail {
            f.write_str(" (")?;
            f.write_str(detail)?;
            f.write_str(")")?;
        }
        f.write_str(" ")?;
        f.write_str(info.next_step)
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_number_and_names_are_unique() {
        let mut names: Vec<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_number(code.number()), Some(*code));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn a_code_of_a_newer_build_is_read_as_unrecognised() {
        let mut bytes = minicbor::Encoder::new(Vec::new());
        bytes.u16(60_000).expect("writing into a Vec does not fail");
        assert_eq!(
            minicbor::decode::<ErrorCode>(&bytes.into_writer()).ok(),
            Some(ErrorCode::Unrecognised)
        );
    }

    #[test]
    fn what_keeps_the_bus_from_starting_is_an_error_and_says_so() {
        for code in [ErrorCode::LocksUnavailable, ErrorCode::ChannelUnavailable] {
            let info = code.info();
            assert_eq!(info.severity, Severity::Error, "{}", info.name);
            assert!(info.message.ends_with("the bus does not start."), "{}", info.message);
        }
    }

    #[test]
    fn the_text_says_what_happened_to_what_and_what_to_do() {
        let text = Error::new(ErrorCode::PeerGone).with_detail("node 7").to_string();
        assert!(text.starts_with("PEER_GONE: ") && text.contains("(node 7)"), "{text}");
        assert!(text.ends_with(ErrorCode::PeerGone.info().next_step), "{text}");
    }
}
