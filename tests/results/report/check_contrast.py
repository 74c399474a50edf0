#!/usr/bin/env python3
"""WCAG's contrast of numbers on the shades of style.css, in both themes: check_contrast.py style.css grid.c"""

import re
import sys

LEAST = 6  # to 1; WCAG asks for 4.5, at which dark numbers on a middle blue are still hard to read


def luminance(colour):
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def main():
    css, grid = (open(path, encoding="utf-8").read() for path in sys.argv[1:3])
    colours = {name: themes for name, *themes in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)}
    middle = int(re.search(r"MIDDLE = (\d+)", grid).group(1))
    for theme, name in enumerate(("light", "dark")):
        shades = [colours[f"h{level}"][theme] for level in range(9)]
        inks = ["on-low" if level < middle else "on-middle" if level == middle else "on-high" for level in range(9)]
        for level, ink in enumerate(inks):  # cells of tables and of drawings
            assert re.search(rf"\.heat td\.h{level}[, ][^}}]*var\(--{ink}\)", css), f"tables have other words on h{level}"
            found = contrast(shades[level], colours[ink][theme])
            assert found >= LEAST, f"{name}: {ink} on h{level}: {found:.2f}, expected at least {LEAST}"
        steps = [luminance(shade) for shade in shades]
        assert steps == sorted(steps, reverse=theme == 0), f"{name}: shades go from one end to the other"
    print(f"numbers have a contrast of at least {LEAST} on every shade")


if __name__ == "__main__":
    main()
