//! What a channel's name says about it.

/// Starts the name of a channel that only a subscription token opens.
const PRIVATE_PREFIX: char = '$';
/// Ends a channel's namespace.
const NAMESPACE_BOUNDARY: char = ':';
/// Starts the list of users that a channel is limited to.
const USER_BOUNDARY: char = '#';
/// Separates users in that list.
const USER_SEPARATOR: char = ',';

/// A channel's name taken apart: `$namespace:rest#user,user`, all parts but `rest` optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelName<'a> {
    /// The namespace; empty where the name has none.
    pub namespace: &'a str,
    /// Whether only a subscription token opens it.
    pub private: bool,
    /// The users it is limited to.
    users: Option<&'a str>,
}

impl<'a> ChannelName<'a> {
    /// Takes a name apart.
    #[must_use]
    pub fn parse(channel: &'a str) -> Self {
        let (name, private) =
            channel.strip_prefix(PRIVATE_PREFIX).map_or((channel, false), |name| (name, true));
        let namespace = name.split_once(NAMESPACE_BOUNDARY).map_or("", |(namespace, _)| namespace);
        let users = name.split_once(USER_BOUNDARY).map(|(_, users)| users);
        Self { namespace, private, users }
    }

    /// Whether the name limits the channel to certain users.
    #[must_use]
    pub const fn is_user_limited(&self) -> bool {
        self.users.is_some()
    }

    /// Whether the channel is limited to users and `user` is one of them.
    #[must_use]
    pub fn allows_user(&self, user: &str) -> bool {
        !user.is_empty()
            && self.users.is_some_and(|users| users.split(USER_SEPARATOR).any(|one| one == user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_ends_the_namespace_and_a_dollar_is_no_part_of_it() {
        assert_eq!(ChannelName::parse("news").namespace, "");
        assert_eq!(ChannelName::parse("chat:a:b").namespace, "chat");
        let private = ChannelName::parse("$chat:a");
        assert_eq!((private.namespace, private.private), ("chat", true));
    }

    #[test]
    fn a_hash_limits_the_channel_to_the_users_after_it() {
        let dialog = ChannelName::parse("dialog#42,43");
        assert!(dialog.allows_user("42") && dialog.allows_user("43"));
        assert!(!dialog.allows_user("4") && !dialog.allows_user(""));
        assert!(!ChannelName::parse("dialog").allows_user("42"));
    }
}
