# make install: the program, the weights that ship, manual pages (by help2man), completion and documents, where GNUInstallDirs puts them.

# What the program says about itself.
set(pages ${CMAKE_BINARY_DIR}/pages)
find_program(HELP2MAN help2man)
if(HELP2MAN)
    set(manual ${CMAKE_SOURCE_DIR}/cmake/manual-pages $<TARGET_FILE:mtil> ${pages}/man1)
else()
    message(STATUS "No manual pages: help2man is not installed")
endif()
add_custom_command(OUTPUT ${pages}/made DEPENDS mtil ${CMAKE_SOURCE_DIR}/cmake/manual-pages VERBATIM
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/man1
    COMMAND ${manual}
    COMMAND mtil completion bash > ${pages}/mtil
    COMMAND mtil completion zsh > ${pages}/_mtil
    COMMAND mtil completion fish > ${pages}/mtil.fish
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/made)
add_custom_target(mtil_pages ALL DEPENDS ${pages}/made)

# A wheel has the component program alone (pyproject.toml).
install(TARGETS mtil RUNTIME COMPONENT program)
install(DIRECTORY ${CMAKE_BINARY_DIR}/weights/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mtil/weights COMPONENT program)
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${pages}/mtil DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${pages}/_mtil DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${pages}/mtil.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The documents, with what they link to, below the same folders.
set(documents README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE CITATION.cff)
foreach(pattern adapters/*.md core/*.md datasets/*.md docs/*.md harness/*.md harness/python/*.py models/*.md results/*.md results/studies/*.png results/studies/merging/* results/studies/sharing/* tests/*.md)
    file(GLOB_RECURSE found RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${pattern})
    list(APPEND documents ${found})
endforeach()
foreach(file ${documents})
    get_filename_component(folder ${file} DIRECTORY)
    install(FILES ${CMAKE_SOURCE_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()

# make package
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/package)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VENDOR "the mtil authors")
set(CPACK_PACKAGE_CONTACT "the mtil authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "continual learning of vision-language models")
set(CPACK_PACKAGE_DESCRIPTION "mtil streams image datasets through CLIP with LoRA mixture-of-experts adapters\n\
that are frozen and merged, and measures what is learned, kept and forgotten on\n\
the way. Results are stored in SQLite.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS bash-completion)
# Products are single-threaded; any OpenBLAS will do, this one starts no threads of its own.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-serial | libopenblas0")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian-layout.cmake)
include(CPack)
