/* Vocabulary files, packed or not. What opens must be able to encode. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include "models/tokenizer.h"

enum { CONTEXT = 32 };

int fuzz_target(const uint8_t *data, size_t size)
{
    struct tokenizer *tokenizer;
    int32_t row[CONTEXT];
    size_t tokens;
    if (tokenizer_open(&tokenizer, input_file(data, size), &fuzz_error) != OK)
        return 0;
    assert(tokenizer_encode(tokenizer, "abab the cab \xc3\xa9", row, CONTEXT, &tokens, &fuzz_error) == OK);
    for (size_t i = 0; i < CONTEXT; i++)
        assert(row[i] >= 0 && (size_t)row[i] < tokenizer_vocabulary(tokenizer));
    tokenizer_close(tokenizer);
    return 0;
}
