//! What the facade configures.

use core::time::Duration;

use motet_cluster::client::ClientConfig;
use motet_protocol::TabId;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A plain object; what is absent has the core's default. The facade has checked the ranges.
    pub type PageOptions;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn fingerprint(this: &PageOptions) -> String;

    #[wasm_bindgen(method, getter, structural)]
    fn build(this: &PageOptions) -> String;

    #[wasm_bindgen(method, getter, structural, js_name = lingerMs)]
    fn linger_ms(this: &PageOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = ringMessages)]
    fn ring_messages(this: &PageOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = ringBytes)]
    fn ring_bytes(this: &PageOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = publishQueue)]
    fn publish_queue(this: &PageOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = publishDeadlineMs)]
    fn publish_deadline_ms(this: &PageOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, structural, js_name = dedupeById)]
    fn dedupe_by_id(this: &PageOptions) -> Option<bool>;
}

/// The tab is named later, when its identity is claimed.
pub(super) fn client_config(options: &PageOptions, visible: bool) -> ClientConfig {
    let defaults = ClientConfig::new(TabId::from_bits(0));
    let count = |value: Option<u32>, default| value.map_or(default, |value| value as usize);
    let millis =
        |value: Option<u32>, default| value.map_or(default, |ms| Duration::from_millis(ms.into()));
    ClientConfig {
        visible,
        linger: millis(options.linger_ms(), defaults.linger),
        ring_messages: count(options.ring_messages(), defaults.ring_messages),
        ring_bytes: count(options.ring_bytes(), defaults.ring_bytes),
        publish_queue: count(options.publish_queue(), defaults.publish_queue),
        publish_deadline: millis(options.publish_deadline_ms(), defaults.publish_deadline),
        dedupe_by_id: options.dedupe_by_id().unwrap_or(false),
        build: options.build(),
        ..defaults
    }
}
