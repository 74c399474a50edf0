/* SentencePiece models. What opens must be able to encode, and its ids are those of pieces. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "models/tokenizer.h"

enum { CONTEXT = 32 };

int fuzz_target(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {"a photo of a cat",
                                        " <table>\xef\xac\x81 dogs_and  caf\xc3\xa9s, \xf0\x9f\x99\x82 zz", ""};
    struct tokenizer *tokenizer;
    struct error error;
    int32_t row[CONTEXT];
    size_t tokens;
    int failed = 0;
    if (tokenizer_open_model(&tokenizer, "input", data, size, &error) != OK)
        return 0;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        failed |= tokenizer_encode(tokenizer, texts[t], row, CONTEXT, &tokens, &error) != OK;
        for (size_t i = 0; !failed && i < CONTEXT; i++)
            failed = row[i] < 0 || (size_t)row[i] >= tokenizer_vocabulary(tokenizer);
    }
    tokenizer_close(tokenizer);
    return failed;
}
