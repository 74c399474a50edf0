# cmake -DSOURCE=folder -DOUTPUT=commit.h -P commit.cmake
#
# Writes which commit SOURCE is, "-dirty" behind it where files differ from it, and its date; from git, or in an archive that git
# made from .git_archival.txt; else "" and the day of the build. A file that says so already is left alone.
set(commit "")
string(TIMESTAMP date "%Y-%m-%d")
set(archival "")
if(EXISTS ${SOURCE}/.git_archival.txt)
    file(STRINGS ${SOURCE}/.git_archival.txt archival REGEX "^(commit|date): [0-9a-f-]+$")
endif()
foreach(line IN LISTS archival)
    string(REGEX MATCH "^([a-z]+): (.*)$" found "${line}")
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()
if(commit)
    string(SUBSTRING ${commit} 0 12 commit)
endif()
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
    # No tag is looked for: it would stand in the commit's place.
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${GIT} -C ${SOURCE} log -1 --format=%cs OUTPUT_VARIABLE day OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET)
    if(day)
        set(date ${day})
    endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MTIL_COMMIT \"${commit}\"\n#define MTIL_DATE \"${date}\"\n" @ONLY)
