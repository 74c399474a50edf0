#!/bin/bash
# mtil_embed SPLIT cuts files at their lines "-- === NAME", and refuses a second part of a name.
#   embed_parts.sh CMAKE SOURCES
set -eu
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder"
printf 'cmake_minimum_required(VERSION 3.18)\nproject(parts NONE)\nadd_custom_target(parts)\ninclude("%s/cmake/embed.cmake")\n' "$2" >CMakeLists.txt
echo 'mtil_embed(TARGET parts NAME embedded_parts SPLIT FILES one.sql two.sql)' >>CMakeLists.txt
printf '%s\n' '-- a head' '-- === second' 'SELECT [2; 3];' '-- === empty' >one.sql
printf '%s\n' '-- === first' "SELECT '±'" >two.sql
"$1" -S . -B build >log 2>&1 || { cat log; exit 1; }
cut() { # what the table says of a part
    local about bytes
    about=$(grep -o "{\"$1\", [a-z_0-9]*" build/embedded_parts.c)
    bytes=$(grep -A1 "${about##* }:" build/embedded_parts.c | grep -o '[a-z]*\.sql[\\]*",[0-9]*,[0-9]*')
    tail -c "+$(($(cut_field 2) + 1))" "${bytes%%.*}.sql" | head -c "$(cut_field 3)"
}
cut_field() { echo "$bytes" | awk -F, -v field="$1" '{ print $field }'; }
[ "$(cut first.sql)" = "SELECT '±'" ]
[ "$(cut second.sql)" = 'SELECT [2; 3];' ]
[ "$(cut empty.sql)" = '' ]
[ "$(grep -o '{"[a-z]*' build/embedded_parts.c | tr -d '\n')" = '{"empty{"first{"second' ]
printf '%s\n' '-- === second' >>two.sql
! "$1" -S . -B build >log 2>&1
tr -s '\n ' ' ' <log | grep -q 'another part is called "second.sql"' # CMake breaks its lines
