"use strict";
/* Choices of a view. Every change starts from the current state of the controls and is in the address before it returns:
   running requests and their responses do not affect it. */
import { go, hash } from "./parts.js";

/* An input whose text is a parameter of the address. */
function boundBox(input, key) {
  let written = "";  // The text that the address last put into the input.
  return {
    isEdited: () => input.value !== written,
    read(params) {
      if (input.value === written) return;
      if (input.value) params.set(key, input.value);
      else params.delete(key);
    },
    write(params) {
      const text = params.get(key) ?? "";
      if (input.value !== text) input.value = text;
      written = input.value;
    },
  };
}

/* Two addresses list the same questions if they differ only in the page. */
function isSameList(first, second) {
  const normalized = (params) => [...params].filter(([key]) => key !== "page").map((pair) => JSON.stringify(pair)).sort().join();
  return normalized(first) === normalized(second);
}

export function choicesOf(view) {
  const boxes = [];
  let current = new URLSearchParams();
  let isChanging = false, isClosed = false;

  /* The current choices, with what was typed since the address was written. */
  function now() {
    const params = new URLSearchParams(current);
    for (const box of boxes) box.read(params);
    return params;
  }

  /* edit(params) changes the current choices. */
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
    isSet: (key) => current.has(key),
    /* Whether the address is being changed by a choice made here, not by a link or the history. */
    isChanging: () => isChanging,
    bind(input, key) {
      const box = boundBox(input, key);
      boxes.push(box);
      return box;
    },
    /* The view is left: an input that is removed from the page may still fire a change. */
    close() {
      isClosed = true;
    },
    /* The address has changed, by a choice or by the history: update the controls. */
    show(params) {
      current = params;
      for (const box of boxes) box.write(params);
    },
    toggle(key, value, isChecked) {
      change((params) => {
        const rest = params.getAll(key).filter((item) => item !== value);
        params.delete(key);
        params.delete("cell");
        for (const item of isChecked ? [...rest, value] : rest) params.append(key, item);
      });
    },
    /* Turn to a page of a list that was drawn for some choices; ignored if the choices have changed since. */
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
