//! `one-coordinator`: of all nodes that have not been fenced, at most one acts in an epoch, and
//! epochs only grow.

use std::collections::HashMap;

use motet_cluster::frame::{Frame, ToPage};
use motet_cluster::node::{NodePacket, ToPagePacket};
use motet_protocol::{Fence, NodeId};

use super::Verdict;

/// Who acted as coordinator, and what everybody knew of it.
#[derive(Debug, Default)]
pub(crate) struct Coordinators {
    acted: HashMap<Fence, NodeId>,
    /// The highest fence that a node has handled a coordinator's frame of.
    heard: HashMap<NodeId, Fence>,
    /// The last fence under which a node acted itself.
    own: HashMap<NodeId, Fence>,
    /// The term that a node held when it was told that its lock is another's.
    deposed: HashMap<NodeId, Fence>,
    /// The highest fence that a node has told a page to follow.
    told: HashMap<NodeId, Fence>,
    /// Who acted last, under which fence, and when.
    pub(crate) last: Option<(NodeId, Fence, u64)>,
    /// When a coordinator last acted under another fence than before.
    pub(crate) changed_at: u64,
    /// Who beat, and when last.
    pub(crate) beats: HashMap<NodeId, u64>,
}

/// The authority of a coordinator's frame.
fn authority(frame: &Frame) -> Option<Fence> {
    match frame {
        Frame::Claim { fence, .. }
        | Frame::Members { fence, .. }
        | Frame::Assign { fence, .. }
        | Frame::Beat { fence } => Some(*fence),
        _ => None,
    }
}

impl Coordinators {
    pub(crate) fn posts(&mut self, node: NodeId, packet: &NodePacket<u64>, at: u64) -> Verdict {
        for frame in &packet.frames {
            let Some(fence) = authority(frame) else { continue };
            let fails = |text: String| Err(("one-coordinator", text));
            let first = *self.acted.entry(fence).or_insert(node);
            if first != node {
                return fails(format!("{first} and {node} both act under {fence:?}: {frame:?}"));
            }
            if let Some(heard) = self.heard.get(&node).filter(|heard| **heard > fence) {
                return fails(format!(
                    "{node} acts under {fence:?} and knows of {heard:?}: {frame:?}"
                ));
            }
            let own = self.own.entry(node).or_insert(fence);
            if *own > fence {
                return fails(format!("{node} acts under {fence:?} after {own:?}: {frame:?}"));
            }
            *own = fence;
            if self.deposed.get(&node) == Some(&fence) {
                return fails(format!("{node} acts under {fence:?} without its lock: {frame:?}"));
            }
            if self.last.is_none_or(|(_, last, _)| last != fence) {
                self.changed_at = at;
            }
            self.last = Some((node, fence, at));
            if matches!(frame, Frame::Beat { .. }) {
                self.beats.insert(node, at);
            }
        }
        Ok(())
    }

    /// A node that follows somebody never goes back to an older coordinator.
    pub(crate) fn tells(&mut self, node: NodeId, packet: &ToPagePacket<u64>) -> Verdict {
        for frame in &packet.frames {
            let ToPage::Coordinator { node: Some(followed), fence } = frame else { continue };
            let told = self.told.entry(node).or_insert(*fence);
            if *told > *fence {
                let text = format!("{node} follows {followed} under {fence:?} after {told:?}");
                return Err(("one-coordinator", text));
            }
            *told = *fence;
        }
        Ok(())
    }

    pub(crate) fn hears(&mut self, node: NodeId, packet: &NodePacket<u64>) {
        for fence in packet.frames.iter().filter_map(authority) {
            let heard = self.heard.entry(node).or_insert(fence);
            *heard = fence.max(*heard);
        }
    }

    /// A node is about to be told that it has lost the lock it governs by.
    pub(crate) fn deposed(&mut self, node: NodeId, term: Fence) {
        self.deposed.insert(node, term);
    }

    pub(crate) fn node_ended(&mut self, node: NodeId) {
        self.deposed.remove(&node);
        self.heard.remove(&node);
        self.own.remove(&node);
        self.told.remove(&node);
        self.beats.remove(&node);
    }
}
