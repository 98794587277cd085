//! Any interleaving of posts, answers and route changes, with loss: what handlers see is in order,
//! without repeats, and without a hole that no gap covers (B10, `ordered-once`).
