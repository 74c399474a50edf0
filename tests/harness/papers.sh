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

# A list of one is its item.
plain() {
    sed -E 's/^([^=]*)=\[([^],]*)\]$/\1=\2/'
}

while IFS='`' read -r _ value rest; do
    rest=${rest%\`*} run=${rest##*\`}
    shown=$(tr -c 'A-Za-z0-9_.=\n-' _ <<<"$run")
    if [ ! -e "$shown" ]; then
        # shellcheck disable=SC2086
        "$mtil" run $run --dry-run data.root=/no/data 2>errors | flatten | plain >"$shown"
        [ -s "$shown" ] || printf 'mtil run %s --dry-run: %s\n' "$run" "$(cat errors)"
    fi
    compared=$((compared + 1))
    expected=$(plain <<<"$value")
    grep -qxF -e "$expected" "$shown" && continue
    failed=1
    printf 'mtil run %s --dry-run: expected %s, found %s\n' "$run" "$expected" "$(grep -F -e "${expected%%=*}=" "$shown")"
done < <(grep -E '^\| `[a-z]+\.[^`]*=' "$page")
[ "$compared" -ge 301 ] || { echo "docs/papers.md: $compared values, expected at least 301"; failed=1; }
exit $failed
