// The page: the form starts runs, the server reports on them, the list and the chart show them.

import { draw } from "./chart.js";
import { openExport } from "./export.js";
import { fillForm, readForm, setUpForm, showErrors } from "./form.js";
import { showList } from "./list.js";
import { STATES } from "./looks.js";
import { presets } from "./presets.js";
import * as server from "./server.js";

const runs = new Map();
const narrow = matchMedia("(max-width: 52rem)");
let due = false;

const act = {
  stop: async (id) => showErrors((await server.stop(id)) ?? {}),
  remove: async (id) => showErrors((await server.remove(id)) ?? {}),
  export: (id) => openExport(server.scriptPath(id)),
  reuse: (id) => {
    fillForm(runs.get(id).settings);
    document.getElementById("settings").open = true;
    document.getElementById("run").focus();
  },
  toggle: (id) => {
    runs.get(id).hidden = !runs.get(id).hidden;
    show();
  },
};

/** Redraw the list and the chart, at most once per frame. */
function show() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    const all = [...runs.values()].sort((one, other) => one.id - other.id);
    showList(all, act);
    draw(all);
  });
}

/** Announce to screen readers which runs began or ended. */
function say(ids) {
  const sentences = ids.filter((id) => runs.has(id)).map((id) => {
    const run = runs.get(id);
    return `${run.label}: ${STATES[run.state]}. ${run.sentence}`;
  });
  if (sentences.length) document.getElementById("said").textContent = sentences.join(" ");
}

let newest = 0;

/** Start a run; only the newest request may show errors or clear them. */
async function start() {
  newest += 1;
  const mine = newest;
  const errors = await server.start(readForm());
  if (mine !== newest) return;
  showErrors(errors ?? {});
  if (!errors && narrow.matches) {
    document.getElementById("settings").open = false;
    document.getElementById("chart").scrollIntoView({ block: "center" });
  }
}

function addPresets() {
  for (const { title, fields } of presets) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: title });
    button.addEventListener("click", () => {
      fillForm(fields);
      start();
    });
    document.getElementById("presets").append(button);
  }
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
for (const input of document.querySelectorAll(".switch input")) {
  input.addEventListener("change", show);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
document.getElementById("settings").open = !narrow.matches;

await setUpForm();
addPresets();
document.getElementById("run").disabled = false; // before, Enter must not submit the form
server.follow(runs, (news) => {
  say(news);
  show();
});
