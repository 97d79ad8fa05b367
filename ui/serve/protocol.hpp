// What goes over the wire between `oomlab serve` and `oomlab view HOST:PORT`. Little-endian structs.
//
// The server sends a Hello, the viewer answers with its own; then only the server talks: a FrameHead
// and its payload, a record of the trace as it stands in the file, or a status. Either side closes
// on anything it does not know. Nothing that comes in is trusted: lengths have a ceiling, numbers are
// checked before use.
#pragma once

#include <array>
#include <string>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::serve {

inline constexpr u32 kProtocolVersion = 1;
inline constexpr std::array<char, 8> kServerMagic = {'o', 'o', 'm', 'l', 'a', 'b', 'S', '\n'};
inline constexpr std::array<char, 8> kViewerMagic = {'o', 'o', 'm', 'l', 'a', 'b', 'V', '\n'};
inline constexpr u32 kLargestPayload = 64 * 1024 * 1024;
inline constexpr u64 kLargestLog = 4 * kGiB;

struct ServerHello {
    std::array<char, 8> magic = kServerMagic;
    u32 version = kProtocolVersion, trace_version = 0;
    u64 run = 0;              // tells one run from another
    u64 log_bytes = 0;        // room that a copy of the virtual log needs
    std::array<char, 64> name{};   // the file's, for the title; ends in a zero
};
struct ViewerHello {
    std::array<char, 8> magic = kViewerMagic;
    u32 version = kProtocolVersion, pad = 0;
    u64 run = 0, records = 0, wall_records = 0;   // what it holds already of that run; 0: nothing
};
static_assert(sizeof(ServerHello) == 96);
static_assert(sizeof(ViewerHello) == 40);

enum class FrameKind : std::uint16_t { record, wall_record, status, new_run };
struct FrameHead {
    u32 payload_bytes = 0;
    FrameKind kind = FrameKind::record;
    std::uint16_t type = 0;   // trace::RecordType
    i64 time_us = 0;
};
static_assert(sizeof(FrameHead) == 16);

struct Status {               // about once a second, also when nothing else happens
    u64 samples_dropped = 0;  // for this viewer, because it was slow
    u32 finished = 0, pad = 0;
};

struct Address {
    std::string host, port;
};
// "127.0.0.1:8086", "gpu-box:8086", "[::1]:8086". On failure: Error::usage.
Result<Address> parse_address(std::string_view text);
// Whether the text can only be meant as an address: it ends in :DIGITS and names no file.
bool looks_like_address(std::string_view text);

}  // namespace oomlab::serve
