import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { Tab } from "@motet/browser-tests/driver";
import type { ActorState, Cast, Sight } from "./cast.ts";
import type { Stage } from "./events.ts";
import { TAB_ACTIONS, type ActorView, type StageOrder, type StageView, type TabAction } from "./stage-protocol.ts";

const BODY_BYTES_MAX = 1_024;
const BLOCK_MS = 2_000;
const RESTART_AFTER_MS = 500;

/** The HTTP half of the stage page: shows the tabs and does to them what a person asks. */
export class StageServer {
  #stage: Stage | undefined;
  #view: StageView = { actors: [], connections: 0 };
  /** Orders are carried out one after another; two at once on one tab would make no sense. */
  #previous: Promise<unknown> = Promise.resolve();

  readonly handlers: Readonly<Record<string, RequestListener>> = {
    "/stage.json": (_, response) => json(response, this.#view),
    "/stage/do": (request, response) => void this.#do(request, response),
  };

  /** From now on orders are taken. */
  open(stage: Stage): void {
    this.#stage = stage;
  }

  show(sights: readonly Sight[], connections: number): void {
    this.#view = { actors: sights.map(viewOf), connections };
  }

  async #do(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const stage = this.#stage;
    if (request.method !== "POST" || !isSameOrigin(request)) {
      refuse(response, 403, "orders are taken from the stage page alone");
      return;
    }
    if (stage === undefined) {
      refuse(response, 409, "the show is still running; orders are taken when it is over");
      return;
    }
    try {
      const order = parseOrder(await body(request));
      const done = this.#previous.then(() => carryOut(stage, order));
      this.#previous = done.catch(() => undefined);
      await done;
      json(response, {});
    } catch (error) {
      refuse(response, 400, error instanceof Error ? error.message : String(error));
    }
  }
}

async function carryOut(stage: Stage, order: StageOrder): Promise<void> {
  const { cast, server } = stage;
  switch (order.what) {
    case "enter":
      await cast.enter();
      return;
    case "restart-server":
      await server.stop();
      await pause(RESTART_AFTER_MS);
      await server.restart();
      return;
    case "tab": {
      const tab = cast.byName(order.tab);
      if (tab === undefined) throw new Error(`there is no ${order.tab}`);
      await act(stage, tab, order.action);
    }
  }
}

async function act({ cast, awayUrl }: Stage, tab: Tab, action: TabAction): Promise<void> {
  const become = async (state: ActorState, done: Promise<unknown>): Promise<void> => {
    await done;
    cast.become(tab, state);
  };
  const actions: Record<TabAction, () => Promise<unknown>> = {
    kill: () => become("killed", tab.kill()),
    freeze: () => become("frozen", tab.freeze()),
    thaw: () => become("playing", tab.resume()),
    block: () => tab.evaluate((forMs: number) => window.__stage.block(forMs), BLOCK_MS),
    hide: () => tab.hide(),
    show: () => tab.show(),
    leave: () => leave(cast, tab, awayUrl),
    return: () => returnTo(cast, tab),
    reload: () => tab.reload(),
    close: () => become("closed", tab.close()),
  };
  await actions[action]();
}

async function leave(cast: Cast, tab: Tab, awayUrl: string): Promise<void> {
  await cast.withdraw(tab, "away");
  await tab.leave(awayUrl);
}

async function returnTo(cast: Cast, tab: Tab): Promise<void> {
  await tab.back();
  cast.become(tab, "playing");
  await cast.refreshPid(tab);
}

function viewOf({ tab, pid, state, stats }: Sight): ActorView {
  const snapshot = stats?.snapshot;
  const node = snapshot?.nodes.find((candidate) => candidate.nodeId === snapshot.self.nodeId);
  const owned = (snapshot?.routes ?? []).filter((route) => route.owner === snapshot?.self.nodeId);
  return {
    tab: tab.name,
    tabId: snapshot?.self.tabId ?? "",
    pid: pid ?? null,
    state,
    status: stats?.status ?? "busy",
    role: node?.role ?? "",
    owns: owned.map((route) => route.topic),
    visibility: node?.visibility ?? "",
    delivered: stats?.delivered ?? null,
    perSecond: stats?.perSecond ?? null,
    gaps: stats?.gaps ?? null,
  };
}

/** A page of another site must not be able to give orders, nor one that a name server points here. */
function isSameOrigin(request: IncomingMessage): boolean {
  const { host, origin } = request.headers;
  return host !== undefined && host.startsWith("127.0.0.1:") && origin === `http://${host}`;
}

function parseOrder(text: string): StageOrder {
  const order = JSON.parse(text) as Partial<Record<string, unknown>>;
  if (order["what"] === "enter") return { what: "enter" };
  if (order["what"] === "restart-server") return { what: "restart-server" };
  const tab = order["tab"];
  const action = TAB_ACTIONS.find((candidate) => candidate === order["action"]);
  if (order["what"] === "tab" && typeof tab === "string" && action !== undefined) return { what: "tab", tab, action };
  throw new Error("not an order");
}

async function body(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > BODY_BYTES_MAX) throw new Error("the order is too long");
  }
  return text;
}

function json(response: ServerResponse, value: object): void {
  response.setHeader("content-type", "application/json");
  response.setHeader("cache-control", "no-store");
  response.end(JSON.stringify(value));
}

function refuse(response: ServerResponse, status: number, reason: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(reason);
}
