"use strict";
/* One question: its answers by each model, its facts with proofs, its Q-set. */
import { BARS, arrange, bdi, count, el, errorMessage, get, golds, hash, latest, list, plural, prompt, rank, rankedList, run, verdict, visible } from "./parts.js";
import { questionTable } from "./listing.js";

const work = latest();
let steps, holder;
const TAGS = ["task", "domain", "relation", "template", "rule", "split", "language"];

export const title = (params) => `Question ${params.get("id") ?? ""}`;

export function mount(main) {
  steps = el("div");
  holder = el("article", { class: "one" });
  main.append(steps, holder);
}

export const leave = () => work.cancel();

export async function update(params) {
  const id = params.get("id") ?? "";
  // The links to the neighbours work at once, even before this question is loaded.
  arrange(steps, [around(id)]);
  holder.classList.add("waiting");
  const paint = (...children) => {
    holder.classList.remove("waiting");
    holder.replaceChildren(...children);
  };
  await work.run(async (signal) => {
    paint(...draw(await get("question", new URLSearchParams({ id }), signal)));
    scrollTo(0, 0);
  }, (error) => paint(errorMessage(error)));
}

/* Links back to the list, and to the previous and next question in it. */
function around(id) {
  const index = list.ids.indexOf(id);
  const step = (neighbour, text) => neighbour ? el("a", { href: hash("question", { id: neighbour }), data: { focus: text } }, text) : null;
  const neighbours = index < 0 ? [] : [step(list.ids[index - 1], "‹ Previous"), step(list.ids[index + 1], "Next ›")];
  return el("nav", { class: "around", "aria-label": "Around this question" }, el("a", { href: list.hash }, list.hash.startsWith("#/compare") ? "← Compare" : "← Questions"), el("span", {}, neighbours));
}

// Aliases of right answers are no candidates, but right if a model writes them.
function rightAnswers(question) {
  const named = (texts) => golds({ golds: texts, more_golds: 0 });
  const ranked = question.golds.filter((text) => !question.written_golds.includes(text));
  return [
    ranked.length > 1 ? "Right answers: " : "Right answer: ",
    named(ranked),
    ...(question.written_golds.length ? ["; also right as text: ", named(question.written_golds)] : []),
  ];
}

function draw(question) {
  const tags = TAGS.filter((key, index) => question[key] && TAGS.findIndex((otherKey) => question[otherKey] === question[key]) === index).map((key) => el("a", { class: "tag", href: hash("questions", { [key]: question[key] }), title: `${key}: all such questions` }, bdi(question[key])));
  const play = question.compares
    ? el("p", { class: "note" }, "This question compares senses: the word in one sentence and in others. The playground does not support it.")
    : el("p", {}, el("a", { class: "button", href: hash("play", { question: question.question_id }) }, "Play with this question"));
  return [
    prompt(question, "h1", { class: "asked-one" }),
    el("p", { class: "answers" }, rightAnswers(question)),
    el("p", { class: "tags" }, tags),
    play,
    section("Answers", modelAnswers(question)),
    section("Candidates", candidates(question)),
    question.premises.length ? section("The premises", premises(question)) : "",
    section(question.facts.length > 1 ? "The facts behind it" : "The fact behind it", facts(question)),
    section("Q-set", qset(question)),
    el("p", { class: "note hash" }, bdi(question.question_id)),
  ];
}

function section(name, content) {
  return el("section", { class: "part", "aria-label": name }, el("h2", {}, name), content);
}

function modelAnswers(question) {
  if (!question.model_answers.length) return el("p", {}, "This question has no answers.");
  const groups = new Map();
  for (const answer of question.model_answers) groups.set(answer.way, [...(groups.get(answer.way) ?? []), answer]);
  const cards = [...groups].map(([way, answers]) => card(question, run.about.ways[way], answers));
  return [el("div", { class: "cards" }, cards), el("p", { class: "note" }, BARS)];
}

function card(question, way, answers) {
  const [first] = answers;
  const head = el("h3", {}, verdict(answers.length === 1 ? first.verdict : majority(answers)), " ", bdi(way.label));
  const parts = [head, el("p", { class: "note" }, `probe ${visible(way.probe)}, method ${visible(way.method)}`)];
  if (answers.length > 1) {
    const right = answers.filter((answer) => answer.verdict === "right").length;
    parts.push(el("p", {}, `Asked ${count(answers.length)} times, right ${plural(right, "time")}. The rank of the right answer each time: `, answers.map((answer) => rank(bestOf(answer)?.rank)).join(", "), ". The first of them:"));
  }
  if (first.unusable) parts.push(el("p", { class: "failure", dir: "auto" }, "Unusable: ", bdi(first.unusable)));
  else if (first.outcome && first.outcome !== "answered") parts.push(el("p", {}, first.outcome === "refused" ? "It declined to answer." : "Its reply is no answer."));
  else if (!first.ranked.length) parts.push(el("p", {}, first.prediction === null ? "No answer." : ["Answer: ", bdi(first.prediction)]));
  const best = bestOf(first);
  if (!best && first.ranked.length && first.prediction !== null) parts.push(el("p", {}, "Answer: ", bdi(first.prediction)));
  if (best && best.rank !== null) parts.push(el("p", {}, standing(first, best, question)));
  if (first.ranked.length) parts.push(rankedList(first.ranked));
  if (first.replies?.length) parts.push(el("p", { class: "note" }, first.replies.length > 1 ? "Replies: " : "Reply: ", replies(first.replies)));
  return el("div", { class: "answer-card" }, parts);
}

// Each reply is quoted, so that an empty one is visible.
const replies = (texts) => texts.flatMap((text, index) => [index ? ", " : "", "“", bdi(text), "”"]);

const majority = (answers) => {
  const usable = answers.filter((answer) => answer.verdict !== "unusable");
  if (!usable.length) return "unusable";
  return 2 * usable.filter((answer) => answer.verdict === "right").length > usable.length ? "right" : "wrong";
};

const bestOf = (answer) => answer.golds.filter((gold) => gold.rank !== null).sort((a, b) => a.rank - b.rank)[0];

function standing(answer, best, question) {
  const among = answer.among ?? question.candidate_count;
  const tied = best.ties > 1 ? ` (tied with ${plural(best.ties - 1, "other")})` : "";
  const several = answer.golds.length > 1 && best.text !== null ? [" (", bdi(best.text), ")"] : [];
  return [`Rank ${rank(best.rank)}${among ? ` of ${count(among)}` : ""}`, several, tied];
}

function candidates(question) {
  if (!question.candidate_count) return el("p", {}, "The run records no candidates.");
  const right = new Set(question.golds);
  const few = question.candidate_count <= 12;
  const texts = question.candidates.flatMap((text, index) => [index ? (question.compares ? el("br") : " · ") : "", bdi(text, right.has(text) ? { class: "right" } : {})]);
  const omitted = question.candidate_count - question.candidates.length;
  const all = el("p", { dir: "auto" }, texts, omitted ? ` … and ${count(omitted)} more` : "");
  if (few) return all;
  return el("details", {}, el("summary", {}, plural(question.candidate_count, "candidate")), all);
}

// The axiom of the question is among its tags; other axioms of the proof stand beside their premises.
function premises(question) {
  const items = question.premises.map((item) => el("li", { dir: "auto" }, bdi(item.sentence), item.axiom === question.rule ? "" : el("span", { class: "note" }, " — by ", bdi(item.axiom))));
  return [el("p", { class: "note" }, question.rule ? ["What the answer follows from, by ", bdi(question.rule), ":"] : "What the answer follows from:"), el("ul", { class: "premises" }, items)];
}

function facts(question) {
  if (!question.facts.length) return el("p", {}, "This question names no fact.");
  if (!run.about.has_facts) return el("p", {}, "This run has no table of facts; the question names ", question.facts.map((fact) => [" ", el("code", {}, bdi(fact.fact_id))]), ".");
  return el("ul", { class: "proof" }, question.facts.map(fact));
}

function fact(item) {
  if (item.subject === undefined) return el("li", {}, el("code", {}, bdi(item.fact_id)), el("span", { class: "note" }, " is not among the run’s facts"));
  const object = item.object !== null ? bdi(item.object, { class: "entity" }) : [bdi(String(item.value), { class: "entity" }), item.unit && item.unit !== "1" ? [" ", bdi(item.unit)] : ""];
  const time = item.start || item.end ? el("span", { class: "time" }, ` ${item.start ?? "…"} – ${item.end ?? "…"}`) : "";
  const source = item.rule ? ["by the rule ", bdi(item.rule, { class: "rule" })] : item.source ? ["stated by ", bdi(item.source)] : "stated";
  const line = el("div", { class: "fact", title: item.fact_id }, bdi(item.subject, { class: "entity" }), " ", bdi(item.predicate, { class: "predicate" }), " ", object, time, el("span", { class: "note" }, " — ", source, item.repeated ? "; proved above" : ""));
  const below = item.premises.length ? el("ul", {}, item.premises.map(fact)) : "";
  return el("li", {}, line, below, item.cut ? el("p", { class: "note" }, "Further premises are left out.") : "");
}

function qset(question) {
  if (!question.qset) return el("p", {}, "This question is in no Q-set.");
  if (!question.qset_questions.length) return el("p", {}, "No other question of this run is in its Q-set.");
  const ways = run.about.ways.map((_, index) => index);
  return [el("p", { class: "note" }, "Other questions about the same facts, and which models answered them correctly."), questionTable(question.qset_questions, ways, { caption: "Q-set" })];
}
