/* The first frame of a GIF, by giflib, on the logical screen as Pillow places it. */
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#include "core/alloc.h"
#include "datasets/image/decode.h"

struct decoder {
    const struct encoded *file;
    size_t position;
    int transparent; /* index, NO_TRANSPARENT_COLOR when there is none */
};

static int read_bytes(GifFileType *gif, GifByteType *target, int count)
{
    struct decoder *decoder = gif->UserData;
    size_t left = decoder->file->size - decoder->position;
    size_t got = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
    memcpy(target, decoder->file->data + decoder->position, got);
    decoder->position += got;
    return (int)got;
}

static status refuse(const struct decoder *decoder, int code, struct error *error)
{
    const char *reason = GifErrorString(code);
    return error_set(error, ERROR_FORMAT, "%s: cannot decode this GIF: %s%s", decoder->file->name,
                     decoder->position == decoder->file->size ? "the file ends early: " : "",
                     reason != NULL ? reason : "damaged");
}

static int skip_extension(GifFileType *gif, struct decoder *decoder)
{
    int code;
    GifByteType *block;
    GraphicsControlBlock control;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR)
        return GIF_ERROR;
    while (block != NULL) {
        if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
            decoder->transparent = control.TransparentColor;
        if (DGifGetExtensionNext(gif, &block) == GIF_ERROR)
            return GIF_ERROR;
    }
    return GIF_OK;
}

/* Moves on to the first frame's pixels. */
static status find_frame(GifFileType *gif, struct decoder *decoder, struct error *error)
{
    for (;;) {
        GifRecordType type;
        if (DGifGetRecordType(gif, &type) == GIF_ERROR)
            return refuse(decoder, gif->Error, error);
        if (type == TERMINATE_RECORD_TYPE)
            return refuse(decoder, D_GIF_ERR_NO_IMAG_DSCR, error);
        if (type == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif) == GIF_ERROR ? refuse(decoder, gif->Error, error) : OK;
        if (type == EXTENSION_RECORD_TYPE && skip_extension(gif, decoder) == GIF_ERROR)
            return refuse(decoder, gif->Error, error);
    }
}

/* Colours by index: the frame's own, else the file's, else grey; an index beyond the map is black. */
static void list_colors(const GifFileType *gif, uint8_t colors[256][3])
{
    const ColorMapObject *map = gif->Image.ColorMap != NULL ? gif->Image.ColorMap : gif->SColorMap;
    for (int i = 0; i < 256; i++) {
        if (map == NULL)
            memset(colors[i], i, 3);
        else if (i < map->ColorCount)
            memcpy(colors[i], (uint8_t[]){map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue}, 3);
        else
            memset(colors[i], 0, 3);
    }
}

static int read_rows(GifFileType *gif, struct image *image, const uint8_t colors[256][3], GifPixelType *line)
{
    static const int starts[] = {0, 4, 2, 1, 0}, steps[] = {8, 8, 4, 2, 1};
    const GifImageDesc *frame = &gif->Image;
    for (int pass = frame->Interlace ? 0 : 4; pass < (frame->Interlace ? 4 : 5); pass++) {
        for (int y = starts[pass]; y < frame->Height; y += steps[pass]) {
            if (DGifGetLine(gif, line, frame->Width) == GIF_ERROR)
                return GIF_ERROR;
            uint8_t *row = image->pixels + ((size_t)(frame->Top + y) * (size_t)image->width + (size_t)frame->Left) * 3;
            for (int x = 0; x < frame->Width; x++)
                memcpy(row + 3 * x, colors[line[x]], 3);
        }
    }
    return GIF_OK;
}

static void fill(uint8_t *row, int count, const uint8_t color[3])
{
    for (int x = 0; x < count; x++)
        memcpy(row + 3 * x, color, 3);
}

/* The screen around the frame. Allocated after the frame, so that a truncated file never takes the memory it claims. */
static void fill_around(const GifImageDesc *frame, struct image *image, const uint8_t color[3])
{
    for (int y = 0; y < image->height; y++) {
        uint8_t *row = image->pixels + (size_t)y * (size_t)image->width * 3;
        bool beside = y < frame->Top || y >= frame->Top + frame->Height;
        fill(row, beside ? image->width : frame->Left, color);
        int right = frame->Left + frame->Width;
        if (!beside)
            fill(row + 3 * right, image->width - right, color);
    }
}

static int largest(int a, int b)
{
    return a > b ? a : b;
}

static status decode(GifFileType *gif, struct decoder *decoder, struct image *image, struct error *error)
{
    TRY(find_frame(gif, decoder, error));
    const GifImageDesc *frame = &gif->Image;
    if (frame->Width < 1 || frame->Height < 1)
        return error_set(error, ERROR_FORMAT, "%s: cannot decode this GIF: its first frame has %d×%d pixels",
                         decoder->file->name, frame->Width, frame->Height);
    TRY(image_create_claimed(image, largest(gif->SWidth, frame->Left + frame->Width),
                             largest(gif->SHeight, frame->Top + frame->Height), decoder->file->name, error));
    uint8_t colors[256][3];
    list_colors(gif, colors);
    OWNED GifPixelType *line = xmalloc((size_t)frame->Width);
    if (read_rows(gif, image, (const uint8_t(*)[3])colors, line) == GIF_ERROR)
        return refuse(decoder, gif->Error, error);
    fill_around(frame, image, colors[decoder->transparent != NO_TRANSPARENT_COLOR ? decoder->transparent : 0]);
    return OK;
}

status gif_decode(struct image *image, const struct encoded *file, struct error *error)
{
    struct decoder decoder = {.file = file, .transparent = NO_TRANSPARENT_COLOR};
    int code = 0;
    GifFileType *gif = DGifOpen(&decoder, read_bytes, &code);
    if (gif == NULL)
        return refuse(&decoder, code, error);
    status result = decode(gif, &decoder, image, error);
    DGifCloseFile(gif, &code);
    if (result != OK)
        image_free(image);
    return result;
}
