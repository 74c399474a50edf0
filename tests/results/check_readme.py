"""What results/README.md says of the database holds: its tables name all columns, its queries answer the same everywhere.

    check_readme.py README.md WRITE_SAMPLE MTIL

Each query is run as it stands there: by Python's sqlite3, by `mtil query`, by the sqlite3 shell and by pandas, the last two
where they are installed.
"""

import csv
import io
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

QUERIES = 13


def section(readme, title):
    found = re.search(rf"^## {title}\n(.*?)(?=^## )", readme, re.MULTILINE | re.DOTALL)
    assert found, f'there is no section "{title}"'
    return found[1]


def queries_of(readme):
    lines = section(readme, "Queries").splitlines()
    blocks = "\n".join(line[4:] if line.startswith("    ") else "" for line in lines)
    return [block.strip() for block in re.split(r"\n\s*\n", blocks) if block.strip()]


def check_metrics(page, database):
    """The page of metrics has a line for each."""
    lines = re.findall(r"^\| (\S[^|]*) \| `(\w+)` \|.*\| *(higher|lower|) *\|$", page, re.MULTILINE)
    better = {"highest": "higher", "lowest": "lower", "": ""}
    metrics = database.execute("SELECT title, name, best FROM metric_list ORDER BY place").fetchall()
    expected = [(title, name, better[best]) for title, name, best in metrics]
    assert lines == expected, f"METRICS.md: expected {expected}, found {lines}"


def check_schema(readme, database):
    """Every table and view has its line, which names its columns; no line is of something that is not there."""
    lines = dict(re.findall(r"^\| `(\w+)` \| (.*)$", section(readme, "Schema"), re.MULTILINE))
    names = [name for name, in database.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")]
    assert sorted(lines) == sorted(names), f"documented: {sorted(lines)}; there: {sorted(names)}"
    metrics = [name for name, in database.execute("SELECT name FROM metric_list")]
    for name in names:
        words = re.findall(r"`(\w+)`", lines[name]) + ["run", "task"]
        words += metrics if name in ("task_metrics", "metrics", "leaderboard") else []
        for also in re.findall(r"the same|columns of `(\w+)`", lines[name]):
            of = also or {"metrics": "task_metrics", "per_image": "evaluations"}[name]
            words += re.findall(r"`(\w+)`", lines[of])
        columns = [column[1] for column in database.execute(f"PRAGMA table_info({name})")]
        missing = [column for column in columns if column not in words]
        assert columns and not missing, f"{name}: the README lacks {missing}"
    print(f"schema: {len(names)} tables and views, all columns documented")


def close(a, b):
    try:
        return abs(float(a) - float(b)) <= 1e-9 * max(1, abs(float(a)))
    except ValueError:
        return a == b


def check_same(who, query, expected, rows):
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    wanted = [["" if value is None else str(value) for value in row] for row in expected]
    same = len(texts) == len(wanted) and all(
        len(a) == len(b) and all(map(close, a, b)) for a, b in zip(wanted, texts)
    )
    assert same, f"{who} answers otherwise:\n{query}\nexpected {wanted[:3]}\nfound {texts[:3]}"


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return list(csv.reader(io.StringIO(done.stdout)))


def shell_reads(path):
    if not shutil.which("sqlite3"):
        return False
    return subprocess.run(["sqlite3", path, "SELECT count(*) FROM runs"], capture_output=True).returncode == 0


def check_queries(queries, path, database, mtil):
    try:
        import pandas
    except ImportError:
        pandas = None
    shell = shell_reads(path)
    for query in queries:
        expected = database.execute(query).fetchall()
        assert expected, f"no rows:\n{query}"
        check_same("mtil query", query, expected, output(mtil, "query", path, query, "--format", "csv")[1:])
        if shell:
            check_same("the sqlite3 shell", query, expected, output("sqlite3", "-readonly", "-csv", path, query))
        if pandas:
            frame = pandas.read_sql(query, database).astype(object)
            check_same("pandas", query, expected, frame.where(frame.notna(), None).values.tolist())
    print(f"{len(queries)} queries: Python's sqlite3 {sqlite3.sqlite_version}, mtil query")
    print("the sqlite3 shell: the same" if shell else "the sqlite3 shell: skipped, not installed or older than 3.37")
    print("pandas: the same" if pandas else "pandas: skipped, not installed (MTIL_PYTHON names a Python that has it)")


def check_python(readme, mtil):
    """The examples for pandas, one after the other in one folder, on the files that the command before them writes."""
    try:
        import numpy  # noqa: F401
        import pandas  # noqa: F401
    except ImportError:
        print("the examples in Python: skipped, no numpy and pandas")
        return
    text = section(readme, "From other programs")
    output(mtil, *re.search(r"`mtil (export [^`]*)`", text)[1].split())
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    database = names["database"]
    correct = [count for count, in database.execute("SELECT correct FROM evaluations JOIN per_image USING (run, task, after_task)")]
    assert len(names["leaderboard"]) == 2 and names["right"].sum() == correct[0]
    for table in ("runs", "steps"):
        rows = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        assert len(names[table]) == rows > 0, f"{table}: {rows} rows, pandas has {len(names[table])}"
    print("the examples in Python: hold")


def check_duckdb(readme, database):
    """Where DuckDB is installed, and has its extension or gets it."""
    try:
        import duckdb

        load, ask = re.search(r"```sql\n(.*)\n(.*)\n```", section(readme, "From other programs")).groups()
        duckdb.execute(load)
    except Exception as problem:
        print(f"DuckDB: skipped, {str(problem).splitlines()[0]}")
        return
    rows = database.execute("SELECT policy, avg(last) FROM leaderboard GROUP BY policy ORDER BY policy").fetchall()
    check_same("DuckDB", ask, rows, duckdb.execute(ask).fetchall())
    print("DuckDB: the same")


def main():
    readme, write_sample, mtil = sys.argv[1:]
    readme = pathlib.Path(readme).read_text()
    if sqlite3.sqlite_version_info < (3, 37):
        print(f"skipped: Python's SQLite is {sqlite3.sqlite_version}, STRICT tables need 3.37")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/results.db"
        subprocess.run([write_sample, path], check=True)
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        queries = queries_of(readme)
        assert len(queries) == QUERIES, f"expected {QUERIES} queries, found {len(queries)}"
        check_schema(readme, database)
        check_metrics((pathlib.Path(sys.argv[1]).parent / "METRICS.md").read_text(), database)
        check_queries(queries, path, database, mtil)
        os.chdir(folder)
        check_python(readme, mtil)
        check_duckdb(readme, database)
        os.chdir("/")


main()
