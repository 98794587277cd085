import { existsSync } from "node:fs";
import { join } from "node:path";
import { coordinatorAmong, entriesOf, ownerAmong, subscribed } from "@motet/browser-tests/bus-page";
import { judge, totals, type Accepted, type PageLog } from "@motet/browser-tests/checker";
import { launchChromium, until, type Browser, type OpenOptions, type Tab } from "@motet/browser-tests/driver";
import { connectPublisher, type ForeignPublisher } from "@motet/browser-tests/foreign-publisher";
import { startServer, type MotetServer } from "@motet/browser-tests/server";
import { serveStatic, type StaticServer } from "@motet/browser-tests/static-server";
import type { ConnectOptions } from "motet";
import "./page-api.ts";

export interface StageOptions {
  readonly connect?: Partial<ConnectOptions>;
  /** Arguments of Chromium. */
  readonly browser?: readonly string[];
}

export interface TabOptions extends OpenOptions {
  readonly topics?: readonly string[];
  readonly cluster?: string;
  /** Counts posts and finds memories in the page and in its worker. */
  readonly instrument?: boolean;
}

/** What the checker found. */
export interface Faults {
  readonly lost: number;
  readonly repeated: number;
  /** Missing, but told. */
  readonly coveredByGaps: number;
  readonly gaps: number;
}

export const PUBLISHERS = 1;
const READY_WITHIN_MS = 15_000;
const LOGGED_WITHIN_MS = 5_000;

/**
 * Anybody may do everything. Streams outlast any absence, and the server may hold much for a tab that is slower
 * than a burst: how fast tabs are is the question, not when a server gives up on them.
 */
const SERVER = `
[client]
insecure = true
allowed_origins = ["*"]
queue_max_size = 134217728

[channel.without_namespace]
history_size = 2000
history_ttl = "300s"
force_recovery = true
`;

const here = new URL(".", import.meta.url).pathname;
export const PACKAGE = join(here, "../../packages/motet/dist");

/** A server, a browser with a fresh profile, a publisher that knows nothing of Motet. */
export class Stage implements AsyncDisposable {
  readonly server: MotetServer;
  readonly site: StaticServer;
  readonly browser: Browser;
  readonly publisher: ForeignPublisher;
  readonly #connect: Partial<ConnectOptions>;
  #opened = 0;

  private constructor(
    server: MotetServer,
    site: StaticServer,
    browser: Browser,
    publisher: ForeignPublisher,
    connect: Partial<ConnectOptions>,
  ) {
    this.server = server;
    this.site = site;
    this.browser = browser;
    this.publisher = publisher;
    this.#connect = connect;
  }

  static async start(options: StageOptions = {}): Promise<Stage> {
    if (!existsSync(join(PACKAGE, "index.js"))) throw new Error("packages/motet is not built: run `cargo xtask npm`");
    const started: AsyncDisposable[] = [];
    const keep = <T extends AsyncDisposable>(part: T): T => {
      started.unshift(part);
      return part;
    };
    try {
      const server = keep(await startServer({ config: SERVER }));
      const site = keep(await serveStatic({ directories: { "/": join(here, "pages"), "/motet/": PACKAGE } }));
      const browser = keep(await launchChromium({ extraArguments: options.browser ?? [] }));
      const publisher = await connectPublisher(server.websocketUrl);
      return new Stage(server, site, browser, publisher, options.connect ?? {});
    } catch (error) {
      for (const part of started) await part[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Opens a page and waits until its node is a member and it is subscribed to its topics. */
  async open(options: TabOptions = {}): Promise<Tab> {
    this.#opened += 1;
    const { topics = [], cluster = "bench" } = options;
    const connect: ConnectOptions = {
      cluster,
      transport: { kind: "centrifuge", url: this.server.websocketUrl },
      ...this.#connect,
    };
    const query = new URLSearchParams({
      name: `page${this.#opened}`,
      connect: JSON.stringify(connect),
      topics: JSON.stringify(topics),
      ...(options.instrument === true ? { instrument: "1" } : {}),
    });
    const tab = await this.browser.open(this.site.url(`/bench.html?${query.toString()}`), options);
    await tab.waitFor("is a member", READY_WITHIN_MS, () => globalThis.P?.ready);
    await subscribed(tab, topics);
    return tab;
  }

  /** The tab among these whose node owns a topic. */
  owner(topic: string, tabs: readonly Tab[]): Promise<Tab> {
    return ownerAmong(topic, tabs);
  }

  coordinator(tabs: readonly Tab[]): Promise<Tab> {
    return coordinatorAmong(tabs);
  }

  /**
   * What the server accepted, once its log has `least` publications of the topic and all that the publisher knows to
   * be accepted: the server answers before it writes.
   */
  accepted(topic: string, least = 0): Promise<Accepted[]> {
    return until(`the server's log tells of ${topic}`, LOGGED_WITHIN_MS, () => {
      const all = this.server.publications();
      const accepted = all.filter(({ channel }) => channel === topic);
      return accepted.length >= least && all.length >= this.publisher.counts.acknowledged && accepted;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.publisher.close().catch(() => undefined);
    await this.browser.close();
    await this.site.close();
    await this.server.close();
  }
}

/** The name by which a tab's clock and worker are asked for. */
export function nameOf(tab: Tab): Promise<string> {
  return tab.evaluate(() => new URLSearchParams(location.search).get("name") ?? "");
}

export async function logOf(tab: Tab, topic: string, complete: boolean): Promise<PageLog> {
  return { page: tab.name, entries: await entriesOf(tab, topic), complete };
}

export function faults(accepted: readonly Accepted[], logs: readonly PageLog[]): Faults {
  const { lost, coveredByGaps, repeated, outOfOrder, foreign, gaps } = totals(judge(accepted, logs));
  return { lost: lost + foreign, repeated: repeated + outOfOrder, coveredByGaps, gaps };
}
