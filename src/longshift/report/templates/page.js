"use strict";
(() => {
  // Tables sort by a click on a heading: numbers by their value, missing ones last, a second click reverses.
  const value = (row, column) => {
    const cell = row.cells[column];
    const given = cell.dataset.value;
    if (given === undefined) return cell.textContent.trim();
    return given === "" ? null : Number(given);
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number"
    ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const numeric = original.some((row) => typeof value(row, column) === "number");
      const now = head.getAttribute("aria-sort");
      const order = numeric ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const next = order[(order.indexOf(now) + 1) % 3];
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const rows = next === "none" ? original : [...original].sort((a, b) => {
        const x = value(a, column), y = value(b, column);
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * compare(x, y);
      });
      // Lines between families mean something only in the original order.
      table.classList.toggle("sorted", next !== "none");
      body.append(...rows);
    }));
  }

  // Values on hover and on touch: <title> works without this script, but slowly and not on phones.
  const tip = document.getElementById("tip");
  for (const title of document.querySelectorAll("svg title")) {
    const mark = title.parentNode;
    mark.dataset.tip = title.textContent;
    title.remove();
  }
  const show = (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (event.clientY + box.height + 24 > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16) + "px";
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // Paper cannot be unfolded.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
