/* cifar-100-python/{train,test,meta} or cifar-100-binary/{train.bin,test.bin,fine_label_names.txt}, fine labels. */
#include "datasets/readers/cifar.h"
#include "datasets/readers/registry.h"

static status open_cifar100(struct dataset *dataset, const struct options *options, struct error *error)
{
    static const struct cifar_layout layout = {
        .python = "cifar-100-python",
        .binary = "cifar-100-binary",
        .python_names = "meta",
        .python_key = "fine_label_names",
        .binary_names = "fine_label_names.txt",
        .label_key = "fine_labels",
        .label_bytes = 2,
        .python_files = {{"train"}, {"test"}},
        .binary_files = {{"train.bin"}, {"test.bin"}},
    };
    return cifar_open(dataset, &layout, options, error);
}

const struct dataset_reader dataset_cifar100 = {
    .name = "cifar100",
    .source = "CIFAR-100, python or binary version: its own training and test sets, fine labels",
    .folders = {"cifar-100-python", "cifar-100-binary"},
    .options = cifar_options,
    .open = open_cifar100,
};
