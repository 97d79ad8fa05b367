#include "ui/serve/protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace oomlab::serve {

Result<Address> parse_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
    unsigned number = 0;
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host.empty() || port.empty() || ec != std::errc() || end != port.data() + port.size() || number > 65535)
        return fail(Error::usage(fmt::format("'{}' is no address: write HOST:PORT, as in 127.0.0.1:8086", text)));
    return Address{std::string(host), std::string(port)};
}

bool looks_like_address(std::string_view text) {
    std::error_code ec;
    return parse_address(text).has_value() && text.find('/') == std::string_view::npos &&
           !std::filesystem::exists(std::filesystem::path(text), ec);
}

}  // namespace oomlab::serve
