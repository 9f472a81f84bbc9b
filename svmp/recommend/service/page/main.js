// The page: sends the ratings as a history, and shows the response.

import { nameOf, showGive, writeTitle } from "./give.js";
import { scaleOf } from "./scale.js";
import * as server from "./server.js";
import { showReasons, showScale, showTop } from "./top.js";

const SHOWN = 10;
const FOUND = matchMedia("(max-width: 40rem)").matches ? 5 : 9;
const LEVEL = 0.9;
const MOST_REASONS = 1000; // limit of the service: items times ratings
const at = (id) => document.getElementById(id);
const rated = new Map(); // by item: { item, title, value }
let scale;
let found = [];
let alone; // average deviation before any rating
let turn = 0;
const newest = new Map(); // by kind of call: its newest request
const errors = new Map(); // by kind of call: its error, or ""

/** Call the service; show an error if it fails, until a call of the same kind succeeds.

    Each kind of call has an error of its own, which only its newest request may set or clear:
    an older request that ends late must not hide what a newer one reported. */
async function trying(work) {
  const request = Symbol();
  newest.set(work, request);
  let sentence = "";
  try {
    await work();
  } catch (error) {
    if (!(error instanceof server.Refused)) throw error;
    at("token").hidden = error.status !== 401;
    if (error.status === 401) at("token-field").focus();
    else sentence = error.message;
  }
  if (newest.get(work) !== request) return;
  errors.set(work, sentence);
  at("trouble").textContent = [...errors.values()].find(Boolean) ?? "";
}

function give(item, value) {
  if (value === null) rated.delete(item.item);
  else rated.set(item.item, { ...rated.get(item.item), ...item, value });
  showItems();
  trying(refresh);
}

/** Refresh the list, which is marked as busy until everything is shown. */
async function refresh() {
  turn += 1;
  const mine = turn;
  at("top").ariaBusy = "true";
  try {
    await recommend(mine);
  } finally {
    if (mine === turn) at("top").ariaBusy = "false";
  }
}

/** Request recommendations and explanations, and show them unless there is a newer request. */
async function recommend(mine) {
  const history = [...rated.values()].map(({ item, value }) => ({ item, rating: value }));
  const { items } = await server.foldIn(history, SHOWN, LEVEL);
  if (mine !== turn) return;
  showTop(items, scale, give);
  const some = items.slice(0, Math.floor(MOST_REASONS / Math.max(1, history.length)));
  const [first] = items;
  showSure(items);
  at("said").textContent = first
    ? `First is ${nameOf(first)}, ${scale.say(first.mean)}.`
    : "There is nothing left to recommend.";
  if (!some.length) return;
  const { explanations } = await server.explain(history, some.map(({ item }) => item));
  if (mine === turn) showReasons(explanations, scale);
}

function showSure(items) {
  if (!items.length) {
    at("sure").textContent = "There is nothing left to recommend.";
    return;
  }
  const half = (item) => (scale.unsure(item)[1] - scale.unsure(item)[0]) / 2;
  const now = items.reduce((sum, item) => sum + half(item), 0) / items.length;
  alone ??= rated.size ? undefined : now;
  const was = alone !== undefined && rated.size ? `, with nothing ${scale.given} ${scale.spread(alone)}` : "";
  at("sure").textContent = `unsure by ${scale.spread(now)}${was}`;
}

/** Keep the focus on the pressed control when the list is redrawn. */
function holding(work) {
  const active = document.activeElement;
  const place = active?.closest?.(".item");
  const [list, id, value] = [place?.parentElement?.id, place?.dataset.item, active?.value];
  work();
  if (!list) return;
  const again = document.querySelector(`#${list} [data-item=${CSS.escape(id)}]`);
  (again?.querySelector(`[value="${CSS.escape(value ?? "")}"]`) ?? again?.querySelector("button"))?.focus();
}

function showItems() {
  holding(() => {
    at("found").replaceChildren(...found.map(line));
    at("rated").replaceChildren(...[...rated.values()].reverse().map(line));
  });
  at("rated-card").hidden = rated.size === 0;
  at("rated-title").textContent = scale.events ? `You took ${rated.size}` : `You rated ${rated.size}`;
}

function line(item) {
  const node = at("item").content.cloneNode(true).firstElementChild;
  node.dataset.item = item.item;
  writeTitle(node.querySelector(".title"), item);
  const value = rated.get(item.item)?.value ?? null;
  showGive(node.querySelector(".give"), item, scale, value, (given) => give(item, given));
  return node;
}

async function search() {
  const words = at("search").value;
  const { items } = await server.search(words, FOUND);
  if (words !== at("search").value) return;
  found = items;
  at("none").hidden = items.length > 0;
  showItems();
}

async function begin() {
  const about = await server.model();
  at("token").hidden = true;
  scale = scaleOf(about);
  const count = new Intl.NumberFormat("en").format;
  at("about").textContent =
    `${about.name}: ${count(about.items)} items, learned from ${count(about.users)} people`;
  showScale(scale);
  await Promise.all([search(), refresh()]);
}

let soon;
at("search").addEventListener("input", () => {
  clearTimeout(soon);
  soon = setTimeout(() => trying(search), 120);
});
at("clear").addEventListener("click", () => {
  rated.clear();
  showItems();
  at("search").focus();
  trying(refresh);
});
at("token").addEventListener("submit", (event) => {
  event.preventDefault();
  server.useToken(at("token-field").value);
  trying(begin);
});
trying(begin);
