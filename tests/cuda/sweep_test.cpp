// The sweep: for n = 1, 2, 3, ... the n-th call that reaches CUDA fails, once or from then on, until
// a life passes without a failure. Each time the error that comes out is CUDA's own and names the
// call, and after the device's end nothing is left alive.
#include <doctest/doctest.h>

#include <string>

#include "tests/cuda/scenario.hpp"

using namespace oomlab;
using namespace oomlab::test;

namespace {

// The kind of call that must be blamed when the fake's `name` fails.
bool blames(const std::string& name, DeviceCall call) {
    using C = DeviceCall;
    static const std::map<std::string, std::vector<C>> kKinds = {
        {"create_context", {C::create_context}}, {"mem_get_info", {C::mem_info}},
        {"stream_create", {C::create_stream}}, {"load", {C::module_load}},
        {"blas_create", {C::create_blas}}, {"malloc", {C::malloc, C::blas_workspace}},
        {"blas_set_stream", {C::create_blas, C::begin_capture, C::end_capture}},
        {"blas_set_workspace", {C::blas_workspace}}, {"blas_gemm", {C::matmul}},
        {"free", {C::free}}, {"host_alloc", {C::host_alloc}}, {"free_host", {C::host_free}},
        {"copy_to_device", {C::copy}}, {"copy_to_host", {C::copy}},
        {"stream_synchronize", {C::copy, C::synchronize}}, {"device_synchronize", {C::synchronize}},
        {"address_reserve", {C::reserve}}, {"address_free", {C::release}},
        {"mem_create", {C::create}}, {"mem_release", {C::destroy}}, {"mem_map", {C::map}},
        {"mem_set_access", {C::map}}, {"mem_unmap", {C::unmap}},
        {"stream_destroy", {C::destroy_stream}}, {"event_create", {C::create_event}},
        {"event_record", {C::record_event}}, {"event_query", {C::query_event}},
        {"event_synchronize", {C::synchronize}}, {"event_destroy", {C::synchronize}},
        {"stream_begin_capture", {C::begin_capture}}, {"stream_end_capture", {C::end_capture}},
        {"graph_instantiate", {C::instantiate}}, {"graph_upload", {C::instantiate}},
        {"graph_launch", {C::launch_graph}}, {"graph_exec_destroy", {C::destroy_graph}}};
    const auto found = kKinds.find(name);
    if (found == kKinds.end()) return call == C::launch;   // a kernel's name
    return std::find(found->second.begin(), found->second.end(), call) != found->second.end();
}

// Calls whose failure a life survives: measurements, and clean-up behind a finished piece of work.
// A fault that stays shows at the call after them.
bool is_harmless(const std::string& name) { return name == "mem_get_info" || name == "graph_destroy"; }

// Returns how many lives it took.
u64 sweep(int error, bool for_ever) {
    for (u64 n = 1;; ++n) {
        REQUIRE(n < 1000);
        FakeCuda fake;
        DeviceResult<void> outcome;
        bool fired = false;
        {
            auto device = open_fake(fake);
            fake.plan({.nth = n, .for_ever = for_ever, .error = error, .blas_status = 3});
            outcome = live_a_little(*device);
            fired = fake.failures() != 0;
            CAPTURE(n);
            CAPTURE(fake.failed_name());
            if (!outcome) {
                REQUIRE(fired);
                const DeviceError& e = outcome.error();
                const bool blas = fake.failed_name().rfind("blas_", 0) == 0;
                CHECK(static_cast<int>(e.code) == (blas ? 2 : error));
                if (blas) CHECK(e.detail == "CUBLAS_STATUS_ALLOC_FAILED");
                if (!is_harmless(fake.failed_name())) CHECK(blames(fake.failed_name(), e.call));
                if (e.sticky()) {   // and the first error stays
                    const auto later = device->memory().malloc(1024);
                    REQUIRE_FALSE(later.has_value());
                    CHECK(later.error().code == e.code);
                    CHECK(later.error().call == e.call);
                }
            } else if (fired) {
                CHECK(is_harmless(fake.failed_name()));
            }
        }
        CHECK(fake.live() == 0);
        CHECK(fake.used_bytes() == 0);
        if (!fired) {
            CHECK(outcome.has_value());
            return n - 1;
        }
    }
}

}  // namespace

TEST_CASE("sweep: out of memory at every call in turn is told right and leaves nothing behind") {
    const u64 lives = sweep(2, false);
    CHECK(lives >= 70);   // fewer would mean that the scenario no longer makes every kind of call
    CHECK(sweep(2, true) == lives);
}

TEST_CASE("sweep: a sticky fault at every call in turn poisons the device and leaves nothing behind") {
    sweep(700, false);
    sweep(719, true);
}

TEST_CASE("sweep: an invalid argument at every call in turn") { sweep(1, false); }

TEST_CASE("sweep: the scenario makes every call of the table") {
    FakeCuda fake;
    {
        auto device = open_fake(fake);
        REQUIRE(live_a_little(*device).has_value());
    }
    for (const char* name :
         {"device_count", "device_facts", "create_context", "device_synchronize", "mem_get_info",
          "malloc", "free", "host_alloc", "free_host", "copy_to_device", "copy_to_host",
          "mem_granularity", "address_reserve", "address_free", "mem_create", "mem_release",
          "mem_map", "mem_set_access", "mem_unmap", "stream_create", "stream_destroy",
          "stream_synchronize", "stream_begin_capture", "stream_end_capture", "event_create",
          "event_record", "event_query", "event_synchronize", "event_destroy", "graph_instantiate",
          "graph_upload", "graph_launch", "graph_exec_destroy", "graph_destroy", "blas_create",
          "blas_destroy", "blas_set_stream", "blas_set_workspace", "blas_gemm", "load", "rms_norm",
          "rope", "kv_append", "attention", "gated_act", "embed", "gather", "sample", "fill",
          "checksum"}) {
        CAPTURE(name);
        CHECK(fake.count(name) > 0);
    }
}
