//! The command line.

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

use crate::steps::Selection;
use crate::{bench, check, demo, fuzz, generate, npm, sim, test, tidy, wasm};

/// Motet's developer commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the show: eight tabs, real data, real crashes, judged by an independent checker.
    #[command(after_help = "Examples:\n  cargo xtask demo\n  cargo xtask demo --once\n  \
                            cargo xtask demo --port 8080\n  cargo xtask demo store")]
    Demo(demo::Options),

    /// Run every test there is, with a table at the end.
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test --only rust\n  \
                            cargo xtask test --skip browser --skip demo\n\n\
                            Steps: rust, doctest, plants, sim, sim-store, wasm, npm, foreign, oracle, judge, store-show, \
                            browser, packed, demo.\n\
                            The last line is `N passed, N failed` over all runners.")]
    Test {
        /// Run this step only (repeatable).
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
        /// Leave this step out (repeatable).
        #[arg(long, value_name = "STEP")]
        skip: Vec<String>,
    },

    /// Check formatting, lints, docs, house rules, licences, TypeScript and generated files.
    #[command(after_help = "Examples:\n  cargo xtask check\n  cargo xtask check --fast\n  \
                            cargo xtask check --only clippy\n\n\
                            Steps: format, generated, tidy, types, lint, clippy, docs, clippy-wasm, \
                            deny.")]
    Check {
        /// Leave out what takes minutes: docs, licences, Clippy for WASM.
        #[arg(long)]
        fast: bool,
        /// Run this step only (repeatable).
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
        /// Leave this step out (repeatable).
        #[arg(long, value_name = "STEP")]
        skip: Vec<String>,
    },

    /// Build the browser modules and print their sizes.
    #[command(after_help = "Examples:\n  cargo xtask wasm\n  cargo xtask wasm --dev\n\n\
                            Writes packages/motet/wasm and target/wasm-sizes.json.")]
    Wasm {
        /// Do not optimise: faster to build, larger to fetch.
        #[arg(long)]
        dev: bool,
    },

    /// Build the npm package and pack it into target/npm.
    #[command(after_help = "Examples:\n  cargo xtask wasm && cargo xtask npm\n  \
                            npm install target/npm/motet-*.tgz")]
    Npm,

    /// Write the files that are made from the error table.
    #[command(after_help = "Example:\n  cargo xtask generate\n\n\
                            Writes docs/errors.md and packages/motet/src/errors.ts.")]
    Generate,

    /// Check the house rules only.
    #[command(after_help = "Example:\n  cargo xtask tidy")]
    Tidy,

    /// Run simulated schedules and check the invariants after every step.
    #[command(after_help = "Examples:\n  cargo xtask sim --seeds 20000\n  \
                            cargo xtask sim --seed 4711 --trace\n\n\
                            All arguments are passed on: `cargo xtask sim -- --help` lists them.")]
    Sim(sim::Options),

    /// Search for inputs that break a decoder.
    #[command(after_help = "Examples:\n  cargo xtask fuzz\n  \
                            cargo xtask fuzz --target json_command --seconds 300")]
    Fuzz(fuzz::Options),

    /// Measure, beside a named peer.
    #[command(
        after_help = "Examples:\n  cargo xtask bench bus\n  cargo xtask bench realtime\n  cargo xtask bench store\n\n\
                            Writes target/bench/<name>.json."
    )]
    Bench {
        /// What to measure.
        #[arg(value_enum)]
        subject: BenchSubject,
        /// Passed on to the benchmark.
        #[arg(last = true)]
        rest: Vec<String>,
    },
}

/// What can be measured.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum BenchSubject {
    /// The data bus in real tabs.
    Bus,
    /// The realtime server.
    Realtime,
    /// The document store.
    Store,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        match self.command {
            Command::Demo(options) => demo::run(&options),
            Command::Test { only, skip } => test::run(&Selection { only, skip }),
            Command::Check { fast, only, skip } => check::run(fast, Selection { only, skip }),
            Command::Wasm { dev } => wasm::build(!dev),
            Command::Npm => npm::build().map(drop),
            Command::Generate => generate::write(),
            Command::Tidy => tidy::report(),
            Command::Sim(options) => sim::run(&options),
            Command::Fuzz(options) => fuzz::run(&options),
            Command::Bench { subject: BenchSubject::Bus, rest } => bench::bus(&rest),
            Command::Bench { subject: BenchSubject::Realtime, rest } => bench::realtime(&rest),
            Command::Bench { subject: BenchSubject::Store, rest } => bench::store(&rest),
        }
    }
}
