"use strict";
const columns = JSON.parse(document.body.dataset.columns);
const articles = [...document.querySelectorAll("article")];
const progress = document.getElementById("progress");
const place = "merkhet-review-" + document.body.dataset.key;
let current = 0;
let unsaved = false;

const verdictOf = (article) => article.querySelector("input[type=radio]:checked")?.value ?? "";
const remarkOf = (article) => article.querySelector(".remark input").value;

function mark(article, verdict) {
  for (const radio of article.querySelectorAll("input[type=radio]")) radio.checked = radio.value === verdict;
}

function remember() {
  const judged = articles.filter(verdictOf).length;
  progress.textContent = `${judged} of ${articles.length} judged`;
  try {
    localStorage.setItem(place, JSON.stringify(articles.map((one) => [verdictOf(one), remarkOf(one)])));
  } catch { /* A browser may forbid it; the sheet can still be saved. */ }
}

function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem(place) ?? "[]");
    kept.forEach(([verdict, remark], number) => {
      mark(articles[number], verdict);
      articles[number].querySelector(".remark input").value = remark;
    });
  } catch { /* Nothing was kept. */ }
}

function go(number, focused = true) {
  articles[current]?.classList.remove("current");
  current = Math.max(0, Math.min(articles.length - 1, number));
  const article = articles[current];
  article?.classList.add("current");
  if (focused) article?.focus();
}

/* A text that begins like a formula gets an apostrophe, so that a spreadsheet leaves it a text. */
const guarded = (text) => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text);
const cell = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);

function sheet() {
  const lines = [columns];
  for (const article of articles) {
    const row = { ...JSON.parse(article.dataset.cells), verdict: verdictOf(article), remark: remarkOf(article) };
    lines.push(columns.map((column) => guarded(row[column])));
  }
  return "\ufeff" + lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([sheet()], { type: "text/csv" }));
  link.download = "verdicts.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  unsaved = false;
}

document.getElementById("save").addEventListener("click", save);
document.addEventListener("input", () => { unsaved = true; remember(); });
document.addEventListener("focusin", (event) => {
  const number = articles.indexOf(event.target.closest("article"));
  if (number >= 0) go(number, false);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=text]")) return;
  const verdict = { g: "good", b: "bad", u: "unsure" }[event.key];
  if (verdict) {
    mark(articles[current], verdict);
    unsaved = true;
    remember();
    go(current + 1);
  } else if (event.key === "j" || event.key === "k") {
    go(current + (event.key === "j" ? 1 : -1));
  } else {
    return;
  }
  event.preventDefault();
});
addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
recall();
remember();
go(0, false);
