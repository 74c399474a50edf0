/* Configurations beside weights. What is understood says the heads of both towers and the activation. */
#include "tests/fuzz/target.h"

#include "models/files/clip_config.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    static const struct clip_dimensions vit_b_16 = {512,   224, 16,   768, 3072, 0, 12, 77,
                                                    49408, 512, 2048, 0,   12,   0, 0,  0};
    struct clip_config config;
    bool is_clip;
    if (clip_config_parse(&config, &is_clip, &vit_b_16, "input", (const char *)data, size, &fuzz_error) == OK &&
        is_clip)
        assert(config.image_heads > 0 && config.text_heads > 0 && config.activation != ACTIVATION_NONE);
    return 0;
}
