#include "labs/field/preflight/deployment.hpp"

#include <algorithm>
#include <cctype>

#include "labs/field/preflight/deployment_parts.hpp"

namespace oomlab::field {
namespace deployment_parts {

bool ends_with(const std::string& text, const char* ending) {
    const std::string e = ending;
    return text.size() >= e.size() && text.compare(text.size() - e.size(), e.size(), e) == 0;
}
bool says(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
}

// "32Gi", "64G", "16GiB", "65536Mi", "34359738368", "64g": Kubernetes', docker's and our spellings.
std::optional<u64> memory_text(const std::string& text) {
    std::string t = text;
    if (t.empty()) return std::nullopt;
    if (ends_with(t, "gb") || ends_with(t, "mb") || ends_with(t, "kb"))
        t.pop_back();  // docker's units are binary
    const char last = static_cast<char>(std::tolower(static_cast<unsigned char>(t.back())));
    if (ends_with(t, "Ki") || ends_with(t, "Mi") || ends_with(t, "Gi") || ends_with(t, "Ti"))
        t += "B";
    else if (last == 'g' || last == 'm' || last == 'k')
        t = t.substr(0, t.size() - 1) + static_cast<char>(std::toupper(last)) + "iB";
    auto bytes = parse_bytes(t);
    return bytes ? std::optional<u64>(*bytes) : std::nullopt;
}

// "vllm/vllm-openai:v0.8.5.post1" -> "0.8.5.post1"; "latest", digests and dates say nothing.
std::string version_of_image(const std::string& image) {
    const auto slash = image.rfind('/');
    const auto colon = image.find(':', slash == std::string::npos ? 0 : slash);
    if (colon == std::string::npos) return "";
    std::string tag =
        image.substr(colon + 1, image.find('@') == std::string::npos ? std::string::npos
                                                                     : image.find('@') - colon - 1);
    if (!tag.empty() && tag.front() == 'v') tag.erase(0, 1);
    const auto dash = tag.find('-');
    if (dash != std::string::npos) tag.resize(dash);
    return !tag.empty() && std::isdigit(static_cast<unsigned char>(tag.front())) &&
                   says(tag, ".") && tag.size() < 24
               ? tag
               : "";
}

std::optional<Engine> engine_of_image(const std::string& image) {
    if (says(image, "vllm")) return Engine::vllm;
    if (says(image, "sglang")) return Engine::sglang;
    if (says(image, "llama.cpp") || says(image, "llama-cpp") || says(image, "llamacpp"))
        return Engine::llama_cpp;
    return std::nullopt;
}

void set_env(Deployment& d, const std::string& assignment) {
    const auto equals = assignment.find('=');
    if (equals != std::string::npos && d.env.size() < 1000)
        d.env[assignment.substr(0, equals)] = assignment.substr(equals + 1);
}

bool is_assignment(const std::string& word) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                       [](unsigned char c) { return std::isalnum(c) || c == '_'; }) &&
           !std::isdigit(static_cast<unsigned char>(word[0]));
}

struct Found {
    Engine engine;
    std::vector<std::string> rest;
};

// The engine's own program among the words, and what follows it up to the next shell operator.
std::optional<Found> find_engine(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string word = base_name(words[i]);
        std::optional<Engine> engine;
        std::size_t next = i + 1;
        if (word == "vllm" && next < words.size() &&
            (words[next] == "serve" || words[next] == "bench"))
            engine = Engine::vllm, ++next;
        else if (says(words[i], "vllm.entrypoints"))
            engine = Engine::vllm;
        else if (says(words[i], "sglang.launch_server") ||
                 (word == "sglang" && next < words.size() && words[next] == "serve"))
            engine = Engine::sglang, next += word == "sglang" ? 1 : 0;
        else if (word == "llama-server" || word == "llama-cli" || word == "server.exe" ||
                 word == "llama-server.exe")
            engine = Engine::llama_cpp;
        if (!engine) continue;
        Found f{*engine, {}};
        for (; next < words.size(); ++next) {
            const std::string& w = words[next];
            if (w == "&&" || w == "||" || w == "|" || w == ";" || w == "&" || w == ">" ||
                w == ">>" || w == "2>&1")
                break;
            f.rest.push_back(w);
        }
        return f;
    }
    return std::nullopt;
}

Result<void> read_flags(Deployment& d, Engine engine, const std::vector<std::string>& words) {
    const std::string version = d.flags.engine_version;
    OOMLAB_TRY(flags, parse_server_flags(engine, words, false));
    d.flags = std::move(flags);
    if (d.flags.engine_version.empty())
        d.flags.engine_version = version.empty() ? version_of_image(d.image) : version;
    if (d.flags.model.empty())
        for (const char* key : {"MODEL", "MODEL_ID", "MODEL_NAME", "VLLM_MODEL", "LLAMA_ARG_MODEL",
                                "LLAMA_ARG_HF_REPO"})
            if (auto it = d.env.find(key); it != d.env.end()) d.flags.model = it->second;
    if (auto it = d.env.find("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"); it != d.env.end())
        d.flags.graph_estimate = it->second != "0";
    if (auto it = d.env.find("VLLM_USE_V1");
        it != d.env.end() && it->second == "0" && d.flags.engine_version.empty())
        d.flags.engine_version = "v0";
    // $VAR and ${VAR} as far as the file itself says what they are.
    for (std::string* text : {&d.flags.model}) {
        if (text->size() < 2 || text->front() != '$') continue;
        std::string key = text->substr((*text)[1] == '{' || (*text)[1] == '(' ? 2 : 1);
        while (!key.empty() && (key.back() == '}' || key.back() == ')')) key.pop_back();
        if (auto it = d.env.find(key); it != d.env.end()) *text = it->second;
    }
    return {};
}

// docker run [options] IMAGE [args]: the options that take no value are the short list.
bool read_docker_run(Deployment& d, const std::vector<std::string>& words,
                     std::vector<std::string>& after_image) {
    std::size_t i = 0;
    while (i + 1 < words.size() &&
           !((base_name(words[i]) == "docker" || base_name(words[i]) == "podman") &&
             words[i + 1] == "run"))
        ++i;
    if (i + 1 >= words.size()) return false;
    d.kind = "docker run";
    for (i += 2; i < words.size(); ++i) {
        std::string word = words[i];
        if (word.empty() || word.front() != '-') break;
        std::string value;
        bool has_value = false;
        if (auto eq = word.find('='); eq != std::string::npos && word.rfind("--", 0) == 0)
            value = word.substr(eq + 1), word.resize(eq), has_value = true;
        static constexpr const char* kBare[] = {
            "-d",       "-i",     "-t",           "-it",           "-ti",   "-dit", "--rm",
            "--detach", "--init", "--privileged", "--interactive", "--tty", "-P"};
        const bool bare = std::any_of(std::begin(kBare), std::end(kBare),
                                      [&](const char* b) { return word == b; });
        if (!has_value && !bare && i + 1 < words.size()) value = words[++i];
        if (word == "-e" || word == "--env") set_env(d, value);
        if (word == "-m" || word == "--memory") d.host_memory_limit_bytes = memory_text(value);
        if (word == "--shm-size") d.shm_bytes = memory_text(value);
        if (word == "--restart") d.restart_policy = value;
        if (word == "--gpus" &&
            std::all_of(value.begin(), value.end(),
                        [](unsigned char c) { return std::isdigit(c); }) &&
            value.size() < 4 && !value.empty())
            d.gpus = static_cast<u64>(std::stoul(value));
        if (word == "--entrypoint") after_image.push_back(value);
    }
    if (i >= words.size()) return false;
    d.image = words[i];
    after_image.insert(after_image.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       words.end());
    return true;
}

Result<void> read_words(Deployment& d, std::vector<std::string> words) {
    for (const std::string& w : words)
        if (is_assignment(w)) set_env(d, w);
    std::vector<std::string> inside;
    if (read_docker_run(d, words, inside)) words = inside;
    // sh -c "vllm serve ...": the text is a command of its own.
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if ((words[i] == "-c" || words[i] == "-lc" || words[i] == "-ec") &&
            says(words[i + 1], " ")) {
            auto inner = shell_words(words[i + 1]);
            for (const std::string& w : inner)
                if (is_assignment(w)) set_env(d, w);
            if (find_engine(inner)) words = inner;
        }
    if (auto found = find_engine(words)) return read_flags(d, found->engine, found->rest);
    if (auto engine = engine_of_image(d.image)) {
        // The image's entry point is the server: its arguments are all there is.
        if (!words.empty() && words.front() == "serve") words.erase(words.begin());
        return read_flags(d, *engine, words);
    }
    return fail(
        Error::usage("no server command was found; understood are: vllm serve ..., python -m "
                     "vllm.entrypoints.openai.api_server ..., python -m sglang.launch_server ..., "
                     "llama-server ..., docker run IMAGE ..."));
}

}  // namespace deployment_parts

Result<Deployment> deployment_from_words(const std::vector<std::string>& words) {
    Deployment d;
    d.kind = "command line";
    OOMLAB_TRY_VOID(deployment_parts::read_words(d, words));
    return d;
}

}  // namespace oomlab::field
