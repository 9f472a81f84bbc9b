// Requests to the service.

const KEY = "svmp-token";

/** An error response: a status and a sentence. */
export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const useToken = (token) => sessionStorage.setItem(KEY, token);

async function ask(path, body) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: JSON.stringify(body) });
  } catch {
    throw new Refused(0, "The service does not answer: is it still running?");
  }
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  const sentences = Object.values(found.errors ?? { request: `it answers ${answer.status}` });
  throw new Refused(answer.status, `The service refuses: ${sentences.join("; ")}`);
}

export const model = () => ask("/model");
export const search = (words, n) => ask(`/items?q=${encodeURIComponent(words.slice(0, 200))}&n=${n}`);
export const foldIn = (history, n, level) => ask("/fold-in", { history, n, level });
export const explain = (history, items) => ask("/explain", { history, items });
