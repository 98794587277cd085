//! `one-owner`: for a fence exactly one node broadcasts, never one that could know better, and no
//! topic is subscribed twice at the server outside crash and pagehide.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use motet_cluster::frame::Frame;
use motet_cluster::node::NodePacket;
use motet_cluster::table::Route;
use motet_protocol::{NodeId, RouteFence};

use super::Verdict;
use crate::setup::Topic;
use crate::world::context::ContextId;

/// What a node has been told about a topic that is not its own.
#[derive(Clone, Copy, Debug)]
struct Told {
    fence: RouteFence,
    /// It hands the topic over and has not said Released yet.
    releasing: bool,
}

/// Who broadcast, what they knew, and who is subscribed at the server.
#[derive(Debug)]
pub(crate) struct Owners {
    topics: Vec<String>,
    broadcast: HashMap<(usize, RouteFence), NodeId>,
    told: HashMap<(NodeId, usize), Told>,
    nodes: BTreeMap<NodeId, ContextId>,
    /// Nodes that slept and have heard from no coordinator since.
    woken: BTreeSet<NodeId>,
    /// Nodes that said that they leave.
    leaving: BTreeSet<NodeId>,
}

impl Owners {
    pub(crate) fn new(topics: &[Topic]) -> Self {
        Self {
            topics: topics.iter().map(|topic| topic.name.clone()).collect(),
            broadcast: HashMap::new(),
            told: HashMap::new(),
            nodes: BTreeMap::new(),
            woken: BTreeSet::new(),
            leaving: BTreeSet::new(),
        }
    }

    fn topic(&self, name: &str) -> Option<usize> {
        self.topics.iter().position(|topic| topic == name)
    }

    pub(crate) fn node_started(&mut self, node: NodeId, context: ContextId) {
        self.nodes.insert(node, context);
    }

    pub(crate) fn node_ended(&mut self, node: NodeId) {
        self.nodes.remove(&node);
        self.woken.remove(&node);
        self.told.retain(|(told, _), _| *told != node);
    }

    /// A node goes on after a sleep that it must have noticed.
    pub(crate) fn woke(&mut self, node: NodeId) {
        self.woken.insert(node);
    }

    /// The lock manager has told a node what is held: a coordinator knows where it stands.
    pub(crate) fn knows_locks(&mut self, node: NodeId) {
        self.woken.remove(&node);
    }

    /// A page said that its node is gone.
    pub(crate) fn left(&mut self, node: NodeId) {
        self.leaving.insert(node);
    }

    /// Whether a node said that it leaves, or its page did.
    pub(crate) fn leaves(&self, node: NodeId) -> bool {
        self.leaving.contains(&node)
    }

    /// The context of a node that lives.
    pub(crate) fn context_of(&self, node: NodeId) -> Option<ContextId> {
        self.nodes.get(&node).copied()
    }

    /// Nodes that live.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, ContextId)> {
        self.nodes.iter().map(|(node, context)| (*node, *context))
    }

    pub(crate) fn posts(&mut self, node: NodeId, packet: &NodePacket<u64>) -> Verdict {
        for frame in &packet.frames {
            match frame {
                Frame::Data { topic, fence, .. } | Frame::Head { topic, fence, .. } => {
                    self.broadcasts(node, topic, *fence)?;
                }
                Frame::Assign { routes, .. } => self.learns(node, routes),
                Frame::Leaving { node: leaving, .. } => {
                    self.leaving.insert(*leaving);
                }
                Frame::Report { member, .. } if member.leaving => {
                    self.leaving.insert(node);
                }
                Frame::Released { topic, .. } => {
                    if let Some(topic) = self.topic(topic)
                        && let Some(told) = self.told.get_mut(&(node, topic))
                    {
                        told.releasing = false;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn broadcasts(&mut self, node: NodeId, topic: &str, fence: RouteFence) -> Verdict {
        let Some(topic) = self.topic(topic) else { return Ok(()) };
        let first = *self.broadcast.entry((topic, fence)).or_insert(node);
        let fails = |text: String| Err(("one-owner", text));
        if self.woken.contains(&node) {
            return fails(format!("{node} slept and broadcasts topic {topic} before it asked"));
        }
        if first != node {
            return fails(format!(
                "{first} and {node} both broadcast topic {topic} under {fence:?}"
            ));
        }
        match self.told.get(&(node, topic)) {
            Some(told) if !told.releasing && told.fence > fence => fails(format!(
                "{node} broadcasts topic {topic} under {fence:?} and was told of {:?}",
                told.fence
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn hears(&mut self, node: NodeId, packet: &NodePacket<u64>) {
        for frame in &packet.frames {
            match frame {
                Frame::Assign { routes, .. } => {
                    self.woken.remove(&node);
                    self.learns(node, routes);
                }
                Frame::Members { .. } | Frame::Claim { .. } => {
                    self.woken.remove(&node);
                }
                _ => {}
            }
        }
    }

    fn learns(&mut self, node: NodeId, routes: &[Route]) {
        for route in routes {
            let Some(topic) = self.topic(&route.topic) else { continue };
            let known = self.told.get(&(node, topic)).map(|told| told.fence);
            if route.owner != node && known.is_none_or(|known| route.fence > known) {
                let releasing = route.handoff_from == Some(node);
                self.told.insert((node, topic), Told { fence: route.fence, releasing });
            }
        }
    }
}
