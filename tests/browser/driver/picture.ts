import { serveStatic } from "../static-server.ts";
import type { Browser } from "./browser.ts";

export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** A PNG of a page, given as HTML that draws itself while it loads. */
export async function pictureOf(browser: Browser, html: string, size: PictureSize): Promise<Uint8Array> {
  await using server = await serveStatic({ pages: { "/": html } });
  const tab = await browser.open(server.url("/"));
  try {
    return await tab.screenshot(size);
  } finally {
    await tab.close();
  }
}
