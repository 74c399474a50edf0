#!/bin/bash
# Compares made-up runs as compare.txt says, whose head explains the lines: compare.sh compare.txt MTIL WRITE_SAMPLE
set -u
export LC_ALL=C
cases=$(realpath "$1") mtil=$(realpath "$2") write_sample=$(realpath "$3")
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 1
number=0 refused=0
declare -A parts
fail() { echo "compare.txt:$number: $line: $*"; cat message answer; exit 1; }

# Every run again in contexts 2 … COUNT, which differ in merge.every, with up to 50 images more or fewer right.
copy() {
    "$write_sample" results.db "PRAGMA synchronous = OFF; BEGIN;
        CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n;
        $(while read -r table also; do
            echo "CREATE TEMP TABLE copied AS SELECT * FROM n CROSS JOIN $table; UPDATE copied SET run = run + 1000 * i $also;
                ALTER TABLE copied DROP COLUMN i; INSERT INTO $table SELECT * FROM copied; DROP TABLE copied;"
        done <<'TABLES'
runs , suite_hash = suite_hash || i
settings , value = iif(key = 'merge.every', i, value)
tasks
evaluations , correct = correct + abs(run * 7919 + i * 104729 + task * 1299709 + after_task * 15485863) % 101 - 50
TABLES
        ) COMMIT"
}

# Sets name to that of the part with these columns.
find_name() {
    case $1 in
    *,settings) name=contexts ;;
    *,verdict) name=pairs ;;
    *,p_t*) name=details ;;
    *,p_mcnemar,*) name=discordance ;;
    *,images,*) name=images ;;
    *,words) name=words ;;
    note) name=notes ;;
    *) name=groups ;;
    esac
}

# Parts of the answer, which an empty line separates, by their names
ask() {
    rm -f part.*
    "$mtil" compare results.db --format csv "$@" 2>message >answer
    refused=$? parts=()
    awk -v RS= '{ gsub(/\r/, ""); print >("part." NR) }' answer
    local file columns text name
    for file in part.*; do
        [ -e "$file" ] || continue
        IFS= read -r columns <"$file"
        IFS= read -r -d '' text <"$file"
        find_name "$columns"
        parts[$name]=${text%$'\n'}
    done
}

# ROW column=number…: each to a part in 10^9; n/a: an empty cell
check_row() {
    awk -F, -v row="$2" -v expected="$3" '
        { while (match($0, /"[^"]*"/)) { # commas within quotes separate nothing
              word = substr($0, RSTART + 1, RLENGTH - 2)
              gsub(/,/, ";", word)
              $0 = substr($0, 1, RSTART - 1) word substr($0, RSTART + RLENGTH)
          } }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR == row + 2 {
            count = split(expected, one, " ")
            for (i = 1; i <= count; i++) {
                split(one[i], pair, "=")
                cell = pair[1] in at ? $at[pair[1]] : "no such column"
                off = cell - pair[2]
                good = pair[2] == "n/a" ? cell == "" : cell ~ /^[-0-9]/ && off * off <= (1e-9 * pair[2]) ^ 2
                if (!good) print "found", cell, "for", one[i]
                right += good
            }
            exit
        }
        END { exit !count || right < count }' <<<"$1"
}

# PART has|lacks WORDS, PART rows N, PART row ROW column=number…
check() {
    local text=${parts[$1]-} rest=$3 lines
    [ "$refused" = 0 ] || fail "there is no answer"
    case $2 in
    has) [[ $text == *"$rest"* ]] ;;
    lacks) [[ $text != *"$rest"* ]] ;;
    rows) mapfile -t lines <<<"$text" && [ $((${#lines[@]} - 1)) = "$rest" ] ;;
    row) check_row "$text" "${rest%% *}" "${rest#* }" ;;
    *) false ;;
    esac || fail "found otherwise"
}

while IFS= read -r line; do
    number=$((number + 1)) rest=${line#* }
    case $line in
    '#'* | '') ;;
    'test '*) rm -f results.db* ;;
    'add '*) "$write_sample" results.db $rest || fail "not written" ;;
    'copy '*) copy "$rest" || fail "not copied" ;;
    ask) ask ;;
    'ask '*) ask $rest ;;
    'refused '*) [ "$refused" != 0 ] && grep -qF -- "$rest" message || fail "refused otherwise" ;;
    *) check "${line%% *}" "${rest%% *}" "${rest#* }" ;;
    esac
done <"$cases"
