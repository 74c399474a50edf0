/* Uncompressed 24-bit BMP: a 14-byte file header, an information header, rows of blue, green, red padded to 4 bytes. */
#include "datasets/image/decode.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };

static uint32_t little_endian(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

struct header {
    int64_t width, height; /* a negative height: rows from the top */
    uint32_t offset, depth, compression;
};

static status read_header(struct header *header, const struct encoded *file, struct error *error)
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

status bmp_decode(struct image *image, const struct encoded *file, struct error *error)
{
    struct header header;
    TRY(read_header(&header, file, error));
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
