//! The hub's task, from commands to the connections' queues.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use motet_realtime::codec::{Encoding, Limits};
use motet_realtime::hub::{ApiPublish, ApiRequest};
use motet_realtime::message::{
    Command, ConnectRequest, PushEvent, Reply, ReplyBody, Request, SubscribeRequest,
};

use super::{Engine, HubHandle, spawn};
use crate::auth::Verifier;
use crate::config::Config;
use crate::connection::{Next, Outgoing};
use crate::metrics::Metrics;

fn start() -> HubHandle {
    let mut config = Config::default();
    config.client.insecure = true;
    let verifier = Verifier::new(&config.client).expect("no keys are valid keys");
    let metrics = Arc::new(Metrics::new());
    spawn(Engine { config: Arc::new(config), verifier, metrics, publication_log: None }).0
}

fn subscribe(hub: &HubHandle, encoding: Encoding, channel: &str) -> Arc<Outgoing> {
    let outgoing = Arc::new(Outgoing::new(encoding, 1 << 20));
    let session = hub.draw_session();
    hub.open(session, outgoing.clone(), false);
    let connect = Request::Connect(Box::<ConnectRequest<Bytes>>::default());
    let subscription =
        SubscribeRequest { channel: channel.to_owned(), ..SubscribeRequest::default() };
    let subscribe = Request::Subscribe(Box::new(subscription));
    hub.commands(session, vec![Command::new(1, connect), Command::new(2, subscribe)], 0);
    outgoing
}

async fn next_chunks(outgoing: &Outgoing) -> Vec<Bytes> {
    match poll_fn(|context| outgoing.poll_next(context, usize::MAX)).await {
        Next::Write(chunks) => chunks,
        other => panic!("expected chunks, got {other:?}"),
    }
}

fn decode(encoding: Encoding, chunk: &Bytes) -> Vec<Reply<Bytes>> {
    let replies = encoding.replies(chunk.clone(), Limits::REPLIES).expect("a frame");
    replies.map(|reply| reply.expect("a message")).collect()
}

async fn publish(hub: &HubHandle, channel: &str, data: &'static [u8]) {
    let publish = ApiPublish {
        data: Bytes::from_static(data),
        skip_history: false,
        tags: Default::default(),
        idempotency_key: String::new(),
        version: None,
    };
    let answer = hub.api(ApiRequest::Publish(publish, channel.to_owned())).await;
    answer.expect("the hub runs").expect("accepted");
}

#[tokio::test]
async fn a_publication_is_encoded_once_for_all_subscribers_of_an_encoding() {
    let hub = start();
    let subscribers: Vec<_> = (0..60)
        .map(|number| if number % 3 == 0 { Encoding::Protobuf } else { Encoding::Json })
        .map(|encoding| (encoding, subscribe(&hub, encoding, "news")))
        .collect();
    // Asked after all commands, so what is queued then are the replies to them.
    hub.stats().await.expect("the hub runs");
    for (_, outgoing) in &subscribers {
        next_chunks(outgoing).await;
    }
    publish(&hub, "news", b"[1]").await;

    let mut held = Vec::new();
    for (encoding, outgoing) in &subscribers {
        let chunks = next_chunks(outgoing).await;
        let [chunk] = &chunks[..] else { panic!("{chunks:?}") };
        let replies = decode(*encoding, chunk);
        let [Reply { body: ReplyBody::Push(push), .. }] = &replies[..] else {
            panic!("{replies:?}")
        };
        let PushEvent::Publication(publication) = &push.event else { panic!("{push:?}") };
        assert_eq!((push.channel.as_str(), &publication.data[..]), ("news", &b"[1]"[..]));
        held.push((*encoding == Encoding::Json, chunk.clone()));
    }
    // All are still held, so bytes at one address are the very same bytes.
    let buffers: BTreeSet<_> = held.iter().map(|(json, chunk)| (*json, chunk.as_ptr())).collect();
    assert_eq!(buffers.len(), 2, "one buffer for each encoding");
}

#[tokio::test]
async fn an_encoding_that_nobody_speaks_costs_nothing() {
    let hub = start();
    let outgoing = subscribe(&hub, Encoding::Protobuf, "news");
    hub.stats().await.expect("the hub runs");
    next_chunks(&outgoing).await;
    // No JSON, so encoding it as such would fail.
    publish(&hub, "news", b"\xff").await;
    let chunks = next_chunks(&outgoing).await;
    assert_eq!(decode(Encoding::Protobuf, &chunks[0]).len(), 1);
}
