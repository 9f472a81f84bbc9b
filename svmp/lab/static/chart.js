// The chart: the bound against accesses, a line for each run.
//
// A bound here is negative, and may fall by many powers of ten: its log scale is that of -bound,
// upside down.

/* global Plotly */
import { dash, stroke, symbol } from "./looks.js";

const place = document.getElementById("chart");
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

const CONFIG = {
  responsive: true,
  displaylogo: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

/** A run's line, with a mark at its end that says how the run ended. */
function line(run, y, first) {
  const last = run.rows.length - 1;
  return {
    type: "scatter",
    mode: "lines+markers",
    name: run.label,
    visible: run.hidden ? false : true,
    x: run.rows.map(([, accesses]) => accesses || first),
    y: run.rows.map(([, , , bound]) => (y === "log" ? -bound : bound)),
    customdata: run.rows,
    hovertemplate:
      "bound %{customdata[3]:,.0f}<br>%{customdata[1]:,} accesses, iteration %{customdata[0]:,}",
    line: { color: stroke(run), dash: dash(run), width: 2.5 },
    marker: {
      color: stroke(run),
      symbol: symbol(run),
      size: run.rows.map((_, index) => (index === last ? 10 : last === 0 ? 10 : 0)),
      opacity: 1,
    },
  };
}

/** The range of the bound that shows the top: where runs end, not where they come from. */
function top(runs) {
  const bounds = runs.flatMap((run) => run.rows.map(([, , , bound]) => bound));
  const best = Math.max(...bounds);
  return bounds.length ? [1.35 * best, 0.97 * best] : undefined;
}

function axes(runs, x, y) {
  const common = {
    gridcolor: colour("--rule"),
    linecolor: colour("--rule"),
    zeroline: false,
    automargin: true,
    exponentformat: "power",
  };
  const range = y === "top" ? top(runs) : undefined;
  return {
    xaxis: {
      ...common,
      title: { text: "ratings accessed" },
      type: x,
      ...(x === "log" ? { dtick: 1 } : { rangemode: "tozero" }),
    },
    yaxis: {
      ...common,
      title: { text: "bound (nats)" },
      ...(y === "log"
        ? { type: "log", autorange: "reversed", tickprefix: "−" }
        : { type: "linear", range, autorange: range === undefined }),
    },
  };
}

/** Draw all runs. The zoom stays as it is until a scale is switched. */
export function draw(runs) {
  const [x, y] = [chosen("x"), chosen("y")];
  const reads = runs.flatMap((run) => run.rows.map(([, accesses]) => accesses));
  const first = x === "log" ? Math.min(...reads.filter(Boolean)) / 2 : 0; // a log axis has no 0
  const lines = runs.filter((run) => run.rows.length).map((run) => line(run, y, first));
  const layout = {
    ...axes(runs.filter((run) => !run.hidden), x, y),
    uirevision: `${x} ${y}`,
    showlegend: false,
    hovermode: "closest",
    margin: { l: 20, r: 16, t: 8, b: 20 },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 13 },
    hoverlabel: { align: "left" },
  };
  Plotly.react(place, lines, layout, CONFIG);
}
