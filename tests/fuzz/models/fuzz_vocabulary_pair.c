/* vocab.json and merges.txt. The first gets a symbol for every byte before the input, up to INPUT_SEPARATOR, goes on;
 * input that starts with a brace is the whole of it. Merges are the rest. What opens must be able to encode. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "models/tokenizer.h"
#include "models/tokenizer/vocabulary.h"
#include "tests/fuzz/input.h"

enum { CONTEXT = 32, BYTES = 256 };

/* {"!": 0, "!</w>": 256, … and no end yet */
static void add_bytes(struct text *json)
{
    text_add(json, "{");
    for (unsigned byte = 0; byte < BYTES; byte++) {
        char name[BYTE_NAME];
        vocabulary_byte_name(byte, name);
        const char *escape = *name == '"' || *name == '\\' ? "\\" : "";
        text_add(json, "\"%s%s\":%u,\"%s%s</w>\":%u,\n", escape, name, byte, escape, name, BYTES + byte);
    }
}

static void write_files(const uint8_t *data, size_t size)
{
    struct text json = {0};
    const uint8_t *end = memmem(data, size, INPUT_SEPARATOR, strlen(INPUT_SEPARATOR));
    size_t first = end != NULL ? (size_t)(end - data) : size;
    if (size == 0 || data[0] != '{')
        add_bytes(&json);
    text_add_bytes(&json, (const char *)data, first);
    input_folder_write("vocab.json", (const uint8_t *)json.data, json.size);
    if (end != NULL)
        first += strlen(INPUT_SEPARATOR);
    input_folder_write("merges.txt", data + first, size - first);
    text_free(&json);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct tokenizer *tokenizer;
    int32_t row[CONTEXT];
    size_t tokens;
    write_files(data, size);
    if (tokenizer_open(&tokenizer, input_folder(), &fuzz_error) != OK)
        return 0;
    assert(tokenizer_encode(tokenizer, "abab the cab \xc3\xa9", row, CONTEXT, &tokens, &fuzz_error) == OK);
    for (size_t i = 0; i < CONTEXT; i++)
        assert(row[i] >= 0 && (size_t)row[i] < tokenizer_vocabulary(tokenizer));
    tokenizer_close(tokenizer);
    return 0;
}
