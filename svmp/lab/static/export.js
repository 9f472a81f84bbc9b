// The dialog that shows a run as Python.

const dialog = document.getElementById("export");
const find = (selector) => dialog.querySelector(selector);

/** Fetch a script and show it. */
export async function openExport(path) {
  const script = await (await fetch(path)).text();
  find("code").textContent = script;
  find("a").href = path;
  find("[data-do=copy]").textContent = "Copy";
  dialog.showModal();
}

find("[data-do=close]").addEventListener("click", () => dialog.close());
find("[data-do=copy]").addEventListener("click", async (event) => {
  await navigator.clipboard.writeText(find("code").textContent);
  event.target.textContent = "Copied";
});
