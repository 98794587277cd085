/**
 * A WebSocket relay between browsers and the server, in the test's own process. It writes down what clients say, and
 * breaks, refuses, holds back or answers in the server's place where a test asks for it. It reads the protocol's JSON
 * form and shares no code with the bus.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocket, WebSocketServer, type RawData } from "ws";
import { nowMs } from "./driver/index.ts";

/** One command of a client, as it arrived. */
export interface Command {
  /** Number of the connection in {@link Relay.connections}. */
  readonly connection: number;
  readonly atMs: number;
  readonly kind: "connect" | "subscribe" | "unsubscribe" | "publish" | "history" | "other";
  /** The client's number of it; 0 for what is not answered. */
  readonly id: number;
  readonly channel?: string;
  /** Idempotency key of a publication. */
  readonly key?: string;
  readonly data?: unknown;
}

/** One attempt to connect. */
export interface Connection {
  readonly atMs: number;
  /** When it ended; absent while it stands. */
  closedAtMs?: number;
  readonly refused: boolean;
}

/** What becomes of a command or a reply: an object is the answer that the client gets in the server's place. */
export type Verdict = "pass" | "drop" | "hold" | { readonly error: Refusal };

export interface Refusal {
  readonly code: number;
  readonly message: string;
  readonly temporary?: boolean;
}

export interface Rules {
  /** Asked for every command. What is held goes to the server after {@link Relay.release}. */
  command?: (command: Command) => Verdict;
  /** Asked for every reply, with the command it answers. */
  reply?: (command: Command) => Exclude<Verdict, object>;
}

export interface RelayOptions {
  /** Keeps the Motet extension from the server, which then treats its clients as it treats foreign ones. */
  readonly foreign?: boolean;
}

export interface Relay extends AsyncDisposable {
  readonly url: string;
  readonly connections: readonly Connection[];
  readonly commands: readonly Command[];
  /** What happens to what passes from now on; an empty object lets everything pass. */
  rules: Rules;
  /** Connections that stand. */
  readonly open: number;
  /** Topics whose server subscription stands, once for each connection that holds it. */
  subscriptions(): string[];
  /** How much is held. */
  readonly held: number;
  /** Sends on what is held, in its order. */
  release(): void;
  /** Breaks all connections without a word. */
  cut(): void;
  /** Ends all connections with a close code, as the server would. */
  dismiss(code: number, reason: string): void;
  /** Refuses new connections, or takes them again. */
  refuse(refused: boolean): void;
  close(): Promise<void>;
}

export async function startRelay(upstreamUrl: string, options: RelayOptions = {}): Promise<Relay> {
  const server = createServer();
  const relay = new WebSocketRelay(server, upstreamUrl, options.foreign ?? false);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return relay;
}

type Json = Record<string, unknown>;

class WebSocketRelay implements Relay {
  readonly connections: Connection[] = [];
  readonly commands: Command[] = [];
  rules: Rules = {};
  readonly #server: Server;
  readonly #upstreamUrl: string;
  readonly #foreign: boolean;
  readonly #sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #links = new Set<Link>();
  #held: (() => void)[] = [];
  #refused = false;

  constructor(server: Server, upstreamUrl: string, foreign: boolean) {
    this.#server = server;
    this.#upstreamUrl = upstreamUrl;
    this.#foreign = foreign;
    server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => this.#upgrade(request, socket, head));
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/connection/websocket`;
  }

  get open(): number {
    return this.#links.size;
  }

  get held(): number {
    return this.#held.length;
  }

  subscriptions(): string[] {
    return Array.from(this.#links).flatMap((link) => Array.from(link.subscribed)).sort();
  }

  release(): void {
    const held = this.#held;
    this.#held = [];
    for (const send of held) send();
  }

  cut(): void {
    for (const link of this.#links) link.cut();
  }

  dismiss(code: number, reason: string): void {
    for (const link of this.#links) link.dismiss(code, reason);
  }

  refuse(refused: boolean): void {
    this.#refused = refused;
  }

  async close(): Promise<void> {
    this.#refused = true;
    this.cut();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const connection: Connection = { atMs: nowMs(), refused: this.#refused };
    const number = this.connections.push(connection) - 1;
    if (this.#refused) {
      connection.closedAtMs = nowMs();
      socket.end("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      const link = new Link(client, new WebSocket(this.#upstreamUrl, { perMessageDeflate: false }), {
        command: (message) => this.#command(number, message),
        reply: (command) => this.rules.reply?.(command) ?? "pass",
        hold: (send) => this.#held.push(send),
        ended: () => {
          connection.closedAtMs = nowMs();
          this.#links.delete(link);
        },
      });
      this.#links.add(link);
    });
  }

  #command(connection: number, message: Json): { command: Command; verdict: Verdict } {
    const connect = message["connect"] as Json | undefined;
    if (this.#foreign && connect !== undefined) delete connect["motet"];
    const command = read(connection, message);
    this.commands.push(command);
    return { command, verdict: this.rules.command?.(command) ?? "pass" };
  }
}

interface LinkRules {
  command(message: Json): { command: Command; verdict: Verdict };
  reply(command: Command): Exclude<Verdict, object>;
  hold(send: () => void): void;
  ended(): void;
}

/** One client's connection and the one to the server that belongs to it. */
class Link {
  readonly subscribed = new Set<string>();
  readonly #client: WebSocket;
  readonly #upstream: WebSocket;
  readonly #rules: LinkRules;
  readonly #asked = new Map<number, Command>();
  #waiting: string[] | undefined = [];
  #over = false;

  constructor(client: WebSocket, upstream: WebSocket, rules: LinkRules) {
    this.#client = client;
    this.#upstream = upstream;
    this.#rules = rules;
    client.on("message", (frame) => this.#fromClient(frame));
    upstream.on("message", (frame) => this.#fromServer(frame));
    upstream.on("open", () => {
      for (const line of this.#waiting ?? []) upstream.send(line);
      this.#waiting = undefined;
    });
    client.on("close", () => this.cut());
    upstream.on("close", (code, reason) => (isForClient(code) ? this.dismiss(code, String(reason)) : this.cut()));
    // Whatever is wrong with a socket ends both, as a broken network would.
    for (const socket of [client, upstream]) socket.on("error", () => this.cut());
  }

  cut(): void {
    if (this.#over) return;
    this.#over = true;
    this.#client.terminate();
    this.#upstream.terminate();
    this.#rules.ended();
  }

  dismiss(code: number, reason: string): void {
    // The client answers the close, and that ends both.
    this.#client.close(code, reason);
  }

  #fromClient(frame: RawData): void {
    for (const line of lines(frame)) {
      const message = JSON.parse(line) as Json;
      // An empty message is the answer to a ping.
      if (Object.keys(message).length === 0) {
        this.#toServer(line);
        continue;
      }
      const { command, verdict } = this.#rules.command(message);
      const passed = JSON.stringify(message);
      if (command.id > 0) this.#asked.set(command.id, command);
      if (verdict === "pass") this.#toServer(passed);
      else if (verdict === "hold") this.#rules.hold(() => this.#toServer(passed));
      else if (verdict !== "drop") this.#toClient(JSON.stringify({ id: command.id, ...verdict }));
    }
  }

  #fromServer(frame: RawData): void {
    for (const line of lines(frame)) {
      const reply = JSON.parse(line) as Json;
      const command = this.#asked.get(Number(reply["id"] ?? 0));
      if (command === undefined) {
        this.#toClient(line);
        continue;
      }
      this.#asked.delete(command.id);
      if (reply["error"] === undefined) this.#note(command);
      const verdict = this.#rules.reply(command);
      if (verdict === "pass") this.#toClient(line);
      else if (verdict === "hold") this.#rules.hold(() => this.#toClient(line));
    }
  }

  #note({ kind, channel }: Command): void {
    if (channel === undefined) return;
    if (kind === "subscribe") this.subscribed.add(channel);
    if (kind === "unsubscribe") this.subscribed.delete(channel);
  }

  #toServer(line: string): void {
    if (this.#waiting !== undefined) this.#waiting.push(line);
    else if (this.#upstream.readyState === WebSocket.OPEN) this.#upstream.send(line);
  }

  #toClient(line: string): void {
    if (this.#client.readyState === WebSocket.OPEN) this.#client.send(line);
  }
}

/** Close codes that the server means for its client; others tell of this connection only. */
const isForClient = (code: number): boolean => code >= 3_000 || code === 1_009;

const KINDS = ["connect", "subscribe", "unsubscribe", "publish", "history"] as const;

function read(connection: number, message: Json): Command {
  const kind = KINDS.find((name) => message[name] !== undefined) ?? "other";
  const body = (kind === "other" ? {} : message[kind]) as Json;
  const key = (body["motet"] as Json | undefined)?.["key"];
  return {
    connection,
    atMs: nowMs(),
    kind,
    id: Number(message["id"] ?? 0),
    ...(typeof body["channel"] === "string" ? { channel: body["channel"] } : {}),
    ...(typeof key === "string" ? { key } : {}),
    ...(kind === "publish" ? { data: body["data"] } : {}),
  };
}

function lines(frame: RawData): string[] {
  return String(frame).split("\n").filter((line) => line !== "");
}
