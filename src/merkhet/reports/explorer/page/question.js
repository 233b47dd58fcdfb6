"use strict";
/* One question: what was asked, what each model said, the fact, its proof, its Q-set. */
import { BARS, arrange, bdi, count, el, failed, get, golds, hash, latest, list, plural, prompt, rank, rankedList, run, verdict, visible } from "./parts.js";
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
  // The steps lead on from this question at once, even before it is there.
  arrange(steps, [around(id)]);
  holder.classList.add("waiting");
  const paint = (...children) => {
    holder.classList.remove("waiting");
    holder.replaceChildren(...children);
  };
  await work.run(async (signal) => {
    paint(...draw(await get("question", new URLSearchParams({ id }), signal)));
    scrollTo(0, 0);
  }, (error) => paint(failed(error)));
}

/* Back to the list, and the questions before and after in it. */
function around(id) {
  const place = list.ids.indexOf(id);
  const step = (other, text) => other ? el("a", { href: hash("question", { id: other }), data: { focus: text } }, text) : null;
  const both = place < 0 ? [] : [step(list.ids[place - 1], "‹ Previous"), step(list.ids[place + 1], "Next ›")];
  return el("nav", { class: "around", "aria-label": "Around this question" }, el("a", { href: list.hash }, list.hash.startsWith("#/compare") ? "← Compare" : "← Questions"), el("span", {}, both));
}

function draw(found) {
  const tags = TAGS.filter((key, place) => found[key] && TAGS.findIndex((other) => found[other] === found[key]) === place).map((key) => el("a", { class: "tag", href: hash("questions", { [key]: found[key] }), title: `${key}: all such questions` }, bdi(found[key])));
  const play = found.compares
    ? el("p", { class: "note" }, "This question compares senses: the word in its slot, in one sentence and in others. It cannot be played with here.")
    : el("p", {}, el("a", { class: "button", href: hash("play", { question: found.question_id }) }, "Play with this question"));
  return [
    prompt(found, "h1", { class: "asked-one" }),
    el("p", { class: "answers" }, found.golds.length > 1 ? "Right answers: " : "Right answer: ", golds({ golds: found.golds, more_golds: 0 })),
    el("p", { class: "tags" }, tags),
    play,
    section("What was said", said(found)),
    section("Candidates", candidates(found)),
    section(found.facts.length > 1 ? "The facts behind it" : "The fact behind it", facts(found)),
    section("Its Q-set", qset(found)),
    el("p", { class: "note hash" }, bdi(found.question_id)),
  ];
}

function section(name, content) {
  return el("section", { class: "part", "aria-label": name }, el("h2", {}, name), content);
}

function said(found) {
  if (!found.said.length) return el("p", {}, "This question has no answers.");
  const groups = new Map();
  for (const one of found.said) groups.set(one.way, [...(groups.get(one.way) ?? []), one]);
  const cards = [...groups].map(([way, own]) => card(found, run.about.ways[way], own));
  return [el("div", { class: "cards" }, cards), el("p", { class: "note" }, BARS)];
}

function card(found, way, own) {
  const [first] = own;
  const head = el("h3", {}, verdict(own.length === 1 ? first.verdict : majority(own)), " ", bdi(way.label));
  const parts = [head, el("p", { class: "note" }, `probe ${visible(way.probe)}, method ${visible(way.method)}`)];
  if (own.length > 1) {
    const right = own.filter((one) => one.verdict === "right").length;
    parts.push(el("p", {}, `Asked ${count(own.length)} times, right ${plural(right, "time")}. The rank of the right answer each time: `, own.map((one) => rank(bestOf(one)?.rank)).join(", "), ". The first of them:"));
  }
  if (first.unusable) parts.push(el("p", { class: "failure", dir: "auto" }, "Unusable: ", bdi(first.unusable)));
  else if (first.outcome && first.outcome !== "answered") parts.push(el("p", {}, first.outcome === "refused" ? "It declined to answer." : "Its reply is no answer."));
  else if (!first.ranked.length) parts.push(el("p", {}, first.prediction === null ? "Nothing was said." : ["Said: ", bdi(first.prediction)]));
  const best = bestOf(first);
  if (!best && first.ranked.length && first.prediction !== null) parts.push(el("p", {}, "Said: ", bdi(first.prediction)));
  if (best && best.rank !== null) parts.push(el("p", {}, standing(first, best, found)));
  if (first.ranked.length) parts.push(rankedList(first.ranked));
  if (first.replies?.length) parts.push(el("p", { class: "note" }, first.replies.length > 1 ? "Replies: " : "Reply: ", replies(first.replies)));
  return el("div", { class: "said" }, parts);
}

// Each reply between quotation marks, so that an empty one is seen.
const replies = (texts) => texts.flatMap((text, place) => [place ? ", " : "", "“", bdi(text), "”"]);

const majority = (own) => {
  const usable = own.filter((one) => one.verdict !== "unusable");
  if (!usable.length) return "unusable";
  return 2 * usable.filter((one) => one.verdict === "right").length > usable.length ? "right" : "wrong";
};

const bestOf = (one) => one.golds.filter((gold) => gold.rank !== null).sort((a, b) => a.rank - b.rank)[0];

function standing(one, best, found) {
  const among = one.among ?? found.candidate_count;
  const tied = best.ties > 1 ? ` (tied with ${plural(best.ties - 1, "other")})` : "";
  const several = one.golds.length > 1 && best.text !== null ? [" (", bdi(best.text), ")"] : [];
  return [`Rank ${rank(best.rank)}${among ? ` of ${count(among)}` : ""}`, several, tied];
}

function candidates(found) {
  if (!found.candidate_count) return el("p", {}, "The run does not say what was offered.");
  const right = new Set(found.golds);
  const few = found.candidate_count <= 12;
  const texts = found.candidates.flatMap((text, place) => [place ? (found.compares ? el("br") : " · ") : "", bdi(text, right.has(text) ? { class: "right" } : {})]);
  const left = found.candidate_count - found.candidates.length;
  const all = el("p", { dir: "auto" }, texts, left ? ` … and ${count(left)} more` : "");
  if (few) return all;
  return el("details", {}, el("summary", {}, plural(found.candidate_count, "candidate")), all);
}

function facts(found) {
  if (!found.facts.length) return el("p", {}, "This question names no fact.");
  if (!run.about.has_facts) return el("p", {}, "This run has no table of facts; the question names ", found.facts.map((fact) => [" ", el("code", {}, bdi(fact.fact_id))]), ".");
  return el("ul", { class: "proof" }, found.facts.map(fact));
}

function fact(one) {
  if (one.subject === undefined) return el("li", {}, el("code", {}, bdi(one.fact_id)), el("span", { class: "note" }, " is not among the run’s facts"));
  const object = one.object !== null ? bdi(one.object, { class: "entity" }) : [bdi(String(one.value), { class: "entity" }), one.unit && one.unit !== "1" ? [" ", bdi(one.unit)] : ""];
  const time = one.start || one.end ? el("span", { class: "time" }, ` ${one.start ?? "…"} – ${one.end ?? "…"}`) : "";
  const source = one.rule ? ["by the rule ", bdi(one.rule, { class: "rule" })] : one.source ? ["stated by ", bdi(one.source)] : "stated";
  const line = el("div", { class: "fact", title: one.fact_id }, bdi(one.subject, { class: "entity" }), " ", bdi(one.predicate, { class: "predicate" }), " ", object, time, el("span", { class: "note" }, " — ", source, one.repeated ? "; proved above" : ""));
  const below = one.premises.length ? el("ul", {}, one.premises.map(fact)) : "";
  return el("li", {}, line, below, one.cut ? el("p", { class: "note" }, "Further premises are left out.") : "");
}

function qset(found) {
  if (!found.qset) return el("p", {}, "It is in no Q-set.");
  if (!found.qset_questions.length) return el("p", {}, "No other question of this run is in its Q-set.");
  const ways = run.about.ways.map((_, place) => place);
  return [el("p", { class: "note" }, "Other questions on the same knowledge, and who got them right."), questionTable(found.qset_questions, ways, { caption: "Q-set" })];
}
