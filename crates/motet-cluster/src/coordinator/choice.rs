//! Which node should own a topic: a pure function of the table.

use core::cmp::Reverse;

use motet_protocol::NodeId;

use crate::table::{Member, TransportStatus};

/// A node that could own a topic, and how many it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) member: Member,
    pub(crate) load: u32,
}

/// Nodes in order of preference with their loads; the first with the least load is chosen.
///
/// Owners count against `active_max` first: a new node becomes an owner only while fewer than that
/// own topics. Ties go to connection state, visibility, registration order, then id.
pub(crate) fn rank(mut candidates: Vec<Candidate>, active_max: u32) -> Vec<Candidate> {
    let errored = |c: &Candidate| c.member.transport == TransportStatus::Errored;
    candidates.sort_by_key(|c| (errored(c), !c.member.visible, c.member.order, c.member.node));
    let mut free =
        (active_max as usize).saturating_sub(candidates.iter().filter(|c| c.load > 0).count());
    let some_work = candidates.iter().any(|c| !errored(c));
    let some_visible = candidates.iter().any(|c| c.member.visible && !(some_work && errored(c)));
    let preferred =
        |c: &Candidate| !(some_work && errored(c)) && (c.member.visible || !some_visible);
    let mut ranked = Vec::new();
    for candidate in candidates.iter().filter(|c| preferred(c)) {
        if candidate.load > 0 {
            ranked.push(candidate.clone());
        } else if free > 0 {
            free -= 1;
            ranked.push(candidate.clone());
        }
    }
    if ranked.is_empty() {
        // Every place is taken by owners that are hidden or errored: one of them must do.
        ranked.extend(candidates.into_iter().filter(|c| c.load > 0));
    }
    ranked
}

/// The owner among ranked candidates: the least loaded, the first of equals.
pub(crate) fn choose(ranked: &[Candidate]) -> Option<NodeId> {
    ranked.iter().min_by_key(|candidate| candidate.load).map(|candidate| candidate.member.node)
}

/// The owner that should hand over, when more own topics than `active_max`, and those that keep
/// theirs.
///
/// Such owners are left when two lives of a cluster meet, for a route that stands is kept. The one
/// that goes is the worst: errored, hidden, with fewest topics, registered last.
pub(crate) fn one_too_many(
    mut candidates: Vec<Candidate>,
    active_max: u32,
) -> Option<(NodeId, Vec<Candidate>)> {
    candidates.retain(|candidate| candidate.load > 0);
    if candidates.len() <= active_max.max(1) as usize {
        return None;
    }
    let errored = |c: &Candidate| c.member.transport == TransportStatus::Errored;
    candidates.sort_by_key(|c| {
        (errored(c), !c.member.visible, Reverse(c.load), c.member.order, c.member.node)
    });
    let goes = candidates.pop()?;
    candidates.truncate(active_max.max(1) as usize);
    Some((goes.member.node, candidates))
}

#[cfg(test)]
mod tests {
    use motet_protocol::TabId;

    use super::*;

    fn candidate(node: u64, load: u32) -> Candidate {
        let member = Member {
            node: NodeId::from_bits(node),
            tab: TabId::from_bits(node),
            order: node,
            visible: true,
            transport: TransportStatus::Idle,
            leaving: false,
            idempotent: false,
        };
        Candidate { member, load }
    }

    fn chosen(candidates: Vec<Candidate>, active_max: u32) -> Option<u64> {
        choose(&rank(candidates, active_max)).map(NodeId::bits)
    }

    #[test]
    fn the_least_loaded_is_chosen_and_registration_order_breaks_ties() {
        assert_eq!(chosen(vec![candidate(1, 2), candidate(2, 1), candidate(3, 1)], 3), Some(2));
        assert_eq!(chosen(vec![candidate(3, 0), candidate(1, 0), candidate(2, 0)], 3), Some(1));
        assert_eq!(chosen(vec![], 3), None);
    }

    #[test]
    fn no_more_than_the_allowed_number_of_nodes_become_owners() {
        let nodes = || vec![candidate(1, 5), candidate(2, 5), candidate(3, 5), candidate(4, 0)];
        assert_eq!(chosen(nodes(), 3), Some(1));
        assert_eq!(chosen(nodes(), 4), Some(4));
    }

    #[test]
    fn a_hidden_or_errored_node_is_chosen_only_when_no_better_one_is_there() {
        let mut hidden = candidate(1, 0);
        hidden.member.visible = false;
        let mut errored = candidate(2, 0);
        errored.member.transport = TransportStatus::Errored;
        assert_eq!(chosen(vec![hidden.clone(), errored.clone(), candidate(3, 9)], 3), Some(3));
        assert_eq!(chosen(vec![hidden.clone(), errored.clone()], 3), Some(1));
        assert_eq!(chosen(vec![errored.clone()], 3), Some(2));
    }

    #[test]
    fn of_too_many_owners_the_one_with_fewest_topics_goes_but_a_hidden_one_first() {
        let goes = |candidates, max| one_too_many(candidates, max).map(|(node, _)| node.bits());
        let owners = || vec![candidate(1, 2), candidate(2, 1), candidate(3, 1), candidate(4, 0)];
        assert_eq!(goes(owners(), 3), None);
        assert_eq!(goes(owners(), 2), Some(3));
        let mut hidden = owners();
        hidden[0].member.visible = false;
        assert_eq!(goes(hidden, 2), Some(1));
        let (_, stay) = one_too_many(owners(), 1).expect("too many");
        assert_eq!(stay, [candidate(1, 2)], "the next to go inherits nothing");
        assert_eq!(goes(vec![candidate(1, 1)], 0), None, "somebody must own what is wanted");
    }

    #[test]
    fn hidden_owners_still_count_against_the_limit() {
        let mut owner = candidate(1, 3);
        owner.member.visible = false;
        assert_eq!(chosen(vec![owner, candidate(2, 0)], 1), Some(1));
    }
}
