//! Seeds for the cores' generators, from the platform's cryptographic source.
//!
//! `getRandomValues` is there in insecure contexts too, where `randomUUID` and `subtle` are not.

use js_sys::Uint8Array;
use motet_protocol::Rng;

use crate::platform::fill_random;

/// A generator that nobody can foresee.
pub(crate) fn random_generator() -> Rng {
    let mut seed = [0; 32];
    fill_random(&Uint8Array::new_with_length(32)).copy_to(&mut seed);
    Rng::from_seed(seed)
}
