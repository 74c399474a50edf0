# mtil_version(OUTPUT variable SOURCE folder FALLBACK 0.1.0)
#
# The last tag vX.Y.Z, from git, or in an archive that git made from .git_archival.txt; FALLBACK where there is none.
function(mtil_version)
    cmake_parse_arguments(VERSION "" "OUTPUT;SOURCE;FALLBACK" "" ${ARGN})
    set(tag "")
    find_program(GIT git)
    if(GIT AND EXISTS ${VERSION_SOURCE}/.git)
        execute_process(COMMAND ${GIT} -C ${VERSION_SOURCE} describe --tags --abbrev=0 "--match=v[0-9]*"
            OUTPUT_VARIABLE tag OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    elseif(EXISTS ${VERSION_SOURCE}/.git_archival.txt)
        file(STRINGS ${VERSION_SOURCE}/.git_archival.txt tag REGEX "^tag: v[0-9]")
    endif()
    set(version ${VERSION_FALLBACK})
    if(tag MATCHES "v([0-9]+(\\.[0-9]+)*)")
        set(version ${CMAKE_MATCH_1})
    endif()
    set(${VERSION_OUTPUT} ${version} PARENT_SCOPE)
endfunction()
