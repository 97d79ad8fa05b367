// The smallest changes that make a deployment fit: each is tried by computing the whole budget
// again.
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/budget/budget_parts.hpp"

namespace oomlab::field {
namespace {

using Edit = ServerFlags;

class Finder {
  public:
    explicit Finder(Budget& b) : b_(b) {}

    std::optional<Budget> with(const ServerFlags& flags) const {
        auto result = compute_budget(base_shape(), b_.gpu, flags);
        if (!result || !result->fits) return std::nullopt;
        return std::move(*result);
    }
    std::string spelled(const char* name, const std::string& value) const {
        return flag_spelling(b_.flags.engine, name) + (value.empty() ? "" : " " + value);
    }
    void add(const std::string& flag, const Budget& now, const std::string& cost) {
        std::string effect =
            b_.flags.engine == Engine::llama_cpp
                ? fmt::format("headroom {}", gib_text(now.headroom_bytes))
                : fmt::format("pool {} = {} tokens, {:.1f} requests of {} at once",
                              gib_text(now.kv_pool_bytes), grouped(now.kv_tokens),
                              now.max_concurrency, grouped(now.resolved.max_model_len));
        b_.changes.push_back({flag, std::move(effect), cost});
    }

    // The budget already applied the flags' quantization to its shape: start from what came in.
    const ModelShape& base_shape() const { return b_.shape; }

    void shorter_requests() {
        ServerFlags f = b_.flags;
        u64 low = 0, high = b_.resolved.max_model_len / 256;
        while (low < high) {
            const u64 middle = low + (high - low + 1) / 2;
            f.max_model_len = middle * 256;
            if (with(f))
                low = middle;
            else
                high = middle - 1;
        }
        if (low == 0 || low * 256 >= b_.resolved.max_model_len) return;
        f.max_model_len = low * 256;
        if (auto now = with(f))
            add(spelled("max_model_len", std::to_string(low * 256)), *now,
                fmt::format("requests above {} tokens are refused", grouped(low * 256)));
    }
    void other_fraction() {
        if (b_.flags.engine == Engine::llama_cpp) return;
        ServerFlags f = b_.flags;
        for (int step = 1; step <= 60; ++step)
            for (int sign : {1, -1}) {
                const double u =
                    static_cast<double>(static_cast<int>(b_.resolved.fraction * 100 + 0.5) +
                                        sign * step) /
                    100.0;
                if (u < 0.30 || u > 0.97) continue;
                f.gpu_memory_utilization = u;
                auto now = with(f);
                if (!now) continue;
                add(spelled("gpu_memory_utilization", fmt::format("{:.2f}", u)), *now,
                    sign > 0
                        ? fmt::format(
                              "headroom {} instead of {}: spikes outside the profile live there",
                              gib_text(now->headroom_bytes), gib_text(b_.headroom_bytes))
                        : "a smaller pool: less runs at once");
                return;
            }
    }
    void smaller_batches() {
        if (b_.flags.engine == Engine::llama_cpp) return;
        ServerFlags f = b_.flags;
        for (u64 s = b_.resolved.max_num_seqs / 2; s >= 8; s /= 2) {
            f.max_num_seqs = s;
            if (auto now = with(f)) {
                add(spelled("max_num_seqs", std::to_string(s)), *now,
                    fmt::format("at most {} requests run at once, the rest wait", s));
                break;
            }
        }
        f = b_.flags;
        for (u64 t = b_.resolved.max_num_batched_tokens / 2; t >= 512; t /= 2) {
            f.max_num_batched_tokens = t;
            f.enable_chunked_prefill = true;
            if (auto now = with(f)) {
                add(spelled("max_num_batched_tokens", std::to_string(t)), *now,
                    fmt::format("prompts are read {} tokens a step: long ones start later",
                                grouped(t)));
                break;
            }
        }
    }
    void no_graphs() {
        if (!b_.resolved.graphs) return;
        ServerFlags f = b_.flags;
        f.enforce_eager = true;
        if (auto now = with(f))
            add(spelled("enforce_eager", ""), *now,
                "every decode step launches kernel by kernel: slower, most at small batches");
    }
    void smaller_kv() {
        ServerFlags f = b_.flags;
        if (b_.flags.engine == Engine::llama_cpp) {
            f.kv_cache_dtype = f.kv_cache_dtype_v = "q8_0";
            if (auto now = with(f))
                add("--cache-type-k q8_0 --cache-type-v q8_0", *now,
                    "slightly less exact attention; needs flash attention");
            return;
        }
        if (b_.resolved.kv_dtype_bytes < 2) return;
        f.kv_cache_dtype = "fp8";
        if (auto now = with(f))
            add("--kv-cache-dtype fp8", *now,
                "twice the tokens in the same bytes; small accuracy loss, uncalibrated scales");
    }
    void smaller_weights() {
        if (b_.flags.engine == Engine::llama_cpp) {
            for (const char* type : {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M"}) {
                ServerFlags f = b_.flags;
                f.quantization = type;
                auto now = with(f);
                if (!now) continue;
                add(std::string("a ") + type + " file", *now, "less exact weights");
                return;
            }
            return;
        }
        if (b_.shape.quantization != Quantization::none) return;
        const struct {
            const char* name;
            const char* cost;
        } kWays[] = {
            {"fp8", "8-bit weights, quantized while loading; small accuracy loss"},
            {"awq",
             "needs a 4-bit checkpoint of the model; accuracy must be checked on your own task"},
        };
        for (const auto& way : kWays) {
            ServerFlags f = b_.flags;
            f.quantization = way.name;
            if (auto now = with(f)) add(std::string("--quantization ") + way.name, *now, way.cost);
        }
    }
    void more_gpus() {
        if (b_.flags.engine == Engine::llama_cpp) return;
        for (u64 tp : {2u, 4u, 8u, 16u}) {
            if (tp <= b_.flags.tensor_parallel_size) continue;
            ServerFlags f = b_.flags;
            f.tensor_parallel_size = tp;
            auto now = with(f);
            if (!now) continue;
            add(spelled("tensor_parallel_size", std::to_string(tp)), *now,
                fmt::format("{} GPUs; two all-reduces a layer, {} a GPU for communication", tp,
                            gib_text(now->communication_bytes + now->non_torch_bytes)));
            return;
        }
    }
    void fewer_layers() {
        if (b_.flags.engine != Engine::llama_cpp) return;
        for (u64 n = b_.shape.layers.size(); n-- > 0;) {
            ServerFlags f = b_.flags;
            f.gpu_layers = n;
            auto now = with(f);
            if (!now) continue;
            add("--gpu-layers " + std::to_string(n), *now,
                "the other layers run on the CPU: much slower");
            return;
        }
    }
    void larger_card(const std::vector<GpuProfile>& cards) {
        std::vector<const GpuProfile*> sorted;
        for (const GpuProfile& c : cards)
            if (c.total_bytes > b_.gpu.total_bytes) sorted.push_back(&c);
        std::sort(sorted.begin(), sorted.end(),
                  [](auto* a, auto* c) { return a->total_bytes < c->total_bytes; });
        for (const GpuProfile* c : sorted) {
            auto now = compute_budget(base_shape(), *c, b_.flags);
            if (!now || !now->fits) continue;
            add("--gpu " + c->id, *now, "a larger card");
            return;
        }
    }
    void pairs() {
        if (b_.flags.engine == Engine::llama_cpp) return;
        for (u64 tp : {2u, 4u, 8u}) {
            for (const char* q : {"fp8", "awq"}) {
                if (b_.shape.quantization != Quantization::none ||
                    tp <= b_.flags.tensor_parallel_size)
                    continue;
                ServerFlags f = b_.flags;
                f.quantization = q;
                f.tensor_parallel_size = tp;
                if (auto now = with(f)) {
                    add(std::string("--quantization ") + q + " " +
                            spelled("tensor_parallel_size", std::to_string(tp)),
                        *now, fmt::format("{} GPUs and quantized weights", tp));
                    return;
                }
            }
        }
        for (const char* q : {"fp8", "awq"}) {
            ServerFlags f = b_.flags;
            f.quantization = q;
            f.max_model_len = std::min<u64>(4096, b_.resolved.max_model_len);
            f.max_num_seqs = std::min<u64>(64, b_.resolved.max_num_seqs);
            if (auto now = with(f)) {
                add(fmt::format("--quantization {} --max-model-len {} --max-num-seqs {}", q,
                                *f.max_model_len, *f.max_num_seqs),
                    *now, "quantized weights, short requests, few at once");
                return;
            }
        }
    }

  private:
    Budget& b_;
};

}  // namespace

void find_changes(Budget& budget, const std::vector<GpuProfile>& larger_cards) {
    budget.changes.clear();
    if (budget.fits) return;
    Finder find(budget);
    find.shorter_requests();
    find.other_fraction();
    find.smaller_batches();
    find.no_graphs();
    find.smaller_kv();
    find.smaller_weights();
    find.fewer_layers();
    if (budget.changes.empty()) find.pairs();
    find.more_gpus();
    find.larger_card(larger_cards);
}

}  // namespace oomlab::field
