#include "labs/field/budget/gguf_mix.hpp"

#include <algorithm>

namespace oomlab::field {
namespace {

struct Type {
    const char* name;
    double bits;
};
constexpr Type kTypes[] = {{"F32", 32},        {"F16", 16},      {"BF16", 16},    {"Q8_0", 8.5},
                           {"Q6_K", 6.5625},   {"Q5_K", 5.5},    {"Q4_K", 4.5},   {"Q3_K", 3.4375},
                           {"Q2_K", 2.625},    {"Q4_0", 4.5},    {"Q4_1", 5.0},   {"Q5_0", 5.5},
                           {"Q5_1", 6.0},      {"IQ4_XS", 4.25}, {"IQ4_NL", 4.5}, {"MXFP4", 4.25},
                           {"MXFP4_MOE", 4.25}};

double bits_of(const std::string& name) {
    for (const Type& t : kTypes)
        if (name == t.name) return t.bits;
    return 0;
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    });
    return text;
}

// The layers that the quantizer spends more on: the first and last eighth and every third between.
bool more_bits(u64 layer, u64 layers) {
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

enum class Part { embedding, output, value, key, query, attention_output, down, up, other };

struct Mix {
    std::string base;  // "Q4_K"
    char size = ' ';   // S, M, L
    u64 layers = 0, group = 1, experts = 0;
    bool tied = false;

    std::string type_of(Part part, u64 layer) const {
        const bool k = base.size() == 4 && base[3] == 'K';
        if (base == "F16" || base == "BF16" || base == "F32" || base == "Q8_0" || base == "MXFP4")
            return base == "MXFP4" && part != Part::up && part != Part::down ? "Q8_0" : base;
        if (part == Part::output || (part == Part::embedding && tied)) return "Q6_K";
        if (part == Part::embedding || !k || base == "Q6_K") return base;
        const bool more = more_bits(layer, layers);
        if (part == Part::value) {
            if (experts == 8) return "Q8_0";
            if (base == "Q2_K") return group >= 4 ? "Q4_K" : "Q3_K";
            if (base == "Q3_K")
                return size == 'L' ? "Q5_K" : size == 'M' ? (layer < 2 ? "Q5_K" : "Q4_K") : base;
            if (size == 'S') return base == "Q4_K" && layer < 4 ? "Q5_K" : base;
            if (!more) return base == "Q4_K" && layers == 80 && group >= 8 ? "Q5_K" : base;
            return "Q6_K";
        }
        if (part == Part::key && experts == 8) return "Q8_0";
        if (part == Part::down) {
            if (base == "Q2_K") return "Q3_K";
            if (base == "Q3_K")
                return size == 'L'   ? "Q5_K"
                       : size == 'M' ? (layer < layers / 16 ? "Q5_K"
                                        : more              ? "Q4_K"
                                                            : "Q3_K")
                                     : base;
            if (size == 'S') return base == "Q4_K" && layer < layers / 8 ? "Q5_K" : base;
            return more ? "Q6_K" : base;
        }
        if (part == Part::attention_output) {
            if (experts == 8 && (base == "Q2_K" || base == "Q3_K" || base == "Q4_K")) return "Q5_K";
            if (base == "Q2_K") return "Q3_K";
            if (base == "Q3_K") return size == 'L' ? "Q5_K" : size == 'M' ? "Q4_K" : base;
        }
        return base;
    }
};

bool ends(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

std::optional<GgufWeights> gguf_weights(const ModelShape& shape, const std::string& name,
                                        u64 layers_on_gpu) {
    std::string text = upper(name);
    Mix mix;
    mix.layers = shape.layers.size();
    mix.group =
        std::max<u64>(1, shape.num_attention_heads / std::max<u64>(1, shape.num_key_value_heads));
    mix.experts = shape.moe ? shape.moe->num_experts : 0;
    mix.tied = shape.tie_word_embeddings;
    if (text == "MXFP4_MOE") text = "MXFP4";
    if (text.size() == 6 && text[4] == '_') mix.size = text[5], text.resize(4);
    mix.base = text;
    if (bits_of(mix.base) == 0) return std::nullopt;
    GgufWeights out;
    out.exact_mix = text[0] != 'I';
    const u64 layers = shape.layers.size();
    const u64 first_on_gpu = layers_on_gpu >= layers ? 0 : layers - layers_on_gpu;
    const auto put = [&](double elements, Part part, u64 layer, bool on_gpu) {
        const double bits = part == Part::other ? 32.0 : bits_of(mix.type_of(part, layer));
        (on_gpu ? out.gpu_bytes : out.host_bytes) += static_cast<u64>(elements * bits / 8.0);
    };
    for (const WeightTensor& t : parameter_tensors(shape)) {
        const double n = static_cast<double>(t.rows) * static_cast<double>(t.cols);
        const u64 layer = t.layer < 0 ? 0 : static_cast<u64>(t.layer);
        const bool on_gpu = t.layer >= static_cast<i64>(layers)
                                ? layers_on_gpu > layers
                                : t.layer >= 0 && layer >= first_on_gpu;
        if (ends(t.name, "embed_tokens")) {
            put(n, Part::embedding, 0, false);
            if (mix.tied && layers_on_gpu > layers)
                put(n, Part::output, 0, true);  // a second copy serves as the head
        } else if (ends(t.name, "lm_head.weight")) {
            put(n, Part::output, 0, on_gpu);
        } else if (t.cols == 1 || ends(t.name, "mlp.gate.weight") || ends(t.name, "conv1d") ||
                   ends(t.name, "embed_positions")) {
            put(n, Part::other, layer, on_gpu);
        } else if (ends(t.name, "qkv_proj")) {
            const LayerShape& l = shape.layers[layer];
            const double kv =
                static_cast<double>(l.kv_heads * l.head_dim) * static_cast<double>(t.cols);
            put(n - 2 * kv, Part::query, layer, on_gpu);
            put(kv, Part::key, layer, on_gpu);
            put(kv, Part::value, layer, on_gpu);
        } else if (ends(t.name, "o_proj") || ends(t.name, "out_proj")) {
            put(n, Part::attention_output, layer, on_gpu);
        } else if (ends(t.name, "down_proj") || ends(t.name, "w2_weight")) {
            put(n, Part::down, layer, on_gpu);
        } else {
            put(n, Part::up, layer, on_gpu);
        }
    }
    return out;
}

}  // namespace oomlab::field
