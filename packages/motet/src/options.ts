import {
  anything,
  checkMembers,
  checkValue,
  invalid,
  isAddress,
  isFlag,
  isFunction,
  isName,
  isObject,
  isOneOf,
  isText,
  isWhole,
  type Checks,
} from "./checks.js";
import { MotetError } from "./error.js";
import { isBinary } from "./payload.js";

/** Where a page's node may run. */
export type HostPreference = "dedicated" | "shared" | "auto" | "page";

/** What a token is wanted for: a topic, or the connection when there is none. */
export interface TokenRequest {
  readonly topic?: string;
}

/** A server that speaks the Centrifuge protocol. */
export interface CentrifugeTransport {
  readonly kind: "centrifuge";
  /** A `ws:` or `wss:` address. */
  readonly url: string;
  /** How messages are encoded. With `"protobuf"` payloads are binary. Default `"json"`. */
  readonly protocol?: "json" | "protobuf";
  /** Supplies tokens, for the connection and for topics that need one. */
  readonly token?: (request: TokenRequest) => string | null | PromiseLike<string | null>;
  /** Which topics need a token: those that begin with `$` (`"private"`, the default), all, or none. */
  readonly topicTokens?: "private" | "always" | "never";
  /** Data for the server, sent with every connect. */
  readonly data?: unknown;
  /** Name of the application, for the server's logs. */
  readonly name?: string;
  /** Version of the application, for the server's logs. */
  readonly version?: string;
  /** How long the server may take to answer a command. Default 5000. */
  readonly commandTimeoutMs?: number;
  /** Bytes that the server takes in one message: its `websocket.message_size_limit`. Default 65536. */
  readonly messageSizeLimit?: number;
}

/** Options of {@link connect}. */
export interface ConnectOptions {
  /** Name of the cluster. Pages with the same name and options work together. */
  readonly cluster: string;
  /** The server. */
  readonly transport: CentrifugeTransport;
  /** Whose pages these are: pages of different users share nothing. */
  readonly user?: string;
  /** Where the node runs. Default `"dedicated"`. */
  readonly host?: HostPreference;
  /** At most so many tabs own topics and hold a connection. Default 3. */
  readonly maxActiveNodes?: number;
  /** Messages kept per topic for late handlers and those who catch up. Default 100. */
  readonly ringMessages?: number;
  /** Payload bytes kept per topic. Default 1 MiB. */
  readonly ringBytes?: number;
  /** How long a topic without handlers stays subscribed. Default 250. */
  readonly lingerMs?: number;
  /** Publications that may wait; the oldest is rejected beyond it. Default 1000. */
  readonly publishQueue?: number;
  /** Time a publication has. Default 10000. */
  readonly publishDeadlineMs?: number;
  /** Drop messages whose id was seen in the last minute. Default false. */
  readonly dedupeById?: boolean;
  /** Begin at once. With `false` nothing happens before `start()`. Default true. */
  readonly autoStart?: boolean;
  /** Address of the worker script, where a bundler does not find it. */
  readonly workerUrl?: string | URL;
  /** Address of the SharedWorker script. */
  readonly sharedWorkerUrl?: string | URL;
  /** Addresses of the WebAssembly modules. */
  readonly wasmUrl?: { readonly page?: string | URL; readonly node?: string | URL };
}

/** Options that a bus can be started with anew: what its node is made from, and how it signs in. */
export interface RestartConfig extends Pick<ConnectOptions, "host" | "workerUrl" | "sharedWorkerUrl"> {
  /** The page's own module is loaded already. */
  readonly wasmUrl?: { readonly node?: string | URL };
  readonly transport?: Pick<CentrifugeTransport, "token" | "data" | "name" | "version" | "commandTimeoutMs">;
}

const RESTART_CONFIG = new Set(["host", "workerUrl", "sharedWorkerUrl", "wasmUrl", "transport"]);

/** The options with `config` in place of theirs. */
export function reconfigured(options: ConnectOptions, config: RestartConfig): ConnectOptions {
  const fixed = Object.keys(config).find((name) => !RESTART_CONFIG.has(name));
  if (fixed !== undefined) invalid(fixed, "cannot change after connect()");
  const transport: CentrifugeTransport = { ...options.transport, ...config.transport };
  const { page } = options.wasmUrl ?? {};
  const wasmUrl = config.wasmUrl && { ...config.wasmUrl, ...(page === undefined ? {} : { page }) };
  const next: ConnectOptions = { ...options, ...config, transport, ...(wasmUrl === undefined ? {} : { wasmUrl }) };
  checkOptions(next);
  if (fingerprint(next) !== fingerprint(options)) {
    throw new MotetError("CLUSTER_CONFIG_MISMATCH", { detail: options.cluster });
  }
  return next;
}

const TRANSPORT: Checks<CentrifugeTransport> = {
  // These two have a code of their own.
  kind: anything,
  url: anything,
  protocol: isOneOf("json", "protobuf"),
  token: isFunction,
  topicTokens: isOneOf("private", "always", "never"),
  data: anything,
  name: isText,
  version: isText,
  commandTimeoutMs: isWhole(1, 600_000),
  messageSizeLimit: isWhole(1_024, 1 << 28),
};

const WASM_URL: Checks<NonNullable<ConnectOptions["wasmUrl"]>> = { page: isAddress, node: isAddress };

const OPTIONS: Checks<ConnectOptions> = {
  cluster: isName,
  transport: isObject,
  user: isText,
  host: isOneOf("dedicated", "shared", "auto", "page"),
  maxActiveNodes: isWhole(1, 64),
  ringMessages: isWhole(1, 10_000),
  ringBytes: isWhole(1, 1 << 28),
  lingerMs: isWhole(0, 3_600_000),
  publishQueue: isWhole(1, 100_000),
  publishDeadlineMs: isWhole(1, 3_600_000),
  dedupeById: isFlag,
  autoStart: isFlag,
  workerUrl: isAddress,
  sharedWorkerUrl: isAddress,
  wasmUrl: isObject,
};

/** Throws `CONFIG_INVALID` or `TRANSPORT_UNSUPPORTED` for options that cannot be used. */
export function checkOptions(options: ConnectOptions): void {
  checkMembers(options, OPTIONS);
  checkValue("cluster", isName, options.cluster);
  checkValue("transport", isObject, options.transport);
  checkMembers(options.wasmUrl ?? {}, WASM_URL, "wasmUrl");
  const { transport } = options;
  if (transport.kind !== "centrifuge") {
    throw new MotetError("TRANSPORT_UNSUPPORTED", { detail: `kind ${shown(transport.kind)}` });
  }
  if (!isSocketUrl(transport.url)) throw new MotetError("TRANSPORT_UNSUPPORTED", { detail: `URL ${shown(transport.url)}` });
  checkMembers(transport, TRANSPORT, "transport");
  checkData(transport);
}

/** What is sent with every connect must have a form in its encoding, and be fit for a worker. */
function checkData({ data, protocol }: CentrifugeTransport): void {
  if (data === undefined) return;
  if (protocol === "protobuf") {
    if (!isBinary(data)) invalid("transport.data", "binary, with protocol \"protobuf\"");
    return;
  }
  let plain = !isBinary(data);
  try {
    structuredClone(data);
    JSON.stringify(data);
  } catch {
    plain = false;
  }
  if (!plain) invalid("transport.data", "plain data that has a JSON form");
}

/** A wrong value as it may be shown: without what follows an address, which may be secret. */
function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.split(/[?#]/, 1)[0]) : `of type ${typeof value}`;
}

/**
 * Everything that decides whether two pages belong together. Its hash is part of every channel and lock name, so
 * that pages with other options never meet.
 */
export function fingerprint(options: ConnectOptions): string {
  const { transport } = options;
  return JSON.stringify([
    options.cluster,
    transport.kind,
    new URL(transport.url, location.href).href,
    transport.protocol ?? "json",
    transport.topicTokens ?? "private",
    options.user ?? null,
    options.maxActiveNodes ?? 3,
    options.ringMessages ?? 100,
    options.ringBytes ?? 1 << 20,
    messageSizeLimit(options),
  ]);
}

/** Bytes that the server takes in one message. */
export function messageSizeLimit({ transport }: ConnectOptions): number {
  return transport.messageSizeLimit ?? 1 << 16;
}

/** What must be the same for two calls of `connect` in one page to share a node. */
export function pageFingerprint(options: ConnectOptions): string {
  return JSON.stringify([
    fingerprint(options),
    options.host ?? "dedicated",
    options.lingerMs ?? null,
    options.publishQueue ?? null,
    options.publishDeadlineMs ?? null,
    options.dedupeById ?? false,
    options.transport.token !== undefined,
    options.transport.data ?? null,
  ]);
}

function isSocketUrl(url: unknown): boolean {
  if (typeof url !== "string") return false;
  try {
    return /^wss?:$/.test(new URL(url, location.href).protocol);
  } catch {
    return false;
  }
}
