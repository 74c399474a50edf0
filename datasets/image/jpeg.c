/* JPEG by libjpeg-turbo with its default settings: accurate integer DCT, fancy upsampling, block smoothing, as
 * Pillow uses it. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h> /* for ERREXITS */

#include <jpeglib.h>

#include <jerror.h>

#include "core/alloc.h"
#include "core/file_writer.h"
#include "datasets/image/decode.h"

/* Real files have about ten scans; each one of a hostile file costs a pass over all coefficients. A block of 8×8 takes
 * at least one bit, and there are at least half as many blocks as the image has squares of that size (the fewest: one
 * component sampled 4×1, another one 1×4). */
enum { MOST_SCANS = 500, MOST_PIXELS_A_BYTE = 64 * 8 * 2 };

/* libjpeg calls back with its own structs; each is the first member of ours, so the pointers convert. */
struct failure {
    struct jpeg_error_mgr manager;
    jmp_buf escape;
    char reason[JMSG_LENGTH_MAX];
};

struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct failure failure;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    bool ran_out; /* the data ended early */
    struct image *image;
    uint8_t *row; /* of four-component images */
};

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

/* Here, because only jpeglib.h defines the library's version. */
const char *image_version(void)
{
    return "2, libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
}

static void escape(j_common_ptr jpeg)
{
    struct failure *failure = (struct failure *)jpeg->err;
    failure->manager.format_message(jpeg, failure->reason);
    longjmp(failure->escape, 1);
}

/* Wrong or stray bytes are a warning and the image is read as far as possible, but missing data is an error. */
static void notice(j_common_ptr jpeg, int level)
{
    if (level == -1 && jpeg->is_decompressor && ((struct decoder *)jpeg)->ran_out &&
        jpeg->err->msg_code == JWRN_HIT_MARKER)
        escape(jpeg);
}

static void start_source(j_decompress_ptr jpeg)
{
}

/* libjpeg reads ahead, so the end of the data is not an error yet: it gets an end marker, and notice() is called if
 * bits are missing. */
static boolean fill_source(j_decompress_ptr jpeg)
{
    static const JOCTET end_marker[] = {0xff, JPEG_EOI};
    ((struct decoder *)jpeg)->ran_out = true;
    jpeg->src->next_input_byte = end_marker;
    jpeg->src->bytes_in_buffer = sizeof end_marker;
    return TRUE;
}

static void skip_source(j_decompress_ptr jpeg, long count)
{
    if (count <= 0)
        return;
    if ((size_t)count > jpeg->src->bytes_in_buffer) {
        fill_source(jpeg);
        return;
    }
    jpeg->src->next_input_byte += count;
    jpeg->src->bytes_in_buffer -= (size_t)count;
}

static void limit_scans(j_common_ptr jpeg)
{
    if (((struct decoder *)jpeg)->jpeg.input_scan_number > MOST_SCANS)
        ERREXITS(jpeg, JERR_BAD_PROGRESSION, "too many scans");
}

static void decoder_start(struct decoder *decoder, const struct encoded *file)
{
    decoder->source = (struct jpeg_source_mgr){.next_input_byte = file->data,
                                               .bytes_in_buffer = file->size,
                                               .init_source = start_source,
                                               .fill_input_buffer = fill_source,
                                               .skip_input_data = skip_source,
                                               .resync_to_restart = jpeg_resync_to_restart,
                                               .term_source = start_source};
    decoder->progress.progress_monitor = limit_scans;
    jpeg_create_decompress(&decoder->jpeg);
    decoder->jpeg.src = &decoder->source;
    decoder->jpeg.progress = &decoder->progress;
}

/* The stored samples are inverted ink, with or without an Adobe marker; Pillow's integer arithmetic. */
static void cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, int width)
{
    for (int x = 0; x < width; x++) {
        int black = cmyk[4 * x + 3];
        for (int c = 0; c < 3; c++) {
            int product = (255 - cmyk[4 * x + c]) * black + 128;
            int value = black - (((product >> 8) + product) >> 8);
            rgb[3 * x + c] = (uint8_t)(value < 0 ? 0 : value);
        }
    }
}

static void read_rows(struct decoder *decoder)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    size_t stride = (size_t)decoder->image->width * 3;
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW target = decoder->image->pixels + jpeg->output_scanline * stride;
        JSAMPROW row = decoder->row != NULL ? decoder->row : target;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (decoder->row != NULL)
            cmyk_to_rgb(decoder->row, target, decoder->image->width);
    }
}

static status decode(struct decoder *decoder, const struct encoded *file, struct error *error)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    if (setjmp(decoder->failure.escape) != 0)
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this JPEG: %s%s", file->name,
                         decoder->ran_out ? "the file ends early: " : "", decoder->failure.reason);
    decoder_start(decoder, file);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components == 2 || jpeg->num_components > 4)
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this JPEG: expected 1, 3 or 4 components, found %d",
                         file->name, jpeg->num_components);
    if (!jpeg->arith_code && (uint64_t)jpeg->image_width * jpeg->image_height / MOST_PIXELS_A_BYTE > file->size)
        return error_set(error, ERROR_FORMAT,
                         "%s: cannot decode this JPEG: it claims %u×%u pixels, more than %zu bytes can hold",
                         file->name, jpeg->image_width, jpeg->image_height, file->size);
    TRY(image_create_claimed(decoder->image, jpeg->image_width, jpeg->image_height, file->name, error));
    jpeg->out_color_space = jpeg->num_components == 4 ? JCS_CMYK : JCS_RGB;
    if (jpeg->num_components == 4)
        decoder->row = xmalloc((size_t)decoder->image->width * 4);
    jpeg_start_decompress(jpeg);
    read_rows(decoder);
    /* If later scans refine earlier ones, or codes have no length, missing data cannot be distinguished from a
     * missing end marker. */
    if (decoder->ran_out && (jpeg_has_multiple_scans(jpeg) || jpeg->arith_code))
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this JPEG: the file ends early: no end marker",
                         file->name);
    return OK;
}

status jpeg_decode(struct image *image, const struct encoded *file, struct error *error)
{
    struct decoder decoder = {.image = image};
    decoder.jpeg.err = jpeg_std_error(&decoder.failure.manager);
    decoder.failure.manager.error_exit = escape;
    decoder.failure.manager.emit_message = notice;
    status result = decode(&decoder, file, error);
    jpeg_destroy_decompress(&decoder.jpeg);
    free(decoder.row);
    if (result != OK)
        image_free(image);
    return result;
}

struct encoder {
    struct jpeg_compress_struct jpeg;
    struct failure failure;
};

static status encode(struct encoder *encoder, const struct image *image, int quality, FILE *stream, struct error *error)
{
    struct jpeg_compress_struct *jpeg = &encoder->jpeg;
    if (setjmp(encoder->failure.escape) != 0)
        return error_set(error, ERROR_IO, "cannot write this JPEG: %s", encoder->failure.reason);
    jpeg_create_compress(jpeg);
    jpeg_stdio_dest(jpeg, stream);
    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = image->pixels + (size_t)jpeg->next_scanline * (size_t)image->width * 3;
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return OK;
}

status image_write_jpeg(const char *path, const struct image *image, int quality, struct error *error)
{
    struct file_writer writer;
    struct encoder encoder = {0};
    TRY(file_writer_open_one_of_many(&writer, path, error));
    encoder.jpeg.err = jpeg_std_error(&encoder.failure.manager);
    encoder.failure.manager.error_exit = escape;
    encoder.failure.manager.emit_message = notice;
    status result = encode(&encoder, image, quality, writer.stream, error);
    jpeg_destroy_compress(&encoder.jpeg);
    if (result == OK)
        return file_writer_close(&writer, error);
    file_writer_abandon(&writer);
    return error_context(error, "%s", path);
}
