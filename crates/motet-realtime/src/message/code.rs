//! Codes by which a server refuses, unsubscribes and disconnects, and what a client does then.

/// What a client does after a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try again, with backoff.
    Retry,
    /// Stop until the application acts.
    Terminal,
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$row:meta])* $constant:ident = $number:literal $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            $($(#[$row])* pub const $constant: Self = Self($number);)*

            /// Every code that has a name.
            pub const ALL: &[Self] = &[$(Self::$constant),*];

            /// The text that goes with the code; empty for one without a name.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self.0 { $($number => $text,)* _ => "" }
            }
        }
    };
}

codes! {
    /// Code of an error reply. 400 to 1999 are free for applications.
    ServerErrorCode {
        /// The server failed; the same request may succeed later.
        INTERNAL = 100 "internal server error";
        /// The connection has no identity and needs one.
        UNAUTHORIZED = 101 "unauthorized";
        /// The channel's namespace does not exist.
        UNKNOWN_CHANNEL = 102 "unknown channel";
        /// Not allowed, or the subscription token is wrong.
        PERMISSION_DENIED = 103 "permission denied";
        /// No such RPC method.
        METHOD_NOT_FOUND = 104 "method not found";
        /// The connection is subscribed, or subscribing, to the channel.
        ALREADY_SUBSCRIBED = 105 "already subscribed";
        /// A limit of the server was reached.
        LIMIT_EXCEEDED = 106 "limit exceeded";
        /// The request contradicts itself or its channel.
        BAD_REQUEST = 107 "bad request";
        /// The channel does not offer what was asked for.
        NOT_AVAILABLE = 108 "not available";
        /// The token is past its expiry; a new one is wanted.
        TOKEN_EXPIRED = 109 "token expired";
        /// The connection is past its expiry.
        EXPIRED = 110 "expired";
        /// Slow down.
        TOO_MANY_REQUESTS = 111 "too many requests";
        /// The stream cannot be recovered from the position given.
        UNRECOVERABLE_POSITION = 112 "unrecoverable position";
        /// Another page of the same listing is being read.
        CONCURRENT_PAGINATION = 113 "concurrent pagination";
        /// The key was used before with another payload. Of the Motet extension, so it lies beyond
        /// the codes of the ecosystem's servers and of applications.
        IDEMPOTENCY_KEY_REUSED = 5000 "the idempotency key was used before with another payload";
    }
}

codes! {
    /// Close code of a connection: 3000 to 3499 and 4000 to 4499 invite a reconnect, 3500 to 3999
    /// and 4500 to 4999 forbid it. 4000 to 4999 are free for applications.
    DisconnectCode {
        /// The connection went away without a code of the server; never sent.
        CONNECTION_CLOSED = 3000 "connection closed";
        /// The server stops.
        SHUTDOWN = 3001 "shutdown";
        /// The server failed.
        INTERNAL = 3004 "internal server error";
        /// The connection's token expired and was not refreshed.
        CONNECTION_EXPIRED = 3005 "connection expired";
        /// A server-side subscription expired.
        SUBSCRIPTION_EXPIRED = 3006 "subscription expired";
        /// The client does not read fast enough.
        SLOW = 3008 "slow";
        /// The transport failed.
        WRITE_ERROR = 3009 "write error";
        /// The server lost the client's place in a stream.
        INSUFFICIENT_STATE = 3010 "insufficient state";
        /// An operator asked for it.
        FORCE_RECONNECT = 3011 "force reconnect";
        /// No pong came.
        NO_PONG = 3012 "no pong";
        /// More requests than allowed.
        TOO_MANY_REQUESTS = 3013 "too many requests";
        /// Tokens and subscription state are void; start anew.
        STATE_INVALIDATED = 3014 "state invalidated";
        /// The token is wrong.
        INVALID_TOKEN = 3500 "invalid token";
        /// The client broke the protocol.
        BAD_REQUEST = 3501 "bad request";
        /// No connect command came in time.
        STALE = 3502 "stale";
        /// An operator asked for it.
        FORCE_DISCONNECT = 3503 "force disconnect";
        /// The server or the user has as many connections as allowed.
        CONNECTION_LIMIT = 3504 "connection limit";
        /// More server-side subscriptions than allowed.
        CHANNEL_LIMIT = 3505 "channel limit";
        /// A binary payload for a client that speaks JSON.
        INAPPROPRIATE_PROTOCOL = 3506 "inappropriate protocol";
        /// The connection is not allowed.
        PERMISSION_DENIED = 3507 "permission denied";
        /// The server does not offer what the client asked for.
        NOT_AVAILABLE = 3508 "not available";
        /// Too many errors on one connection.
        TOO_MANY_ERRORS = 3509 "too many errors";
    }
}

codes! {
    /// Why a subscription ended: below 2500 for good, from 2500 on the client subscribes again.
    UnsubscribeCode {
        /// The client asked for it.
        CLIENT = 0 "unsubscribe called";
        /// The connection ended; never sent.
        DISCONNECT = 1 "disconnect";
        /// The server decided it.
        SERVER = 2000 "server unsubscribe";
        /// The server lost the client's place in the stream.
        INSUFFICIENT_STATE = 2500 "insufficient state";
        /// The subscription's token expired and was not refreshed.
        EXPIRED = 2501 "subscription expired";
        /// Token and state are void; start anew.
        STATE_INVALIDATED = 2502 "state invalidated";
    }
}

impl ServerErrorCode {
    /// Whether the same request may succeed later unchanged.
    #[must_use]
    pub const fn temporary(self) -> bool {
        matches!(self, Self::INTERNAL | Self::TOO_MANY_REQUESTS | Self::CONCURRENT_PAGINATION)
    }
}

impl DisconnectCode {
    /// A message was larger than the peer accepts (WebSocket close code).
    pub const MESSAGE_TOO_BIG: Self = Self(1009);

    /// Whether a client comes back after this close code. After 1009 it does, without the message
    /// that was too large.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self.0 {
            3500..=3999 | 4500..=4999 => Verdict::Terminal,
            _ => Verdict::Retry,
        }
    }
}

impl UnsubscribeCode {
    /// Whether a client subscribes again after this code.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        if self.0 < 2500 { Verdict::Terminal } else { Verdict::Retry }
    }
}

/// A refusal of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorReply {
    /// The code.
    pub code: ServerErrorCode,
    /// Text for people.
    pub message: String,
    /// Whether the same command may succeed later unchanged.
    pub temporary: bool,
}

impl ErrorReply {
    /// Whether a client connects again, or subscribes again, after this refusal of a connect or
    /// subscribe command. An expired token counts as curable: a new one is asked for.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        if self.temporary || self.code.0 < 100 || self.code.0 == ServerErrorCode::TOKEN_EXPIRED.0 {
            Verdict::Retry
        } else {
            Verdict::Terminal
        }
    }
}

impl From<ServerErrorCode> for ErrorReply {
    fn from(code: ServerErrorCode) -> Self {
        Self { code, message: code.text().to_owned(), temporary: code.temporary() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_codes_are_sorted_into_reconnect_and_terminal() {
        for code in [1000, 1001, 1006, 1009, 1012, 3000, 3014, 3499, 4000, 4499, 5000] {
            assert_eq!(DisconnectCode(code).verdict(), Verdict::Retry, "{code}");
        }
        for code in [3500, 3509, 3999, 4500, 4999] {
            assert_eq!(DisconnectCode(code).verdict(), Verdict::Terminal, "{code}");
        }
    }

    #[test]
    fn only_temporary_local_and_expired_token_errors_are_retried() {
        for code in ServerErrorCode::ALL {
            let retried = matches!(code.0, 100 | 109 | 111 | 113);
            let verdict = if retried { Verdict::Retry } else { Verdict::Terminal };
            assert_eq!(ErrorReply::from(*code).verdict(), verdict, "{code:?}");
        }
        let custom = ErrorReply { temporary: true, ..ErrorReply::from(ServerErrorCode(400)) };
        assert_eq!(custom.verdict(), Verdict::Retry);
        assert_eq!(ErrorReply::from(ServerErrorCode(1)).verdict(), Verdict::Retry);
    }

    #[test]
    fn an_unsubscribe_from_2500_on_is_followed_by_a_new_subscribe() {
        assert_eq!(UnsubscribeCode::SERVER.verdict(), Verdict::Terminal);
        assert_eq!(UnsubscribeCode::INSUFFICIENT_STATE.verdict(), Verdict::Retry);
        assert_eq!(UnsubscribeCode::STATE_INVALIDATED.verdict(), Verdict::Retry);
    }
}
