#include "models/tokenizer/split.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/alloc.h"

static const char start_word[] = "<start_of_text>", end_word[] = "<end_of_text>";

/* White space is single spaces after cleaning. Runs are possessive, because backtracking could never help. U+0345 is a mark
 * whose capital is a letter; the reference's engine, ignoring case, matches it nowhere. */
static const char expression[] =
    "<start_of_text>|<end_of_text>|'s|'t|'re|'ve|'m|'ll|'d|\\p{L}++|\\p{N}|[^ \\p{L}\\p{N}\\x{345}]++";

status splitter_create(struct splitter *splitter, struct error *error)
{
    int number;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_CASELESS, &number, &offset, NULL);
    splitter->code = code;
    if (code == NULL)
        return error_set(error, ERROR_MEMORY, "cannot compile the tokenizer's expression (PCRE2 error %d)", number);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without a JIT compiler the expression is interpreted */
    return OK;
}

void splitter_destroy(struct splitter *splitter)
{
    pcre2_code_free(splitter->code);
    splitter->code = NULL;
}

void split_begin(struct split *split, const struct splitter *splitter, const char *text, size_t size)
{
    *split = (struct split){.splitter = splitter, .text = text != NULL ? text : "", .size = size};
    split->match = xgiven(pcre2_match_data_create(1, NULL), sizeof(PCRE2_SIZE[2]));
}

static bool piece_is(const struct piece *piece, const char *word)
{
    return piece->size == strlen(word) && memcmp(piece->text, word, piece->size) == 0;
}

bool split_next(struct split *split, struct piece *piece)
{
    int found = pcre2_match(split->splitter->code, (PCRE2_SPTR)split->text, split->size, split->at, PCRE2_NO_UTF_CHECK,
                            split->match, NULL);
    if (found < 0)
        return false;
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(split->match);
    *piece = (struct piece){split->text + range[0], range[1] - range[0], PIECE_PLAIN};
    split->at = range[1];
    if (piece->text[0] == '<' && piece_is(piece, start_word))
        piece->kind = PIECE_START;
    else if (piece->text[0] == '<' && piece_is(piece, end_word))
        piece->kind = PIECE_END;
    return true;
}

void split_end(struct split *split)
{
    pcre2_match_data_free(split->match);
    split->match = NULL;
}
