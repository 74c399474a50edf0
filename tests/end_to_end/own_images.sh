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
grep -q 'scenes under my: classes without a test image, .*: 2 of 10, the first is "Highway"' said || complain "classes without test images are not reported"
for task in scenes fields; do
    grep -q "^  *path: $task\$" said || complain "the path of $task is not its name"
done
expect 0 "Transfer" run suite.yaml training.iterations=2 training.warmup=0 selector.iterations=5 # in full: the test readme

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
