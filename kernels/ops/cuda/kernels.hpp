// Every kernel of this folder as the host sees it. A kernel worth teaching is there twice: readable,
// then fast; both give the same results within rounding, and the GPU check times both.
#pragma once

#include <vector>

#include "kernels/ops/launch_ops.hpp"

namespace oomlab::kernel {

enum class Version { readable, fast };

// Each returns CUDA's error number of the launch. What the fast version cannot take (an odd width, an
// unusual head_dim) the readable one runs.
int rms_norm(const RmsNormArgs& a, Version version, void* stream);
int rope(const RopeArgs& a, Version version, void* stream);
int kv_append(const KvAppendArgs& a, Version version, void* stream);
int attention(const AttentionArgs& a, Version version, Workspace work, void* stream);
int gated_act(const GatedActArgs& a, Version version, void* stream);
int embed(const EmbedArgs& a, void* stream);
int gather(const GatherArgs& a, void* stream);
int sample(const SampleArgs& a, Version version, Workspace work, void* stream);
int fill(const FillArgs& a, Version version, void* stream);
int checksum(u64 address, u64 bytes, Version version, Workspace work, void* stream);
int provoke(DeviceErrc code, void* stream);

// Parts of attention().
bool decode_takes(const AttentionArgs& a);
int attention_decode(const AttentionArgs& a, Workspace work, void* stream);
bool prefill_takes(const AttentionArgs& a);
int attention_prefill(const AttentionArgs& a, void* stream);

// Every kernel's address, by name: to load them all at once and to ask for their resources.
struct KernelEntry {
    const char* name;
    const void* function;
};
using KernelList = std::vector<KernelEntry>;
void list_rms_norm(KernelList& list);
void list_rope(KernelList& list);
void list_kv_append(KernelList& list);
void list_attention(KernelList& list);
void list_attention_decode(KernelList& list);
void list_attention_prefill(KernelList& list);
void list_gated_act(KernelList& list);
void list_copy_rows(KernelList& list);
void list_sample(KernelList& list);
void list_fill(KernelList& list);
void list_checksum(KernelList& list);
void list_provoke(KernelList& list);
KernelList all_kernels();

}  // namespace oomlab::kernel
