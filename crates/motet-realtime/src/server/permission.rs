//! Who may do what in which channel.

use super::{Allow, ChannelName, Namespace};

/// A right that a namespace grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Publish,
    Presence,
    History,
}

impl Right {
    /// Whether a user has this right in a channel.
    pub(crate) fn granted(self, namespace: &Namespace, user: &str, subscribed: bool) -> bool {
        let allow = match self {
            Self::Publish => namespace.publish,
            Self::Presence => namespace.presence_right,
            Self::History => namespace.history_right,
        };
        granted(allow, user, subscribed)
    }
}

/// Whether a user may subscribe to a channel without a token.
pub(crate) fn may_subscribe(namespace: &Namespace, name: &ChannelName<'_>, user: &str) -> bool {
    if name.private {
        return false;
    }
    if name.is_user_limited() {
        return namespace.allow_user_limited_channels && name.allows_user(user);
    }
    granted(namespace.subscribe, user, false)
}

fn granted(allow: Allow, user: &str, subscribed: bool) -> bool {
    if subscribed && allow.subscriber {
        return true;
    }
    allow.client && (!user.is_empty() || allow.anonymous)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(client: bool, anonymous: bool, subscriber: bool) -> Namespace {
        let allow = Allow { client, anonymous, subscriber };
        Namespace { subscribe: allow, publish: allow, ..Namespace::default() }
    }

    #[test]
    fn nothing_is_allowed_unless_a_namespace_grants_it() {
        let namespace = Namespace::default();
        assert!(!may_subscribe(&namespace, &ChannelName::parse("a"), "42"));
        assert!(!Right::Publish.granted(&namespace, "42", true));
    }

    #[test]
    fn anonymous_users_need_their_own_grant() {
        let name = ChannelName::parse("a");
        assert!(may_subscribe(&namespace(true, false, false), &name, "42"));
        assert!(!may_subscribe(&namespace(true, false, false), &name, ""));
        assert!(may_subscribe(&namespace(true, true, false), &name, ""));
    }

    #[test]
    fn a_subscriber_right_counts_only_while_subscribed() {
        let namespace = namespace(false, false, true);
        assert!(Right::Publish.granted(&namespace, "42", true));
        assert!(!Right::Publish.granted(&namespace, "42", false));
    }

    #[test]
    fn a_private_channel_is_never_open_without_a_token() {
        assert!(!may_subscribe(&namespace(true, true, true), &ChannelName::parse("$a"), "42"));
    }

    #[test]
    fn a_user_limited_channel_is_open_to_its_users_alone() {
        let limited =
            Namespace { allow_user_limited_channels: true, ..namespace(true, true, true) };
        assert!(may_subscribe(&limited, &ChannelName::parse("d#1,2"), "2"));
        assert!(!may_subscribe(&limited, &ChannelName::parse("d#1,2"), "3"));
        assert!(!may_subscribe(&namespace(true, true, true), &ChannelName::parse("d#1,2"), "2"));
    }
}
