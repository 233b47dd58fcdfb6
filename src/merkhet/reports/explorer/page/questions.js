"use strict";
/* The list of questions: filters, search, order, pages. */
import { choicesOf } from "./choices.js";
import { announce, arrange, count, el, errorMessage, get, hash, latest, list, plural, run } from "./parts.js";
import { chipRow, filterPanel, filtersOf, isChosen, searchBox } from "./filters.js";
import { pager, questionTable } from "./listing.js";

const SORTS = { run: "as in the run", hardest: "hardest first", easiest: "easiest first", rank: "right answer ranked last", text: "by text" };
const work = latest();
let choices, panel, chips, pages, sort, results, total;

export const title = () => "Questions";

export function mount(main) {
  choices = choicesOf("questions");
  panel = filterPanel(choices);
  chips = chipRow(choices);
  pages = pager(choices);
  sort = el("select", { "aria-label": "Order" }, Object.entries(SORTS).map(([key, name]) => el("option", { value: key }, name)));
  total = el("p", { class: "total" });
  results = el("div", { class: "results" });
  pages.element.hidden = true;
  sort.addEventListener("change", () => choices.change((params) => {
    if (sort.value === "run") params.delete("sort");
    else params.set("sort", sort.value);
  }));
  const bar = el("div", { class: "bar-of-tools" }, searchBox(choices), el("label", { class: "order" }, "Order: ", sort));
  main.append(el("h1", { class: "visually-hidden" }, "Questions"), el("div", { class: "columns" }, panel.element, el("section", {}, bar, chips.element, total, results, pages.element)));
}

export function leave() {
  work.cancel();
  choices.close();
}

export async function update(params) {
  list.hash = hash("questions", params);
  choices.show(params);
  panel.show(params);
  chips.show(params);
  if (!choices.isChanging()) pages.reset();
  sort.value = params.get("sort") ?? "run";
  results.classList.add("waiting");
  const filters = filtersOf(params);
  const listed = new URLSearchParams(filters);
  for (const key of ["sort", "page"]) if (params.has(key)) listed.set(key, params.get(key));
  await work.run(
    (signal) => Promise.all([get("questions", listed, signal).then((result) => draw(result, params)), get("facets", filters, signal).then(panel.draw)]),
    (error) => {
      results.classList.remove("waiting");
      total.textContent = "";
      pages.element.hidden = true;
      results.replaceChildren(errorMessage(error));
    },
  );
}

function draw(result, params) {
  const all = run.about.questions;
  const summary = result.total === all ? plural(all, "question") : `${count(result.total)} of ${plural(all, "question")}`;
  total.textContent = summary;
  announce(summary);
  results.classList.remove("waiting");
  pages.draw(result, params);
  if (!all) return results.replaceChildren(el("p", {}, "This run has no questions."));
  if (!result.total) return results.replaceChildren(el("p", {}, "No question passes these filters."));
  if (!result.questions.length) return results.replaceChildren(el("p", {}, "There is no such page."));
  const ways = run.about.ways.map((way, index) => index).filter((index) => isChosen(run.about.ways[index], params));
  arrange(results, questionTable(result.questions, ways, { remember: true }));
}
