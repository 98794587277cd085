//! The cross-tab data bus as sans-IO cores.
//!
//! A [`node::Node`] is one cluster member and runs in a worker. A [`client`] is one page's handle.
//! Exactly one node is coordinator: it holds the coordinator lock, keeps members and routes, and
//! numbers every decision. Each topic has one owner, the only node with a server subscription for
//! it; what the owner receives it posts on the topic's data channel, straight to the pages. A page
//! that misses something (first subscription, owner change, hole, thaw) asks the owner with one
//! kind of question: [`frame::JoinFrame`].
//!
//! Drivers do the I/O: they hand inputs to `handle`, drain `poll_output`, and call again with a
//! tick at `next_timeout`.

#![forbid(unsafe_code)]

pub mod client;
pub mod compact;
mod coordinator;
pub mod frame;
pub mod lock;
pub mod name;
pub mod node;
mod owner;
mod packet;
mod replica;
pub mod table;

pub use name::ClusterName;
pub use packet::{PACKET_BYTES_MAX, PACKET_PAYLOADS_MAX, Packet, PacketError};
