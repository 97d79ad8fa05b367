#include "kernels/ops/cuda/kernels.hpp"

namespace oomlab::kernel {

KernelList all_kernels() {
    KernelList list;
    list_rms_norm(list);
    list_rope(list);
    list_kv_append(list);
    list_attention(list);
    list_attention_decode(list);
    list_attention_prefill(list);
    list_gated_act(list);
    list_copy_rows(list);
    list_sample(list);
    list_fill(list);
    list_checksum(list);
    list_provoke(list);
    return list;
}

}  // namespace oomlab::kernel
