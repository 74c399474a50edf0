#!/bin/bash
# TUTORIAL.md as a reader would go through it: in an empty folder, each ```yaml block is saved under the name in its first line, and the
# ```sh blocks are run one after another. Blocks without a language are shown and not run.
#   tutorial.sh BUILD_FOLDER TUTORIAL
set -euo pipefail
tutorial=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PATH=$1:$PATH XDG_CACHE_HOME=$folder/cache

# A script with the blocks in their order; what it runs is printed.
awk 'BEGIN { print "set -euo pipefail" }
    /^```/ && kind != "" { if (kind == "yaml") print "END_OF_SUITE"; kind = ""; next }
    /^```/ { kind = substr($0, 4); if (kind == "") kind = "output"; first = 1; next }
    kind == "yaml" && first { print "cat >" $2 " <<\"END_OF_SUITE\""; suites++ }
    kind == "sh" { commands++; print "echo; echo \"line " NR " of TUTORIAL.md\"" }
    kind == "sh" || kind == "yaml" { print; first = 0 }
    END { if (kind != "" || !suites || !commands) { print "TUTORIAL.md: no suite, no command or an open block" >"/dev/stderr"; exit 1 } }' \
    "$tutorial" >"$folder/.script"
bash "$folder/.script"

# What the text promises.
for file in results.db page/index.html page/figures csv/matrix.csv runs/own-*/seed3/adapters.safetensors; do
    [ -e "$file" ] || { echo "the tutorial leaves no $file"; exit 1; }
done
runs=$(mtil query "select count(*) from runs where status = 'finished'" --format csv | tail -1 | tr -d '\r')
[ "$runs" = 6 ] || { echo "the tutorial has $runs finished runs, not 6"; exit 1; }
