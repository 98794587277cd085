//! The `motet` binary.

#![forbid(unsafe_code)]

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use motet_server::cli::{Cli, Command, ServeOptions, check_config};
use motet_server::config::Config;
use motet_server::error::ServerError;
use motet_server::serve;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Serve(options) => run(&options).map_err(|error| error.report()),
        Command::Config => {
            print(&Config::documentation());
            Ok(())
        }
        Command::Token(options) => options
            .token()
            .map(|token| print(&format!("{token}\n")))
            .map_err(|error| error.report()),
        Command::CheckConfig { config } => check_config(&config)
            .map(|()| print("the configuration is valid\n"))
            .map_err(|error| error.report()),
        command => match command.run_on_store() {
            Err(error) if error.is_closed_pipe() => Ok(()),
            done => done.map_err(|error| error.report()),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(report) => {
            // Nothing can be done when not even the terminal can be written to.
            writeln!(std::io::stderr(), "{report}").ok();
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) {
    // A reader that has gone (a closed pipe) wants no more text.
    std::io::stdout().write_all(text.as_bytes()).ok();
}

fn run(options: &ServeOptions) -> Result<(), ServerError> {
    let config = options.config()?;
    let level = config.log.level.parse::<LevelFilter>().expect("the configuration was checked");
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        // A file or a pipe keeps the text alone.
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the system lets a process have threads");
    let outcome = runtime.block_on(async {
        // From before the first connection, so that no signal finds the process without them.
        let stop = stop_signal();
        let running = serve::start(config).await?;
        stop.await;
        running.stop().await;
        Ok(())
    });
    // Tasks that outlived the time to stop are cut off.
    runtime.shutdown_background();
    outcome
}

/// Every connection is an open file. The usual limit of 1,024 is there for programs of old; a
/// process may raise it up to what its administrator allows.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(cause) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        warn!(%cause, "the limit of open files stays at {:?}", limit.current);
    }
}

/// Listens for SIGTERM and SIGINT from now on; ready when one has come.
fn stop_signal() -> impl Future<Output = ()> {
    let listen = |kind| signal(kind).expect("a process may listen for its signals");
    let mut terminate = listen(SignalKind::terminate());
    let mut interrupt = listen(SignalKind::interrupt());
    async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}
