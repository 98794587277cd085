import "./stage.css";
import type { ActorView, StageOrder, StageView, TabAction } from "../stage-protocol.ts";
import { tabChip } from "./ownership.ts";

const POLL_EVERY_MS = 500;
const HISTORY_POINTS = 60;

const BUTTONS: readonly { readonly action: TabAction; readonly label: string; readonly when: readonly string[] }[] = [
  { action: "kill", label: "kill", when: ["playing", "frozen"] },
  { action: "freeze", label: "freeze", when: ["playing"] },
  { action: "thaw", label: "thaw", when: ["frozen"] },
  { action: "block", label: "block 2 s", when: ["playing"] },
  { action: "hide", label: "hide", when: ["playing"] },
  { action: "show", label: "show", when: ["playing"] },
  { action: "leave", label: "leave", when: ["playing"] },
  { action: "return", label: "come back", when: ["away"] },
  { action: "reload", label: "reload", when: ["playing"] },
  { action: "close", label: "close", when: ["playing"] },
];

const byId = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;
const cards = new Map<string, Card>();

async function order(body: StageOrder): Promise<void> {
  byId("said").textContent = "";
  const response = await fetch("/stage/do", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) byId("said").textContent = await response.text();
}

/** One tab's card. Its buttons stay the same elements while its state does, so that a click never misses. */
class Card {
  readonly element = document.createElement("article");
  readonly #head = document.createElement("header");
  readonly #owns = document.createElement("p");
  readonly #line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  readonly #facts = document.createElement("dl");
  readonly #buttons = document.createElement("div");
  readonly #rates: number[] = [];

  constructor() {
    const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    chart.setAttribute("viewBox", `0 0 ${HISTORY_POINTS - 1} 30`);
    chart.setAttribute("preserveAspectRatio", "none");
    chart.append(this.#line);
    this.element.className = "actor";
    this.#owns.className = "owns";
    this.#buttons.className = "buttons";
    this.element.append(this.#head, this.#owns, chart, this.#facts, this.#buttons);
  }

  show(actor: ActorView): void {
    this.#head.replaceChildren(...head(actor));
    const owned = actor.owns.map((topic) => `owns ${topic}`);
    this.#owns.textContent = [...(actor.role === "coordinator" ? ["coordinator"] : []), ...owned].join(", ");
    this.#drawRate(actor.perSecond ?? 0);
    this.#facts.replaceChildren(...facts(actor));
    if (this.element.dataset["state"] !== actor.state) {
      this.element.dataset["state"] = actor.state;
      this.#buttons.replaceChildren(...buttons(actor));
    }
  }

  #drawRate(perSecond: number): void {
    this.#rates.push(perSecond);
    if (this.#rates.length > HISTORY_POINTS) this.#rates.shift();
    const highest = Math.max(60, ...this.#rates);
    const offset = HISTORY_POINTS - this.#rates.length;
    const points = this.#rates.map((rate, index) => `${index + offset},${29 - (rate / highest) * 27}`);
    this.#line.setAttribute("points", points.join(" "));
  }
}

function head(actor: ActorView): HTMLElement[] {
  const name = document.createElement("strong");
  name.textContent = actor.tab;
  const pill = document.createElement("span");
  pill.className = "pill";
  pill.textContent = actor.state === "playing" ? actor.status : actor.state;
  pill.dataset["state"] = pill.textContent;
  return [name, ...(actor.tabId === "" ? [] : [tabChip(actor.tabId, false)]), pill];
}

function facts(actor: ActorView): HTMLElement[] {
  const rows: [string, string | number | null][] = [
    ["process", actor.pid],
    ["page", actor.visibility],
    ["delivered", actor.delivered],
    ["messages/s", actor.perSecond === null ? null : Math.round(actor.perSecond)],
    ["gap events", actor.gaps],
  ];
  return rows.flatMap(([term, value]) => {
    const key = document.createElement("dt");
    key.textContent = term;
    const description = document.createElement("dd");
    description.textContent = value === null || value === "" ? "\u2013" : String(value);
    return [key, description];
  });
}

function buttons(actor: ActorView): HTMLElement[] {
  return BUTTONS.filter(({ when }) => when.includes(actor.state)).map(({ action, label }) => {
    const button = document.createElement("button");
    button.textContent = label;
    button.addEventListener("click", () => order({ what: "tab", tab: actor.tab, action }));
    return button;
  });
}

function showActors(actors: readonly ActorView[]): void {
  for (const actor of actors) {
    let card = cards.get(actor.tab);
    if (card === undefined) {
      card = new Card();
      cards.set(actor.tab, card);
      byId("tabs").append(card.element);
    }
    card.show(actor);
  }
}

async function poll(): Promise<void> {
  try {
    const response = await fetch("/stage.json", { signal: AbortSignal.timeout(POLL_EVERY_MS * 6) });
    const view = (await response.json()) as StageView;
    showActors(view.actors);
    byId("link").textContent = `${view.connections} connection${view.connections === 1 ? "" : "s"} to the server`;
    byId("link").dataset["state"] = "running";
  } catch {
    byId("link").textContent = "the show has ended";
    byId("link").dataset["state"] = "closed";
  }
  setTimeout(poll, POLL_EVERY_MS);
}

byId("enter").addEventListener("click", () => order({ what: "enter" }));
byId("restart").addEventListener("click", () => order({ what: "restart-server" }));
void poll();
