// How runs are told apart: by colour and dash, and at the end of a line by a mark.

// Okabe and Ito's colours, which colour-blind readers can tell apart.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const SYMBOLS = { diverged: "x", failed: "x", interrupted: "square", converged: "star" };

export const STATES = {
  waiting: "waiting for its turn",
  starting: "starting",
  running: "running",
  stopping: "stopping",
  converged: "converged",
  budget: "budget spent",
  diverged: "diverged",
  interrupted: "stopped",
  failed: "failed",
};

export const stroke = (run) => COLOURS[run.colour % COLOURS.length];
export const dash = (run) => (run.colour < COLOURS.length ? "solid" : "dash");
export const symbol = (run) => SYMBOLS[run.state] ?? "circle";
export const ended = (run) => !["waiting", "running", "stopping"].includes(run.state);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A bound in nats: in full, or by its power of ten where it has run away. */
export function nats(bound) {
  const text = Math.abs(bound) < 1e9 ? whole.format(bound) : bound.toExponential(1);
  return text.replace("-", "−").replace("e+", " × 10^");
}

/** Where a run is: its bound, iterations and accesses. */
export function numbers(run) {
  if (run.rows.length === 0) return "";
  const [iteration, accesses, , bound] = run.rows.at(-1);
  const spent = `${whole.format(iteration)} iterations, ${short.format(accesses)} accesses`;
  return `bound ${nats(run.bound ?? bound)} after ${spent}`;
}
