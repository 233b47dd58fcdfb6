"use strict";
/* Play: a sentence with a slot, candidates, models; the ranking follows what is typed. */
import { bdi, count, el, failed, get, go, plural, post, rank, rankedList, run, say, visible } from "./parts.js";

const PROBES = { rank: "rank the candidates", fill: "fill the slot freely (masked models)", write: "let it write" };
const WAIT = 400;
const EXAMPLE = { text: "The capital of France is [MASK].", candidates: "Paris, Berlin, Rome, London" };
let form, output, status, shown, right, asked, timer, methods;

export const title = () => "Play";

export function mount(main) {
  asked = 0;
  right = new Set();
  methods = new Map();
  shown = null;
  const text = el("textarea", { id: "play-text", rows: 2, maxlength: 4000, spellcheck: "false", dir: "auto" });
  const candidates = el("textarea", { id: "play-candidates", rows: 6, spellcheck: "false", dir: "auto" });
  const probes = Object.entries(PROBES).map(([key, name]) => el("label", { class: "choice" }, el("input", { type: "radio", name: "probe", value: key, checked: key === "rank" }), el("span", {}, name)));
  const models = run.about.models.map((model) => el("label", { class: `choice${model.reason ? " unusable" : ""}` },
    el("input", { type: "checkbox", name: "model", value: model.name, disabled: Boolean(model.reason) }),
    el("span", { class: "label" }, bdi(model.name), model.reason ? ": " : " ", el("span", { class: "note" }, model.reason ? bdi(model.reason) : visible(model.kind)))));
  form = el("form", { class: "play" },
    el("div", { class: "field" }, el("label", { for: "play-text" }, "A sentence with ", el("code", {}, "[MASK]"), " or ", el("code", {}, "___"), " where the answer goes"), text),
    el("div", { class: "field" }, el("label", { for: "play-candidates" }, "Candidates, one a line, or with commas between them"), candidates),
    el("fieldset", {}, el("legend", {}, "Models"), models.length ? models : el("p", { class: "note" }, "This run names no models. Start “gnomon explore” with --model to play.")),
    el("fieldset", {}, el("legend", {}, "How"), probes),
    el("p", { class: "note" }, "A model that was not in the run: start “gnomon explore” with --model NAME_OR_FOLDER."));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(changed, WAIT);
  });
  status = el("p", { class: "total", role: "status" });
  output = el("div", { class: "cards" });
  main.append(el("h1", { class: "visually-hidden" }, "Play"), el("div", { class: "columns playing" }, form, el("section", {}, status, output)));
}

const value = (name) => form.querySelector(`#play-${name}`).value;
const chosenModels = () => [...form.querySelectorAll('input[name="model"]:checked')].map((box) => box.value);
const chosenProbe = () => form.querySelector('input[name="probe"]:checked').value;

/* What is typed is in the address too, so that it can be kept and sent. */
function changed() {
  const params = new URLSearchParams({ text: value("text"), candidates: value("candidates") });
  if (chosenProbe() !== "rank") params.set("probe", chosenProbe());
  for (const name of chosenModels()) params.append("model", name);
  for (const answer of right) params.append("right", answer);
  shown = params.toString();
  go("play", params, true);
  ask();
}

export async function update(params) {
  if (params.toString() === shown) return;
  shown = params.toString();
  try {
    await fill(params);
    ask();
  } catch (error) {
    output.replaceChildren(failed(error));
  }
}

async function fill(params) {
  let text = params.get("text") ?? EXAMPLE.text;
  let candidates = params.get("candidates") ?? (params.has("text") ? "" : EXAMPLE.candidates);
  right = new Set(params.getAll("right"));
  if (params.has("question")) {
    const found = await get("question", new URLSearchParams({ id: params.get("question") }));
    text = found.prompt;
    candidates = `${found.candidates.join("\n")}\n`;
    right = new Set(found.golds);
  }
  form.querySelector("#play-text").value = text;
  form.querySelector("#play-candidates").value = candidates;
  const wanted = params.getAll("model");
  const boxes = [...form.querySelectorAll('input[name="model"]:not(:disabled)')];
  boxes.forEach((box, place) => { box.checked = wanted.length ? wanted.includes(box.value) : place === 0; });
  const probe = form.querySelector(`input[name="probe"][value="${Object.hasOwn(PROBES, params.get("probe") ?? "") ? params.get("probe") : "rank"}"]`);
  probe.checked = true;
}

async function ask() {
  const mine = ++asked;
  if (!form.querySelector('input[name="model"]:not(:disabled)')) {
    status.textContent = "There is no model to play with here. Start “gnomon explore” with --model NAME_OR_FOLDER.";
    return;
  }
  const current = () => mine === asked && form.isConnected;
  try {
    const models = chosenModels().map((name) => ({ name, method: methods.get(name) ?? null }));
    const { job, refused } = await post("play", { text: value("text"), candidates: value("candidates"), probe: chosenProbe(), models });
    if (refused && current()) {
      status.textContent = refused;
      output.replaceChildren();
    }
    if (refused) return;
    let seen = -1;
    while (current()) {
      const found = await get("play", new URLSearchParams({ job, seen }));
      if (!current()) return;
      draw(found);
      if (found.state === "done" || found.state === "replaced") return;
      seen = found.version;
    }
  } catch (error) {
    if (!current()) return;
    status.textContent = "";
    output.replaceChildren(failed(error));
  }
}

function draw(found) {
  const told = { waiting: "Waiting for what is asked before …", replaced: "Another page asked something else meanwhile; type to ask again.", done: "" };
  status.textContent = told[found.state] ?? visible(found.said);
  if (found.state === "replaced") return;
  if (found.state === "done") say("The ranking is there.");
  if (found.results.length || found.state === "done") output.replaceChildren(...found.results.map(card));
}

function card(result) {
  const head = el("h3", {}, bdi(result.model));
  if (result.error) return el("div", { class: "said" }, head, el("p", { class: "failure", dir: "auto" }, visible(result.error)));
  const parts = [head, el("p", { class: "note" }, method(result), ` · ${result.seconds < 0.01 ? "under 0.01" : result.seconds.toFixed(2)} s`)];
  if (result.unusable) parts.push(el("p", { class: "failure", dir: "auto" }, "Unusable: ", bdi(result.unusable)));
  if (result.note) parts.push(el("p", { class: "note" }, result.note));
  const best = result.golds.filter((gold) => right.has(gold.text)).sort((a, b) => a.rank - b.rank)[0];
  if (best) parts.push(el("p", {}, "Right answer ", bdi(best.text, { class: "right" }), `: rank ${rank(best.rank)} of ${count(result.among)}`));
  parts.push(rankedList(result.ranked.map((item) => ({ ...item, gold: right.has(item.text) })), 25));
  if (result.probe === "rank" && result.among > result.ranked.length && !result.unusable) parts.push(el("p", { class: "note" }, `The first ${count(result.ranked.length)} of ${plural(result.among, "candidate")}.`));
  return el("div", { class: "said" }, parts);
}

function method(result) {
  if (result.methods.length < 2) return `method ${visible(result.method)}`;
  const select = el("select", { "aria-label": `method of ${visible(result.model)}` }, result.methods.map((name) => el("option", { value: name }, visible(name))));
  select.value = result.method;
  select.addEventListener("change", () => {
    methods.set(result.model, select.value);
    ask();
  });
  return ["method ", select];
}
