//! `cargo xtask wasm`: the two browser modules of `motet-web`.

mod build_hash;
mod module;
mod sizes;
mod sysroot;
mod toolchain;

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

pub(crate) use module::MODULES;
pub(crate) use toolchain::Toolchain;

use crate::workspace::root;
use crate::{install, npm};

/// Tells JavaScript which build of the modules it is paired with.
const BUILD_FILE: &str = "build.js";

/// Where the modules go: inside the npm package, never committed.
pub(crate) fn output() -> PathBuf {
    root().join("packages/motet/wasm")
}

/// Builds both modules unless they were made from the present sources.
pub(crate) fn ensure() -> Result<()> {
    let marker = fs::read_to_string(output().join(BUILD_FILE)).unwrap_or_default();
    if marker == build_file(&build_hash::of_sources()?) {
        println!("The browser modules are up to date");
        return Ok(());
    }
    build(true)
}

/// Builds both modules; `optimise` runs wasm-opt over them.
pub(crate) fn build(optimise: bool) -> Result<()> {
    install::node()?;
    let wasm_opt = if optimise { Some(npm::tool("wasm-opt")?) } else { None };
    let toolchain = Toolchain::find_or_install()?;
    println!("Compiler: {}", toolchain.describe());
    let mut build = build_hash::of_sources()?;
    if !optimise {
        build.push_str("-dev");
    }
    println!("Build: {build}");
    for module in MODULES {
        println!("Building module {}", module.feature);
        module.build(&toolchain, &build, wasm_opt.as_deref())?;
    }
    // Last, so that it vouches for modules that are complete.
    fs::write(output().join("build.d.ts"), "export declare const BUILD: string;\n")?;
    fs::write(output().join(BUILD_FILE), build_file(&build))?;
    sizes::report()
}

fn build_file(build: &str) -> String {
    format!("export const BUILD = \"{build}\";\n")
}
