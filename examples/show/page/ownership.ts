import type { Snapshot } from "motet";

/** A short name and a colour for a tab, the same in every tab that shows it. */
export function tabChip(tabId: string, isSelf: boolean): HTMLElement {
  const chip = document.createElement("span");
  chip.className = isSelf ? "chip me" : "chip";
  chip.textContent = tabId.slice(0, 4);
  chip.title = isSelf ? `${tabId} (this tab)` : tabId;
  chip.style.setProperty("--hue", String(hue(tabId)));
  return chip;
}

function hue(text: string): number {
  let value = 0;
  for (const character of text) value = (value * 31 + character.charCodeAt(0)) % 360;
  return value;
}

/** The two tables: which node owns which topic, and which nodes there are. */
export class OwnershipTables {
  readonly #routes: HTMLElement;
  readonly #nodes: HTMLElement;
  readonly #lastOwner = new Map<string, string>();

  constructor(routes: HTMLElement, nodes: HTMLElement) {
    this.#routes = routes;
    this.#nodes = nodes;
  }

  show(snapshot: Snapshot): void {
    const tabOf = new Map(snapshot.nodes.map((node) => [node.nodeId, node.tabId]));
    const chip = (tabId: string): HTMLElement => tabChip(tabId, tabId === snapshot.self.tabId);

    this.#routes.replaceChildren(
      ...snapshot.routes.map((route) => {
        const tabId = tabOf.get(route.owner);
        const owner = cell(tabId === undefined ? "nobody" : chip(tabId));
        const key = tabId ?? "nobody";
        if (this.#lastOwner.has(route.topic) && this.#lastOwner.get(route.topic) !== key) owner.className = "changed";
        this.#lastOwner.set(route.topic, key);
        return row(
          cell(route.topic),
          owner,
          cell(route.state),
          cell(route.generation),
          cell(route.subscribers),
          cell(route.position?.split(":").at(-1) ?? "\u2013"),
        );
      }),
    );

    this.#nodes.replaceChildren(
      ...snapshot.nodes.map((node) =>
        row(
          cell(chip(node.tabId)),
          cell(node.role),
          cell(node.load),
          cell(node.status),
          cell(node.visibility),
          cell(node.leaving ? "leaving" : node.registered),
        ),
      ),
    );
  }
}

function row(...cells: HTMLTableCellElement[]): HTMLTableRowElement {
  const element = document.createElement("tr");
  element.append(...cells);
  return element;
}

function cell(content: string | number | HTMLElement): HTMLTableCellElement {
  const element = document.createElement("td");
  element.append(typeof content === "number" ? String(content) : content);
  return element;
}
