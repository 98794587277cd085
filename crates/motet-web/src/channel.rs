//! Broadcast channels.

use wasm_bindgen::prelude::*;
use web_sys::{BroadcastChannel, MessageEvent};

use crate::platform::Callback;

/// An open channel; closed when dropped.
pub(crate) struct Channel {
    channel: BroadcastChannel,
    _listener: Option<Callback>,
}

impl Channel {
    /// A channel for posting.
    ///
    /// # Errors
    ///
    /// What the browser threw: channels are refused in some sandboxed frames.
    pub(crate) fn open(name: &str) -> Result<Self, JsValue> {
        Ok(Self { channel: BroadcastChannel::new(name)?, _listener: None })
    }

    /// A channel whose messages are handed to `listener`. Its own posts do not come back.
    ///
    /// # Errors
    ///
    /// As for [`Channel::open`].
    pub(crate) fn listen(
        name: &str,
        listener: impl Fn(JsValue) + 'static,
    ) -> Result<Self, JsValue> {
        Self::hearing(name, on_message(listener))
    }

    /// A channel for posting that also tells when others post on it; what they post is not read.
    ///
    /// # Errors
    ///
    /// As for [`Channel::open`].
    #[cfg(feature = "node")]
    pub(crate) fn overhear(name: &str, heard: impl Fn() + 'static) -> Result<Self, JsValue> {
        Self::hearing(name, Callback::new(move |_| heard()))
    }

    fn hearing(name: &str, listener: Callback) -> Result<Self, JsValue> {
        let channel = BroadcastChannel::new(name)?;
        channel.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        // What cannot be read is no packet: the listener counts it.
        channel.set_onmessageerror(Some(listener.as_ref().unchecked_ref()));
        Ok(Self { channel, _listener: Some(listener) })
    }

    /// Posts to everybody else who listens.
    ///
    /// # Errors
    ///
    /// What the browser threw: a payload that cannot be copied.
    pub(crate) fn post(&self, message: &JsValue) -> Result<(), JsValue> {
        self.channel.post_message(message)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.channel.set_onmessage(None);
        self.channel.set_onmessageerror(None);
        self.channel.close();
    }
}

/// A listener for message events of channels and ports that hands on what was posted.
pub(crate) fn on_message(listener: impl Fn(JsValue) + 'static) -> Callback {
    Callback::new(move |event: JsValue| listener(event.unchecked_into::<MessageEvent>().data()))
}
