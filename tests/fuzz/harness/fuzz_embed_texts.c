/* Lists of texts to embed. What opens has texts, each with something in it. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "harness/commands/inputs/embed_inputs.h"
#include "tests/fuzz/input_file.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct input_file file;
    struct embed_inputs inputs;
    struct error error;
    int failed = 0;
    input_file_open(&file, data, size);
    if (embed_inputs_open(&inputs, NULL, file.path, &error) == OK) {
        failed = inputs.count == 0 || inputs.count > size;
        for (size_t i = 0; i < inputs.count; i++)
            failed |=
                strspn(inputs.names[i], " \t") == strlen(inputs.names[i]) || strchr(inputs.names[i], '\n') != NULL;
        embed_inputs_free(&inputs);
    }
    input_file_close(&file);
    return failed;
}
