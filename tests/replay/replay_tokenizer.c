/* tokenizer/: the ids of tokens.jsonl, with the vocabulary that lies there, or elsewhere the one of the fixtures beside the project. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "models/tokenizer.h"
#include "tests/replay/replay_data.h"

enum { CONTEXT = 77 };

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

/* Repairs of ftfy that are left out. */
static bool needs_more(const json_t *item)
{
    const json_t *steps = json_object_get(item, "ftfy_steps");
    bool more = json_is_true(json_object_get(item, "needs_ftfy")) && json_array_size(steps) == 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const char *step = json_string_value(json_array_get(steps, i));
        more = more || step == NULL || !is_done_here(step);
    }
    return more;
}

/* Encodes text into a row as long as ids, one longer so that a surplus shows, and compares. */
static bool row_agrees(const struct tokenizer *tokenizer, const char *text, const json_t *ids, size_t context,
                       size_t expected_tokens)
{
    struct error error;
    size_t tokens = 0;
    int32_t *row = xmalloc(context * sizeof *row);
    bool same = tokenizer_encode(tokenizer, text, row, context, &tokens, &error) == OK && tokens == expected_tokens;
    for (size_t i = 0; same && i < context; i++)
        same = row[i] == (i < json_array_size(ids) ? json_integer_value(json_array_get(ids, i)) : 0);
    free(row);
    return same;
}

/* The text goes without NUL, which no text of ours holds and the cleaning removes. */
static bool item_agrees(const struct tokenizer *tokenizer, const json_t *item)
{
    const json_t *value = json_object_get(item, "text"), *ids = json_object_get(item, "ids"),
                 *cut = json_object_get(item, "context77_end");
    const char *bytes = json_string_value(value);
    size_t tokens = json_array_size(ids), kept = 0;
    char *text = xcalloc(json_string_length(value) + 1, 1);
    for (size_t i = 0; i < json_string_length(value); i++)
        if (bytes[i] != 0)
            text[kept++] = bytes[i];
    bool agrees = bytes != NULL && tokens >= 2 && row_agrees(tokenizer, text, ids, tokens + 1, tokens) &&
                  (cut == NULL || row_agrees(tokenizer, text, cut, CONTEXT, tokens));
    free(text);
    return agrees;
}

/* Counts what was compared, or skipped. */
static void check_line(struct report *report, const struct tokenizer *tokenizer, const char *line, size_t counts[2])
{
    json_error_t problem;
    json_t *item = json_loads(line, JSON_ALLOW_NUL, &problem);
    bool half_surrogate = item == NULL && strstr(line, "\\ud") != NULL; /* no UTF-8 can hold it */
    bool skipped = half_surrogate || (item != NULL && needs_more(item));
    counts[skipped]++;
    if (!skipped)
        report_exact(report, "tokenizer", item != NULL && item_agrees(tokenizer, item), "%.100s", line);
    json_decref(item);
}

/* The folder's gzipped vocabulary, or itself (vocab.json and merges.txt), or the one beside the project. The caller
 * frees. */
static char *find_vocabulary(const char *folder)
{
    struct directory directory;
    char *path = NULL;
    must(directory_list(&directory, folder, &error));
    for (size_t i = 0; path == NULL && i < directory.count; i++)
        if (ends_with(directory.names[i], ".txt.gz"))
            path = path_format("%s/%s", folder, directory.names[i]);
    directory_free(&directory);
    char *merges = path_format("%s/merges.txt", folder);
    if (path == NULL)
        path = xstrdup(file_exists(merges) ? folder : SHARED_FIXTURES "/data/tokenizer/bpe_simple_vocab_16e6.txt.gz");
    free(merges);
    return path;
}

static void check_lines(struct report *report, const char *folder, const char *path)
{
    struct bytes lines;
    struct tokenizer *tokenizer;
    size_t counts[2] = {0};
    char *vocabulary = find_vocabulary(folder), *line;
    must(file_read(path, FILE_LIMIT, &lines, &error));
    must(tokenizer_open(&tokenizer, vocabulary, &error));
    for (char *rest = (char *)lines.data; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != 0)
            check_line(report, tokenizer, line, counts);
    report_exact(report, "tokenizer", counts[false] > 0, "nothing was compared");
    printf("tokenizer: %zu skipped (ftfy repairs that are left out)\n", counts[true]);
    bytes_free(&lines);
    tokenizer_close(tokenizer);
    free(vocabulary);
}

void part_tokenizer(struct report *report, const char *folder)
{
    char *own = path_format("%s/tokenizer", folder), *tokens = path_format("%s/tokens.jsonl", own);
    if (file_exists(tokens))
        check_lines(report, own, tokens);
    else
        printf("tokenizer: skipped: not in this folder\n");
    free(own);
    free(tokens);
}
