#!/usr/bin/env python3
"""Opens a report in Chromium, as make test-report does:

    check_report.py BUILD [FOLDER]      # screenshots go to FOLDER, else to BUILD/report-screenshots

Of the sample database, whose names mean harm, at the widths of a phone and a desk, in light and dark: nothing to say on
the console, nothing asked of any network, no link out of the file, nothing wider than the screen, every text readable
before its ground, tables sorted and saved as CSV, one choice of several shown, the theme switched and remembered. With
scripts switched off: all of it there to be read, no control that does nothing.
"""

import csv
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from browser import Browser

PHONE, DESK = (390, 844), (1280, 900)
HARM = "<script>alert(1)</script>"  # how the harmful names of write_sample_report.c begin
CONTRAST = 4.5  # what WCAG asks of small text
ON_SHADES = 6  # of numbers on shades

HELPERS = """
window.luminance = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
window.ground = (element) => {
  if (element.matches("text.low, text.middle, text.high")) {  // on a cell, which is drawn
    const at = new DOMPoint(element.getAttribute("x"), element.getAttribute("y"));
    return getComputedStyle([...element.closest("svg").querySelectorAll("path")].findLast((cell) => cell.isPointInFill(at))).fill;
  }
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
window.faint = (least, what = "h1, h2, h4, p, a, td, th, text, button, figcaption, summary") => [...document.querySelectorAll(what)]
  .filter((element) => element.textContent.trim() && element.checkVisibility())
  .map((element) => {
    const style = getComputedStyle(element), ink = element.tagName === "text" ? style.fill : style.color;
    const [a, b] = [luminance(ink), luminance(ground(element))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), element.tagName + " " + element.className + ": " + element.textContent.slice(0, 40)];
  })
  .filter(([contrast]) => contrast < least).map(([contrast, what]) => contrast.toFixed(1) + " " + what);
window.column = (table, number) => [...document.querySelector(`table[data-name="${table}"]`).tBodies[0].rows]
  .map((row) => row.cells[number].dataset.v ?? row.cells[number].textContent);
window.heading = (table, number) => document.querySelector(`table[data-name="${table}"]`).tHead.rows[0].cells[number];
"""

failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def run(*command):
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def find_chromium():
    for name in ("chromium", "google-chrome"):
        if shutil.which(name):
            return name
    sys.exit("check_report.py: there is no chromium; the Debian package has this name")


def screenshots(page, folder, name):
    """The whole page in pieces of some screens each, so that they can be looked at."""
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    piece = 2600
    for old in glob.glob(os.path.join(folder, f"{name}-*.png")):
        os.remove(old)
    for number, top in enumerate(range(0, height, piece)):
        page.screenshot(os.path.join(folder, f"{name}-{number + 1}.png"), (0, top, width, min(piece, height - top)))


def check_look(page, name, width):
    page.evaluate(HELPERS)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    light = page.evaluate("luminance(ground(document.body)) > 0.5")
    expect(light == name.endswith("light"), f"{name}: the theme follows the system")
    wide = page.evaluate("document.documentElement.scrollWidth") - width  # a phone's innerWidth grows
    expect(wide <= 0, f"{name}: the page is {wide} pixels wider than the screen")
    faint = page.evaluate(f"faint({CONTRAST})")
    expect(not faint, f"{name}: hard to read: {faint[:5]} and {len(faint)} in all")
    faint = page.evaluate(f"faint({ON_SHADES}, '.heat td, text.low, text.middle, text.high')")
    expect(not faint, f"{name}: hard to read on shades: {faint[:5]} and {len(faint)} in all")
    small = page.evaluate("""[...document.querySelectorAll('main button, main select, #theme, summary, nav a')]
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 24)
        .map((one) => one.outerHTML.slice(0, 80))""")
    expect(not small, f"{name}: too small for a finger: {small[:3]}")


def check_links(page, report):
    outward = page.evaluate("""[...document.querySelectorAll('[href], [src], [action], [data], [srcset]')]
        .map((one) => one.getAttribute('href') ?? one.outerHTML.slice(0, 80))
        .filter((href) => !href.startsWith('data:') && !(href.startsWith('#') && document.getElementById(href.slice(1))))""")
    missing = [href for href in outward if not re.fullmatch(r"figures/[a-z0-9_-]+\.(svg|csv)", href)
               or not os.path.exists(os.path.join(report, href))]
    expect(len(outward) > 100 and not missing, f"links that lead nowhere or out of the folder: {missing[:5]}")
    expect(page.evaluate("document.querySelectorAll('nav a').length") >= 15, "the contents have links")
    twice = page.evaluate("""(() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
        return ids.filter((id, i) => ids.indexOf(id) !== i); })()""")
    expect(not twice, f"names given twice: {twice}")


def check_harm(page):
    expect(page.evaluate("document.scripts.length") == 1, "one script runs, the page's own")
    expect(page.evaluate("document.querySelectorAll('[onload], [onerror], [onclick]').length") == 0,
           "no attribute of a name became one of the page")
    expect(page.evaluate(f"document.body.textContent.includes({HARM!r})"), "the harmful name is there, as text")


def check_sorting(page, table):
    values = lambda: [float(v) if v else None for v in page.evaluate(f"column({table!r}, 6)")]
    before = values()
    page.evaluate(f"heading({table!r}, 6).querySelector('button').click()")
    expect(values() == sorted(before, key=lambda v: -v), "a click sorts numbers, the largest first")
    page.evaluate(f"heading({table!r}, 6).querySelector('button').focus()")
    page.press("Enter", 13)
    expect(values() == sorted(before), "the keyboard sorts the other way")
    expect(page.evaluate(f"heading({table!r}, 6).ariaSort") == "ascending", "the order is told to screen readers")
    page.evaluate(f"heading({table!r}, 0).querySelector('button').click()")
    names = page.evaluate(f"column({table!r}, 0)")
    expect(names == sorted(names, key=str.lower), "a click sorts names, the first first")


def save_csv(page, browser, table):
    page.evaluate(f"document.querySelector('table[data-name=\"{table}\"]').closest('figure').querySelector('.csv').click()")
    path = os.path.join(browser.downloads, table + ".csv")
    page.until(lambda: os.path.exists(path), table + ".csv")
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def check_csv(page, browser):
    tables = page.evaluate("[...document.querySelectorAll('table.data')].map((table) => table.dataset.name)")
    buttons = page.evaluate("[...document.querySelectorAll('table.data')].filter((table) => "
                            "!table.closest('figure').querySelector('.csv:not([hidden])')).length")
    expect(buttons == 0 and len(set(tables)) == len(tables), "every table can be saved under a name of its own")
    rows = save_csv(page, browser, "board1-leaderboard")
    expect(rows[0][:4] == ["configuration", "seeds", "Transfer", "Transfer ±"], f"the head of a CSV: {rows[0]}")
    expect(len(rows) == 4 and all(len(row) == len(rows[0]) for row in rows), "a CSV has every row and cell")
    digits = [len(row[2].split(".")[-1]) for row in rows[1:]]
    expect(max(digits) > 6, "a CSV has all digits")
    harmful = save_csv(page, browser, "board2-matrix-1")
    expect(HARM in harmful[0][1] and len(harmful[0]) == 5, "names with quotes and commas keep to their cell")


def check_choices(page):
    state = """(() => { const all = [...document.querySelector('.choices').querySelectorAll(':scope > .choice')];
        return all.map((one) => one.checkVisibility()); })()"""
    shown = page.evaluate(state)
    expect(shown[0] and not any(shown[1:]), "of several matrices the first is shown")
    page.evaluate("""(() => { const select = document.querySelector('.choices select'); select.value = 2;
        select.dispatchEvent(new Event('change')); })()""")
    shown = page.evaluate(state)
    expect(shown[2] and sum(shown) == 1, "another one is shown when it is chosen")


def check_width(page):
    """No column is cut off at the width of a desk."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    cut = page.evaluate("""[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility() &&
        one.scrollWidth > one.clientWidth + 1).map((one) => one.getAttribute('aria-label'))""")
    expect(not cut, f"tables wider than their frame: {cut}")
    page.evaluate("document.querySelectorAll('details:not(.section)').forEach((one) => { one.open = false; })")


def check_filter(page):
    rows = """(() => { const rows = [...document.querySelector('table[data-name="board1-leaderboard"]').tBodies[0].rows];
        return [rows.length, rows.filter((row) => row.checkVisibility()).length]; })()"""
    write = """(() => { const input = document.querySelector('#filter input'); input.value = %r;
        input.dispatchEvent(new Event('input')); })()"""
    curves = """[...document.querySelectorAll('#board1-forgetting .line.c0, #board1-forgetting .line.c1')]
        .filter((one) => one.checkVisibility()).length"""
    before = page.evaluate(curves)
    page.evaluate(write % "EVERY=20 most")
    every, left = page.evaluate(rows)
    expect(every == 3 and left == 1, f"words filter configurations: {left} of {every} are left")
    expect(page.evaluate(curves) < before, "and their curves")
    page.evaluate(write % "")
    expect(page.evaluate(rows) == [3, 3] and page.evaluate(curves) == before, "without words all are back")


def check_smoothing(page):
    expect(page.evaluate("document.querySelectorAll('.noisy input[type=range]').length") >= 1, "losses can be smoothed")
    path = "document.querySelector('.noisy .panels .line').getAttribute('d')"
    slide = """(() => { const slider = document.querySelector('.noisy input'); slider.value = %s;
        slider.dispatchEvent(new Event('input')); })()"""
    ends = lambda d: [float(point.split(" ")[1]) for point in d.replace("M", "L").split("L")[1:]]
    before = page.evaluate(path)
    page.evaluate(slide % 0.9)
    rough, smooth = ends(before), ends(page.evaluate(path))
    expect(len(rough) == len(smooth) and abs(rough[0] - smooth[0]) < 0.01, "a smoothed curve begins where it began")
    expect(max(smooth) - min(smooth) <= max(rough) - min(rough), "and has less of a range")
    page.evaluate(slide % 0)
    expect(all(abs(a - b) < 0.01 for a, b in zip(rough, ends(page.evaluate(path)))), "without smoothing it is as it was")


def check_settings(page):
    """A run leads to its settings, also where the section is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    page.evaluate("document.querySelector('table[data-name=\"board1-runs\"] td a').click()")
    page.until(lambda: page.evaluate("location.hash.length > 1"), "the link to be followed")
    shown = page.evaluate("""(() => { const row = document.getElementById(location.hash.slice(1)), at = row.getBoundingClientRect();
        return row.checkVisibility() && at.top >= 0 && at.bottom <= innerHeight &&
            row.cells[0].textContent === document.querySelector('table[data-name="board1-runs"] td a').textContent; })()""")
    expect(shown, "a run leads to its row of settings")


def check_phone(page):
    """What is compared first is on the screen, and the page has few screens."""
    screens = page.evaluate("document.documentElement.scrollHeight / innerHeight")
    expect(screens < 8, f"the page has {screens:.1f} screens of a phone")
    right = page.evaluate("""heading('board1-leaderboard', [...document.querySelector('table[data-name="board1-leaderboard"]')
        .tHead.rows[0].cells].findIndex((cell) => cell.dataset.name === 'Last')).getBoundingClientRect().right""")
    expect(right <= PHONE[0], f"the leaderboard's Last ends at {right:.0f} of {PHONE[0]} pixels")


def check_hidden_curves(page):
    """Of frozen experts all configurations have the same curve: each has a width of its own."""
    widths = page.evaluate("""[0, 1, 2].map((colour) => Math.max(...[...document.querySelectorAll(
        `#board1-frozen .panels .line.c${colour}`)].map((line) => parseFloat(getComputedStyle(line).strokeWidth))))""")
    expect(len(set(widths)) == 3, f"curves that coincide have widths of their own: {widths}")


def check_theme(page):
    ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
    before = ground()
    page.evaluate("document.getElementById('theme').click()")
    after = ground()
    expect(before != after, "the button switches the theme")
    page.go(page.evaluate("location.href"))
    expect(ground() == after, "the theme is remembered")
    page.evaluate("document.getElementById('theme').click()")
    expect(ground() == before, "the button switches it back")


def check_figures(browser, report, folder):
    drawn = sorted(glob.glob(os.path.join(report, "figures", "*.svg")))
    for path in drawn:
        name = os.path.basename(path)
        xml.etree.ElementTree.parse(path)  # raises when it is no XML
        page = browser.open("file://" + path, *DESK)
        outside = page.evaluate("""(() => { const all = document.documentElement.getBoundingClientRect();
            return [...document.querySelectorAll('path')].map((one) => one.getBoundingClientRect())
                .filter((at) => at.left < all.left - 1 || at.right > all.right + 1 || at.bottom > all.bottom + 1).length; })()""")
        expect(not outside or name.startswith("board2-"),  # whose names are cut off
               f"{name}: {outside} of its strokes and words are not within it")
        if name.startswith("board1-matrix-1") or name.startswith("board1-forgetting"):
            page.screenshot(os.path.join(folder, name + ".png"), (0, 0, 700, 800))
        expect(not page.complaints, f"{name}: {page.complaints}")
        page.close()
    print(f"{len(drawn)} figures for papers are sound SVG")


def look(browser, address, folder):
    for size, device in ((PHONE, "phone"), (DESK, "desk")):
        for dark in (False, True):
            name = f"{device}-{'dark' if dark else 'light'}"
            page = browser.open(address, *size, dark)
            check_look(page, name, size[0])
            page.evaluate("document.querySelectorAll('details:not(.section)').forEach((one) => { one.open = false; })")
            screenshots(page, folder, name)
            expect(not page.complaints, f"{name}: {page.complaints}")
            page.close()


def use(browser, address, report):
    page = browser.open(address, *DESK)
    page.evaluate(HELPERS)
    check_links(page, report)
    check_harm(page)
    check_sorting(page, "board1-leaderboard")
    check_csv(page, browser)
    check_choices(page)
    check_width(page)
    check_filter(page)
    check_smoothing(page)
    check_hidden_curves(page)
    check_theme(page)
    check_settings(page)
    expect(not page.complaints, f"in use: {page.complaints}")
    page.close()
    page = browser.open(address, *PHONE)
    page.evaluate(HELPERS)
    check_phone(page)
    page.close()


def read_without_scripts(browser, address, folder):
    """All tables and figures are there to be read, and nothing to press that does nothing."""
    for size, device in ((PHONE, "phone"), (DESK, "desk")):
        name = f"{device}-without-scripts-light"
        page = browser.open(address, *size, scripts=False)
        dead = page.evaluate("""[...document.querySelectorAll('button, input, select, [role=button]')]
            .filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 80))""")
        expect(not dead, f"{name}: controls that do nothing: {dead[:3]} and {len(dead)} in all")
        check_look(page, name, size[0])
        hidden = page.evaluate("""[...document.querySelectorAll('main table, main th, main svg, main .choice, main h4, main .legend span')]
            .filter((one) => !one.checkVisibility()).map((one) => one.outerHTML.slice(0, 80))""")
        expect(not hidden, f"{name}: hidden: {hidden[:3]} and {len(hidden)} in all")
        expect(page.evaluate("document.querySelectorAll('.choice').length") > 2, f"{name}: all of several choices are there")
        page.evaluate("document.querySelectorAll('details:not(.section)').forEach((one) => { one.open = false; })")
        screenshots(page, folder, name)
        expect(not page.complaints, f"{name}: {page.complaints}")
        page.close()


def main():
    build = os.path.abspath(sys.argv[1])
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(build, "report-screenshots")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mtil-report-") as place, Browser(find_chromium()) as browser:
        database, report = os.path.join(place, "results.db"), os.path.join(place, "report")
        run(os.path.join(build, "tests", "write_sample_report"), database)
        run(os.path.join(build, "mtil"), "report", database, "--out", report)
        address = "file://" + os.path.join(report, "index.html")
        use(browser, address, report)
        look(browser, address, folder)
        read_without_scripts(browser, address, folder)
        check_figures(browser, report, folder)
    print(f"screenshots: {folder}")
    if failures:
        sys.exit(f"{len(failures)} of the report's checks failed")
    print("the report holds in Chromium")


if __name__ == "__main__":
    main()
