#include "ui/cli/read_input.hpp"

#include <cstdio>

#include "labs/catalog/text_file.hpp"

namespace oomlab::cli {

Result<std::string> read_input(const std::string& path, u64 max_bytes) {
    if (path != "-") return read_text_file(path, max_bytes);
    std::string out;
    char buffer[65536];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
        out.append(buffer, n);
        if (out.size() > max_bytes)
            return fail(Error::usage("standard input is larger than " + human_bytes(max_bytes)));
    }
    return out;
}

}  // namespace oomlab::cli
