import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, type CDPSession, type Browser as PuppeteerBrowser } from "puppeteer-core";
import type { Browser, OpenOptions, Tab } from "./browser.ts";
import { ChromiumTab } from "./chromium-tab.ts";
import { RendererPids } from "./chromium-pids.ts";
import { until, within } from "./deadline.ts";
import { beforeProcessEnds } from "./lifetime.ts";
import { descendants, isRunning, signal } from "./processes.ts";

export interface ChromiumOptions {
  /** Default: `$MOTET_CHROMIUM`, then `$CHROMIUM`, then `/usr/bin/chromium`. */
  readonly executable?: string;
  readonly extraArguments?: readonly string[];
}

const LAUNCH_WITHIN_MS = 30_000;
const COMMAND_WITHIN_MS = 10_000;
const EXIT_WITHIN_MS = 5_000;

/**
 * Only what a headless run as root needs. Puppeteer's own list is left out on purpose: it turns off background
 * throttling and occlusion, and tests want tabs that are hidden, throttled and cached as in a user's browser.
 */
const ARGUMENTS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--no-default-browser-check",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--disable-breakpad",
  "--password-store=basic",
  "--remote-debugging-port=0",
  // Tabs of one site would share a process up to a threshold; a kill must take exactly one tab with it.
  "--disable-features=ProcessPerSiteUpToMainFrameThreshold",
  "--renderer-process-limit=200",
  "about:blank",
];

/** Starts a Chromium with a new empty profile. */
export async function launchChromium(options: ChromiumOptions = {}): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), "motet-chromium-"));
  try {
    const browser = await launch({
      executablePath: options.executable ?? systemChromium(),
      ignoreDefaultArgs: true,
      args: [`--user-data-dir=${profile}`, ...(options.extraArguments ?? []), ...ARGUMENTS],
      defaultViewport: null,
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
      timeout: LAUNCH_WITHIN_MS,
      protocolTimeout: LAUNCH_WITHIN_MS,
    });
    const session = await browser.target().createCDPSession();
    return new Chromium(browser, session, profile, await browser.version());
  } catch (error) {
    rmSync(profile, { recursive: true, force: true });
    throw error;
  }
}

function systemChromium(): string {
  return process.env["MOTET_CHROMIUM"] ?? process.env["CHROMIUM"] ?? "/usr/bin/chromium";
}

/** What a tab asks of the browser it lives in. */
export interface TabHost {
  readonly pids: RendererPids;
  /** Opens (once) and shows a tab that belongs to no test, so that all others are hidden. */
  showCurtain(): Promise<void>;
  /** Runs `open`, which makes the page `openerId` open a window, and attaches to that window. */
  openedBy(openerId: string, open: () => Promise<unknown>): Promise<ChromiumTab>;
  forget(tab: ChromiumTab): void;
  command(method: "Target.closeTarget" | "Target.activateTarget", targetId: string): Promise<void>;
}

class Chromium implements Browser, TabHost {
  readonly engine = "chromium";
  readonly version: string;
  readonly pids = new RendererPids();
  readonly #browser: PuppeteerBrowser;
  readonly #session: CDPSession;
  readonly #profile: string;
  readonly #pid: number;
  readonly #outlived: () => void;
  #tabs: ChromiumTab[] = [];
  #opened = 0;
  #curtain: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(browser: PuppeteerBrowser, session: CDPSession, profile: string, version: string) {
    const pid = browser.process()?.pid;
    if (pid === undefined) throw new Error("Chromium was started without a process");
    this.#browser = browser;
    this.#session = session;
    this.#profile = profile;
    this.#pid = pid;
    this.version = version;
    // The last resort when the runner ends without close(): nothing of the browser may outlive it.
    this.#outlived = beforeProcessEnds(() => {
      this.#killAll();
      rmSync(profile, { recursive: true, force: true });
    });
  }

  get tabs(): readonly Tab[] {
    return this.#tabs;
  }

  async open(url: string, options: OpenOptions = {}): Promise<Tab> {
    const targetId = await this.#createTarget("about:blank", options.background ?? false);
    const tab = await this.adopt(targetId);
    await tab.leave(url);
    if (!(options.background ?? false)) await tab.show();
    return tab;
  }

  async adopt(targetId: string): Promise<ChromiumTab> {
    const attached = this.#session.send("Target.attachToTarget", { targetId, flatten: true });
    const { sessionId } = await within(COMMAND_WITHIN_MS, `attach to ${targetId}`, attached);
    const session = this.#session.connection()?.session(sessionId);
    if (session == null) throw new Error(`the connection to Chromium ended while attaching to ${targetId}`);
    this.#opened += 1;
    const tab = await ChromiumTab.attach(`tab${this.#opened}`, targetId, session, this);
    this.#tabs.push(tab);
    return tab;
  }

  async openedBy(openerId: string, open: () => Promise<unknown>): Promise<ChromiumTab> {
    const opened: string[] = [];
    const note = ({ targetInfo }: { targetInfo: { targetId: string; openerId?: string } }): void => {
      if (targetInfo.openerId === openerId) opened.push(targetInfo.targetId);
    };
    // Discovery lists the targets that exist already; only what comes after it is the new window.
    await within(COMMAND_WITHIN_MS, "list tabs", this.#session.send("Target.setDiscoverTargets", { discover: true }));
    this.#session.on("Target.targetCreated", note);
    try {
      await open();
      return await this.adopt(await until("a second window opens", COMMAND_WITHIN_MS, () => opened[0]));
    } finally {
      this.#session.off("Target.targetCreated", note);
    }
  }

  async assertSeparateProcesses(tabs: readonly Tab[] = this.#tabs): Promise<number[]> {
    const pids: number[] = [];
    for (const tab of tabs) {
      const pid = await tab.rendererPid();
      const other = pids.indexOf(pid);
      if (other >= 0) throw new Error(`${tab.name} and ${tabs[other]?.name} share renderer process ${pid}`);
      pids.push(pid);
    }
    return pids;
  }

  async showCurtain(): Promise<void> {
    if (this.#curtain === undefined) this.#curtain = await this.#createTarget("about:blank", false);
    await this.command("Target.activateTarget", this.#curtain);
  }

  forget(tab: ChromiumTab): void {
    this.#tabs = this.#tabs.filter((other) => other !== tab);
  }

  async command(method: "Target.closeTarget" | "Target.activateTarget", targetId: string): Promise<void> {
    await within(COMMAND_WITHIN_MS, method, this.#session.send(method, { targetId }));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #createTarget(url: string, background: boolean): Promise<string> {
    const created = this.#session.send("Target.createTarget", { url, background });
    return (await within(COMMAND_WITHIN_MS, "open a tab", created)).targetId;
  }

  async #close(): Promise<void> {
    this.#outlived();
    const processes = [this.#pid, ...descendants(this.#pid)];
    try {
      this.#killAll();
      await this.#browser.disconnect();
      await until("all browser processes end", EXIT_WITHIN_MS, () => !processes.some(isRunning));
    } finally {
      rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    }
  }

  /** A fresh profile has nothing worth saving, so a hard end is the one that is always bounded. */
  #killAll(): void {
    for (const pid of [this.#pid, ...descendants(this.#pid)]) signal(pid, "SIGKILL");
  }
}
