// One thread appends, another polls the same memory: under -fsanitize=thread this proves the order.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "labs/trace/log.hpp"

using namespace oomlab;
using namespace oomlab::trace;

TEST_CASE("log: a reader that polls while another thread appends sees every record once, whole") {
    constexpr u64 kRecords = 20000;
    std::vector<u64> memory(kRecords * 10);   // a frame here takes at most 80 bytes
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory));
    std::thread appends([&] {
        LogAppender log(bytes, kVirtualLog, LogCursor(bytes, kVirtualLog));
        for (u64 i = 1; i <= kRecords; ++i) {
            const std::array<u64, 6> payload = {i, i * 3, i, i, i, i};
            const auto part = std::as_bytes(std::span(payload)).first(8 + i % 41);
            if (!log.append(RecordType::sample, static_cast<i64>(i), part, {}, 0)) return;
        }
    });
    LogCursor cursor(bytes, kVirtualLog);
    u64 seen = 0, wrong = 0;
    while (seen < kRecords && !cursor.damaged()) {
        const auto record = cursor.next();
        if (!record) {
            std::this_thread::yield();
            continue;
        }
        ++seen;
        u64 first;
        std::memcpy(&first, record->payload.data(), sizeof(first));
        if (record->seq != seen || first != seen || record->payload.size() != 8 + seen % 41) ++wrong;
    }
    appends.join();
    CHECK(seen == kRecords);
    CHECK(wrong == 0);
    CHECK_FALSE(cursor.damaged());
}

TEST_CASE("log: a frame of one log does not pass in the other") {
    std::vector<u64> memory(100);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory));
    LogAppender log(bytes, kVirtualLog, LogCursor(bytes, kVirtualLog));
    REQUIRE(log.append(RecordType::log, 1, {}, {}, 0));
    LogCursor same(bytes, kVirtualLog), other(bytes, kWallLog);
    CHECK(same.next().has_value());
    CHECK_FALSE(other.next().has_value());
    CHECK(other.damaged());
}
