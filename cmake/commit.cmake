# cmake -DSOURCE=folder -DOUTPUT=commit.h -P commit.cmake
#
# Writes which commit SOURCE is, "-dirty" behind it where files differ from it; from git, or in an archive that git made from
# .git_archival.txt; else "". A file that says so already is left alone.
set(archival "")
if(EXISTS ${SOURCE}/.git_archival.txt)
    file(STRINGS ${SOURCE}/.git_archival.txt archival REGEX "^commit: [0-9a-f]+$")
endif()
string(REPLACE "commit: " "" commit "${archival}")
if(commit)
    string(SUBSTRING ${commit} 0 12 commit)
endif()
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
    # No tag is looked for: it would stand in the commit's place.
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MTIL_COMMIT \"${commit}\"\n" @ONLY)
