/* Vocabulary files, packed or not. What opens must be able to encode. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include "models/tokenizer.h"

enum { CONTEXT = 32 };

int fuzz_target(const uint8_t *data, size_t size)
{
    struct tokenizer *tokenizer;
    struct error error;
    int32_t row[CONTEXT];
    size_t tokens;
    if (tokenizer_open(&tokenizer, input_file(data, size), &error) != OK)
        return 0;
    int failed = tokenizer_encode(tokenizer, "abab the cab \xc3\xa9", row, CONTEXT, &tokens, &error) != OK;
    for (size_t i = 0; !failed && i < CONTEXT; i++)
        failed = row[i] < 0 || (size_t)row[i] >= tokenizer_vocabulary(tokenizer);
    tokenizer_close(tokenizer);
    return failed;
}
