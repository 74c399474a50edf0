/* cifar-10-batches-py/{data_batch_1 … 5,test_batch,batches.meta} or cifar-10-batches-bin/{….bin,batches.meta.txt}. */
#include "datasets/readers/cifar.h"
#include "datasets/readers/registry.h"

static status open_cifar10(struct dataset *dataset, const struct options *options, struct error *error)
{
    static const struct cifar_layout layout = {
        .python = "cifar-10-batches-py",
        .binary = "cifar-10-batches-bin",
        .python_names = "batches.meta",
        .python_key = "label_names",
        .binary_names = "batches.meta.txt",
        .label_key = "labels",
        .label_bytes = 1,
        .python_files = {{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
                         {"test_batch"}},
        .binary_files = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                          "data_batch_5.bin"},
                         {"test_batch.bin"}},
    };
    return cifar_open(dataset, &layout, options, error);
}

const struct dataset_reader dataset_cifar10 = {
    .name = "cifar10",
    .source = "CIFAR-10, python or binary version: its own training and test sets",
    .folders = {"cifar-10-batches-py", "cifar-10-batches-bin"},
    .options = cifar_options,
    .open = open_cifar10,
};
