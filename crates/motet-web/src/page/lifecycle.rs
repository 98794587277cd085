//! What the browser does to the page.

use core::time::Duration;

use motet_cluster::client::PageEvent;
use wasm_bindgen::prelude::*;

use crate::clock::now;
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

/// Measured with four browsers beside each other on two processors: without it 15 of 160 pages were
/// not restored, with 30 ms 3 of 160, with 60 ms none of 192; beside a build that takes both
/// processors one more was seen. It costs the next page nothing.
const WORKER_END: Duration = Duration::from_millis(120);

const KINDS: [&str; 6] = ["pagehide", "pageshow", "freeze", "resume", "visibilitychange", "online"];

/// Whether the page is visible now.
pub(super) fn is_visible() -> bool {
    DOCUMENT.with(|document| document.visibility_state() == "visible")
}

/// Listens until it is dropped.
pub(super) struct Lifecycle(Callback);

impl Lifecycle {
    /// `has_worker` says whether the page has a worker of its own, which it ends when it is hidden.
    pub(super) fn listen(
        has_worker: impl Fn() -> bool + 'static,
        hear: impl Fn(PageEvent) + 'static,
    ) -> Self {
        let listener = Callback::new(move |event: JsValue| {
            let event: &LifecycleEvent = event.unchecked_ref();
            if let Some(heard) = parse(event) {
                let cached = heard == PageEvent::Hide && event.persisted().unwrap_or(false);
                let ends_worker = cached && has_worker();
                hear(heard);
                if ends_worker {
                    let_worker_end();
                }
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

/// Stands still while the page's worker ends.
///
/// The back/forward cache drops a page whose worker still holds a socket or a lock when it looks,
/// right after `pagehide`, and a worker ends in its own time, which no call tells. Nobody waits for
/// this page any more: the next one has been committed.
fn let_worker_end() {
    let end = now() + WORKER_END;
    while now() < end {}
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
