import type { CDPSession } from "puppeteer-core";
import { within } from "./deadline.ts";

interface TraceEvent {
  readonly name: string;
  readonly args?: { readonly data?: { readonly frames?: readonly TraceFrame[] } };
}

interface TraceFrame {
  readonly frame: string;
  readonly isOutermostMainFrame?: boolean;
  readonly processId?: number;
}

const TRACE_WITHIN_MS = 10_000;

/**
 * Asks the browser which process renders a page. No DevTools command says so directly, but the first event of
 * a performance trace lists the page's frames with their process ids. A browser runs one trace at a time.
 */
export class RendererPids {
  #previous: Promise<unknown> = Promise.resolve();

  of(session: CDPSession): Promise<number> {
    const answer = this.#previous.then(() => within(TRACE_WITHIN_MS, "renderer pid by trace", trace(session)));
    this.#previous = answer.catch(() => undefined);
    return answer;
  }
}

async function trace(session: CDPSession): Promise<number> {
  const events: TraceEvent[] = [];
  const collect = (part: { value: object[] }): void => {
    events.push(...(part.value as TraceEvent[]));
  };
  session.on("Tracing.dataCollected", collect);
  try {
    const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
    await session.send("Tracing.start", {
      transferMode: "ReportEvents",
      traceConfig: { includedCategories: ["disabled-by-default-devtools.timeline"] },
    });
    await session.send("Tracing.end");
    await complete;
  } finally {
    session.off("Tracing.dataCollected", collect);
  }
  const started = events.find((event) => event.name === "TracingStartedInBrowser");
  const frame = started?.args?.data?.frames?.find((candidate) => candidate.isOutermostMainFrame);
  if (frame?.processId === undefined) throw new Error("the trace names no process for the page");
  return frame.processId;
}
