"use strict";
/* Routing by address: #/questions?…, #/question?id=…, #/compare?…, #/play?… */
import { el, errorMessage, get, isPlain, plural, run, visible, visit } from "./parts.js";
import * as questions from "./questions.js";
import * as question from "./question.js";
import * as compare from "./compare.js";
import * as play from "./play.js";

const VIEWS = { questions, question, compare, play };
const main = document.getElementById("main");
const title = document.title;
let current = null;
let routed = null;
let visits = 0;

function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { name: Object.hasOwn(VIEWS, path) ? path : "questions", params: new URLSearchParams(query) };
}

/* Several events can fire for one change of the address; only the first counts. */
function route() {
  if (location.hash === "#main" || location.hash === routed) return;
  routed = location.hash;
  const visitNumber = ++visits;
  delete main.dataset.drawn;
  const { name, params } = readAddress();
  for (const link of document.querySelectorAll("nav.views a")) {
    const isActive = link.dataset.view === (name === "question" ? "questions" : name);
    if (isActive) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[name].title(params)} · ${title}`;
  if (current !== name) {
    const first = current === null;
    if (!first) VIEWS[current].leave();
    current = name;
    main.replaceChildren();
    VIEWS[name].mount(main);
    if (!first) main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  const isCurrent = () => visits === visitNumber;
  VIEWS[name].update(params)
    .catch((error) => isCurrent() && main.prepend(errorMessage(error)))
    // For programs that drive the page: everything that this address shows is drawn.
    .finally(() => isCurrent() && (main.dataset.drawn = routed));
}

function introduce() {
  const about = run.about;
  const models = new Set(about.ways.map((way) => way.model)).size;
  const parts = [plural(about.questions, "question"), plural(about.answers, "answer"), plural(models, "model")];
  document.getElementById("meta").append(el("bdi", {}, visible(about.name)), ` · ${parts.join(" · ")}`);
  document.getElementById("notes").append(...about.notes.map((note) => el("p", { class: "note lacking" }, note)));
}

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const box = document.querySelector('input[type="search"]');
  if (box) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});

document.querySelector("a.skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

/* Links within the page take effect at once, as controls do. */
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || !isPlain(event)) return;
  const link = event.target.closest('a[href^="#/"]');
  if (!link) return;
  event.preventDefault();
  visit(link.getAttribute("href"));
});

try {
  run.about = await get("run");
  main.replaceChildren();
  introduce();
  addEventListener("popstate", route);
  addEventListener("hashchange", route);
  route();
} catch (error) {
  main.replaceChildren(errorMessage(error));
}
