#!/bin/bash
# A page as a reader would go through it: in an empty folder, each ```yaml block is saved under the name in its first line, or as
# suite.yaml, and the ```sh blocks are run one after another. Blocks without a language are shown and not run. A suite trains in a fifth
# of its steps. For README.md, two folders of images are there, and make only says whether it has the target.
#   page.sh BUILD_FOLDER PAGE
set -euo pipefail
page=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PATH=$1:$PATH XDG_CACHE_HOME=$folder/cache

suite=own
if [ "$(basename "$page")" = README.md ]; then
    suite=suite
    export SOURCE=${page%/*}
    make() { command make --silent --dry-run -C "$SOURCE" "$@" >/dev/null; }
    export -f make
    mtil data mini --quiet data
    mkdir -p my/scenes
    cp -r data/SUN397/?/* my/scenes
    cp -r data/eurosat/2750 my/fields
fi

# A script with the blocks in their order; what it runs is printed.
awk 'BEGIN { print "set -euo pipefail" }
    /^```/ && kind != "" { if (kind == "yaml") print "END_OF_SUITE"; kind = ""; next }
    /^```/ { kind = substr($0, 4); if (kind == "") kind = "output"; first = 1; next }
    kind == "yaml" && first { print "cat >" (/^# / ? $2 : "suite.yaml") " <<\"END_OF_SUITE\""; suites++ }
    kind == "sh" { commands++; print "echo; echo \"line " NR "\"" }
    kind == "sh" || kind == "yaml" { print; first = 0 }
    END { if (kind != "" || !suites || !commands) { print "no suite, no command or an open block" >"/dev/stderr"; exit 1 } }' \
    "$page" >"$folder/.script"
shorter=(-e 's/iterations: 20,/iterations: 4,/' -e 's/every: 10}/every: 2}/') # as many merges
sed -i "${shorter[@]}" "$folder/.script"
bash "$folder/.script"

# What the text promises.
for file in results.db page/index.html page/figures runs/$suite-*/seed3/adapters.safetensors; do
    [ -e "$file" ] || { echo "$page leaves no $file"; exit 1; }
done
if [ $suite = own ]; then
    [ -e csv/matrix.csv ] || { echo "the tutorial leaves no csv/matrix.csv"; exit 1; }
else
    mtil init --quiet init.yaml
    diff <(sed -E -e 's/ *#.*//; /^$/d' "${shorter[@]}" init.yaml) suite.yaml || { echo "mtil init writes another suite than README.md has"; exit 1; }
fi
runs=$(mtil query "select count(*) from runs where status = 'finished'" --format csv | tail -1 | tr -d '\r')
[ "$runs" = 6 ] || { echo "$page has $runs finished runs, not 6"; exit 1; }
