#include "tests/replay/check_tokenizer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/file.h"
#include "models/tokenizer.h"

enum { CONTEXT = 77, MOST_SHOWN = 5 };

struct tally {
    size_t items, deviations, skipped;
};

static bool is_done_here(const char *step)
{
    static const char *const steps[] = {
        "unescape_html",   "fix_c1_controls", "fix_latin_ligatures",     "fix_character_width",  "uncurl_quotes",
        "fix_line_breaks", "fix_surrogates",  "remove_terminal_escapes", "remove_control_chars", "normalize"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(step, steps[i]) == 0)
            return true;
    return false;
}

static bool needs_more(const json_t *item)
{
    const json_t *steps = json_object_get(item, "ftfy_steps");
    if (json_is_true(json_object_get(item, "needs_ftfy")) && json_array_size(steps) == 0)
        return true;
    for (size_t i = 0; i < json_array_size(steps); i++)
        if (!json_is_string(json_array_get(steps, i)) || !is_done_here(json_string_value(json_array_get(steps, i))))
            return true;
    return false;
}

/* Encodes text into a row as long as ids, one longer so that a surplus shows, and compares. */
static bool row_agrees(const struct tokenizer *tokenizer, const char *text, const json_t *ids, size_t context,
                       size_t expected_tokens)
{
    struct error error;
    size_t tokens = 0;
    int32_t *row = malloc(context * sizeof *row);
    bool same = row != NULL && tokenizer_encode(tokenizer, text, row, context, &tokens, &error) == OK &&
                tokens == expected_tokens;
    for (size_t i = 0; same && i < context; i++)
        same = row[i] == (i < json_array_size(ids) ? json_integer_value(json_array_get(ids, i)) : 0);
    free(row);
    return same;
}

/* The text without NUL, which no text of ours holds and the cleaning removes. The caller frees it. */
static char *item_text(const json_t *item)
{
    const json_t *value = json_object_get(item, "text");
    const char *bytes = json_string_value(value);
    size_t size = json_string_length(value), kept = 0;
    char *text = bytes != NULL ? malloc(size + 1) : NULL;
    for (size_t i = 0; text != NULL && i < size; i++)
        if (bytes[i] != 0)
            text[kept++] = bytes[i];
    if (text != NULL)
        text[kept] = 0;
    return text;
}

static bool text_agrees(const struct tokenizer *tokenizer, const char *text, const json_t *item)
{
    const json_t *ids = json_object_get(item, "ids"), *cut = json_object_get(item, "context77_end");
    size_t tokens = json_array_size(ids);
    if (text == NULL || tokens < 2)
        return false;
    return row_agrees(tokenizer, text, ids, tokens + 1, tokens) &&
           (cut == NULL || row_agrees(tokenizer, text, cut, CONTEXT, tokens));
}

static bool item_agrees(const struct tokenizer *tokenizer, const json_t *item)
{
    char *text = item_text(item);
    bool agrees = text_agrees(tokenizer, text, item);
    free(text);
    return agrees;
}

static void check_line(const struct tokenizer *tokenizer, const char *line, struct tally *tally)
{
    json_error_t problem;
    json_t *item = json_loads(line, JSON_ALLOW_NUL, &problem);
    bool half_surrogate = item == NULL && strstr(line, "\\ud") != NULL; /* no UTF-8 can hold it */
    tally->items++;
    if (half_surrogate || (item != NULL && needs_more(item))) {
        tally->skipped++;
    } else if (item == NULL || !item_agrees(tokenizer, item)) {
        if (tally->deviations++ < MOST_SHOWN)
            printf("tokenizer: line %zu deviates: %.200s\n", tally->items, line);
    }
    json_decref(item);
}

/* The folder's gzipped vocabulary, or itself (vocab.json and merges.txt), or the one beside the project. The caller
 * frees. */
static char *find_vocabulary(const char *folder)
{
    struct directory directory;
    struct error error;
    char *path = NULL;
    if (directory_list(&directory, folder, &error) != OK)
        return NULL;
    for (size_t i = 0; path == NULL && i < directory.count; i++) {
        size_t length = strlen(directory.names[i]);
        if (length > 7 && strcmp(directory.names[i] + length - 7, ".txt.gz") == 0)
            path = path_format("%s/%s", folder, directory.names[i]);
    }
    directory_free(&directory);
    char *merges = path_format("%s/merges.txt", folder);
    if (path == NULL && merges != NULL)
        path = strdup(file_exists(merges) ? folder : SHARED_FIXTURES "/data/tokenizer/bpe_simple_vocab_16e6.txt.gz");
    free(merges);
    return path;
}

static status check_folder(const char *folder, struct tally *tally, struct error *error)
{
    struct bytes lines;
    struct tokenizer *tokenizer = NULL;
    char *tokens = path_format("%s/tokens.jsonl", folder), *vocabulary = find_vocabulary(folder);
    status result = tokens != NULL && vocabulary != NULL
                        ? file_read(tokens, FILE_LIMIT, &lines, error)
                        : error_set(error, ERROR_IO, "%s: cannot list this folder", folder);
    if (result == OK) {
        result = tokenizer_open(&tokenizer, vocabulary, error);
        char *rest = (char *)lines.data, *line;
        while (result == OK && (line = strsep(&rest, "\n")) != NULL)
            if (*line != 0)
                check_line(tokenizer, line, tally);
        bytes_free(&lines);
    }
    tokenizer_close(tokenizer);
    free(tokens);
    free(vocabulary);
    return result;
}

int check_tokenizer(const char *folder)
{
    struct tally tally = {0};
    struct error error;
    if (check_folder(folder, &tally, &error) != OK) {
        printf("tokenizer: %s\n", error.message);
        return 1;
    }
    printf("tokenizer: %zu items, %zu deviations, %zu skipped (ftfy repairs that are left out)\n", tally.items,
           tally.deviations, tally.skipped);
    return tally.deviations > 0 || tally.items == tally.skipped;
}
