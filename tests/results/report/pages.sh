#!/usr/bin/env bash
# What pages say, as pages.txt has it: pages.sh pages.txt MTIL WRITE_SAMPLE_REPORT
set -euo pipefail
export LC_ALL=C
cases=$(realpath "$1") mtil=$(realpath "$2") write=$(realpath "$3")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
mkdir sections

# One line, since texts go over lines: byte 1, which no page may have, ends each
write_page() {
    "$mtil" report results.db --out page --figures=false --quiet --questions sections "$@"
    ! grep -q $'\x01' page/index.html || { echo "FAILED: page $*: a control character"; exit 1; }
    tr '\n' '\1' <page/index.html >page.txt
}

# What is said of the page that was written last
check() {
    awk 'NR == FNR { page = part = $0; next }
        /^within/ {
            within = substr($0, 8)
            part = within == "" ? page : index(page, within) ? substr(page, index(page, within)) : ""
            if (within != "" && index(part, "</figure>")) part = substr(part, 1, index(part, "</figure>"))
            next
        }
        {
            text = substr($0, index($0, " ") + 1)
            gsub(/\\n/, "\001", text)
            times = 0
            for (rest = part; (at = index(rest, text)) > 0; rest = substr(rest, at + length(text))) times++
            if ($1 == "+" ? times == 0 : times != $1 + 0 || part == "") {
                print "FAILED: " options ": found " times " times within " within ": " $0
                failed = 1
            }
        }
        END { exit failed }' options="$1" page.txt said.txt
}

"$write" results.db 2>/dev/null
options=
: >page.txt
: >said.txt
while IFS= read -r line; do
    case $line in
    '#'* | '') ;;
    page*)
        check "$options"
        : >said.txt
        options=$line
        # shellcheck disable=SC2086
        write_page ${line#page}
        ;;
    'add '*) "$write" results.db "${line#add }" ;;
    'section '*) printf '%b\n' "${line#section }" >sections/own.sql ;;
    *) echo "$line" >>said.txt ;;
    esac
done <"$cases"
check "$options"
