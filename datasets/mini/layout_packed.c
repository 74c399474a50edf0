/* The datasets that are a few large files, cifar100 (pickle and binary) and mnist (IDX), and those whose labels are MATLAB files,
 * flowers and stanford_cars. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/mini/layout.h"

EMBEDDED_FILES(mini_digits); /* the IDX files, gzipped */

/* --- MATLAB 5 without compression: a header, then nested elements of type, size, and bytes filled up to a multiple of 8  */

enum element { INT8 = 1, UINT16 = 4, INT32, UINT32, MATRIX = 14, UTF8 = 16 };
enum class { CELL_CLASS = 1, STRUCT_CLASS, CHAR_CLASS = 4, UINT16_CLASS = 11 };

static void add_element(struct text *mat, enum element type, const void *data, size_t size)
{
    text_add_bytes(mat, (const char *)(uint32_t[]){type, (uint32_t)size}, 8);
    text_add_bytes(mat, data, size);
    text_add_bytes(mat, (const char[8]){0}, (8 - size % 8) % 8);
}

/* A matrix of one row; returns where it begins, for end_matrix after its contents. */
static size_t begin_matrix(struct text *mat, enum class class, size_t columns, const char *name)
{
    size_t begin = mat->size;
    add_element(mat, MATRIX, "", 0);
    add_element(mat, UINT32, (uint32_t[]){class, 0}, 8);
    add_element(mat, INT32, (int32_t[]){1, (int32_t)columns}, 8);
    add_element(mat, INT8, name, strlen(name));
    return begin;
}

static void end_matrix(struct text *mat, size_t begin)
{
    uint32_t size = (uint32_t)(mat->size - begin - 8);
    memcpy(mat->data + begin + 4, &size, sizeof size);
}

/* Whole numbers, as in the originals, because Python's readers use them as indices. */
static void add_row(struct text *mat, const char *name, const uint16_t *values, size_t count)
{
    size_t row = begin_matrix(mat, UINT16_CLASS, count, name);
    add_element(mat, UINT16, values, count * sizeof *values);
    end_matrix(mat, row);
}

static void add_string(struct text *mat, const char *string)
{
    size_t row = begin_matrix(mat, CHAR_CLASS, strlen(string), "");
    add_element(mat, UTF8, string, strlen(string));
    end_matrix(mat, row);
}

/* The head has no date, so that a suite has the same bytes on any day. */
static void begin_file(struct text *mat)
{
    static const uint16_t version_and_order[2] = {0x0100, 'M' << 8 | 'I'};
    text_add(mat, "%-124s", "MATLAB 5.0 MAT-file, Platform: GLNXA64, Created by: mtil");
    text_add_bytes(mat, (const char *)version_and_order, sizeof version_and_order);
}

/* Image numbers are 1-based and in an order of their own; the few of "valid" follow those of test. */
static status flowers_lists(const struct layout *layout, const uint16_t *order, size_t train, size_t test, size_t valid,
                            struct error *error)
{
    struct text mat = {0};
    begin_file(&mat);
    add_row(&mat, "trnid", order, train);
    add_row(&mat, "tstid", order + train, test);
    add_row(&mat, "valid", order + train + test, valid);
    return layout_text(layout, "flowers-102/setid.mat", &mat, error);
}

static status flowers_labels(const struct layout *layout, const uint16_t *labels, size_t count, struct error *error)
{
    struct text mat = {0};
    begin_file(&mat);
    add_row(&mat, "labels", labels, count);
    return layout_text(layout, "flowers-102/imagelabels.mat", &mat, error);
}

status layout_flowers(struct layout *layout, struct error *error)
{
    size_t train = (size_t)layout->domain->train, test = (size_t)layout->domain->test,
           valid = (size_t)layout->domain->classes;
    size_t count = train + test + valid;
    OWNED uint16_t *order = xcalloc(count, sizeof *order), *labels = xcalloc(count, sizeof *labels);
    TRY(layout_folder(layout, error, "flowers-102/jpg"));
    for (size_t item = 0; item < count; item++) {
        size_t number = count - item; /* the lists are not sorted in the original either */
        order[item] = (uint16_t)number;
        labels[number - 1] = (uint16_t)(layout_label(layout, item) + 1);
        layout_picture(layout, item, "flowers-102/jpg/image_%05zu.jpg", number);
    }
    TRY(flowers_lists(layout, order, train, test, valid, error));
    TRY(flowers_labels(layout, labels, count, error));
    return layout_class_names(layout, "flowers-102/classnames.txt", error);
}

/* annotations: 1×N struct of box, class (1-based) and file name */
static status cars_annotations(const struct layout *layout, const char *path, bool test, struct error *error)
{
    enum { LONGEST = 8, FIELDS = 6 };
    static const char fields[FIELDS][LONGEST] = {"bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname"};
    size_t first, count = layout_items(layout, test, &first);
    struct text mat = {0};
    begin_file(&mat);
    size_t annotations = begin_matrix(&mat, STRUCT_CLASS, count, "annotations");
    add_element(&mat, INT32, (int32_t[]){LONGEST}, sizeof(int32_t));
    add_element(&mat, INT8, fields, sizeof fields);
    for (size_t i = 0; i < count; i++) {
        uint16_t side = (uint16_t)layout->domain->side,
                 numbers[FIELDS - 1] = {1, 1, side, side, (uint16_t)(layout_label(layout, first + i) + 1)};
        char name[16];
        snprintf(name, sizeof name, "%05zu.jpg", i + 1);
        for (size_t field = 0; field < FIELDS - 1; field++)
            add_row(&mat, "", &numbers[field], 1);
        add_string(&mat, name);
    }
    end_matrix(&mat, annotations);
    return layout_text(layout, path, &mat, error);
}

static status cars_names(const struct layout *layout, struct error *error)
{
    struct text mat = {0};
    begin_file(&mat);
    size_t names = begin_matrix(&mat, CELL_CLASS, (size_t)layout->domain->classes, "class_names");
    for (int i = 0; i < layout->domain->classes; i++)
        add_string(&mat, layout->domain->class_names[i]);
    end_matrix(&mat, names);
    return layout_text(layout, "stanford_cars/devkit/cars_meta.mat", &mat, error);
}

status layout_stanford_cars(struct layout *layout, struct error *error)
{
    static const char *const annotations[] = {"stanford_cars/devkit/cars_train_annos.mat",
                                              "stanford_cars/cars_test_annos_withlabels.mat"};
    TRY(layout_folder(layout, error, "stanford_cars/devkit"));
    TRY(cars_names(layout, error));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        const char *folder = test ? "cars_test" : "cars_train";
        size_t first, count = layout_items(layout, test, &first);
        TRY(layout_folder(layout, error, "stanford_cars/%s", folder));
        TRY(cars_annotations(layout, annotations[test], test, error));
        for (size_t i = 0; i < count; i++)
            layout_picture(layout, first + i, "stanford_cars/%s/%05zu.jpg", folder, i + 1);
    }
    return OK;
}

/* --- cifar100 and mnist ------------------------------------------------------------------------------------------- */

enum { CIFAR_SIDE = 32, CIFAR_PIXELS = 3 * CIFAR_SIDE * CIFAR_SIDE, CIFAR_RECORD = 2 + CIFAR_PIXELS };

/* The coarse label of every class; the binary version carries it, no reader needs it. */
static const char *const coarse_names[] = {"things", "animals", "plants"};
static const uint8_t coarse_labels[] = {2, 1, 0, 1, 1, 1, 0, 2, 1, 2};

/* records [count, 2 + 3072]: coarse label, fine label, all red, all green, all blue */
static void cifar_records(const struct layout *layout, size_t first, size_t count, uint8_t *records)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t pixels[SUITE_PIXELS], *record = records + i * CIFAR_RECORD;
        int label = layout_label(layout, first + i);
        suite_drawing(layout->domain, layout->settings->seed, first + i, label, pixels);
        record[0] = coarse_labels[label];
        record[1] = (uint8_t)label;
        for (size_t k = 0; k < CIFAR_SIDE * CIFAR_SIDE; k++)
            for (size_t channel = 0; channel < 3; channel++)
                record[2 + channel * CIFAR_SIDE * CIFAR_SIDE + k] = pixels[3 * k + channel];
    }
}

/* Pickle, protocol 2, as Python 2 wrote the original: the memo is counted, never looked up. */
struct pickle {
    struct text text;
    uint32_t memo;
};

static void pickle_byte(struct pickle *pickle, int byte)
{
    char character = (char)byte;
    text_add_bytes(&pickle->text, &character, 1);
}

static void pickle_word(struct pickle *pickle, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        pickle_byte(pickle, (int)(value >> 8 * i & 0xff));
}

static void pickle_memo(struct pickle *pickle)
{
    bool is_short = ++pickle->memo < 256;
    pickle_byte(pickle, is_short ? 'q' : 'r');
    pickle_word(pickle, pickle->memo, is_short ? 1 : 4);
}

static void pickle_open(struct pickle *pickle)
{
    text_add_bytes(&pickle->text, "\x80\x02}", 3);
    pickle_memo(pickle);
    pickle_byte(pickle, '(');
}

static void pickle_string(struct pickle *pickle, const char *string)
{
    pickle_byte(pickle, 'U');
    pickle_byte(pickle, (int)strlen(string));
    text_add_bytes(&pickle->text, string, strlen(string));
    pickle_memo(pickle);
}

static void pickle_integer(struct pickle *pickle, uint32_t value)
{
    pickle_byte(pickle, value < 256 ? 'K' : value < 65536 ? 'M' : 'J');
    pickle_word(pickle, value, value < 256 ? 1 : value < 65536 ? 2 : 4);
}

static void pickle_names(struct pickle *pickle, const char *key, const char *const *names, size_t count)
{
    pickle_string(pickle, key);
    pickle_byte(pickle, ']');
    pickle_memo(pickle);
    pickle_byte(pickle, '(');
    for (size_t i = 0; i < count; i++)
        pickle_string(pickle, names[i]);
    pickle_byte(pickle, 'e');
}

/* Lists are appended to in batches of 1000. place is the label's byte within a record. */
static void pickle_labels(struct pickle *pickle, const char *key, const uint8_t *records, size_t count, size_t place)
{
    pickle_string(pickle, key);
    pickle_byte(pickle, ']');
    pickle_memo(pickle);
    for (size_t i = 0; i < count; i++) {
        if (i % 1000 == 0)
            pickle_byte(pickle, '(');
        pickle_integer(pickle, records[i * CIFAR_RECORD + place]);
        if (i % 1000 == 999 || i + 1 == count)
            pickle_byte(pickle, 'e');
    }
}

static void pickle_global(struct pickle *pickle, const char *name)
{
    text_add(&pickle->text, "c%s\n", name);
    pickle_memo(pickle);
}

/* numpy's array of uint8 [count, 3072] */
static void pickle_pixels(struct pickle *pickle, const uint8_t *records, size_t count)
{
    pickle_string(pickle, "data");
    pickle_global(pickle, "numpy.core.multiarray\n_reconstruct");
    pickle_global(pickle, "numpy\nndarray");
    text_add_bytes(&pickle->text, "K\0\x85", 3);
    pickle_string(pickle, "b");
    text_add_bytes(&pickle->text, "\x87R", 2);
    pickle_memo(pickle);
    text_add_bytes(&pickle->text, "(K\x01", 3);
    pickle_integer(pickle, (uint32_t)count);
    pickle_integer(pickle, CIFAR_PIXELS);
    pickle_byte(pickle, 0x86);
    pickle_global(pickle, "numpy\ndtype");
    pickle_string(pickle, "u1");
    text_add_bytes(&pickle->text, "K\0K\x01\x87R", 6);
    pickle_memo(pickle);
    text_add_bytes(&pickle->text, "(K\x03", 3);
    pickle_string(pickle, "|");
    text_add_bytes(&pickle->text, "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89T", 19);
    pickle_word(pickle, (uint32_t)(count * CIFAR_PIXELS), 4);
    for (size_t i = 0; i < count; i++)
        text_add_bytes(&pickle->text, (const char *)records + i * CIFAR_RECORD + 2, CIFAR_PIXELS);
    text_add_bytes(&pickle->text, "tb", 2);
}

static status pickle_save(const struct layout *layout, const char *path, struct pickle *pickle, struct error *error)
{
    text_add_bytes(&pickle->text, "u.", 2);
    return layout_text(layout, path, &pickle->text, error);
}

static status cifar_split(const struct layout *layout, bool test, struct error *error)
{
    size_t first, count = layout_items(layout, test, &first);
    uint8_t *records = xmalloc(array_size(count, CIFAR_RECORD));
    cifar_records(layout, first, count, records);
    struct text binary = {0};
    text_add_bytes(&binary, (const char *)records, count * CIFAR_RECORD);
    struct pickle pickle = {0};
    pickle_open(&pickle);
    pickle_labels(&pickle, "fine_labels", records, count, 1);
    pickle_labels(&pickle, "coarse_labels", records, count, 0);
    pickle_pixels(&pickle, records, count);
    free(records);
    status result = pickle_save(layout, test ? "cifar-100-python/test" : "cifar-100-python/train", &pickle, error);
    if (result != OK) {
        text_free(&binary);
        return result;
    }
    return layout_text(layout, test ? "cifar-100-binary/test.bin" : "cifar-100-binary/train.bin", &binary, error);
}

status layout_cifar100(struct layout *layout, struct error *error)
{
    enum { COARSE = sizeof coarse_names / sizeof coarse_names[0] };
    struct pickle meta = {0};
    struct text coarse = {0};
    TRY(layout_folder(layout, error, "cifar-100-python"));
    TRY(layout_folder(layout, error, "cifar-100-binary"));
    for (int test = 0; test < SUITE_SPLITS; test++)
        TRY(cifar_split(layout, test, error));
    pickle_open(&meta);
    pickle_names(&meta, "fine_label_names", layout->domain->class_names, (size_t)layout->domain->classes);
    pickle_names(&meta, "coarse_label_names", coarse_names, COARSE);
    TRY(pickle_save(layout, "cifar-100-python/meta", &meta, error));
    TRY(layout_class_names(layout, "cifar-100-binary/fine_label_names.txt", error));
    for (size_t i = 0; i < COARSE; i++)
        text_add(&coarse, "%s\n", coarse_names[i]);
    return layout_text(layout, "cifar-100-binary/coarse_label_names.txt", &coarse, error);
}

/* The embedded gzip file, unpacked into text. */
static status digits_unpack(const struct embedded_file *file, struct text *text, struct error *error)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)file->data, .avail_in = (uInt)file->size};
    enum { GZIP_HEADER = 16 };
    int code = inflateInit2(&stream, MAX_WBITS + GZIP_HEADER);
    while (code == Z_OK) {
        uint8_t part[1 << 14];
        stream.next_out = part;
        stream.avail_out = sizeof part;
        code = inflate(&stream, Z_NO_FLUSH);
        if (code == Z_OK || code == Z_STREAM_END)
            text_add_bytes(text, (const char *)part, sizeof part - stream.avail_out);
    }
    inflateEnd(&stream);
    if (code != Z_STREAM_END)
        return error_set(error, ERROR_FORMAT, "%s: the copy inside the program is damaged", file->name);
    return OK;
}

status layout_mnist(struct layout *layout, struct error *error)
{
    TRY(layout_folder(layout, error, "MNIST/raw"));
    for (const struct embedded_file *file = mini_digits; file->name != NULL; file++) {
        char path[64]; /* without ".gz" */
        snprintf(path, sizeof path, "MNIST/raw/%.*s", (int)(strlen(file->name) - strlen(".gz")), file->name);
        TRY(digits_unpack(file, &layout->list, error));
        TRY(layout_text(layout, path, &layout->list, error));
    }
    return layout_class_names(layout, "MNIST/classnames.txt", error);
}
