import uPlot from "uplot";

export interface Quake {
  readonly seq: number;
  readonly publishedAtMs: number;
  readonly time: number;
  readonly magnitude: number;
  readonly place: string;
}

export interface Price {
  readonly seq: number;
  readonly publishedAtMs: number;
  readonly day: string;
  readonly close: number;
}

const HEIGHT_PX = 220;
const QUAKE_WINDOW_S = 30;
const PRICE_POINTS = 400;

/** Magnitudes over the last half minute, each quake a circle as large as it was. */
export class QuakeChart {
  readonly #plot: uPlot;
  #times: number[] = [];
  #magnitudes: number[] = [];

  constructor(element: HTMLElement) {
    this.#plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: true }, y: { range: [-1, 7] } },
        axes: [{ ...axis(), space: 70, values: (_, times) => times.map(clockTime) }, axis()],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { draw: [(plot) => this.#drawCircles(plot)] },
      },
      [[], []],
      element,
    );
    keepWidth(this.#plot, element);
  }

  add(quake: Quake, atMs: number): void {
    this.#times.push(atMs / 1_000);
    this.#magnitudes.push(quake.magnitude);
    const oldest = atMs / 1_000 - QUAKE_WINDOW_S;
    const keep = this.#times.findIndex((time) => time >= oldest);
    if (keep > 100) {
      this.#times = this.#times.slice(keep);
      this.#magnitudes = this.#magnitudes.slice(keep);
    }
  }

  draw(nowMs: number): void {
    this.#plot.setData([this.#times, this.#magnitudes], false);
    this.#plot.setScale("x", { min: nowMs / 1_000 - QUAKE_WINDOW_S, max: nowMs / 1_000 });
  }

  #drawCircles(plot: uPlot): void {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.fillStyle = colour("--quakes");
    ctx.globalAlpha = 0.55;
    this.#times.forEach((time, index) => {
      const magnitude = this.#magnitudes[index] ?? 0;
      const radius = (1.2 + Math.max(0, magnitude) ** 1.6) * devicePixelRatio;
      ctx.beginPath();
      ctx.arc(plot.valToPos(time, "x", true), plot.valToPos(magnitude, "y", true), radius, 0, Math.PI * 2);
      ctx.fill();
    });
    ctx.restore();
  }
}

/** The closing price of the last trading days that arrived. */
export class PriceChart {
  readonly #plot: uPlot;
  readonly #days: number[] = [];
  readonly #closes: number[] = [];

  constructor(element: HTMLElement) {
    this.#plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        cursor: { show: false },
        axes: [axis(), axis()],
        series: [{}, { stroke: () => colour("--prices"), width: 1.75, points: { show: false } }],
      },
      [[], []],
      element,
    );
    keepWidth(this.#plot, element);
  }

  add(price: Price): void {
    const day = Date.parse(price.day) / 1_000;
    // The series begins anew when it has ended: uPlot wants its x values in order.
    if (day < (this.#days.at(-1) ?? -Infinity)) {
      this.#days.length = 0;
      this.#closes.length = 0;
    }
    this.#days.push(day);
    this.#closes.push(price.close);
    if (this.#days.length > PRICE_POINTS) {
      this.#days.shift();
      this.#closes.shift();
    }
  }

  draw(): void {
    this.#plot.setData([this.#days, this.#closes]);
  }
}

function axis(): uPlot.Axis {
  return {
    stroke: () => colour("--quiet"),
    grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    size: 44,
  };
}

function clockTime(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleTimeString("en", { hour12: false });
}

/** A custom property resolved to a colour that a canvas understands. */
function colour(property: string): string {
  probe.style.color = `var(${property})`;
  return getComputedStyle(probe).color;
}

const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

function keepWidth(plot: uPlot, element: HTMLElement): void {
  new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT_PX })).observe(element);
}
