/** How long a message takes, beside the barest chain that the browser allows, measured in the same run. */
import { moreMessages, steady } from "@motet/browser-tests/bus-page";
import { spawn, type ChildProcess } from "node:child_process";
import { percentile } from "@motet/browser-tests/checker";
import { beforeProcessEnds, until, within, type Tab } from "@motet/browser-tests/driver";
import { figure, type Figure } from "./figure.ts";
import type { Plan } from "./plan.ts";
import { nameOf, Stage } from "./stage.ts";

const TOPIC = "quotes";
const WAIT_MS = 10;
const ARRIVED_WITHIN_MS = 10_000;
const FLOOR = "bare chain, same run";

export async function latency(plan: Plan): Promise<Figure[]> {
  return [...(await publishToHandler(plan)), ...(await ownerToHandler(plan))];
}

async function publishToHandler({ samples }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  await using echo = await startEcho();
  const [owner, sender, receiver] = await threeTabs(stage, false);
  await receiver.evaluate(() => P.startBare("receiver", ""));
  await owner.evaluate((url: string) => P.startBare("owner", url), echo.url);
  await sender.evaluate((url: string) => P.startBare("sender", url), echo.url);
  // A hidden page's timers are slow; the sender's own pace is the measurement's.
  await sender.show();
  const senderName = await nameOf(sender);
  const warmUp = Math.ceil(samples / 10);
  await alternate(sender, warmUp);
  const aheadBefore = await receiver.evaluate((name: string) => P.clockAhead(name), `page:${senderName}`);
  const published: number[] = [];
  const posted: number[] = [];
  const arrivedMs: number[] = [];
  const bareMs: number[] = [];
  for (let left = samples; left > 0; left -= 200) {
    const count = Math.min(left, 200);
    const had = await receiver.evaluate((topic: string) => P.log.filter(({ kind, channel }) => kind === "message" && channel === topic).length, TOPIC);
    await receiver.evaluate(() => P.forgetBareArrivals());
    const sent = await alternate(sender, count);
    published.push(...sent.published);
    posted.push(...sent.posted);
    await receiver.waitFor("has all of it", ARRIVED_WITHIN_MS, (topic: string, least: number) =>
      P.log.filter(({ kind, channel }) => kind === "message" && channel === topic).length >= least, TOPIC, had + count);
    arrivedMs.push(...(await receiver.evaluate((topic: string, from: number) =>
      P.log.filter(({ kind, channel }) => kind === "message" && channel === topic).slice(from).map(({ atMs }) => atMs), TOPIC, had)));
    await receiver.waitFor("has all of the bare chain", ARRIVED_WITHIN_MS, (last: number) => P.bareArrivals[last] !== undefined, count);
    bareMs.push(...(await receiver.evaluate(() => P.bareArrivals.slice(1))));
  }
  const aheadAfter = await receiver.evaluate((name: string) => P.clockAhead(name), `page:${senderName}`);
  const ahead = (aheadBefore + aheadAfter) / 2;
  const differences = (arrived: readonly number[], sent: readonly number[]): number[] =>
    arrived.map((atMs, index) => atMs + ahead - (sent[index] ?? Number.NaN));
  const ours = differences(arrivedMs, published);
  const bare = differences(bareMs, posted);
  return [["p50", 0.5], ["p95", 0.95]].map(([name, fraction]) => {
    const value = percentile(ours, Number(fraction));
    const floor = percentile(bare, Number(fraction));
    return figure(`publish to another tab's handler, ${name}`, value, "ms", {
      peer: { name: FLOOR, value: floor },
      target: { text: "<= 1.25 x the bare chain", met: value <= 1.25 * floor },
    });
  });
}

function alternate(sender: Tab, count: number): Promise<{ published: number[]; posted: number[] }> {
  return sender.evaluate((topic: string, samples: number, waitMs: number) => P.alternate(topic, samples, waitMs), TOPIC, count, WAIT_MS);
}

async function ownerToHandler({ samples }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  const [owner, , receiver] = await threeTabs(stage, true);
  const stream = stage.publisher.pace(TOPIC, steady(20));
  await moreMessages(receiver, 20);
  const ownerName = await nameOf(owner);
  const worker = `worker:${ownerName}`;
  const aheadBefore = await receiver.evaluate((name: string) => P.clockAhead(name), worker);
  const from = await receiver.evaluate(() => P.log.length);
  await moreMessages(receiver, samples, samples * 40 + ARRIVED_WITHIN_MS);
  await stream.stop();
  const aheadAfter = await receiver.evaluate((name: string) => P.clockAhead(name), worker);
  const ahead = (aheadBefore + aheadAfter) / 2;
  const arrivals = await owner.evaluate(() => P.arrivals());
  const log = await receiver.evaluate((first: number) => P.log.slice(first), from);
  const latencies = log.flatMap((entry) => {
    if (entry.kind !== "message") return [];
    const atMs = arrivals[entry.seq];
    return atMs === undefined ? [] : [entry.atMs + ahead - atMs];
  });
  if (latencies.length < samples * 0.9) throw new Error(`of ${samples} deliveries ${latencies.length} were seen arriving at the owner`);
  return [
    figure("arrival at the owner to another tab's handler, p50", percentile(latencies, 0.5), "ms", { atMost: 0.6 }),
    figure("arrival at the owner to another tab's handler, p95", percentile(latencies, 0.95), "ms", { atMost: 1.5 }),
  ];
}

/** The owner of the topic, and two others. */
async function threeTabs(stage: Stage, instrument: boolean): Promise<[Tab, Tab, Tab]> {
  const tabs: Tab[] = [];
  for (let index = 0; index < 3; index += 1) tabs.push(await stage.open({ topics: [TOPIC], instrument }));
  await stage.browser.assertSeparateProcesses(tabs);
  const owner = await stage.owner(TOPIC, tabs);
  const [sender, receiver] = tabs.filter((tab) => tab !== owner);
  if (sender === undefined || receiver === undefined) throw new Error("three tabs were opened");
  return [owner, sender, receiver];
}

/** A server that sends back what it gets, in a process of its own as any server is. */
async function startEcho(): Promise<AsyncDisposable & { readonly url: string }> {
  const script = new URL("echo-server.ts", import.meta.url).pathname;
  const child: ChildProcess = spawn(process.execPath, ["--import", "tsx", script], { stdio: ["ignore", "pipe", "inherit"] });
  const outlived = beforeProcessEnds(() => child.kill("SIGKILL"));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let printed = "";
  child.stdout?.on("data", (part: Buffer) => (printed += part.toString()));
  const port = await until("the echo server listens", ARRIVED_WITHIN_MS, () => /^(\d+)\n/.exec(printed)?.[1]);
  return {
    url: `ws://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      outlived();
      child.kill("SIGKILL");
      await within(ARRIVED_WITHIN_MS, "the echo server ends", ended);
    },
  };
}
