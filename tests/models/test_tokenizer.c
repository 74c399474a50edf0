/* The tokenizer against itself with the small vocabulary that ships; against OpenAI's ids it is replayed by replay_data. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/file.h"
#include "core/text.h"
#include "core/threads.h"
#include "models/tokenizer.h"
#include "models/tokenizer/clean.h"
#include "models/tokenizer/vocabulary.h"
#include "tests/datasets/scratch.h"
#include "tests/models/device.h"

enum { CONTEXT = 16 };

static const char vocabulary_file[] = FIXTURES "/../../models/weights/mini-vocabulary.txt";
static const char *const captions[] = {"a photo of a cat.", "a photo of the cat", "A PHOTO of two hats!",
                                       "the hat of the cat, 1 of 2", "cats and hats"};
enum { CAPTIONS = sizeof captions / sizeof *captions };

static struct scratch scratch;
static struct bytes vocabulary;
static struct tokenizer *shipped; /* of that vocabulary */

static struct tokenizer *open_tokenizer(const char *path)
{
    struct tokenizer *tokenizer;
    must(tokenizer_open(&tokenizer, path, &error));
    return tokenizer;
}

/* A row of CONTEXT tokens, and how many there are. */
static size_t encode(const struct tokenizer *tokenizer, const char *text, int32_t *row)
{
    size_t tokens;
    must(tokenizer_encode(tokenizer, text, row, CONTEXT, &tokens, &error));
    return tokens;
}

static int set_up(void **state)
{
    scratch_create(&scratch);
    must(file_read(vocabulary_file, FILE_LIMIT, &vocabulary, &error));
    shipped = open_tokenizer(vocabulary_file);
    return 0;
}

static int tear_down(void **state)
{
    tokenizer_close(shipped);
    bytes_free(&vocabulary);
    scratch_remove(&scratch);
    return 0;
}

TEST(texts_are_cleaned)
{
    static const char *const cases[][2] = {
        {"  A \t photo\nof  ", "a photo of"},
        {"", ""},
        {" \xc2\xa0\xe3\x80\x80 ", ""},
        {"it\u2019s \u201cquoted\u201d", "it's \"quoted\""},
        {"\ufb01sh \ufb03 \ufb05 \u01c4 \u0132 \u0149", "fish ffi \u017ft d\u017e ij 'n"},
        {"\uff21\uff22\u3000\uff11", "ab 1"},
        {"\uff76\uff9e", "\u30ac"},
        {"cafe\u0301", "caf\u00e9"},
        {"bell\a \x1b[31mred\x1b[0m \x1b[", "bell red ["},
        {"\xc2\x85 \xc2\x91", "\u2026 '"},
        {"&lt;b&gt; &amp;amp;amp;amp;lt;", "<b> <"},
        {"<b> &amp;amp;amp;lt;", "<b> &amp;lt;"},
        {"&EACUTE; &eacute &notit; &notin; &NOSUCH; &; &", "\u00e9 \u00e9 \u00acit; \u2209 &nosuch; &; &"},
        {"&#65;&#x41;&#128;&#0;&#xd800;&#1114112;x&#1;y &#; &#x; &#65", "aa\u20ac\ufffd\ufffd\ufffdxy &#; &#x; a"},
        {"\u0130stanbul", "i\u0307stanbul"},
        {"\u039f\u03a3 \u039f\u03a3. \u03a3 \u03a3\u039f \u039f\u03a3'\u0391",
         "\u03bf\u03c2 \u03bf\u03c2. \u03c3 \u03c3\u03bf \u03bf\u03c3'\u03b1"},
        {"zero\u200bwidth", "zero\u200bwidth"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text clean = {0};
        must(tokenizer_clean(&clean, cases[i][0], &error));
        assert_string_equal(clean.data != NULL ? clean.data : "", cases[i][1]);
        text_free(&clean);
    }
}

TEST(words_that_were_seen_are_one_token)
{
    int32_t row[CONTEXT], start = tokenizer_start(shipped), end = tokenizer_end(shipped);
    assert_int_equal(start + 1, end);
    assert_int_equal((size_t)end + 1, tokenizer_vocabulary(shipped));
    assert_int_equal(encode(shipped, "Of photo  of THE type", row), 7);
    assert_int_equal(row[0], start);
    assert_int_equal(row[6], end);
    for (size_t i = 1; i < 6; i++)
        assert_true(row[i] >= 256 && row[i] < start);
    for (size_t i = 7; i < CONTEXT; i++)
        assert_int_equal(row[i], 0);

    /* the literal words become special tokens */
    assert_int_equal(encode(shipped, "<start_of_text><END_of_text>", row), 4);
    assert_true(row[1] == start && row[2] == end);
    size_t tokens = encode(shipped, "!<end_of_text>", row);
    for (size_t i = 1; i + 1 < tokens && i < CONTEXT - 1; i++)
        assert_true(row[i] < start);
}

TEST(long_texts_keep_their_end)
{
    int32_t whole[CONTEXT], cut[4];
    size_t tokens;
    size_t all = encode(shipped, "a photo of the type", whole);
    assert_int_equal(all, 7);
    must(tokenizer_encode(shipped, "a photo of the type", cut, 4, &tokens, &error));
    assert_int_equal(tokens, all);
    assert_memory_equal(cut, whole, 3 * sizeof *cut);
    assert_int_equal(cut[3], tokenizer_end(shipped));
    must(tokenizer_encode(shipped, "", cut, 2, &tokens, &error));
    assert_int_equal(tokens, 2);
    must_refuse(tokenizer_encode(shipped, "", cut, 1, &tokens, &error), ERROR_ARGUMENT, "");
}

TEST(unusable_texts_are_refused)
{
    int32_t row[CONTEXT];
    size_t tokens;
    static const char *const garbled[] = {"ab\xff", "ab\xc3", "ab\xed\xa0\x80", "ab\xc0\x80"};
    for (size_t i = 0; i < 4; i++)
        must_refuse(tokenizer_encode(shipped, garbled[i], row, CONTEXT, &tokens, &error), ERROR_ARGUMENT, "byte 2");
    char *longest = malloc(TOKENIZER_TEXT_LIMIT + 2);
    memset(longest, 'a', TOKENIZER_TEXT_LIMIT + 1);
    longest[TOKENIZER_TEXT_LIMIT + 1] = 0;
    must_refuse(tokenizer_encode(shipped, longest, row, CONTEXT, &tokens, &error), ERROR_ARGUMENT, "65537");
    must(tokenizer_encode(shipped, longest + 1, row, CONTEXT, &tokens, &error));
    free(longest);
}

/* Rewrites the vocabulary as vocab.json and merges.txt, with every id below the start token turned around. */
static void write_huggingface(int32_t start)
{
    const char *merges_text = (const char *)vocabulary.data;
    json_t *names = json_object();
    size_t merges = 0;
    for (unsigned byte = 0; byte < 512; byte++) {
        char name[BYTE_NAME], whole[2 * BYTE_NAME];
        vocabulary_byte_name(byte % 256, name);
        snprintf(whole, sizeof whole, "%s%s", name, byte < 256 ? "" : "</w>");
        int32_t id = vocabulary_byte_id(byte % 256) + (byte < 256 ? 0 : 256);
        json_object_set_new(names, whole, json_integer(start - 1 - id));
    }
    char *copy = strdup(strchr(merges_text, '\n') + 1), *rest = copy, *line;
    while ((line = strsep(&rest, "\n")) != NULL && *line != 0) {
        char *space = strchr(line, ' ');
        memmove(space, space + 1, strlen(space));
        json_object_set_new(names, line, json_integer(start - 1 - 512 - (json_int_t)merges++));
    }
    json_object_set_new(names, "<|startoftext|>", json_integer(start));
    json_object_set_new(names, "<|endoftext|>", json_integer(start + 1));
    assert_int_equal(json_dump_file(names, scratch_file(&scratch, "vocab.json"), JSON_COMPACT), 0);
    scratch_write_text(&scratch, "merges.txt", merges_text);
    json_decref(names);
    free(copy);
}

/* vocab.json and merges.txt in one; lists: merges as newer files have them, and start and end beside the vocabulary. */
static void write_tokenizer_json(const char *name, bool lists)
{
    json_error_t problem;
    json_t *names = json_load_file(scratch_file(&scratch, "vocab.json"), 0, &problem), *merges = json_array(),
           *added = json_array();
    static const char *const special[] = {"<|startoftext|>", "<|endoftext|>"};
    for (size_t i = 0; i < 2; i++) {
        json_array_append_new(added,
                              json_pack("{s:O, s:s}", "id", json_object_get(names, special[i]), "content", special[i]));
        if (lists)
            json_object_del(names, special[i]);
    }
    char *copy = strdup(strchr((const char *)vocabulary.data, '\n') + 1), *rest = copy, *line;
    while ((line = strsep(&rest, "\n")) != NULL && *line != 0) {
        char *space = strchr(line, ' ');
        json_array_append_new(merges,
                              lists ? json_pack("[s#, s]", line, (int)(space - line), space + 1) : json_string(line));
    }
    json_t *root = json_pack("{s:s, s:o, s:{s:s, s:o, s:o}}", "version", "1.0", "added_tokens", added, "model", "type",
                             "BPE", "vocab", names, "merges", merges);
    assert_non_null(root);
    assert_int_equal(json_dump_file(root, scratch_file(&scratch, name), 0), 0);
    json_decref(root);
    free(copy);
}

TEST(all_file_formats_agree)
{
    static const char *const files[] = {"packed.txt.gz",  "",           "vocab.json",
                                        "merges.txt", /* the first is not turned around */
                                        "tokenizer.json", "lists.json", "folder"};
    int32_t start = tokenizer_start(shipped);
    gzFile packed = gzopen(scratch_file(&scratch, files[0]), "wb");
    assert_int_equal(gzwrite(packed, vocabulary.data, (unsigned)vocabulary.size), (int)vocabulary.size);
    assert_int_equal(gzclose(packed), Z_OK);
    write_huggingface(start);
    write_tokenizer_json("tokenizer.json", false);
    write_tokenizer_json("lists.json", true);
    scratch_write_text(&scratch, "folder/README.md", "");
    write_tokenizer_json("folder/tokenizer.json", true);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct tokenizer *other = open_tokenizer(i == 1 ? scratch.path : scratch_file(&scratch, files[i]));
        assert_int_equal(tokenizer_vocabulary(other), tokenizer_vocabulary(shipped));
        for (size_t j = 0; j < CAPTIONS; j++) {
            int32_t expected[CONTEXT], row[CONTEXT];
            size_t tokens = encode(shipped, captions[j], expected);
            assert_int_equal(encode(other, captions[j], row), tokens);
            tokens = tokens < CONTEXT ? tokens : CONTEXT;
            for (size_t k = 1; k + 1 < tokens && i > 0; k++)
                expected[k] = start - 1 - expected[k];
            assert_memory_equal(row, expected, sizeof row);
        }
        tokenizer_close(other);
    }
}

static void expect_refused(const char *path, const char *word)
{
    struct tokenizer *tokenizer;
    status result = tokenizer_open(&tokenizer, path, &error);
    must_refuse(result, result == OK ? ERROR_FORMAT : result, word);
    assert_null(tokenizer);
}

TEST(damaged_merge_files_are_refused)
{
    static const char *const cases[][2] = {
        {"", "no merge"},
        {"#version: 0.2\n", "no merge"},
        {"#version: 0.2\na b\nab\n", ":3: expected two symbols"},
        {"#version: 0.2\na  b\n", ":2: expected two symbols"},
        {"#version: 0.2\na b c\n", ":2: expected two symbols"},
        {"#version: 0.2\na b\nab zz\n", ":3: 'zz'"},
        {"\x1f\x8b broken", "gzip"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "git lfs pull"},
        {"\n<!DOCTYPE html><html>", "a web page"},
        {" {\"model\": {\"type\": \"Unigram\", \"vocab\": []}}", "model.type Unigram"},
        {"{\"model\": {\"vocab\": {}, \"merges\": []}}", "every byte"},
        {"{\"model\": ", "expected JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_write_text(&scratch, "damaged.txt", cases[i][0]);
        expect_refused(scratch_file(&scratch, "damaged.txt"), cases[i][1]);
    }
    expect_refused("absent.txt.gz", "absent.txt.gz");
}

TEST(damaged_json_vocabularies_are_refused)
{
    static const char *const cases[][2] = {
        {"{", "JSON"},
        {"[]", "JSON object"},
        {"{\"a\":-1}", "'a'"},
        {"{\"a\":1.5}", "'a'"},
        {"{\"a\":99999999}", "'a'"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{\"a\":1}", "every byte"},
    };
    write_huggingface(tokenizer_start(shipped));
    scratch_write_text(&scratch, "merges.txt", "#version: 0.2\nq q\n");
    expect_refused(scratch.path, "no id for 'qq'");
    write_huggingface(tokenizer_start(shipped) + 5);
    assert_int_equal(unlink(scratch_file(&scratch, "merges.txt")), 0);
    expect_refused(scratch.path, "merges.txt");
    scratch_write_text(&scratch, "merges.txt", "#version: 0.2\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_write_text(&scratch, "vocab.json", cases[i][0]);
        expect_refused(scratch.path, cases[i][1]);
    }
}

static void encode_job(void *rows, size_t job, size_t worker)
{
    int32_t *row = (int32_t *)rows + job * CONTEXT;
    size_t tokens;
    if (tokenizer_encode(shipped, captions[job % CAPTIONS], row, CONTEXT, &tokens, NULL) != OK)
        row[0] = -1;
}

TEST(threads_share_a_tokenizer)
{
    enum { JOBS = 64 };
    int32_t rows[JOBS][CONTEXT], row[CONTEXT];
    struct threads *threads;
    must(threads_create(&threads, 4, &error));
    threads_run(threads, JOBS, encode_job, rows);
    threads_destroy(threads);
    for (size_t i = 0; i < JOBS; i++) {
        encode(shipped, captions[i % CAPTIONS], row);
        assert_memory_equal(rows[i], row, sizeof row);
    }
}

TEST_GROUP(set_up, tear_down)
