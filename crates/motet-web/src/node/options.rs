//! What a node is told when its host starts.

use core::time::Duration;

use motet_cluster::node::{Identity, NodeConfig};
use motet_protocol::{NodeId, Rng, TabId};
use motet_realtime::client::{ClientConfig, TopicTokens};
use motet_realtime::codec::Limits;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A plain object; the facade has checked it. Absent members have the core's defaults.
    pub type NodeOptions;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn fingerprint(this: &NodeOptions) -> String;

    #[wasm_bindgen(method, getter, structural)]
    fn tab(this: &NodeOptions) -> String;

    #[wasm_bindgen(method, getter, structural)]
    fn visible(this: &NodeOptions) -> bool;

    #[wasm_bindgen(method, getter, structural)]
    fn shared(this: &NodeOptions) -> bool;

    #[wasm_bindgen(method, getter, structural)]
    fn build(this: &NodeOptions) -> String;

    #[wasm_bindgen(method, getter, structural, js_name = maxActiveNodes)]
    fn max_active_nodes(this: &NodeOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = ringMessages)]
    fn ring_messages(this: &NodeOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = ringBytes)]
    fn ring_bytes(this: &NodeOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn url(this: &NodeOptions) -> String;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn protobuf(this: &NodeOptions) -> bool;

    #[wasm_bindgen(method, getter, structural, js_name = messageSizeLimit)]
    fn message_size_limit(this: &NodeOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural)]
    fn name(this: &NodeOptions) -> Option<String>;

    #[wasm_bindgen(method, getter, structural)]
    fn version(this: &NodeOptions) -> Option<String>;

    #[wasm_bindgen(method, getter, structural)]
    fn data(this: &NodeOptions) -> JsValue;

    #[wasm_bindgen(method, getter, structural, js_name = tokenNeeded)]
    fn token_needed(this: &NodeOptions) -> bool;

    #[wasm_bindgen(method, getter, structural, js_name = topicTokens)]
    fn topic_tokens(this: &NodeOptions) -> Option<String>;

    #[wasm_bindgen(method, getter, structural, js_name = commandTimeoutMs)]
    fn command_timeout_ms(this: &NodeOptions) -> Option<u32>;
}

pub(super) fn node_config(options: &NodeOptions) -> NodeConfig {
    let defaults = NodeConfig::default();
    let count = |value: Option<u32>, default| value.map_or(default, |value| value as usize);
    NodeConfig {
        max_active_nodes: options.max_active_nodes().unwrap_or(defaults.max_active_nodes),
        ring_messages: count(options.ring_messages(), defaults.ring_messages),
        ring_bytes: count(options.ring_bytes(), defaults.ring_bytes),
        shared: options.shared(),
        build: options.build(),
        ..defaults
    }
}

/// What the server takes in one frame.
pub(super) fn message_size_limit(options: &NodeOptions) -> usize {
    let given = options.message_size_limit().map(|bytes| bytes as usize);
    given.unwrap_or(Limits::COMMANDS.frame_bytes_max)
}

pub(super) fn identity(options: &NodeOptions, rng: &mut Rng) -> Identity {
    Identity {
        node: NodeId::random(rng),
        tab: options.tab().parse().unwrap_or(TabId::from_bits(0)),
        visible: options.visible(),
    }
}

pub(super) fn transport_config(options: &NodeOptions) -> ClientConfig<JsValue> {
    let name = options.name().unwrap_or_else(|| "motet".to_owned());
    let version = options.version().unwrap_or_default();
    let defaults = ClientConfig::new(name, version);
    let data = options.data();
    ClientConfig {
        data: (!data.is_undefined()).then_some(data),
        token_needed: options.token_needed(),
        topic_tokens: match options.topic_tokens().as_deref() {
            Some("never") => TopicTokens::Never,
            Some("always") => TopicTokens::Always,
            _ => TopicTokens::Private,
        },
        command_timeout: options
            .command_timeout_ms()
            .map_or(defaults.command_timeout, |ms| Duration::from_millis(ms.into())),
        ..defaults
    }
}
