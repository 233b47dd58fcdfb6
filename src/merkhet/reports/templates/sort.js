"use strict";
/* Column headers of sortable tables become buttons. Rows without a value stay last, whichever way one sorts. */
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent.trim();
  };
  heads.forEach((head, column) => {
    const numeric = head.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const down = now ? now === "ascending" : numeric;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a, column), y = key(b, column);
        if (x === "" || y === "") return (x === "") - (y === "");
        return sign * (numeric ? Number(x) - Number(y) : x.localeCompare(y));
      });
      body.append(...rows);
    });
  });
}
/* A text to be copied gets a button. Where the clipboard is out of reach, the text is selected instead. */
for (const part of document.querySelectorAll("[data-copy]")) {
  const source = part.querySelector(".paste");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = part.dataset.copy;
  button.setAttribute("aria-live", "polite");
  const say = (text) => {
    button.textContent = text;
    setTimeout(() => { button.textContent = part.dataset.copy; }, 4000);
  };
  button.addEventListener("click", async () => {
    const paragraphs = [...source.querySelectorAll("p")];
    const text = paragraphs.length ? paragraphs.map((one) => one.textContent).join("\n\n") : source.textContent;
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      getSelection().selectAllChildren(source);
      let copied = false;
      try { copied = document.execCommand("copy"); } catch { /* The text stays selected. */ }
      say(copied ? "Copied" : "Selected: press Ctrl+C");
    }
  });
  part.prepend(button);
}
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) {
    part.open = true;
    part.dataset.opened = "";
  }
});
addEventListener("afterprint", () => {
  for (const part of document.querySelectorAll("details[data-opened]")) {
    part.open = false;
    delete part.dataset.opened;
  }
});
