#include "kernels/cuda/blas_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>

namespace oomlab::cuda {
namespace {

constexpr int kNotInitialized = 1;   // CUBLAS_STATUS_NOT_INITIALIZED
constexpr int kNoTranspose = 0, kTranspose = 1;   // cublasOperation_t
constexpr int kDefaultAlgorithm = -1;             // CUBLAS_GEMM_DEFAULT

std::string program_folder() {
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0) return {};
    const std::string whole(path, static_cast<std::size_t>(n));
    return whole.substr(0, whole.rfind('/') + 1);
}

}  // namespace

BlasLibrary::~BlasLibrary() {
    // Never closed: cuBLAS unloads badly while the driver is shutting down.
}

bool BlasLibrary::load(const std::string& path, std::string& tried) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = dlerror();
        tried += "\n  " + path + ": " + (why != nullptr ? why : "unknown reason");
        return false;
    }
    bool whole = true;
    const auto get = [&](auto& function, const char* name) {
        void* symbol = dlsym(library, name);
        if (symbol == nullptr) {
            whole = false;
            tried += "\n  " + path + ": it has no " + name;
        }
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    get(create_, "cublasCreate_v2");
    get(destroy_, "cublasDestroy_v2");
    get(set_stream_, "cublasSetStream_v2");
    get(set_workspace_, "cublasSetWorkspace_v2");
    get(gemm_, "cublasGemmEx");
    if (!whole) {
        dlclose(library);
        return false;
    }
    library_ = library;
    return true;
}

std::string BlasLibrary::open() {
    if (library_ != nullptr) return {};
    std::string tried;
    for (const char* name : {"libcublas.so.13", "libcublas.so.12"}) {
        for (const std::string& folder :
             {program_folder(), std::string{}, std::string("/usr/local/cuda/lib64/")}) {
            if (load(folder + name, tried)) return {};
        }
    }
    return "cuBLAS was not found (put libcublas.so.13 and libcublasLt.so.13 beside this program or "
           "name their folder in LD_LIBRARY_PATH); tried:" + tried;
}

int BlasLibrary::create(Handle* handle) {
    return library_ != nullptr ? create_(handle) : kNotInitialized;
}
int BlasLibrary::destroy(Handle handle) {
    return library_ != nullptr ? destroy_(handle) : kNotInitialized;
}
int BlasLibrary::set_stream(Handle handle, Handle stream) {
    return library_ != nullptr ? set_stream_(handle, stream) : kNotInitialized;
}
int BlasLibrary::set_workspace(Handle handle, u64 address, u64 bytes) {
    return library_ != nullptr ? set_workspace_(handle, reinterpret_cast<void*>(address), bytes)
                               : kNotInitialized;
}

// cuBLAS is column-major: our row-major out[rows, n] is its out[n, rows], the weight[n, k] its
// weight[k, n] to be transposed, and in[rows, k] its in[k, rows] as it is.
int BlasLibrary::gemm(Handle handle, const Gemm& g) {
    if (library_ == nullptr) return kNotInitialized;
    const float one = 1.0f, zero = 0.0f;
    const int one_int = 1, zero_int = 0;
    const bool integer = g.compute_type == kCompute32I;
    const void* alpha = integer ? static_cast<const void*>(&one_int) : &one;
    const void* beta = integer ? static_cast<const void*>(&zero_int) : &zero;
    return gemm_(handle, kTranspose, kNoTranspose, g.n, g.rows, g.k, alpha,
                 reinterpret_cast<const void*>(g.weight), g.in_type, g.k,
                 reinterpret_cast<const void*>(g.in), g.in_type, g.k, beta,
                 reinterpret_cast<void*>(g.out), g.out_type, g.n, g.compute_type,
                 kDefaultAlgorithm);
}

}  // namespace oomlab::cuda
