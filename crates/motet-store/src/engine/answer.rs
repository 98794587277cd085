//! What an engine answers: at once, or later.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A future that an engine with everything at hand answers without an allocation or a second poll.
///
/// LMDB and the memory engine have every answer [now](Answer::now); a browser's IndexedDB and
/// PostgreSQL have it [later](Answer::later). It is driven on the thread that asked, so it need not
/// be `Send`.
pub struct Answer<'a, T>(State<'a, T>);

enum State<'a, T> {
    Now(Option<T>),
    Later(Pin<Box<dyn Future<Output = T> + 'a>>),
}

impl<'a, T> Answer<'a, T> {
    /// The answer is there.
    pub const fn now(answer: T) -> Self {
        Self(State::Now(Some(answer)))
    }

    /// The answer comes when this future is done.
    pub fn later(answer: impl Future<Output = T> + 'a) -> Self {
        Self(State::Later(Box::pin(answer)))
    }
}

// Nothing borrows from the value of `Now`, and `Later` is pinned in its own box.
impl<T> Unpin for Answer<'_, T> {}

impl<T> Future for Answer<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            State::Now(answer) => {
                Poll::Ready(answer.take().expect("an answer is not polled after it was given"))
            }
            State::Later(answer) => answer.as_mut().poll(context),
        }
    }
}
