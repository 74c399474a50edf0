/* CIFAR's files: pickles with images, pickles with names, and records. What opens has all its pixels and labels. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "datasets/readers/cifar.h"
#include "tests/fuzz/input.h"

/* Looks at all of cifar and frees it. */
static void use(struct cifar *cifar)
{
    assert(cifar->count > 0);
    for (size_t i = 0; i < cifar->count; i++) {
        assert(cifar->labels[i] >= 0);
        fuzz_touch(cifar->pixels + i * cifar->stride, CIFAR_PIXELS);
    }
    cifar_release(cifar->owner);
    free(cifar->labels);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct cifar cifar;
    struct strings names = {0};
    const char *path = input_file(data, size);
    if (cifar_read_pickle(&cifar, path, "fine_labels", &fuzz_error) == OK)
        use(&cifar);
    for (int label_bytes = 1; label_bytes <= 2; label_bytes++)
        if (cifar_read_binary(&cifar, path, label_bytes, &fuzz_error) == OK)
            use(&cifar);
    if (cifar_read_names(&names, path, "fine_label_names", &fuzz_error) == OK)
        for (size_t i = 0; i < names.count; i++)
            assert(names.items[i] != NULL);
    strings_free(&names);
    return 0;
}
