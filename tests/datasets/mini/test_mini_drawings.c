#include <stdlib.h>

#include "datasets/mini/suite.h"
#include "tests/test.h"

static uint64_t checksum(uint64_t sum, const void *data, size_t size) /* FNV-1a */
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return sum;
}
static const uint64_t checksum_start = 0xcbf29ce484222325u;

TEST(suite_drawings_have_known_checksums)
{
    uint64_t sum = checksum_start;
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int i = 0; suite_domains[k].draw != NULL && i < 40; i++) {
            uint8_t pixels[SUITE_PIXELS];
            suite_drawing(&suite_domains[k], 1, (uint64_t)i, i % suite_domains[k].classes, pixels);
            sum = checksum(sum, pixels, 3 * (size_t)(suite_domains[k].side * suite_domains[k].side));
        }
    assert_int_equal(sum, 0xa8560b6197e028e0u);
}

/* The share of values that differ clearly. */
static double difference(const struct domain *domain, const uint8_t *one, const uint8_t *other)
{
    size_t size = 3 * (size_t)(domain->side * domain->side), changed = 0;
    for (size_t i = 0; i < size; i++)
        changed += abs(one[i] - other[i]) > 12;
    return (double)changed / (double)size;
}

TEST(every_class_varies)
{
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int label = 0; suite_domains[k].draw != NULL && label < suite_domains[k].classes; label++) {
            uint8_t one[SUITE_PIXELS], other[SUITE_PIXELS];
            suite_drawing(&suite_domains[k], 9, 1, label, one);
            suite_drawing(&suite_domains[k], 9, 2, label, other);
            assert_true(difference(&suite_domains[k], one, other) > 0.05);
        }
}

/* The same index has the same background and place for any class, so what differs is the subject. */
TEST(classes_of_a_domain_differ)
{
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
