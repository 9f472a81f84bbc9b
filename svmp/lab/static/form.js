// The form: which fields a run has, what is in them, and what is wrong with them.

const form = document.getElementById("form");
const trouble = document.getElementById("trouble");
const USUAL = { Nodewise: { c: "0.25" }, Grow: { c: "0.5" } }; // what svmp takes by default
const names = () => [...form.elements].filter((field) => field.name);

/** Whether a condition holds: "algorithm:children,batch policy:!Grow" is both of them. */
function holds(condition) {
  return condition.split(" ").every((part) => {
    const [name, words] = part.split(":");
    const value = form.elements[name].value;
    return words.startsWith("!") ? value !== words.slice(1) : words.split(",").includes(value);
  });
}

/** Show the fields that a run with these choices has, and leave out the others. */
export function showFields() {
  for (const part of form.querySelectorAll("[data-of]")) part.hidden = !holds(part.dataset.of);
  for (const field of names()) field.disabled = field.closest("[hidden]") !== null;
}

/** Return the fields by name: numbers as numbers, fractions such as 1/512 as they are. */
export function readForm() {
  const value = (field) => {
    const text = field.value.trim();
    if (field.tagName === "SELECT" || text.includes("/")) return text;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };
  const used = names().filter((field) => !field.disabled);
  return Object.fromEntries(used.map((field) => [field.name, value(field)]));
}

/** Fill in some fields; the others stay as they are. */
export function fillForm(fields) {
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  showErrors({});
  showFields();
}

/** Say what is wrong beside each field, and above the button where it belongs to none. */
export function showErrors(errors) {
  for (const old of form.querySelectorAll(".field .error")) old.remove();
  for (const field of names()) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  trouble.textContent = "";
  let first = null;
  for (const [name, sentence] of Object.entries(errors)) {
    const field = form.elements[name];
    if (!field || field.disabled) {
      trouble.textContent += `${sentence}. `;
      continue;
    }
    const error = document.createElement("p");
    Object.assign(error, { id: `${name}-error`, className: "error", textContent: sentence });
    field.closest(".field").append(error);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", error.id);
    first ??= field;
  }
  if (first) {
    document.getElementById("settings").open = true;
    first.focus();
  }
}

/** Set the form up: the data that there are, and steps to choose from. */
export async function setUpForm() {
  const data = await (await fetch("/api/data")).json();
  for (const [name, title] of Object.entries(data)) {
    form.elements.data.add(new Option(title, name));
  }
  for (let power = 0; power <= 10; power += 1) {
    const option = document.createElement("option");
    option.value = power === 0 ? "1" : `1/${2 ** power}`;
    document.getElementById("steps").append(option);
  }
  const policy = form.elements.policy;
  policy.addEventListener("input", () => fillForm(USUAL[policy.value] ?? {}));
  form.addEventListener("input", showFields);
  showFields();
}
