//! Recognising what was seen before: messages by id, operations by idempotency key.
//!
//! Both measure age in the receiver's waking time (see [`crate::AwakeClock`]): what a frozen
//! receiver knew when it fell asleep, it still knows when the repeats reach it after the thaw.

mod operations;
mod window;

pub use operations::{Admission, Operation, OperationLimits, OperationStore, Running, WhenFull};
pub use window::MessageWindow;
