//! What the browser does to the page.

use motet_cluster::client::PageEvent;
use wasm_bindgen::prelude::*;

use crate::platform::Callback;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = addEventListener)]
    fn add_event_listener(kind: &str, listener: &JsValue, capture: bool);

    #[wasm_bindgen(js_name = removeEventListener)]
    fn remove_event_listener(kind: &str, listener: &JsValue, capture: bool);

    type LifecycleEvent;

    #[wasm_bindgen(method, getter, structural, js_name = type)]
    fn kind(this: &LifecycleEvent) -> String;

    #[wasm_bindgen(method, getter, structural)]
    fn persisted(this: &LifecycleEvent) -> Option<bool>;

    type Document;

    #[wasm_bindgen(thread_local_v2, js_name = document)]
    static DOCUMENT: Document;

    #[wasm_bindgen(method, getter, structural, js_name = visibilityState)]
    fn visibility_state(this: &Document) -> String;
}

const KINDS: [&str; 6] = ["pagehide", "pageshow", "freeze", "resume", "visibilitychange", "online"];

/// Whether the page is visible now.
pub(super) fn is_visible() -> bool {
    DOCUMENT.with(|document| document.visibility_state() == "visible")
}

/// Listens until it is dropped.
pub(super) struct Lifecycle(Callback);

impl Lifecycle {
    pub(super) fn listen(hear: impl Fn(PageEvent) + 'static) -> Self {
        let listener = Callback::new(move |event: JsValue| {
            if let Some(event) = parse(event.unchecked_ref()) {
                hear(event);
            }
        });
        for kind in KINDS {
            // Captured at the window: some of these events do not bubble.
            add_event_listener(kind, listener.as_ref(), true);
        }
        Self(listener)
    }
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        for kind in KINDS {
            remove_event_listener(kind, self.0.as_ref(), true);
        }
    }
}

fn parse(event: &LifecycleEvent) -> Option<PageEvent> {
    Some(match event.kind().as_str() {
        "pagehide" => PageEvent::Hide,
        // A page that is shown for the first time was not hidden before.
        "pageshow" => return event.persisted().unwrap_or(false).then_some(PageEvent::Show),
        "freeze" => PageEvent::Freeze,
        "resume" => PageEvent::Resume,
        "visibilitychange" => PageEvent::Visible(is_visible()),
        _ => PageEvent::Online,
    })
}
