import { setTimeout as pause } from "node:timers/promises";
import { nowMs, type Tab } from "@motet/browser-tests/driver";
import type { MotetServer } from "@motet/browser-tests/server";
import { BLOCKED, COORDINATOR_KILLED, FROZEN, LEFT, OWNER_KILLED, type OutageBound } from "./bounds.ts";
import type { Cast } from "./cast.ts";

/** One thing that happens to the tabs, and what the others may feel of it. */
export interface ShowEvent {
  readonly name: string;
  readonly title: string;
  /** Bounds on the largest gap between deliveries in the tabs it did not happen to. */
  readonly bound?: OutageBound;
  /** Gap events that each playing tab must report for each topic. */
  readonly gapsPerTopic: 0 | 1;
  /** Makes it happen. Resolves when it is over, its effects not included. */
  run(stage: Stage): Promise<Happening>;
}

export interface Stage {
  readonly cast: Cast;
  readonly server: MotetServer;
  /** Address of another page, for leaving to. */
  readonly awayUrl: string;
}

export interface Happening {
  readonly atMs: number;
  /** The tab it happened to: its own standstill is wanted. */
  readonly victim?: Tab;
  /** Whether the page came back from the back/forward cache, and why not. */
  readonly restored?: { readonly persisted: boolean; readonly reasons: readonly string[] };
}

const FROZEN_FOR_MS = 2_500;
const AWAY_FOR_MS = 2_000;
const BLOCKED_FOR_MS = 2_000;

export const EVENTS: readonly ShowEvent[] = [
  {
    name: "owner-killed",
    title: "owner's renderer killed",
    bound: OWNER_KILLED,
    gapsPerTopic: 0,
    run: async ({ cast }) => {
      // Each topic has an owner of its own, so one of the two does not coordinate.
      const prices = await cast.owner("prices");
      const coordinates = prices === (await cast.coordinator());
      return kill(cast, coordinates ? await cast.owner("quakes") : prices);
    },
  },
  {
    name: "coordinator-killed",
    title: "coordinator's renderer killed",
    bound: COORDINATOR_KILLED,
    gapsPerTopic: 0,
    run: async ({ cast }) => kill(cast, await cast.coordinator()),
  },
  {
    name: "owner-frozen",
    title: "an owner frozen, thawed after 2.5 s",
    bound: FROZEN,
    gapsPerTopic: 0,
    run: async ({ cast }) => {
      const victim = await cast.owner("quakes");
      const atMs = await victim.freeze();
      cast.become(victim, "frozen");
      await pause(FROZEN_FOR_MS);
      await victim.resume();
      cast.become(victim, "playing");
      return { atMs, victim };
    },
  },
  {
    name: "back-forward-cache",
    title: "an owner into the back/forward cache and back",
    bound: LEFT,
    gapsPerTopic: 0,
    run: async ({ cast, awayUrl }) => {
      const victim = await cast.owner("prices");
      const entries = await cast.logOf(victim);
      await cast.withdraw(victim, "away");
      const atMs = await victim.leave(awayUrl);
      await pause(AWAY_FOR_MS);
      const restored = await victim.back();
      if (!restored.persisted) {
        cast.keepLog(victim, entries);
        await cast.subscribed(victim);
      }
      cast.become(victim, "playing");
      await cast.refreshPid(victim);
      return { atMs, victim, restored };
    },
  },
  {
    name: "closed",
    title: "an owner's tab closed",
    bound: LEFT,
    gapsPerTopic: 0,
    run: async ({ cast }) => {
      const victim = await cast.owner("quakes");
      cast.keepLog(victim, await cast.logOf(victim));
      cast.become(victim, "closed");
      return { atMs: await victim.close(), victim };
    },
  },
  {
    name: "reloaded",
    title: "an owner's tab reloaded",
    bound: LEFT,
    gapsPerTopic: 0,
    run: async ({ cast }) => {
      const victim = await cast.owner("prices");
      cast.keepLog(victim, await cast.logOf(victim));
      cast.become(victim, "away");
      const atMs = await victim.reload();
      await cast.subscribed(victim);
      cast.become(victim, "playing");
      await cast.refreshPid(victim);
      return { atMs, victim };
    },
  },
  {
    name: "owner-blocked",
    title: "an owner's main thread blocked for 2 s",
    bound: BLOCKED,
    gapsPerTopic: 0,
    run: async ({ cast }) => {
      const victim = await cast.owner("quakes");
      const atMs = nowMs();
      await victim.evaluate((forMs: number) => window.__stage.block(forMs), BLOCKED_FOR_MS);
      return { atMs, victim };
    },
  },
  {
    name: "server-restarted",
    title: "server restarted",
    gapsPerTopic: 1,
    run: async ({ server }) => {
      const atMs = await server.stop();
      await server.restart();
      return { atMs };
    },
  },
];

async function kill(cast: Cast, victim: Tab): Promise<Happening> {
  cast.keepLog(victim, await cast.logOf(victim));
  cast.become(victim, "killed");
  return { atMs: await victim.kill(), victim };
}
