#include "datasets/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/image/decode.h"

status image_create(struct image *image, int width, int height, struct error *error)
{
    *image = (struct image){0};
    if (width < 1 || height < 1 || (int64_t)width * height > IMAGE_PIXELS_MOST)
        return error_set(error, ERROR_FORMAT, "an image of %d×%d pixels: expected at least 1×1 and at most %d pixels",
                         width, height, IMAGE_PIXELS_MOST);
    size_t size = (size_t)width * (size_t)height * 3;
    uint8_t *pixels = malloc(size);
    if (pixels == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for an image of %d×%d pixels", width, height);
    *image = (struct image){.pixels = pixels, .width = width, .height = height};
    return OK;
}

status image_create_claimed(struct image *image, int64_t width, int64_t height, const char *name, struct error *error)
{
    *image = (struct image){0};
    if (width > INT32_MAX || height > INT32_MAX)
        return error_set(error, ERROR_FORMAT, "%s: claims %lld×%lld pixels, at most %d are read", name,
                         (long long)width, (long long)height, IMAGE_PIXELS_MOST);
    if (image_create(image, (int)width, (int)height, error) != OK)
        return error_context(error, "%s", name);
    return OK;
}

void image_free(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

/* Uncompressed 24-bit BMP: a 14-byte file header, an information header, rows of blue, green, red padded to 4 bytes. */
enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };

static uint32_t little_endian(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

struct bmp_header {
    int64_t width, height; /* a negative height: rows from the top */
    uint32_t offset, depth, compression;
};

static status read_bmp_header(struct bmp_header *header, const struct encoded *file, struct error *error)
{
    const uint8_t *data = file->data, *information = data + FILE_HEADER;
    uint32_t size = file->size >= FILE_HEADER + 4 ? little_endian(information, 4) : 0;
    if (size > file->size || file->size - size < FILE_HEADER || (size != CORE_HEADER && size < INFO_HEADER))
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this BMP: its header is cut off or unknown",
                         file->name);
    header->offset = little_endian(data + 10, 4);
    if (size == CORE_HEADER) {
        header->width = little_endian(information + 4, 2);
        header->height = little_endian(information + 6, 2);
        header->depth = little_endian(information + 10, 2);
        header->compression = 0;
    } else {
        header->width = (int32_t)little_endian(information + 4, 4);
        header->height = (int32_t)little_endian(information + 8, 4);
        header->depth = little_endian(information + 14, 2);
        header->compression = little_endian(information + 16, 4);
    }
    if (header->depth != 24 || header->compression != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected an uncompressed BMP of 24 bits a pixel, found %u bits, compression %u",
                         file->name, header->depth, header->compression);
    return OK;
}

static status decode_bmp(struct image *image, const struct encoded *file, struct error *error)
{
    struct bmp_header header;
    TRY(read_bmp_header(&header, file, error));
    int64_t height = header.height < 0 ? -header.height : header.height;
    uint64_t stride = header.width < 0 ? 0 : ((uint64_t)header.width * 3 + 3) / 4 * 4;
    uint64_t present = header.offset < file->size ? file->size - header.offset : 0;
    if (stride > 0 && (uint64_t)height > present / stride)
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this BMP: it claims %lld×%lld pixels but ends early",
                         file->name, (long long)header.width, (long long)height);
    TRY(image_create_claimed(image, header.width, height, file->name, error));
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *row = file->data + header.offset + (uint64_t)(header.height < 0 ? y : height - 1 - y) * stride;
        uint8_t *target = image->pixels + (size_t)y * (size_t)image->width * 3;
        for (size_t x = 0; x < (size_t)image->width; x++) {
            target[3 * x] = row[3 * x + 2];
            target[3 * x + 1] = row[3 * x + 1];
            target[3 * x + 2] = row[3 * x];
        }
    }
    return OK;
}

static const struct signature {
    const char *bytes;
    size_t size, at;
    status (*decode)(struct image *image, const struct encoded *file, struct error *error);
} signatures[] = {
    {"\xff\xd8\xff", 3, 0, jpeg_decode}, {"\x89PNG\r\n\x1a\n", 8, 0, png_decode},
    {"GIF87a", 6, 0, gif_decode},        {"GIF89a", 6, 0, gif_decode},
    {"WEBP", 4, 8, webp_decode},         {"BM", 2, 0, decode_bmp},
};

static status refuse(const struct encoded *file, struct error *error)
{
    if (file->size == 0)
        return error_set(error, ERROR_FORMAT, "%s: the file is empty; expected a JPEG, PNG, GIF, WebP or BMP image",
                         file->name);
    SCOPED(text_free) struct text first = {0};
    for (size_t i = 0; i < file->size && i < 8; i++)
        text_add(&first, " %02x", file->data[i]);
    error_set(error, ERROR_FORMAT,
              "%s: expected a JPEG, PNG, GIF, WebP or BMP image, found a file of %zu bytes that begins with%s",
              file->name, file->size, first.data);
    return ERROR_FORMAT;
}

static bool has_ending(const char *path)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".gif",  ".ppm",
                                          ".bmp", ".pgm",  ".tif", ".tiff", ".webp"};
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending != NULL && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(ending, endings[i]) == 0)
            return true;
    return false;
}

static const struct signature *find_signature(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (size >= signatures[i].at + signatures[i].size &&
            memcmp(data + signatures[i].at, signatures[i].bytes, signatures[i].size) == 0)
            return &signatures[i];
    return NULL;
}

status image_file_recognize(bool *image, const char *path, struct error *error)
{
    uint8_t first[12];
    struct stat information;
    *image = has_ending(path);
    if (*image || stat(path, &information) != 0 || !S_ISREG(information.st_mode))
        return OK;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) /* without permission, it is none of the user's images */
        return errno == EACCES || errno == ENOENT ? OK : error_errno(error, errno, "%s: cannot be looked into", path);
    ssize_t got = read(file, first, sizeof first);
    int number = errno;
    close(file);
    if (got < 0)
        return error_errno(error, number, "%s: cannot be looked into", path);
    *image = find_signature(first, (size_t)got) != NULL;
    return OK;
}

status image_decode(struct image *image, const uint8_t *data, size_t size, const char *name, struct error *error)
{
    struct encoded file = {data, size, name};
    *image = (struct image){0};
    const struct signature *signature = find_signature(data, size);
    if (signature == NULL)
        return refuse(&file, error);
    errno = 0;
    return memory_blame(signature->decode(image, &file, error), name, error);
}

status image_decode_file(struct image *image, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    *image = (struct image){0};
    TRY(file_read(path, (size_t)1 << 30, &bytes, error)); /* the largest BMP has half of that */
    return image_decode(image, bytes.data, bytes.size, path, error);
}
