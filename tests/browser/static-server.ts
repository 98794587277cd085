import { createReadStream, statSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, sep } from "node:path";
import { pipeline } from "node:stream";

/** Serves files and given pages on loopback, without COOP or COEP, so that tabs may have their own processes. */
export interface StaticServer extends AsyncDisposable {
  readonly origin: string;
  url(path: string): string;
  close(): Promise<void>;
}

export interface StaticServerOptions {
  /** URL prefix (with both slashes) to directory; the longest matching prefix wins. */
  readonly directories?: Readonly<Record<string, string>>;
  /** URL path to HTML text. */
  readonly pages?: Readonly<Record<string, string>>;
  /** URL path to a function that answers by itself. */
  readonly handlers?: Readonly<Record<string, RequestListener>>;
  /** Value of the `Content-Security-Policy` header of every answer. */
  readonly contentSecurityPolicy?: string;
  readonly port?: number;
}

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

export async function serveStatic(options: StaticServerOptions): Promise<StaticServer> {
  const server = createServer((request, response) => answer(options, request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): Promise<void> => stop(server);
  return { origin, url: (path) => origin + path, close, [Symbol.asyncDispose]: close };
}

function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  return closed;
}

function answer(options: StaticServerOptions, request: IncomingMessage, response: ServerResponse): void {
  if (options.contentSecurityPolicy !== undefined) {
    response.setHeader("content-security-policy", options.contentSecurityPolicy);
  }
  const path = requestPath(request);
  const handler = path === undefined ? undefined : options.handlers?.[path];
  if (handler !== undefined) {
    handler(request, response);
    return;
  }
  const page = path === undefined ? undefined : options.pages?.[path];
  if (page !== undefined) {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(page);
    return;
  }
  const file = path === undefined ? undefined : locate(options.directories ?? {}, path);
  if (file === undefined) {
    response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
    return;
  }
  response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
  pipeline(createReadStream(file), response, () => undefined);
}

function requestPath(request: IncomingMessage): string | undefined {
  try {
    return decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
  } catch {
    return undefined;
  }
}

function locate(directories: Readonly<Record<string, string>>, path: string): string | undefined {
  const prefix = Object.keys(directories)
    .filter((candidate) => path.startsWith(candidate))
    .sort((a, b) => b.length - a.length)[0];
  const directory = prefix === undefined ? undefined : directories[prefix];
  if (prefix === undefined || directory === undefined) return undefined;
  const file = normalize(join(directory, path.slice(prefix.length) || "index.html"));
  if (!file.startsWith(normalize(directory + sep))) return undefined;
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? file : undefined;
}
