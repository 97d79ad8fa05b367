// Deployments as people write them, and the checklist's verdict on each.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "kernels/base/prng.hpp"
#include "labs/catalog/model_config.hpp"
#include "labs/field/preflight/checklist.hpp"
#include "labs/field/preflight/yaml_subset.hpp"

using namespace oomlab;
using namespace oomlab::field;

namespace {

Deployment of_text(const std::string& text) {
    auto d = deployment_from_text(text, "file");
    REQUIRE_MESSAGE(d, (d ? "" : d.error().message));
    return *d;
}
PreflightReport check(const std::string& text, const char* model, const char* gpu,
                      PreflightFacts facts = {}) {
    facts.shape = *load_model_shape(model);
    facts.gpu = *load_gpu_or_size(gpu);
    return check_deployment(of_text(text), facts);
}
CheckState state(const PreflightReport& r, const char* id) {
    for (const auto* list : {&r.items, &r.mistakes})
        for (const CheckItem& i : *list)
            if (i.id == id) return i.state;
    FAIL("no item " << id);
    return CheckState::cannot_know;
}
bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

constexpr const char* kManifest = R"(# a stranger's manifest
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
  labels: {app: chat, "tier": 'gpu'}
spec:
  replicas: 2
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      containers:
      - name: logger
        image: busybox
        args: ["tail", "-f", "/dev/null"]
      - name: server
        image: vllm/vllm-openai:v0.11.0
        command: ["/bin/sh", "-c"]
        args:
          - >
            vllm serve meta-llama/Llama-3.1-8B-Instruct
            --max-model-len 16384 --max-num-seqs 20
            --gpu-memory-utilization=0.9
        env:
        - name: PYTORCH_CUDA_ALLOC_CONF
          value: "expandable_segments:True"
        - name: HF_TOKEN
          valueFrom:
            secretKeyRef: {name: hf, key: token}
        resources:
          limits:
            nvidia.com/gpu: "1"
            memory: 32Gi
        volumeMounts:
        - {name: shm, mountPath: /dev/shm}
      volumes:
      - name: shm
        emptyDir:
          medium: Memory
          sizeLimit: 2Gi
---
apiVersion: v1
kind: Service
metadata: {name: chat}
)";

constexpr const char* kCompose = R"(services:
  proxy:
    image: nginx
  llm:
    image: "vllm/vllm-openai:latest"
    command: >
      --model Qwen/Qwen2.5-7B-Instruct
      --gpu-memory-utilization 0.97
    environment:
      - HF_HOME=/cache
    shm_size: 8gb
    mem_limit: 12g
    restart: always
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
)";

}  // namespace

TEST_CASE("preflight: a Kubernetes manifest is read whole") {
    const Deployment d = of_text(kManifest);
    CHECK(d.kind == "kubernetes");
    CHECK(d.container == "server");
    CHECK(d.flags.engine == Engine::vllm);
    CHECK(d.flags.engine_version == "0.11.0");
    CHECK(d.flags.model == "meta-llama/Llama-3.1-8B-Instruct");
    CHECK(d.flags.max_model_len == 16384u);
    CHECK(d.flags.max_num_seqs == 20u);
    CHECK(d.flags.gpu_memory_utilization == doctest::Approx(0.9));
    CHECK(d.env.at("PYTORCH_CUDA_ALLOC_CONF") == "expandable_segments:True");
    CHECK(d.host_memory_limit_bytes == 32 * kGiB);
    CHECK(d.shm_bytes == 2 * kGiB);
    CHECK(d.gpus == 1);
    CHECK(guess_gpu(d.gpu_hint) == "h100-80gb");
    CHECK(guess_model(d.flags.model, model_names())->name == "llama-3.1-8b");
}

TEST_CASE("preflight: a compose file is read, and its mistakes are seen") {
    const Deployment d = of_text(kCompose);
    CHECK(d.kind == "compose");
    CHECK(d.flags.model == "Qwen/Qwen2.5-7B-Instruct");
    CHECK(d.host_memory_limit_bytes == 12 * kGiB);
    CHECK(d.gpus == 1);
    CHECK(d.restart_policy == "always");
    const PreflightReport r = check(kCompose, "qwen2.5-7b", "rtx4090");
    CHECK(state(r, "utilization") == CheckState::fail);
    CHECK(state(r, "squeezing") == CheckState::fail);
    CHECK(state(r, "max_model_len") == CheckState::fail);
    CHECK(state(r, "expandable_segments") == CheckState::fail);
    CHECK(state(r, "container_limit") == CheckState::fail);
    CHECK(state(r, "input_cap") == CheckState::cannot_know);
}

TEST_CASE("preflight: a careful deployment passes all twelve") {
    PreflightFacts facts;
    facts.gateway_max_input = 12000;
    facts.gateway_max_output = 2000;
    facts.runbook_text =
        "Exit code 137 without a traceback: dmesg -T, memory.events. A CUDA out of memory "
        "traceback: capture memory_summary, the request shape (prompt tokens).";
    facts.monitoring_text =
        "alert: preemptions\nexpr: rate(vllm:num_preemptions_total[5m]) > 0.01\n# "
        "vllm:kv_cache_usage_perc DCGM_FI_DEV_FB_USED";
    const PreflightReport r = check(kManifest, "llama-3.1-8b", "h100-80gb", facts);
    REQUIRE(r.items.size() == 12);
    REQUIRE(r.mistakes.size() == 7);
    for (const CheckItem& i : r.items)
        CHECK_MESSAGE(i.state == CheckState::pass, i.id << ": " << i.number << " " << i.why);
    CHECK(r.failed() == 0);
    const auto j = nlohmann::json::parse(preflight_json(r));
    CHECK(j["items"].size() == 12);
    CHECK(j["failed"] == 0);
    CHECK(j["budget"]["fits"] == true);
}

TEST_CASE("preflight: the longest prompt at the largest batch is computed") {
    const std::string whole =
        "vllm serve Qwen/Qwen2.5-32B-Instruct --max-model-len 32768 --max-num-batched-tokens 2048 "
        "--max-num-seqs 352 --gpu-memory-utilization 0.94 --no-enable-chunked-prefill "
        "--engine-version 0.11.0";
    const PreflightReport bad = check(whole, "qwen2.5-32b", "h200");
    CHECK(state(bad, "chunked_prefill") == CheckState::fail);
    CHECK(state(bad, "longest_prompt") ==
          CheckState::pass);  // law alone: 6.8 GB, the headroom holds it
    const PreflightReport tight = check(
        "vllm serve m --max-model-len 131072 --max-num-seqs 16 --gpu-memory-utilization 0.95 "
        "--no-enable-chunked-prefill --max-num-batched-tokens 8192",
        "llama-3.1-8b", "h100-80gb");
    CHECK(state(tight, "longest_prompt") == CheckState::fail);
    CHECK(state(tight, "untested_length") == CheckState::fail);
    for (const CheckItem& i : tight.items)
        if (i.id == "longest_prompt") {
            CHECK(has(i.number, "131087 tokens in one step"));
            CHECK(has(i.why, "it dies from about"));
        }
    const PreflightReport chunked =
        check("vllm serve m --max-model-len 131072 --max-num-seqs 16 --gpu-memory-utilization 0.90",
              "llama-3.1-8b", "h100-80gb");
    CHECK(state(chunked, "longest_prompt") == CheckState::pass);
}

TEST_CASE("preflight: sequences against what the pool holds") {
    PreflightFacts mean;
    mean.mean_tokens = 4000;
    CHECK(state(check("vllm serve m --max-model-len 16384 --max-num-seqs 80", "llama-3.1-8b",
                      "h100-80gb", mean),
                "max_num_seqs") == CheckState::pass);
    CHECK(state(check("vllm serve m --max-model-len 16384 --max-num-seqs 256", "llama-3.1-8b",
                      "h100-80gb", mean),
                "max_num_seqs") == CheckState::fail);
    CHECK(state(check("vllm serve m --max-model-len 16384 --max-num-seqs 64", "llama-3.1-8b",
                      "h100-80gb"),
                "max_num_seqs") == CheckState::cannot_know);
    CHECK(state(check("vllm serve m --max-model-len 16384", "llama-3.1-8b", "h100-80gb"),
                "max_num_seqs") == CheckState::fail);
}

TEST_CASE("preflight: without a model or a card the rest is still judged") {
    const PreflightReport r = check_deployment(
        of_text("vllm serve some/unknown-model --gpu-memory-utilization 0.98"), {});
    CHECK(state(r, "budget") == CheckState::cannot_know);
    CHECK(state(r, "utilization") == CheckState::fail);
    CHECK(state(r, "expandable_segments") == CheckState::fail);
    CHECK(has(preflight_text(r), "give --config"));
}

TEST_CASE("preflight: commands in the forms people use") {
    const auto engine_of = [](const std::string& text) { return of_text(text).flags.engine; };
    CHECK(
        engine_of(
            "#!/bin/bash\nset -e\nexport HF_HOME=/x\npython3 -m vllm.entrypoints.openai.api_server "
            "\\\n  --model a/b \\\n  --max-model-len 4096 &\nwait\n") == Engine::vllm);
    const Deployment sglang = of_text(
        "CUDA_VISIBLE_DEVICES=0,1 python -m sglang.launch_server --model-path a/b --tp 2 "
        "--mem-fraction-static 0.85 --context-length 8192 --enable-metrics");
    CHECK(sglang.flags.engine == Engine::sglang);
    CHECK(sglang.flags.tensor_parallel_size == 2);
    CHECK(sglang.flags.max_model_len == 8192u);
    CHECK(sglang.env.at("CUDA_VISIBLE_DEVICES") == "0,1");
    const Deployment llama =
        of_text("./build/bin/llama-server -m model-Q4_K_M.gguf -c 32768 -ngl 99 -np 4 --metrics");
    CHECK(llama.flags.engine == Engine::llama_cpp);
    CHECK(llama.flags.max_model_len == 32768u);
    CHECK(llama.flags.max_num_seqs == 4u);
    const Deployment docker = of_text(
        "docker run --rm --gpus all -e PYTORCH_ALLOC_CONF=expandable_segments:True -m 64g "
        "--shm-size=16g -p 8000:8000 vllm/vllm-openai:v0.8.5.post1 --model a/b --max-model-len 8k");
    CHECK(docker.kind == "docker run");
    CHECK(docker.flags.engine_version == "0.8.5.post1");
    CHECK(docker.flags.max_model_len == 8000u);
    CHECK(docker.host_memory_limit_bytes == 64 * kGiB);
    CHECK(docker.shm_bytes == 16 * kGiB);
    auto words = deployment_from_words({"vllm", "serve", "a/b", "--trust-remote-code",
                                        "--max-num-seqs", "8", "--tool-call-parser", "hermes"});
    REQUIRE(words);
    CHECK(words->flags.model == "a/b");
    CHECK(words->flags.other.at("--tool-call-parser") == "hermes");
}

TEST_CASE("preflight: names of models say their quantization, and 7b is not 72b") {
    const auto known = model_names();
    CHECK(guess_model("Qwen/Qwen2.5-7B-Instruct-AWQ", known)->name == "qwen2.5-7b");
    CHECK(guess_model("Qwen/Qwen2.5-7B-Instruct-AWQ", known)->quantization == "awq");
    CHECK(!guess_model("Qwen/Qwen2.5-72B-Instruct", known));
    CHECK(guess_model("meta-llama/Meta-Llama-3.1-70B-Instruct-FP8", known)->quantization == "fp8");
    CHECK(guess_model("google/gemma-3-27b-it", known)->name == "gemma-3-27b");
    CHECK(!guess_model("unknown/thing", known));
}

TEST_CASE("preflight: refused with place and remedy") {
    const auto refused = [](const std::string& text) {
        auto d = deployment_from_text(text, "file");
        return d ? std::string() : d.error().message;
    };
    CHECK(has(refused(""), "empty"));
    CHECK(has(refused("echo hello"), "no server command was found"));
    CHECK(has(refused("apiVersion: v1\nkind: Service\nspec:\n  ports: [80]\n"),
              "neither containers nor services"));
    CHECK(has(refused("vllm serve m --gpu-memory-utilization 90"), "above 0 and up to 1"));
    CHECK(has(refused("services:\n  a:\n    image: nginx\n"), "no service starts a server"));
    CHECK(has(refused("apiVersion: v1\ncontainers:\n" + std::string(200, '-') + "\n"), "file"));
    std::string deep = "apiVersion: ";
    for (int i = 0; i < 200; ++i) deep += "[";
    CHECK(has(refused(deep), "nested too deep"));
}

TEST_CASE("yaml: what manifests are written in") {
    auto docs = parse_yaml_subset(
        "a: 1 # one\nb:\n- x\n- y: 2\n  z: 'it''s'\n- [p, \"q,r\", {s: t}]\nc: |\n  line 1\n    "
        "line 2\nd: {e: [f], \"g h\": i}\nj:\n  k: v#w\n---\n- only\n",
        "y");
    REQUIRE(docs);
    REQUIRE(docs->size() == 2);
    const YamlNode& m = (*docs)[0];
    CHECK(m.get("a")->text == "1");
    REQUIRE(m.get("b")->items.size() == 3);
    CHECK(m.get("b")->items[1].get("z")->text == "it's");
    CHECK(m.get("b")->items[2].items[1].text == "q,r");
    CHECK(m.get("b")->items[2].items[2].get("s")->text == "t");
    CHECK(m.get("c")->text == "line 1\n  line 2\n");
    CHECK(m.at("d.g h")->text == "i");
    CHECK(m.at("j.k")->text == "v#w");
    CHECK((*docs)[1].items[0].text == "only");
    CHECK(!parse_yaml_subset("a: 1\nnonsense\n", "y"));
}

TEST_CASE("preflight: mutated manifests neither crash nor hang") {
    Prng prng(5);
    for (const std::string& original :
         {std::string(kManifest), std::string(kCompose),
          std::string("docker run -e A=b --gpus 2 vllm/vllm-openai:v0.9.1 --model 'a b' "
                      "--max-model-len 8k && echo \"x\"")}) {
        for (int i = 0; i < 1500; ++i) {
            std::string text = original;
            for (u64 e = prng.between(1, 8); e > 0 && !text.empty(); --e) {
                const std::size_t at = prng.below(text.size());
                switch (prng.below(5)) {
                    case 0:
                        text[at] = static_cast<char>(prng.below(256));
                        break;
                    case 1:
                        text.erase(at, prng.between(1, 40));
                        break;
                    case 2:
                        text.insert(at, "\n  - [{'\"");
                        break;
                    case 3:
                        text.insert(at, text.substr(prng.below(text.size()), 60));
                        break;
                    default:
                        text.resize(at);
                        break;
                }
            }
            if (auto d = deployment_from_text(text, "m")) {
                PreflightFacts facts;
                facts.shape = *load_model_shape("tiny");
                facts.gpu = *load_gpu_or_size("24GiB");
                CHECK(!preflight_text(check_deployment(*d, facts)).empty());
            }
        }
    }
}
