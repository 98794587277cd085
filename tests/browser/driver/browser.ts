/**
 * The seam between tests and browsers: what a test may do to a tab, whatever engine runs it.
 * Every method is bounded in time and rejects with a typed error when its effect did not come about.
 */

/** One browser with a fresh profile. All its tabs share that profile, so one origin is one storage and lock space. */
export interface Browser extends AsyncDisposable {
  readonly engine: "chromium";
  readonly version: string;
  /** Opens a tab in a process of its own, in front, and waits for the load event. */
  open(url: string, options?: OpenOptions): Promise<Tab>;
  /** The tabs that are open, crashed ones included, in the order of opening. */
  readonly tabs: readonly Tab[];
  /** Rejects when two of the tabs share a renderer process. Returns the pids. */
  assertSeparateProcesses(tabs?: readonly Tab[]): Promise<number[]>;
  /** Ends every process of the browser and removes the profile. Safe to call twice. */
  close(): Promise<void>;
}

export interface OpenOptions {
  /** Leaves the tab that is in front where it is; the new one is then hidden from the start. */
  readonly background?: boolean;
}

/** What the page itself saw of its life; survives the back/forward cache, not a reload. */
export interface LifecycleEvent {
  readonly type: "pageshow" | "pagehide" | "freeze" | "resume" | "visibilitychange";
  readonly persisted?: boolean;
  readonly visibility: DocumentVisibilityState;
  /** `performance.timeOrigin + performance.now()` of the page. */
  readonly atMs: number;
}

export interface Tab {
  readonly name: string;
  readonly isOpen: boolean;
  /**
   * Runs a function in the page's main thread and returns its settled value.
   * Arguments and result are JSON; the function sees nothing of the test's scope.
   */
  evaluate<A extends readonly unknown[], R>(body: (...args: A) => R, ...args: A): Promise<Awaited<R>>;
  /** Asks the page until the function answers something truthy. */
  waitFor<A extends readonly unknown[], R>(
    what: string,
    withinMs: number,
    body: (...args: A) => R,
    ...args: A
  ): Promise<Awaited<R>>;
  lifecycle(): Promise<LifecycleEvent[]>;
  /** The process that runs this tab's page and workers, as the browser itself names it. */
  rendererPid(): Promise<number>;

  /** SIGKILL of the renderer; resolves with the time of the signal once the process is gone. */
  kill(): Promise<number>;
  /** Makes the renderer crash by itself; resolves with the time of the request. */
  crash(): Promise<number>;
  /** SIGSTOP of the renderer: frozen without any event, as by a suspended machine or a debugger. */
  stop(): Promise<number>;
  /** SIGCONT of the renderer. */
  cont(): Promise<number>;
  /** Hides the tab and freezes the page with its `freeze` event. */
  freeze(): Promise<number>;
  /** Ends {@link freeze}; the page sees `resume`. */
  resume(): Promise<number>;
  /** Brings the tab to front and waits until its page says it is visible. */
  show(): Promise<void>;
  /** Brings another tab to front and waits until this page says it is hidden. */
  hide(): Promise<void>;
  /** Navigates to another page; resolves when that page has loaded. */
  leave(url: string): Promise<number>;
  /**
   * Goes back in history; resolves when the earlier page is shown. `persisted` tells whether it came from
   * the back/forward cache, `reasons` why not.
   */
  back(): Promise<{ persisted: boolean; reasons: string[]; atMs: number }>;
  reload(): Promise<number>;
  /** `window.open` of the same address from the page: session storage is copied, the process shared. */
  duplicate(): Promise<Tab>;
  /** Closes the tab as its user would (pagehide runs); resolves with the time of the request. */
  close(): Promise<number>;
  /** A PNG of what the page shows. */
  screenshot(size?: { width: number; height: number }): Promise<Uint8Array>;
}
