/* The two seeds of fuzz_sentencepiece: ids that the library gives (recorded with its Python module 0.2.3), rows as text towers get
 * them, and files that are none. check_sentencepiece.py compares thousands of texts where the module is installed. */
#include <string.h>

#include "core/file.h"
#include "models/tokenizer.h"
#include "models/tokenizer/sentencepiece.h"
#include "tests/models/device.h"

enum { MOST = 64 };

static const char unigram_path[] = FIXTURES "/../fuzz/corpus/sentencepiece/unigram.model",
                  pairs_path[] = FIXTURES "/../fuzz/corpus/sentencepiece/pairs.model";

static const struct expected {
    const char *path, *text;
    size_t count;
    int32_t ids[MOST];
} pieces_cases[] = {
    {unigram_path, "A photo", 3, {7, 2, 10}},
    {unigram_path,
     "\xef\xac\x81 \xef\xbc\xa1 x\xe3\x80\x80"
     "dog,  zz \xc3\xa9\xc2\xa0",
     14,
     {7, 6, 23, 7, 2, 7, 2, 16, 2, 7, 2, 7, 8, 2}},
    {unigram_path, "zzz", 2, {7, 2}},
    {unigram_path, "", 0, {0}},
    {unigram_path, "  ", 0, {0}},
    {pairs_path, "A photo of a_CAT!", 9, {71, 272, 269, 263, 101, 73, 71, 90, 39}},
    {pairs_path, "  <table>\xc3\xa9\xf0\x9f\x99\x82  dog", 10, {4, 5, 201, 175, 246, 165, 159, 136, 4, 277}},
};

TEST(unigrams_pairs_and_bytes_are_the_librarys)
{
    for (size_t i = 0; i < sizeof pieces_cases / sizeof *pieces_cases; i++) {
        const struct expected *c = &pieces_cases[i];
        struct sentencepiece *pieces;
        int32_t ids[MOST];
        struct token_row row = {.ids = ids, .most = MOST};
        must(sentencepiece_open(&pieces, c->path, &error));
        sentencepiece_encode(pieces, c->text, strlen(c->text), &row);
        assert_int_equal(row.count, c->count);
        assert_memory_equal(ids, c->ids, c->count * sizeof *ids);
        sentencepiece_close(pieces);
    }
}

/* The ids, the end, and padding up to the context: 1 of the unigrams and 0 of the pairs. Long texts keep their end. */
TEST(rows_are_those_of_the_text_towers)
{
    static const struct {
        struct expected row;
        size_t context;
    } cases[] = {{{unigram_path, "A photo of a_CAT!", 7, {3, 10, 4, 6, 3, 9, 1}}, MOST},
                 {{pairs_path, "A photo of a_CAT!", 9, {284, 272, 269, 263, 101, 288, 262, 39, 1}}, MOST},
                 {{unigram_path, "a photo of a cat", 7, {3, 10, 4, 1}}, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct expected *c = &cases[i].row;
        struct tokenizer *tokenizer;
        int32_t row[MOST];
        size_t tokens;
        must(tokenizer_open(&tokenizer, c->path, &error));
        assert_int_equal(tokenizer_start(tokenizer), -1);
        must(tokenizer_encode(tokenizer, c->text, row, cases[i].context, &tokens, &error));
        assert_int_equal(tokens, c->count);
        for (size_t k = 0; k < cases[i].context; k++)
            assert_int_equal(row[k], k < tokens ? c->ids[k] : c->path == unigram_path);
        tokenizer_close(tokenizer);
    }
}

TEST(other_files_are_refused)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *words;
    } cases[] = {
        {"", 0, "at most"},
        {"a b\n", 4, "is it a .model file"},
        {"\x0a\x03\x0a\x01", 4, "is it a .model file"}, /* a piece that is cut off */
        {"\x0a\x05\x0a\x01"
         "a\x18\x09",
         7, "damaged"}, /* of no known kind */
        {"\x0a\x03\x0a\x01"
         "a",
         5, "one piece for the unknown"},
        {"\x0a\x03\x0a\x01"
         "a\x0a\x03\x0a\x01"
         "a\x0a\x07\x0a\x01u\x18\x02\x18\x02\x12\x03\xd0\x02\x00",
         24, "twice"},
        {"\x0a\x03\x0a\x01"
         "a\x12\x02\x18\x04",
         9, "unigram or byte-pair"}, /* characters */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *tokenizer;
        test_write_file("x.model", cases[i].bytes, cases[i].size);
        must_refuse(tokenizer_open(&tokenizer, "x.model", &error), ERROR_FORMAT, cases[i].words, "x.model");
        assert_null(tokenizer);
    }
}
