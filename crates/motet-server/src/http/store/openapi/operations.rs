//! Which route takes and gives what.

use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::HttpMethod;

use super::Body;
use crate::http::store::answer::{Types, Version, Versioned, Versions};
use crate::http::store::backup::Backup;
use crate::http::store::definition::{DefinitionForm, Violations};
use crate::http::store::index::{Done, Indexes, SpecForm};
use crate::http::store::log::{Changes, RetentionForm, Status};
use crate::http::store::pin::{Pins, Position};
use crate::http::store::query::{CountForm, Counted, Explained, PageForm, QueryForm};
use crate::http::store::transaction::TransactionForm;

/// One operation of the API.
pub(super) struct Operation {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) takes: Option<Body>,
    pub(super) gives: Body,
    /// Whether the answer has a version in `ETag`.
    pub(super) tagged: bool,
    /// Statuses that it may have beside those that every operation may.
    failures: &'static [&'static str],
}

/// Any JSON.
#[derive(ToSchema)]
#[schema(value_type = Value, example = json!({"customer": "c-7", "total": 12}))]
pub(super) struct AnyValue(
    #[allow(dead_code, reason = "only its schema is used")] serde_json::Value,
);

/// Changes to parts of a document, done in the order of these fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Patch {
    /// Merged into the document as JSON Merge Patch has it (RFC 7396).
    #[allow(dead_code, reason = "only its schema is used")]
    #[schema(value_type = Option<Object>, nullable = false)]
    merge: Option<serde_json::Value>,
    /// Values by path.
    #[allow(dead_code, reason = "only its schema is used")]
    #[schema(value_type = Option<Object>, nullable = false)]
    set: Option<serde_json::Value>,
    /// Paths that are removed.
    #[allow(dead_code, reason = "only its schema is used")]
    #[schema(nullable = false)]
    unset: Option<Vec<String>>,
    /// What is added to numbers, by path.
    #[allow(dead_code, reason = "only its schema is used")]
    #[schema(value_type = Option<Object>, nullable = false)]
    inc: Option<serde_json::Value>,
    /// What is appended to arrays, by path: an element, or a list of them.
    #[allow(dead_code, reason = "only its schema is used")]
    #[schema(value_type = Option<Object>, nullable = false)]
    append: Option<serde_json::Value>,
    /// What is removed from arrays, by path.
    #[allow(dead_code, reason = "only its schema is used")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pull: Option<serde_json::Value>,
}

/// This document.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub(super) struct Description(
    #[allow(dead_code, reason = "only its schema is used")] serde_json::Value,
);

impl Operation {
    const fn new(
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        gives: Body,
    ) -> Self {
        Self { method, path, id, summary, takes: None, gives, tagged: false, failures: &[] }
    }

    const fn takes(mut self, body: Body) -> Self {
        self.takes = Some(body);
        self
    }

    const fn tagged(mut self) -> Self {
        self.tagged = true;
        self
    }

    const fn fails(mut self, statuses: &'static [&'static str]) -> Self {
        self.failures = statuses;
        self
    }

    /// Whether its path leads to one document.
    pub(super) const fn is_of_document(&self) -> bool {
        self.tagged
    }

    /// Whether it may have an `Idempotency-Key`.
    pub(super) fn is_once(&self) -> bool {
        self.path.ends_with("/transactions") || self.is_of_document() && self.changes()
    }

    pub(super) const fn changes(&self) -> bool {
        matches!(self.method, HttpMethod::Put | HttpMethod::Patch | HttpMethod::Delete)
    }

    /// The statuses of its errors, and what each means.
    pub(super) fn failures(&self) -> Vec<(&'static str, &'static str)> {
        let has_body = self.takes.is_some();
        let body = ["408", "413", "415"].into_iter().filter(|_| has_body);
        let mut statuses: Vec<_> =
            ALWAYS.into_iter().chain(body).chain(self.failures.iter().copied()).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let meaning = |status| MEANINGS.iter().find(|(given, _)| *given == status);
        statuses.into_iter().filter_map(meaning).copied().collect()
    }
}

/// The paths of operations, each once.
pub(super) fn paths(operations: &[Operation]) -> Vec<&'static str> {
    let mut paths: Vec<_> = operations.iter().map(|operation| operation.path).collect();
    paths.dedup();
    paths
}

/// All operations, those of one path together.
pub(super) fn all() -> Vec<Operation> {
    use HttpMethod::{Delete, Get, Post, Put};
    let mut all = vec![Operation::new(
        Get,
        "/api/{env}/types",
        "listTypes",
        "The names of the types that were ever written to.",
        Body::of::<Types>(),
    )];
    all.extend(queries());
    all.extend(indexes());
    all.extend(documents(DOCUMENT, DOCUMENT_IDS));
    all.extend(definitions());
    all.extend([
        Operation::new(
            Post,
            "/api/{env}/transactions",
            "commitTransaction",
            "Does several writes, all or none.",
            Body::of::<Versions>(),
        )
        .takes(Body::of::<TransactionForm>())
        .fails(&WRITES),
        Operation::new(
            Get,
            "/api/{env}/log",
            "readLog",
            "Changes in the order in which they were made.",
            Body::of::<Changes>(),
        )
        .fails(&["409", "410"]),
        Operation::new(
            Get,
            "/api/{env}/log/retention",
            "readRetention",
            "How much of the log is kept.",
            Body::of::<RetentionForm>(),
        ),
        Operation::new(
            Put,
            "/api/{env}/log/retention",
            "setRetention",
            "Sets how much of the log is kept.",
            Body::of::<Done>(),
        )
        .takes(Body::of::<RetentionForm>())
        .fails(&["504", "507"]),
        Operation::new(
            Get,
            "/api/{env}/log/pins",
            "listPins",
            "Readers of the log that come back later, and where each goes on.",
            Body::of::<Pins>(),
        ),
        Operation::new(
            Put,
            PIN,
            "setPin",
            "Keeps what comes after a clock for a reader that comes back later.",
            Body::of::<Done>(),
        )
        .takes(Body::of::<Position>())
        .fails(&["409", "410", "504", "507"]),
        Operation::new(
            Delete,
            PIN,
            "removePin",
            "Takes a pin away, if there is one.",
            Body::of::<Done>(),
        )
        .fails(&["504", "507"]),
        Operation::new(
            Post,
            "/api/{env}/backup",
            "makeBackup",
            "Copies the environment into the server's directory for backups.",
            Body::of::<Backup>(),
        )
        .fails(&["409", "504", "507"]),
        Operation::new(
            Get,
            "/api/{env}/status",
            "readStatus",
            "Where the log ends, and how the work in the background goes.",
            Body::of::<Status>(),
        ),
        Operation::new(
            Get,
            "/api/openapi.json",
            "describe",
            "This description.",
            Body::of::<Description>(),
        ),
    ]);
    all
}

/// Queries, and documents whose keys are the names of these routes.
fn queries() -> Vec<Operation> {
    use HttpMethod::Post;
    let [query, count, explain] = [
        Operation::new(
            Post,
            "/api/{env}/types/{type}/query",
            "queryDocuments",
            "Documents that match a filter, in an order, page by page.",
            Body::of::<PageForm>(),
        )
        .takes(Body::of::<QueryForm>()),
        Operation::new(
            Post,
            "/api/{env}/types/{type}/count",
            "countDocuments",
            "How many documents match a filter.",
            Body::of::<Counted>(),
        )
        .takes(Body::of::<CountForm>()),
        Operation::new(
            Post,
            "/api/{env}/types/{type}/explain",
            "explainQuery",
            "How a query is answered, and what that costs. It is run for that.",
            Body::of::<Explained>(),
        )
        .takes(Body::of::<QueryForm>()),
    ];
    let mut all = Vec::new();
    for (operation, ids) in [(query, QUERY_IDS), (count, COUNT_IDS), (explain, EXPLAIN_IDS)] {
        let path = operation.path;
        all.push(operation);
        all.extend(documents(path, ids));
    }
    all
}

fn indexes() -> [Operation; 3] {
    use HttpMethod::{Delete, Get, Put};
    [
        Operation::new(
            Get,
            "/api/{env}/types/{type}/indexes",
            "listIndexes",
            "The indexes of a type.",
            Body::of::<Indexes>(),
        ),
        Operation::new(
            Put,
            "/api/{env}/types/{type}/indexes/{name}",
            "createIndex",
            "Makes an index, which is built in the background. The same again changes nothing.",
            Body::of::<Done>(),
        )
        .takes(Body::of::<SpecForm>())
        .fails(&["409", "504", "507"]),
        Operation::new(
            Delete,
            "/api/{env}/types/{type}/indexes/{name}",
            "dropIndex",
            "Drops an index.",
            Body::of::<Done>(),
        )
        .fails(&["504", "507"]),
    ]
}

fn definitions() -> [Operation; 3] {
    use HttpMethod::{Get, Put};
    const PATH: &str = "/api/{env}/definitions/{type}";
    [
        Operation::new(
            Get,
            PATH,
            "readDefinition",
            "What a type asks of its documents.",
            Body::of::<DefinitionForm>(),
        ),
        Operation::new(
            Put,
            PATH,
            "defineType",
            "Sets what a type asks of its documents from now on: schema, references, lifetime.",
            Body::of::<Done>(),
        )
        .takes(Body::of::<DefinitionForm>())
        .fails(&["504", "507"]),
        Operation::new(
            Get,
            "/api/{env}/definitions/{type}/violations",
            "listViolations",
            "Documents that did not fit the recorded schema when they were written.",
            Body::of::<Violations>(),
        ),
    ]
}

fn documents(path: &'static str, ids: [&'static str; 4]) -> [Operation; 4] {
    use HttpMethod::{Delete, Get, Patch as PatchMethod, Put};
    [
        Operation::new(Get, path, ids[0], "A document.", Body::of::<Versioned>()).tagged(),
        Operation::new(
            Put,
            path,
            ids[1],
            "Creates a document, or replaces it.",
            Body::of::<Version>(),
        )
        .takes(Body::of::<AnyValue>())
        .tagged()
        .fails(&CONDITIONAL),
        Operation::new(
            PatchMethod,
            path,
            ids[2],
            "Changes parts of a document.",
            Body::of::<Version>(),
        )
        .takes(Body::of::<Patch>())
        .tagged()
        .fails(&CONDITIONAL),
        Operation::new(Delete, path, ids[3], "Removes a document.", Body::of::<Version>())
            .tagged()
            .fails(&CONDITIONAL),
    ]
}

const PIN: &str = "/api/{env}/log/pins/{pin}";
const DOCUMENT: &str = "/api/{env}/types/{type}/{key}";
const DOCUMENT_IDS: [&str; 4] = ["readDocument", "putDocument", "patchDocument", "removeDocument"];
const QUERY_IDS: [&str; 4] =
    ["readDocumentQuery", "putDocumentQuery", "patchDocumentQuery", "removeDocumentQuery"];
const COUNT_IDS: [&str; 4] =
    ["readDocumentCount", "putDocumentCount", "patchDocumentCount", "removeDocumentCount"];
const EXPLAIN_IDS: [&str; 4] =
    ["readDocumentExplain", "putDocumentExplain", "patchDocumentExplain", "removeDocumentExplain"];

const ALWAYS: [&str; 7] = ["400", "401", "403", "404", "429", "500", "503"];
const WRITES: [&str; 5] = ["409", "413", "422", "504", "507"];
const CONDITIONAL: [&str; 6] = ["409", "412", "413", "422", "504", "507"];

const MEANINGS: [(&str, &str); 17] = [
    ("400", "The request cannot be understood, or asks for what cannot be."),
    ("401", "The token is missing or wrong."),
    ("403", "The token does not allow this, or a web page of another origin asked."),
    ("404", "There is no such document, index or environment."),
    ("408", "The body did not arrive in time."),
    ("409", "Something that is there is in the way."),
    ("410", "These changes are no longer kept."),
    ("412", "The document has another version."),
    ("413", "The body, a value or the transaction is too large."),
    ("415", "The body is not declared to be JSON."),
    ("422", "A document does not fit its type's schema."),
    ("429", "The caller made more requests in a second than it may; this one was not carried out."),
    ("500", "The server failed."),
    ("503", "The store is busy; nothing was done."),
    ("504", "The request took too long; whether it was done is not known."),
    ("507", "The environment or the disk is full; nothing was done."),
    ("405", "The path does not take this method."),
];
