#include "labs/field/budget/server_flags.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "labs/catalog/text_file.hpp"

namespace oomlab::field {
namespace {

enum class Takes { number, fraction, text, onoff, gib };

struct Spec {
    const char* engines;  // v, s, l: whose flag it is
    const char* names;    // "--max-model-len --max_model_len"
    Takes takes;
    void (*set)(ServerFlags&, double, const std::string&);
};

u64 whole(double v) {
    return v <= 0 ? 0 : static_cast<u64>(v);
}

const Spec kSpecs[] = {
    {"v", "--model", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.model = t; }},
    {"s", "--model-path --model", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.model = t; }},
    {"l", "--model -m", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.model = t; }},
    {"l", "--hf-repo -hf", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.model = t; }},
    {"vs", "--served-model-name", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.served_as = t; }},
    {"v", "--max-model-len", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         if (v < 0)
             f.max_model_len_auto = true;
         else
             f.max_model_len = whole(v);
     }},
    {"s", "--context-length", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_model_len = whole(v); }},
    {"l", "--ctx-size -c", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         if (v > 0) f.max_model_len = whole(v);
     }},
    {"v", "--max-num-seqs", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_num_seqs = whole(v); }},
    {"s", "--max-running-requests", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_num_seqs = whole(v); }},
    {"l", "--parallel -np", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         if (v > 0) f.max_num_seqs = whole(v);
     }},
    {"v", "--max-num-batched-tokens", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_num_batched_tokens = whole(v); }},
    {"s", "--chunked-prefill-size", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         if (v <= 0)
             f.enable_chunked_prefill = false;
         else
             f.max_num_batched_tokens = whole(v);
     }},
    {"v", "--gpu-memory-utilization", Takes::fraction,
     [](ServerFlags& f, double v, const std::string&) { f.gpu_memory_utilization = v; }},
    {"s", "--mem-fraction-static", Takes::fraction,
     [](ServerFlags& f, double v, const std::string&) { f.gpu_memory_utilization = v; }},
    {"vs", "--kv-cache-dtype", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.kv_cache_dtype = t; }},
    {"l", "--cache-type-k -ctk", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.kv_cache_dtype = t; }},
    {"l", "--cache-type-v -ctv", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.kv_cache_dtype_v = t; }},
    {"vsl", "--quantization -q", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.quantization = t; }},
    {"vs", "--dtype", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.dtype = t; }},
    {"v", "--tensor-parallel-size -tp", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         f.tensor_parallel_size = whole(v);
         f.tp_given = true;
     }},
    {"s", "--tp-size --tp --tensor-parallel-size", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         f.tensor_parallel_size = whole(v);
         f.tp_given = true;
     }},
    {"v", "--pipeline-parallel-size -pp", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.pipeline_parallel_size = whole(v); }},
    {"s", "--pp-size --pp --pipeline-parallel-size", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.pipeline_parallel_size = whole(v); }},
    {"v", "--data-parallel-size -dp", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.data_parallel_size = whole(v); }},
    {"s", "--dp-size --dp --data-parallel-size", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.data_parallel_size = whole(v); }},
    {"v", "--enable-chunked-prefill", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.enable_chunked_prefill = v != 0; }},
    {"v", "--enable-prefix-caching", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.enable_prefix_caching = v != 0; }},
    {"s", "--disable-radix-cache", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.enable_prefix_caching = v == 0; }},
    {"v", "--enforce-eager", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.enforce_eager = v != 0; }},
    {"s", "--disable-cuda-graph", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.enforce_eager = v != 0; }},
    {"l", "--flash-attn -fa", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.flash_attention = v != 0; }},
    {"v", "--block-size", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.block_size = whole(v); }},
    {"s", "--page-size", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.block_size = whole(v); }},
    {"v", "--num-gpu-blocks-override", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.num_gpu_blocks_override = whole(v); }},
    {"v", "--kv-cache-memory-bytes --kv-cache-memory", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.kv_cache_memory_bytes = whole(v); }},
    {"s", "--max-total-tokens", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_total_tokens = whole(v); }},
    {"v", "--max-cudagraph-capture-size --max-seq-len-to-capture", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_capture_size = whole(v); }},
    {"s", "--cuda-graph-max-bs", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.max_capture_size = whole(v); }},
    {"v", "--cudagraph-capture-sizes --cuda-graph-sizes", Takes::text,
     [](ServerFlags& f, double, const std::string& t) {
         f.capture_sizes = 1 + static_cast<u64>(std::count(t.begin(), t.end(), ',') +
                                                std::count(t.begin(), t.end(), ' '));
     }},
    {"v", "--cpu-offload-gb", Takes::gib,
     [](ServerFlags& f, double v, const std::string&) { f.cpu_offload_gib = v; }},
    {"v", "--swap-space", Takes::gib,
     [](ServerFlags& f, double v, const std::string&) { f.swap_space_gib = v; }},
    {"v", "--enable-expert-parallel", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.expert_parallel = v != 0; }},
    {"v", "--enable-lora", Takes::onoff,
     [](ServerFlags& f, double v, const std::string&) { f.lora = v != 0; }},
    {"s", "--lora-paths", Takes::text,
     [](ServerFlags& f, double, const std::string&) { f.lora = true; }},
    {"v", "--speculative-config --speculative-model", Takes::text,
     [](ServerFlags& f, double, const std::string&) { f.speculative = true; }},
    {"s", "--speculative-algorithm", Takes::text,
     [](ServerFlags& f, double, const std::string&) { f.speculative = true; }},
    {"l", "--ubatch-size -ub", Takes::number,
     [](ServerFlags& f, double v, const std::string&) { f.ubatch = whole(v); }},
    {"l", "--gpu-layers --n-gpu-layers -ngl", Takes::number,
     [](ServerFlags& f, double v, const std::string&) {
         f.gpu_layers = v < 0 ? u64{1} << 20 : whole(v);
     }},
    {"vsl", "--engine-version", Takes::text,
     [](ServerFlags& f, double, const std::string& t) { f.engine_version = t; }},
};

// Switches of vLLM and SGLang that take no value and do not touch memory; any other unknown flag
// takes the next word when it does not look like a flag.
constexpr const char* kBare[] = {"--trust-remote-code",
                                 "--enable-auto-tool-choice",
                                 "--disable-log-requests",
                                 "--disable-log-stats",
                                 "--enable-metrics",
                                 "--async-scheduling",
                                 "--skip-mm-profiling",
                                 "--enable-sleep-mode",
                                 "--enable-reasoning",
                                 "--enable-dp-attention",
                                 "--mlock",
                                 "--no-mmap",
                                 "--cont-batching",
                                 "--metrics",
                                 "--jinja"};

std::string with_dashes(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

bool word_in(const char* list, const std::string& word) {
    const std::string all = std::string(" ") + list + " ";
    return all.find(" " + word + " ") != std::string::npos;
}

const Spec* find_spec(Engine engine, const std::string& name) {
    const char letter = engine == Engine::vllm ? 'v' : engine == Engine::sglang ? 's' : 'l';
    for (const Spec& s : kSpecs)
        if (std::string(s.engines).find(letter) != std::string::npos && word_in(s.names, name))
            return &s;
    return nullptr;
}

// "32768", "32k" (1000s), "32K" (1024s), "1.5e3", "auto": as vLLM reads them.
std::optional<double> read_number(const std::string& text) {
    if (text == "auto" || text == "max" || text == "all") return -1;
    char* end = nullptr;
    const double v = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(v) || std::fabs(v) > 1e15) return std::nullopt;
    double scale = 1;
    switch (*end) {
        case 'k':
            scale = 1e3, ++end;
            break;
        case 'm':
            scale = 1e6, ++end;
            break;
        case 'g':
            scale = 1e9, ++end;
            break;
        case 'K':
            scale = 1024, ++end;
            break;
        case 'M':
            scale = 1048576, ++end;
            break;
        case 'G':
            scale = 1073741824.0, ++end;
            break;
        default:
            break;
    }
    if (*end != '\0') return std::nullopt;
    return v * scale;
}

std::optional<bool> read_onoff(const std::string& text) {
    for (const char* yes : {"true", "True", "TRUE", "1", "on", "yes", "auto"})
        if (text == yes) return true;
    for (const char* no : {"false", "False", "FALSE", "0", "off", "no"})
        if (text == no) return false;
    return std::nullopt;
}

bool looks_like_flag(const std::string& token) {
    if (token.size() < 2 || token[0] != '-') return false;
    return !(token[1] >= '0' && token[1] <= '9') && token[1] != '.';
}

}  // namespace

const char* engine_name(Engine engine) {
    return engine == Engine::vllm ? "vllm" : engine == Engine::sglang ? "sglang" : "llama.cpp";
}

Result<Engine> parse_engine(const std::string& text) {
    if (text == "vllm") return Engine::vllm;
    if (text == "sglang") return Engine::sglang;
    if (text == "llama.cpp" || text == "llamacpp" || text == "llama-server")
        return Engine::llama_cpp;
    return fail(
        Error::usage("unknown engine '" + text.substr(0, 40) + "': vllm, sglang or llama.cpp"));
}

Result<ServerFlags> parse_server_flags(Engine engine, const std::vector<std::string>& tokens,
                                       bool strict) {
    ServerFlags flags;
    flags.engine = engine;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::string token = tokens[i];
        if (!looks_like_flag(token)) {
            if (flags.model.empty() && !strict)
                flags.model = token;
            else if (strict)
                return fail(Error::usage("'" + token.substr(0, 60) +
                                         "' is not a flag; flags are written as the server takes "
                                         "them, such as --max-model-len 8192"));
            continue;
        }
        std::optional<std::string> value;
        if (auto eq = token.find('='); eq != std::string::npos)
            value = token.substr(eq + 1), token.resize(eq);
        std::string name = with_dashes(token);
        const Spec* spec = find_spec(engine, name);
        bool negated = false;
        if (spec == nullptr && name.rfind("--no-", 0) == 0) {
            spec = find_spec(engine, "--" + name.substr(5));
            negated = spec != nullptr;
        }
        if (spec == nullptr) {
            if (strict) {
                std::vector<std::string> known;
                for (const Spec& s : kSpecs) {
                    const std::string names = s.names;
                    if (find_spec(engine, names.substr(0, names.find(' '))) == &s)
                        known.push_back(names.substr(0, names.find(' ')));
                }
                const std::string close = nearest(name, known);
                return fail(Error::usage(
                    "flag " + name.substr(0, 60) + " is not one that decides memory in " +
                    engine_name(engine) + (close.empty() ? "" : " (did you mean " + close + "?)") +
                    "; see oomlab budget --help"));
            }
            const bool bare = std::find_if(std::begin(kBare), std::end(kBare), [&](const char* b) {
                                  return name == b;
                              }) != std::end(kBare);
            if (!value && !bare && i + 1 < tokens.size() && !looks_like_flag(tokens[i + 1]))
                value = tokens[++i];
            flags.other[name] = value.value_or("");
            continue;
        }
        if (spec->takes == Takes::onoff) {
            bool on = true;
            if (value) {
                auto read = read_onoff(*value);
                if (!read)
                    return fail(Error::usage(name + " takes true or false, not '" +
                                             value->substr(0, 40) + "'"));
                on = *read;
            } else if (i + 1 < tokens.size() && read_onoff(tokens[i + 1])) {
                on = *read_onoff(tokens[++i]);
            }
            spec->set(flags, on != negated ? 1 : 0, "");
            continue;
        }
        if (!value) {
            if (i + 1 >= tokens.size()) return fail(Error::usage(name + " needs a value"));
            value = tokens[++i];
        }
        if (spec->takes == Takes::text) {
            spec->set(flags, 0, *value);
            continue;
        }
        auto number = read_number(*value);
        if (!number)
            return fail(Error::usage(name + " takes a number, not '" + value->substr(0, 40) + "'"));
        if (spec->takes == Takes::fraction && !(*number > 0 && *number <= 1))
            return fail(Error::usage(name + " = " + value->substr(0, 40) +
                                     ": a share of the card above 0 and up to 1, such as 0.90"));
        if (spec->takes == Takes::number && *number != -1 && *number < 0)
            return fail(
                Error::usage(name + " = " + value->substr(0, 40) + ": must not be negative"));
        spec->set(flags, *number, *value);
    }
    const auto positive = [](std::optional<u64> v) { return !v || (*v > 0 && *v <= u64{1} << 40); };
    if (!positive(flags.max_model_len) || !positive(flags.max_num_seqs) ||
        !positive(flags.max_num_batched_tokens) || !positive(flags.ubatch))
        return fail(Error::usage("lengths and counts must be from 1 to 2^40"));
    if (flags.tensor_parallel_size < 1 || flags.tensor_parallel_size > 1024 ||
        flags.pipeline_parallel_size < 1 || flags.pipeline_parallel_size > 256)
        return fail(Error::usage(
            "parallel sizes must be 1 or more (tensor up to 1024, pipeline up to 256)"));
    if (flags.block_size < 1 || flags.block_size > 65536)
        return fail(Error::usage("the block size must be from 1 to 65536 tokens"));
    return flags;
}

std::string flag_spelling(Engine engine, const std::string& name) {
    if (engine == Engine::sglang) {
        if (name == "max_model_len") return "--context-length";
        if (name == "max_num_seqs") return "--max-running-requests";
        if (name == "max_num_batched_tokens") return "--chunked-prefill-size";
        if (name == "gpu_memory_utilization") return "--mem-fraction-static";
        if (name == "tensor_parallel_size") return "--tp-size";
        if (name == "enforce_eager") return "--disable-cuda-graph";
    }
    if (engine == Engine::llama_cpp) {
        if (name == "max_model_len") return "--ctx-size";
        if (name == "max_num_seqs") return "--parallel";
        if (name == "kv_cache_dtype") return "--cache-type-k";
    }
    std::string dashed = with_dashes(name);
    return "--" + dashed;
}

}  // namespace oomlab::field
