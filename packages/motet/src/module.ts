import { Refusal } from "./refusal.js";
import { text } from "./thrown.js";

/** The smallest module there is. */
const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/**
 * Compiles a WebAssembly module.
 *
 * @throws {@link Refusal} `WASM_BLOCKED` when the page's security policy forbids it; with the address and what was
 * found there `WASM_INVALID` when that is no module, `WASM_UNAVAILABLE` when there was nothing.
 */
export async function compile(url: string | URL): Promise<WebAssembly.Module> {
  if (typeof WebAssembly !== "object") throw new Refusal("WASM_BLOCKED", "no WebAssembly here");
  const address = new URL(url, location.href).href;
  let found = "";
  try {
    const response = await fetch(address);
    const type = response.headers.get("content-type");
    found = ` status ${response.status}, ${type ?? "no content type"}:`;
    if (!response.ok) throw new Error("no file");
    // Some servers do not know the content type that streaming asks for.
    return await (type?.startsWith("application/wasm") === true
      ? WebAssembly.compileStreaming(response)
      : WebAssembly.compile(await response.arrayBuffer()));
  } catch (cause) {
    if (isForbidden()) throw new Refusal("WASM_BLOCKED", text(cause), cause);
    const code = cause instanceof WebAssembly.CompileError ? "WASM_INVALID" : "WASM_UNAVAILABLE";
    throw new Refusal(code, `${address}:${found} ${text(cause)}`, cause);
  }
}

/** Whether not even an empty module may be compiled: browsers word their refusals each in its own way. */
function isForbidden(): boolean {
  try {
    void new WebAssembly.Module(EMPTY);
    return false;
  } catch {
    return true;
  }
}
