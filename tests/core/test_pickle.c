/* Pickles: what they become, and what is refused. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/pickle.h"
#include "tests/test.h"

static const struct pickle_global globals[] = {{"shop", "dict", PICKLE_DICT},
                                               {"shop", "Thing", PICKLE_CALL},
                                               {"shop", "Type", PICKLE_NONE},
                                               {"open", NULL, PICKLE_CALL}};
static const struct pickle_rules rules = {.globals = globals,
                                          .count = sizeof globals / sizeof *globals,
                                          .needs = "a shop needs things only"},
                                 with_ids = {.globals = globals,
                                             .count = sizeof globals / sizeof *globals,
                                             .persistent = true,
                                             .needs = ""};

static const struct pickle_value *parse(struct pickle **pickle, const char *content, size_t size)
{
    assert_ok(pickle_parse(pickle, "file", content, size, &with_ids, &error));
    return pickle_root(*pickle);
}
#define PARSE(pickle, content) parse(pickle, "\x80\x02" content, sizeof content + 1)

TEST(test_numbers)
{
    static const struct {
        const char *bytes;
        size_t size;
        int64_t value;
    } numbers[] = {{"K\xff.", 3, 255},
                   {"M\x00\x01.", 4, 256},
                   {"J\xff\xff\xff\xff.", 6, -1},
                   {"\x8a\x00.", 3, 0},
                   {"\x8a\x02\xff\x00.", 5, 255},
                   {"\x8a\x01\xff.", 4, -1},
                   {"\x8a\x05\x00\x00\x00\x00\x01.", 8, (int64_t)1 << 32},
                   {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", 11, INT64_MAX},
                   {"\x88.", 2, 1}};
    struct pickle *pickle;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct pickle_value *value = parse(&pickle, numbers[i].bytes, numbers[i].size);
        assert_int_equal(value->kind, PICKLE_INTEGER);
        assert_true(value->integer == numbers[i].value);
        pickle_close(pickle);
    }
    const struct pickle_value *real = PARSE(&pickle, "G\x3f\xf8\x00\x00\x00\x00\x00\x00.");
    assert_int_equal(real->kind, PICKLE_REAL);
    assert_true(real->real == 1.5);
    pickle_close(pickle);
}

/* dict() with one item and a state of its own; a Thing made of 7 by a call and one by its class. */
TEST(test_calls)
{
    struct pickle *pickle;
    const struct pickle_value *root = PARSE(&pickle, "cshop\ndict\n)RU\x01"
                                                     "aK\x01s}b.");
    assert_int_equal(root->kind, PICKLE_DICT);
    assert_int_equal(pickle_find(root, "a")->integer, 1);
    assert_null(pickle_find(root, "b"));
    pickle_close(pickle);
    root = PARSE(&pickle, "cshop\nThing\nK\x07\x85R.");
    assert_true(pickle_calls(root, "Thing"));
    assert_int_equal(root->call.arguments->list.items[0]->integer, 7);
    assert_null(root->call.state);
    pickle_close(pickle);
    root = PARSE(&pickle, "copen.house\nDoor\n)\x81}U\x01"
                          "aK\x05sb.");
    assert_false(pickle_calls(root, "Door")); /* a module's classes have no names here */
    assert_int_equal(pickle_find(root->call.state, "a")->integer, 5);
    pickle_close(pickle);
    root = PARSE(&pickle, "U\x03keyQ.");
    assert_int_equal(root->kind, PICKLE_PERSISTENT);
    assert_true(pickle_is_text(root->id, "key"));
    assert_false(pickle_is_text(root->id, "ke"));
    pickle_close(pickle);
}

TEST(test_refuses)
{
#define REFUSAL(content, words)                                                                                        \
    {                                                                                                                  \
        "\x80\x02" content, sizeof content + 1, words                                                                  \
    }
    static const struct {
        const char *content;
        size_t size;
        const char *words;
    } cases[] = {REFUSAL("cos\nsystem\n(U\x02lstR.", "file: asks for os.system; refused: a shop needs things only"),
                 REFUSAL("cshop\nThings\n.", "shop.Things"),
                 REFUSAL("copening\nDoor\n.", "opening.Door"),
                 REFUSAL("cshop\nType\n)R.", "cannot be called"),
                 REFUSAL("K\x01)R.", "cannot be called"),
                 REFUSAL("cshop\ndict\nK\x01\x85R.", "other than its items"),
                 REFUSAL("ios\nsystem\n.", "opcode 0x69"),
                 REFUSAL("U\1aQ.", "outside the pickle"),
                 REFUSAL("\x8a\t123456789.", "64 bits"),
                 REFUSAL("\x8a\00412", "ends early"),
                 REFUSAL("G1234", "ends early"),
                 REFUSAL("K\x01}b.", "has none"),
                 REFUSAL("}h\x05.", "recalls"),
                 REFUSAL("}r\xff\xff\xff\x7f.", "room"),
                 REFUSAL("}a.", "not there"),
                 REFUSAL("(u.", "no dictionary"),
                 REFUSAL("}(K\x01u.", "no dictionary"),
                 REFUSAL("T\xff\xff\xff\177a.", "inside a string"),
                 REFUSAL("}}.", "one value"),
                 REFUSAL("}", "ends early"),
                 {"\x80\x04}.", 4, "protocol 2"},
                 {"", 0, "ends early"}};
#undef REFUSAL
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pickle *pickle;
        assert_fails(pickle_parse(&pickle, "file", cases[i].content, cases[i].size, &rules, &error), ERROR_FORMAT,
                     cases[i].words);
        assert_null(pickle);
    }
}

/* The memory that is in use more while content is read, or until it is refused, is a multiple of its size. */
static void expect_modest(const uint8_t *content, size_t size, status expected)
{
    struct pickle *pickle;
    size_t before = mallinfo2().arena + mallinfo2().hblkhd;
    assert_int_equal(pickle_parse(&pickle, "file", content, size, &rules, NULL), expected);
    size_t now = mallinfo2().arena + mallinfo2().hblkhd;
    assert_true(now <= before + 32 * size + (1 << 20));
    pickle_close(pickle);
    malloc_trim(0);
}

/* Nested tuples, lists of lists, a memo with one far entry; and what Python writes: a list of small numbers. */
TEST(test_memory)
{
    enum { SIZE = 3000000, BATCH = 2000 };
    static const char far[] = "\x80\x02}r\xff\xff\x3f\x00.";
    uint8_t *content = malloc(SIZE);
    memset(content, 0x85, SIZE);
    memcpy(content, "\x80\x02N", 3);
    content[SIZE - 1] = '.';
    expect_modest(content, SIZE, ERROR_FORMAT);
    for (size_t i = 3; i + 1 < SIZE; i++)
        content[i] = i % BATCH == 3 ? '(' : i % BATCH == 2 || i + 2 == SIZE ? 'e' : ']';
    content[2] = ']';
    expect_modest(content, SIZE, ERROR_FORMAT);
    expect_modest((const uint8_t *)far, sizeof far - 1, ERROR_FORMAT);
    for (size_t i = 3; i + 1 < SIZE; i++)
        content[i] = i % BATCH == 3 ? '(' : i % BATCH == 2 || i + 2 == SIZE ? 'e' : i % 2 == 0 ? 'K' : 1;
    content[SIZE - 3] = 'N';
    expect_modest(content, SIZE, OK);
    free(content);
}
