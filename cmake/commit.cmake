# cmake -DSOURCE=folder -DOUTPUT=commit.h -P commit.cmake
#
# Writes what git calls the checkout in SOURCE, "" when it is none; a file that says so already is left alone.
set(commit "")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE commit
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MTIL_COMMIT \"${commit}\"\n" @ONLY)
