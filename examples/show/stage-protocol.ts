/** What the stage page asks of the show over HTTP, and what it is told. */

export const TAB_ACTIONS = ["kill", "freeze", "thaw", "block", "hide", "show", "leave", "return", "reload", "close"] as const;
export type TabAction = (typeof TAB_ACTIONS)[number];

export interface ActorView {
  readonly tab: string;
  readonly tabId: string;
  readonly pid: number | null;
  readonly state: string;
  readonly status: string;
  readonly role: string;
  readonly owns: readonly string[];
  readonly visibility: string;
  readonly delivered: number | null;
  readonly perSecond: number | null;
  readonly gaps: number | null;
}

export interface StageView {
  readonly actors: readonly ActorView[];
  readonly connections: number;
}

/** Body of `POST /stage/do`. */
export type StageOrder =
  | { readonly what: "tab"; readonly tab: string; readonly action: TabAction }
  | { readonly what: "enter" }
  | { readonly what: "restart-server" };
