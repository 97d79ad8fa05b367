#include <nlohmann/json.hpp>

#include "labs/field/budget/budget_parts.hpp"
#include "labs/field/budget/budget_report.hpp"

namespace oomlab::field {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Budget& b) {
    Json j;
    j["model"] = {{"name", b.shape.name},
                  {"architecture", b.shape.architecture},
                  {"parameters", b.shape.total_params},
                  {"quantization", quantization_name(b.shape.quantization)}};
    j["gpu"] = {{"id", b.gpu.id}, {"name", b.gpu.name}, {"total_bytes", b.total_bytes}};
    j["engine"] = engine_name(b.flags.engine);
    j["engine_version"] = b.flags.engine_version;
    j["flags"] = {{"gpu_memory_utilization", b.resolved.fraction},
                  {"max_model_len", b.resolved.max_model_len},
                  {"max_num_seqs", b.resolved.max_num_seqs},
                  {"max_num_batched_tokens", b.resolved.max_num_batched_tokens},
                  {"enable_chunked_prefill", b.resolved.chunked_prefill},
                  {"kv_cache_dtype", b.flags.kv_cache_dtype},
                  {"tensor_parallel_size", b.flags.tensor_parallel_size},
                  {"pipeline_parallel_size", b.flags.pipeline_parallel_size},
                  {"enforce_eager", !b.resolved.graphs},
                  {"block_size", b.layout.block_tokens}};
    j["weights_bytes"] = b.weights_bytes;
    j["host_weights_bytes"] = b.host_weights_bytes;
    j["kv_bytes_per_token"] = b.kv_bytes_per_token;
    j["activation_peak_bytes"] = b.activation_peak_bytes;
    j["cuda_graph_bytes"] = b.cuda_graph_bytes;
    j["non_torch_bytes"] = b.non_torch_bytes;
    j["context_bytes"] = b.context_bytes;
    j["communication_bytes"] = b.communication_bytes;
    j["kv_pool_bytes"] = b.kv_pool_bytes;
    j["kv_blocks"] = b.kv_blocks;
    j["kv_tokens"] = b.kv_tokens;
    j["max_concurrency"] = b.max_concurrency;
    j["longest_request_tokens"] = b.longest_request;
    j["headroom_bytes"] = b.headroom_bytes;
    j["fits"] = b.fits;
    j["reasons"] = b.reasons;
    j["changes"] = Json::array();
    for (const BudgetChange& c : b.changes)
        j["changes"].push_back({{"change", c.flag}, {"effect", c.effect}, {"cost", c.cost}});
    j["unknown"] = b.unknown;
    j["assumed"] = b.resolved.assumed;
    j["lines"] = Json::array();
    for (const BudgetLine& l : b.lines)
        j["lines"].push_back({{"id", l.id},
                              {"bytes", l.bytes},
                              {"moment", l.moment},
                              {"formula", l.formula},
                              {"numbers", l.numbers},
                              {"error", l.error}});
    if (b.stages.size() > 1) {
        j["stages"] = Json::array();
        for (const PipelineStage& s : b.stages)
            j["stages"].push_back({{"first_layer", s.first_layer},
                                   {"last_layer", s.last_layer - 1},
                                   {"weights_bytes", s.weights_bytes},
                                   {"activation_peak_bytes", s.activation_bytes}});
    }
    return j;
}

std::string dump(const Json& j) {
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string budget_json(const Budget& budget) {
    return dump(to_json(budget));
}

std::string compare_json(const Budget& a, const Budget& b) {
    Json j;
    j["a"] = to_json(a);
    j["b"] = to_json(b);
    j["difference"] = Json::object();
    for (const char* key :
         {"weights_bytes", "activation_peak_bytes", "cuda_graph_bytes", "non_torch_bytes",
          "communication_bytes", "kv_pool_bytes", "kv_tokens", "headroom_bytes"})
        j["difference"][key] = j["b"][key].get<i64>() - j["a"][key].get<i64>();
    return dump(j);
}

}  // namespace oomlab::field
