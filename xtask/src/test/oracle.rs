//! Filters beside npm `sift`: the same questions to both.

use std::time::Duration;

use anyhow::Result;

use super::browser_tests::node_test;
use super::counted;
use crate::process;
use crate::steps::Report;
use crate::summary::Runner;
use crate::workspace::{cargo, root, target};

const BUILD_LIMIT: Duration = Duration::from_secs(900);
const LIMIT: Duration = Duration::from_secs(300);

pub(super) fn run() -> Result<Report> {
    let mut build = cargo();
    build.args(["build", "--package", "motet-store", "--example", "evaluate_filters"]);
    process::run(&mut build, BUILD_LIMIT)?;
    let mut node = node_test(&root().join("tests/oracle"))?;
    node.env("MOTET_EVALUATE_FILTERS", target().join("debug/examples/evaluate_filters"));
    counted(&mut node, Runner::NodeTest, LIMIT)
}
