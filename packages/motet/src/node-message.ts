import type { ErrorCode } from "./errors.js";

/** What a node is told when its host starts; read by the WebAssembly module by these names. */
export interface NodeOptions {
  readonly fingerprint: string;
  readonly tab: string;
  readonly visible: boolean;
  readonly shared: boolean;
  readonly build: string;
  readonly maxActiveNodes: number | undefined;
  readonly ringMessages: number | undefined;
  readonly ringBytes: number | undefined;
  readonly url: string;
  readonly protobuf: boolean;
  readonly messageSizeLimit: number;
  readonly name: string | undefined;
  readonly version: string | undefined;
  readonly data: unknown;
  readonly tokenNeeded: boolean;
  readonly topicTokens: string | undefined;
  readonly commandTimeoutMs: number | undefined;
}

/** First message from a page to a host. */
export interface NodeStart {
  readonly options: NodeOptions;
  /** Compiled by the page where the host can receive it. */
  readonly module?: WebAssembly.Module;
  /** Where the host finds the module otherwise. */
  readonly wasmUrl: string;
}

/** A host's answer. */
export type NodeStarted =
  | { readonly started: true }
  | { readonly started: false; readonly code: ErrorCode; readonly detail: string };
