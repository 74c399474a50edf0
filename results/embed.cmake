# cmake -DINPUT=schema.sql -DOUTPUT=schema_sql.c -DNAME=schema_sql -P embed.cmake: a text file as a C string, byte by byte.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
get_filename_component(file ${INPUT} NAME)
file(WRITE ${OUTPUT} "/* ${file}, embedded. */
#include \"results/schema.h\"

const char ${NAME}[] = {
    ${bytes}0x00};
")
