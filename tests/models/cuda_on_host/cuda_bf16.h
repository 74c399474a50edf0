/* Stands in for NVIDIA's cuda_bf16.h; see README.md. */
#pragma once

#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
    std::uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 x)
{
    std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to the nearest, ties to even. */
static inline __nv_bfloat16 __float2bfloat16(float value)
{
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return {0x7fff};
    return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
