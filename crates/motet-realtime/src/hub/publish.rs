//! Publications: of clients by command, of the server by its API.

use std::collections::BTreeMap;
use std::sync::Arc;

use motet_protocol::Instant;

use super::{Hub, SessionId, Waiter};
use crate::broker::{
    BrokerError, BrokerOp, Idempotency, OpId, PublishOptions, Published, Retention,
};
use crate::hub::Output;
use crate::message::{
    Publication, PublishExtension, PublishRequest, ReplyBody, ServerErrorCode, TAG_MESSAGE_ID,
    TAG_TIMESTAMP_MS,
};
use crate::payload::Payload;
use crate::server::{ChannelName, Right, Step};

/// Bytes in an idempotency key or message id.
pub(super) const KEY_LENGTH_MAX: usize = 255;

impl<P: Payload> Hub<P> {
    pub(super) fn publish(
        &mut self,
        now: Instant,
        id: SessionId,
        command: u32,
        request: PublishRequest<P>,
    ) {
        if request.channel.is_empty() {
            return self.disconnect_bad_request(id);
        }
        let retention = match self.may_publish(id, &request) {
            Ok(retention) => retention,
            Err(code) => return self.refuse(id, command, code),
        };
        let Some(session) = self.sessions.get(&id) else { return };
        let extension = request.motet.unwrap_or_default();
        let idempotency = extension.key.clone().filter(|_| session.features.idempotency);
        // Keys belong to a user: nobody can use up the key of somebody else. With the length no
        // user's name and key read like those of another, whatever slashes they have.
        let user = &session.user;
        let idempotency = idempotency.map(|key| Idempotency {
            key: format!("client/{}/{user}/{key}", user.len()),
            fingerprint: Some(request.data.fingerprint()),
        });
        let publication = Publication {
            info: Some(session.client_info()),
            tags: extension_tags(extension),
            ..Publication::new(request.data)
        };
        let bytes = publication.encoded_size_max(request.channel.len());
        if bytes > self.options.publication_bytes_max {
            return self.refuse(id, command, ServerErrorCode::LIMIT_EXCEEDED);
        }
        let channel = self.channel_key(&request.channel);
        let options = PublishOptions { retention, idempotency, version: None };
        let op = self.hand_to_broker(&channel, publication, options, Waiter::Command(id));
        self.wait(now, id, op, Step::Publish { command });
    }

    fn may_publish(
        &self,
        id: SessionId,
        request: &PublishRequest<P>,
    ) -> Result<Retention, ServerErrorCode> {
        let too_long =
            |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > KEY_LENGTH_MAX);
        let oversized = request
            .motet
            .as_ref()
            .is_some_and(|extension| too_long(&extension.key) || too_long(&extension.message_id));
        if !self.is_name_acceptable(&request.channel) || request.kind != 0 || oversized {
            return Err(ServerErrorCode::BAD_REQUEST);
        }
        let namespace = self.right_to(Right::Publish, id, &request.channel)?;
        Ok(namespace.retention(self.options.history_meta_ttl))
    }

    /// The channel's namespace, if the connection has the right in it.
    pub(super) fn right_to(
        &self,
        right: Right,
        id: SessionId,
        channel: &str,
    ) -> Result<&crate::server::Namespace, ServerErrorCode> {
        let session = self.sessions.get(&id).ok_or(ServerErrorCode::INTERNAL)?;
        let name = ChannelName::parse(channel);
        let namespace =
            self.options.namespaces.find(&name).ok_or(ServerErrorCode::UNKNOWN_CHANNEL)?;
        let subscribed = session.is_subscribed(channel);
        if self.options.insecure || right.granted(namespace, &session.user, subscribed) {
            Ok(namespace)
        } else {
            Err(ServerErrorCode::PERMISSION_DENIED)
        }
    }

    pub(super) fn hand_to_broker(
        &mut self,
        channel: &Arc<str>,
        publication: Publication<P>,
        options: PublishOptions,
        waiter: Waiter,
    ) -> OpId {
        let report = self.options.report_accepted.then(|| publication.data.clone());
        let op = self.ask(channel, BrokerOp::Publish(Box::new(publication), options), waiter);
        if let Some(data) = report {
            self.reports.insert(op, (channel.clone(), data));
        }
        op
    }

    /// Reports an accepted publication to whoever keeps the log of them.
    pub(super) fn report(&mut self, op: OpId, published: Option<&Published>) {
        let Some((channel, data)) = self.reports.remove(&op) else { return };
        if let Some(published) = published.filter(|published| !published.suppressed) {
            let position = published.position.clone();
            self.outputs.push_back(Output::Accepted { channel, position, data });
        }
    }

    pub(super) fn published(
        &mut self,
        id: SessionId,
        command: u32,
        result: Result<(), BrokerError>,
    ) {
        match result {
            Ok(()) => self.answer(id, command, ReplyBody::Publish),
            Err(BrokerError::IdempotencyKeyReused) => {
                self.refuse(id, command, ServerErrorCode::IDEMPOTENCY_KEY_REUSED);
            }
            Err(BrokerError::Full) => self.refuse(id, command, ServerErrorCode::LIMIT_EXCEEDED),
            Err(BrokerError::Unavailable) => self.refuse(id, command, ServerErrorCode::INTERNAL),
        }
    }
}

/// The application's message id and timestamp travel as tags, so that every client can read them.
fn extension_tags(extension: PublishExtension) -> BTreeMap<String, String> {
    let id = extension.message_id.map(|id| (TAG_MESSAGE_ID.to_owned(), id));
    let timestamp = extension.timestamp_ms.map(|ms| (TAG_TIMESTAMP_MS.to_owned(), ms.to_string()));
    id.into_iter().chain(timestamp).collect()
}
