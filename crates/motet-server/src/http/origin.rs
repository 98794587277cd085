//! Which web pages may open a connection.
//!
//! A browser sends the page's origin with every WebSocket handshake and does not let the page
//! change it; anything that is no browser may send none. So an origin is checked when there is
//! one.

use std::net::IpAddr;

use super::glob::matches;

/// The origins that are admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// Those that match one of these patterns; `*` stands for any text.
    Listed(Vec<String>),
    /// Pages of this machine: nothing is configured and the server listens on loopback.
    Loopback,
    /// None: nothing is configured and the server is open to the network.
    None,
}

impl Origins {
    /// The rule for a server with this configuration and address.
    #[must_use]
    pub fn new(allowed: &[String], address: IpAddr) -> Self {
        if !allowed.is_empty() {
            Self::Listed(allowed.iter().map(|pattern| pattern.to_ascii_lowercase()).collect())
        } else if address.is_loopback() {
            Self::Loopback
        } else {
            Self::None
        }
    }

    /// Whether a page of this origin may connect.
    #[must_use]
    pub fn admit(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        match self {
            Self::Listed(patterns) => patterns.iter().any(|pattern| matches(pattern, &origin)),
            Self::Loopback => is_loopback(&origin),
            Self::None => false,
        }
    }

    /// Whether a request for this host may have what asks for no key: an API without one, and the
    /// metrics. A page whose name was
    /// made to point to this machine is of no other origin in its browser's eyes.
    #[must_use]
    pub fn admit_host(&self, host: &str) -> bool {
        *self != Self::Loopback || is_loopback(&format!("http://{}", host.to_ascii_lowercase()))
    }
}

pub(super) fn is_loopback(origin: &str) -> bool {
    let Some(host) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
    else {
        return false;
    };
    let (name, rest) = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']').unwrap_or_default(),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    if !rest.is_empty() && !rest.starts_with(':') {
        return false;
    }
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

    #[test]
    fn a_loopback_server_admits_pages_of_this_machine_only() {
        let origins = Origins::new(&[], LOOPBACK);
        for origin in
            ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:80", "http://[::1]"]
        {
            assert!(origins.admit(origin), "{origin}");
        }
        for origin in [
            "https://example.com",
            "http://localhost.example.com",
            "http://[::1].example.com",
            "http://[::1",
            "null",
            "file://",
        ] {
            assert!(!origins.admit(origin), "{origin}");
        }
    }

    #[test]
    fn a_server_on_the_network_admits_only_what_is_listed() {
        assert!(!Origins::new(&[], ANY).admit("http://localhost"));
        let listed = ["https://*.example.com".to_owned(), "http://a.test:*".to_owned()];
        let origins = Origins::new(&listed, ANY);
        assert!(origins.admit("https://app.Example.com") && origins.admit("http://a.test:81"));
        assert!(!origins.admit("https://example.com"));
        assert!(!origins.admit("https://app.example.com.evil.test"));
    }

    #[test]
    fn a_loopback_server_is_called_by_the_names_of_this_machine() {
        let origins = Origins::new(&[], LOOPBACK);
        assert!(
            ["localhost:8000", "127.0.0.1", "[::1]:8000"].iter().all(|h| origins.admit_host(h))
        );
        assert!(!["evil.test", "evil.test:8000", ""].iter().any(|h| origins.admit_host(h)));
        assert!(Origins::new(&[], ANY).admit_host("any.test"));
    }

    #[test]
    fn a_star_admits_everybody() {
        let origins = Origins::new(&["*".to_owned()], ANY);
        assert!(origins.admit("https://anything.test") && origins.admit("null"));
    }
}
