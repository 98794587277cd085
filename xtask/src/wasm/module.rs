//! One browser module: compile, bind, optimise.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::output;
use super::toolchain::{TARGET, Toolchain};
use crate::process;
use crate::workspace::{cargo, command, target};

const COMPILE_LIMIT: Duration = Duration::from_secs(900);
const OPTIMISE_LIMIT: Duration = Duration::from_secs(300);
const CRATE: &str = "motet-web";
const STEM: &str = "motet_web";

/// A module, named by the feature of `motet-web` that selects its code.
pub(crate) struct Module {
    pub(crate) feature: &'static str,
}

/// Pages load the small one; nodes load the other in their worker.
pub(crate) const MODULES: [Module; 2] = [Module { feature: "page" }, Module { feature: "node" }];

impl Module {
    /// The folder that holds the module and its JavaScript.
    pub(crate) fn folder(&self) -> PathBuf {
        output().join(self.feature)
    }

    /// The WebAssembly file.
    pub(crate) fn wasm(&self) -> PathBuf {
        self.folder().join(format!("{STEM}_bg.wasm"))
    }

    /// The JavaScript that loads it.
    pub(crate) fn javascript(&self) -> PathBuf {
        self.folder().join(format!("{STEM}.js"))
    }

    pub(super) fn build(
        &self,
        toolchain: &Toolchain,
        build: &str,
        wasm_opt: Option<&Path>,
    ) -> Result<()> {
        let profile = if wasm_opt.is_some() { "wasm" } else { "wasm-dev" };
        let mut compile = cargo();
        compile
            .args(["build", "--package", CRATE, "--lib", "--profile", profile])
            .args(["--no-default-features", "--features", self.feature])
            .env("MOTET_BUILD", build);
        toolchain.apply(&mut compile);
        process::run(&mut compile, COMPILE_LIMIT)?;

        let raw = target().join(TARGET).join(profile).join(format!("{STEM}.wasm"));
        if self.folder().exists() {
            fs::remove_dir_all(self.folder())?;
        }
        Bindgen::new()
            .input_path(&raw)
            .web(true)?
            .typescript(true)
            .generate(self.folder())
            .with_context(|| format!("wasm-bindgen refuses {}", raw.display()))?;
        match wasm_opt {
            Some(tool) => optimise(tool, &self.wasm()),
            None => Ok(()),
        }
    }
}

fn optimise(tool: &Path, wasm: &Path) -> Result<()> {
    let optimised = wasm.with_extension("opt");
    let mut command = command(tool);
    // What rustc emits by default and every browser with module workers understands.
    for feature in [
        "bulk-memory",
        "bulk-memory-opt",
        "call-indirect-overlong",
        "multivalue",
        "mutable-globals",
        "nontrapping-float-to-int",
        "reference-types",
        "sign-ext",
    ] {
        command.arg(format!("--enable-{feature}"));
    }
    command.args([
        "-Oz",
        "--converge",
        // A function that is called once is inlined only when it is tiny. Inlining it makes the
        // file smaller and its gzip larger: functions of their own are more alike.
        "--one-caller-inline-max-function-size=20",
        // Loads and stores are said to be unaligned: fewer different instructions to compress.
        "--dealign",
        "--strip-debug",
        "--strip-producers",
        "--strip-target-features",
    ]);
    command.arg("-o").arg(&optimised).arg(wasm);
    process::run(&mut command, OPTIMISE_LIMIT)?;
    fs::rename(&optimised, wasm)?;
    Ok(())
}
