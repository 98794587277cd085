//! Real clients against a real hub over links that are slow, break and come back, through the real
//! codecs, in simulated time.

mod churn;
mod delivery;
mod publishing;
mod tokens;
mod world;
