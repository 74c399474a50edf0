#include "datasets/augment/operations.h"

#include <math.h>

bool operation_signed(enum operation operation)
{
    return operation >= OPERATION_SHEAR_X && operation <= OPERATION_SHARPNESS;
}

/* torch.linspace(0, end, last + 1) in float: from both ends, with one rounding on the second half. */
static double spaced(double end, size_t bin, size_t last)
{
    float most = (float)end, step = most / (float)last;
    if (bin < (last + 1) / 2)
        return (double)(step * (float)bin);
    return (double)(float)((double)most - (double)step * (double)(last - bin));
}

double operation_magnitude(enum operation operation, size_t bin, size_t last, int side)
{
    switch (operation) {
    case OPERATION_SHEAR_X:
    case OPERATION_SHEAR_Y:
        return spaced(0.3, bin, last);
    case OPERATION_TRANSLATE_X:
    case OPERATION_TRANSLATE_Y:
        return spaced(150.0 / 331.0 * side, bin, last);
    case OPERATION_ROTATE:
        return spaced(30, bin, last);
    case OPERATION_BRIGHTNESS:
    case OPERATION_COLOR:
    case OPERATION_CONTRAST:
    case OPERATION_SHARPNESS:
        return spaced(0.9, bin, last);
    case OPERATION_POSTERIZE:
        return 8 - nearbyint((double)bin / ((double)last / 4));
    case OPERATION_SOLARIZE:
        return 255 - 255 * (double)bin / (double)last;
    default:
        return 0;
    }
}

/* About the image's centre, counterclockwise. */
static void rotate(const struct canvas *canvas, double degrees)
{
    double angle = -degrees * (3.14159265358979323846 / 180), c = cos(angle), s = sin(angle),
           middle = canvas->side / 2.0;
    geometry_transform(
        canvas, (const double[]){c, s, middle - c * middle - s * middle, -s, c, middle + s * middle - c * middle});
}

void operation_apply(enum operation operation, double magnitude, const struct canvas *canvas)
{
    switch (operation) {
    case OPERATION_SHEAR_X:
        geometry_transform(canvas, (const double[]){1, magnitude, 0, 0, 1, 0});
        break;
    case OPERATION_SHEAR_Y:
        geometry_transform(canvas, (const double[]){1, 0, 0, magnitude, 1, 0});
        break;
    case OPERATION_TRANSLATE_X:
        geometry_transform(canvas, (const double[]){1, 0, -trunc(magnitude), 0, 1, 0});
        break;
    case OPERATION_TRANSLATE_Y:
        geometry_transform(canvas, (const double[]){1, 0, 0, 0, 1, -trunc(magnitude)});
        break;
    case OPERATION_ROTATE:
        rotate(canvas, magnitude);
        break;
    case OPERATION_BRIGHTNESS:
        color_brightness(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_COLOR:
        color_saturation(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_CONTRAST:
        color_contrast(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_SHARPNESS:
        color_sharpness(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_POSTERIZE:
        color_posterize(canvas, (int)magnitude);
        break;
    case OPERATION_SOLARIZE:
        color_solarize(canvas, magnitude);
        break;
    case OPERATION_AUTO_CONTRAST:
        color_auto_contrast(canvas);
        break;
    case OPERATION_EQUALIZE:
        color_equalize(canvas);
        break;
    case OPERATION_INVERT:
        color_solarize(canvas, 0);
        break;
    case OPERATION_IDENTITY:
    case OPERATIONS:
        break;
    }
}
