#include <cctype>

#include "labs/shapes/model_shape.hpp"

namespace oomlab {

EngineVersion parse_engine_version(std::string_view text) {
    const EngineVersion newest{1 << 20, 0, 0};
    while (!text.empty() && (std::isspace(static_cast<unsigned char>(text.front())) ||
                             text.front() == 'v' || text.front() == '~'))
        text.remove_prefix(1);
    int parts[3] = {0, 0, 0};
    int count = 0;
    std::size_t i = 0;
    while (count < 3 && i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) {
        int value = 0;
        while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) {
            if (value > 100000) return newest;
            value = value * 10 + (text[i++] - '0');
        }
        parts[count++] = value;
        if (i >= text.size() || text[i] != '.') break;
        ++i;
    }
    if (count < 2) return newest;
    return {parts[0], parts[1], parts[2]};
}

}  // namespace oomlab
