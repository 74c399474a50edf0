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
    each("thead th", (heading) => {
      const button = make("button", { type: "button" });
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }, table);
    table.classList.add("sortable");
    const button = table.closest("figure").querySelector(".csv");
    button.hidden = false;
    button.addEventListener("click", () => save(`${table.dataset.name}.csv`, "text/csv;charset=utf-8", csv(table)));
  });

  /* Runs are filtered by words: rows of tables that begin with a configuration or a run, and curves. */
  const filter = document.getElementById("filter");
  const filtered = [...document.querySelectorAll("table.data")]
    .filter((table) => ["configuration", "run"].includes(table.tHead.rows[0].cells[0].dataset.name));
  filter.hidden = filtered.length === 0;
  filter.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (element) => words.every((word) => element.textContent.toLowerCase().includes(word));
    filtered.forEach((table) => [...table.tBodies[0].rows].forEach((row) => { row.hidden = !matches(row); }));
    each(".drawing", (figure) => each(".legend > [data-colour]", (entry) => {
      entry.hidden = !matches(entry);
      figure.classList.toggle(`off${entry.dataset.colour}`, entry.hidden);
    }, figure));
  });

  /* Curves that are noisy, smoothed: exponential means without the bias of their beginning. */
  const smooth = (points, weight) => {
    let mean = 0, sum = 0;
    return points.replace(/([ML])(\S+) ([^ML]+)/g, (_, step, x, y) => {
      if (step === "M") mean = sum = 0;
      mean = weight * mean + (1 - weight) * y;
      sum = weight * sum + (1 - weight);
      return `${step}${x} ${(mean / sum).toFixed(2)}`;
    });
  };
  each(".noisy", (figure) => {
    const lines = [...figure.querySelectorAll(".panels .line")].map((line) => [line, line.getAttribute("d")]);
    const slider = make("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: 0 });
    const label = make("label", { className: "smoothing", textContent: "Smoothing" });
    label.append(slider);
    slider.addEventListener("input", () => lines.forEach(([line, d]) => line.setAttribute("d", smooth(d, Number(slider.value)))));
    figure.querySelector(".panels").before(label);
  });

  /* On a phone all sections but the first are folded; what a link leads to is unfolded. */
  if (matchMedia("(max-width: 40rem)").matches)
    each(".section", (section, number) => { section.open = number === 0; });
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  each('a[href^="#"]', (link) => link.addEventListener("click", () => { if (link.hash === location.hash) unfold(); }));
  if (location.hash) unfold();

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
