/* PNG by libpng. Pillow's rules: checksums matter before the image data but not in it, the end marker may be absent,
 * 16-bit colour keeps the high byte, 16-bit grey saturates, transparency is dropped. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "core/file_writer.h"
#include "datasets/image/decode.h"

struct failure {
    jmp_buf escape;
    char reason[200];
};

struct decoder {
    png_structp png;
    png_infop info;
    struct failure failure;
    const struct encoded *file;
    size_t position;
    struct image *image;
    uint8_t *samples; /* palette indices or 16-bit grey, converted once all passes are read */
};

static void escape(png_structp png, png_const_charp message)
{
    struct failure *failure = png_get_error_ptr(png);
    snprintf(failure->reason, sizeof failure->reason, "%s", message);
    longjmp(failure->escape, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
}

static void read_bytes(png_structp png, png_bytep target, size_t count)
{
    struct decoder *decoder = png_get_io_ptr(png);
    if (count > decoder->file->size - decoder->position)
        png_error(png, "the file ends early");
    memcpy(target, decoder->file->data + decoder->position, count);
    decoder->position += count;
}

/* Chunks that could change the pixels or cost time, and that Pillow ignores. */
static void ignore_chunks(png_structp png)
{
    static const png_byte names[] = "iCCP\0gAMA\0cHRM\0sRGB\0sBIT\0tRNS\0bKGD\0hIST\0sPLT\0tEXt\0zTXt\0iTXt\0eXIf";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, sizeof names / 5);
}

static void set_transforms(png_structp png, int depth, int color)
{
    if (color == PNG_COLOR_TYPE_PALETTE) {
        png_set_packing(png);
        return;
    }
    if (color == PNG_COLOR_TYPE_GRAY && depth == 16)
        return;
    if (color == PNG_COLOR_TYPE_GRAY && depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (depth == 16)
        png_set_strip_16(png);
    if (color & PNG_COLOR_MASK_ALPHA)
        png_set_strip_alpha(png);
    if (!(color & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(png);
}

static void palette_to_rgb(struct decoder *decoder, size_t count)
{
    png_color known[256] = {0}; /* an index beyond the palette is black */
    png_colorp palette;
    int colors = 0;
    if (png_get_PLTE(decoder->png, decoder->info, &palette, &colors) != 0)
        memcpy(known, palette, (size_t)(colors < 256 ? colors : 256) * sizeof *known);
    for (size_t i = 0; i < count; i++)
        memcpy(decoder->image->pixels + 3 * i, &known[decoder->samples[i]], 3);
}

static void wide_gray_to_rgb(struct decoder *decoder, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool beyond = decoder->samples[2 * i] != 0;
        uint8_t gray = beyond ? 255 : decoder->samples[2 * i + 1];
        decoder->image->clipped |= beyond;
        memset(decoder->image->pixels + 3 * i, gray, 3);
    }
}

static void read_rows(struct decoder *decoder, uint8_t *target, size_t stride)
{
    int passes = png_set_interlace_handling(decoder->png);
    png_start_read_image(decoder->png);
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < (size_t)decoder->image->height; y++)
            png_read_row(decoder->png, target + y * stride, NULL);
}

/* Deflate packs at most 1032 bytes into one. */
static status check_claim(const struct decoder *decoder, struct error *error)
{
    enum { MOST_BYTES_A_BYTE = 1032 };
    uint64_t row = png_get_rowbytes(decoder->png, decoder->info);
    png_uint_32 width = png_get_image_width(decoder->png, decoder->info),
                height = png_get_image_height(decoder->png, decoder->info);
    if (row * height / MOST_BYTES_A_BYTE <= decoder->file->size)
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: cannot decode this PNG: it claims %u×%u pixels, more than %zu bytes can hold",
                     decoder->file->name, width, height, decoder->file->size);
}

static status decode(struct decoder *decoder, struct error *error)
{
    const char *name = decoder->file->name;
    if (setjmp(decoder->failure.escape) != 0)
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this PNG: %s", name, decoder->failure.reason);
    png_set_read_fn(decoder->png, decoder, read_bytes);
    png_set_user_limits(decoder->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    ignore_chunks(decoder->png);
    png_read_info(decoder->png, decoder->info);
    png_set_crc_action(decoder->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    TRY(check_claim(decoder, error));
    int depth = png_get_bit_depth(decoder->png, decoder->info), color = png_get_color_type(decoder->png, decoder->info);
    TRY(image_create_claimed(decoder->image, png_get_image_width(decoder->png, decoder->info),
                             png_get_image_height(decoder->png, decoder->info), name, error));
    set_transforms(decoder->png, depth, color);
    size_t width = (size_t)decoder->image->width, count = width * (size_t)decoder->image->height;
    size_t sample = color == PNG_COLOR_TYPE_PALETTE ? 1 : color == PNG_COLOR_TYPE_GRAY && depth == 16 ? 2 : 0;
    if (sample != 0 && (decoder->samples = calloc(count, sample)) == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for its %zu pixels", name, count);
    read_rows(decoder, sample != 0 ? decoder->samples : decoder->image->pixels, width * (sample != 0 ? sample : 3));
    if (sample == 1)
        palette_to_rgb(decoder, count);
    else if (sample == 2)
        wide_gray_to_rgb(decoder, count);
    return OK;
}

status png_decode(struct image *image, const struct encoded *file, struct error *error)
{
    struct decoder decoder = {.file = file, .image = image};
    status result = ERROR_MEMORY;
    decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder.failure, escape, ignore_warning);
    if (decoder.png != NULL)
        decoder.info = png_create_info_struct(decoder.png);
    if (decoder.info != NULL)
        result = decode(&decoder, error);
    else
        error_set(error, ERROR_MEMORY, "%s: no memory to decode this PNG", file->name);
    png_destroy_read_struct(&decoder.png, &decoder.info, NULL);
    free(decoder.samples);
    if (result != OK)
        image_free(image);
    return result;
}

struct encoder {
    png_structp png;
    png_infop info;
    struct failure failure;
};

static status encode(struct encoder *encoder, const struct image *image, FILE *stream, struct error *error)
{
    if (setjmp(encoder->failure.escape) != 0)
        return error_set(error, ERROR_IO, "cannot write this PNG: %s", encoder->failure.reason);
    png_init_io(encoder->png, stream);
    png_set_IHDR(encoder->png, encoder->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(encoder->png, encoder->info);
    for (size_t y = 0; y < (size_t)image->height; y++)
        png_write_row(encoder->png, image->pixels + y * (size_t)image->width * 3);
    png_write_end(encoder->png, NULL);
    return OK;
}

static status write_png(const char *path, const struct image *image,
                        status (*open)(struct file_writer *writer, const char *path, struct error *error),
                        struct error *error)
{
    struct file_writer writer;
    struct encoder encoder = {0};
    TRY(open(&writer, path, error));
    status result = ERROR_MEMORY;
    encoder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder.failure, escape, ignore_warning);
    if (encoder.png != NULL)
        encoder.info = png_create_info_struct(encoder.png);
    if (encoder.info != NULL)
        result = encode(&encoder, image, writer.stream, error);
    else
        error_set(error, ERROR_MEMORY, "no memory to write this PNG");
    png_destroy_write_struct(&encoder.png, &encoder.info);
    if (result == OK)
        return file_writer_close(&writer, error);
    file_writer_abandon(&writer);
    return error_context(error, "%s", path);
}

status image_write_png(const char *path, const struct image *image, struct error *error)
{
    return write_png(path, image, file_writer_open, error);
}

status image_write_png_one_of_many(const char *path, const struct image *image, struct error *error)
{
    return write_png(path, image, file_writer_open_one_of_many, error);
}
