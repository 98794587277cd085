//! Tokens: JSON Web Tokens that say who connects and who may subscribe.

mod claims;
mod issue;
mod jwks;
mod keys;
mod verifier;

pub use issue::{TokenRequest, issue};
pub use keys::{KeyError, KeyFault};
pub use verifier::Verifier;
