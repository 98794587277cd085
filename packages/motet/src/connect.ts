import { Bus, type TopicMap } from "./bus.js";
import { MotetError } from "./error.js";
import { nodeModule, pageModule } from "./host.js";
import { checkOptions, pageFingerprint, type ConnectOptions } from "./options.js";
import { text } from "./thrown.js";
import { Session } from "./session.js";
import initPage from "./wasm/page/motet_web.js";

interface Shared {
  readonly session: Session;
  handles: number;
}

/** The clusters in use in this page, by name. */
const clusters = new Map<string, Shared>();
let page: Promise<void> | undefined;

/**
 * Joins a cluster. Resolves as soon as topics can be subscribed; `bus.ready()` tells when the page's node is a member.
 * Calling it again with the same options gives a second handle on the same node.
 *
 * @throws {@link MotetError}: `CONFIG_INVALID`, `TRANSPORT_UNSUPPORTED`, `CLUSTER_CONFIG_MISMATCH` for options;
 * `ENVIRONMENT_UNSUPPORTED`, `LOCKS_UNAVAILABLE`, `CHANNEL_UNAVAILABLE`, `WASM_BLOCKED`, `WASM_INVALID`, `WASM_UNAVAILABLE` for a page
 * that cannot join.
 */
export async function connect<Topics extends TopicMap = Record<string, unknown>>(
  options: ConnectOptions,
): Promise<Bus<Topics>> {
  checkEnvironment();
  checkOptions(options);
  // The node's module loads while the page's own does. Its failure is told when the node starts.
  nodeModule(options).catch(() => undefined);
  await loadPage(options);
  const shared = share(options);
  shared.handles += 1;
  if (options.autoStart !== false) shared.session.start();
  return new Bus<Topics>(shared.session, () => release(options.cluster, shared));
}

function share(options: ConnectOptions): Shared {
  const known = clusters.get(options.cluster);
  if (known !== undefined) {
    // Its options as they are now: it may have been started anew with others.
    if (pageFingerprint(known.session.options) !== pageFingerprint(options)) throw new MotetError("CLUSTER_CONFIG_MISMATCH", { detail: options.cluster });
    return known;
  }
  const shared = { session: new Session(options), handles: 0 };
  clusters.set(options.cluster, shared);
  return shared;
}

async function release(cluster: string, shared: Shared): Promise<void> {
  shared.handles -= 1;
  if (shared.handles > 0) return;
  // From now on a new connect is a new session.
  if (clusters.get(cluster) === shared) clusters.delete(cluster);
  await shared.session.close();
}

function loadPage(options: ConnectOptions): Promise<void> {
  page ??= (async () => {
    const url = options.wasmUrl?.page ?? new URL("./wasm/page/motet_web_bg.wasm", import.meta.url);
    await initPage({ module_or_path: await pageModule(url) });
  })();
  page.catch(() => (page = undefined));
  return page;
}

function checkEnvironment(): void {
  if (typeof window !== "object" || typeof document !== "object") throw new MotetError("ENVIRONMENT_UNSUPPORTED");
  if (typeof BroadcastChannel !== "function") throw new MotetError("CHANNEL_UNAVAILABLE");
  let locks: unknown;
  try {
    ({ locks } = navigator);
  } catch (cause) {
    throw new MotetError("LOCKS_UNAVAILABLE", { detail: text(cause), cause });
  }
  if (locks === undefined) throw new MotetError("LOCKS_UNAVAILABLE");
}
