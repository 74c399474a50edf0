/* tiny-imagenet-200/: wnids.txt has a class a line, in the order of the labels; train/<wnid>/images/<file>.JPEG are the
 * training images, val/val_annotations.txt has lines "file<tab>wnid<tab>box" of the labelled test images in
 * val/images/. Class names are those of class-incremental learning's public code; a class outside its 200 has its first
 * name in words.txt, lines "wnid<tab>name, synonym, …". */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "datasets/readers/reader.h"
#include "datasets/readers/registry.h"

/* In the order of the archive's wnids.txt, to which published class orders refer. */
static const struct {
    const char *wnid, *name;
} published[] = {{"n02124075", "Egyptian Mau"},
                 {"n04067472", "fishing casting reel"},
                 {"n04540053", "volleyball"},
                 {"n04099969", "rocking chair"},
                 {"n07749582", "lemon"},
                 {"n01641577", "American bullfrog"},
                 {"n02802426", "basketball"},
                 {"n09246464", "cliff"},
                 {"n07920052", "espresso"},
                 {"n03970156", "plunger"},
                 {"n03891332", "parking meter"},
                 {"n02106662", "German Shepherd Dog"},
                 {"n03201208", "dining table"},
                 {"n02279972", "monarch butterfly"},
                 {"n02132136", "brown bear"},
                 {"n04146614", "school bus"},
                 {"n07873807", "pizza"},
                 {"n02364673", "guinea pig"},
                 {"n04507155", "umbrella"},
                 {"n03854065", "pipe organ"},
                 {"n03838899", "oboe"},
                 {"n03733131", "maypole"},
                 {"n01443537", "goldfish"},
                 {"n07875152", "pot pie"},
                 {"n03544143", "hourglass"},
                 {"n09428293", "beach"},
                 {"n03085013", "computer keyboard"},
                 {"n02437312", "arabian camel"},
                 {"n07614500", "ice cream"},
                 {"n03804744", "metal nail"},
                 {"n04265275", "space heater"},
                 {"n02963159", "cardigan"},
                 {"n02486410", "baboon"},
                 {"n01944390", "snail"},
                 {"n09256479", "coral reef"},
                 {"n02058221", "albatross"},
                 {"n04275548", "spider web"},
                 {"n02321529", "sea cucumber"},
                 {"n02769748", "backpack"},
                 {"n02099712", "Labrador Retriever"},
                 {"n07695742", "pretzel"},
                 {"n02056570", "king penguin"},
                 {"n02281406", "sulphur butterfly"},
                 {"n01774750", "tarantula"},
                 {"n02509815", "red panda"},
                 {"n03983396", "soda bottle"},
                 {"n07753592", "banana"},
                 {"n04254777", "sock"},
                 {"n02233338", "cockroach"},
                 {"n04008634", "missile"},
                 {"n02823428", "beer bottle"},
                 {"n02236044", "praying mantis"},
                 {"n03393912", "freight car"},
                 {"n07583066", "guacamole"},
                 {"n04074963", "remote control"},
                 {"n01629819", "fire salamander"},
                 {"n09332890", "lakeshore"},
                 {"n02481823", "chimpanzee"},
                 {"n03902125", "payphone"},
                 {"n03404251", "fur coat"},
                 {"n09193705", "mountain"},
                 {"n03637318", "lampshade"},
                 {"n04456115", "torch"},
                 {"n02666196", "abacus"},
                 {"n03796401", "moving van"},
                 {"n02795169", "barrel"},
                 {"n02123045", "tabby cat"},
                 {"n01855672", "goose"},
                 {"n01882714", "koala"},
                 {"n02917067", "high-speed train"},
                 {"n02988304", "CD player"},
                 {"n04398044", "teapot"},
                 {"n02843684", "birdhouse"},
                 {"n02423022", "gazelle"},
                 {"n02669723", "academic gown"},
                 {"n04465501", "tractor"},
                 {"n02165456", "ladybug"},
                 {"n03770439", "miniskirt"},
                 {"n02099601", "Golden Retriever"},
                 {"n04486054", "triumphal arch"},
                 {"n02950826", "cannon"},
                 {"n03814639", "neck brace"},
                 {"n04259630", "sombrero"},
                 {"n03424325", "gas mask or respirator"},
                 {"n02948072", "candle"},
                 {"n03179701", "desk"},
                 {"n03400231", "frying pan"},
                 {"n02206856", "bee"},
                 {"n03160309", "dam"},
                 {"n01984695", "spiny lobster"},
                 {"n03977966", "police van"},
                 {"n03584254", "iPod"},
                 {"n04023962", "punching bag"},
                 {"n02814860", "lighthouse"},
                 {"n01910747", "jellyfish"},
                 {"n04596742", "wok"},
                 {"n03992509", "potter's wheel"},
                 {"n04133789", "sandal"},
                 {"n03937543", "pill bottle"},
                 {"n02927161", "butcher shop"},
                 {"n01945685", "slug"},
                 {"n02395406", "pig"},
                 {"n02125311", "cougar"},
                 {"n03126707", "construction crane"},
                 {"n04532106", "vestment"},
                 {"n02268443", "dragonfly"},
                 {"n02977058", "automated teller machine"},
                 {"n07734744", "mushroom"},
                 {"n03599486", "rickshaw"},
                 {"n04562935", "water tower"},
                 {"n03014705", "storage chest"},
                 {"n04251144", "snorkel"},
                 {"n04356056", "sunglasses"},
                 {"n02190166", "fly"},
                 {"n03670208", "limousine"},
                 {"n02002724", "black stork"},
                 {"n02074367", "dugong"},
                 {"n04285008", "sports car"},
                 {"n04560804", "water jug"},
                 {"n04366367", "suspension bridge"},
                 {"n02403003", "ox"},
                 {"n07615774", "popsicle"},
                 {"n04501370", "turnstile"},
                 {"n03026506", "Christmas stocking"},
                 {"n02906734", "broom"},
                 {"n01770393", "scorpion"},
                 {"n04597913", "wooden spoon"},
                 {"n03930313", "picket fence"},
                 {"n04118538", "rugby ball"},
                 {"n04179913", "sewing machine"},
                 {"n04311004", "through arch bridge"},
                 {"n02123394", "Persian cat"},
                 {"n04070727", "refrigerator"},
                 {"n02793495", "barn"},
                 {"n02730930", "apron"},
                 {"n02094433", "Yorkshire Terrier"},
                 {"n04371430", "swim trunks / shorts"},
                 {"n04328186", "stopwatch"},
                 {"n03649909", "lawn mower"},
                 {"n04417672", "thatched roof"},
                 {"n03388043", "fountain"},
                 {"n01774384", "southern black widow"},
                 {"n02837789", "bikini"},
                 {"n07579787", "plate"},
                 {"n04399382", "teddy bear"},
                 {"n02791270", "barbershop"},
                 {"n03089624", "candy store"},
                 {"n02814533", "station wagon"},
                 {"n04149813", "scoreboard"},
                 {"n07747607", "orange"},
                 {"n03355925", "flagpole"},
                 {"n01983481", "American lobster"},
                 {"n04487081", "trolleybus"},
                 {"n03250847", "drumstick"},
                 {"n03255030", "dumbbell"},
                 {"n02892201", "brass memorial plaque"},
                 {"n02883205", "bow tie"},
                 {"n03100240", "convertible"},
                 {"n02415577", "bighorn sheep"},
                 {"n02480495", "orangutan"},
                 {"n01698640", "American alligator"},
                 {"n01784675", "centipede"},
                 {"n04376876", "syringe"},
                 {"n03444034", "go-kart"},
                 {"n01917289", "brain coral"},
                 {"n01950731", "sea slug"},
                 {"n03042490", "cliff dwelling"},
                 {"n07711569", "mashed potatoes"},
                 {"n04532670", "viaduct"},
                 {"n03763968", "military uniform"},
                 {"n07768694", "pomegranate"},
                 {"n02999410", "chain"},
                 {"n03617480", "kimono"},
                 {"n06596364", "comic book"},
                 {"n01768244", "trilobite"},
                 {"n02410509", "bison"},
                 {"n03976657", "pole"},
                 {"n01742172", "boa constrictor"},
                 {"n03980874", "poncho"},
                 {"n02808440", "bathtub"},
                 {"n02226429", "grasshopper"},
                 {"n02231487", "stick insect"},
                 {"n02085620", "Chihuahua"},
                 {"n01644900", "tailed frog"},
                 {"n02129165", "lion"},
                 {"n02699494", "altar"},
                 {"n03837869", "obelisk"},
                 {"n02815834", "beaker"},
                 {"n07720875", "bell pepper"},
                 {"n02788148", "baluster / handrail"},
                 {"n02909870", "bucket"},
                 {"n03706229", "magnetic compass"},
                 {"n07871810", "meatloaf"},
                 {"n03447447", "gondola"},
                 {"n02113799", "Standard Poodle"},
                 {"n12267677", "acorn"},
                 {"n03662601", "lifeboat"},
                 {"n02841315", "binoculars"},
                 {"n07715103", "cauliflower"},
                 {"n02504458", "African bush elephant"}};

enum { PUBLISHED = sizeof published / sizeof *published };

static bool is_jpeg(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".JPEG") == 0;
}

/* Under its first name in words.txt; words: its lines, once they are needed. */
static status add_by_words(struct dataset *dataset, const char *wnid, struct strings *words, struct error *error)
{
    size_t length = strlen(wnid), i = 0;
    if (words->count == 0)
        TRY(dataset_read_lines(dataset, "words.txt", words, error));
    while (i < words->count && (strncmp(words->items[i], wnid, length) != 0 || words->items[i][length] != '\t'))
        i++;
    if (i == words->count)
        return error_set(error, ERROR_FORMAT, "%s/%s/words.txt: has no name for the class %s", dataset->root,
                         dataset->folder, wnid);
    char *name = path_format("%.*s", (int)strcspn(words->items[i] + length + 1, ","), words->items[i] + length + 1);
    dataset_add_class(dataset, name);
    free(name);
    return OK;
}

static size_t find_published(const char *wnid)
{
    size_t k = 0;
    while (k < PUBLISHED && strcmp(published[k].wnid, wnid) != 0)
        k++;
    return k;
}

static status add_classes(struct dataset *dataset, const struct strings *wnids, struct error *error)
{
    struct strings words = {0};
    size_t known = 0, elsewhere = 0;
    status result = OK;
    for (size_t i = 0; result == OK && i < wnids->count; i++) {
        size_t k = find_published(wnids->items[i]);
        known += k < PUBLISHED;
        elsewhere += k < PUBLISHED && k != i;
        if (k < PUBLISHED)
            dataset_add_class(dataset, published[k].name);
        else
            result = add_by_words(dataset, wnids->items[i], &words, error);
    }
    strings_free(&words);
    if (result == OK && known == PUBLISHED && elsewhere > 0)
        log_warn(dataset->log,
                 "%s/%s/wnids.txt: %zu of its classes are on another line than in the published archive, so that "
                 "data.class_order: tinyimagenet is not the published order",
                 dataset->root, dataset->folder, elsewhere);
    return result;
}

static status add_training_images(struct dataset *dataset, const char *wnid, size_t label, struct error *error)
{
    char path[DATASET_PATH];
    struct strings files = {0};
    char *folder = path_format("train/%s/images", wnid);
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0;
    status result = strings_list_files(&files, path, folder, is_jpeg, error);
    for (size_t i = 0; result == OK && i < files.count; i++)
        result = dataset_add_file(dataset, &dataset->items[SPLIT_TRAIN], label, error, "%s", files.items[i]);
    strings_free(&files);
    free(folder);
    return result;
}

static status add_test_images(struct dataset *dataset, const struct strings *wnids, struct error *error)
{
    struct strings lines = {0};
    status result = dataset_read_lines(dataset, "val/val_annotations.txt", &lines, error);
    for (size_t i = 0; result == OK && i < lines.count; i++) {
        const char *line = lines.items[i], *tab = strchr(line, '\t'), *wnid = tab != NULL ? tab + 1 : "";
        size_t size = strcspn(wnid, "\t"), label = 0;
        while (label < wnids->count &&
               (strlen(wnids->items[label]) != size || strncmp(wnids->items[label], wnid, size) != 0))
            label++;
        if (tab == NULL || label == wnids->count)
            result = error_set(error, ERROR_FORMAT,
                               "%s/%s/val/val_annotations.txt:%zu: expected a file, a tab and a class of "
                               "wnids.txt, found \"%s\"",
                               dataset->root, dataset->folder, i + 1, line);
        else
            result = dataset_add_file(dataset, &dataset->items[SPLIT_TEST], label, error, "val/images/%.*s",
                                      (int)(tab - line), line);
    }
    strings_free(&lines);
    return result;
}

static status open_tiny_imagenet(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    struct strings wnids = {0};
    status result = dataset_read_lines(dataset, "wnids.txt", &wnids, error);
    NEXT(result, add_classes(dataset, &wnids, error));
    for (size_t i = 0; result == OK && i < wnids.count; i++)
        result = add_training_images(dataset, wnids.items[i], i, error);
    NEXT(result, dataset_require_images(dataset, &dataset->items[SPLIT_TRAIN], error));
    NEXT(result, add_test_images(dataset, &wnids, error));
    strings_free(&wnids);
    return result;
}

static const char *const folders[] = {"tiny-imagenet-200", NULL};

const struct dataset_reader dataset_tiny_imagenet = {
    .name = "tiny_imagenet",
    .source = "Tiny ImageNet: its training images, and the validation images to test",
    .folders = folders,
    .options = dataset_listed_options,
    .listed = true,
    .open = open_tiny_imagenet,
};
