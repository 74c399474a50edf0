#!/usr/bin/env bash
# Figures for papers: figures.sh MTIL WRITE_SAMPLE_REPORT [renew]. The sections in drawings/ are drawn as the files beside them
# say, which `renew` writes anew: look at them before you keep them.
set -euo pipefail
mtil=$(realpath "$1") write=$(realpath "$2") drawings=$(realpath "$(dirname "$0")")/drawings
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
fail() { echo "FAILED: $*"; exit 1; }

"$write" results.db 2>/dev/null
draw() { "$mtil" report results.db --suite other --quiet "$@"; }

# As the files say, without the page's style.
draw --out one --questions "$drawings"
for expected in "$drawings"/*.svg "$drawings"/*.csv; do
    name=$(basename "$expected")
    sed '/^<style>/,/^<\/style>/d' "one/figures/$name" >drawn
    [ "${3:-}" != renew ] || cp drawn "$expected"
    diff "$expected" drawn >&2 || fail "$name is drawn in another way"
done
grep -q '>1.6</text>' one/figures/matrix.svg || fail "a wide matrix has decimals"
grep -q '\.c0 { stroke: #0072b2; }' one/figures/lines.svg || fail "colours of the light theme"
! grep -E 'var\(|light-dark|<script' one/figures/*.svg || fail "the page's variables, or a name that became an element"

if command -v rsvg-convert >/dev/null; then
    for form in pdf png; do
        rsvg-convert -f $form -o drawn one/figures/lines.svg && [ -s drawn ] || fail "rsvg-convert makes no $form"
    done
else
    echo "skipped: rsvg-convert is not there, so that no PDF is made"
fi

# The same figures have the same bytes.
draw --out two --questions "$drawings"
diff -r one/figures two/figures || fail "other bytes"

# Heads that are not understood.
mkdir wrong
while IFS='|' read -r words said; do
    printf -- '-- section: 9 Own\n-- draw: %s\nSELECT 1 AS x\n' "$words" >wrong/own.sql
    ! draw --out none --questions wrong 2>message || fail "$words"
    grep -qF "$said" message || fail "$words: $(cat message)"
done <<'EOF'
lines 1|expected words of table
lines 1|found "lines"
points|expected "-- draw: table, list, line, heat
bars|bars needs a column y
heat|heat needs a column column
EOF
[ ! -e none ] || fail "a report after a mistake"
echo "figures are drawn as before"
