// quantization_config in its many dialects -> method, bits a weight with scales, and what stays
// 16-bit.
#include "labs/shapes/config_parts.hpp"

namespace oomlab {
namespace {

using config::Json;
using Q = Quantization;

struct Named {
    const char* text;
    Q q;
};
constexpr Named kNames[] = {
    {"none", Q::none},       {"fp8", Q::fp8},
    {"fbgemm_fp8", Q::fp8},  {"w8a8_int8", Q::w8a8_int8},
    {"gptq", Q::gptq},       {"gptq_marlin", Q::gptq},
    {"awq", Q::awq},         {"awq_marlin", Q::awq},
    {"auto-round", Q::gptq}, {"bitsandbytes", Q::bitsandbytes},
    {"mxfp4", Q::mxfp4},     {"nvfp4", Q::nvfp4},
    {"gguf", Q::gguf},
};

double bits_with_scales(Q q, u64 bits, u64 group) {
    const double b = static_cast<double>(bits), g = static_cast<double>(group == 0 ? 128 : group);
    switch (q) {
        case Q::none:
            return 16;
        case Q::fp8:
            return group >= 128 ? 8.0 + 32.0 / (g * g) : 8.0;
        case Q::w8a8_int8:
            return 8;
        case Q::gptq:
        case Q::awq:
            return b + (16.0 + b) / g;
        case Q::bitsandbytes:
            return bits == 8 ? 8.0 : 4.5;  // absmax fp32 per 64
        case Q::mxfp4:
            return 4.25;  // e8m0 scale per 32
        case Q::nvfp4:
            return 4.5;  // e4m3 scale per 16
        case Q::gguf:
            return bits == 0 ? 4.85 : b;
    }
    return 16;
}

u64 number_in(const Json& object, const char* key, u64 absent) {
    auto it = object.find(key);
    return it != object.end() && it->is_number_unsigned() && it->get<u64>() <= 65536
               ? it->get<u64>()
               : absent;
}
std::string text_in(const Json& object, const char* key) {
    auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}
bool flag_in(const Json& object, const char* key, bool absent) {
    auto it = object.find(key);
    return it != object.end() && it->is_boolean() ? it->get<bool>() : absent;
}
bool says(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

// A part counts as left out when a pattern names it for every layer, or most layers are listed.
void read_exclusions(ModelShape& shape, const Json& object) {
    u64 attention = 0, mlp = 0, experts = 0;
    for (const char* key : {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules",
                            "llm_int8_skip_modules"}) {
        auto it = object.find(key);
        if (it == object.end() || !it->is_array()) continue;
        for (const Json& item : *it) {
            if (!item.is_string()) continue;
            const std::string text = item.get<std::string>();
            if (says(text, "vision") || says(text, "visual") || says(text, "mtp")) continue;
            bool layer_number = false;
            for (std::size_t i = 0; i + 1 < text.size(); ++i)
                layer_number |= text[i] == '.' && text[i + 1] >= '0' && text[i + 1] <= '9';
            const u64 weight = layer_number ? 1 : shape.num_hidden_layers;
            const bool whole = says(text, "self_attn") || says(text, "attention");
            if (whole && !says(text, "kv_b_proj") && !says(text, "norm")) attention += weight;
            if (says(text, "experts") && !says(text, "gate") && !says(text, "shared"))
                experts += weight;
            else if (says(text, "mlp") && !says(text, "gate") && !says(text, "router") &&
                     !says(text, "shared"))
                mlp += weight;
        }
    }
    const u64 most = shape.num_hidden_layers / 2 + 1;
    if (attention >= most) shape.traits.quantize_attention = false;
    if (mlp >= most) shape.traits.quantize_mlp = false;
    if (experts >= most) shape.traits.quantize_experts = false;
}

// llm-compressor's format: what it does is in the first group's weights.
void read_compressed_tensors(ModelShape& shape, const Json& object) {
    const Json* weights = nullptr;
    bool activations = false;
    auto groups = object.find("config_groups");
    if (groups != object.end() && groups->is_object()) {
        for (const auto& [name, group] : groups->items()) {
            if (!group.is_object()) continue;
            auto w = group.find("weights");
            if (w == group.end() || !w->is_object()) continue;
            weights = &*w;
            auto a = group.find("input_activations");
            activations = a != group.end() && a->is_object();
            break;
        }
    }
    if (weights == nullptr) {
        shape.unknown.push_back(
            "quantization_config compressed-tensors without config_groups: weights counted at 16 "
            "bit");
        return;
    }
    const u64 bits = number_in(*weights, "num_bits", 8),
              group = number_in(*weights, "group_size", 0);
    const std::string type = text_in(*weights, "type");
    if (type == "float" && bits == 4)
        return apply_quantization(shape, group == 32 ? Q::mxfp4 : Q::nvfp4, 4, group);
    if (bits == 8 && type == "float") return apply_quantization(shape, Q::fp8, 8, 0);
    if (bits == 8 && activations) return apply_quantization(shape, Q::w8a8_int8, 8, 0);
    apply_quantization(shape, Q::gptq, bits, group == 0 ? shape.hidden_size : group);
}

}  // namespace

Result<Quantization> parse_quantization(std::string_view text) {
    std::string all;
    for (const Named& n : kNames) {
        if (text == n.text) return n.q;
        all += (all.empty() ? "" : ", ") + std::string(n.text);
    }
    return fail(
        Error::usage("unknown quantization '" + config::printable(text) + "'; known: " + all));
}

const char* quantization_name(Quantization q) {
    switch (q) {
        case Q::none:
            return "none";
        case Q::fp8:
            return "fp8";
        case Q::w8a8_int8:
            return "w8a8_int8";
        case Q::gptq:
            return "gptq";
        case Q::awq:
            return "awq";
        case Q::bitsandbytes:
            return "bitsandbytes";
        case Q::mxfp4:
            return "mxfp4";
        case Q::nvfp4:
            return "nvfp4";
        case Q::gguf:
            return "gguf";
    }
    return "none";
}

void apply_quantization(ModelShape& shape, Quantization q, u64 bits, u64 group) {
    shape.quantization = q;
    shape.quant_group = group;
    shape.quant_bits = bits_with_scales(q, bits, group);
    if (q == Q::mxfp4 && shape.moe) {
        // The format is used for experts; its kernels pad their width to a multiple of 256.
        shape.traits.quantize_attention = shape.traits.quantize_mlp = false;
        shape.traits.expert_width_multiple = 256;
    }
    if (q == Q::gguf) shape.traits.quantize_head = true;
}

namespace config {

void read_quantization(ModelShape& shape, const Fields& fields) {
    const Json* found = fields.find({"quantization_config", "compression_config"});
    if (found == nullptr || !found->is_object()) return;
    const Json& object = *found;
    std::string method = text_in(object, "quant_method");
    if (method.empty())
        method = flag_in(object, "load_in_4bit", false) || flag_in(object, "load_in_8bit", false)
                     ? "bitsandbytes"
                     : "";
    const u64 bits = number_in(object, "bits", number_in(object, "w_bit", 4));
    u64 group = number_in(object, "group_size", number_in(object, "q_group_size", 128));
    auto raw_group = object.find("group_size");
    if (raw_group != object.end() && raw_group->is_number_integer() && raw_group->get<i64>() < 0)
        group = shape.hidden_size;
    if (method == "compressed-tensors") {
        read_compressed_tensors(shape, object);
    } else if (method == "gptq" || method == "awq" || method == "auto-round" ||
               method == "auto_round") {
        if (bits < 2 || bits > 8)
            shape.unknown.push_back("quantization_config.bits is not 2 to 8: counted as 4");
        apply_quantization(shape, method == "awq" ? Q::awq : Q::gptq,
                           bits < 2 || bits > 8 ? 4 : bits, group);
        shape.traits.quantize_head = flag_in(object, "lm_head", false);
    } else if (method == "fp8" || method == "fbgemm_fp8") {
        auto block = object.find("weight_block_size");
        const bool blocks = block != object.end() && block->is_array() && !block->empty();
        apply_quantization(shape, Q::fp8, 8, blocks ? 128 : 0);
    } else if (method == "bitsandbytes") {
        const bool eight =
            flag_in(object, "load_in_8bit", false) && !flag_in(object, "load_in_4bit", false);
        apply_quantization(shape, Q::bitsandbytes, eight ? 8 : 4, 64);
        if (!eight && flag_in(object, "bnb_4bit_use_double_quant", false)) shape.quant_bits = 4.127;
    } else if (method == "mxfp4") {
        apply_quantization(shape, Q::mxfp4, 4, 32);
    } else if (method == "modelopt" || method == "modelopt_fp4" || method == "nvfp4") {
        const std::string algorithm = text_in(object, "quant_algo");
        const bool eight = says(algorithm, "FP8") || says(algorithm, "fp8");
        apply_quantization(shape, eight ? Q::fp8 : Q::nvfp4, eight ? 8 : 4, eight ? 0 : 16);
    } else if (method == "w8a8_int8") {
        apply_quantization(shape, Q::w8a8_int8, 8, 0);
    } else {
        shape.unknown.push_back("quantization method '" + printable(method) +
                                "' is not known: weights counted at 16 bit");
        return;
    }
    read_exclusions(shape, object);
}

}  // namespace config
}  // namespace oomlab
