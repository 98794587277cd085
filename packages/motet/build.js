// Compiles the facade and puts the WebAssembly modules beside it, so that `dist` is all a server has to serve.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const at = (...path) => join(here, ...path);

if (!existsSync(at("wasm", "build.js"))) {
  console.error("packages/motet/wasm is missing: run `cargo xtask wasm` first");
  process.exit(1);
}
// Built beside the final place, so that whoever serves `dist` meanwhile finds it whole.
const staged = at(`dist.${process.pid}`);
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const compiled = spawnSync(process.execPath, [tsc, "--project", at("tsconfig.json"), "--outDir", staged], { stdio: "inherit" });
if (compiled.status !== 0) {
  rmSync(staged, { recursive: true, force: true });
  process.exit(compiled.status ?? 1);
}
cpSync(at("wasm"), join(staged, "wasm"), { recursive: true });
const old = at(`dist.${process.pid}.old`);
if (existsSync(at("dist"))) renameSync(at("dist"), old);
renameSync(staged, at("dist"));
rmSync(old, { recursive: true, force: true });
