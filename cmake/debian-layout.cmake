# What Debian has elsewhere than make install puts it, moved before the package is made; CPack includes this.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)
file(RENAME ${share}/doc/mtil/LICENSE ${share}/doc/mtil/copyright)
file(GLOB pages ${share}/man/man1/*.1)
foreach(page IN LISTS pages)
    execute_process(COMMAND gzip -9n ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
