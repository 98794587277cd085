//! Describing a type.

use std::sync::Arc;

use super::{Reference, Type, TypeRecord, TypeSpec};
use crate::Error;
use crate::commit::Session;
use crate::engine::{Decision, Transaction, decides};
use crate::index::{self, IndexSpec};
use crate::shared::Shared;

/// Sets what a type asks of its documents. Each of its references has an index, by which who refers
/// to a document is found.
pub(crate) struct Define {
    pub(crate) shared: Arc<Shared>,
    pub(crate) type_name: String,
    pub(crate) spec: TypeSpec,
}

impl Define {
    async fn run(&mut self, transaction: &dyn Transaction) -> Result<Decision, Error> {
        let mut session = Session::begin(transaction, &self.shared).await?;
        let type_id = session.type_id(&self.type_name);
        let names: Vec<_> = self.spec.references.iter().map(Reference::index_name).collect();
        let known: Vec<_> = session.catalog().indexes(type_id).to_vec();
        for index in known.iter().filter(|index| index.name.starts_with('~')) {
            if !names.contains(&index.name) {
                index::remove(&mut session, &self.type_name, index);
            }
        }
        for (reference, name) in self.spec.references.iter().zip(&names) {
            if known.iter().all(|index| index.name != *name) {
                let spec = IndexSpec::new().field(reference.path.as_str());
                index::add(&mut session, &self.type_name, name, spec).await?;
            }
        }
        let record = TypeRecord { id: type_id.0, spec: self.spec.clone() };
        session.set_type(&self.type_name, Type::new(record)?);
        session.finish().await
    }
}

impl Reference {
    /// The name of the reference's index. No user's index has one that starts so.
    pub(crate) fn index_name(&self) -> String {
        format!("~reference.{}", self.path)
    }
}

decides!(Define);
