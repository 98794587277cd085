import { MotetError, type ErrorObject } from "./error.js";
import type { Position } from "./message.js";
import type { BusStatus, HostKind } from "./status.js";

/** The page and its place in the cluster. */
export interface SelfRow {
  readonly tabId: string;
  readonly nodeId: string | undefined;
  readonly host: HostKind | undefined;
  readonly coordination: BusStatus["coordination"];
  readonly coordinatorId: string | undefined;
  /** The coordinator's fence, as `incarnation/epoch`. */
  readonly epoch: string;
}

/** A member of the cluster. */
export interface NodeRow {
  readonly nodeId: string;
  readonly tabId: string;
  readonly role: "coordinator" | "member";
  /** State of its server connection. */
  readonly status: "idle" | "connecting" | "connected" | "errored";
  readonly visibility: "visible" | "hidden";
  /** Topics it owns. */
  readonly load: number;
  /** Its place in the order of registration, from 1. */
  readonly registered: number;
  /** Milliseconds on the page's clock when this page was first told of it. */
  readonly registeredAt: number;
  /**
   * Milliseconds since this page's node heard of it, in waking time; undefined when it never has. Asked for when a
   * snapshot is read, at most once a second, and shown from the next one on. Only the coordinator (every 2.5 s) and
   * owners speak unasked: how any node is alive is seen by its lock.
   */
  readonly lastBeatAgoMs: number | undefined;
  readonly leaving: boolean;
}

/** A topic and its owner. */
export interface RouteRow {
  readonly topic: string;
  /** Key of the topic where its name should not appear. */
  readonly topicKey: string;
  readonly owner: string;
  readonly generation: number;
  readonly handoffFrom: string | undefined;
  readonly state: "assigned" | "subscribing" | "subscribed" | "failed";
  readonly error: string | undefined;
  /** Nodes with a subscriber. */
  readonly subscribers: number;
  /** Milliseconds on the page's clock when its owner was first known to hold the server subscription. */
  readonly confirmedAt: number | undefined;
  /** Milliseconds on the page's clock when the row changed last. */
  readonly updatedAt: number;
  /** Where this page stands, if it is subscribed. */
  readonly position: string | undefined;
}

/** A topic this page is subscribed to. */
export interface SubscriptionRow {
  readonly topic: string;
  readonly phase: "joining" | "live" | "catching-up";
  readonly epoch: string | undefined;
  readonly offset: number;
  readonly handlers: number;
  /** Messages held behind a hole. */
  readonly held: number;
  /** Messages kept for late handlers. */
  readonly kept: number;
}

/** A publication that waits. */
export interface PendingRow {
  readonly call: number;
  readonly topic: string;
  readonly attempt: number;
  readonly ageMs: number;
  readonly remainingMs: number;
}

/** What there is to see, as flat rows for `console.table`. */
export interface Snapshot {
  readonly self: SelfRow;
  readonly nodes: readonly NodeRow[];
  readonly routes: readonly RouteRow[];
  readonly subscribed: readonly SubscriptionRow[];
  /** Topics this page's node owns. */
  readonly owned: readonly string[];
  /** Topics this page's node holds a server subscription for. */
  readonly transportSubscribed: readonly string[];
  /** Topics whose route is known here. */
  readonly known: readonly string[];
  readonly pending: readonly PendingRow[];
  /** Lengths of what waits. */
  readonly queues: { readonly publishes: number; readonly held: number };
  readonly counters: Readonly<Record<string, number>>;
}

const CONNECTIONS = ["idle", "connecting", "connected", "errored"] as const;
const ROUTE_STATES = ["assigned", "subscribing", "subscribed", "failed"] as const;
const PHASES = ["joining", "live", "catching-up"] as const;

/** Collects the rows that the core tells. */
export class SnapshotCollector {
  #self: Omit<SelfRow, "host" | "coordination"> = {
    tabId: "",
    nodeId: undefined,
    coordinatorId: undefined,
    epoch: "",
  };
  readonly #nodes: Omit<NodeRow, "load" | "role">[] = [];
  readonly #routes: Omit<RouteRow, "position">[] = [];
  readonly #subscribed: SubscriptionRow[] = [];
  readonly #pending: PendingRow[] = [];
  readonly #counters: Record<string, number> = {};

  identity(tabId: string, nodeId: string | undefined, coordinatorId: string | undefined, incarnation: string, epoch: number): void {
    this.#self = { tabId, nodeId, coordinatorId, epoch: `${incarnation}/${epoch}` };
  }

  node(
    nodeId: string,
    tabId: string,
    registered: number,
    visible: boolean,
    connection: number,
    leaving: boolean,
    registeredAt: number,
    lastBeatAgoMs: number | undefined,
  ): void {
    const visibility = visible ? "visible" : "hidden";
    const status = CONNECTIONS[connection] ?? "idle";
    this.#nodes.push({ nodeId, tabId, status, visibility, registered, registeredAt, lastBeatAgoMs, leaving });
  }

  route(
    topic: string,
    topicKey: string,
    owner: string,
    generation: number,
    handoffFrom: string | undefined,
    state: number,
    error: ErrorObject | undefined,
    subscribers: number,
    updatedAt: number,
    confirmedAt: number | undefined,
  ): void {
    this.#routes.push({
      topic,
      topicKey,
      owner,
      generation,
      handoffFrom,
      state: ROUTE_STATES[state] ?? "assigned",
      error: error === undefined ? undefined : MotetError.from(error).code,
      subscribers,
      confirmedAt,
      updatedAt,
    });
  }

  subscription(
    topic: string,
    phase: number,
    epoch: string | undefined,
    offset: number,
    handlers: number,
    held: number,
    kept: number,
  ): void {
    this.#subscribed.push({ topic, phase: PHASES[phase] ?? "joining", epoch, offset, handlers, held, kept });
  }

  pending(call: number, topic: string, attempt: number, ageMs: number, remainingMs: number): void {
    this.#pending.push({ call, topic, attempt, ageMs, remainingMs });
  }

  counter(name: string, value: number): void {
    this.#counters[name] = value;
  }

  /** The rows, joined. */
  finish(status: BusStatus): Snapshot {
    const { nodeId, coordinatorId } = this.#self;
    const owned = this.#routes.filter((route) => route.owner === nodeId && nodeId !== undefined);
    const loads = new Map<string, number>();
    for (const { owner } of this.#routes) loads.set(owner, (loads.get(owner) ?? 0) + 1);
    return {
      self: { ...this.#self, host: status.host?.kind, coordination: status.coordination },
      nodes: this.#nodes.map((node) => ({
        ...node,
        role: node.nodeId === coordinatorId ? "coordinator" : "member",
        load: loads.get(node.nodeId) ?? 0,
      })),
      routes: this.#routes.map((route) => ({ ...route, position: this.#position(route.topic) })),
      subscribed: this.#subscribed,
      owned: owned.map(({ topic }) => topic),
      transportSubscribed: owned.filter(({ state }) => state === "subscribed").map(({ topic }) => topic),
      known: this.#routes.map(({ topic }) => topic),
      pending: this.#pending,
      queues: {
        publishes: this.#pending.length,
        held: this.#subscribed.reduce((sum, { held }) => sum + held, 0),
      },
      counters: this.#counters,
    };
  }

  #position(topic: string): string | undefined {
    const row = this.#subscribed.find((subscribed) => subscribed.topic === topic);
    return row?.epoch === undefined ? undefined : text({ epoch: row.epoch, offset: row.offset });
  }
}

const text = ({ epoch, offset }: Position): string => `${epoch}:${offset}`;
