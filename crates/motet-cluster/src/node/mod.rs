//! One member of the cluster.

mod api;

pub use api::{
    Identity, NodeConfig, NodeEvent, NodeInput, NodeOutput, NodePacket, ToNodePacket, ToPagePacket,
};
