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

/// Where the modules go: inside the npm package, never committed.
pub(crate) fn output() -> PathBuf {
    root().join("packages/motet/wasm")
}

/// Builds both modules; `optimise` runs wasm-opt over them.
pub(crate) fn build(optimise: bool) -> Result<()> {
    install::node()?;
    let wasm_opt = if optimise { Some(npm::tool("wasm-opt")?) } else { None };
    let toolchain = Toolchain::find_or_install()?;
    println!("Compiler: {}", toolchain.describe());
    let build = build_hash::of_sources()?;
    println!("Build: {build}");
    for module in MODULES {
        println!("Building module {}", module.feature);
        module.build(&toolchain, &build, wasm_opt.as_deref())?;
    }
    fs::write(output().join("build.js"), format!("export const BUILD = \"{build}\";\n"))?;
    fs::write(output().join("build.d.ts"), "export declare const BUILD: string;\n")?;
    sizes::report()
}
