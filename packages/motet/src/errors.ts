// Made from crates/motet-protocol/src/error.rs by `cargo xtask generate`; edit that file instead.

/** How loudly an error should be reported. */
export type Severity = "info" | "warning" | "error";

/** One row of the error table. */
export interface ErrorInfo {
  /** What travels between contexts. */
  readonly number: number;
  /** The part of Motet that raises it. */
  readonly namespace: string;
  /** Whether the same call may succeed later unchanged. */
  readonly retryable: boolean;
  /** How loudly to report it. */
  readonly severity: Severity;
  /** What happened, one sentence. */
  readonly message: string;
  /** What to do about it, one sentence. */
  readonly nextStep: string;
}

/** Every error code with its row. */
export const ERRORS = {
  REQUEST_TIMEOUT: {
    number: 1,
    namespace: "protocol",
    retryable: true,
    severity: "warning",
    message: "No answer came within the time allowed.",
    nextStep: "Try again, or allow more time for this call.",
  },
  DEADLINE_EXCEEDED: {
    number: 2,
    namespace: "protocol",
    retryable: false,
    severity: "warning",
    message: "The deadline passed before the work was started; it was not done.",
    nextStep: "Send it again with a later deadline if it is still wanted.",
  },
  ABORTED: {
    number: 3,
    namespace: "protocol",
    retryable: false,
    severity: "info",
    message: "The caller aborted the call.",
    nextStep: "Nothing to do; the caller asked for it.",
  },
  OUTCOME_UNKNOWN: {
    number: 4,
    namespace: "protocol",
    retryable: false,
    severity: "warning",
    message: "The other side went away after the message was written; it may or may not have been done.",
    nextStep: "Check the state before repeating, or use an idempotency key so that repeating is safe.",
  },
  PEER_GONE: {
    number: 5,
    namespace: "protocol",
    retryable: true,
    severity: "warning",
    message: "The addressed context is gone and has not received the message.",
    nextStep: "Send it again; another context will take it.",
  },
  BACKPRESSURE: {
    number: 6,
    namespace: "protocol",
    retryable: true,
    severity: "warning",
    message: "Too many calls are waiting; this one was not sent.",
    nextStep: "Wait for pending calls to settle, or raise the limit.",
  },
  RESOURCE_BUSY: {
    number: 7,
    namespace: "protocol",
    retryable: true,
    severity: "warning",
    message: "The receiver's queue is full.",
    nextStep: "Try again after the delay that the error names.",
  },
  RATE_LIMITED: {
    number: 8,
    namespace: "protocol",
    retryable: true,
    severity: "warning",
    message: "More messages were sent than the limit allows.",
    nextStep: "Slow down; the limit is in the server's configuration.",
  },
  PAYLOAD_TOO_LARGE: {
    number: 9,
    namespace: "protocol",
    retryable: false,
    severity: "warning",
    message: "The payload is larger than the limit.",
    nextStep: "Send less, or raise the limit on both sides.",
  },
  UNCLONEABLE: {
    number: 10,
    namespace: "protocol",
    retryable: false,
    severity: "error",
    message: "The payload cannot be copied between contexts.",
    nextStep: "Send plain data: no functions, DOM nodes or class instances with methods.",
  },
  IDEMPOTENCY_KEY_REUSED: {
    number: 11,
    namespace: "protocol",
    retryable: false,
    severity: "error",
    message: "The idempotency key was used before with another payload.",
    nextStep: "Use a new key for a new operation.",
  },
  UNSUPPORTED_SCHEMA: {
    number: 12,
    namespace: "protocol",
    retryable: false,
    severity: "error",
    message: "The receiver does not know this version of the message.",
    nextStep: "Update the older side; reload tabs that run an old build.",
  },
  REPLY_AFTER_DEADLINE: {
    number: 13,
    namespace: "protocol",
    retryable: false,
    severity: "warning",
    message: "The work completed, but its reply came after the deadline and was not applied.",
    nextStep: "Read the state afresh.",
  },
  TRANSPORT_UNAVAILABLE: {
    number: 14,
    namespace: "protocol",
    retryable: true,
    severity: "warning",
    message: "There is no connection to send over.",
    nextStep: "Wait for the connection; the status shows when it is back.",
  },
  HANDLER_FAILED: {
    number: 15,
    namespace: "protocol",
    retryable: false,
    severity: "error",
    message: "The receiver's handler failed.",
    nextStep: "See the cause; repeating the call unchanged fails again.",
  },
  BAD_FRAME: {
    number: 16,
    namespace: "protocol",
    retryable: false,
    severity: "warning",
    message: "A frame was malformed, oversized or not allowed for its sender.",
    nextStep: "Nothing to do; it was counted and dropped. If it repeats, look for foreign code using the same channel names.",
  },
  UNRECOGNISED: {
    number: 17,
    namespace: "protocol",
    retryable: false,
    severity: "error",
    message: "The other side reported an error that this build does not know.",
    nextStep: "Reload the older of the two; the newer one's console has the details.",
  },
  TOPIC_INVALID: {
    number: 40,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The topic name is empty, longer than 255 bytes or contains characters that are not allowed.",
    nextStep: "Use 1 to 255 bytes of printable ASCII without a wildcard.",
  },
  CLOSED: {
    number: 41,
    namespace: "bus",
    retryable: false,
    severity: "info",
    message: "The bus is closed.",
    nextStep: "Connect again for a new bus.",
  },
  SUSPENDED: {
    number: 42,
    namespace: "bus",
    retryable: true,
    severity: "info",
    message: "The page is suspended in the back/forward cache or frozen.",
    nextStep: "The bus resumes by itself when the page is shown again.",
  },
  CLUSTER_CONFIG_MISMATCH: {
    number: 43,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "This page already uses the cluster with other options.",
    nextStep: "Use the same options everywhere, or another cluster name.",
  },
  HOST_UNAVAILABLE: {
    number: 44,
    namespace: "bus",
    retryable: false,
    severity: "warning",
    message: "The wanted host for the node cannot be used here; the next one of the order is used.",
    nextStep: "Serve the worker script from the same origin and allow it in worker-src.",
  },
  LOCKS_UNAVAILABLE: {
    number: 45,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The Web Locks API is missing, so tabs cannot coordinate; the bus does not start.",
    nextStep: "Serve the page over HTTPS or from localhost.",
  },
  CHANNEL_UNAVAILABLE: {
    number: 46,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "BroadcastChannel is missing, so tabs cannot reach each other; the bus does not start.",
    nextStep: "Use a browser that has BroadcastChannel.",
  },
  NODE_UNAVAILABLE: {
    number: 47,
    namespace: "bus",
    retryable: true,
    severity: "error",
    message: "The node of this page stopped and could not be restarted yet.",
    nextStep: "It is restarted at most five times a minute; see the console for the first error.",
  },
  SUBSCRIBE_REJECTED: {
    number: 48,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The server refused the subscription.",
    nextStep: "See the server code: check the channel's namespace, permission or token.",
  },
  PUBLISH_REJECTED: {
    number: 49,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The server refused the publication.",
    nextStep: "See the server code: check the channel's permission and the payload.",
  },
  CONNECT_REJECTED: {
    number: 50,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The server refused the connection for good.",
    nextStep: "See the server code; supply a new token, then call retry().",
  },
  TOKEN_UNAVAILABLE: {
    number: 51,
    namespace: "bus",
    retryable: true,
    severity: "error",
    message: "The application's token function failed or did not answer in time.",
    nextStep: "Make token() resolve with a token, or reject once the user is signed out.",
  },
  QUEUE_OVERFLOW: {
    number: 52,
    namespace: "bus",
    retryable: false,
    severity: "warning",
    message: "The publish queue was full; its oldest entry was rejected.",
    nextStep: "Publish less while offline, or raise publishQueue.",
  },
  WASM_BLOCKED: {
    number: 53,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The page's security policy does not allow WebAssembly.",
    nextStep: "Allow 'wasm-unsafe-eval' in script-src.",
  },
  ENVIRONMENT_UNSUPPORTED: {
    number: 54,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "This is no browser page, so there is nothing to connect to.",
    nextStep: "Call connect() in the browser only; importing is safe anywhere.",
  },
  DISPATCH_FAILED: {
    number: 55,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "A message handler threw; other handlers were served.",
    nextStep: "Fix the handler; the error's cause is what it threw.",
  },
  TRANSPORT_UNSUPPORTED: {
    number: 56,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The transport's kind or URL is not known.",
    nextStep: "Use kind \"centrifuge\" with a ws: or wss: URL.",
  },
  BUILD_SKEW: {
    number: 57,
    namespace: "bus",
    retryable: false,
    severity: "warning",
    message: "Tabs of this cluster run different builds; the features that all of them know are used.",
    nextStep: "Reload older tabs after a deployment.",
  },
  CONFIG_INVALID: {
    number: 58,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "An option has a value outside its range.",
    nextStep: "The error names the option and its range.",
  },
  HISTORY_UNAVAILABLE: {
    number: 59,
    namespace: "bus",
    retryable: false,
    severity: "warning",
    message: "The server gave no history of the topic.",
    nextStep: "See the server code: the namespace keeps none, or it may not be read, or the position is of an earlier life of the stream.",
  },
  WILDCARD_UNSUPPORTED: {
    number: 60,
    namespace: "bus",
    retryable: false,
    severity: "error",
    message: "The server does not offer patterns.",
    nextStep: "Subscribe to concrete topics, or use a server with the pattern extension.",
  },
  STORAGE_UNAVAILABLE: {
    number: 61,
    namespace: "bus",
    retryable: false,
    severity: "warning",
    message: "The page's session storage cannot be used; after a reload it counts as a new tab.",
    nextStep: "Allow site data for this origin if tabs are to keep their id; nothing else depends on it.",
  },
  SERVER_CONFIG_INVALID: {
    number: 80,
    namespace: "server",
    retryable: false,
    severity: "error",
    message: "The configuration cannot be used.",
    nextStep: "Correct what the message names: a file, a key of the configuration or an option.",
  },
  SERVER_CONFIG_UNKNOWN_KEY: {
    number: 81,
    namespace: "server",
    retryable: false,
    severity: "error",
    message: "The configuration has a key that the server does not know.",
    nextStep: "Correct the spelling or remove the key; `motet config` prints all keys.",
  },
  ADDRESS_IN_USE: {
    number: 82,
    namespace: "server",
    retryable: false,
    severity: "error",
    message: "Another process listens on this address.",
    nextStep: "Stop it, or choose another address with --listen.",
  },
  ADDRESS_REFUSED: {
    number: 83,
    namespace: "server",
    retryable: false,
    severity: "error",
    message: "The server cannot listen on this address.",
    nextStep: "Give an IP address of this machine and a port that this user may use, such as one above 1023.",
  },
  TLS_INVALID: {
    number: 84,
    namespace: "server",
    retryable: false,
    severity: "error",
    message: "The certificate or key cannot be read or do not belong together.",
    nextStep: "Give a PEM certificate chain and its PEM key.",
  },
  API_UNAUTHORIZED: {
    number: 85,
    namespace: "server",
    retryable: false,
    severity: "warning",
    message: "The API key is missing or wrong.",
    nextStep: "Send the key in the X-API-Key header.",
  },
  JWKS_UNAVAILABLE: {
    number: 86,
    namespace: "server",
    retryable: true,
    severity: "error",
    message: "The key set could not be fetched.",
    nextStep: "Check the JWKS address; tokens signed with known keys still work.",
  },
} as const satisfies Readonly<Record<string, ErrorInfo>>;

/** The stable name of an error. */
export type ErrorCode = keyof typeof ERRORS;

const NAMES: ReadonlyMap<number, ErrorCode> = new Map(
  (Object.keys(ERRORS) as ErrorCode[]).map((name) => [ERRORS[name].number, name]),
);

/** The code with this number, if this build knows it. */
export function errorCode(number: number): ErrorCode | undefined {
  return NAMES.get(number);
}
