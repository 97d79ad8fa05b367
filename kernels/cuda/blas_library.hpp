// cuBLAS, opened with dlopen: a program that links it would not start where it is missing, and a
// static copy would add half a gigabyte to ours.
#pragma once

#include <string>

#include "kernels/cuda/cuda_api.hpp"

namespace oomlab::cuda {

class BlasLibrary {
  public:
    BlasLibrary() = default;
    ~BlasLibrary();
    BlasLibrary(const BlasLibrary&) = delete;
    BlasLibrary& operator=(const BlasLibrary&) = delete;

    // Looks beside the program, where the loader looks, and in /usr/local/cuda, for versions 13 and
    // 12. Returns "" or, in words, what was tried and what each try said.
    std::string open();
    int create(Handle* handle);
    int destroy(Handle handle);
    int set_stream(Handle handle, Handle stream);
    int set_workspace(Handle handle, u64 address, u64 bytes);
    int gemm(Handle handle, const Gemm& g);

  private:
    bool load(const std::string& path, std::string& tried);

    void* library_ = nullptr;
    int (*create_)(Handle*) = nullptr;
    int (*destroy_)(Handle) = nullptr;
    int (*set_stream_)(Handle, Handle) = nullptr;
    int (*set_workspace_)(Handle, void*, std::size_t) = nullptr;
    int (*gemm_)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*,
                 int, int, const void*, void*, int, int, int, int) = nullptr;
};

}  // namespace oomlab::cuda
