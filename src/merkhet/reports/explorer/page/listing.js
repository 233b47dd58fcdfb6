"use strict";
/* Questions as a table, and the pages of a long list. */
import { bdi, count, el, golds, hash, isPlain, list, prompt, rank, run, verdict, visible } from "./parts.js";

const COLUMNS = 6;

function cell(row, way, label) {
  const name = row.verdicts[way];
  const rankValue = row.ranks[way];
  const rankText = rankValue === null || name === "right" && rankValue === 1 ? "" : ` ${rank(rankValue)}`;
  const title = `${label}: ${name ?? "not asked"}${rankValue === null ? "" : `, rank ${rank(rankValue)}`}${row.tied[way] ? ", tied" : ""}`;
  return el("td", { class: "outcome", title, data: { label } }, verdict(name), rankText, row.tied[way] ? el("span", { class: "note", title: "tied with others" }, " =") : "");
}

function tally(row, ways) {
  const [right, wrong, unusable] = ["right", "wrong", "unusable"].map((name) => ways.filter((way) => row.verdicts[way] === name).length);
  const unusableNote = unusable ? el("span", { class: "unusable", title: `${unusable} unusable` }, ` ⊘ ${unusable}`) : "";
  return el("td", { class: "outcome", data: { label: "right" } }, `${right} of ${right + wrong}`, unusableNote);
}

/* A table of questions with a column for each way; many ways are summarized in one column. */
export function questionTable(rows, ways, { difference = null, remember = false, caption = "Questions" } = {}) {
  if (remember) list.ids = rows.map((row) => row.id);
  const labels = run.about.ways.map((way) => visible(way.label));
  const few = ways.length <= COLUMNS;
  const heads = few ? ways.map((way) => el("th", { scope: "col", class: "outcome" }, el("span", { class: "clamp", title: labels[way] }, bdi(visible(run.about.ways[way].short))))) : [el("th", { scope: "col" }, "right")];
  if (difference) heads.push(el("th", { scope: "col", class: "number" }, "ranks apart"));
  const lines = rows.map((row) => {
    const link = el("a", { href: hash("question", { id: row.id }), class: "asked", data: { focus: row.id } }, prompt(row));
    const tags = [row.task, row.domain, row.relation === row.task ? "" : row.relation].filter(Boolean);
    const about = el("div", { class: "about" }, golds(row), [...new Set(tags)].map((tag) => [" ", bdi(tag, { class: "tag" })]));
    const cells = few ? ways.map((way) => cell(row, way, labels[way])) : [tally(row, ways)];
    if (difference) {
      const [first, second] = difference.map((way) => row.ranks[way]);
      const distance = first === null || second === null ? "–" : rank(Math.abs(first - second));
      cells.push(el("td", { class: "number", data: { label: "ranks apart" } }, distance));
    }
    return el("tr", {}, el("td", { class: "question-cell" }, link, about), cells);
  });
  const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Question"), heads));
  const table = el("table", { class: "questions", "aria-label": caption }, head, el("tbody", {}, lines));
  table.addEventListener("keydown", moveBetween);
  const key = few && ways.length ? "✓ right, ✗ wrong with the rank of the right answer, = tied, ⊘ unusable, – not asked" : ways.length ? "how many usable answers are right; ⊘ how many are unusable" : "";
  return [el("div", { class: "scroll listing" }, table), el("p", { class: "note" }, key)];
}

/* Arrow keys (and j, k) move between questions. */
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

/* Links to the previous and next page, and an input for any page. They are created once: a list that arrives while the
   user types a page number keeps what was typed. */
export function pager(choices) {
  let listed = new URLSearchParams();
  let written = "";
  const input = el("input", { type: "number", min: 1, "aria-label": "page" });
  const of = el("span");
  const nav = el("nav", { class: "pager", "aria-label": "Pages" });
  const [previous, next] = [["‹ Previous", "prev"], ["Next ›", "next"]].map(([text, rel]) => {
    const link = el("a", { rel }, text);
    link.addEventListener("click", (event) => {
      if (!link.dataset.page || !isPlain(event)) return;
      event.preventDefault();
      choices.turnTo(link.dataset.page, listed);
    });
    return link;
  });
  nav.append(previous, el("span", {}, "Page ", input, of), next);
  input.addEventListener("change", () => {
    input.value = Math.min(input.max, Math.max(1, Math.round(Number(input.value)) || 1));
    written = input.value;
    choices.turnTo(input.value, listed);
  });

  function aim(link, page, pages) {
    const exists = page >= 1 && page <= pages;
    link.className = exists ? "" : "unusable";
    link.dataset.page = exists ? page : "";
    if (exists) link.href = choices.hashOf(page, listed);
    else link.removeAttribute("href");
  }

  return {
    element: nav,
    /* The address has changed: discard a page number that was typed before. */
    reset() {
      input.value = written;
    },
    draw(result, params) {
      const pages = Math.max(1, Math.ceil(result.total / result.size));
      listed = params;
      nav.hidden = !result.total || (pages === 1 && result.page === 1);
      of.textContent = ` of ${count(pages)}`;
      input.max = pages;
      aim(previous, result.page - 1, pages);
      aim(next, result.page + 1, pages);
      const isTyped = input.value !== written && document.activeElement === input;
      written = String(result.page);
      if (!isTyped) input.value = written;
    },
  };
}
