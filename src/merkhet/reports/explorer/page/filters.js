"use strict";
/* Filters of a list: every choice is a parameter of the address, counts come from the server. */
import { arrange, bdi, count, el, percent, run } from "./parts.js";

const FACETS = { task: "Task", domain: "Domain", relation: "Relation", template: "Template", rule: "Rule", split: "Split", language: "Language" };
const RESULTS = { right: "right", wrong: "wrong", unusable: "unusable", tied: "tied" };
const KEYS = ["search", "model", "probe", "method", "result", "low", "high", ...Object.keys(FACETS)];
const SHOWN = 8;
const WAIT = 250;

/* The filters of an address alone, without page or order. */
export function filtersOf(params) {
  const filters = new URLSearchParams();
  for (const [key, value] of params) if (KEYS.includes(key)) filters.append(key, value);
  return filters;
}

export function isChosen(way, params) {
  return ["model", "probe", "method"].every((key) => !params.has(key) || params.getAll(key).includes(way[key]));
}

/* The search input. All typing is one entry of the history, so that going back leaves the search at once. */
export function searchBox(choices) {
  const input = el("input", { type: "search", placeholder: "Search prompts and answers", "aria-label": "Search prompts and answers", autocomplete: "off", spellcheck: "false", maxlength: 400 });
  const box = choices.bind(input, "search");
  let timer = null;
  function search() {
    clearTimeout(timer);
    // Another choice, or the history, may have changed it meanwhile.
    if (box.isEdited()) choices.change(() => {}, choices.isSet("search"));
  }
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, WAIT);
  });
  // On Enter, or when the input loses the focus.
  input.addEventListener("change", search);
  return input;
}

/* The filter panel. Checkboxes are created once and stay in the page when counts arrive: the user may be using them. */
export function filterPanel(choices) {
  const opened = new Set();
  const boxes = new Map(), groups = new Map();
  const above = el("div"), below = el("div");
  const range = ["low", "high"].map((key) => {
    const input = el("input", { type: "number", min: 1, step: "any", "aria-label": key === "low" ? "least rank" : "greatest rank" });
    choices.bind(input, key);
    input.addEventListener("change", () => choices.change((params) => params.delete("cell")));
    return input;
  });
  const body = el("div", { class: "filters" }, above, el("fieldset", {}, el("legend", {}, "Rank of the right answer"), el("div", { class: "range" }, range[0], " to ", range[1])), below);
  const details = el("details", { class: "filter-panel" }, el("summary", {}, "Filters"), body);
  const wide = matchMedia("(min-width: 900px)");
  const fit = () => { details.open = wide.matches; };
  wide.addEventListener("change", fit);
  fit();

  function box(key, value, label, countText, title = "") {
    const name = JSON.stringify([key, value]);
    if (!boxes.has(name)) {
      const input = el("input", { type: "checkbox" });
      input.addEventListener("change", () => choices.toggle(key, value, input.checked));
      boxes.set(name, el("label", { class: "choice", data: { key, value } }, input, el("span", { class: "label" }, label), el("span", { class: "count" })));
    }
    const choice = boxes.get(name);
    choice.querySelector(".count").textContent = countText;
    if (title) choice.title = title;
    return choice;
  }

  /* Check the boxes of the chosen values. */
  function check(params) {
    for (const { dataset, control } of boxes.values()) control.checked = params.getAll(dataset.key).includes(dataset.value);
  }

  function group(name, title, members, more = 0) {
    if (!members.length) return null;
    if (!groups.has(name)) groups.set(name, { field: el("fieldset"), legend: el("legend"), button: el("button", { type: "button", class: "plain" }), note: el("p", { class: "note" }) });
    const { field, legend, button, note } = groups.get(name);
    legend.textContent = title;
    button.textContent = `Show ${members.length - SHOWN} more`;
    note.textContent = `${count(more)} rarer values: search or filter to see them`;
    const fill = () => {
      const isWhole = opened.has(name) || members.length <= SHOWN;
      arrange(field, [legend, ...(isWhole ? members : members.slice(0, SHOWN)), !isWhole && button, isWhole && more && note]);
    };
    button.onclick = () => {
      opened.add(name);
      fill();
      members[SHOWN].control.focus();
    };
    fill();
    return field;
  }

  function waysGroups(counts, params) {
    const ways = run.about.ways;
    const otherFilters = new URLSearchParams(params);
    otherFilters.delete("model");
    const models = [...new Set(ways.map((way) => way.model))];
    const members = models.map((model) => {
      const modelCounts = counts.filter((_, index) => ways[index].model === model && isChosen(ways[index], otherFilters));
      const right = modelCounts.reduce((sum, item) => sum + item.right, 0);
      const judged = modelCounts.reduce((sum, item) => sum + item.right + item.wrong, 0);
      return box("model", model, bdi(model), percent(right, judged), `${count(right)} of ${count(judged)} usable answers are right`);
    });
    const plain = (key) => {
      const values = [...new Set(ways.map((way) => way[key]))];
      return values.length > 1 && ways.length > models.length ? values.map((value) => box(key, value, bdi(value), "")) : [];
    };
    return [group("model", "Model, and its share of right answers", members), group("probe", "Probe", plain("probe")), group("method", "Method", plain("method"))];
  }

  return {
    element: details,
    show: check,
    draw(counts) {
      const params = choices.now();
      const results = Object.entries(RESULTS).map(([key, label]) => box("result", key, label, count(counts.results[key])));
      const facets = Object.entries(FACETS).map(([key, name]) => {
        const facet = counts.facets[key];
        if (facet.of < 2) return null;
        return group(key, name, facet.values.map((item) => box(key, item.value, item.value === "" ? "(none)" : bdi(item.value), count(item.count))), facet.more);
      });
      const isSome = ["model", "method", "probe"].some((key) => params.has(key));
      arrange(above, [group("result", isSome ? "Result, by the chosen models" : "Result, by any model", results), ...waysGroups(counts.ways, params)]);
      arrange(below, facets);
      check(params);
    },
  };
}

/* The active filters, each a button that removes it. */
export function chipRow(choices) {
  const names = { ...FACETS, low: "rank from", high: "rank to", model: "Model", probe: "Probe", method: "Method", result: "Result" };
  const row = el("div");
  const chips = new Map();
  const clear = el("button", { type: "button", class: "plain" }, "Clear all");
  clear.addEventListener("click", () => choices.change((params) => {
    for (const key of new Set(params.keys())) if (!["search", "sort", "first", "second"].includes(key)) params.delete(key);
  }));
  function chip([key, value]) {
    const name = JSON.stringify([key, value]);
    if (!chips.has(name)) {
      const button = el("button", { type: "button", class: "chip", title: "Remove this filter" }, `${names[key]}: `, bdi(value || "(none)"), " ×");
      button.addEventListener("click", () => choices.toggle(key, value, false));
      chips.set(name, button);
    }
    return chips.get(name);
  }
  return {
    element: row,
    show(params) {
      const active = [...filtersOf(params)].filter(([key]) => key !== "search");
      row.className = active.length ? "chips" : "";
      arrange(row, active.length ? [...new Set(active.map(chip)), clear] : []);
    },
  };
}
