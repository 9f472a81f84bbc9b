// The look of runs: colours, dashes, marks at the end of lines, and numbers in words.

const COLOURS = 6; // --run-0 to --run-5 of the style sheet
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

export const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
export const stroke = (run) => colour(`--run-${run.colour % COLOURS}`);
export const dash = (run) => (run.colour < COLOURS ? "solid" : "dash");
export const symbol = (run) => SYMBOLS[run.state] ?? "circle";
export const ended = (run) => !["waiting", "running", "stopping"].includes(run.state);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const compact = (number) => short.format(number).replace("-", "−").replace("K", "k");

/** A bound in nats: in full, or as a power of ten if it is very large. */
function nats(bound) {
  if (Math.abs(bound) < 1e9) return whole.format(bound).replace("-", "−");
  const [digits, power] = bound.toExponential(1).split("e+");
  const raised = [...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `${digits.replace("-", "−")} × 10${raised}`;
}

/** The progress of a run: its bound, iterations and accesses. */
export function numbers(run) {
  if (run.rows.length === 0) return "";
  const [iteration, accesses, , bound] = run.rows.at(-1);
  const iterations = `${whole.format(iteration)} iteration${iteration === 1 ? "" : "s"}`;
  const spent = `after ${iterations}, ${compact(accesses)} accesses`;
  if (run.state !== "diverged") return `bound ${nats(run.bound ?? bound)} ${spent}`;
  return `bound ${nats(bound)} ${spent}; the last sound one is ${nats(run.bound)}`;
}
