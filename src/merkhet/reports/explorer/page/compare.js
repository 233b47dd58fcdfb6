"use strict";
/* Two models side by side: which questions both, one or neither got right. */
import { choicesOf } from "./choices.js";
import { announce, arrange, bdi, count, el, errorMessage, get, hash, isPlain, latest, list, percent, plural, rank, run, visible } from "./parts.js";
import { chipRow, filterPanel, filtersOf, searchBox } from "./filters.js";
import { pager, questionTable } from "./listing.js";

const work = latest();
let choices, panel, chips, pages, selects, table, results;
const MIRRORED = { first: "second", second: "first" };
const cellNames = ([first, second]) => ({ both: "both right", first: `only ${visible(first)} right`, second: `only ${visible(second)} right`, neither: "neither right", apart: "not comparable" });

export const title = () => "Compare";

export function mount(main) {
  main.append(el("h1", { class: "visually-hidden" }, "Compare two models"));
  if (run.about.ways.length < 2) {
    main.append(el("p", {}, run.about.ways.length ? "This run has one model asked in one way; there is nothing to compare it with." : "This run has no answers to compare."));
    return;
  }
  choices = choicesOf("compare");
  panel = filterPanel(choices);
  chips = chipRow(choices);
  pages = pager(choices);
  pages.element.hidden = true;
  selects = ["first", "second"].map((key) => {
    const select = el("select", { "aria-label": `the ${key} model` }, run.about.ways.map((way) => el("option", { value: way.label }, visible(way.label))));
    select.addEventListener("change", () => choices.change(setPair));
    return select;
  });
  const swap = el("button", { type: "button", class: "plain", title: "Swap the two" }, "⇄ swap");
  swap.addEventListener("click", () => choices.change((params) => {
    const cell = params.get("cell");
    [selects[0].value, selects[1].value] = [selects[1].value, selects[0].value];
    setPair(params);
    if (Object.hasOwn(MIRRORED, cell ?? "")) params.set("cell", MIRRORED[cell]);
  }));
  table = el("div");
  results = el("div", { class: "results" });
  const bar = el("div", { class: "bar-of-tools pair" }, selects[0], el("span", {}, "against"), selects[1], swap);
  main.append(el("div", { class: "columns" }, panel.element, el("section", {}, bar, el("div", { class: "bar-of-tools" }, searchBox(choices)), chips.element, table, results, pages.element)));
}

export function leave() {
  work.cancel();
  choices?.close();
}

function setPair(params) {
  params.set("first", selects[0].value);
  params.set("second", selects[1].value);
}

/* The two models in the address, or the first two that are no baselines. */
function pairOf(params) {
  const ways = run.about.ways;
  const preferred = [...ways.filter((way) => way.kind !== "baseline"), ...ways.filter((way) => way.kind === "baseline")];
  const first = params.get("first") ?? preferred.find((way) => way.label !== params.get("second")).label;
  const second = params.get("second") ?? (preferred.find((way) => way.model !== ways.find((other) => other.label === first)?.model) ?? preferred.find((way) => way.label !== first)).label;
  return [first, second];
}

export async function update(params) {
  if (run.about.ways.length < 2) return;
  const [first, second] = pairOf(params);
  selects[0].value = first;
  selects[1].value = second;
  list.hash = hash("compare", params);
  choices.show(params);
  panel.show(params);
  chips.show(params);
  if (!choices.isChanging()) pages.reset();
  results.classList.add("waiting");
  const filters = filtersOf(params);
  const pair = new URLSearchParams(filters);
  pair.set("first", first);
  pair.set("second", second);
  const listed = new URLSearchParams(pair);
  listed.set("sort", params.get("sort") ?? "difference");
  for (const key of ["cell", "page"]) if (params.has(key)) listed.set(key, params.get(key));
  await work.run(
    (signal) => Promise.all([
      Promise.all([get("compare", pair, signal), get("questions", listed, signal)]).then((responses) => {
        if (!signal.aborted) draw(...responses, [first, second], params);
      }),
      get("facets", filters, signal).then(panel.draw),
    ]),
    (error) => {
      results.classList.remove("waiting");
      table.replaceChildren();
      pages.element.hidden = true;
      results.replaceChildren(errorMessage(error));
    },
  );
}

/* Show the questions of a cell, or all again. The pair may have been swapped since the table was drawn. */
function chooseCell(key, isCurrent, labels) {
  choices.change((params) => {
    const [first, second] = pairOf(params);
    const target = first === labels[1] && second === labels[0] ? MIRRORED[key] ?? key : key;
    if (isCurrent) params.delete("cell");
    else params.set("cell", target);
  });
}

function draw(compared, result, labels, params) {
  const counts = compared.counts;
  const names = cellNames(labels);
  const judged = counts.both + counts.first + counts.second + counts.neither;
  const cell = (key) => {
    const next = new URLSearchParams(params);
    next.delete("page");
    if (params.get("cell") === key) next.delete("cell");
    else next.set("cell", key);
    const isCurrent = params.get("cell") === key;
    const link = el("a", { href: hash("compare", next), title: names[key], "aria-current": isCurrent ? "true" : null, data: { focus: key } }, el("b", {}, count(counts[key])), el("span", {}, ` ${percent(counts[key], judged)}`));
    link.addEventListener("click", (event) => {
      if (!isPlain(event)) return;
      event.preventDefault();
      chooseCell(key, isCurrent, labels);
    });
    return el("td", { class: `cell ${key}` }, link);
  };
  const [first, second] = labels.map((label) => bdi(label));
  const grid = el("table", { class: `two-by-two${judged < run.about.few ? " few" : ""}`, "aria-label": "Both, one or neither right" },
    el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, second.cloneNode(true), " right"), el("th", { scope: "col" }, second.cloneNode(true), " wrong"))),
    el("tbody", {},
      el("tr", {}, el("th", { scope: "row" }, first.cloneNode(true), " right"), cell("both"), cell("first")),
      el("tr", {}, el("th", { scope: "row" }, first.cloneNode(true), " wrong"), cell("second"), cell("neither"))));
  const fewNote = judged && judged < run.about.few && el("p", { class: "note" }, `Grey: fewer than ${run.about.few} questions (n = ${count(judged)}), too few to be read as a result.`);
  arrange(table, [el("div", { class: "scroll" }, grid), fewNote, ...comparisonText(compared, counts, judged, first, second, cell)]);
  const ways = labels.map((label) => run.about.ways.findIndex((way) => way.label === label));
  results.classList.remove("waiting");
  const summary = params.get("cell") ? `${plural(result.total, "question")}: ${names[params.get("cell")]}` : plural(result.total, "question");
  announce(summary);
  const total = el("p", { class: "total" }, summary, el("span", { class: "note" }, " · those whose ranks differ most come first"));
  pages.draw(result, params);
  if (!result.questions.length) return results.replaceChildren(total, el("p", {}, "There is no such question."));
  arrange(results, [total, ...questionTable(result.questions, ways, { difference: ways, remember: true })]);
}

function comparisonText(compared, counts, judged, first, second, cell) {
  const parts = [];
  if (!judged) parts.push(el("p", {}, "No question has usable answers from both models."));
  else parts.push(el("p", {}, `They disagree on ${plural(counts.first + counts.second, "question")} of ${count(judged)}: `, first.cloneNode(true), ` alone is right on ${count(counts.first)}, `, second.cloneNode(true), ` alone on ${count(counts.second)}. The report tests whether the difference is significant (paired tests, corrected for many comparisons).`));
  if (compared.ranked) parts.push(el("p", {}, `The right answer has a better rank with `, first.cloneNode(true), ` on ${plural(compared.first_ahead, "question")}, with `, second.cloneNode(true), ` on ${count(compared.second_ahead)}, and equal ranks on ${count(compared.level)}; mean rank ${rank(compared.mean_ranks[0])} and ${rank(compared.mean_ranks[1])}.`));
  if (counts.apart) {
    const link = cell("apart").firstChild;
    link.replaceChildren(plural(counts.apart, "question"));
    parts.push(el("p", { class: "note" }, link, " without a usable answer from one of the models."));
  }
  return parts;
}
