/* Marks functions of headers that the host's compiler and CUDA's both compile, for the host and for devices. */
#ifndef MTIL_CORE_HOST_DEVICE_H
#define MTIL_CORE_HOST_DEVICE_H

#ifdef __CUDACC__
#define MTIL_HOST_DEVICE __host__ __device__
#else
#define MTIL_HOST_DEVICE
#endif

#endif
