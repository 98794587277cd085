//! The command line.

mod api_token;
mod changes;
mod check;
mod compact;
mod copies;
mod documents;
mod export;
mod failure;
mod import;
mod line;
mod output;
mod place;
mod query;

pub use api_token::ApiTokenOptions;
pub use changes::{LogOptions, WatchOptions};
pub use check::CheckOptions;
pub use compact::CompactOptions;
pub use copies::{BackupOptions, RestoreOptions};
pub use documents::{GetOptions, PutOptions};
pub use export::ExportOptions;
pub use failure::CommandError;
pub use import::ImportOptions;
pub use output::Form;
pub use place::Place;
pub use query::QueryOptions;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::auth::{TokenRequest, issue};
use crate::config::Config;
use crate::error::ServerError;

/// Real-time messaging and a document store; speaks the Centrifuge protocol.
#[derive(Debug, Parser)]
#[command(name = "motet", version, about, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  motet serve --dev
      Start for development on 127.0.0.1:8000: everybody may do everything.
  motet config > motet.toml
      Write a configuration with every key, its default and what it is for.
  motet serve --config motet.toml --listen 0.0.0.0:8000
      Start with a configuration, open to the network.
  motet token --config motet.toml --user 42 --ttl 1h
      Make a connection token for user 42.
  motet query --data ./data Order --filter '{\"open\": true}'
      Print documents of a store, which servers may have open too.

A command that fails ends with 1 and names the error's code; one that was not understood, with 2.";

const SERVE_EXAMPLES: &str = "\
Examples:
  motet serve --dev
      Start for development on 127.0.0.1:8000: everybody may do everything.
  motet serve --config motet.toml --listen 0.0.0.0:8000 --log-level warn
      Start with a configuration, open to the network, and log only what needs attention.
  motet serve --data ./data
      Serve the documents of ./data to programs of this machine, under /api/default.
  motet serve --config motet.toml --publication-log publications.jsonl
      Keep a record of every accepted publication.";

const TOKEN_EXAMPLES: &str = "\
Examples:
  motet token --config motet.toml --user 42 --ttl 1h
      A connection token for user 42 that is good for an hour.
  motet token --config motet.toml --user 42 --channel news:local
      A subscription token for user 42 and the channel news:local.";

const CHECK_EXAMPLES: &str = "\
Examples:
  motet check-config --config motet.toml
      Say whether the server would start with this configuration, and if not, which key is wrong.
  motet config > motet.toml && motet check-config --config motet.toml
      Write one with every key, and check it.";

const PUT_EXAMPLES: &str = "\
Examples:
  motet put --data ./data Order o-1 '{\"total\": 12}'
      Create the document, or replace it.
  motet put --data ./data Order o-1 --if-version 3 < order.json
      Replace it only if nobody has changed it since version 3.";

const GET_EXAMPLES: &str = "\
Examples:
  motet get --data ./data Order o-1
      Print the document's value.
  motet get --data ./data Order o-1 --json
      Print it with its version, for a program.";

const QUERY_EXAMPLES: &str = "\
Examples:
  motet query --data ./data Order --filter '{\"total\": {\"$gte\": 10}}' --sort=-total --limit 5
      The five greatest orders of 10 or more.
  motet query --data ./data Order --filter '{\"open\": true}' --explain
      Say which index is used, and how many documents are read.";

const LOG_EXAMPLES: &str = "\
Examples:
  motet log --data ./data
      The first changes that the log still has.
  motet log --data ./data --after 1200 --json
      The next hundred after clock 1200, for a program.
A page that is full is followed, on standard error, by the options for the next one.";

const WATCH_EXAMPLES: &str = "\
Examples:
  motet watch --data ./data
      Print changes as they are made, by whichever process.
  motet watch --data ./data --type Order --after 0 --json
      All changes of orders from the beginning on, for a program.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  motet import --data ./data --type Flight --key id flights.json
      Every object of the file is a document; its field `id` is the key.
  motet export --data ./old | motet import --data ./new -
      Take all documents of one store into another.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  motet export --data ./data --out documents.jsonl
      Write all documents, one per line.
  motet export --data ./data --type Order | gzip > orders.jsonl.gz
      Only those of one type, compressed.";

const CHECK_STORE_EXAMPLES: &str = "\
Examples:
  motet check --data ./data
      Check every environment: the log, the documents, the indexes, the expiries.
  motet check --data ./data --env default --json
      Check one, and print what was found for a program.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  motet backup --data ./data --to ./backup-monday
      Copy the store while servers go on writing to it.
  motet backup --data ./data --to ./backup-default --env default
      Copy one environment only.";

const COMPACT_EXAMPLES: &str = "\
Examples:
  motet compact --data ./data
      Make the store's files as small as they can be, while nothing has them open.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  motet restore --from ./backup-monday --data ./data
      Make a store of a backup, where there is nothing yet.";

const API_TOKEN_EXAMPLES: &str = "\
Examples:
  motet api-token --name reports >> motet.toml
      A token that may read every environment; the first line has the token itself.
  motet api-token --name shop --env default --allow read --allow write
      One that may read and write the environment default.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeOptions),
    /// Print a configuration with every key, its default and what it is for.
    Config,
    /// Make a token for development.
    #[command(after_help = TOKEN_EXAMPLES)]
    Token(TokenOptions),
    /// Make an API token of the store.
    #[command(after_help = API_TOKEN_EXAMPLES)]
    ApiToken(ApiTokenOptions),
    /// Write a document.
    #[command(after_help = PUT_EXAMPLES)]
    Put(PutOptions),
    /// Print a document.
    #[command(after_help = GET_EXAMPLES)]
    Get(GetOptions),
    /// Print documents that match a filter.
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryOptions),
    /// Print changes of the log.
    #[command(after_help = LOG_EXAMPLES)]
    Log(LogOptions),
    /// Follow the log.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchOptions),
    /// Put the documents of a file into the store.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportOptions),
    /// Write documents as JSON lines.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportOptions),
    /// Check that a store is as it must be, while it is in use.
    #[command(after_help = CHECK_STORE_EXAMPLES)]
    Check(CheckOptions),
    /// Copy a store while it is in use.
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupOptions),
    /// Make a store's files smaller, while nothing has them open.
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(CompactOptions),
    /// Make a store of a backup.
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreOptions),
    /// Check a configuration without starting.
    #[command(after_help = CHECK_EXAMPLES)]
    CheckConfig {
        /// The configuration file (TOML).
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// How to start the server.
#[derive(Debug, Default, Args)]
pub struct ServeOptions {
    /// The configuration file (TOML). Without one, nothing is allowed unless --dev is given.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen, as address:port; port 0 takes a free one. Goes before the configuration.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// For development: no tokens, every right, presence and history in channels without a
    /// namespace, the API without a key.
    #[arg(long)]
    pub dev: bool,
    /// Serve the document store in this directory, under /api/{environment}; it is made if it is
    /// absent. Goes before the configuration.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Append every accepted publication to this file, one JSON object per line, at most 100 ms
    /// late: time, channel, epoch, offset, size, SHA-256, and the payload if it is JSON of at most
    /// 4096 bytes.
    #[arg(long, value_name = "FILE")]
    pub publication_log: Option<PathBuf>,
    /// How much to log: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

/// Which token to make.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub struct TokenOptions {
    /// The configuration file with the secret (client.token.hmac_secret_key).
    #[arg(long, value_name = "FILE", group = "source")]
    pub config: Option<PathBuf>,
    /// The secret itself, instead of a configuration.
    #[arg(long, group = "source")]
    pub secret: Option<String>,
    /// The user; without it the token is for an anonymous one.
    #[arg(long, default_value = "")]
    pub user: String,
    /// Make a subscription token for this channel.
    #[arg(long)]
    pub channel: Option<String>,
    /// How long the token is good for, such as 10m or 24h; without it, for ever.
    #[arg(long, value_parser = parse_ttl)]
    pub ttl: Option<Duration>,
}

impl Command {
    /// Carries out a command that works on a store.
    ///
    /// # Errors
    /// What is in the way.
    pub fn run_on_store(self) -> Result<(), CommandError> {
        match self {
            Self::ApiToken(options) => options.run(),
            Self::Put(options) => options.run(),
            Self::Get(options) => options.run(),
            Self::Query(options) => options.run(),
            Self::Log(options) => options.run(),
            Self::Watch(options) => options.run(),
            Self::Import(options) => options.run(),
            Self::Export(options) => options.run(),
            Self::Check(options) => options.run(),
            Self::Backup(options) => options.run(),
            Self::Compact(options) => options.run(),
            Self::Restore(options) => options.run(),
            Self::Serve(_) | Self::Config | Self::Token(_) | Self::CheckConfig { .. } => Ok(()),
        }
    }
}

impl ServeOptions {
    /// The configuration that these options ask for.
    ///
    /// # Errors
    /// When the file or an option cannot be used.
    pub fn config(&self) -> Result<Config, ServerError> {
        let mut config = match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::default(),
        };
        if self.dev {
            allow_everything(&mut config);
        }
        let http = &mut config.http_server;
        let listen = match &self.listen {
            Some(listen) => listen.clone(),
            None => format!("{}:{}", bracketed(&http.address), http.port),
        };
        (http.address, http.port) = split_address(&listen)?;
        if let Some(directory) = &self.data {
            config.store.path = directory.display().to_string();
        }
        if let Some(file) = &self.publication_log {
            config.log.publication_log = file.display().to_string();
        }
        if let Some(level) = &self.log_level {
            config.log.level.clone_from(level);
        }
        config.validate("command line")?;
        Ok(config)
    }
}

impl TokenOptions {
    /// Makes the token.
    ///
    /// # Errors
    /// When there is no secret to sign it with.
    pub fn token(&self) -> Result<String, ServerError> {
        let (source, secret) = match (&self.secret, &self.config) {
            (None, Some(file)) => self.configured_secret(&Config::read(file)?),
            (secret, _) => ("--secret", secret.clone().unwrap_or_default()),
        };
        if secret.is_empty() {
            return Err(ServerError::Token(format!("{source} is empty")));
        }
        let request =
            TokenRequest { user: self.user.clone(), channel: self.channel.clone(), ttl: self.ttl };
        issue(&secret, &request).map_err(|cause| ServerError::Token(cause.to_string()))
    }

    /// The key that has the secret, and the secret.
    fn configured_secret(&self, config: &Config) -> (&'static str, String) {
        let own = &config.client.subscription_token;
        if self.channel.is_some() && own.enabled {
            ("client.subscription_token.hmac_secret_key", own.hmac_secret_key.clone())
        } else {
            ("client.token.hmac_secret_key", config.client.token.hmac_secret_key.clone())
        }
    }
}

/// Reads how long a token is good for. A time that no clock will ever show is a slip.
fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = humantime::parse_duration(text).map_err(|cause| cause.to_string())?;
    if ttl > TTL_MAX {
        return Err(
            "expected at most 100 years; leave --ttl out for a token without end".to_owned()
        );
    }
    Ok(ttl)
}

/// The longest time that a token is good for, other than for ever.
const TTL_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Says something to people, beside what a command prints.
fn note(text: &str) {
    // Nothing can be done when not even the terminal can be written to.
    writeln!(std::io::stderr(), "{text}").ok();
}

/// Checks a configuration the way `serve` would.
///
/// # Errors
/// What is wrong with it.
pub fn check_config(file: &std::path::Path) -> Result<(), ServerError> {
    let config = Config::read(file)?;
    crate::tls::acceptor(&config.http_server.tls)?;
    crate::auth::Verifier::new(&config.client)?;
    split_address(&format!("{}:0", bracketed(&config.http_server.address)))?;
    Ok(())
}

/// Development: no tokens, every right, and channels with everything they can have.
fn allow_everything(config: &mut Config) {
    config.client.insecure = true;
    config.http_api.insecure = true;
    let channels = &mut config.channel.without_namespace;
    channels.presence = true;
    if channels.history_size == 0 || channels.history_ttl.0.is_zero() {
        channels.history_size = 1_000;
        channels.history_ttl = crate::config::Span::seconds(300);
    }
    channels.force_recovery = true;
}

fn split_address(listen: &str) -> Result<(String, u16), ServerError> {
    let refuse =
        |cause: &str| ServerError::Address { address: listen.to_owned(), cause: cause.to_owned() };
    if let Ok(address) = listen.parse::<std::net::SocketAddr>() {
        return Ok((address.ip().to_string(), address.port()));
    }
    // `localhost` is what people type for a loopback address.
    match listen.strip_prefix("localhost:").map(str::parse) {
        Some(Ok(port)) => Ok(("127.0.0.1".to_owned(), port)),
        _ => Err(refuse("expected an IP address and a port, such as 127.0.0.1:8000")),
    }
}

fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}
