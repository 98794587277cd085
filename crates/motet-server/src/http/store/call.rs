//! A call that is allowed, and the way from it to the store.

use core::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use motet_protocol::ErrorCode;
use motet_store::{Clock, Env, Error, Write};
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;
use tracing::error;

use super::StoreApi;
use super::access::Permission;
use super::failure::Failure;
use super::idempotency::Once;
use super::request::Attended;

/// What a handler needs to be allowed to.
pub(super) trait Needs: Send + 'static {
    /// The permission.
    const PERMISSION: Permission;
}

/// A handler that reads.
pub(super) struct Reads;
/// A handler that changes documents.
pub(super) struct Writes;
/// A handler that changes what the environment is.
pub(super) struct Administers;

impl Needs for Reads {
    const PERMISSION: Permission = Permission::Read;
}

impl Needs for Writes {
    const PERMISSION: Permission = Permission::Write;
}

impl Needs for Administers {
    const PERMISSION: Permission = Permission::Admin;
}

/// A call by somebody who may make it. There is no other way to an environment.
pub(super) struct Call<N> {
    api: Arc<StoreApi>,
    environment: String,
    /// The name that the caller goes by.
    caller: String,
    attended: Attended,
    needs: PhantomData<N>,
}

impl<N: Needs> FromRequestParts<Arc<StoreApi>> for Call<N> {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Arc<StoreApi>,
    ) -> Result<Self, Self::Rejection> {
        let environment = environment(parts, api).await?;
        let caller = api.admit(&parts.headers, Some(&environment), N::PERMISSION)?.to_owned();
        let attended =
            parts.extensions.get::<Attended>().expect("every route of the store is attended");
        let attended = attended.clone();
        Ok(Self { api: Arc::clone(api), environment, caller, attended, needs: PhantomData })
    }
}

async fn environment(parts: &mut Parts, api: &Arc<StoreApi>) -> Result<String, Failure> {
    let params = RawPathParams::from_request_parts(parts, api)
        .await
        .map_err(|rejected| Failure::invalid("path", rejected.body_text()))?;
    let environment = params.iter().find(|(name, _)| *name == "env").map(|(_, value)| value);
    Ok(environment.unwrap_or_default().to_owned())
}

impl<N> Call<N> {
    pub(super) fn environment(&self) -> &str {
        &self.environment
    }

    pub(super) fn api(&self) -> &StoreApi {
        &self.api
    }

    /// Does something with the environment, on a thread that may wait for it.
    async fn run<T: Send + 'static>(
        self,
        late: ErrorCode,
        work: impl FnOnce(&StoreApi, &str) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let Self { api, environment, attended, .. } = self;
        let deadline = attended.deadline;
        let slot = timeout_at(deadline, Arc::clone(&api.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            let message = "too many calls work on the store; this one was not begun";
            return Err(Failure::because(ErrorCode::ResourceBusy, message));
        };
        let room = attended.take_room();
        let work = spawn_blocking(move || {
            api.metrics.store.calls.inc();
            let done = work(&api, &environment);
            api.metrics.store.calls.dec();
            // Whoever asked may have gone; the place is taken until the work is done, and so is the
            // room of what it works with.
            drop((slot, room));
            done
        });
        match timeout_at(deadline, work).await {
            Ok(Ok(done)) => done,
            Ok(Err(cause)) => {
                error!(%cause, "a call of the store panicked");
                Err(Failure::new(ErrorCode::ServerInternal))
            }
            Err(_) => Err(Failure::new(late)),
        }
    }
}

impl Call<Reads> {
    /// Reads from the environment, which has to be there.
    pub(super) async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce(&Env) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.run(ErrorCode::RequestTimeout, |api, name| read(&api.existing(name)?)).await
    }
}

impl Call<Writes> {
    /// Does these writes, all or none, in the environment, which is made where there is none.
    pub(super) async fn write(self, once: Once, writes: Vec<Write>) -> Result<Vec<Clock>, Failure> {
        let key = once.key(&self.caller);
        self.run(ErrorCode::OutcomeUnknown, move |api, name| {
            let env = api.env(name)?;
            let begun = Instant::now();
            let written = match key {
                None => env.write_all(writes)?,
                Some(key) => env.write_once(&key, writes)?,
            };
            api.metrics.store.committed(begun.elapsed());
            Ok(written)
        })
        .await
    }
}

impl Call<Administers> {
    /// Changes the environment, which is made where there is none.
    pub(super) async fn change<T: Send + 'static>(
        self,
        change: impl FnOnce(&Env) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        self.run(ErrorCode::OutcomeUnknown, |api, name| Ok(change(&api.env(name)?)?)).await
    }

    /// Does something with an environment that has to be there.
    pub(super) async fn with_existing<T: Send + 'static>(
        self,
        work: impl FnOnce(&StoreApi, &Env) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.run(ErrorCode::OutcomeUnknown, |api, name| work(api, &api.existing(name)?)).await
    }
}

impl StoreApi {
    fn existing(&self, name: &str) -> Result<Env, Failure> {
        self.store.existing_env(name)?.ok_or_else(|| {
            let message = format!("there is no environment {name:?}");
            Failure::because(ErrorCode::EnvironmentNotFound, message)
        })
    }

    /// The environment, made if there is none and there may be one more.
    fn env(&self, name: &str) -> Result<Env, Failure> {
        if let Some(env) = self.store.existing_env(name)? {
            return Ok(env);
        }
        if self.store.environments()?.len() >= self.keys.environments_max {
            return Err(Failure::new(ErrorCode::EnvironmentsFull));
        }
        Ok(self.store.env(name)?)
    }
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};
    use core::time::Duration;
    use std::sync::mpsc;

    use super::*;
    use crate::config::Config;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn a_body_has_its_room_until_the_work_is_done_though_its_sender_has_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config::default();
        config.store.path = folder.path().display().to_string();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let api = StoreApi::open(&config, address, &Arc::new(Metrics::new()));
        let api = api.expect("opened").expect("configured");
        let all = api.body_room.available_permits();

        let attended = Attended::until(tokio::time::Instant::now() + Duration::from_secs(60));
        let room = Arc::clone(&api.body_room).try_acquire_many_owned(100);
        attended.keep_room(room.expect("there is room"));
        let call = Call {
            api: Arc::clone(&api),
            environment: "default".into(),
            caller: String::new(),
            attended,
            needs: PhantomData::<Writes>,
        };
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let asking = tokio::spawn(call.run(ErrorCode::OutcomeUnknown, move |_, _| {
            begun.send(()).ok();
            may_end.recv().ok();
            Ok(())
        }));
        has_begun.await.expect("it begins");
        asking.abort();
        assert!(asking.await.is_err_and(|ended| ended.is_cancelled()));
        assert_eq!(api.body_room.available_permits(), all - 100);
        drop(end);
        let whole = u32::try_from(all).expect("as configured");
        assert!(api.body_room.acquire_many(whole).await.is_ok(), "it is given back");
    }
}
