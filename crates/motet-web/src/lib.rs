//! The browser drivers: they connect the sans-IO cores to channels, ports, Web Locks, timers and
//! sockets. The only crate that names the browser's interfaces.
//!
//! One crate, two WebAssembly modules, chosen by feature. `page` is a page's handle on the bus:
//! it delivers messages to handlers. `node` is a cluster member and its server connection; it runs
//! in a dedicated worker, a SharedWorker, or, where there is neither, in the page itself.
//!
//! Payloads stay JavaScript values from end to end; only the frames beside them are bytes.
//! On other targets than WebAssembly the crate is empty.

#![forbid(unsafe_code)]
#![cfg(target_arch = "wasm32")]

mod channel;
mod clock;
#[cfg(feature = "page")]
mod error_object;
pub mod lock;
mod platform;
mod post;
mod seed;
mod timer;

#[cfg(feature = "node")]
pub mod node;
#[cfg(feature = "page")]
pub mod page;

/// A fifth of the size of the allocator that the standard library brings.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();
