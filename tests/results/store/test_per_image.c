#include "tests/results/check.h"

#include "results/store/per_image.h"

static void predictions_come_back(void **state)
{
    (void)state;
    uint8_t right[11];
    uint16_t predicted[11];
    int16_t router[11];
    for (int i = 0; i < 11; i++) {
        right[i] = i % 3 == 0;
        predicted[i] = (uint16_t)(65535 - 1000 * i);
        router[i] = (int16_t)(i - 1);
    }
    struct per_image kept = {PER_IMAGE_PREDICTIONS, 11, right, predicted, router}, again;
    struct bytes packed;
    assert_ok(per_image_pack(&kept, &packed, &error));
    assert_int_equal(packed.size, 2 + 22 + 22);
    assert_int_equal(packed.data[0], 0x49); /* images 0, 3 and 6 */
    assert_ok(per_image_unpack(&again, PER_IMAGE_PREDICTIONS, 11, packed.data, packed.size, &error));
    assert_memory_equal(again.right, right, sizeof right);
    assert_memory_equal(again.predicted, predicted, sizeof predicted);
    assert_memory_equal(again.router, router, sizeof router);
    assert_int_equal(per_image_correct(&again), 4);
    per_image_free(&again);
    bytes_free(&packed);
}

static void wrong_sizes_are_refused(void **state)
{
    (void)state;
    struct per_image again;
    uint8_t data[8] = {0};
    assert_fails(per_image_unpack(&again, PER_IMAGE_BITS, 65, data, 8, &error), ERROR_FORMAT,
                 "expected 9 bytes, found 8");
    assert_fails(per_image_unpack(&again, PER_IMAGE_PREDICTIONS, SIZE_MAX, data, 8, &error), ERROR_FORMAT, "found 8");
    assert_fails(per_image_unpack(&again, PER_IMAGE_BITS, 0, NULL, 0, &error), ERROR_FORMAT, "0 images");
    assert_ok(per_image_unpack(&again, PER_IMAGE_BITS, 64, data, 8, &error));
    per_image_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(predictions_come_back),
                                       cmocka_unit_test(wrong_sizes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
