// Controls to rate an item: stars as radio buttons, or one button for events.

let count = 0;

/** Split a title from the text in brackets at its end. */
function split(item) {
  const whole = nameOf(item);
  return whole.match(/^(.+?)\s*\(([^()]*)\)$/)?.slice(1) ?? [whole, ""];
}

export const nameOf = ({ item, title }) => title ?? `item ${item}`;
export const shortName = (item) => split(item)[0];

export function writeTitle(node, item) {
  const [name, rest] = split(item);
  const small = document.createElement("small");
  small.textContent = rest;
  node.replaceChildren(`${name} `, ...(rest ? [small] : []));
}

/** Add the controls of an item; `give` is called with a rating, or null to remove it. */
export function showGive(place, item, scale, value, give) {
  place.replaceChildren(scale.events ? taken(item, value, give) : stars(item, scale, value, give));
}

function taken(item, value, give) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "taken";
  button.textContent = value ? "✓ Taken" : "Take";
  button.setAttribute("aria-pressed", String(Boolean(value)));
  button.setAttribute("aria-label", `${value ? "Taken" : "Take"}: ${nameOf(item)}`);
  button.addEventListener("click", () => give(value ? null : 1));
  return button;
}

function stars(item, scale, value, give) {
  const group = document.createElement("fieldset");
  group.className = "stars";
  const legend = document.createElement("legend");
  legend.className = "unseen";
  legend.textContent = `Your rating of ${nameOf(item)}`;
  group.append(legend);
  count += 1;
  for (const choice of scale.choices) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { type: "radio", name: `stars-${count}`, value: choice });
    input.checked = choice === value;
    input.setAttribute("aria-label", `${choice} stars`);
    input.addEventListener("change", () => give(choice));
    input.addEventListener("click", () => choice === value && give(null)); // a second click removes the rating
    label.title = `${choice} stars`;
    label.append(input, "★");
    group.append(label);
  }
  return group;
}
