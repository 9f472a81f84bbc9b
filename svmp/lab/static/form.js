// The form: its fields, their values, and their errors.

const form = document.getElementById("form");
const trouble = document.getElementById("trouble");
const FIRST = { algorithm: "children", option: "a" }; // what the form starts with
const names = () => [...form.elements].filter((field) => field.name);

/** Whether a condition such as "algorithm:children,batch policy:!Grow" holds in all its parts. */
function holds(condition) {
  return condition.split(" ").every((part) => {
    const [name, words] = part.split(":");
    const among = words.replace("!", "").split(",").includes(form.elements[name].value);
    return among !== words.startsWith("!");
  });
}

/** Show the fields that a run with these choices has, and hide the others. */
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

/** Fill in some fields, and keep the others. */
export function fillForm(fields) {
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  showErrors({});
  showFields();
}

/** Show errors beside their fields, and above the button if they belong to none. */
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

/** Make a field for a number: whole, near one, or a fraction such as 1/512. */
function makeField({ name, label, default: value, low, high, whole, condition }) {
  const input = document.createElement("input");
  if (typeof value === "string") {
    input.setAttribute("list", "steps");
  } else {
    Object.assign(input, { type: "number", min: low, max: high });
    input.step = whole || value >= 2 ? 1 : 0.05;
  }
  Object.assign(input, { name, defaultValue: value });
  const text = document.createElement("span");
  text.textContent = label;
  const field = document.createElement("div");
  field.className = "field";
  field.dataset.of = condition;
  field.append(document.createElement("label"));
  field.firstChild.append(text, input);
  return field;
}

/** Make the sentence that explains an algorithm. */
function makeHint({ name, hint }) {
  const sentence = document.createElement("p");
  Object.assign(sentence, { className: "hint", textContent: hint });
  sentence.dataset.of = `algorithm:${name}`;
  return sentence;
}

/** Build the part of the form that depends on the algorithms and step policies that there are. */
function build({ algorithms, policies, algorithmFields, policyFields, withOption, withSteps }) {
  const find = (id) => document.getElementById(id);
  for (const { name, title } of algorithms) form.elements.algorithm.add(new Option(title, name));
  for (const { name, title } of policies) form.elements.policy.add(new Option(title, name));
  find("algorithm-fields").before(...algorithms.filter(({ hint }) => hint).map(makeHint));
  find("algorithm-fields").prepend(...algorithmFields.map(makeField));
  find("policy-fields").append(...policyFields.map(makeField));
  find("option-field").dataset.of = withOption;
  find("steps-fields").dataset.of = withSteps;
  const policy = form.elements.policy;
  const chosen = () => policies.find(({ name }) => name === policy.value);
  policy.addEventListener("input", () => fillForm(chosen().settings));
}

/** Set the form up: the data, algorithms and step policies that there are, and usual steps. */
export async function setUpForm() {
  const [data, choices] = await Promise.all(
    ["/api/data", "/api/form"].map(async (path) => (await fetch(path)).json()),
  );
  for (const [name, title] of Object.entries(data)) {
    form.elements.data.add(new Option(title, name));
  }
  build(choices);
  for (let power = 0; power <= 10; power += 1) {
    const option = document.createElement("option");
    option.value = power === 0 ? "1" : `1/${2 ** power}`;
    document.getElementById("steps").append(option);
  }
  form.addEventListener("input", showFields);
  fillForm(FIRST);
}
