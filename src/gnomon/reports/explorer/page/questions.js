"use strict";
/* The list of questions: filters, search, order, pages. */
import { count, el, failed, get, go, latest, plural, run, say } from "./parts.js";
import { chips, filterPanel, filtersOf, isChosen, searchBox } from "./filters.js";
import { pager, questionTable } from "./listing.js";

const SORTS = { run: "as in the run", hardest: "hardest first", easiest: "easiest first", rank: "right answer ranked last", text: "by text" };
let panel, search, sort, results, total, set, ask;
let shown = new URLSearchParams();

export const title = () => "Questions";

const change = (params) => go("questions", params);

export function mount(main) {
  ask = latest();
  panel = filterPanel(change);
  search = searchBox("questions");
  sort = el("select", { "aria-label": "Order" }, Object.entries(SORTS).map(([key, name]) => el("option", { value: key }, name)));
  total = el("p", { class: "total" });
  set = el("div");
  results = el("div", { class: "results" });
  sort.addEventListener("change", () => change(changed("sort", sort.value === "run" ? "" : sort.value)));
  const bar = el("div", { class: "bar-of-tools" }, search.element, el("label", { class: "order" }, "Order: ", sort));
  main.append(el("h1", { class: "visually-hidden" }, "Questions"), el("div", { class: "columns" }, panel.element, el("section", {}, bar, set, total, results)));
}

function changed(key, value) {
  const next = new URLSearchParams(shown);
  next.delete("page");
  if (value) next.set(key, value);
  else next.delete(key);
  return next;
}

export async function update(params) {
  shown = params;
  search.update(params);
  sort.value = params.get("sort") ?? "run";
  set.replaceChildren(chips(params, change));
  results.classList.add("waiting");
  const wanted = filtersOf(params);
  for (const key of ["sort", "page"]) if (params.has(key)) wanted.set(key, params.get(key));
  const counted = panel.update(params);
  try {
    await ask(async (signal) => draw(await get("questions", wanted, signal), params));
    await counted;
  } catch (error) {
    results.classList.remove("waiting");
    total.textContent = "";
    results.replaceChildren(failed(error));
  }
}

function draw(found, params) {
  const all = run.about.questions;
  const told = found.total === all ? plural(all, "question") : `${count(found.total)} of ${plural(all, "question")}`;
  total.textContent = told;
  say(told);
  results.classList.remove("waiting");
  if (!all) return results.replaceChildren(el("p", {}, "This run has no questions."));
  if (!found.total) return results.replaceChildren(el("p", {}, "No question passes these filters."));
  if (!found.questions.length) return results.replaceChildren(el("p", {}, "There are not so many pages."), pager(found, "questions", params));
  const ways = run.about.ways.map((way, place) => place).filter((place) => isChosen(run.about.ways[place], params));
  results.replaceChildren(...questionTable(found.questions, ways, { remember: true }), pager(found, "questions", params));
}
