"use strict";
// Draws the charts that the page describes. Each has buttons for its scales and its lines.

const NARROW = 680; // below so many pixels the panels stand in one column
const LEAST = 100;
const PANEL = 250;
const APART = 36; // pixels between two columns that stand in one
const ABOVE = 8; // pixels from a cross to its label
const BAR = 30; // pixels above the titles, for the toolbar
const LETTER = 6.1; // pixels of a letter of a label where a line ends
const WIDER = 1.4; // as Plotly makes the range of x wider, and places closer
const BETWEEN = 14; // pixels between two such labels
const dark = matchMedia("(prefers-color-scheme: dark)");
const charts = JSON.parse(document.getElementById("charts").textContent);

const ON_PAPER = { text: "#000", soft: "#444", grid: "#e6e6e6", card: "#fff", line: "#ccc" };

function ink(printing) {
  if (printing) return ON_PAPER;
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { text: of("--ink"), soft: of("--soft"), grid: of("--grid"), card: of("--card"), line: of("--line") };
}

const nth = (number) => (number === 1 ? "" : number); // as Plotly names axes: x, x2, x3
const distinct = (values) => [...new Set(values)];
const colourOf = (line, night) => (night ? line.colour.dark : line.colour.light);

// Groups of labels that share pixels from left to right, so that their heights must differ.
function abreast(labels, left) {
  const groups = [];
  let right = -Infinity;
  for (const one of [...labels].sort((a, b) => left(a) - left(b))) {
    if (left(one) < right) groups.at(-1).push(one);
    else groups.push([one]);
    right = Math.max(right, left(one) + WIDER * LETTER * one.line.end.length);
  }
  return groups;
}

// The heights nearest to those given that are at least a gap apart: `spread` in labels.py.
function spread(heights, gap) {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
  const pools = [];
  order.forEach((index, i) => {
    let pool = { mean: heights[index] - i * gap, size: 1 };
    while (pools.length && pools.at(-1).mean > pool.mean) {
      const before = pools.pop(), size = before.size + pool.size;
      pool = { mean: (before.mean * before.size + pool.mean * pool.size) / size, size };
    }
    pools.push(pool);
  });
  const means = pools.flatMap((pool) => Array(pool.size).fill(pool.mean));
  const places = [];
  order.forEach((index, i) => { places[index] = means[i] + i * gap; });
  return places;
}

class Figure {
  constructor(chart, place) {
    this.chart = chart;
    this.place = place;
    this.hidden = new Set();
    this.scales = { x: chart.columns[0].xScale, y: "bound" };
    this.printing = false;
    const lines = chart.columns.flatMap((column) => column.lines);
    this.labels = distinct(lines.map((line) => line.label));
    const highest = Math.max(...lines.flatMap((line) => line.y));
    this.reference = highest + 0.001 * Math.abs(highest); // distances to it are positive
    this.legend();
    this.buttons();
    this.draw();
  }

  get night() {
    return dark.matches && !this.printing;
  }

  legend() {
    const box = this.place.querySelector(".legend");
    const lines = this.chart.columns.flatMap((column) => column.lines);
    for (const label of this.labels) {
      const line = lines.find((one) => one.label === label);
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.setAttribute("aria-hidden", "true");
      swatch.style.borderTopStyle = { solid: "solid", dash: "dashed", dot: "dotted" }[line.dash];
      button.append(swatch, label);
      button.addEventListener("click", () => this.toggle([label]));
      box.append(button);
    }
  }

  buttons() {
    for (const group of this.place.querySelectorAll("[data-axis]")) {
      for (const button of group.querySelectorAll("button")) {
        button.addEventListener("click", () => {
          this.scales[group.dataset.axis] = button.value;
          this.draw();
        });
      }
    }
    for (const button of this.place.querySelectorAll("[data-lines]")) {
      button.addEventListener("click", () => {
        this.hidden = new Set(button.dataset.lines === "all" ? [] : this.labels);
        this.draw();
      });
    }
  }

  toggle(labels) {
    for (const label of labels) {
      if (!this.hidden.delete(label)) this.hidden.add(label);
    }
    this.draw();
  }

  draw() {
    const box = this.place.querySelector(".chart");
    const width = this.printing ? 660 : box.clientWidth;
    if (width < LEAST) return; // not laid out yet
    const stacked = width < NARROW && !this.printing;
    const far = this.scales.y === "distance";
    const rows = far ? this.chart.rows.slice(0, 1) : this.chart.rows;
    const across = stacked ? 1 : this.chart.columns.length;
    const deep = stacked ? rows.length * this.chart.columns.length : rows.length;
    const apart = stacked ? APART : 0; // room for the label above and the title below
    const bar = stacked || this.printing ? 0 : BAR;
    const height = deep * PANEL + 70 + bar + apart * (this.chart.columns.length - 1);
    const traces = [], ends = [];
    const layout = this.layout(width, height);
    const labelled = this.roomy(width / across);
    this.chart.columns.forEach((column, c) => {
      rows.forEach((row, r) => {
        const at = stacked ? { x: 0, y: c * rows.length + r } : { x: c, y: r };
        const number = c * rows.length + r + 1;
        this.panel(layout, column, row, number, at, { across, deep, height, width, apart, bar, c, r, rows: rows.length, far });
        if (labelled) ends.push(...this.ends(layout, column, row, number, r, far, { width, height }));
        for (const line of column.lines) traces.push(...this.traces(line, column, number, r, far));
      });
    });
    layout.annotations.unshift(...ends);
    box.style.height = `${height}px`;
    Plotly.react(box, traces, layout, {
      displaylogo: false,
      displayModeBar: stacked || this.printing ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      responsive: false,
      scrollZoom: false,
      doubleClick: "reset",
      toImageButtonOptions: { format: "svg", filename: this.chart.name },
    });
    this.press();
  }

  press() {
    const theme = this.night;
    const lines = this.chart.columns.flatMap((column) => column.lines);
    this.place.querySelectorAll(".legend button").forEach((button, i) => {
      button.setAttribute("aria-pressed", String(!this.hidden.has(this.labels[i])));
      const line = lines.find((one) => one.label === this.labels[i]);
      button.firstChild.style.borderTopColor = colourOf(line, theme);
    });
    for (const group of this.place.querySelectorAll("[data-axis]")) {
      for (const button of group.querySelectorAll("button")) {
        button.setAttribute("aria-pressed", String(this.scales[group.dataset.axis] === button.value));
      }
    }
  }

  traces(line, column, number, row, far) {
    if (this.hidden.has(line.label)) return [];
    const colour = colourOf(line, this.night);
    const place = (y) => (far ? this.reference - y : y);
    const axes = { xaxis: `x${nth(number)}`, yaxis: `y${nth(number)}` };
    const mode = [line.joined ? "lines" : "", line.marker === "none" ? "" : "markers"].filter(Boolean).join("+");
    const label = line.notes.length ? "%{text}" : `%{x:,.4s} ${column.xLabel}<br>bound %{customdata:,.0f}`;
    const drawn = {
      type: "scatter", mode, name: line.label, x: line.x, y: line.y.map(place), ...axes,
      customdata: line.y, text: line.notes,
      line: { color: colour, width: line.width * 1.25, dash: line.dash },
      marker: { color: colour, size: 8, symbol: line.marker === "ring" ? "circle-open" : "circle" },
      hovertemplate: `<b>${line.label.replace(/</g, "&lt;")}</b><br>${label}<extra></extra>`,
      showlegend: false,
    };
    const cross = far && line.lost ? [line.x.at(-1), line.y.at(-1)] : line.crosses[row];
    if (!cross) return [drawn];
    return [drawn, {
      type: "scatter", mode: "markers", x: [cross[0]], y: [place(cross[1])], ...axes, cliponaxis: false,
      marker: { symbol: "x-thin", size: 9, line: { color: colour, width: 2 } },
      hovertemplate: `<b>${line.label.replace(/</g, "&lt;")}</b><br>diverged<extra></extra>`, showlegend: false,
    }];
  }

  // Whether panels of this width have room for labels: Plotly widens the range of x by the longest.
  roomy(width) {
    const lines = this.chart.columns.flatMap((column) => column.lines);
    return LETTER * Math.max(...lines.map((line) => line.end.length)) < 0.3 * width;
  }

  // The labels of the lines that end in a panel, moved up or down so that none covers another.
  ends(layout, column, row, number, r, far, page) {
    const lines = column.lines.filter((line) => !this.hidden.has(line.label) && (far || line.endRow === r));
    const across = layout[`xaxis${nth(number)}`], upright = layout[`yaxis${nth(number)}`];
    const logX = this.scales.x === "log" ? Math.log10 : (x) => x;
    const logY = far || row.scale === "log" ? Math.log10 : (y) => y;
    const place = (y) => logY(far ? this.reference - y : y);
    const visible = column.lines.filter((line) => !this.hidden.has(line.label));
    const xs = visible.flatMap((line) => line.x).map(logX);
    const ys = far ? visible.flatMap((line) => line.y).map(place) : [logY(row.low), logY(row.high)];
    const scale = (values, pixels) => pixels / (Math.max(...values) - Math.min(...values) || 1);
    const perX = scale(xs, page.width * (across.domain[1] - across.domain[0]));
    const perY = scale(ys, page.height * (upright.domain[1] - upright.domain[0])) * (far ? -1 : 1);
    const labels = lines.map((line) => {
      const cross = line.lost && !far ? line.crosses[r] : null;
      const [x, y] = cross || [line.x.at(-1), line.y.at(-1)];
      return { line, x: logX(x), y: place(y), cross: line.lost };
    });
    const moved = new Map();
    for (const group of abreast(labels, (one) => one.x * perX)) {
      const at = group.map((one) => one.y * perY + (one.cross ? ABOVE : 0));
      const shifts = spread(at, BETWEEN).map((height, i) => height - at[i]);
      const sunk = Math.min(0, ...shifts.filter((_, i) => group[i].cross)); // below the panel
      shifts.forEach((shift, i) => moved.set(group[i], shift - sunk));
    }
    return labels.map((one) => ({
      text: one.line.end.replace(/</g, "&lt;"), xref: `x${nth(number)}`, yref: `y${nth(number)}`, x: one.x, y: one.y,
      xanchor: "left", yanchor: "middle", xshift: one.cross ? 4 : 1, yshift: moved.get(one) + (one.cross ? ABOVE : 0), showarrow: false,
      font: { size: 10.5, color: colourOf(one.line, this.night) },
    }));
  }

  layout(width, height) {
    const theme = ink(this.printing);
    return {
      modebar: { bgcolor: "rgba(0,0,0,0)", color: theme.soft, activecolor: theme.text },
      width, height, margin: { l: 0, r: 0, t: 0, b: 0 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: theme.text },
      hovermode: "closest", hoverlabel: { bgcolor: theme.card, bordercolor: theme.line, font: { color: theme.text } },
      dragmode: width < NARROW ? false : "zoom", showlegend: false, annotations: [], separators: ".,",
    };
  }

  panel(layout, column, row, number, at, grid) {
    const theme = ink(this.printing);
    const left = 58 / grid.width, gapX = 66 / grid.width, gapY = 40 / grid.height;
    const top = (30 + grid.bar) / grid.height, bottom = 46 / grid.height;
    const wide = (1 - left - 6 / grid.width - gapX * (grid.across - 1)) / grid.across;
    const apart = grid.apart / grid.height, columns = this.chart.columns.length;
    const high = (1 - top - bottom - gapY * (grid.deep - 1) - apart * (columns - 1)) / grid.deep;
    const x0 = left + at.x * (wide + gapX), y1 = 1 - top - at.y * (high + gapY) - grid.c * apart;
    const last = grid.r === grid.rows - 1;
    const common = {
      gridcolor: theme.grid, linecolor: theme.line, zeroline: false, tickfont: { color: theme.soft, size: 11 },
      showline: true, ticks: "", automargin: false,
    };
    const ticks = column.xTicks.length && this.scales.x === "log";
    layout[`xaxis${nth(number)}`] = {
      ...common, domain: [x0, x0 + wide], anchor: `y${nth(number)}`, type: this.scales.x,
      ...(grid.r ? { matches: `x${nth(number - grid.r)}` } : {}),
      title: last ? { text: column.xLabel, font: { size: 12, color: theme.soft }, standoff: 6 } : undefined,
      ...(ticks ? { tickvals: column.xTicks, ticktext: column.xTicks.map(String) } : { exponentformat: "power", dtick: this.scales.x === "log" ? 1 : undefined, nticks: 6, tickformat: this.scales.x === "log" ? undefined : "~s" }),
    };
    const span = row.scale === "log" ? [Math.log10(row.low), Math.log10(row.high)] : [row.low, row.high];
    const named = { tickvals: row.ticks.map((tick) => tick[0]), ticktext: row.ticks.map((tick) => tick[1]) };
    layout[`yaxis${nth(number)}`] = {
      ...common, domain: [y1 - high, y1], anchor: `x${nth(number)}`, nticks: 6,
      ...(grid.far ? { type: "log", autorange: "reversed", exponentformat: "power", dtick: undefined } : { type: row.scale, range: span, tickformat: "~s" }),
      ...(row.ticks.length && !grid.far ? named : {}),
    };
    if (grid.r === 0) {
      layout.annotations.push({
        text: `<b>${column.title}</b>`, xref: "paper", yref: "paper", x: grid.apart ? 0 : x0, y: y1 + 6 / grid.height,
        xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 13, color: theme.text },
      });
    }
  }
}

const figures = charts.map((chart) => new Figure(chart, document.getElementById(chart.name)));
const redraw = () => figures.forEach((figure) => figure.draw());
const print = (now) => figures.forEach((figure) => { figure.printing = now; figure.draw(); });

let waiting = 0;
let before = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (document.documentElement.clientWidth === before) return; // a phone's bars coming and going
  before = document.documentElement.clientWidth;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(redraw);
});
dark.addEventListener("change", redraw);
addEventListener("beforeprint", () => { document.querySelectorAll("details").forEach((one) => { one.open = true; }); print(true); });
addEventListener("afterprint", () => print(false));
document.documentElement.dataset.drawn = "yes";
