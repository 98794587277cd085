export type { Browser, LifecycleEvent, OpenOptions, Tab } from "./browser.ts";
export { launchChromium, type ChromiumOptions } from "./chromium.ts";
export { DeadlineExceeded, nowMs, until, within } from "./deadline.ts";
export { establishedConnections } from "./connections.ts";
export { beforeProcessEnds } from "./lifetime.ts";
export { pictureOf, type PictureSize } from "./picture.ts";
export { cpuTimeMs, descendants, isRunning, privateMemoryBytes } from "./processes.ts";
