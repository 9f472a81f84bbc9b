// The list of runs, which is also the legend of the chart: a card for each run, updated in place.

import { STATES, dash, ended, numbers, stroke } from "./looks.js";

const list = document.getElementById("runs");
const cards = new Map();

function makeCard(run, act) {
  const card = document.getElementById("run-card").content.firstElementChild.cloneNode(true);
  const find = (selector) => card.querySelector(selector);
  find("h3").textContent = run.label;
  find(".data").textContent = `${run.data}, started from seed ${run.settings.seed}`;
  if (dash(run) === "dash") find("line").style.strokeDasharray = "6 4";
  find(".swatch").setAttribute("aria-label", `Show ${run.label}`);
  find(".swatch").addEventListener("click", () => act.toggle(run.id));
  for (const button of card.querySelectorAll("[data-do]")) {
    button.setAttribute("aria-label", `${button.textContent}: ${run.label}`);
    button.addEventListener("click", () => act[button.dataset.do](run.id));
  }
  return card;
}

function update(card, run) {
  const find = (selector) => card.querySelector(selector);
  const state = run.state === "running" && run.rows.length === 0 ? "starting" : run.state;
  card.dataset.state = state;
  find("line").style.stroke = stroke(run);
  card.classList.toggle("away", run.hidden);
  find(".state").textContent = STATES[state];
  find(".numbers").textContent = numbers(run);
  find(".sentence").textContent = run.sentence;
  find(".swatch").setAttribute("aria-pressed", String(!run.hidden));
  find("[data-do=stop]").hidden = ended(run);
  find("[data-do=stop]").disabled = run.state === "stopping";
}

/** Show these runs, newest first. */
export function showList(runs, act) {
  const kept = new Set(runs.map((run) => run.id));
  for (const [id, card] of cards) {
    if (!kept.has(id)) {
      if (card.contains(document.activeElement)) document.getElementById("runs-title").focus();
      card.remove();
      cards.delete(id);
    }
  }
  for (const run of runs) {
    if (!cards.has(run.id)) {
      cards.set(run.id, makeCard(run, act));
      list.prepend(cards.get(run.id));
    }
    update(cards.get(run.id), run);
  }
  document.getElementById("none").hidden = runs.length > 0;
}
