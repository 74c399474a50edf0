/* Texts, with a vocabulary of a few merges. Whatever the text, a row starts, ends and stays within the vocabulary. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "models/tokenizer.h"

enum { CONTEXT = 12 };

static const char merges[] = "#version: 0.2\na b\nab a\na a\naa aa\nt h\nth e</w>\n& a\n' s</w>\n";

static void check_row(const struct tokenizer *tokenizer, const int32_t *row, size_t tokens)
{
    size_t last = tokens < CONTEXT ? tokens - 1 : CONTEXT - 1;
    assert(tokens >= 2 && row[0] == tokenizer_start(tokenizer) && row[last] == tokenizer_end(tokenizer));
    for (size_t i = 0; i < CONTEXT; i++)
        assert(row[i] >= 0 && (size_t)row[i] < tokenizer_vocabulary(tokenizer) && (i <= last || row[i] == 0));
}

/* Opened once: compiling its expressions takes longer than most texts do. */
static const struct tokenizer *small_tokenizer(void)
{
    static struct tokenizer *tokenizer;
    if (tokenizer != NULL)
        return tokenizer;
    if (tokenizer_open(&tokenizer, input_file((const uint8_t *)merges, sizeof merges - 1), &fuzz_error) != OK)
        abort();
    return tokenizer;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    const struct tokenizer *tokenizer = small_tokenizer();
    int32_t row[CONTEXT];
    size_t tokens;
    char *text = xstrndup((const char *)data, size);
    if (tokenizer_encode(tokenizer, text, row, CONTEXT, &tokens, &fuzz_error) == OK)
        check_row(tokenizer, row, tokens);
    free(text);
    return 0;
}
