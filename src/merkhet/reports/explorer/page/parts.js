"use strict";
/* Helpers of all views. Text from data only ever becomes a text node. */

const token = document.querySelector('meta[name="merkhet-token"]').content;
export const run = { about: null };

export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (key === "value" || key === "checked" || key === "disabled") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function bdi(text, attributes = {}) {
  return el("bdi", attributes, visible(text));
}

/* Characters that reverse or hide text are shown by their code. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
export function visible(text) {
  return String(text).replace(HIDDEN, (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

async function readContent(response) {
  let content = {};
  try {
    content = await response.json();
  } catch {
    if (response.ok) throw new Error("The explorer’s response could not be read.");
  }
  if (!response.ok) throw new Error(content.error || `The explorer answered ${response.status}.`);
  return content;
}

async function request(path, options) {
  try {
    return await fetch(path, { cache: "no-store", credentials: "omit", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The explorer does not respond. It may have been stopped: start “merkhet explore” again.");
  }
}

export async function get(view, params = new URLSearchParams(), signal = undefined) {
  const query = params.toString();
  const content = await readContent(await request(`/api/${view}${query ? `?${query}` : ""}`, { signal }));
  signal?.throwIfAborted();
  return content;
}

export async function post(view, content) {
  const headers = { "Content-Type": "application/json", "X-Merkhet-Token": token };
  return readContent(await request(`/api/${view}`, { method: "POST", headers, body: JSON.stringify(content) }));
}

/* Only the latest task of a view may paint: a newer task, or leaving the view, aborts the running one. */
export function latest() {
  let running = null;
  return {
    cancel: () => running?.abort(),
    async run(work, fail) {
      running?.abort();
      const controller = new AbortController();
      running = controller;
      try {
        await work(controller.signal);
      } catch (error) {
        if (controller.signal.aborted) return;
        controller.abort();  // Its other requests must not paint over the failure.
        fail(error);
      }
    },
  };
}

/* Give an element exactly these children, in this order. Children that are in position are not touched. The focus stays
   where it was, also if its element was redrawn under the same name (data-focus). */
export function arrange(parent, children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const kept = children.filter(Boolean);
  for (const old of [...parent.childNodes]) if (!kept.includes(old)) old.remove();
  kept.forEach((child, index) => {
    if (parent.childNodes[index] !== child) parent.insertBefore(child, parent.childNodes[index] ?? null);
  });
  if (!focused || focused === document.activeElement) return;
  const target = focused.isConnected ? focused : [...parent.querySelectorAll("[data-focus]")].find((element) => element.dataset.focus === focused.dataset.focus);
  target?.focus({ preventScroll: true });
}

export function announce(text) {
  document.getElementById("status").textContent = text;
}

export function errorMessage(error) {
  return el("p", { class: "failure", role: "alert", dir: "auto" }, visible(error.message || error));
}

export const count = (number) => number.toLocaleString("en");
export const percent = (part, total) => (total ? `${(100 * part / total).toFixed(1)}%` : "–");
export const plural = (number, singular, pluralForm = `${singular}s`) => `${count(number)} ${number === 1 ? singular : pluralForm}`;

export function rank(value) {
  return value === null || value === undefined ? "–" : count(Math.round(value * 100) / 100);
}

export function score(value) {
  if (value === null || value === undefined) return "not a number";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return count(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return value.toExponential(3);
  return value.toFixed(size >= 100 ? 1 : size >= 1 ? 3 : 4);
}

export function prompt(row, name = "span", attributes = {}) {
  const slot = el("span", { class: "slot" }, row.slot ? visible(row.slot) : "?");
  return el(name, { dir: "auto", ...attributes }, visible(row.before), slot, visible(row.after));
}

export function golds(row) {
  const parts = row.golds.flatMap((text, index) => [index ? ", " : "", bdi(text, { class: "right" })]);
  return [parts, row.more_golds ? ` and ${plural(row.more_golds, "other")}` : ""];
}

const GLYPHS = { right: "✓", wrong: "✗", unusable: "⊘" };
export function verdict(name) {
  if (!name) return el("span", { class: "unusable", title: "not asked" }, "–");
  return el("span", { class: name, title: name }, GLYPHS[name], el("span", { class: "visually-hidden" }, ` ${name}`));
}

export function hash(view, params) {
  const query = params instanceof URLSearchParams ? params.toString() : new URLSearchParams(params).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/* A click that follows a link in this tab. */
export const isPlain = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

/* Go to an address. The view is updated before this returns, so that address and view never differ. */
export function go(view, params, replace = false) {
  visit(hash(view, params), replace);
}

export function visit(target, replace = false) {
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/* The last list: its address, to go back to, and its questions, for the previous and next one. */
export const list = { hash: "#/questions", ids: [] };

/* Relative length of a bar. Negative scores are log-probabilities: their bars are likelihoods relative to the highest.
   Scores that are never negative are relative to the highest, all others to the range from lowest to highest. */
function barShare(score, low, high) {
  if (score === null) return 0;
  if (high < 0) return Math.exp(score - high);
  if (low >= 0) return high > 0 ? score / high : 1;
  return (score - low) / (high - low);
}
export const BARS = "Bars show scores relative to the highest: likelihoods where scores are log-probabilities.";

/* A list of candidates with their scores; right answers are marked. */
export function rankedList(items, limit = 10) {
  const known = items.map((item) => item.score).filter((value) => value !== null);
  const low = Math.min(...known), high = Math.max(...known);
  const lines = items.map((item, index) => {
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.inlineSize = `${Math.max(1.5, 100 * barShare(item.score, low, high))}%`;
    const mark = item.gold ? el("span", { class: "right", title: "a right answer" }, " ✓") : null;
    const tied = item.ties > 1 ? el("span", { class: "note" }, ` tied with ${count(item.ties - 1)}`) : null;
    return el(
      "li",
      { class: item.gold ? "gold" : "", value: index + 1 },
      el("span", { class: "candidate", dir: "auto" }, bdi(item.text ?? "–", item.gold ? { class: "right" } : {}), mark, tied),
      el("span", { class: "track-bar" }, bar),
      el("span", { class: "value", title: item.score === null ? "" : String(item.score) }, score(item.score)),
    );
  });
  const ranking = el("ol", { class: "ranked" }, lines.slice(0, limit));
  if (lines.length <= limit) return ranking;
  const more = el("button", { type: "button", class: "plain" }, `Show all ${lines.length}`);
  more.addEventListener("click", () => {
    ranking.append(...lines.slice(limit));
    more.remove();
  });
  return el("div", {}, ranking, more);
}
