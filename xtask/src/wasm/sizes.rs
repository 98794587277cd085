//! What a browser has to fetch: raw, gzip and brotli sizes of the modules.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::MODULES;
use crate::process;
use crate::workspace::{command, root, target};

/// Prints `[raw, gzip, brotli]` of each file named on the command line.
const MEASURE: &str = "\
const { readFileSync } = require('node:fs');
const { gzipSync, brotliCompressSync } = require('node:zlib');
const sizes = process.argv.slice(1).map((path) => {
  const bytes = readFileSync(path);
  return [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes).length];
});
console.log(JSON.stringify(sizes));";

/// Prints the table and writes `target/wasm-sizes.json`.
pub(crate) fn report() -> Result<()> {
    let files: Vec<_> =
        MODULES.iter().flat_map(|module| [module.wasm(), module.javascript()]).collect();
    let mut node = command("node");
    let printed =
        process::capture(node.args(["-e", MEASURE]).args(&files), Duration::from_secs(60))?;
    let sizes: Vec<[u64; 3]> = serde_json::from_str(&printed).context("node printed no sizes")?;

    println!("{:<44} {:>9} {:>9} {:>9}", "file", "raw", "gzip", "brotli");
    let mut rows = Vec::new();
    for (module, pair) in MODULES.iter().zip(sizes.chunks_exact(2)) {
        let total: [u64; 3] = std::array::from_fn(|index| pair.iter().map(|row| row[index]).sum());
        for (file, size) in [module.wasm(), module.javascript()].iter().zip(pair) {
            rows.push(row(&shown(file), size));
        }
        rows.push(row(&format!("{} in all", module.feature), &total));
    }
    let path = target().join("wasm-sizes.json");
    fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&rows)?))?;
    println!("Written: {}", shown(&path));
    Ok(())
}

fn row(name: &str, [raw, gzip, brotli]: &[u64; 3]) -> Value {
    println!("{name:<44} {raw:>9} {gzip:>9} {brotli:>9}");
    json!({ "file": name, "raw": raw, "gzip": gzip, "brotli": brotli })
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
