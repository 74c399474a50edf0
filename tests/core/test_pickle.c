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
    struct error error;
    assert_int_equal(pickle_parse(pickle, "file", content, size, &with_ids, &error), OK);
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

static void expect_refused(const char *content, size_t size, const char *words)
{
    struct pickle *pickle;
    struct error error;
    assert_int_equal(pickle_parse(&pickle, "file", content, size, &rules, &error), ERROR_FORMAT);
    assert_null(pickle);
    assert_non_null(strstr(error.message, "file"));
    assert_non_null(strstr(error.message, words));
}
#define EXPECT_REFUSED(content, words) expect_refused(content, sizeof content - 1, words)

TEST(test_refuses)
{
    EXPECT_REFUSED("\x80\x02"
                   "cos\nsystem\n(U\x02lstR.",
                   "os.system; refused: a shop needs things only");
    EXPECT_REFUSED("\x80\x02"
                   "cshop\nThings\n.",
                   "shop.Things");
    EXPECT_REFUSED("\x80\x02"
                   "copening\nDoor\n.",
                   "opening.Door");
    EXPECT_REFUSED("\x80\x02"
                   "cshop\nType\n)R.",
                   "cannot be called");
    EXPECT_REFUSED("\x80\x02"
                   "K\x01)R.",
                   "cannot be called");
    EXPECT_REFUSED("\x80\x02"
                   "cshop\ndict\nK\x01\x85R.",
                   "other than its items");
    EXPECT_REFUSED("\x80\x02"
                   "ios\nsystem\n.",
                   "opcode 0x69");
    EXPECT_REFUSED("\x80\x02U\x01"
                   "aQ.",
                   "outside the pickle");
    EXPECT_REFUSED("\x80\x02\x8a\x09"
                   "123456789.",
                   "64 bits");
    EXPECT_REFUSED("\x80\x02\x8a\x04"
                   "12",
                   "ends early");
    EXPECT_REFUSED("\x80\x02G1234", "ends early");
    EXPECT_REFUSED("\x80\x02K\x01}b.", "has none");
    EXPECT_REFUSED("\x80\x04}.", "protocol 2");
    EXPECT_REFUSED("\x80\x02}h\x05.", "recalls");
    EXPECT_REFUSED("\x80\x02}r\xff\xff\xff\x7f.", "room");
    EXPECT_REFUSED("\x80\x02}a.", "not there");
    EXPECT_REFUSED("\x80\x02(u.", "no dictionary");
    EXPECT_REFUSED("\x80\x02}(K\x01u.", "no dictionary");
    EXPECT_REFUSED("\x80\x02T\xff\xff\xff\x7f"
                   "a.",
                   "inside a string");
    EXPECT_REFUSED("\x80\x02}}.", "one value");
    EXPECT_REFUSED("\x80\x02}", "ends early");
    EXPECT_REFUSED("", "ends early");
}

/* The memory that is in use more while content is read, or until it is refused, is a multiple of its size. */
static void expect_modest(const uint8_t *content, size_t size, status expected)
{
    struct pickle *pickle;
    struct error error;
    size_t before = mallinfo2().arena + mallinfo2().hblkhd;
    assert_int_equal(pickle_parse(&pickle, "file", content, size, &rules, &error), expected);
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
