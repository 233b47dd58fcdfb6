"use strict";
/* Questions as a table, and the pages of a long list. */
import { bdi, count, el, golds, hash, list, prompt, rank, run, verdict, visible } from "./parts.js";

const COLUMNS = 6;

function cell(row, way, label) {
  const name = row.verdicts[way];
  const place = row.ranks[way];
  const told = place === null || name === "right" && place === 1 ? "" : ` ${rank(place)}`;
  const title = `${label}: ${name ?? "not asked"}${place === null ? "" : `, rank ${rank(place)}`}${row.tied[way] ? ", tied" : ""}`;
  return el("td", { class: "outcome", title, data: { label } }, verdict(name), told, row.tied[way] ? el("span", { class: "note", title: "tied with others" }, " =") : "");
}

function tally(row, ways) {
  const [right, wrong, unusable] = ["right", "wrong", "unusable"].map((name) => ways.filter((way) => row.verdicts[way] === name).length);
  const left = unusable ? el("span", { class: "unusable", title: `${unusable} unusable` }, ` ⊘ ${unusable}`) : "";
  return el("td", { class: "outcome", data: { label: "right" } }, `${right} of ${right + wrong}`, left);
}

/* A table of questions. ways are the columns; with more than a few they are counted instead. */
export function questionTable(rows, ways, { difference = null, remember = false, caption = "Questions" } = {}) {
  if (remember) {
    list.hash = location.hash || "#/questions";
    list.ids = rows.map((row) => row.id);
  }
  const labels = run.about.ways.map((way) => visible(way.label));
  const few = ways.length <= COLUMNS;
  const heads = few ? ways.map((way) => el("th", { scope: "col", class: "outcome" }, el("span", { class: "clamp", title: labels[way] }, bdi(labels[way])))) : [el("th", { scope: "col" }, "right")];
  if (difference) heads.push(el("th", { scope: "col", class: "number" }, "ranks apart"));
  const lines = rows.map((row) => {
    const link = el("a", { href: hash("question", { id: row.id }), class: "asked" }, prompt(row));
    const tags = [row.task, row.domain, row.relation === row.task ? "" : row.relation].filter(Boolean);
    const about = el("div", { class: "about" }, golds(row), [...new Set(tags)].map((tag) => [" ", bdi(tag, { class: "tag" })]));
    const cells = few ? ways.map((way) => cell(row, way, labels[way])) : [tally(row, ways)];
    if (difference) {
      const [first, second] = difference.map((way) => row.ranks[way]);
      const apart = first === null || second === null ? "–" : rank(Math.abs(first - second));
      cells.push(el("td", { class: "number", data: { label: "ranks apart" } }, apart));
    }
    return el("tr", {}, el("td", { class: "question-cell" }, link, about), cells);
  });
  const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Question"), heads));
  const table = el("table", { class: "questions", "aria-label": caption }, head, el("tbody", {}, lines));
  table.addEventListener("keydown", moveBetween);
  const key = few && ways.length ? "✓ right, ✗ wrong with the rank of the right answer, = tied, ⊘ unusable, – not asked" : ways.length ? "how many usable answers are right; ⊘ how many are unusable" : "";
  return [el("div", { class: "scroll listing" }, table), el("p", { class: "note" }, key)];
}

/* Arrow keys (and j, k) go from question to question. */
function moveBetween(event) {
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  const links = [...event.currentTarget.querySelectorAll("a.asked")];
  const next = links[links.indexOf(event.target.closest("a.asked")) + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}

/* Links to the pages before and after, and a box for any other. */
export function pager(found, view, params) {
  const pages = Math.max(1, Math.ceil(found.total / found.size));
  if (pages === 1 && found.page === 1) return el("div");
  const to = (page) => {
    const next = new URLSearchParams(params);
    next.set("page", page);
    return hash(view, next);
  };
  const step = (page, text, label) => page >= 1 && page <= pages ? el("a", { href: to(page), rel: label }, text) : el("span", { class: "unusable" }, text);
  const input = el("input", { type: "number", min: 1, max: pages, value: found.page, "aria-label": "page" });
  input.addEventListener("change", () => {
    location.hash = to(Math.min(pages, Math.max(1, Math.round(Number(input.value)) || 1)));
  });
  return el("nav", { class: "pager", "aria-label": "Pages" }, step(found.page - 1, "‹ Previous", "prev"), el("span", {}, "Page ", input, ` of ${count(pages)}`), step(found.page + 1, "Next ›", "next"));
}
