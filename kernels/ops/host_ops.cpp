#include "kernels/ops/host_ops.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/ops/bodies/elementwise.hpp"
#include "kernels/ops/bodies/paged.hpp"
#include "kernels/ops/bodies/softmax.hpp"

namespace oomlab::host {
namespace {

using number::from_float;
using number::to_float;

// Calls f with a value of the C++ type that stands for `type`.
template <class F>
void with_type(DType type, F&& f) {
    switch (type) {
        case DType::f32: return f(float{});
        case DType::f16: return f(number::f16{});
        case DType::bf16: return f(number::bf16{});
        case DType::i8: return f(std::int8_t{});
        case DType::fp8: return f(number::fp8{});
        case DType::i32: return f(std::int32_t{});
    }
    OOMLAB_UNREACHABLE("a number format that is not in DType");
}

template <class T>
T* tensor(Translate at, u64 address) {
    return reinterpret_cast<T*>(at(address));
}

template <class T>
void load_row(float* to, const T* from, u64 n) {
    for (u64 i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

// Eight partial sums, always joined in the same order: vector units can run it, and the result is
// a function of the two vectors alone.
float dot(const float* a, const float* b, u64 n) {
    float part[8] = {};
    u64 i = 0;
    for (; i + 8 <= n; i += 8) {
        for (u64 lane = 0; lane < 8; ++lane) part[lane] += a[i + lane] * b[i + lane];
    }
    for (u64 lane = 0; i < n; ++i, ++lane) part[lane] += a[i] * b[i];
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

template <class In, class Out>
void matmul_float(const MatmulArgs& a, Translate at) {
    constexpr u64 kRows = 64;   // rows held as floats at a time
    const In* in = tensor<In>(at, a.in);
    const In* weight = tensor<In>(at, a.weight);
    Out* out = tensor<Out>(at, a.out);
    std::vector<float> rows(std::min(kRows, a.rows) * a.k);
    std::vector<float> column(a.k);
    for (u64 row = 0; row < a.rows; row += kRows) {
        const u64 count = std::min(kRows, a.rows - row);
        load_row(rows.data(), in + row * a.k, count * a.k);
        for (u64 j = 0; j < a.n; ++j) {
            load_row(column.data(), weight + j * a.k, a.k);
            for (u64 r = 0; r < count; ++r) {
                out[(row + r) * a.n + j] = from_float<Out>(dot(&rows[r * a.k], column.data(), a.k));
            }
        }
    }
}

template <class Out>
void matmul_int8(const MatmulArgs& a, Translate at) {
    const std::int8_t* in = tensor<std::int8_t>(at, a.in);
    const std::int8_t* weight = tensor<std::int8_t>(at, a.weight);
    Out* out = tensor<Out>(at, a.out);
    for (u64 row = 0; row < a.rows; ++row) {
        for (u64 j = 0; j < a.n; ++j) {
            std::int32_t sum = 0;
            for (u64 i = 0; i < a.k; ++i) sum += in[row * a.k + i] * weight[j * a.k + i];
            if constexpr (std::is_same_v<Out, std::int32_t>) {
                out[row * a.n + j] = sum;
            } else {
                out[row * a.n + j] = from_float<Out>(static_cast<float>(sum));
            }
        }
    }
}

template <class T>
void rms_norm_rows(const RmsNormArgs& a, Translate at) {
    const T* in = tensor<T>(at, a.in);
    const T* weight = tensor<T>(at, a.weight);
    T* residual = a.residual != 0 ? tensor<T>(at, a.residual) : nullptr;
    T* out = tensor<T>(at, a.out);
    std::vector<float> x(a.width);
    for (u64 row = 0; row < a.rows; ++row) {
        load_row(x.data(), in + row * a.width, a.width);
        if (residual != nullptr) {
            T* sums = residual + row * a.width;
            for (u64 i = 0; i < a.width; ++i) {
                sums[i] = from_float<T>(to_float(sums[i]) + x[i]);
                x[i] = to_float(sums[i]);   // the norm sees what was stored
            }
        }
        const float factor = body::rms_factor(dot(x.data(), x.data(), a.width), a.width, a.epsilon);
        for (u64 i = 0; i < a.width; ++i) {
            out[row * a.width + i] = from_float<T>(body::rms_element(x[i], factor, to_float(weight[i])));
        }
    }
}

template <class T>
void rope_rows(const RopeArgs& a, Translate at) {
    T* qkv = tensor<T>(at, a.qkv);
    const std::int32_t* positions = tensor<std::int32_t>(at, a.positions);
    const u64 half = a.head_dim / 2;
    const u64 row_width = (a.heads + 2 * a.kv_heads) * a.head_dim;
    std::vector<float> frequency(half);
    for (u64 i = 0; i < half; ++i) frequency[i] = body::rope_frequency(i, a.head_dim, a.theta);
    for (u64 row = 0; row < a.rows; ++row) {
        for (u64 head = 0; head < a.heads + a.kv_heads; ++head) {
            T* x = qkv + row * row_width + head * a.head_dim;
            for (u64 i = 0; i < half; ++i) {
                const body::Pair turned = body::rope_pair({to_float(x[i]), to_float(x[i + half])},
                                                          positions[row], frequency[i]);
                x[i] = from_float<T>(turned.first);
                x[i + half] = from_float<T>(turned.second);
            }
        }
    }
}

template <class T, class C>
void kv_append_rows(const KvAppendArgs& a, Translate at) {
    const T* qkv = tensor<T>(at, a.qkv);
    C* cache = tensor<C>(at, a.cache);
    const std::int32_t* slots = tensor<std::int32_t>(at, a.slots);
    const body::PagedShape shape{a.block_size, a.kv_heads, a.head_dim};
    const u64 kv_width = a.kv_heads * a.head_dim;
    const u64 row_width = a.heads * a.head_dim + 2 * kv_width;
    for (u64 row = 0; row < a.rows; ++row) {
        if (slots[row] < 0) continue;
        const u64 slot = static_cast<u64>(slots[row]);
        const u64 kv_block = slot / a.block_size;
        const u64 offset = slot % a.block_size;
        const T* keys = qkv + row * row_width + a.heads * a.head_dim;
        C* to_keys = cache + shape.key(kv_block, offset, 0);
        C* to_values = cache + shape.value(kv_block, offset, 0);
        for (u64 i = 0; i < kv_width; ++i) {
            to_keys[i] = from_float<C>(to_float(keys[i]));
            to_values[i] = from_float<C>(to_float(keys[kv_width + i]));
        }
    }
}

// One row of q against one head's context, position by position.
template <class C>
void attend(const C* cache, const std::int32_t* block_table, const body::PagedShape& shape,
            u64 kv_head, u64 first, u64 last, const float* q, float* key, float* sum) {
    body::OnlineSoftmax state;
    std::fill(sum, sum + shape.head_dim, 0.0f);
    for (u64 position = first; position <= last; ++position) {
        const u64 kv_block = static_cast<u64>(block_table[position / shape.block_size]);
        const u64 offset = position % shape.block_size;
        load_row(key, cache + shape.key(kv_block, offset, kv_head), shape.head_dim);
        const body::SoftmaxStep step = body::softmax_step(state, dot(q, key, shape.head_dim));
        const C* value = cache + shape.value(kv_block, offset, kv_head);
        for (u64 i = 0; i < shape.head_dim; ++i) {
            sum[i] = sum[i] * step.keep + step.weight * to_float(value[i]);
        }
    }
    for (u64 i = 0; i < shape.head_dim; ++i) sum[i] /= state.sum;
}

template <class T, class C>
void attention_rows(const AttentionArgs& a, Translate at) {
    const T* qkv = tensor<T>(at, a.qkv);
    const C* cache = tensor<C>(at, a.cache);
    T* out = tensor<T>(at, a.out);   // [rows, heads, head_dim]
    const std::int32_t* row_begin = tensor<std::int32_t>(at, a.row_begin);
    const std::int32_t* context_len = tensor<std::int32_t>(at, a.context_len);
    const std::int32_t* tables = tensor<std::int32_t>(at, a.block_tables);
    const body::PagedShape shape{a.block_size, a.kv_heads, a.head_dim};
    const u64 row_width = (a.heads + 2 * a.kv_heads) * a.head_dim;
    const u64 group = a.heads / a.kv_heads;
    const float scale = 1.0f / std::sqrt(static_cast<float>(a.head_dim));
    std::vector<float> q(a.head_dim), key(a.head_dim), sum(a.head_dim);
    for (u64 seq = 0; seq < a.seqs; ++seq) {
        const u64 begin = static_cast<u64>(row_begin[seq]);
        const u64 end = static_cast<u64>(row_begin[seq + 1]);
        const u64 context = static_cast<u64>(context_len[seq]);
        OOMLAB_CHECK(begin <= end && end <= a.rows && end - begin <= context);
        for (u64 row = begin; row < end; ++row) {
            const u64 position = context - (end - row);
            for (u64 head = 0; head < a.heads; ++head) {
                load_row(q.data(), qkv + row * row_width + head * a.head_dim, a.head_dim);
                for (float& x : q) x *= scale;
                attend(cache, tables + seq * a.max_blocks, shape, head / group,
                       body::first_position(position, a.window), position, q.data(), key.data(),
                       sum.data());
                T* to = out + (row * a.heads + head) * a.head_dim;
                for (u64 i = 0; i < a.head_dim; ++i) to[i] = from_float<T>(sum[i]);
            }
        }
    }
}

}  // namespace

void matmul(const MatmulArgs& a, Translate at) {
    if (a.in == 0 || a.weight == 0 || a.out == 0) return;
    with_type(a.out_type, [&](auto out) {
        using Out = decltype(out);
        if (a.in_type == DType::i8) return matmul_int8<Out>(a, at);
        with_type(a.in_type, [&](auto in) { matmul_float<decltype(in), Out>(a, at); });
    });
}

void rms_norm(const RmsNormArgs& a, Translate at) {
    if (a.in == 0 || a.weight == 0 || a.out == 0) return;
    with_type(a.type, [&](auto t) { rms_norm_rows<decltype(t)>(a, at); });
}

void rope(const RopeArgs& a, Translate at) {
    if (a.qkv == 0 || a.positions == 0) return;
    with_type(a.type, [&](auto t) { rope_rows<decltype(t)>(a, at); });
}

void kv_append(const KvAppendArgs& a, Translate at) {
    if (a.qkv == 0 || a.cache == 0 || a.slots == 0) return;
    with_type(a.type, [&](auto t) {
        with_type(a.cache_type, [&](auto c) { kv_append_rows<decltype(t), decltype(c)>(a, at); });
    });
}

void attention(const AttentionArgs& a, Translate at) {
    if (a.qkv == 0 || a.cache == 0 || a.out == 0 || a.row_begin == 0 || a.context_len == 0 ||
        a.block_tables == 0) {
        return;
    }
    OOMLAB_CHECK(a.kv_heads > 0 && a.heads % a.kv_heads == 0 && a.block_size > 0);
    with_type(a.type, [&](auto t) {
        with_type(a.cache_type, [&](auto c) { attention_rows<decltype(t), decltype(c)>(a, at); });
    });
}

void gated_act(const GatedActArgs& a, Translate at) {
    if (a.gate_up == 0 || a.out == 0) return;
    with_type(a.type, [&](auto t) {
        using T = decltype(t);
        const T* gate_up = tensor<T>(at, a.gate_up);
        T* out = tensor<T>(at, a.out);
        for (u64 row = 0; row < a.rows; ++row) {
            const T* gate = gate_up + row * 2 * a.width;
            for (u64 i = 0; i < a.width; ++i) {
                out[row * a.width + i] =
                    from_float<T>(body::silu(to_float(gate[i])) * to_float(gate[a.width + i]));
            }
        }
    });
}

void embed(const EmbedArgs& a, Translate at) {
    if (a.ids == 0 || a.table == 0 || a.out == 0) return;
    const std::int32_t* ids = tensor<std::int32_t>(at, a.ids);
    const u64 row_bytes = a.width * dtype_bytes(a.type);
    for (u64 row = 0; row < a.rows; ++row) {
        OOMLAB_CHECK(ids[row] >= 0 && static_cast<u64>(ids[row]) < a.vocab);
        std::memcpy(at(a.out) + row * row_bytes,
                    at(a.table) + static_cast<u64>(ids[row]) * row_bytes, row_bytes);
    }
}

void gather(const GatherArgs& a, Translate at) {
    if (a.in == 0 || a.index == 0 || a.out == 0) return;
    const std::int32_t* index = tensor<std::int32_t>(at, a.index);
    const u64 row_bytes = a.width * dtype_bytes(a.type);
    for (u64 row = 0; row < a.rows; ++row) {
        std::memcpy(at(a.out) + row * row_bytes,
                    at(a.in) + static_cast<u64>(index[row]) * row_bytes, row_bytes);
    }
}

void sample(const SampleArgs& a, Translate at) {
    if (a.logits == 0 || a.tokens == 0) return;
    with_type(a.type, [&](auto t) {
        const auto* logits = tensor<decltype(t)>(at, a.logits);
        std::int32_t* tokens = tensor<std::int32_t>(at, a.tokens);
        for (u64 row = 0; row < a.rows; ++row) {
            body::Candidate best = body::no_candidate();
            for (u64 i = 0; i < a.vocab; ++i) {
                best = body::better(best, {to_float(logits[row * a.vocab + i]),
                                           static_cast<std::int32_t>(i)});
            }
            tokens[row] = body::token_of(best);
        }
    });
}

void fill(const FillArgs& a, Translate at) {
    if (a.out == 0) return;
    with_type(a.type, [&](auto t) {
        using T = decltype(t);
        T* out = tensor<T>(at, a.out);
        for (u64 i = 0; i < a.elements; ++i) out[i] = body::fill_element<T>(a.seed, i, a.scale);
    });
}

u64 checksum(u64 address, u64 bytes, Translate at) {
    u64 hash = body::kFnvBasis;
    if (bytes == 0) return hash;
    const char* data = at(address);
    for (u64 i = 0; i < bytes; ++i) {
        hash = body::fnv_step(hash, static_cast<std::uint8_t>(data[i]));
    }
    return hash;
}

}  // namespace oomlab::host
