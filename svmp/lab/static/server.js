// Requests to the server, and the stream of its updates.

/** Send a request; return null if it succeeds, else a sentence for each field. */
async function ask(method, path, body) {
  const json = { "Content-Type": "application/json" };
  const options = body === undefined ? { method } : { method, headers: json, body };
  try {
    const answer = await fetch(path, options);
    return answer.ok ? null : (await answer.json()).errors;
  } catch {
    return { request: "the lab does not answer: is it still running in the terminal?" };
  }
}

export const start = (settings) => ask("POST", "/api/runs", JSON.stringify(settings));
export const stop = (id) => ask("POST", `/api/runs/${id}/stop`);
export const remove = (id) => ask("DELETE", `/api/runs/${id}`);
export const scriptPath = (id) => `/api/runs/${id}/script`;

/** Keep a map of runs up to date, and call `changed` with the ids of those whose state changed. */
export function follow(runs, changed) {
  const stream = new EventSource("/api/events");
  const lost = document.getElementById("lost");
  let fresh = true; // each stream begins with all runs
  stream.addEventListener("error", () => (lost.hidden = false));
  stream.addEventListener("open", () => {
    lost.hidden = true;
    fresh = true;
  });
  stream.addEventListener("message", (event) => {
    const update = JSON.parse(event.data);
    const news = [];
    for (const id of runs.keys()) if (!update.kept.includes(id)) runs.delete(id);
    for (const { from, rows, ...about } of update.changed) {
      const run = runs.get(about.id) ?? { rows: [], hidden: false };
      if (run.state !== about.state && !fresh) news.push(about.id);
      run.rows.length = from;
      run.rows.push(...rows);
      runs.set(about.id, Object.assign(run, about));
    }
    fresh = false;
    changed(news);
  });
}
