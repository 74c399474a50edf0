#!/bin/bash
# The version and the commit that a build would have: at a tag, behind it, with changed files, in an archive, without git.
#   version.sh SOURCE_FOLDER
set -u
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
if ! command -v git >/dev/null; then
    echo "version: skipped, git is not installed"
    exit 0
fi
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# expect WHERE VERSION COMMIT: what a build in the folder would say
expect() {
    local found
    cat >"$folder/ask.cmake" <<END
include($source/cmake/version.cmake)
mtil_version(OUTPUT version SOURCE $1 FALLBACK 9.9.9)
file(WRITE $folder/version "\${version}")
END
    cmake -P "$folder/ask.cmake" && cmake -DSOURCE="$1" -DOUTPUT="$folder/commit.h" -P "$source/cmake/commit.cmake" || failed=1
    found="$(cat "$folder/version") $(sed -n 's/.*MTIL_[A-Z]* "\(.*\)"/\1/p' "$folder/commit.h" | tr '\n' ' ')"
    [ "$found" = "$2 $3 " ] && return
    echo "${1##*/}: expected \"$2 $3 \", found \"$found\"" >&2
    failed=1
}

git init -q "$folder/repository"
cd "$folder/repository" || exit 2
cp "$source/.git_archival.txt" "$source/.gitattributes" .
echo one >file
git add -A && git commit -qm one
short=$(git rev-parse --short=12 HEAD)
expect "$PWD" 9.9.9 "$short"
git tag v1.2.3
expect "$PWD" 1.2.3 "$short"
git tag -a -m "not a version" release
expect "$PWD" 1.2.3 "$short"
echo two >file
expect "$PWD" 1.2.3 "$short-dirty"
git commit -qam two
expect "$PWD" 1.2.3 "$(git rev-parse --short=12 HEAD)"

mkdir "$folder/archive" "$folder/copy"
git archive HEAD | tar -C "$folder/archive" -xf -
expect "$folder/archive" 1.2.3 "$(git rev-parse --short=12 HEAD)"
cp "$source/.git_archival.txt" "$folder/copy" # as a copy without git has it
expect "$folder/copy" 9.9.9 ""
exit $failed
