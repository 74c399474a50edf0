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
