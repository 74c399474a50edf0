#include <math.h>

#include "datasets/mini/figure.h"
#include "tests/test.h"

static const struct colour white = {1, 1, 1};

static struct frame black_canvas(struct canvas *canvas, int side)
{
    struct paint black = paint_solid((struct colour){0, 0, 0});
    canvas_clear(canvas, side, &black);
    return frame_canvas(canvas);
}

/* The painted area in frame units (the whole picture is 4). */
static float painted_area(const struct canvas *canvas)
{
    float sum = 0;
    for (int i = 0; i < canvas->side * canvas->side; i++)
        sum += canvas->pixels[i].g;
    return 4 * sum / (float)(canvas->side * canvas->side);
}

TEST(areas_are_those_of_the_shapes)
{
    struct canvas canvas;
    struct paint paint = paint_solid(white);
    struct frame frame = black_canvas(&canvas, 64);
    canvas_rectangle(&canvas, &frame, -0.51f, -0.33f, 0.42f, 0.77f, &paint);
    assert_float_equal(painted_area(&canvas), 0.93f * 1.1f, 0.01f);
    frame = black_canvas(&canvas, 64);
    canvas_ellipse(&canvas, &frame, 0.1f, -0.1f, 0.7f, 0.4f, &paint);
    assert_float_equal(painted_area(&canvas), 3.14159f * 0.7f * 0.4f, 0.02f);
    frame = black_canvas(&canvas, 32);
    canvas_polygon(&canvas, &frame, (struct point[]){{-0.8f, 0.7f}, {0, -0.9f}, {0.8f, 0.7f}}, 3, &paint);
    assert_float_equal(painted_area(&canvas), 1.28f, 0.01f);
    frame = black_canvas(&canvas, 64);
    canvas_line(&canvas, &frame, (struct point){-0.5f, 0}, (struct point){0.5f, 0.2f}, 0.2f, &paint);
    assert_float_equal(painted_area(&canvas), 1.0198f * 0.2f + 3.14159f * 0.01f, 0.01f);
}

TEST(frames_nest_and_turn)
{
    struct canvas canvas;
    struct paint paint = paint_solid(white);
    struct frame frame = black_canvas(&canvas, 64);
    struct frame outer = frame_place(frame, 0.5f, 0, 0.5f, 1, 0.25f), inner = frame_place(outer, 0, 0, 0.5f, 0.5f, 0);
    canvas_rectangle(&canvas, &inner, -1, -1, 1, 1, &paint);
    /* a quarter turn clockwise: the inner square is 0.5 high and 1 wide, around (0.5, 0) */
    assert_float_equal(painted_area(&canvas), 0.5f, 0.01f);
    assert_float_equal(canvas.pixels[32 * 64 + 60].r, 1, 1e-6f);
    assert_float_equal(canvas.pixels[32 * 64 + 20].r, 0, 1e-6f);
    assert_float_equal(canvas.pixels[20 * 64 + 48].r, 0, 1e-6f);
}

TEST(what_lies_outside_is_clipped)
{
    struct canvas canvas;
    struct paint paint = paint_solid(white);
    struct frame frame = black_canvas(&canvas, 64);
    canvas_rectangle(&canvas, &frame, -1e6f, -1e6f, 1e6f, 0, &paint);
    canvas_line(&canvas, &frame, (struct point){3, 3}, (struct point){4, 1e7f}, 0.5f, &paint);
    canvas_ellipse(&canvas, &frame, -5, 0, 1, 1, &paint);
    assert_float_equal(painted_area(&canvas), 2, 1e-4f);
}

TEST(joints_of_a_stroke_are_blended_once)
{
    struct canvas canvas;
    struct paint paint = {.first = white, .opacity = 0.5f};
    struct frame frame = black_canvas(&canvas, 64);
    canvas_stroke(&canvas, &frame, (struct point[]){{-0.5f, 0}, {0, 0}, {0, 0}, {0.5f, 0}}, 4, 0.3f, &paint);
    assert_float_equal(canvas.pixels[32 * 64 + 32].r, 0.5f, 1e-5f);
}

TEST(effects_do_what_they_say)
{
    struct canvas canvas;
    struct paint paint = {
        .pattern = PATTERN_STRIPES, .first = {0.2f, 0.2f, 0.2f}, .second = {0.8f, 0.8f, 0.8f}, .period = 8};
    canvas_clear(&canvas, 64, &paint);
    float before = painted_area(&canvas);
    canvas_blur(&canvas, 2);
    assert_float_equal(painted_area(&canvas), before, 0.02f);
    canvas_clear(&canvas, 64, &(struct paint){.first = {0.6f, 0.6f, 0.6f}});
    struct dice dice = dice_make(1, 2, 3);
    canvas_add_noise(&canvas, &dice, 0.05f);
    double square = 0;
    for (int i = 0; i < 64 * 64; i++)
        square += (canvas.pixels[i].r - 0.6) * (canvas.pixels[i].r - 0.6);
    assert_float_equal(sqrt(square / (64 * 64)), 0.05, 0.003);
}

TEST(sine_is_a_sine)
{
    for (int i = -300; i <= 300; i++) {
        double turns = 0.0137 * i;
        assert_float_equal(turn_sine((float)turns), sin(6.283185307179586 * turns), 0.0013);
        assert_float_equal(turn_cosine((float)turns), cos(6.283185307179586 * turns), 0.0013);
    }
}

TEST(dice_have_the_promised_moments)
{
    struct dice dice = dice_make(5, 6, 7);
    enum { DRAWS = 20000 };
    double mean = 0, square = 0, uniform = 0;
    for (int i = 0; i < DRAWS; i++) {
        double bell = dice_bell(&dice);
        mean += bell / DRAWS;
        square += bell * bell / DRAWS;
        uniform += dice_between(&dice, 2, 4) / DRAWS;
    }
    assert_float_equal(mean, 0, 0.03);
    assert_float_equal(square, 1, 0.03);
    assert_float_equal(uniform, 3, 0.02);
}
