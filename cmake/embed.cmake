# mtil_embed(TARGET library NAME table FILES a.yaml …)
#
# Makes files part of a library: a table `const struct embedded_file NAME[]` (core/file.h), in the order given. The
# assembler copies the bytes, so that megabytes cost nothing to compile; a changed file is noticed and built again.
function(mtil_embed)
    cmake_parse_arguments(EMBED "" "TARGET;NAME" "FILES" ${ARGN})
    set(code "#include \"core/file.h\"\n\nEMBEDDED_FILES(${EMBED_NAME});\n\n")
    set(entries "")
    set(paths "")
    set(index 0)
    foreach(file IN LISTS EMBED_FILES)
        get_filename_component(path "${file}" ABSOLUTE)
        get_filename_component(name "${file}" NAME)
        list(APPEND paths "${path}")
        set(symbol "${EMBED_NAME}_${index}")
        string(APPEND code
            "__asm__(\".pushsection .rodata\\n.balign 64\\n${symbol}:\\n.incbin \\\"${path}\\\"\\n\"\n"
            "        \".byte 0\\n.popsection\\n\");\n"
            "extern const unsigned char ${symbol}[] __attribute__((visibility(\"hidden\")));\n")
        file(SIZE "${path}" size)
        string(APPEND entries "    {\"${name}\", ${symbol}, ${size}},\n")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
        math(EXPR index "${index} + 1")
    endforeach()
    string(APPEND code "\nconst struct embedded_file ${EMBED_NAME}[] = {\n${entries}    {NULL, NULL, 0}};\n")
    set(output "${CMAKE_CURRENT_BINARY_DIR}/${EMBED_NAME}.c")
    file(CONFIGURE OUTPUT "${output}" CONTENT "${code}" @ONLY)
    set_source_files_properties("${output}" PROPERTIES OBJECT_DEPENDS "${paths}")
    target_sources(${EMBED_TARGET} PRIVATE "${output}")
endfunction()
