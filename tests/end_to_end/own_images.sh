#!/bin/bash
# A user's own folders of images: the suite that mtil init writes, and what is said when folders are not as they should be.
#   own_images.sh PROGRAM SOURCE_FOLDER
set -u
mtil=$1 roots=$2/tests/fixtures/data/roots
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
export XDG_CACHE_HOME=$folder/cache
failed=0

complain() {
    printf '%s\n' "$*" >&2
    failed=1
}

# expect STATUS TEXT ARGUMENT…: the command's exit status, and a text among what it says
expect() {
    local wanted=$1 text=$2 result=0
    shift 2
    "$mtil" "$@" >said 2>&1 || result=$?
    [ $result -eq "$wanted" ] && grep -qF -e "$text" said && return
    complain "$*: expected $wanted and \"$text\", found $result and: $(grep -v '^  ' said | tail -5)"
}

mkdir my
cp -r "$roots/eurosat/eurosat/2750" my/scenes
cp -r "$roots/dtd/dtd/dtd/images" my/fields

# As mtil init writes it, and as the folders are.
"$mtil" init --quiet || complain "mtil init fails"
[ "$(grep -vc '^#' suite.yaml)" -eq 8 ] || complain "init: the suite has not eight lines: $(cat suite.yaml)"
scenes='# scenes: 20 images to train on, 10 to test on, 10 classes: AnnualCrop, Forest, HerbaceousVegetation, …'
expect 0 "$scenes" run suite.yaml --dry-run
grep -qF 'files left out: 1 (Forest/Thumbs.db)' said || complain "files left out are not reported"
grep -q 'scenes under my: accuracy says nothing of classes without a test image: 2 of 10, the first is "Highway"' said || complain "classes without test images are not reported"
for task in scenes fields; do
    grep -q "^  *path: $task\$" said || complain "the path of $task is not its name"
done
expect 0 "Transfer" run suite.yaml training.iterations=2 training.warmup=0 selector.iterations=5 # in full: the test readme

# What a run takes is what was estimated, within 30%: its process and what it leaves.
"$mtil" run suite.yaml --dry-run --quiet >estimate
estimate() { sed -n "s/^# $1  *about \([0-9]*\) MiB.*/\1/p" estimate; }
near() {
    [ "$(($2 * 10))" -ge "$(($3 * 7))" ] && [ "$(($2 * 10))" -le "$(($3 * 13))" ] || complain "$1: estimated $2 MiB, found $3"
}
took=$("$mtil" query results.db 'SELECT max(peak_bytes) >> 20 AS mib FROM timings' --format csv | tail -1 | tr -d '\r')
grep -q __asan "$mtil" || near memory "$(estimate memory)" "$took"
near disk "$(estimate disk)" "$(($(cat runs/*/seed1/* | wc -c) >> 20))"

# The folder's own tasks; a run by its number; a pattern that names adapters in place of images.
"$mtil" init my all.yaml --quiet || complain "mtil init my fails"
expect 0 "$scenes" run all.yaml --dry-run
grep -q '^  order: \[fields, scenes\]$' said || complain "init my: other tasks than its folders: $(cat all.yaml)"
expect 1 'my/scenes/AnnualCrop: expected a folder for each class, found none' init my/scenes other.yaml
mkdir -p 'named/a task/class'
expect 1 "named/a task: a task's name has no comma, blank or control character" init named other.yaml
mkdir -p $'odd/b\xef\xbf\xbe/class'
expect 1 "a task's name has no comma, blank or control character" init odd other.yaml
expect 2 'init: expected a folder and a file, found "mine" and "other.yaml"' init mine other.yaml
[ ! -e other.yaml ] || complain "init leaves a file behind a mistake"
expect 0 'scenes' predict --run 1 my/scenes/AnnualCrop
expect 2 'seed1/adapters.safetensors: expected an image file or a folder, found weights; name them with an option' predict --run 1 runs/*/seed1/*.safetensors
expect 2 'predict: --run names the weights; expected it or --adapters, found both' predict --run 1 --adapters runs/*/seed1/adapters.safetensors my
expect 2 'there is no run 7' predict --run 7 my
mv runs elsewhere
expect 1 'run 1 names it as seen from the folder where it ran' predict --run 1 my
mv elsewhere runs
expect 0 'seeds: [3, 4]' run suite.yaml --seed 3,4 --dry-run
expect 2 'did you mean "seed"' run suite.yaml --seeds 3 --dry-run

# Test images that are trained on: by another task, under another name, by a second name of the file.
images=(my/scenes/*/*.jpg)
mkdir -p twin/{scenes,fields}/{train,test}/{x,y}
cp "${images[0]}" twin/scenes/train/x && cp "${images[1]}" twin/scenes/train/y
cp "${images[2]}" twin/scenes/test/x/copied.jpg && cp "${images[3]}" twin/scenes/test/y
cp "${images[4]}" twin/fields/train/x/a.jpg && cp "${images[2]}" twin/fields/train/y
cp "${images[5]}" twin/fields/test/x && ln twin/fields/train/x/a.jpg twin/fields/test/x/linked.jpg
expect 0 'scenes: 1 of 2 test images have the pixels of training images (0 of this task, 1 of others)' \
    run suite.yaml data.root=twin training.iterations=2 training.warmup=0 selector.iterations=5
grep -qF 'the first is scenes/test/x/copied.jpg, in training fields/train/y/' said || complain "the image is not named"
grep -qF 'fields: 1 of 2 test images have the pixels of training images (1 of this task, 0 of others)' said ||
    complain "a link is not noticed: $(grep -v '^  ' said)"

# One folder too high, misspelt, empty, flat, nowhere.
expect 1 'my: expected a folder for each class, with its images; found class folders within' \
    run suite.yaml tasks.scenes.path=.
expect 1 'there is no folder "scene" (did you mean "scenes"?)' run suite.yaml tasks.scenes.path=scene
mkdir -p other/scenes other/fields
expect 1 'other/scenes: expected a folder for each class, with its images; found no folder' run suite.yaml data.root=other
cp my/scenes/AnnualCrop/*.jpg other/scenes
expect 1 'found 6 images and no folder' run suite.yaml data.root=other
expect 1 'data.root: there is no folder mine; name the one that holds the datasets' run suite.yaml data.root=mine
grep -q 'mtil data mini' said && complain "synthetic data are advised in place of the user's own"
expect 1 'mtil data mini mine' run mini data.root=mine

# Classes of one name: of two tasks, once per run; of one task, in its classnames.txt.
cp -r my/scenes/Forest my/fields
expect 0 '1 of ' run suite.yaml --dry-run evaluation.label_space=all
[ "$(grep -cF 'have the name of an earlier one, as "Forest" of scenes and fields' said)" = 1 ] ||
    complain "shared names of classes: $(grep -v '^  ' said)"
expect 0 '# fields: ' run suite.yaml --dry-run
grep -q 'have the name' said && complain "names of tasks that share no label space are compared"
for class in my/scenes/*/; do basename "$class"; done | sed 's/Forest/annualcrop /' >classnames.txt
mv classnames.txt my/scenes
expect 1 'my/scenes/classnames.txt:2: the class name "annualcrop " is that of line 1, "AnnualCrop"' run suite.yaml
exit $failed
