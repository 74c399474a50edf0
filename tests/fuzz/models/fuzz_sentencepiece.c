/* SentencePiece models. What opens must be able to encode, and its ids are those of pieces. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "core/file.h"
#include "models/tokenizer.h"

enum { CONTEXT = 32 };

int fuzz_target(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {"a photo of a cat",
                                        " <table>\xef\xac\x81 dogs_and  caf\xc3\xa9s, \xf0\x9f\x99\x82 zz", ""};
    struct tokenizer *tokenizer;
    int32_t row[CONTEXT];
    size_t tokens;
    input_folder_write("input.model", data, size);
    char *path = path_format("%s/input.model", input_folder());
    status opened = tokenizer_open(&tokenizer, path, &fuzz_error);
    free(path);
    if (opened != OK)
        return 0;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        assert(tokenizer_encode(tokenizer, texts[t], row, CONTEXT, &tokens, &fuzz_error) == OK);
        for (size_t i = 0; i < CONTEXT; i++)
            assert(row[i] >= 0 && (size_t)row[i] < tokenizer_vocabulary(tokenizer));
    }
    tokenizer_close(tokenizer);
    return 0;
}
