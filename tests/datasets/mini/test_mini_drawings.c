#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/mini/suite.h"
#include "harness/pretrain/captions.h"

static uint64_t checksum(uint64_t sum, const void *data, size_t size) /* FNV-1a */
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return sum;
}
static const uint64_t checksum_start = 0xcbf29ce484222325u;

struct captioned {
    uint8_t pixels[CAPTIONED_PIXELS];
    char caption[CAPTION_CAPACITY];
};

static void draw(struct captioned *drawing, uint64_t seed, uint64_t index, enum captioned_level level)
{
    struct error error = {0};
    status result =
        captioned_drawing(seed, index, level, drawing->pixels, drawing->caption, sizeof drawing->caption, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(result, OK);
}

/* Same bits with any compiler, flags and library: a change here changes the weights that ship. */
static void captioned_drawings_have_known_checksums(void **state)
{
    (void)state;
    static const uint64_t expected[2] = {0x8e318f15e63930d3u, 0x3d5364e7971312b9u};
    for (int level = 0; level < 2; level++) {
        uint64_t sum = checksum_start;
        for (uint64_t index = 0; index < 300; index++) {
            struct captioned drawing;
            draw(&drawing, 1, index, (enum captioned_level)level);
            sum = checksum(sum, drawing.pixels, sizeof drawing.pixels);
            sum = checksum(sum, drawing.caption, strlen(drawing.caption));
        }
        assert_int_equal(sum, expected[level]);
    }
}

static void suite_drawings_have_known_checksums(void **state)
{
    (void)state;
    uint64_t sum = checksum_start;
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int i = 0; suite_domains[k].draw != NULL && i < 40; i++) {
            uint8_t pixels[SUITE_PIXELS];
            suite_drawing(&suite_domains[k], 1, (uint64_t)i, i % suite_domains[k].classes, pixels);
            sum = checksum(sum, pixels, 3 * (size_t)(suite_domains[k].side * suite_domains[k].side));
        }
    assert_int_equal(sum, 0xa8560b6197e028e0u);
}

static void drawings_depend_on_seed_and_index(void **state)
{
    (void)state;
    struct captioned one, other;
    draw(&one, 1, 7, CAPTIONED_PLAIN);
    draw(&other, 2, 7, CAPTIONED_PLAIN);
    assert_memory_not_equal(one.pixels, other.pixels, sizeof one.pixels);
    draw(&other, 1, 7 + (1ull << 32), CAPTIONED_PLAIN);
    assert_memory_not_equal(one.pixels, other.pixels, sizeof one.pixels);
    draw(&other, 1, 7, CAPTIONED_HARDER);
    assert_memory_not_equal(one.pixels, other.pixels, sizeof one.pixels);
}

static void captions_are_clean_and_fit(void **state)
{
    (void)state;
    for (uint64_t index = 0; index < 3000; index++) {
        struct captioned drawing;
        draw(&drawing, 3, index, index % 2 == 0 ? CAPTIONED_PLAIN : CAPTIONED_HARDER);
        size_t size = strlen(drawing.caption);
        assert_true(size > 1);
        assert_null(strstr(drawing.caption, "{}"));
        assert_null(strstr(drawing.caption, "  "));
        for (size_t i = 0; i < size; i++)
            assert_int_equal(drawing.caption[i], tolower((unsigned char)drawing.caption[i]));
    }
}

static void too_small_a_buffer_is_an_error(void **state)
{
    (void)state;
    uint8_t pixels[CAPTIONED_PIXELS];
    char caption[4] = "abc";
    struct error error = {0};
    assert_int_equal(captioned_drawing(1, 1, CAPTIONED_PLAIN, pixels, caption, 3, &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "found 3"));
    assert_int_equal(caption[3], 0);
}

/* The distinct words of many captions. */
struct words {
    size_t count;
    char *list[1000];
};

static bool words_hold(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->list[i], word) == 0)
            return true;
    return false;
}

static void words_collect(struct words *words, char *caption)
{
    char *rest = NULL;
    for (char *word = strtok_r(caption, " .,:!\"", &rest); word != NULL; word = strtok_r(NULL, " .,:!\"", &rest))
        if (!words_hold(words, word)) {
            assert_true(words->count < sizeof words->list / sizeof words->list[0]);
            words->list[words->count++] = strdup(word);
        }
}

static void every_class_name_is_made_of_caption_words(void **state)
{
    (void)state;
    struct words words = {0};
    for (uint64_t index = 0; index < 6000; index++) {
        struct captioned drawing;
        draw(&drawing, 4, index, CAPTIONED_PLAIN);
        words_collect(&words, drawing.caption);
    }
    assert_in_range(words.count, 200, 400);
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int i = 0; i < suite_domains[k].classes; i++) {
            char name[64], *rest = NULL;
            assert_true(strlen(suite_domains[k].class_names[i]) < sizeof name);
            strcpy(name, suite_domains[k].class_names[i]);
            for (char *c = name; *c != '\0'; c++)
                *c = *c == '_' ? ' ' : (char)tolower((unsigned char)*c);
            for (char *word = strtok_r(name, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
                if (!words_hold(&words, word))
                    fail_msg("%s: no caption says \"%s\"", suite_domains[k].name, word);
        }
    for (size_t i = 0; i < words.count; i++)
        free(words.list[i]);
}

/* The share of values that differ clearly. */
static double difference(const struct domain *domain, const uint8_t *one, const uint8_t *other)
{
    size_t size = 3 * (size_t)(domain->side * domain->side), changed = 0;
    for (size_t i = 0; i < size; i++)
        changed += abs(one[i] - other[i]) > 12;
    return (double)changed / (double)size;
}

static void every_class_varies(void **state)
{
    (void)state;
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int label = 0; suite_domains[k].draw != NULL && label < suite_domains[k].classes; label++) {
            uint8_t one[SUITE_PIXELS], other[SUITE_PIXELS];
            suite_drawing(&suite_domains[k], 9, 1, label, one);
            suite_drawing(&suite_domains[k], 9, 2, label, other);
            assert_true(difference(&suite_domains[k], one, other) > 0.05);
        }
}

/* The same index has the same background and place for any class, so what differs is the subject. */
static void classes_of_a_domain_differ(void **state)
{
    (void)state;
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        const struct domain *domain = &suite_domains[k];
        for (int label = 1; domain->draw != NULL && label < domain->classes; label++)
            for (int other = 0; other < label; other++) {
                uint8_t one[SUITE_PIXELS], two[SUITE_PIXELS];
                suite_drawing(domain, 9, 5, label, one);
                suite_drawing(domain, 9, 5, other, two);
                if (difference(domain, one, two) < 0.03)
                    fail_msg("%s: %s looks like %s", domain->name, domain->class_names[label],
                             domain->class_names[other]);
            }
    }
}

static int compare_sums(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void suite_and_pretraining_share_no_picture(void **state)
{
    (void)state;
    enum { CAPTIONED = 2000, PER_DOMAIN = 100 };
    static uint64_t captioned[CAPTIONED];
    for (uint64_t i = 0; i < CAPTIONED; i++) {
        struct captioned drawing;
        draw(&drawing, 1, i, i % 2 == 0 ? CAPTIONED_PLAIN : CAPTIONED_HARDER);
        captioned[i] = checksum(checksum_start, drawing.pixels, sizeof drawing.pixels);
    }
    qsort(captioned, CAPTIONED, sizeof captioned[0], compare_sums);
    for (int i = 1; i < CAPTIONED; i++)
        assert_true(captioned[i] != captioned[i - 1]);
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int i = 0; suite_domains[k].draw != NULL && i < PER_DOMAIN; i++) {
            uint8_t pixels[SUITE_PIXELS];
            suite_drawing(&suite_domains[k], 1, (uint64_t)i, i % suite_domains[k].classes, pixels);
            uint64_t sum =
                checksum(checksum_start, pixels, 3 * (size_t)(suite_domains[k].side * suite_domains[k].side));
            assert_null(bsearch(&sum, captioned, CAPTIONED, sizeof sum, compare_sums));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captioned_drawings_have_known_checksums),
        cmocka_unit_test(suite_drawings_have_known_checksums),
        cmocka_unit_test(drawings_depend_on_seed_and_index),
        cmocka_unit_test(captions_are_clean_and_fit),
        cmocka_unit_test(too_small_a_buffer_is_an_error),
        cmocka_unit_test(every_class_name_is_made_of_caption_words),
        cmocka_unit_test(every_class_varies),
        cmocka_unit_test(classes_of_a_domain_differ),
        cmocka_unit_test(suite_and_pretraining_share_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
