//! The node's locks: requests by number, and the list of what the cluster holds.

use core::cell::RefCell;
use std::rc::Rc;

use litemap::LiteMap;
use motet_cluster::ClusterName;
use motet_cluster::lock::{HeldLock, LockEvent, LockOp, LockRequest as Number};
use wasm_bindgen::prelude::*;

use crate::lock::{LockNews, LockRequest};
use crate::platform::{detached, query_locks};

#[wasm_bindgen]
extern "C" {
    type Snapshot;

    #[wasm_bindgen(method, getter, structural)]
    fn held(this: &Snapshot) -> Option<js_sys::Array>;

    type Row;

    #[wasm_bindgen(method, getter, structural)]
    fn name(this: &Row) -> Option<String>;

    #[wasm_bindgen(method, getter, structural, js_name = clientId)]
    fn client_id(this: &Row) -> Option<String>;
}

pub(super) struct Locks {
    cluster: ClusterName,
    requests: RefCell<LiteMap<Number, LockRequest>>,
    hear: Rc<dyn Fn(LockEvent)>,
}

impl Locks {
    pub(super) fn new(cluster: ClusterName, hear: impl Fn(LockEvent) + 'static) -> Self {
        Self { cluster, requests: RefCell::default(), hear: Rc::new(hear) }
    }

    pub(super) fn operate(&self, op: &LockOp) {
        match *op {
            LockOp::Request { request, name, mode } => {
                let hear = self.hear.clone();
                let lock = LockRequest::new(&self.cluster.lock(name), mode, move |news| {
                    hear(match news {
                        LockNews::Granted => LockEvent::Granted { request },
                        LockNews::Refused => LockEvent::Refused { request },
                        LockNews::Lost => LockEvent::Lost { request },
                    });
                });
                self.requests.borrow_mut().insert(request, lock);
            }
            LockOp::Release { request } => {
                self.requests.borrow_mut().remove(&request);
            }
            LockOp::Query => self.query(),
        }
    }

    /// Lets go of everything, queued or held.
    pub(super) fn release_all(&self) {
        self.requests.take();
    }

    fn query(&self) {
        let (cluster, hear) = (self.cluster.clone(), self.hear.clone());
        let done = detached(move |snapshot| {
            hear(LockEvent::Snapshot { held: rows(&cluster, snapshot.unchecked_ref()) });
        });
        let hear = self.hear.clone();
        // The core asks again when the list does not show its own locks.
        let failed = detached(move |_| hear(LockEvent::Snapshot { held: Vec::new() }));
        if let Ok(query) = query_locks() {
            query.then(&done, &failed);
        }
    }
}

fn rows(cluster: &ClusterName, snapshot: &Snapshot) -> Vec<HeldLock> {
    let held = snapshot.held().unwrap_or_default();
    let rows = held.iter().filter_map(|row| {
        let row: &Row = row.unchecked_ref();
        let name = cluster.parse_lock(&row.name()?)?;
        Some(HeldLock { name, holder: row.client_id()? })
    });
    rows.collect()
}
