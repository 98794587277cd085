//! The packed tarball in a fresh application, as a user would install it.

use std::time::Duration;

use anyhow::Result;

use super::browser_tests::node_test;
use super::counted;
use crate::steps::Report;
use crate::summary::Runner;
use crate::workspace::root;
use crate::{browser, demo, npm, wasm};

const LIMIT: Duration = Duration::from_secs(600);

pub(super) fn run() -> Result<Report> {
    wasm::ensure()?;
    let tarball = npm::build()?;
    let server = demo::server()?;
    let mut node = node_test(&root().join("tests/packed"))?;
    node.env("MOTET_TARBALL", tarball)
        .env("MOTET_BIN", server)
        .env("MOTET_CHROMIUM", browser::chromium()?);
    counted(&mut node, Runner::NodeTest, LIMIT)
}
