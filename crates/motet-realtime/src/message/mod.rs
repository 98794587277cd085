//! The messages of the Centrifuge protocol v2, typed and free of any encoding.
//!
//! Every type is generic over the payload `P`, which no part of this crate looks into. Where the
//! protocol tells "absent" from "present" the field is an `Option`; everywhere else the zero value
//! means absent, on the wire too. Names are those of the protocol.

mod code;
mod command;
mod connect;
mod extension;
mod history;
mod presence;
mod publication;
mod push;
mod refresh;
mod reply;
mod subscribe;

pub use code::{DisconnectCode, ErrorReply, ServerErrorCode, UnsubscribeCode, Verdict};
pub use command::{Command, PublishRequest, Request, RpcRequest, SendRequest, UnsubscribeRequest};
pub use connect::{ConnectRequest, ConnectResult};
pub use extension::{Features, PublishExtension, TAG_MESSAGE_ID, TAG_TIMESTAMP_MS};
pub use history::{HistoryRequest, HistoryResult, StreamPosition};
pub use presence::{PresenceRequest, PresenceResult, PresenceStatsRequest, PresenceStatsResult};
pub use publication::{ClientInfo, Publication};
pub use push::{Disconnect, Push, PushEvent, RefreshPush, SubscribePush, Unsubscribe};
pub use refresh::{RefreshRequest, RefreshResult, SubRefreshRequest, SubRefreshResult};
pub use reply::{Reply, ReplyBody, RpcResult};
pub use subscribe::{SUBSCRIBE_FLAG_REJECT_UNRECOVERED, SubscribeRequest, SubscribeResult};
