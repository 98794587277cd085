import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { BusStatus, ConnectOptions, SubscribeOptions } from "motet";
import { caughtUp, coordinatorAmong, entriesOf, ownerAmong, subscribed, type BusPage } from "./bus-page.ts";
import { judge, totals, type Accepted, type PageLog, type TopicVerdict } from "./checker.ts";
import { launchChromium, type Browser, type OpenOptions, type Tab } from "./driver/index.ts";
import { connectPublisher, type ForeignPublisher } from "./foreign-publisher.ts";
import { startServer, type MotetServer, type ServerOptions } from "./server.ts";
import { serveStatic, type StaticServer, type StaticServerOptions } from "./static-server.ts";

/** What `pages/bus.js` offers to `Tab.evaluate`. */
export interface TestPage extends BusPage {
  readonly statuses: readonly (BusStatus & { readonly atMs: number })[];
  readonly errors: readonly { readonly source: string; readonly code: string | null; readonly message: string }[];
  subscribe(topic: string, options?: SubscribeOptions, key?: string): void;
  unsubscribe(key: string): void;
  settle<T>(promise: PromiseLike<T>): Promise<Settled<T>>;
  killWorker(): void;
  workers(): number;
  block(forMs: number): void;
}

export type Settled<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: { readonly code: string | null; readonly name: string; readonly message: string } };

declare global {
  var B: TestPage;
}

export interface FixtureOptions {
  readonly server?: ServerOptions;
  readonly site?: Pick<StaticServerOptions, "contentSecurityPolicy" | "handlers">;
  readonly connect?: Partial<ConnectOptions>;
}

export interface BusTabOptions extends OpenOptions {
  readonly topics?: readonly string[];
  readonly connect?: Partial<ConnectOptions>;
}

const here = new URL(".", import.meta.url).pathname;
const packageDirectory = join(here, "../../packages/motet/dist");

/** A server, a browser with a fresh profile, a publisher that knows nothing of Motet; all ended with the test. */
export class BusFixture {
  readonly server: MotetServer;
  readonly site: StaticServer;
  readonly browser: Browser;
  readonly publisher: ForeignPublisher;
  readonly #connect: Partial<ConnectOptions>;
  readonly #earlierLogs: PageLog[] = [];

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

  static async start(t: TestContext, options: FixtureOptions = {}): Promise<BusFixture> {
    if (!existsSync(join(packageDirectory, "index.js"))) {
      throw new Error("packages/motet is not built: run `cargo xtask wasm` and `cargo xtask npm`");
    }
    const server = await startServer(options.server);
    t.after(() => server.close());
    const site = await serveStatic({
      directories: { "/": join(here, "pages"), "/motet/": packageDirectory },
      ...options.site,
    });
    t.after(() => site.close());
    const browser = await launchChromium();
    t.after(() => browser.close());
    const publisher = await connectPublisher(server.websocketUrl);
    t.after(() => publisher.close());
    return new BusFixture(server, site, browser, publisher, options.connect ?? {});
  }

  /** Opens a page on the bus and waits until it is subscribed to its topics. */
  async open(options: BusTabOptions = {}): Promise<Tab> {
    const connect: ConnectOptions = {
      cluster: "test",
      transport: { kind: "centrifuge", url: this.server.websocketUrl },
      ...this.#connect,
      ...options.connect,
    };
    const topics = options.topics ?? [];
    const query = new URLSearchParams({ connect: JSON.stringify(connect), topics: JSON.stringify(topics) });
    const tab = await this.browser.open(this.site.url(`/bus.html?${query.toString()}`), options);
    await subscribed(tab, topics);
    return tab;
  }

  async openMany(count: number, options: BusTabOptions = {}): Promise<Tab[]> {
    const tabs: Tab[] = [];
    for (let index = 0; index < count; index += 1) tabs.push(await this.open(options));
    await this.browser.assertSeparateProcesses(tabs);
    return tabs;
  }

  /** The tab among these whose node owns a topic. */
  owner(topic: string, tabs: readonly Tab[]): Promise<Tab> {
    return ownerAmong(topic, tabs);
  }

  coordinator(tabs: readonly Tab[]): Promise<Tab> {
    return coordinatorAmong(tabs);
  }

  /** Keeps the log of a page that a test is about to end. */
  async keepLog(tab: Tab): Promise<void> {
    const page = `${tab.name}#${this.#earlierLogs.length + 1}`;
    this.#earlierLogs.push({ page, entries: await entriesOf(tab), complete: false });
  }

  /**
   * Waits until the tabs have the last message of every topic (what is missing after that is the checker's to
   * find), then judges all logs.
   */
  async judge(tabs: readonly Tab[]): Promise<{ verdicts: TopicVerdict[]; accepted: Accepted[]; logs: PageLog[] }> {
    await this.publisher.pause();
    const accepted = await this.server.publicationsUpTo(this.publisher.acknowledged);
    const logs = [...this.#earlierLogs];
    for (const tab of tabs) {
      const topics = new Set((await entriesOf(tab)).map((entry) => entry.channel));
      for (const topic of topics) await caughtUp(tab, topic, accepted);
      logs.push({ page: tab.name, entries: await entriesOf(tab), complete: true });
    }
    return { verdicts: judge(accepted, logs), accepted, logs };
  }
}

/** What may be wrong with a run; a faultless one equals {@link NO_FAULTS}. */
export function faults(verdicts: readonly TopicVerdict[]): { lost: number; repeated: number; outOfOrder: number; foreign: number; gaps: number } {
  const { lost, repeated, outOfOrder, foreign, gaps } = totals(verdicts);
  return { lost, repeated, outOfOrder, foreign, gaps };
}

export const NO_FAULTS = { lost: 0, repeated: 0, outOfOrder: 0, foreign: 0, gaps: 0 } as const;
