"use strict";
/* Filters beside a list: every choice is a part of the address, counts come from the server. */
import { bdi, count, el, get, go, latest, percent, run } from "./parts.js";

const FACETS = { task: "Task", domain: "Domain", relation: "Relation", template: "Template", rule: "Rule", split: "Split", language: "Language" };
const RESULTS = { right: "right", wrong: "wrong", unusable: "unusable", tied: "tied" };
const KEYS = ["search", "model", "probe", "method", "result", "low", "high", ...Object.keys(FACETS)];
const SHOWN = 8;
const WAIT = 250;

/* The filters of an address alone, without page or order. */
export function filtersOf(params) {
  const kept = new URLSearchParams();
  for (const [key, value] of params) if (KEYS.includes(key)) kept.append(key, value);
  return kept;
}

export function isChosen(way, params) {
  return ["model", "probe", "method"].every((key) => !params.has(key) || params.getAll(key).includes(way[key]));
}

/* A box whose words are a part of the address. Typing goes on in one entry of the history, so that going back leaves
   the search at once. */
export function searchBox(view) {
  const input = el("input", { type: "search", placeholder: "Search prompts and answers", "aria-label": "Search prompts and answers", autocomplete: "off", spellcheck: "false", maxlength: 400 });
  let params = new URLSearchParams();
  let timer = null;
  function searched() {
    clearTimeout(timer);
    timer = null;
    if (!input.isConnected || input.value === (params.get("search") ?? "")) return;
    const next = new URLSearchParams(params);
    next.delete("page");
    if (input.value) next.set("search", input.value);
    else next.delete("search");
    go(view, next, params.has("search"));
  }
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(searched, WAIT);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") searched();
  });
  return {
    element: input,
    update(next) {
      params = next;
      if (timer === null) input.value = params.get("search") ?? "";  // Not while somebody is typing.
    },
  };
}

/* A panel of filters; change(params) is called with the address that a choice leads to. */
export function filterPanel(change) {
  const ask = latest();
  const opened = new Set();
  let params = new URLSearchParams();
  const above = el("div"), below = el("div");
  const range = ["low", "high"].map((key) => {
    const input = el("input", { type: "number", min: 1, step: "any", "aria-label": key === "low" ? "least rank" : "greatest rank" });
    input.addEventListener("change", () => changed(key, input.value === "" ? [] : [input.value]));
    return input;
  });
  // The range stays where it is when counts come: somebody may be typing in it.
  const body = el("div", { class: "filters" }, above, el("fieldset", {}, el("legend", {}, "Rank of the right answer"), el("div", { class: "range" }, range[0], " to ", range[1])), below);
  const whole = el("details", { class: "filter-panel" }, el("summary", {}, "Filters"), body);
  const wide = matchMedia("(min-width: 900px)");
  const fit = () => { whole.open = wide.matches; };
  wide.addEventListener("change", fit);
  fit();

  function changed(key, values) {
    const next = new URLSearchParams(params);
    next.delete("page");
    next.delete("cell");
    next.delete(key);
    for (const value of values) next.append(key, value);
    change(next);
  }

  function toggle(key, value, wanted) {
    const values = params.getAll(key).filter((one) => one !== value);
    changed(key, wanted ? [...values, value] : values);
  }

  function box(key, value, label, after, extra = {}) {
    const input = el("input", { type: "checkbox", checked: params.getAll(key).includes(value) });
    input.addEventListener("change", () => toggle(key, value, input.checked));
    return el("label", { class: "choice", data: { key, value }, ...extra }, input, el("span", { class: "label" }, label), el("span", { class: "count" }, after));
  }

  function group(name, boxes, more = 0) {
    if (!boxes.length) return null;
    const field = el("fieldset", {}, el("legend", {}, name), boxes.slice(0, opened.has(name) ? undefined : SHOWN));
    if (boxes.length > SHOWN && !opened.has(name)) {
      const button = el("button", { type: "button", class: "plain" }, `Show ${boxes.length - SHOWN} more`);
      button.addEventListener("click", () => {
        opened.add(name);
        button.replaceWith(...boxes.slice(SHOWN));
        boxes[SHOWN].querySelector("input").focus();
      });
      field.append(button);
    }
    if (more && (opened.has(name) || boxes.length <= SHOWN)) field.append(el("p", { class: "note" }, `${count(more)} rarer ones: search or filter to see them`));
    return field;
  }

  function waysGroup(counts) {
    const ways = run.about.ways;
    const models = [...new Set(ways.map((way) => way.model))];
    const boxes = models.map((model) => {
      const own = counts.filter((_, place) => ways[place].model === model && isChosen(ways[place], without("model")));
      const right = own.reduce((sum, one) => sum + one.right, 0);
      const judged = own.reduce((sum, one) => sum + one.right + one.wrong, 0);
      const told = `${count(right)} of ${count(judged)} usable answers are right`;
      return box("model", model, bdi(model), percent(right, judged), { title: told });
    });
    const plain = (key) => {
      const values = [...new Set(ways.map((way) => way[key]))];
      return values.length > 1 && ways.length > models.length ? values.map((value) => box(key, value, bdi(value), "")) : [];
    };
    return [group("Model, and its share of right answers", boxes), group("Probe", plain("probe")), group("Method", plain("method"))];
  }

  function without(key) {
    const kept = new URLSearchParams(params);
    kept.delete(key);
    return kept;
  }

  function draw(found) {
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("label")?.dataset : null;
    const results = Object.entries(RESULTS).map(([key, label]) => box("result", key, label, count(found.results[key])));
    const facets = Object.entries(FACETS).map(([key, name]) => {
      const facet = found.facets[key];
      if (facet.of < 2) return null;
      return group(name, facet.values.map((one) => box(key, one.value, one.value === "" ? "(none)" : bdi(one.value), count(one.count))), facet.more);
    });
    above.replaceChildren(
      group(params.has("model") || params.has("method") || params.has("probe") ? "Result, by the chosen models" : "Result, by any model", results),
      ...waysGroup(found.ways).filter(Boolean),
    );
    below.replaceChildren(...facets.filter(Boolean));
    if (focused) [...body.querySelectorAll("label.choice")].find((one) => one.dataset.key === focused.key && one.dataset.value === focused.value)?.querySelector("input").focus();
  }

  return {
    element: whole,
    async update(next) {
      params = next;
      range.forEach((input, place) => {
        if (document.activeElement !== input) input.value = params.get(place ? "high" : "low") ?? "";
      });
      await ask(async (signal) => draw(await get("facets", filtersOf(params), signal)));
    },
  };
}

/* The filters that are set, each with a button that takes it away. */
export function chips(params, change) {
  const kept = [...filtersOf(params)].filter(([key]) => key !== "search");
  if (!kept.length) return el("div");
  const names = { ...FACETS, low: "rank from", high: "rank to", model: "Model", probe: "Probe", method: "Method", result: "Result" };
  const buttons = kept.map(([key, value]) => {
    const label = `${names[key]}: `;
    const button = el("button", { type: "button", class: "chip", title: "Take this filter away" }, label, bdi(value || "(none)"), " ×");
    button.addEventListener("click", () => {
      const next = new URLSearchParams([...params].filter(([k, v]) => !(k === key && v === value) && k !== "page" && k !== "cell"));
      change(next);
    });
    return button;
  });
  const clear = el("button", { type: "button", class: "plain" }, "Clear all");
  clear.addEventListener("click", () => change(new URLSearchParams([...params].filter(([key]) => key === "search" || key === "sort" || key === "first" || key === "second"))));
  return el("div", { class: "chips" }, buttons, clear);
}
