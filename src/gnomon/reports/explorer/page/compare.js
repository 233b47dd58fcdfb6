"use strict";
/* Two models side by side: which questions both, one or neither got right. */
import { bdi, count, el, failed, get, go, hash, latest, percent, plural, rank, run, say, visible } from "./parts.js";
import { chips, filterPanel, filtersOf, searchBox } from "./filters.js";
import { pager, questionTable } from "./listing.js";

let panel, search, selects, table, set, results, ask;
let shown = new URLSearchParams();
const cellNames = ([first, second]) => ({ both: "both right", first: `only ${visible(first)} right`, second: `only ${visible(second)} right`, neither: "neither right", apart: "not comparable" });

export const title = () => "Compare";

const change = (params) => go("compare", params);

export function mount(main) {
  ask = latest();
  main.append(el("h1", { class: "visually-hidden" }, "Compare two models"));
  if (run.about.ways.length < 2) {
    main.append(el("p", {}, run.about.ways.length ? "This run has one model asked in one way; there is nothing to compare it with." : "This run has no answers to compare."));
    return;
  }
  panel = filterPanel(change);
  search = searchBox("compare");
  selects = ["first", "second"].map((key) => {
    const select = el("select", { "aria-label": `the ${key} model` }, run.about.ways.map((way) => el("option", { value: way.label }, visible(way.label))));
    select.addEventListener("change", () => chosen(key, select.value));
    return select;
  });
  const swap = el("button", { type: "button", class: "plain", title: "Swap the two" }, "⇄ swap");
  swap.addEventListener("click", () => {
    const next = new URLSearchParams(shown);
    next.set("first", selects[1].value);
    next.set("second", selects[0].value);
    if (shown.get("cell") === "first" || shown.get("cell") === "second") next.set("cell", shown.get("cell") === "first" ? "second" : "first");
    change(next);
  });
  table = el("div");
  set = el("div");
  results = el("div", { class: "results" });
  const bar = el("div", { class: "bar-of-tools pair" }, selects[0], el("span", {}, "against"), selects[1], swap);
  main.append(el("div", { class: "columns" }, panel.element, el("section", {}, bar, el("div", { class: "bar-of-tools" }, search.element), set, table, results)));
}

function chosen(key, value) {
  const next = new URLSearchParams(shown);
  next.delete("page");
  next.set("first", selects[0].value);
  next.set("second", selects[1].value);
  next.set(key, value);
  change(next);
}

/* The two that are named, or the first two that are no baselines. */
function pairOf(params) {
  const ways = run.about.ways;
  const usual = [...ways.filter((way) => way.kind !== "baseline"), ...ways.filter((way) => way.kind === "baseline")];
  const first = params.get("first") ?? usual.find((way) => way.label !== params.get("second")).label;
  const second = params.get("second") ?? (usual.find((way) => way.model !== ways.find((one) => one.label === first)?.model) ?? usual.find((way) => way.label !== first)).label;
  return [first, second];
}

export async function update(params) {
  if (run.about.ways.length < 2) return;
  shown = params;
  const [first, second] = pairOf(params);
  selects[0].value = first;
  selects[1].value = second;
  search.update(params);
  set.replaceChildren(chips(params, change));
  results.classList.add("waiting");
  const wanted = filtersOf(params);
  wanted.set("first", first);
  wanted.set("second", second);
  const listed = new URLSearchParams(wanted);
  listed.set("sort", params.get("sort") ?? "difference");
  for (const key of ["cell", "page"]) if (params.has(key)) listed.set(key, params.get(key));
  const counted = panel.update(params);
  try {
    await ask(async (signal) => {
      const found = await Promise.all([get("compare", wanted, signal), get("questions", listed, signal)]);
      draw(...found, [first, second], params);
    });
    await counted;
  } catch (error) {
    results.classList.remove("waiting");
    table.replaceChildren();
    results.replaceChildren(failed(error));
  }
}

function draw(compared, found, labels, params) {
  const counts = compared.counts;
  const names = cellNames(labels);
  const judged = counts.both + counts.first + counts.second + counts.neither;
  const cell = (key) => {
    const next = new URLSearchParams(params);
    next.delete("page");
    if (params.get("cell") === key) next.delete("cell");
    else next.set("cell", key);
    const link = el("a", { href: hash("compare", next), title: names[key], "aria-current": params.get("cell") === key ? "true" : null }, el("b", {}, count(counts[key])), el("span", {}, ` ${percent(counts[key], judged)}`));
    return el("td", { class: `cell ${key}` }, link);
  };
  const [first, second] = labels.map((label) => bdi(label));
  const grid = el("table", { class: "two-by-two", "aria-label": "Both, one or neither right" },
    el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, second.cloneNode(true), " right"), el("th", { scope: "col" }, second.cloneNode(true), " wrong"))),
    el("tbody", {},
      el("tr", {}, el("th", { scope: "row" }, first.cloneNode(true), " right"), cell("both"), cell("first")),
      el("tr", {}, el("th", { scope: "row" }, first.cloneNode(true), " wrong"), cell("second"), cell("neither"))));
  table.replaceChildren(el("div", { class: "scroll" }, grid), ...words(compared, counts, judged, first, second, cell));
  const ways = labels.map((label) => run.about.ways.findIndex((way) => way.label === label));
  results.classList.remove("waiting");
  const told = params.get("cell") ? `${plural(found.total, "question")}: ${names[params.get("cell")]}` : plural(found.total, "question");
  say(told);
  const total = el("p", { class: "total" }, told, el("span", { class: "note" }, " · those whose ranks differ most come first"));
  if (!found.questions.length) return results.replaceChildren(total, el("p", {}, "There is no such question."));
  results.replaceChildren(total, ...questionTable(found.questions, ways, { difference: ways, remember: true }), pager(found, "compare", params));
}

function words(compared, counts, judged, first, second, cell) {
  const parts = [];
  if (!judged) parts.push(el("p", {}, "No question has a usable answer of both."));
  else parts.push(el("p", {}, `They disagree on ${plural(counts.first + counts.second, "question")} of ${count(judged)}: `, first.cloneNode(true), ` alone is right on ${count(counts.first)}, `, second.cloneNode(true), ` alone on ${count(counts.second)}. Whether that is more than luck is in the report (paired tests, corrected for many comparisons).`));
  if (compared.ranked) parts.push(el("p", {}, `The right answer ranks higher with `, first.cloneNode(true), ` on ${plural(compared.first_ahead, "question")}, with `, second.cloneNode(true), ` on ${count(compared.second_ahead)}, alike on ${count(compared.level)}; mean rank ${rank(compared.mean_ranks[0])} and ${rank(compared.mean_ranks[1])}.`));
  if (counts.apart) {
    const link = cell("apart").firstChild;
    link.replaceChildren(plural(counts.apart, "question"));
    parts.push(el("p", { class: "note" }, link, " without a usable answer of one of them."));
  }
  return parts;
}
