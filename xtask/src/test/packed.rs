//! The packed tarball in a fresh application, as a user would install it.

use std::time::Duration;

use anyhow::Result;

use super::counted;
use crate::steps::Report;
use crate::summary::Runner;
use crate::{browser, demo, npm};

const SCRIPT: &str = "tests/packed/packed.ts";
const LIMIT: Duration = Duration::from_secs(600);

pub(super) fn run() -> Result<Report> {
    let tarball = npm::build()?;
    let server = demo::server()?;
    let mut script = demo::script(SCRIPT)?;
    script
        .env("MOTET_TARBALL", tarball)
        .env("MOTET_BIN", server)
        .env("MOTET_CHROMIUM", browser::chromium()?);
    counted(&mut script, Runner::ExitCode, LIMIT)
}
