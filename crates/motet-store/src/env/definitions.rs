//! What an environment asks of its documents, and its indexes of them.

use std::sync::Arc;

use serde_json::Value;

use super::Env;
use crate::catalog::{Define, VIOLATIONS_TYPE};
use crate::document::check_name;
use crate::index::{Create, Drop, IndexState, IndexStatus, Progress};
use crate::transaction::Transaction;
use crate::{Error, IndexSpec, KeyRange, TypeSpec};

impl Env {
    /// Describes a type: its schema, its references, its time to live. It takes the place of an
    /// earlier description. Documents that are there already are left as they are.
    ///
    /// # Errors
    /// [`Error::SchemaInvalid`], [`Error::PathInvalid`] and [`Error::NameInvalid`] for what cannot
    /// be.
    pub fn define(&self, type_name: &str, spec: &TypeSpec) -> Result<(), Error> {
        check_name(type_name)?;
        spec.check()?;
        let (shared, type_name) = (Arc::clone(&self.shared), type_name.to_owned());
        self.decide(Box::new(Define { shared, type_name, spec: spec.clone() }))?;
        self.shared.notify();
        Ok(())
    }

    /// What a type asks of its documents.
    ///
    /// # Errors
    /// [`Error::NameInvalid`]; what the medium does.
    pub fn definition(&self, type_name: &str) -> Result<TypeSpec, Error> {
        check_name(type_name)?;
        pollster::block_on(async {
            let view = self.shared.engine.view().await?;
            let catalog = self.shared.catalog.of_view(view.as_ref()).await?;
            Ok(catalog.type_named(type_name).map(|found| found.spec.clone()).unwrap_or_default())
        })
    }

    /// The documents of a type that did not fit its recorded schema when they were written: their
    /// keys and what does not fit.
    ///
    /// # Errors
    /// What the medium does.
    pub fn violations(&self, type_name: &str) -> Result<Vec<(String, String)>, Error> {
        self.violations_after(type_name, "", usize::MAX)
    }

    /// As many of the [violations](Self::violations) of a type, of documents with keys after this
    /// one.
    ///
    /// # Errors
    /// What the medium does.
    pub fn violations_after(
        &self,
        type_name: &str,
        key: &str,
        limit: usize,
    ) -> Result<Vec<(String, String)>, Error> {
        check_name(type_name)?;
        let prefix = format!("{type_name}/");
        let range = KeyRange::prefix(&prefix).after(format!("{prefix}{key}")).limit(limit);
        let recorded = Transaction::begin(self)?.system_range(VIOLATIONS_TYPE, &range)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rows = recorded
            .iter()
            .map(|document| (text(&document.value["key"]), text(&document.value["why"])));
        Ok(rows.collect())
    }

    /// Makes an index and returns at once. Writers keep it from then on; what is there already is
    /// added in the background, and queries use it when that is done. An index of the same name and
    /// description is left as it is.
    ///
    /// # Errors
    /// [`Error::IndexInvalid`], [`Error::PathInvalid`] or [`Error::FilterInvalid`] for what cannot
    /// be; [`Error::IndexExists`] if there is another index of this name.
    pub fn create_index(&self, type_name: &str, name: &str, spec: &IndexSpec) -> Result<(), Error> {
        check_name(type_name)?;
        check_name(name)?;
        self.decide(Box::new(Create {
            shared: Arc::clone(&self.shared),
            type_name: type_name.into(),
            name: name.into(),
            spec: spec.clone(),
        }))?;
        self.shared.notify();
        Ok(())
    }

    /// Drops an index. Its room is freed in the background.
    ///
    /// # Errors
    /// [`Error::IndexNotFound`].
    pub fn drop_index(&self, type_name: &str, name: &str) -> Result<(), Error> {
        let (type_name, name) = (type_name.to_owned(), name.to_owned());
        self.decide(Box::new(Drop { shared: Arc::clone(&self.shared), type_name, name }))?;
        self.shared.notify();
        Ok(())
    }

    /// The indexes of a type, by name.
    ///
    /// # Errors
    /// What the medium does.
    pub fn indexes(&self, type_name: &str) -> Result<Vec<IndexStatus>, Error> {
        check_name(type_name)?;
        pollster::block_on(async {
            let view = self.shared.engine.view().await?;
            let catalog = self.shared.catalog.of_view(view.as_ref()).await?;
            let Some(type_id) = catalog.type_id(type_name) else { return Ok(Vec::new()) };
            let mut statuses = Vec::new();
            let own = |name: &str| name.starts_with('~');
            for index in catalog.indexes(type_id).iter().filter(|one| !own(&one.name)) {
                let scanned = match index.record.state {
                    IndexState::Building => {
                        Some(Progress::load(view.as_ref(), index.record.id).await?.scanned)
                    }
                    _ => None,
                };
                statuses.push(IndexStatus {
                    name: index.name.clone(),
                    spec: index.record.spec.clone(),
                    state: index.record.state.clone(),
                    scanned,
                });
            }
            statuses.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(statuses)
        })
    }
}
