// Kubernetes manifests and compose files -> the container that starts a server.
#include <algorithm>
#include <cctype>

#include "labs/field/preflight/deployment_parts.hpp"
#include "labs/field/preflight/yaml_subset.hpp"

namespace oomlab::field {
namespace {

using namespace deployment_parts;

void append_texts(std::vector<std::string>& out, const YamlNode* node) {
    if (node == nullptr) return;
    if (node->is_list()) {
        for (const YamlNode& item : node->items)
            if (item.is_text()) out.push_back(item.text);
    } else if (node->is_text()) {
        const auto words = shell_words(node->text);
        out.insert(out.end(), words.begin(), words.end());
    }
}

void read_environment(Deployment& d, const YamlNode* env) {
    if (env == nullptr) return;
    for (const YamlNode& item : env->items) {
        if (item.is_text()) set_env(d, item.text);  // compose's list
        const YamlNode *name = item.get("name"), *value = item.get("value");
        if (name != nullptr && value != nullptr) set_env(d, name->text + "=" + value->text);
    }
    for (const auto& [key, value] : env->fields) set_env(d, key + "=" + value.text);
}

struct Candidate {
    const YamlNode* container;
    const YamlNode* pod;
};

void collect_containers(const YamlNode& node, const YamlNode* pod, std::vector<Candidate>& out,
                        std::size_t depth) {
    if (depth > 40 || out.size() > 200) return;
    if (const YamlNode* containers = node.get("containers");
        containers != nullptr && containers->is_list())
        for (const YamlNode& c : containers->items) out.push_back({&c, &node});
    for (const auto& [key, value] : node.fields) collect_containers(value, pod, out, depth + 1);
    for (const YamlNode& item : node.items) collect_containers(item, pod, out, depth + 1);
}

std::string text_of(const YamlNode* node) {
    return node != nullptr && node->is_text() ? node->text : std::string();
}

u64 whole(const std::string& text) {
    return !text.empty() && text.size() < 5 &&
                   std::all_of(text.begin(), text.end(),
                               [](unsigned char c) { return std::isdigit(c); })
               ? static_cast<u64>(std::stoul(text))
               : 0;
}

Result<Deployment> from_kubernetes(const std::vector<Candidate>& candidates,
                                   const std::string& name) {
    std::optional<Error> last;
    for (const Candidate& c : candidates) {
        Deployment d;
        d.kind = "kubernetes";
        d.container = text_of(c.container->get("name"));
        d.image = text_of(c.container->get("image"));
        read_environment(d, c.container->get("env"));
        if (const YamlNode* limits = c.container->at("resources.limits"); limits != nullptr) {
            d.host_memory_limit_bytes = memory_text(text_of(limits->get("memory")));
            for (const auto& [key, value] : limits->fields)
                if (says(key, "/gpu")) d.gpus = whole(value.text);
        }
        d.restart_policy = text_of(c.pod->get("restartPolicy"));
        if (const YamlNode* selector = c.pod->get("nodeSelector"); selector != nullptr)
            for (const auto& [key, value] : selector->fields)
                if (says(key, "gpu.product") || says(key, "accelerator") || says(key, "gpu-type") ||
                    says(key, "instance-type"))
                    d.gpu_hint = value.text;
        if (const YamlNode* volumes = c.pod->get("volumes"); volumes != nullptr)
            for (const YamlNode& v : volumes->items)
                if (text_of(v.at("emptyDir.medium")) == "Memory")
                    d.shm_bytes = memory_text(text_of(v.at("emptyDir.sizeLimit")));
        std::vector<std::string> words;
        append_texts(words, c.container->get("command"));
        append_texts(words, c.container->get("args"));
        if (words.empty() && !engine_of_image(d.image)) continue;
        auto read = read_words(d, words);
        if (read) return d;
        if (!last || engine_of_image(d.image)) last = read.error();
    }
    return fail(Error::parse(
        name + ": " +
        (last ? last->message
              : "no container starts a server that is known here (vllm, sglang, llama-server)")));
}

Result<Deployment> from_compose(const YamlNode& services, const std::string& name) {
    std::optional<Error> last;
    for (const auto& [service, node] : services.fields) {
        Deployment d;
        d.kind = "compose";
        d.container = service;
        d.image = text_of(node.get("image"));
        read_environment(d, node.get("environment"));
        d.host_memory_limit_bytes = memory_text(text_of(node.at("deploy.resources.limits.memory")));
        if (!d.host_memory_limit_bytes)
            d.host_memory_limit_bytes = memory_text(text_of(node.get("mem_limit")));
        d.shm_bytes = memory_text(text_of(node.get("shm_size")));
        d.restart_policy = text_of(node.get("restart"));
        if (const YamlNode* devices = node.at("deploy.resources.reservations.devices");
            devices != nullptr)
            for (const YamlNode& device : devices->items) {
                d.gpus = whole(text_of(device.get("count")));
                if (const YamlNode* ids = device.get("device_ids"); ids != nullptr)
                    d.gpus = ids->items.size();
            }
        std::vector<std::string> words;
        append_texts(words, node.get("entrypoint"));
        append_texts(words, node.get("command"));
        if (words.empty() && !engine_of_image(d.image)) continue;
        auto read = read_words(d, words);
        if (read) return d;
        if (!last || engine_of_image(d.image)) last = read.error();
    }
    return fail(Error::parse(
        name + ": " + (last ? last->message : "no service starts a server that is known here")));
}

}  // namespace

Result<Deployment> deployment_from_text(std::string_view text, const std::string& name) {
    if (text.size() > YamlLimits::kBytes)
        return fail(Error::parse(name + ": too large (limit 4 MiB)"));
    const auto blank = text.find_first_not_of(" \t\r\n");
    if (blank == std::string_view::npos) return fail(Error::parse(name + ": the file is empty"));
    const bool yaml = text.find("containers:") != std::string_view::npos ||
                      text.find("services:") != std::string_view::npos ||
                      text.find("\"containers\"") != std::string_view::npos ||
                      text.find("apiVersion") != std::string_view::npos;
    if (yaml) {
        auto documents = parse_yaml_subset(text, name);
        if (!documents) return fail(documents.error());
        std::vector<Candidate> candidates;
        for (const YamlNode& doc : *documents) collect_containers(doc, nullptr, candidates, 0);
        if (!candidates.empty()) return from_kubernetes(candidates, name);
        for (const YamlNode& doc : *documents)
            if (const YamlNode* services = doc.get("services");
                services != nullptr && services->is_map())
                return from_compose(*services, name);
        return fail(Error::parse(
            name + ": neither containers nor services with a server were found in this YAML"));
    }
    Deployment d;
    d.kind = "command line";
    auto read = read_words(d, shell_words(text));
    if (!read) return fail(Error::parse(name + ": " + read.error().message));
    return d;
}

}  // namespace oomlab::field
