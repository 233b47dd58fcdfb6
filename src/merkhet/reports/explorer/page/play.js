"use strict";
/* Playground: a sentence with a slot, candidates, models; the ranking is updated while typing. */
import { announce, arrange, bdi, count, el, errorMessage, get, go, latest, plural, post, rank, rankedList, run, visible } from "./parts.js";

const PROBES = { rank: "rank the candidates", fill: "fill the slot freely (masked models)", write: "write an answer" };
const WAIT = 400;
const EXAMPLE = { text: "The capital of France is [MASK].", candidates: "Paris, Berlin, Rome, London" };
const filling = latest(), asking = latest();
let form, output, status, currentQuery, right, timer, methods, edited, isLoading;
let sending = Promise.resolve();

export const title = () => "Play";

export function mount(main) {
  right = new Set();
  methods = new Map();
  edited = new Set();
  isLoading = false;
  currentQuery = timer = null;
  const text = el("textarea", { id: "play-text", rows: 2, maxlength: 4000, spellcheck: "false", dir: "auto" });
  const candidates = el("textarea", { id: "play-candidates", rows: 6, spellcheck: "false", dir: "auto" });
  const probes = Object.entries(PROBES).map(([key, name]) => el("label", { class: "choice" }, el("input", { type: "radio", name: "probe", value: key, checked: key === "rank" }), el("span", {}, name)));
  const models = run.about.models.map((model) => el("label", { class: `choice${model.reason ? " unusable" : ""}` },
    el("input", { type: "checkbox", name: "model", value: model.name, disabled: Boolean(model.reason) }),
    el("span", { class: "label" }, bdi(model.name), model.reason ? ": " : " ", el("span", { class: "note" }, model.reason ? bdi(model.reason) : visible(model.kind)))));
  form = el("form", { class: "play" },
    el("div", { class: "field" }, el("label", { for: "play-text" }, "A sentence with ", el("code", {}, "[MASK]"), " or ", el("code", {}, "___"), " where the answer goes"), text),
    el("div", { class: "field" }, el("label", { for: "play-candidates" }, "Candidates, one per line or separated by commas"), candidates),
    el("fieldset", {}, el("legend", {}, "Models"), models.length ? models : el("p", { class: "note" }, "This run names no models. Start “merkhet explore” with --model to play.")),
    el("fieldset", {}, el("legend", {}, "How"), probes),
    el("p", { class: "note" }, "A model that was not in the run: start “merkhet explore” with --model NAME_OR_FOLDER."));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    edited.add(event.target.id);
    clearTimeout(timer);
    timer = setTimeout(changed, WAIT);
  });
  // An input that loses the focus is complete: a link that is clicked next finds its text in the address.
  form.addEventListener("focusout", () => timer !== null && changed());
  status = el("p", { class: "total", role: "status" });
  output = el("div", { class: "cards" });
  main.append(el("h1", { class: "visually-hidden" }, "Play"), el("div", { class: "columns playing" }, form, el("section", {}, status, output)));
}

const value = (name) => form.querySelector(`#play-${name}`).value;
const chosenModels = () => [...form.querySelectorAll('input[name="model"]:checked')].map((box) => box.value);
const chosenProbe = () => form.querySelector('input[name="probe"]:checked').value;

export function leave() {
  clearTimeout(timer);
  timer = null;
  filling.cancel();
  asking.cancel();
}

/* Put what is typed into the address, so that it can be saved and shared. */
function changed() {
  clearTimeout(timer);
  timer = null;
  if (isLoading) return;  // What is typed while a question is loading is used when it has arrived.
  const params = new URLSearchParams({ text: value("text"), candidates: value("candidates") });
  if (chosenProbe() !== "rank") params.set("probe", chosenProbe());
  for (const name of chosenModels()) params.append("model", name);
  for (const answer of right) params.append("right", answer);
  currentQuery = params.toString();
  go("play", params, true);
  ask();
}

export async function update(params) {
  if (params.toString() === currentQuery) return;
  currentQuery = params.toString();
  clearTimeout(timer);
  timer = null;
  asking.cancel();
  edited.clear();
  isLoading = true;
  const finish = (otherwise) => {
    isLoading = false;
    if (edited.size) changed();
    else otherwise();
  };
  await filling.run(
    async (signal) => {
      await fill(params, signal);
      finish(ask);
    },
    (error) => finish(() => output.replaceChildren(errorMessage(error))),
  );
}

async function fill(params, signal) {
  right = new Set(params.getAll("right"));
  const names = params.getAll("model");
  const boxes = [...form.querySelectorAll('input[name="model"]:not(:disabled)')];
  boxes.forEach((box, index) => { box.checked = names.length ? names.includes(box.value) : index === 0; });
  const probe = form.querySelector(`input[name="probe"][value="${Object.hasOwn(PROBES, params.get("probe") ?? "") ? params.get("probe") : "rank"}"]`);
  probe.checked = true;
  let text = params.get("text") ?? EXAMPLE.text;
  let candidates = params.get("candidates") ?? (params.has("text") ? "" : EXAMPLE.candidates);
  if (params.has("question")) {
    const question = await get("question", new URLSearchParams({ id: params.get("question") }), signal);
    text = question.prompt;
    candidates = `${question.candidates.join("\n")}\n`;
    right = new Set(question.golds);
  }
  // Do not overwrite what was typed meanwhile.
  if (!edited.has("play-text")) form.querySelector("#play-text").value = text;
  if (!edited.has("play-candidates")) form.querySelector("#play-candidates").value = candidates;
}

/* Send a request after the earlier ones: the explorer answers only the last that it receives. */
function send(content, signal) {
  const reply = sending.then(() => (signal.aborted ? {} : post("play", content)));
  sending = reply.catch(() => {});
  return reply;
}

function ask() {
  return asking.run(follow, (error) => {
    status.textContent = "";
    output.replaceChildren(errorMessage(error));
  });
}

async function follow(signal) {
  if (!form.querySelector('input[name="model"]:not(:disabled)')) {
    status.textContent = "There is no model to play with here. Start “merkhet explore” with --model NAME_OR_FOLDER.";
    return;
  }
  const models = chosenModels().map((name) => ({ name, method: methods.get(name) ?? null }));
  const { job, refused } = await send({ text: value("text"), candidates: value("candidates"), probe: chosenProbe(), models }, signal);
  signal.throwIfAborted();
  if (refused) {
    status.textContent = refused;
    output.replaceChildren();
    return;
  }
  const cards = [];
  let progress = { state: "", version: -1 };
  while (progress.state !== "done" && progress.state !== "replaced") {
    progress = await get("play", new URLSearchParams({ job, seen: progress.version }), signal);
    draw(progress, cards);
  }
}

/* cards holds the results drawn so far: they are not redrawn when the next one arrives. */
function draw(progress, cards) {
  const texts = { waiting: "Waiting for the previous request …", replaced: "Another page sent a newer request; type to ask again.", done: "" };
  status.textContent = texts[progress.state] ?? visible(progress.message);
  if (progress.state === "replaced") return;
  if (progress.state === "done") announce("The ranking is ready.");
  cards.push(...progress.results.slice(cards.length).map(card));
  if (cards.length || progress.state === "done") arrange(output, cards);
}

function card(result) {
  const head = el("h3", {}, bdi(result.model));
  if (result.error) return el("div", { class: "answer-card" }, head, el("p", { class: "failure", dir: "auto" }, visible(result.error)));
  const parts = [head, el("p", { class: "note" }, method(result), ` · ${result.seconds < 0.01 ? "under 0.01" : result.seconds.toFixed(2)} s`)];
  if (result.unusable) parts.push(el("p", { class: "failure", dir: "auto" }, "Unusable: ", bdi(result.unusable)));
  if (result.note) parts.push(el("p", { class: "note" }, result.note));
  const best = result.golds.filter((gold) => right.has(gold.text)).sort((a, b) => a.rank - b.rank)[0];
  if (best) parts.push(el("p", {}, "Right answer ", bdi(best.text, { class: "right" }), `: rank ${rank(best.rank)} of ${count(result.among)}`));
  parts.push(rankedList(result.ranked.map((item) => ({ ...item, gold: right.has(item.text) })), 25));
  if (result.probe === "rank" && result.among > result.ranked.length && !result.unusable) parts.push(el("p", { class: "note" }, `The first ${count(result.ranked.length)} of ${plural(result.among, "candidate")}.`));
  return el("div", { class: "answer-card" }, parts);
}

function method(result) {
  if (result.methods.length < 2) return `method ${visible(result.method)}`;
  const select = el("select", { "aria-label": `method of ${visible(result.model)}`, data: { focus: `method ${result.model}` } }, result.methods.map((name) => el("option", { value: name }, visible(name))));
  select.value = result.method;
  select.addEventListener("change", () => {
    methods.set(result.model, select.value);
    changed();
  });
  return ["method ", select];
}
