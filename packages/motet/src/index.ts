/** Live topics shared by all tabs of an application. */
export { connect } from "./connect.js";
export { Bus } from "./bus.js";
export type { Publication, PublishOutcome, ReadyOptions, StartOptions, TopicMap, TopicName } from "./bus.js";
export { MotetError } from "./error.js";
export { ERRORS } from "./errors.js";
export type { ErrorCode, ErrorInfo, Severity } from "./errors.js";
export type { BusError, ErrorSource } from "./listeners.js";
export type { Gap, GapReason, Handler, Message, MessageMeta, Position } from "./message.js";
export type { CentrifugeTransport, ConnectOptions, HostPreference, RestartConfig, TokenRequest } from "./options.js";
export type { PublishOptions } from "./session.js";
export type { NodeRow, PendingRow, RouteRow, SelfRow, Snapshot, SubscriptionRow } from "./snapshot.js";
export type { BusState, BusStatus, HostInUse, HostKind, StatusView } from "./status.js";
export type { SubscribeOptions, Subscription, SubscriptionState } from "./subscription.js";
export type { IterateOptions } from "./topic.js";
export { Topic } from "./topic.js";
