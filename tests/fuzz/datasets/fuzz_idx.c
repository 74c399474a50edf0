/* MNIST's idx files, packed or not. What opens has as many values as its sizes say. */
#include "tests/fuzz/target.h"

#include "datasets/readers/mnist.h"
#include "tests/fuzz/input.h"

static void read_rank(const char *path, int rank)
{
    struct idx idx;
    if (mnist_read_idx(&idx, path, rank, &fuzz_error) != OK)
        return;
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= idx.sizes[i];
    fuzz_touch(idx.values, count);
    mnist_free_idx(&idx);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    const char *path = input_file(data, size);
    read_rank(path, 1);
    read_rank(path, 3);
    return 0;
}
