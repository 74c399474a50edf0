/* Token ids of the lines of standard input, for check_sentencepiece.py.
 *
 *     tokenize_lines MODEL pieces     the ids of a line's pieces, whatever their number
 *     tokenize_lines MODEL row        rows of 64 as a text tower gets them
 */
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "models/tokenizer.h"
#include "models/tokenizer/sentencepiece.h"

enum { MOST = 1 << 16, CONTEXT = 64 };

static void print_row(const int32_t *row, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%d", i > 0 ? " " : "", row[i]);
    putchar('\n');
}

static status print_rows(const char *path, struct error *error)
{
    static char line[MOST];
    static int32_t row[CONTEXT];
    struct tokenizer *tokenizer;
    size_t tokens;
    status result = tokenizer_open(&tokenizer, path, error);
    while (result == OK && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        NEXT(result, tokenizer_encode(tokenizer, line, row, CONTEXT, &tokens, error));
        print_row(row, CONTEXT);
    }
    tokenizer_close(tokenizer);
    return result;
}

static status print_pieces(const char *path, struct error *error)
{
    static char line[MOST];
    static int32_t ids[MOST];
    struct sentencepiece *pieces = NULL;
    status result = sentencepiece_open(&pieces, path, error);
    while (result == OK && fgets(line, sizeof line, stdin) != NULL) {
        struct token_row row = {.ids = ids, .most = MOST};
        sentencepiece_encode(pieces, line, strcspn(line, "\n"), &row);
        print_row(ids, row.count);
    }
    sentencepiece_close(pieces);
    return result;
}

int main(int argc, char **argv)
{
    struct error error;
    if (argc == 3 && (strcmp(argv[2], "row") == 0 ? print_rows : print_pieces)(argv[1], &error) == OK)
        return 0;
    fprintf(stderr, "%s\n", argc == 3 ? error.message : "usage: tokenize_lines MODEL pieces|row");
    return 1;
}
