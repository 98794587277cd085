import type { PageEntry, PageLog } from "@motet/browser-tests/checker";
import { privateMemoryBytes, until, within, type Browser, type Tab } from "@motet/browser-tests/driver";
import type { PageStats } from "./page/stage-api.ts";

export const TABS = 8;
export const TOPICS = ["quakes", "prices"] as const;
export type Topic = (typeof TOPICS)[number];

const CONNECT_WITHIN_MS = 30_000;
const ANSWER_WITHIN_MS = 5_000;
/** A page that does not answer so fast is shown without figures; it may be blocked or frozen on purpose. */
const STATS_WITHIN_MS = 400;
const LOG_WITHIN_MS = 5_000;

/** What one tab shows of itself, or that it cannot. */
export interface Sight {
  readonly tab: Tab;
  readonly pid: number | undefined;
  readonly state: ActorState;
  readonly stats: PageStats | undefined;
}

export type ActorState = "playing" | "killed" | "frozen" | "away" | "closed";

interface Actor {
  readonly tab: Tab;
  state: ActorState;
  pid: number | undefined;
  /** The look at the page that is under way; never rejects. */
  looking: Promise<unknown>;
  /** Logs of earlier loads, read before the page went. */
  readonly earlier: PageLog[];
}

/** The tabs of the show, what became of each, and who plays which part at the moment. */
export class Cast {
  readonly #browser: Browser;
  readonly #url: string;
  readonly #actors: Actor[] = [];

  constructor(browser: Browser, url: string) {
    this.#browser = browser;
    this.#url = url;
  }

  /**
   * Opens the first two tabs so that each owns a topic: what is wanted while a tab is alone is that tab's for as long
   * as it lives.
   */
  async begin(): Promise<void> {
    const first = await this.#browser.open(`${this.#url}?leave=quakes`);
    await this.#subscribed(first, ["prices"]);
    await this.enter();
    await first.evaluate(() => window.__stage.follow("quakes"));
    await this.#admit(first);
  }

  /** Opens one more tab and waits until its page is subscribed to every topic. */
  async enter(): Promise<Tab> {
    const tab = await this.#browser.open(this.#url);
    return this.#admit(tab);
  }

  async #admit(tab: Tab): Promise<Tab> {
    await this.subscribed(tab);
    this.#actors.push({ tab, state: "playing", pid: await tab.rendererPid(), looking: Promise.resolve(), earlier: [] });
    return tab;
  }

  subscribed(tab: Tab): Promise<void> {
    return this.#subscribed(tab, TOPICS);
  }

  async #subscribed(tab: Tab, topics: readonly Topic[]): Promise<void> {
    await tab.waitFor(`is subscribed to ${topics.join(" and ")}`, CONNECT_WITHIN_MS, (names: readonly string[]) => {
      const ready = new Set((window.__log ?? []).filter((entry) => entry.kind === "ready").map((entry) => entry.channel));
      return names.every((name) => ready.has(name));
    }, topics);
  }

  assertSeparateProcesses(): Promise<number[]> {
    return this.#browser.assertSeparateProcesses(this.playing());
  }

  playing(): Tab[] {
    return this.#actors.filter((actor) => actor.state === "playing").map((actor) => actor.tab);
  }

  byName(name: string): Tab | undefined {
    return this.#actors.find((actor) => actor.tab.name === name)?.tab;
  }

  become(tab: Tab, state: ActorState): void {
    this.#actor(tab).state = state;
  }

  /**
   * As {@link become}, and waits until nothing looks at the page any more: a script that runs in a page which is
   * just entering the back/forward cache would cost it its place there.
   */
  async withdraw(tab: Tab, state: ActorState): Promise<void> {
    this.become(tab, state);
    await this.#actor(tab).looking;
  }

  /** After a reload or a return the tab may live in another process. */
  async refreshPid(tab: Tab): Promise<void> {
    this.#actor(tab).pid = await tab.rendererPid();
  }

  /** The playing tab whose node owns a topic now. */
  owner(topic: Topic): Promise<Tab> {
    return this.#find(`a playing tab owns ${topic}`, ({ snapshot }) => {
      return snapshot.routes.find((route) => route.topic === topic)?.owner;
    });
  }

  coordinator(): Promise<Tab> {
    return this.#find("a playing tab is coordinator", ({ snapshot }) => {
      return snapshot.nodes.find((node) => node.role === "coordinator")?.nodeId;
    });
  }

  async sights(): Promise<Sight[]> {
    return Promise.all(
      this.#actors.map(async (actor) => {
        const { tab, pid, state } = actor;
        const look = state === "playing" || state === "frozen" ? this.#stats(tab, STATS_WITHIN_MS).catch(() => undefined) : undefined;
        actor.looking = Promise.resolve(look);
        return { tab, pid, state, stats: await look };
      }),
    );
  }

  memoryBytes(): number[] {
    return this.#actors.flatMap(({ pid, state }) => {
      return pid === undefined || state === "killed" || state === "closed" ? [] : [privateMemoryBytes(pid)];
    });
  }

  /** What the page has written down so far. */
  logOf(tab: Tab): Promise<PageEntry[]> {
    return within(LOG_WITHIN_MS, `log of ${tab.name}`, tab.evaluate(() => [...window.__log]));
  }

  /** Keeps the log of a page that goes for good: the next one of this tab is another's. */
  keepLog(tab: Tab, entries: readonly PageEntry[]): void {
    const { earlier } = this.#actor(tab);
    earlier.push({ page: `${tab.name}#${earlier.length + 1}`, entries, complete: false });
  }

  /** All logs: of pages that went, and of those that play still, which must hold everything. */
  async logs(): Promise<PageLog[]> {
    const logs: PageLog[] = [];
    for (const { tab, state, earlier } of this.#actors) {
      logs.push(...earlier);
      if (state !== "playing") continue;
      const page = earlier.length === 0 ? tab.name : `${tab.name}#${earlier.length + 1}`;
      logs.push({ page, entries: await this.logOf(tab), complete: true });
    }
    return logs;
  }

  #actor(tab: Tab): Actor {
    const actor = this.#actors.find((candidate) => candidate.tab === tab);
    if (actor === undefined) throw new Error(`${tab.name} is not on stage`);
    return actor;
  }

  #stats(tab: Tab, withinMs: number): Promise<PageStats> {
    return within(withinMs, `stats of ${tab.name}`, tab.evaluate(() => window.__stage.stats()));
  }

  #find(what: string, nodeOf: (stats: PageStats) => string | undefined): Promise<Tab> {
    return until(what, CONNECT_WITHIN_MS, async () => {
      const tabs = this.playing();
      const stats = await Promise.all(tabs.map((tab) => this.#stats(tab, ANSWER_WITHIN_MS)));
      const wanted = new Set(stats.map(nodeOf).filter((nodeId) => nodeId !== undefined));
      return tabs[stats.findIndex(({ snapshot }) => wanted.has(snapshot.self.nodeId ?? ""))];
    });
  }
}
