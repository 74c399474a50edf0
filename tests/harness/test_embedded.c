#include <stdlib.h>

#include "core/file.h"
#include "tests/test.h"

EMBEDDED_FILES(embedded_sources); /* of this folder, see CMakeLists.txt */
EMBEDDED_FILES(embedded_nothing);

TEST(bytes_are_those_of_the_files)
{
    static const char *const names[] = {"test_embedded.c", "CMakeLists.txt"};
    for (size_t i = 0; i < 2; i++) {
        const struct embedded_file *file = &embedded_sources[i];
        char *path = path_format("%s/%s", SOURCES, names[i]);
        struct bytes bytes;
        struct error error;
        assert_int_equal(file_read(path, 1 << 20, &bytes, &error), OK);
        assert_string_equal(file->name, names[i]);
        assert_int_equal(file->size, bytes.size);
        assert_memory_equal(file->data, bytes.data, bytes.size + 1); /* the zero behind it as well */
        assert_int_equal((uintptr_t)file->data % 64, 0);
        bytes_free(&bytes);
        free(path);
    }
    assert_null(embedded_sources[2].name);
    assert_null(embedded_nothing[0].name);
}
