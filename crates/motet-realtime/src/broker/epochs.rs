//! Names of streams' lives, without a memory of the streams.

use motet_protocol::Rng;

/// Length of an epoch, in letters.
const EPOCH_LENGTH: usize = 8;
/// Counters of lives. Channels that share one begin a new life together, which costs those that
/// have no stream nothing but a reset.
const COUNTERS: usize = 4_096;

/// Names the present life of every channel's stream.
///
/// The name is computed from the channel, so a stream in which nothing was published yet need not
/// be kept: whoever asks again is told the same. Only when a stream that had publications is
/// forgotten does a counter note that its next life has another name.
pub(super) struct Epochs {
    secret: [u8; 32],
    lives: Vec<u32>,
}

impl Epochs {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let mut secret = [0; 32];
        for part in secret.chunks_exact_mut(size_of::<u64>()) {
            part.copy_from_slice(&rng.u64().to_le_bytes());
        }
        Self { secret, lives: vec![0; COUNTERS] }
    }

    /// The name of the channel's present life.
    pub(super) fn of(&self, channel: &str) -> String {
        let mut seed = self.secret;
        let life = u64::from(self.lives[Self::counter(channel)]);
        for (part, word) in seed.chunks_exact_mut(size_of::<u64>()).zip([fnv(channel), life]) {
            for (byte, mix) in part.iter_mut().zip(word.to_le_bytes()) {
                *byte ^= mix;
            }
        }
        let mut rng = Rng::from_seed(seed);
        (0..EPOCH_LENGTH).map(|_| letter(&mut rng)).collect()
    }

    /// The channel's stream is forgotten: its next life has another name.
    pub(super) fn end(&mut self, channel: &str) {
        let life = &mut self.lives[Self::counter(channel)];
        *life = life.wrapping_add(1);
    }

    fn counter(channel: &str) -> usize {
        usize::try_from(fnv(channel) % COUNTERS as u64).expect("below the number of counters")
    }
}

fn letter(rng: &mut Rng) -> char {
    let index = rng.below(52);
    let base = if index < 26 { b'a' } else { b'A' };
    char::from(base + u8::try_from(index % 26).expect("below 26"))
}

/// FNV-1a.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_keeps_its_name_until_it_ends_and_every_server_has_names_of_its_own() {
        let mut epochs = Epochs::new(&mut Rng::from_seed([1; 32]));
        let first = epochs.of("a");
        assert_eq!(epochs.of("a"), first);
        assert_ne!(epochs.of("b"), first);
        epochs.end("a");
        assert_ne!(epochs.of("a"), first);
        assert_ne!(Epochs::new(&mut Rng::from_seed([2; 32])).of("a"), first);
    }
}
