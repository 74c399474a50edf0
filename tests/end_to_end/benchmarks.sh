#!/bin/bash
# The suites of class- and domain-incremental benchmarks on small folders in the published layouts: numbers of tasks and classes, the
# published orders of classes, and numbers of a run from beginning to end.
#   benchmarks.sh PROGRAM SOURCE_FOLDER
set -u
mtil=$1 images=($2/tests/fixtures/data/roots/eurosat/eurosat/2750/*/*.jpg)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
export XDG_CACHE_HOME=$folder/cache
failed=0 used=0
small=(model.weights=mini model.vocabulary=mini model.activation=auto run.seeds=1 method.hidden=64 training.batch=256)

complain() {
    printf '%s\n' "$*" >&2
    failed=1
}

# make FOLDER CLASS…: an image in each class folder of FOLDER/train and FOLDER/test
make() {
    local part class root=data/$1
    shift
    for part in train test; do
        for class; do
            mkdir -p "$root/$part/$class"
            image "$root/$part/$class/$part.jpg"
        done
    done
}

image() {
    cp "${images[used++ % ${#images[@]}]}" "$1"
}

# run SUITE ROW KEY=VALUE…
run() {
    local suite=$1 row=$2
    shift 2
    local arguments=("${small[@]}")
    [ "$row" = RAIL-Primal ] || arguments=("${small[@]/method.hidden=64/run.threads=2}")
    "$mtil" run "$suite" run.row="$row" "${arguments[@]}" "$@" >said 2>&1 || complain "$suite, $row: $(grep -v '^  ' said | tail -3)"
}

ask() {
    "$mtil" query --format csv "$1" | sed 1d | tr -d '\r"'
}

# expect WHAT EXPECTED SQL
expect() {
    local found
    found=$(ask "$3")
    [ "$found" = "$2" ] || complain "$1: expected $2, found $found"
}

# plan SUITE: what its dry run says, in the file "said"
plan() {
    "$mtil" run "$1" run.row=Zero-shot "${small[@]/method.hidden=64/run.threads=2}" --dry-run >said 2>&1 || complain "$1, dry run: $(tail -3 said)"
}

# sizes SUITE COUNT…: the classes of its tasks
sizes() {
    local suite=$1 expected found
    shift
    expected=$*
    plan "$suite"
    found=$(awk -F', ' '/^# task [0-9]+ of/ { print NF }' said | xargs)
    [ "$found" = "$expected" ] || complain "classes of the tasks of $suite: expected $expected, found $found"
}

# begins SUITE CLASSES: the first classes of its first task
begins() {
    plan "$1"
    grep -q "^# task 1 of [0-9]*: $2, " said || complain "the order of $1: expected $2, found $(grep '^# task 1' said)"
}

# times N SIZE: SIZE, N times
times() {
    printf "%.0s$2 " $(seq "$1")
}

for name in imagenet-r imagenet-a cub objectnet; do
    make $name $(seq -f "class%03.0f" 200)
done
for name in aircraft cars ucf101; do
    make $name $(seq -f "class%03.0f" 100)
done
make cars196 $(seq -f "class%03.0f" 196)
make vtab $(seq -f "class%03.0f" 50)
for name in imagenet_r imagenet_a cub objectnet; do
    sizes cil_$name $(times 10 20)
done
for name in imagenet_r cub objectnet; do
    sizes cil_${name}_b100 100 $(times 5 20)
done
for name in aircraft cars ucf101; do
    sizes cil_$name $(times 10 10)
    sizes cil_${name}_b50 50 $(times 5 10)
done
sizes cil_cars196 16 $(times 9 20)
sizes cil_vtab $(times 5 10)

# NumPy's permutation of 200 under the seed 1993 begins 168 136 51; VTAB's folders stay in their order.
begins cil_cub "class169, class137, class052"
begins cil_vtab "class001, class002, class003"

# Steps of a size that leaves fewer for the last, and training from beginning to end.
run cil_aircraft Continual-FT data.parts=4 data.increment=30 training.epochs=1
expect "30, 30, 30, 10" "30,30,30,10" \
    "SELECT group_concat(classes, ',') FROM (SELECT classes FROM tasks WHERE run = (SELECT max(run) FROM runs) ORDER BY task)"
run cil_aircraft RAIL-Primal data.task_shots="$(times 10 1)"

# CORe50: 8 sessions to train on, three others to test on, and 50 classes in all; DomainNet: lists of six domains.
for session in 1 2 3 4 5 6 7 8 9 10 11; do
    for object in $(seq 50); do
        mkdir -p data/core50_128x128/s$session/o$object
        image data/core50_128x128/s$session/o$object/C_$session.jpg
    done
done
seq 50 | awk '{ print "o" $1, "thing", $1 }' >data/core50_128x128/classnames.txt
for domain in real quickdraw painting sketch infograph clipart; do
    for class in $(seq 345); do
        mkdir -p data/domainnet/$domain/class$class
        image data/domainnet/$domain/class$class/1.jpg
        for part in train test; do
            echo "$domain/class$class/1.jpg $((class - 1))" >>data/domainnet/${domain}_$part.txt
        done
    done
done
for suite in dil_core50:8:50:150 dil_domainnet:6:345:345; do
    IFS=: read -r name tasks classes tested <<<"$suite"
    run "$name" Zero-shot
    expect "tasks, classes and test images of $name" "$tasks,$classes,$classes,$tested" \
        "SELECT count(*), min(classes), max(classes), max(test_images) FROM tasks WHERE run = (SELECT max(run) FROM runs)"
    expect "the setting of $name" "domain_incremental" "SELECT setting FROM runs WHERE run = (SELECT max(run) FROM runs)"
done
# Every session is tested on the same images: after a task all columns of a row are equal, and Last is one of them.
expect "columns of CORe50" 1 "SELECT count(DISTINCT correct) FROM evaluations WHERE after_task = 7
    AND run = (SELECT max(run) FROM runs WHERE suite = 'dil_core50')"
run dil_core50 RAIL-Primal
run dil_core50 Joint training.epochs=1
"$mtil" query paper-table results.db --suite dil_core50 --published >said 2>&1 || complain "paper-table of dil_core50: $(tail -2 said)"
grep -q RAIL-Primal said || complain "paper-table of dil_core50 has no row: $(cat said)"

"$mtil" doctor --data data >said
for line in 'cub .*200 classes, 200 training and 200 test images' 'core50_128x128 .*11 folders of class folders' \
    'domainnet .*6 folders of class folders'; do
    grep -q "$line" said || complain "doctor: expected $line, found: $(grep -A12 'reader: folder' said)"
done
"$mtil" verify >said 2>&1 || complain "verify: $(tail -5 said)"
exit $failed
