#!/bin/sh
# No file of a library needs one that needs it, as far as functions and data go.
#   circles.sh OBJECT…
set -eu
pairs=$(nm -A "$@" | awk '
    { file = $1; sub(/:[0-9a-f]*$/, "", file) }
    $2 ~ /^[TDRBV]$/ { home[$3] = file }
    $2 == "U" { uses[file " " $3] = 1 }
    END {
        for (use in uses) {
            split(use, part, " ")
            if (part[2] in home && home[part[2]] != part[1])
                print part[1], home[part[2]]
        }
    }')
[ -n "$pairs" ] || { echo "no object needs another: are these the library's?" >&2; exit 1; }
echo "$pairs" | tsort >/dev/null
