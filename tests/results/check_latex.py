"""Tables of the program compile in a real LaTeX: check_latex.py WRITE_SAMPLE_REPORT MTIL. Skipped where there is none, or no
booktabs (the Debian package texlive-latex-recommended has both)."""

import os
import shutil
import subprocess
import sys
import tempfile

QUESTIONS = (["query", "paper-table"], ["query", "paper-table", "--published"], ["query", "leaderboard"],
             ["query", "metrics"], ["query", "runs"], ["query", "events", "--run", "1"], ["compare"])


def main():
    write, mtil = (os.path.abspath(path) for path in sys.argv[1:3])
    found = shutil.which("pdflatex") and shutil.which("kpsewhich")
    if not found or subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).returncode != 0:
        print("skipped: there is no pdflatex with booktabs")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="mtil-latex-") as place:
        database = os.path.join(place, "results.db")
        subprocess.run([write, database], check=True, stderr=subprocess.DEVNULL)
        tables = []
        for command, *rest in QUESTIONS:
            arguments = [mtil, command, database, *rest, "--suite", "mini", "--format", "latex"]
            tables.append(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
        harm = [mtil, "query", database, "SELECT name FROM tasks", "--format", "latex"]
        tables.append(subprocess.run(harm, check=True, capture_output=True, text=True).stdout)
        for table in tables:
            assert "\\toprule" in table, table[:200]
        with open(os.path.join(place, "all.tex"), "w", encoding="utf-8") as file:
            file.write("\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n" + "\n\\clearpage\n".join(tables) +
                       "\\end{document}\n")
        latex = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"], cwd=place,
                               capture_output=True, check=False)
        if latex.returncode != 0:
            sys.exit(latex.stdout.decode(errors="replace")[-2000:])
    print(f"{len(tables)} answers compile")


if __name__ == "__main__":
    main()
