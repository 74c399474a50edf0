#include "tests/test.h"

#include "results/store/per_image.h"

TEST(predictions_come_back_and_other_sizes_are_refused)
{
    enum { IMAGES = 11 };
    uint8_t right[IMAGES];
    uint16_t predicted[IMAGES];
    int16_t router[IMAGES];
    for (int i = 0; i < IMAGES; i++) {
        right[i] = i % 3 == 0;
        predicted[i] = (uint16_t)(65535 - 1000 * i);
        router[i] = (int16_t)(i - 1);
    }
    struct per_image kept = {PER_IMAGE_PREDICTIONS, IMAGES, right, predicted, router}, again;
    struct bytes packed;
    assert_ok(per_image_pack(&kept, &packed, &error));
    assert_int_equal(packed.size, 2 + 22 + 22);
    assert_int_equal(packed.data[0], 0x49); /* images 0, 3 and 6 */
    assert_ok(per_image_unpack(&again, PER_IMAGE_PREDICTIONS, IMAGES, packed.data, packed.size, &error));
    assert_memory_equal(again.right, right, sizeof right);
    assert_memory_equal(again.predicted, predicted, sizeof predicted);
    assert_memory_equal(again.router, router, sizeof router);
    assert_int_equal(per_image_correct(&again), 4);
    per_image_free(&again);
    static const struct {
        size_t images, size;
        const char *words;
    } cases[] = {{65, 8, "expected 9 bytes, found 8"}, {SIZE_MAX, 8, "found 8"}, {0, 0, "0 images"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(per_image_unpack(&again, PER_IMAGE_BITS, cases[i].images, packed.data, cases[i].size, &error),
                     ERROR_FORMAT, cases[i].words);
    bytes_free(&packed);
}
