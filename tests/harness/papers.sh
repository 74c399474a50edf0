#!/bin/bash
# Every value in docs/papers.md is that of the suite that bears the paper's name.
#   papers.sh MTIL SOURCE_FOLDER
set -u
mtil=$(realpath "$1") page=$(realpath "$2")/docs/papers.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
compared=0 failed=0

# "section.key=value" per line, of the YAML of a dry run; a task's keys are tasks.NAME.key.
flatten() {
    awk '/^[a-z]+:/ { section = $1; sub(":", "", section) }
        /^  [^ ].*:/ { key = $1; sub(":$", "", key); value = $0; sub(/^ *[^ ]+: ?/, "", value); task = key
            if (value != "") print section "." key "=" value }
        /^    [^ ].*: / { key = $1; sub(":$", "", key); value = $0; sub(/^ *[^ ]+: /, "", value)
            print section "." task "." key "=" value }'
}

# resolve RUN SETTING…: into the file $shown
resolve() {
    # shellcheck disable=SC2086
    "$mtil" run $1 --dry-run data.root=/no/data "${@:2}" 2>errors | flatten | plain >"$shown"
}

# A list of one is its item.
plain() {
    sed -E 's/^([^=]*)=\[([^],]*)\]$/\1=\2/'
}

# "value<TAB>run" for each value and run of the page's tables, whose columns are values, place, suites with their rows, and how they
# compare. A word without "=" behind the suite is its row.
commands() {
    awk -F ' [|] ' '/^[|] `[a-z]+[.][^`]*=/ {
        n = split($1, values, "`"); m = split($3, runs, "`")
        for (j = 2; j <= m; j += 2) {
            run = runs[j]; sub(/ [^ =]+$/, " run.row=&", run); sub(/run.row= /, "run.row=", run)
            for (i = 2; i <= n; i += 2) printf "%s\t%s\n", values[i], run
        } }' "$page"
}

while IFS=$'\t' read -r value run; do
    shown=$(tr -c 'A-Za-z0-9_.=\n-' _ <<<"$run")
    if [ ! -e "$shown" ]; then
        resolve "$run" model.weights=/no/weights # which are not estimated: in a fiftieth of the time
        [ -s "$shown" ] || printf 'mtil run %s --dry-run: %s\n' "$run" "$(cat errors)"
    fi
    compared=$((compared + 1))
    expected=$(plain <<<"$value")
    grep -qxF -e "$expected" "$shown" && continue
    resolve "$run" # it may depend on the weights
    grep -qxF -e "$expected" "$shown" && continue
    failed=1
    printf 'mtil run %s --dry-run: expected %s, found %s\n' "$run" "$expected" "$(grep -F -e "${expected%%=*}=" "$shown")"
done < <(commands)
[ "$compared" -ge 540 ] || { echo "docs/papers.md: $compared values, expected at least 540"; failed=1; }
exit $failed
