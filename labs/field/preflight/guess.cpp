// Names people give to models and cards -> what ships in content.
#include <algorithm>
#include <cctype>

#include "labs/field/preflight/checklist.hpp"

namespace oomlab::field {
namespace {

std::string plain(const std::string& text) {
    std::string out;
    for (char c : text) {
        const auto low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (std::isalnum(static_cast<unsigned char>(low)) || low == '.') out += low;
    }
    return out;
}

}  // namespace

std::optional<ModelGuess> guess_model(const std::string& served,
                                      const std::vector<std::string>& known) {
    std::string name =
        served.substr(served.rfind('/') == std::string::npos ? 0 : served.rfind('/') + 1);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string p = plain(name);
    if (p.rfind("meta", 0) == 0) p.erase(0, 4);
    if (auto at = p.find("llama3.3"); at != std::string::npos)
        p.replace(at, 8, "llama3.1");  // the same layout
    ModelGuess guess;
    std::size_t best = 0;
    for (const std::string& k : known) {
        const std::string kp = plain(k);
        // "qwen2.57b" must not match "qwen2.572b": what follows may not go on as a number or size.
        if (p.rfind(kp, 0) != 0 || kp.size() <= best) continue;
        if (p.size() > kp.size() &&
            (std::isdigit(static_cast<unsigned char>(p[kp.size()])) || p[kp.size()] == '.') &&
            std::isdigit(static_cast<unsigned char>(kp.back())))
            continue;
        best = kp.size();
        guess.name = k;
    }
    if (guess.name.empty()) return std::nullopt;
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (has("awq"))
        guess.quantization = "awq";
    else if (has("gptq") || has("w4a16") || has("int4") || has("4bit"))
        guess.quantization = has("bnb") ? "bitsandbytes" : "gptq";
    else if (has("fp8"))
        guess.quantization = "fp8";
    else if (has("w8a8") || has("int8"))
        guess.quantization = "w8a8_int8";
    return guess;
}

}  // namespace oomlab::field
