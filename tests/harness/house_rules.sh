#!/bin/bash
# The rules of the house that a machine can check: who includes whom, who prints, how long a file gets.
#   house_rules.sh SOURCE_FOLDER
set -u
cd "$1" || exit 2
broken=0

# complain RULE: each line of standard input is a place where the rule is broken.
complain() {
    while IFS= read -r place; do
        printf '%s: %s\n' "$1" "$place"
        broken=1
    done
}

sources() {
    find "$@" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort
}

# A folder includes its own headers and those it stands on.
check_includes() {
    local folder=$1 allowed=$2
    [ -d "$folder" ] || return
    complain "$folder includes only $allowed" < <(
        sources "$folder" | xargs -r grep -nE '^ *# *include "' | grep -vE "# *include \"(${allowed// /|})/"
    )
}
check_includes core "core"
check_includes datasets "core datasets"
check_includes models "core models"
check_includes results "core results"
check_includes adapters "core models adapters"
check_includes harness "core datasets models adapters results harness"

# A room of harness includes its own headers and those of the rooms to its left.
left=
for rank in "terminal config" scenario model train "methods selectors" evaluate run sweep commands; do
    for room in $rank; do
        complain "harness/$room includes no room but$left $room" < <(
            sources "harness/$room" | xargs grep -nE '# *include "harness/[a-z]+/' | grep -vE "\"harness/($room${left// /|})/"
        )
    done
    left="$left $rank"
done

complain "only results/ and core/seen.c know SQLite" < <(
    sources core datasets models adapters harness | grep -v '^core/seen.c$' | xargs grep -nE '# *include <sqlite3.h>'
)
complain "only models/cuda/ and the choice of a backend know CUDA" < <(
    sources core datasets adapters results harness | xargs grep -nE '# *include <cu(da|blas)'
)
complain "nothing below harness/ prints or exits" < <(
    sources core datasets models adapters results |
        xargs grep -nE '(^|[^a-z_])(printf|puts|putchar|perror|exit|abort) *\(|[^a-z_](stdout|stderr)[^a-z_]' |
        grep -vE '^core/alloc.c:|:[0-9]+: */?\*' | grep -vE '^[^:]*:[0-9]+:.*(/\*|//).*(printf|exit|stderr|stdout)'
)
complain "CI runs every target of the Makefile, itself or as what another one needs" < <(
    for target in $(sed -n 's/^\.PHONY: //p' Makefile); do
        grep -qE "^[^#]*make [^#|&;]*\b$target( |\)|\"|'|$)" .ci/run tests/systems/systems.sh tests/install/install.sh ||
            grep -qE "^[a-z -]+:.* $target( |$)" Makefile || echo "$target"
    done
)
complain "at most 600 lines" < <(
    sources core datasets models adapters results harness | xargs wc -l | awk '$2 != "total" && $1 > 600 {print $2 " has " $1}'
)

complain "README.md is one page, at most 130 lines" < <(wc -l <README.md | awk '$1 > 130 {print "it has " $1}')

# anchors PAGE: of its headings, as GitHub names them.
anchors() {
    grep -E '^#+ ' "$1" | sed -E 's/^#+ //' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^[:alnum:] _-]//g; s/ /-/g'
}

# Sources, paths with a folder of the tree, and links that a document names: relative to its folder or to the root. Names
# with capitals (`suites/NAME.yaml`) stand for any.
named_paths() {
    local page folder path target
    find . -name '*.md' -not -path './build*' -not -path './tests/fixtures/*' | sort | while IFS= read -r page; do
        folder=$(dirname "$page")
        {
            grep -oE '`[a-z0-9_.-]+(/[a-z0-9_.-]+)*`' "$page" | tr -d '`' | while IFS= read -r path; do
                case $path in
                */*.*) [ ! -d "$folder/${path%%/*}" ] && [ ! -d "${path%%/*}" ] || echo "$path" ;;
                *.c | *.h | *.cu | *.cuh) echo "$path" ;;
                esac
            done
            grep -oE '\]\([^):]+\)' "$page" | sed -E 's/^..|\)$//g'
        } | sort -u | while IFS= read -r path; do
            target=${path%%#*}
            [ -e "$folder/$target" ] || [ -e "$target" ] || echo "$page: $path"
            [[ $path != *'#'* ]] || anchors "${target:+$folder/}${target:-$page}" 2>/dev/null | grep -qxF -- "${path#*#}" || echo "$page: $path"
        done
    done
}
complain "files and headings that a document names exist" < <(named_paths)
exit $broken
