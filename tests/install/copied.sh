#!/bin/bash
# A build folder that was copied or moved with its sources builds there, by make build, and says so once. The project is a small one.
#   copied.sh SOURCE_FOLDER
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
unset MAKEFLAGS MAKELEVEL DESTDIR
failed=0

# builds FOLDER TIMES: make build there, which says so often that the folder was configured elsewhere
builds() {
    make -C "$1" build >said 2>&1 && [ "$(grep -c 'was configured elsewhere' said)" -eq "$2" ] &&
        [ "$(cat "$1/build/made")" = "$(realpath "$1")" ] && return
    printf '%s: expected a build that says %s times that it was configured elsewhere, found %s\n' "$1" "$2" "$(cat said)" >&2
    failed=1
}

mkdir first
cp "$1/Makefile" first
cat >first/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(copied NONE)
add_custom_target(made ALL COMMAND ${CMAKE_COMMAND} -E echo_append ${CMAKE_SOURCE_DIR} >made)
END
builds first 0
builds first 0
cp -r first second
builds second 1
builds second 0
mv first/build third && mv third second/moved
make -C second build BUILD=moved >said 2>&1
if ! grep -q 'moved/ was configured elsewhere' said || [ ! -e second/moved/made ]; then
    echo "a moved build folder: $(cat said)" >&2
    failed=1
fi
mv second fourth
builds fourth 1
exit $failed
