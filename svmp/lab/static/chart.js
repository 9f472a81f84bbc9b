// The chart: the bound against accesses, a line for each run.
//
// Bounds are negative here, and may fall by many powers of ten. Their log scale is that of -bound,
// upside down.

/* global Plotly */
import { colour, compact, dash, stroke, symbol } from "./looks.js";

const place = document.getElementById("chart");
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const ACCESSES = 1;
const BOUND = 3;
const column = (runs, index) => runs.flatMap((run) => run.rows.map((row) => row[index]));

const CONFIG = {
  responsive: true,
  displaylogo: false,
  displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
  modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

/** Limits and scale of each view. */
const VIEWS = {
  // All bounds, however far a run has fallen.
  all: (runs) => ({ low: -Infinity, high: Math.max(...column(runs, BOUND)), log: true }),
  // From a little below the start of the runs; bounds below that are cut off.
  start: (runs) => {
    const starts = runs.filter((run) => run.rows.length).map((run) => run.rows[0][BOUND]);
    return { low: 5 * Math.min(...starts), high: Math.max(...column(runs, BOUND)), log: true };
  },
  // The highest bounds, where runs end.
  top: (runs) => {
    const best = Math.max(...column(runs, BOUND));
    return { low: 1.3 * best, high: best, log: false };
  },
};

/** The line of a run. */
function line(run, view, first) {
  return {
    type: "scatter",
    mode: "lines",
    name: run.label,
    x: run.rows.map((row) => row[ACCESSES] || first),
    y: run.rows.map((row) => row[BOUND] * (view.log ? -1 : 1)),
    customdata: run.rows,
    hovertemplate:
      "bound %{customdata[3]:,.0f}<br>%{customdata[1]:,} accesses, iteration %{customdata[0]:,}",
    line: { color: stroke(run), dash: dash(run), width: 2.5 },
  };
}

/** A mark at the end of a line: how the run ended, or where it left the frame. */
function mark(run, { x, y }, view, xlog) {
  const inside = run.rows.findLastIndex((row) => row[BOUND] >= view.low);
  let end = [x.at(-1), y.at(-1)];
  const fell = inside < run.rows.length - 1;
  if (fell && inside >= 0) {
    const floor = view.log ? -view.low : view.low;
    const share = between(y[inside], y[inside + 1], view.log).shareOf(floor);
    end = [between(x[inside], x[inside + 1], xlog).at(share), floor];
  }
  return {
    type: "scatter",
    mode: "markers",
    hoverinfo: "skip",
    x: inside < 0 ? [] : [end[0]],
    y: inside < 0 ? [] : [end[1]],
    cliponaxis: false,
    marker: {
      color: stroke(run),
      line: { width: 0 },
      opacity: 1,
      size: 11,
      symbol: fell ? "triangle-down" : symbol(run),
    },
  };
}

/** The straight line between two values on an axis. */
function between(one, other, log) {
  const [to, from] = log ? [Math.log, Math.exp] : [Number, Number];
  const [a, b] = [to(one), to(other)];
  return {
    shareOf: (value) => (to(value) - a) / (b - a),
    at: (share) => from(a + share * (b - a)),
  };
}

/** Ticks of a log scale that is too short for powers of ten only. */
function ticks(high, low, sign) {
  const digits = high - low < 0.9 ? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8] : [1, 2, 5];
  const powers = [];
  for (let power = Math.floor(low); power <= high; power += 1) powers.push(10 ** power);
  const tickvals = powers.flatMap((power) => digits.map((digit) => digit * power));
  return { tickvals, ticktext: tickvals.map((value) => compact(sign * value)) };
}

function xaxis(x, runs, first) {
  if (x !== "log") return { type: x, rangemode: "tozero", tickformat: "~s" };
  const [low, high] = [Math.log10(first), Math.log10(Math.max(...column(runs, ACCESSES)))];
  return { type: x, ...(high - low > 2.5 ? { dtick: 1 } : ticks(high, low, 1)) };
}

function yaxis(view, runs) {
  if (!view.log) {
    const margin = 0.05 * (view.high - view.low);
    return { type: "linear", tickformat: "~s", range: [view.low, view.high + margin] };
  }
  const lowest = Math.max(view.low, Math.min(...column(runs, BOUND)));
  const [from, to] = [Math.log10(-lowest), Math.log10(-view.high)];
  const decades = from - to;
  const margin = 0.05 * decades || 0.1;
  const range = [lowest === view.low ? from : from + margin, to - margin];
  const powers = { tickprefix: "−", exponentformat: "power", dtick: Math.ceil(decades / 8) };
  return { type: "log", range, ...(decades > 2.5 ? powers : ticks(...range, -1)) };
}

/** Draw all visible runs. The zoom is kept until a scale is switched. */
export function draw(all) {
  const runs = all.filter((run) => run.rows.length && !run.hidden);
  const [x, y] = [chosen("x"), chosen("y")];
  const view = VIEWS[y](runs);
  const first = x === "log" ? Math.min(...column(runs, ACCESSES).filter(Boolean)) / 2 : 0;
  const lines = runs.map((run) => line(run, view, first)); // a log axis has no 0
  const marks = runs.map((run, index) => mark(run, lines[index], view, x === "log"));
  const axis = {
    gridcolor: colour("--rule"),
    linecolor: colour("--rule"),
    zeroline: false,
    automargin: true,
    exponentformat: "power",
  };
  const layout = {
    xaxis: {
      ...axis,
      title: { text: "ratings accessed" },
      ...(runs.length ? xaxis(x, runs, first) : { type: x }),
      showticklabels: runs.length > 0,
    },
    yaxis: {
      ...axis,
      title: { text: "bound (nats)", standoff: 14 },
      ...(runs.length ? yaxis(view, runs) : {}),
      showticklabels: runs.length > 0,
    },
    uirevision: `${x} ${y}`,
    showlegend: false,
    hovermode: "closest",
    margin: { l: 20, r: 16, t: 14, b: 20 },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 13 },
    hoverlabel: { align: "left", font: { family: "system-ui, sans-serif" } },
    modebar: { bgcolor: "transparent", color: colour("--soft"), activecolor: colour("--accent") },
  };
  Plotly.react(place, [...lines, ...marks], layout, CONFIG);
}
