import { MotetError, text } from "./error.js";

/**
 * Compiles a WebAssembly module.
 *
 * @throws {@link MotetError} `WASM_BLOCKED` when the page's security policy forbids it.
 */
export async function compile(url: string | URL): Promise<WebAssembly.Module> {
  if (typeof WebAssembly !== "object") throw new MotetError("WASM_BLOCKED", { detail: "no WebAssembly here" });
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${String(url)}: ${response.status}`);
    // Some servers do not know the content type that streaming asks for.
    const streams = response.headers.get("content-type")?.startsWith("application/wasm") === true;
    return await (streams
      ? WebAssembly.compileStreaming(response)
      : WebAssembly.compile(await response.arrayBuffer()));
  } catch (cause) {
    const blocked = cause instanceof WebAssembly.CompileError || /Content Security Policy|unsafe-eval/.test(text(cause));
    throw new MotetError(blocked ? "WASM_BLOCKED" : "NODE_UNAVAILABLE", { detail: text(cause), cause });
  }
}
