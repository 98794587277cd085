//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::auth::{TokenRequest, issue};
use crate::config::Config;
use crate::error::ServerError;

/// Real-time messaging over WebSocket and HTTP; speaks the Centrifuge protocol.
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
      Make a connection token for user 42.";

const SERVE_EXAMPLES: &str = "\
Examples:
  motet serve --dev
      Start for development on 127.0.0.1:8000: everybody may do everything.
  motet serve --config motet.toml --listen 0.0.0.0:8000 --log-level warn
      Start with a configuration, open to the network, and log only what needs attention.
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
