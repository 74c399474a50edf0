/* Lists of texts to embed. What is accepted has texts, each with something in it. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "datasets/formats/strings.h"
#include "tests/fuzz/input_file.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct input_file file;
    struct strings lines = {0};
    struct error error;
    int failed = 0;
    input_file_open(&file, data, size);
    if (strings_read_lines(&lines, file.path, &error) == OK &&
        strings_check_texts(&lines, file.path, "text", &error) == OK) {
        failed = lines.count == 0 || lines.count > size;
        for (size_t i = 0; i < lines.count; i++)
            failed |= strspn(lines.items[i], " \t") == strlen(lines.items[i]) || strchr(lines.items[i], '\n') != NULL;
    }
    strings_free(&lines);
    input_file_close(&file);
    return failed;
}
