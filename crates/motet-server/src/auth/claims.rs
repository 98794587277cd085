//! The claims of tokens as they are written in JSON, and what the hub makes of them.

use core::time::Duration;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use motet_realtime::server::{
    ConnectionClaims, ServerSubscription, SubscriptionClaims, SubscriptionOverride, TokenError,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Claims of both kinds of tokens; which ones are there tells the kind.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(default)]
    sub: String,
    exp: Option<f64>,
    /// Seconds since 1970 until which the connection or subscription lasts, whatever `exp` says;
    /// 0 for ever.
    expire_at: Option<u64>,
    iat: Option<f64>,
    info: Option<Box<RawValue>>,
    b64info: Option<String>,
    channels: Option<Vec<String>>,
    subs: Option<BTreeMap<String, SubClaims>>,
    channel: Option<String>,
    client: Option<String>,
    r#override: Option<OverrideClaims>,
}

#[derive(Debug, Default, Deserialize)]
struct SubClaims {
    info: Option<Box<RawValue>>,
    b64info: Option<String>,
    data: Option<Box<RawValue>>,
    b64data: Option<String>,
    r#override: Option<OverrideClaims>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct OverrideClaims {
    presence: Option<Switch>,
    join_leave: Option<Switch>,
    force_push_join_leave: Option<Switch>,
    force_recovery: Option<Switch>,
    force_positioning: Option<Switch>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Switch {
    value: bool,
}

impl Claims {
    /// When the token was issued, seconds since 1970.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, and no issue time is beyond u64"
    )]
    pub(super) fn issued_at(&self) -> Option<u64> {
        self.iat.map(|at| at as u64)
    }

    pub(super) fn connection(self, now: Duration) -> Result<ConnectionClaims<Bytes>, TokenError> {
        if self.channel.is_some() {
            return Err(TokenError::Invalid);
        }
        let expires_in = self.expires_in(now)?;
        let mut subs = BTreeMap::new();
        for channel in self.channels.into_iter().flatten() {
            subs.insert(channel, ServerSubscription::default());
        }
        for (channel, sub) in self.subs.into_iter().flatten() {
            let sub = ServerSubscription {
                info: payload(sub.info, sub.b64info)?,
                data: payload(sub.data, sub.b64data)?,
                overrides: sub.r#override.unwrap_or_default().into(),
            };
            subs.insert(channel, sub);
        }
        let info = payload(self.info, self.b64info)?;
        Ok(ConnectionClaims { user: self.sub, expires_in, info, subs })
    }

    pub(super) fn subscription(
        self,
        now: Duration,
    ) -> Result<SubscriptionClaims<Bytes>, TokenError> {
        let expires_in = self.expires_in(now)?;
        Ok(SubscriptionClaims {
            user: self.sub,
            channel: self.channel.filter(|c| !c.is_empty()).ok_or(TokenError::Invalid)?,
            client: self.client.filter(|client| !client.is_empty()),
            expires_in,
            info: payload(self.info, self.b64info)?,
            overrides: self.r#override.unwrap_or_default().into(),
        })
    }

    /// How long the token's subject lasts. A token past its `exp` is refused whatever `expire_at`
    /// says.
    fn expires_in(&self, now: Duration) -> Result<Option<Duration>, TokenError> {
        let left = |at: Duration| {
            at.checked_sub(now).filter(|left| !left.is_zero()).ok_or(TokenError::Expired)
        };
        let by_exp = match self.exp {
            None => None,
            Some(exp) => {
                let at = Duration::try_from_secs_f64(exp).map_err(|_| TokenError::Invalid)?;
                Some(left(at)?)
            }
        };
        match self.expire_at {
            None => Ok(by_exp),
            Some(0) => Ok(None),
            Some(at) => left(Duration::from_secs(at)).map(Some),
        }
    }
}

impl From<OverrideClaims> for SubscriptionOverride {
    fn from(claims: OverrideClaims) -> Self {
        let value = |switch: Option<Switch>| switch.map(|switch| switch.value);
        Self {
            presence: value(claims.presence),
            join_leave: value(claims.join_leave),
            force_push_join_leave: value(claims.force_push_join_leave),
            force_recovery: value(claims.force_recovery),
            force_positioning: value(claims.force_positioning),
        }
    }
}

/// A payload given as embedded JSON or in base64; the latter wins.
fn payload(
    json: Option<Box<RawValue>>,
    base64: Option<String>,
) -> Result<Option<Bytes>, TokenError> {
    if let Some(base64) = base64.filter(|text| !text.is_empty()) {
        let bytes = STANDARD.decode(base64).map_err(|_| TokenError::Invalid)?;
        return Ok(Some(Bytes::from(bytes)));
    }
    let json = json.filter(|json| json.get() != "null");
    Ok(json.map(|json| Bytes::from(json.get().as_bytes().to_vec())))
}
