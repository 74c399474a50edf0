/* WebP by libwebp: the first frame of an animation on its canvas, as in Pillow; alpha is dropped. */

#include <webp/decode.h>
#include <webp/demux.h>

#include "datasets/image/decode.h"

static status refuse(const struct encoded *file, const char *why, struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: cannot decode this WebP: %s", file->name, why);
}

static const char *reason(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "the file ends early";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it uses a feature that libwebp does not know";
    default:
        return "damaged";
    }
}

static status decode_frame(struct image *image, const struct encoded *file, struct error *error)
{
    WebPData data = {file->data, file->size};
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, NULL); /* RGBA */
    uint8_t *canvas;
    int time;
    bool read = decoder != NULL && WebPAnimDecoderGetNext(decoder, &canvas, &time) != 0;
    for (size_t i = 0; read && i < (size_t)image->width * (size_t)image->height; i++)
        for (size_t c = 0; c < 3; c++)
            image->pixels[3 * i + c] = canvas[4 * i + c];
    WebPAnimDecoderDelete(decoder);
    return read ? OK : refuse(file, "its first frame is damaged or cut off", error);
}

static status decode_still(struct image *image, const struct encoded *file, struct error *error)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return refuse(file, "libwebp is not of the version that the program was built with", error);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixels;
    config.output.u.RGBA.stride = image->width * 3;
    config.output.u.RGBA.size = (size_t)image->width * (size_t)image->height * 3;
    VP8StatusCode code = WebPDecode(file->data, file->size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? OK : refuse(file, reason(code), error);
}

status webp_decode(struct image *image, const struct encoded *file, struct error *error)
{
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(file->data, file->size, &features);
    if (code != VP8_STATUS_OK)
        return refuse(file, reason(code), error);
    TRY(image_create_claimed(image, features.width, features.height, file->name, error));
    status result = features.has_animation ? decode_frame(image, file, error) : decode_still(image, file, error);
    if (result != OK)
        image_free(image);
    return result;
}
