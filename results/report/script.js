"use strict";
(() => {
  const each = (selector, act, within = document) => within.querySelectorAll(selector).forEach(act);
  const make = (name, properties) => Object.assign(document.createElement(name), properties);

  /* The theme follows the system until it is chosen here. */
  const root = document.documentElement, theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  try {
    const chosen = localStorage.getItem("mtil-theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  } catch { /* a page from a file may have no storage */ }
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("mtil-theme", root.dataset.theme); } catch { /* then for this visit */ }
    nameTheme();
  });
  system.addEventListener("change", nameTheme);
  theme.hidden = false;
  nameTheme();

  /* Tables. A cell's data-v has all digits; without one its text is the value. */
  const valueOf = (cell) => cell.dataset.v ?? cell.textContent;
  const order = (a, b, numeric) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return numeric ? a - b : a.localeCompare(b, undefined, { numeric: true });
  };
  const sort = (table, heading) => {
    const column = heading.cellIndex, numeric = heading.classList.contains("n"), body = table.tBodies[0];
    const ascending = heading.ariaSort ? heading.ariaSort !== "ascending" : !numeric;
    const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
    rows.sort(([a], [b]) => (ascending || a === "" || b === "" ? order(a, b, numeric) : order(b, a, numeric)));
    each("thead th", (other) => other.removeAttribute("aria-sort"), table);
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    body.append(...rows.map(([, row]) => row));
  };
  const field = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const csv = (table) => {
    const head = [...table.tHead.rows[0].cells].map((cell) => field(cell.dataset.name));
    const rows = [...table.rows].slice(1).map((row) => [...row.cells].map((cell) => field(valueOf(cell))));
    return [head, ...rows].map((row) => row.join(",")).join("\r\n") + "\r\n";
  };
  const save = (name, type, content) => {
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  each("table.data", (table) => {
    each("thead th", (heading) => heading.firstChild.addEventListener("click", () => sort(table, heading)), table);
    const button = table.closest("figure").querySelector(".csv");
    button.hidden = false;
    button.addEventListener("click", () => save(`${table.dataset.name}.csv`, "text/csv;charset=utf-8", csv(table)));
  });

  /* One of several things at a time. */
  each(".choices", (choices, number) => {
    const all = [...choices.querySelectorAll(":scope > .choice")];
    if (all.length < 2) return;
    const select = make("select", { id: `choice-${number}` });
    const bar = make("div", { className: "chooser" });
    bar.append(make("label", { htmlFor: select.id, textContent: choices.dataset.name }), select);
    all.forEach((choice, i) => select.append(make("option", { value: i, textContent: choice.firstElementChild.textContent })));
    const show = () => all.forEach((choice, i) => { choice.hidden = i !== Number(select.value); });
    select.addEventListener("change", show);
    choices.classList.add("choosing");
    choices.prepend(bar);
    show();
  });
})();
