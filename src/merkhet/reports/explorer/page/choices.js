"use strict";
/* What is chosen in a view. Every change is built from the controls as they stand at that moment, and is in the address
   before the change is over: a request that is under way, or its response, has no say in it. */
import { go, hash } from "./parts.js";

/* A box whose text is a part of the address, under a key. */
function boundBox(input, key) {
  let written = "";  // What the address last put into the box.
  return {
    isEdited: () => input.value !== written,
    read(params) {
      if (input.value === written) return;
      if (input.value) params.set(key, input.value);
      else params.delete(key);
    },
    write(params) {
      const wanted = params.get(key) ?? "";
      if (input.value !== wanted) input.value = wanted;
      written = input.value;
    },
  };
}

/* Two addresses list the same questions if they differ in nothing but the page. */
function isSameList(one, other) {
  const kept = (params) => [...params].filter(([key]) => key !== "page").map((pair) => JSON.stringify(pair)).sort().join();
  return kept(one) === kept(other);
}

export function choicesOf(view) {
  const boxes = [];
  let shown = new URLSearchParams();
  let isChanging = false, isClosed = false;

  /* The choices as they are now, with what has been typed since the address was written. */
  function now() {
    const params = new URLSearchParams(shown);
    for (const box of boxes) box.read(params);
    return params;
  }

  /* edit(params) turns the choices of now into those that are wanted. */
  function change(edit, replace = false) {
    if (isClosed) return;
    const params = now();
    params.delete("page");
    edit(params);
    isChanging = true;
    go(view, params, replace);
    isChanging = false;
  }

  return {
    now,
    change,
    isSet: (key) => shown.has(key),
    /* Whether the address changes by a choice made here, and not by a link or the history. */
    isChanging: () => isChanging,
    bind(input, key) {
      const box = boundBox(input, key);
      boxes.push(box);
      return box;
    },
    /* The view is left: a box that is taken out of the page may still tell of a change. */
    close() {
      isClosed = true;
    },
    /* The address has changed, by a choice or by the history: the controls follow it. */
    show(params) {
      shown = params;
      for (const box of boxes) box.write(params);
    },
    toggle(key, value, isWanted) {
      change((params) => {
        const others = params.getAll(key).filter((one) => one !== value);
        params.delete(key);
        params.delete("cell");
        for (const one of isWanted ? [...others, value] : others) params.append(key, one);
      });
    },
    /* A page of a list that was drawn for some choices; a list that is on its way out has no further pages. */
    turnTo(page, listed) {
      change((params) => {
        if (isSameList(params, listed)) params.set("page", page);
      });
    },
    hashOf(page, listed) {
      const params = new URLSearchParams(listed);
      params.set("page", page);
      return hash(view, params);
    },
  };
}
