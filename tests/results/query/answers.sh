#!/bin/bash
# Runs the commands of a transcript, and compares what they print with it.
#   answers.sh answers.txt MTIL WRITE_SAMPLE; with MTIL_RENEW=1 it writes the transcript anew, for a reader to check
set -u
export LC_ALL=C
transcript=$(realpath "$1") mtil=$(realpath "$2") write_sample=$(realpath "$3")
questions=$(realpath "$(dirname "$0")/../../../results/questions")
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 1
"$write_sample" sample.db || exit 1

tables='runs settings inputs tasks evaluations expert_events merge_effects expert_counts'
fresh() { rm -f results.db*; cp sample.db results.db; }
sql() { "$write_sample" results.db "PRAGMA synchronous = OFF; BEGIN; $*; COMMIT"; }
q() { "$mtil" query results.db "$@" | sed '/^─/d; s/ *$//'; }
rows() { q "$@" --format csv --quiet | sed 1d | wc -l; }

# A question of the program as a reader's file: question matrix writes matrix.sql
question() { sed -n "/^-- === $1\$/,/^-- === /{ /^-- === /d; p }" "$questions"/*.sql >"$1.sql"; }

# columns NAME... -- QUESTION...: these columns of the answer, with six digits
columns() {
    local names=
    while [ "$1" != -- ]; do names="$names|$1"; shift; done
    shift
    q "$@" --format csv | tr -d '\r' | sed 's/"\([^",]*\), \([^",]*\)"/\1; \2/g' | awk -F, -v names="$names" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; count = split(substr(names, 2), name, "|") }
        { line = ""
          for (i = 1; i <= count; i++) {
              cell = $at[name[i]]
              line = line (i > 1 ? " | " : "") (cell ~ /^-?[0-9]+\.[0-9e+-]+$/ ? sprintf("%.6g", cell) : cell)
          }
          print line }'
}

# Numbers of ± that lead out of 0 to 100, in the answer of a question: none may
beyond() {
    q "$@" --format csv | tr -d '\r' | sed 's/"\([^",]*\), \([^",]*\)"/\1; \2/g' | awk -F, '
        NR == 1 { for (i = 2; i <= NF; i++) half[i] = $i ~ /±$/ && $i !~ /^difference/; next }
        { for (i in half) if (half[i] && $i ~ /^[0-9.]+$/ && ($(i - 1) - $i < 0 || $(i - 1) + $i > 100)) print $(i - 1), "±", $i }'
}

# Leaves these runs alone: keep 1,3
keep() { sql "$(for table in $tables; do echo "DELETE FROM $table WHERE run NOT IN ($1);"; done)"; }

# Another run of the same rows, but for these columns of `runs`: copy 1 7 "seed = 4"
copy() {
    sql "$(for table in $tables; do
        echo "CREATE TEMP TABLE copied AS SELECT * FROM $table WHERE run = $1; UPDATE copied SET run = $2;"
        [ $table = runs ] && echo "UPDATE copied SET $3;"
        echo "INSERT INTO $table SELECT * FROM copied; DROP TABLE copied;"
    done)"
}

# One run of one task, CIFAR100's test images: SETTING KEY VALUE MODEL; what its row is called beside papers
one_run() {
    fresh; keep 1
    sql "UPDATE runs SET tasks = 1, setting = '$1', model = '$4';" \
        "DELETE FROM tasks WHERE task > 0; UPDATE tasks SET name = 'cifar100', test_images = 10000;" \
        "DELETE FROM evaluations WHERE task > 0 OR after_task <> 0; UPDATE evaluations SET images = 10000;" \
        "INSERT INTO settings VALUES (1, '$2', '$3', 'text'), (1, 'data.order', '[cifar100]', 'list')"
    q paper-table --published --format csv | tr -d '"' | grep -o 'adapters[^,]*\(, ViT[^,]*\)\?' | sort -u
}

# A classifier: RUN ROW DATASET SEED CORRECT (of 1000) MODEL, then what makes it another configuration, and its test images
classifier() {
    copy 1 $1 "seed = $4, suite_hash = '$2-$3-${7:-}', method = 'supervised', policy = 'none', model = '$6', tasks = 1, status = 'finished'"
    sql "INSERT INTO settings VALUES ($1, 'head.name', 'linear', 'text'), ($1, 'run.row', '$2', 'text');" \
        "DELETE FROM tasks WHERE run = $1 AND task > 0; DELETE FROM evaluations WHERE run = $1 AND (task > 0 OR after_task <> 0);" \
        "UPDATE tasks SET name = '$3', test_images = 1000, test_digest = '${8:-0}' WHERE run = $1;" \
        "UPDATE evaluations SET correct = $5, images = 1000 WHERE run = $1"
}

# Dense lacks seed 4. EWA is 2, 3 and 4 points above it; WideNet 3 below, 3 above and as good.
classifiers() {
    fresh
    local run=10 seed=0 three
    for three in '600 620 570' '620 650 650' '640 680 640'; do
        set -- $three $((seed += 1))
        classifier $((run += 1)) Dense cifar100 $4 $1 scratch
        classifier $((run += 1)) EWA cifar100 $4 $2 scratch
        classifier $((run += 1)) WideNet cifar100 $4 $3 scratch
    done
    classifier 20 EWA cifar100 4 990 scratch
    sql "UPDATE runs SET status = 'stopped' WHERE run < 10"
}

# What six images of pets (cat, dog; task 0) or cars (bus, car, van; task 1, whose classes count from 2) were taken for: RUN AFTER
# TASK predictions|bits CLASS...; in run 2 a class counts within its task
cell() {
    local run=$1 after=$2 task=$3 kind=$4 bits=0 correct=0 data='' classes=(0 0 0 0 1 1) i
    [ "$task" = 0 ] || classes=(2 3 3 4 4 4)
    shift 4
    for i in {0..5}; do
        [ "$1" != "${classes[i]}" ] || bits=$((bits | 1 << i)) correct=$((correct + 1))
        data+=$(printf '%02x00' $(($1 - (run == 2) * task * 2)))
        shift
    done
    [ "$kind" = predictions ] && data+=000000000000000000000000 || data=
    sql "INSERT INTO evaluations VALUES ($run, $task, $after, $correct, 6);" \
        "INSERT INTO per_image VALUES ($run, $task, $after, '$kind', x'$(printf '%02x' $bits)$data')"
}

# The classes of the images as stored: RUN TASK CLASS...
labels() {
    sql "DELETE FROM test_labels WHERE (run, task) = ($1, $2);" \
        "INSERT INTO test_labels VALUES ($1, $2, x'$(printf '%02x00' "${@:3}")')"
}

fresh
while IFS= read -r line; do
    case $line in
    '#'*) echo "$line" ;;
    '$ '*) echo "$line"; eval "${line#??}" ;;
    esac
done <"$transcript" >found.txt 2>&1
[ "${MTIL_RENEW:-}" = 1 ] && cp found.txt "$transcript"
diff -u "$transcript" found.txt
