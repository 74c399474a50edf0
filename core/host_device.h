/* Marks functions of headers that the host's compiler and CUDA's both compile, for the host and for devices. */
#pragma once

#ifdef __CUDACC__
#define MTIL_HOST_DEVICE __host__ __device__
#else
#define MTIL_HOST_DEVICE
#endif
