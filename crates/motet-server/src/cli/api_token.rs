//! `motet api-token`.

use core::fmt::Write as _;

use clap::Args;
use sha2::{Digest as _, Sha256};

use super::failure::CommandError;
use super::output::Output;

/// What the token is for.
#[derive(Debug, Args)]
pub struct ApiTokenOptions {
    /// What it is called in the configuration and the log.
    #[arg(long)]
    name: String,
    /// An environment that it is good for; `*` for all. May be given several times.
    #[arg(long = "env", value_name = "NAME", default_value = "*")]
    environments: Vec<String>,
    /// What it allows: read, write or admin. May be given several times.
    #[arg(long = "allow", value_parser = ["read", "write", "admin"], default_value = "read")]
    permissions: Vec<String>,
}

impl ApiTokenOptions {
    /// Draws a token; prints it, and the section that the configuration needs for it.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn run(self) -> Result<(), CommandError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|cause| CommandError::file("the system's randomness", cause.into()))?;
        let token = format!("motet_{}", hex(&bytes));
        let all = self.environments.iter().any(|name| name == "*");
        let environments =
            if all { "\"*\"".to_owned() } else { format!("{:?}", self.environments) };
        let mut output = Output::new();
        output.line(&format!("# The token, which is not kept anywhere: {token}"))?;
        output.line("[[store.tokens]]")?;
        output.line(&format!("name = {:?}", self.name))?;
        output.line(&format!("token_sha256 = \"{}\"", hex(&Sha256::digest(&token))))?;
        output.line(&format!("environments = {environments}"))?;
        output.line(&format!("permissions = {:?}", self.permissions))?;
        output.flush()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}
