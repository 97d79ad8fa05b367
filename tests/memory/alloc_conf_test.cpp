#include <doctest/doctest.h>

#include <string>

#include "labs/server/memory/caching_allocator.hpp"

using namespace oomlab;

namespace {

AllocConf good(const char* text) {
    CAPTURE(text);
    const auto conf = parse_alloc_conf(text);
    REQUIRE(conf);
    return *conf;
}
std::string wrong(const char* text) {
    CAPTURE(text);
    const auto conf = parse_alloc_conf(text);
    REQUIRE_FALSE(conf);
    CHECK(exit_code(conf.error()) == 2);
    return conf.error().message;
}
bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("alloc conf") {
    TEST_CASE("alloc conf: nothing given means PyTorch's defaults") {
        const AllocConf conf = good("");
        CHECK(conf.large_segment_bytes == 20 * kMiB);
        CHECK(conf.max_split_bytes == UINT64_MAX);
        CHECK(conf.max_non_split_rounding_bytes == 20 * kMiB);
        CHECK(conf.garbage_collection_threshold == 0);
        CHECK_FALSE(conf.expandable_segments);
        CHECK(conf.per_process_memory_fraction == 1.0);
        for (const u64 divisions : conf.roundup_power2_divisions) CHECK(divisions == 0);
    }

    TEST_CASE("alloc conf: every key, spaces ignored, later wins") {
        const AllocConf conf = good(
            " max_split_size_mb : 128 , expandable_segments:True,garbage_collection_threshold:0.8,"
            "large_segment_size_mb:12,per_process_memory_fraction:0.5,max_split_size_mb:200,"
            "backend:native,pinned_use_cuda_host_register:True");
        CHECK(conf.max_split_bytes == 200 * kMiB);
        CHECK(conf.expandable_segments);
        CHECK(conf.garbage_collection_threshold == 0.8);
        CHECK(conf.large_segment_bytes == 12 * kMiB);
        CHECK(conf.max_non_split_rounding_bytes == 12 * kMiB);
        CHECK(conf.per_process_memory_fraction == 0.5);
        CHECK(good("large_segment_size_mb:12,max_non_split_rounding_mb:30")
                  .max_non_split_rounding_bytes == 30 * kMiB);
    }

    TEST_CASE("alloc conf: divisions as one number or by size") {
        const AllocConf all = good("roundup_power2_divisions:4");
        for (const u64 divisions : all.roundup_power2_divisions) CHECK(divisions == 4);
        // The first key also fills the slots below it, gaps stay 0, > fills those after the last.
        const AllocConf list = good("roundup_power2_divisions:[256:1,1024:4,>:8]");
        const u64 expected[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 4, 8, 8, 8, 8, 8};
        for (std::size_t i = 0; i < 16; ++i) {
            CAPTURE(i);
            CHECK(list.roundup_power2_divisions[i] == expected[i]);
        }
        CHECK(good("roundup_power2_divisions:[64:8],max_split_size_mb:100").max_split_bytes ==
              100 * kMiB);
    }

    TEST_CASE("alloc conf: an unknown key names the nearest one") {
        CHECK(has(wrong("max_split_size:100"), "did you mean max_split_size_mb?"));
        CHECK(has(wrong("expandable_segment:True"), "did you mean expandable_segments?"));
        CHECK(has(wrong("gc_threshold:0.5"), "unknown key 'gc_threshold'"));
    }

    TEST_CASE("alloc conf: a wrong value says what the key takes") {
        CHECK(has(wrong("max_split_size_mb:19"), "20 or more"));
        CHECK(has(wrong("max_split_size_mb:-1"), "'-1'"));
        CHECK(has(wrong("max_split_size_mb:99999999999999999999"), "number of MiB"));
        CHECK(has(wrong("max_split_size_mb:9999999999999"), "number of MiB"));
        CHECK(has(wrong("expandable_segments:true"), "True or False"));
        CHECK(has(wrong("garbage_collection_threshold:1.0"), "between 0 and 1"));
        CHECK(has(wrong("garbage_collection_threshold:nan"), "between 0 and 1"));
        CHECK(has(wrong("per_process_memory_fraction:1.5"), "from 0 to 1"));
        CHECK(has(wrong("large_segment_size_mb:4"), "10 or more"));
        CHECK(has(wrong("roundup_power2_divisions:3"), "power of two"));
        CHECK(has(wrong("roundup_power2_divisions:[300:4]"), "power of two"));
        CHECK(has(wrong("roundup_power2_divisions:[>:4]"), "a size before"));
        CHECK(has(wrong("roundup_power2_divisions:[256:4"), "list such as"));
        CHECK(has(wrong("roundup_power2_divisions:[]"), "list such as"));
        CHECK(has(wrong("roundup_power2_divisions:"), "power of two"));
        CHECK(has(wrong("expandable_segments"), "key:value"));
    }

    TEST_CASE("alloc conf: what PyTorch has and we have not is refused as not yet, never ignored") {
        CHECK(has(wrong("backend:cudaMallocAsync"), "not supported yet"));
        CHECK(has(wrong("throw_on_cudamalloc_oom:True"), "not supported yet"));
        CHECK(has(wrong("expandable_segments_reserve:2"), "not supported yet"));
    }

    TEST_CASE("alloc conf: hostile text is refused without being repeated") {
        CHECK(has(wrong("max_split_size_mb:\x1b[31m200"), "printable ASCII"));
        CHECK(has(wrong(std::string(5000, 'a').c_str()), "longer than"));
        good(",,,");
    }
}
