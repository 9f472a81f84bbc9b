// The list of recommendations: each with its interval, its change, and its explanation.

import { nameOf, shortName, showGive, writeTitle } from "./give.js";

const SMALL = 0.005; // smaller changes are not shown
const list = document.getElementById("top");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const shown = new Map(); // rows on the page, by item
let before = new Map(); // means of the previous list

export function showScale(scale) {
  const ticks = scale.ticks.map((value) => {
    const tick = document.createElement("span");
    tick.textContent = scale.tick(value);
    tick.style.left = `${100 * scale.place(value)}%`;
    return tick;
  });
  document.getElementById("ticks").replaceChildren(...ticks);
  document.getElementById("legend-text").textContent = scale.legend;
}

/** Show a new list; rows that stay move to their new places. */
export function showTop(items, scale, give) {
  const from = new Map([...shown].map(([id, row]) => [id, row.getBoundingClientRect().top]));
  const rows = items.map((item) => {
    const row = shown.get(item.item) ?? newRow(item);
    fill(row, item, scale, give);
    return row;
  });
  shown.clear();
  items.forEach((item, place) => shown.set(item.item, rows[place]));
  list.replaceChildren(...rows);
  const stars = rows[0]?.querySelector(".give").offsetWidth ?? 0;
  document.querySelector(".scale").style.setProperty("--give", `${stars}px`);
  before = new Map(items.map(({ item, mean }) => [item, mean]));
  if (still.matches) return;
  items.forEach(({ item }, place) => glide(rows[place], from.get(item)));
}

function newRow(item) {
  const row = document.getElementById("recommended").content.cloneNode(true).firstElementChild;
  writeTitle(row.querySelector(".title"), item);
  return row;
}

function fill(row, item, scale, give) {
  const { mean, low, high } = item;
  const [left, right] = scale.unsure(item);
  const was = before.get(item.item);
  const places = { low, high, left, right, mean, was: was ?? mean };
  const plot = row.querySelector(".plot");
  for (const [name, value] of Object.entries(places)) {
    plot.style.setProperty(`--${name}`, scale.place(value));
  }
  plot.ariaLabel = `${scale.say(mean)}, 90 percent from ${scale.say(low)} to ${scale.say(high)}`;
  row.querySelector(".mean b").textContent = scale.show(mean);
  const change = row.querySelector(".change");
  const isNew = was === undefined && before.size > 0;
  const moved = was === undefined ? 0 : mean - was;
  const words = Math.abs(moved) < SMALL ? "" : scale.change(moved);
  change.textContent = isNew ? "new" : words;
  change.className = isNew ? "change" : `change ${moved < 0 ? "down" : "up"}`;
  row.classList.toggle("moved", Math.abs(moved) >= SMALL);
  showGive(row.querySelector(".give"), item, scale, null, (value) => give(item, value));
}

function glide(row, from) {
  if (from === undefined) {
    row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 400, easing: "ease-out" });
    return;
  }
  const moved = from - row.getBoundingClientRect().top;
  if (Math.abs(moved) < 1) return;
  const steps = [{ transform: `translateY(${moved}px)` }, { transform: "none" }];
  row.animate(steps, { duration: 450, easing: "cubic-bezier(0.2, 0.8, 0.2, 1)" });
}

/** Show the explanation in each row. */
export function showReasons(explanations, scale) {
  for (const reason of explanations) {
    const row = shown.get(reason.item);
    if (!row) continue;
    const first = reason.parts.find(({ part }) => part > 0);
    row.querySelector(".because").textContent = first
      ? `${scale.part(first.part)} for ${shortName(first)}`
      : "";
    row.querySelector(".why").replaceChildren(...why(reason, scale));
  }
}

function why({ base, parts, rest }, scale) {
  const unit = scale.events ? "on the scale of log odds" : "stars";
  const intro = document.createElement("p");
  intro.textContent = `Anybody: ${base.toFixed(2).replace("-", "−")} ${unit}.`;
  intro.textContent += parts.length ? " What is yours adds:" : " Nothing is known of you yet.";
  const most = Math.max(0.01, ...parts.map(({ part }) => Math.abs(part)));
  const lines = [...parts.slice(0, 6).map((part) => [part.part, nameOf(part)])];
  const others = parts.slice(6).reduce((sum, { part }) => sum + part, rest);
  if (Math.abs(others) >= SMALL) lines.push([others, "everything else"]);
  return [intro, ...lines.map(([part, name]) => partLine(part, name, most, scale))];
}

function partLine(part, name, most, scale) {
  const line = document.createElement("p");
  line.className = "part";
  const bar = document.createElement("span");
  bar.className = part < 0 ? "bar-part down" : "bar-part up";
  bar.style.setProperty("--share", Math.min(1, Math.abs(part) / most));
  const [amount, label] = [document.createElement("b"), document.createElement("span")];
  amount.textContent = scale.part(part);
  label.textContent = name;
  line.append(amount, bar, label);
  return line;
}
