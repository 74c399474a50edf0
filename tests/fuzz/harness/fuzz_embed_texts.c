/* Lists of texts to embed. What is accepted has texts, each with something in it. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "datasets/formats/strings.h"
#include "tests/fuzz/input.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct strings lines = {0};
    const char *path = input_file(data, size);
    if (strings_read_lines(&lines, path, &fuzz_error) == OK &&
        strings_check_texts(&lines, path, "text", &fuzz_error) == OK) {
        assert(lines.count > 0 && lines.count <= size);
        for (size_t i = 0; i < lines.count; i++)
            assert(lines.items[i][strspn(lines.items[i], " \t")] != 0 && strchr(lines.items[i], '\n') == NULL);
    }
    strings_free(&lines);
    return 0;
}
