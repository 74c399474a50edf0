#!/usr/bin/env bash
# A report's folder: there completely or not at all, and nobody else's; sections of one's own: folder.sh MTIL WRITE_SAMPLE_REPORT
set -euo pipefail
mtil=$(realpath "$1") write=$(realpath "$2")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
fail() { echo "FAILED: $*"; exit 1; }

"$write" results.db 2>/dev/null
"$write" results.db single
report() { "$mtil" report "$place/results.db" --quiet --figures=false --suite mini "$@"; }
refused() { # WORDS, then options
    ! report "${@:2}" 2>"$place/message" || fail "accepted: ${*:2}"
    grep -qF -- "$1" "$place/message" || fail "expected \"$1\": $(cat "$place/message")"
}

# Only a report is replaced, and nothing is left beside it; -: it is written.
report --out page
while IFS='|' read -r said folder commands; do
    rm -rf there before && mkdir there && cd there
    eval "$commands"
    cp -a "$PWD" ../before
    if [ "$said" = - ]; then
        report --out "$folder"
        [ "$(ls -A . report | paste -sd' ')" = ".: report  report: index.html" ] || fail "beside the page: $commands"
    else
        refused "$said" --out "$folder"
        diff -r --no-dereference . ../before || fail "changed: $commands"
    fi
    cd ..
done <<'EOF'
-|report|
-|report|mkdir report
-|report//|mkdir report
-|report|mkdir report && cp ../page/index.html report
-|report|mkdir -p report/figures && cp ../page/index.html report && echo old >report/figures/old.svg
found a folder with "notes.txt" in it|report|mkdir report && echo mine >report/notes.txt
notes.txt|report|mkdir report && cp ../page/index.html report && echo mine >report/notes.txt
another page|report|mkdir report && echo "<title>Somebody else's</title>" >report/index.html
found a file|report|echo 'a file' >report
found a link|report|ln -s elsewhere report
is empty||
EOF

# What cannot be written leaves the old report, and so does a stop.
before=$(stat -c %i page/index.html)
refused most_used --out page --policy most_usd
refused merge.every --out page --by merge.evry
refused most_used --out new --policy most_usd
[ ! -e new ] || fail "a folder without a report is left"
for time in 0.01 0.03 0.05 0.07 0.1; do
    if timeout --foreground --preserve-status -s INT $time "$mtil" report results.db --out page --quiet --figures=false 2>/dev/null; then
        before=$(stat -c %i page/index.html)
    fi
    [ "$(ls -A page)" = index.html ] && [ "$(stat -c %i page/index.html)" = "$before" ] || fail "stopped after $time s: $(ls -A page)"
    tail -1 page/index.html | grep -q '</html>' || fail "half a page"
done

# A section is a file.
mkdir own
while IFS='|' read -r column draw said; do
    printf -- '-- section: 65 Blocks Merges by block\n-- title: Merges of {%s}\n-- draw: %s\n' "$column" "$draw" >own/blocks.sql
    cat >>own/blocks.sql <<'SQL'
SELECT 'blocks' AS what, label AS series, colour, block AS x, count(*) AS y
FROM drawn JOIN expert_events USING (run)
GROUP BY number, block
ORDER BY number, block
SQL
    if [ "${said:0:1}" = '<' ]; then
        report --out page --questions own
        tr -d '\n' <page/index.html | grep -qF "id=\"blocks\">$said" || fail "the section is not there"
    else
        refused "$said" --out page --questions own
    fi
done <<'EOF'
what|line points|<p class="title">Merges of blocks</p>
wat|line|question blocks: Merges of {wat}: unknown column "wat" (did you mean "what"?)
what|heat|draw: heat needs a column column
what|line pionts|found "pionts"
EOF

# Every figure in two widths as SVG, its data and its caption; names that mean harm do none. A single task has no Transfer to be
# compared; where there is nothing to report on, nothing is drawn.
while read -r least options; do
    rm -rf figures
    # shellcheck disable=SC2086
    said=$("$mtil" report results.db --out figures $options 2>&1)
    figures=$(find figures -name '*.txt' | wc -l)
    case $said in
    *" $figures figures for papers"*) ;;
    *) fail "$figures figures: $said" ;;
    esac
    [ "$figures" -ge "$least" ] && [ "$(find figures -path '*/figures/*' -size +0 | wc -l)" = $((4 * figures)) ] || fail "$options: $said"
    if [ "$least" = 0 ] && [ -e figures/figures ]; then fail "a folder without figures"; fi
done <<'EOF'
21
5 --suite single
0 --since 2100-01-01
EOF
[ ! -e harm ] || fail "a name ran"
echo "folders, sections and figures are as they should be"
