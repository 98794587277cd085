//! The browser's monotonic clock as the cores see it.

use motet_protocol::Instant;

use crate::platform::performance_now;

/// Now, in microseconds since this context began.
pub(crate) fn now() -> Instant {
    Instant::from_micros((performance_now() * 1_000.0) as u64)
}
