import type { CDPSession } from "puppeteer-core";
import type { LifecycleEvent, Tab } from "./browser.ts";
import type { TabHost } from "./chromium.ts";
import { nowMs, until, within } from "./deadline.ts";
import { killAndWait, signal, stopAndWait } from "./processes.ts";

const EVALUATE_WITHIN_MS = 30_000;
const LOAD_WITHIN_MS = 20_000;
const STATE_WITHIN_MS = 5_000;

/** Runs before any script of the page and notes what the page sees of its life. */
const RECORD_LIFECYCLE = `(() => {
  if (window.__lifecycle !== undefined) return;
  const events = [];
  Object.defineProperty(window, "__lifecycle", { value: events });
  const note = (event) => events.push({
    type: event.type,
    ...("persisted" in event ? { persisted: event.persisted } : {}),
    visibility: document.visibilityState,
    atMs: performance.timeOrigin + performance.now(),
  });
  for (const type of ["pageshow", "pagehide"]) window.addEventListener(type, note, { capture: true });
  for (const type of ["freeze", "resume", "visibilitychange"]) document.addEventListener(type, note, { capture: true });
})()`;

export class ChromiumTab implements Tab {
  readonly name: string;
  readonly #targetId: string;
  readonly #session: CDPSession;
  readonly #host: TabHost;
  #pid: number | undefined;
  #open = true;

  private constructor(name: string, targetId: string, session: CDPSession, host: TabHost) {
    this.name = name;
    this.#targetId = targetId;
    this.#session = session;
    this.#host = host;
  }

  static async attach(name: string, targetId: string, session: CDPSession, host: TabHost): Promise<ChromiumTab> {
    const tab = new ChromiumTab(name, targetId, session, host);
    await tab.#send("Page.enable");
    await tab.#send("Page.addScriptToEvaluateOnNewDocument", { source: RECORD_LIFECYCLE });
    // A tab that a page opened already runs: it gets the recorder now.
    await tab.#expression(RECORD_LIFECYCLE);
    return tab;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  async evaluate<A extends readonly unknown[], R>(body: (...args: A) => R, ...args: A): Promise<Awaited<R>> {
    // A build step may have wrapped nested functions in calls of `__name`, which the page does not have.
    const call = `(() => { const __name = (f) => f; return (${body.toString()})(...${JSON.stringify(args)}); })()`;
    return (await this.#expression(call)) as Awaited<R>;
  }

  async waitFor<A extends readonly unknown[], R>(
    what: string,
    withinMs: number,
    body: (...args: A) => R,
    ...args: A
  ): Promise<Awaited<R>> {
    return (await until(`${this.name}: ${what}`, withinMs, () => this.evaluate(body, ...args))) as Awaited<R>;
  }

  async lifecycle(): Promise<LifecycleEvent[]> {
    return (await this.#expression("window.__lifecycle ?? []")) as LifecycleEvent[];
  }

  async rendererPid(): Promise<number> {
    this.#pid ??= await this.#host.pids.of(this.#session);
    return this.#pid;
  }

  async kill(): Promise<number> {
    const pid = await this.rendererPid();
    const atMs = nowMs();
    await killAndWait(pid);
    return atMs;
  }

  async crash(): Promise<number> {
    const pid = await this.rendererPid();
    const crashed = new Promise((resolve) => this.#session.once("Inspector.targetCrashed", resolve));
    const atMs = nowMs();
    // The command itself is never answered: the process that would answer is gone.
    this.#session.send("Page.crash").catch(() => undefined);
    await within(STATE_WITHIN_MS, `${this.name} (process ${pid}) crashes`, crashed);
    return atMs;
  }

  async stop(): Promise<number> {
    const pid = await this.rendererPid();
    const atMs = nowMs();
    await stopAndWait(pid);
    return atMs;
  }

  async cont(): Promise<number> {
    const atMs = nowMs();
    signal(await this.rendererPid(), "SIGCONT");
    return atMs;
  }

  async freeze(): Promise<number> {
    await this.hide();
    const before = (await this.lifecycle()).filter((event) => event.type === "freeze").length;
    const atMs = nowMs();
    await this.#send("Page.setWebLifecycleState", { state: "frozen" });
    await this.#lifecycleCount("freeze", before + 1);
    return atMs;
  }

  async resume(): Promise<number> {
    const before = (await this.lifecycle()).filter((event) => event.type === "resume").length;
    const atMs = nowMs();
    await this.#send("Page.setWebLifecycleState", { state: "active" });
    await this.#lifecycleCount("resume", before + 1);
    return atMs;
  }

  async show(): Promise<void> {
    await this.#host.command("Target.activateTarget", this.#targetId);
    await this.#visibility("visible");
  }

  async hide(): Promise<void> {
    await this.#host.showCurtain();
    await this.#visibility("hidden");
  }

  async leave(url: string): Promise<number> {
    const loaded = new Promise((resolve) => this.#session.once("Page.loadEventFired", resolve));
    const atMs = nowMs();
    const answer = await this.#send("Page.navigate", { url });
    if (answer.errorText !== undefined) throw new Error(`${this.name}: ${url}: ${answer.errorText}`);
    await within(LOAD_WITHIN_MS, `${this.name} loads ${url}`, loaded);
    this.#pid = undefined;
    return atMs;
  }

  async back(): Promise<{ persisted: boolean; reasons: string[]; atMs: number }> {
    const history = await this.#send("Page.getNavigationHistory");
    const entry = history.entries[history.currentIndex - 1];
    if (entry === undefined) throw new Error(`${this.name} has no earlier page`);
    const reasons: string[] = [];
    const explain = (event: { notRestoredExplanations: { reason: string }[] }): void => {
      reasons.push(...event.notRestoredExplanations.map((explanation) => explanation.reason));
    };
    this.#session.on("Page.backForwardCacheNotUsed", explain);
    const atMs = nowMs();
    try {
      await this.#send("Page.navigateToHistoryEntry", { entryId: entry.id });
      const shown = await until(`${this.name} shows ${entry.url} again`, LOAD_WITHIN_MS, async () => {
        if ((await this.#expression("location.href")) !== entry.url) return false;
        return (await this.lifecycle()).findLast((event) => event.type === "pageshow" && event.atMs >= atMs - 1);
      });
      this.#pid = undefined;
      return { persisted: shown.persisted === true, reasons, atMs };
    } finally {
      this.#session.off("Page.backForwardCacheNotUsed", explain);
    }
  }

  async reload(): Promise<number> {
    const loaded = new Promise((resolve) => this.#session.once("Page.loadEventFired", resolve));
    const atMs = nowMs();
    await this.#send("Page.reload");
    await within(LOAD_WITHIN_MS, `${this.name} reloads`, loaded);
    this.#pid = undefined;
    return atMs;
  }

  duplicate(): Promise<Tab> {
    return this.#host.openedBy(this.#targetId, () =>
      this.#send("Runtime.evaluate", { expression: "void window.open(location.href)", userGesture: true }),
    );
  }

  async close(): Promise<number> {
    const atMs = nowMs();
    await this.#host.command("Target.closeTarget", this.#targetId);
    this.#open = false;
    this.#host.forget(this);
    return atMs;
  }

  async screenshot(size?: { width: number; height: number }): Promise<Uint8Array> {
    if (size !== undefined) {
      await this.#send("Emulation.setDeviceMetricsOverride", { ...size, deviceScaleFactor: 1, mobile: false });
    }
    const { data } = await this.#send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }

  async #visibility(state: DocumentVisibilityState): Promise<void> {
    await until(`${this.name} is ${state}`, STATE_WITHIN_MS, async () => {
      return (await this.#expression("document.visibilityState")) === state;
    });
  }

  async #lifecycleCount(type: LifecycleEvent["type"], count: number): Promise<void> {
    await until(`${this.name} sees ${type}`, STATE_WITHIN_MS, async () => {
      return (await this.lifecycle()).filter((event) => event.type === type).length >= count;
    });
  }

  async #expression(expression: string): Promise<unknown> {
    const answer = await this.#send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails !== undefined) {
      const { exception, text } = answer.exceptionDetails;
      throw new Error(`${this.name}: ${exception?.description ?? text}`);
    }
    return answer.result.value;
  }

  #send: CDPSession["send"] = (method, ...rest) =>
    within(EVALUATE_WITHIN_MS, `${this.name}: ${method}`, this.#session.send(method, ...rest));
}
