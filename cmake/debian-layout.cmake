# Without these tools CPack makes a package that does not say which libraries it needs.
foreach(tool dpkg-shlibdeps file)
    execute_process(COMMAND ${tool} --version RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "make package: ${tool} is not installed, with which the package's libraries are found; "
            "cmake/install-dependencies --package installs it")
    endif()
endforeach()

# What Debian has elsewhere than make install puts it, moved before the package is made; CPack includes this.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
file(RENAME ${share}/doc/mtil/LICENSE ${share}/doc/mtil/copyright)
file(GLOB pages ${share}/man/man1/*.1)
foreach(page IN LISTS pages)
    execute_process(COMMAND gzip -9n ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
