//! JSON values: their total order, dotted paths into them, and index keys that sort as they do.
//!
//! Values nest as deep as `serde_json` reads them, 128 levels; comparing and encoding follow the
//! nesting.

mod encode;
mod number;
mod order;
mod path;

pub use encode::{
    Direction, Encoded, VALUE_BYTES_MAX, VALUE_PREFIX_BYTES, class_bytes, encode, successor,
};
pub use order::{Class, compare, equal};
pub use path::{PATH_BYTES_MAX, PATH_STEPS_MAX, Path};

pub(crate) use number::remainder;
