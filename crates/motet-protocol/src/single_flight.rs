//! One running call for all who want the same thing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::error::{Error, ErrorCode};

/// Names one shared call among all with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightId(u64);

/// What [`SingleFlight::join`] asks of the one who joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// Nobody asks for this yet: start the call, and end it with [`SingleFlight::finish`].
    Lead(FlightId),
    /// The call runs already; its result is yours too.
    Follow,
}

/// Callers with the same key share one call, within one core (rule E12).
///
/// `W` is whom to tell. There is no timer: the shared call settles by its own timeout, and
/// everybody with it.
///
/// ```
/// use motet_protocol::{Flight, SingleFlight};
///
/// let mut flights = SingleFlight::new(100);
/// let key = "session:7:refresh:3";
/// let Ok(Flight::Lead(flight)) = flights.join(key, "tab 1") else { panic!() };
/// assert_eq!(flights.join(key, "tab 2"), Ok(Flight::Follow));
/// assert_eq!(flights.finish(&key, flight), ["tab 1", "tab 2"]);
/// assert!(flights.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct SingleFlight<K, W> {
    max_waiting: usize,
    waiting: usize,
    next: u64,
    flights: BTreeMap<K, (FlightId, Vec<W>)>,
}

impl<K: Ord, W> SingleFlight<K, W> {
    /// No call runs. At most `max_waiting` callers wait, over all keys.
    #[must_use]
    pub const fn new(max_waiting: usize) -> Self {
        Self { max_waiting, waiting: 0, next: 0, flights: BTreeMap::new() }
    }

    /// Waits for the call with this key.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Backpressure`] when too many callers wait.
    pub fn join(&mut self, key: K, who: W) -> Result<Flight, Error> {
        if self.waiting >= self.max_waiting {
            return Err(Error::new(ErrorCode::Backpressure));
        }
        self.waiting += 1;
        match self.flights.entry(key) {
            Entry::Occupied(mut running) => {
                running.get_mut().1.push(who);
                Ok(Flight::Follow)
            }
            Entry::Vacant(free) => {
                let id = FlightId(self.next);
                self.next += 1;
                free.insert((id, vec![who]));
                Ok(Flight::Lead(id))
            }
        }
    }

    /// One caller does not want the result any more. Returns `true` when that was the last one:
    /// nobody waits for the call, which may be cancelled.
    pub fn leave(&mut self, key: &K, who: &W) -> bool
    where
        W: PartialEq,
    {
        let Some((_, waiting)) = self.flights.get_mut(key) else { return false };
        let Some(index) = waiting.iter().position(|other| other == who) else { return false };
        waiting.remove(index);
        self.waiting -= 1;
        let last = waiting.is_empty();
        if last {
            self.flights.remove(key);
        }
        last
    }

    /// A call is over, well or not. Returns all who wait for its outcome, in order of joining; the
    /// next to join starts a new call. Nobody waits for a call that everybody left, even when a
    /// newer one with the same key runs by now.
    pub fn finish(&mut self, key: &K, flight: FlightId) -> Vec<W> {
        if self.flights.get(key).is_none_or(|(running, _)| *running != flight) {
            return Vec::new();
        }
        let waiting = self.flights.remove(key).map_or_else(Vec::new, |(_, waiting)| waiting);
        self.waiting -= waiting.len();
        waiting
    }

    /// Everybody who waits, for whatever key: the core closes.
    pub fn finish_all(&mut self) -> Vec<W> {
        self.waiting = 0;
        core::mem::take(&mut self.flights).into_values().flat_map(|(_, waiting)| waiting).collect()
    }

    /// Whether no call runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(flights: &mut SingleFlight<u32, char>, key: u32, who: char) -> FlightId {
        match flights.join(key, who) {
            Ok(Flight::Lead(id)) => id,
            other => panic!("does not lead: {other:?}"),
        }
    }

    #[test]
    fn the_call_goes_on_until_its_last_caller_leaves() {
        let mut flights = SingleFlight::new(10);
        lead(&mut flights, 1, 'a');
        assert_eq!(flights.join(1, 'b'), Ok(Flight::Follow));
        assert!(!flights.leave(&1, &'a'));
        assert!(!flights.leave(&1, &'a'), "left already");
        assert!(flights.leave(&1, &'b'));
        assert!(flights.is_empty());
    }

    #[test]
    fn the_end_of_a_call_that_everybody_left_does_not_end_a_newer_one() {
        let mut flights = SingleFlight::new(10);
        let old = lead(&mut flights, 1, 'a');
        flights.leave(&1, &'a');
        let new = lead(&mut flights, 1, 'b');
        assert_eq!(flights.finish(&1, old), []);
        assert_eq!(flights.finish(&1, new), ['b']);
        assert_eq!(flights.finish(&1, new), []);
    }

    #[test]
    fn callers_are_bounded_over_all_keys_and_places_come_back() {
        let mut flights = SingleFlight::new(2);
        let first = lead(&mut flights, 1, 'a');
        lead(&mut flights, 2, 'b');
        assert_eq!(flights.join(3, 'c').unwrap_err().code, ErrorCode::Backpressure);
        flights.finish(&1, first);
        lead(&mut flights, 3, 'c');
        assert_eq!(flights.finish_all(), ['b', 'c']);
        assert!(flights.is_empty());
    }
}
