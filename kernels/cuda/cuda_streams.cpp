#include <algorithm>

#include "kernels/cuda/detail/parts.hpp"

namespace oomlab::cuda {
namespace {

u64 id_of(Handle handle) { return reinterpret_cast<u64>(handle); }
Handle handle_of(u64 id) { return reinterpret_cast<Handle>(id); }

}  // namespace

DeviceResult<StreamId> CudaStreams::create_stream() {
    OOMLAB_TRY_VOID(s_.enter());
    Handle stream = nullptr;
    OOMLAB_TRY_VOID(s_.check(s_.api.stream_create(&stream), DeviceCall::create_stream));
    s_.streams.insert(id_of(stream));
    return id_of(stream);
}

DeviceResult<void> CudaStreams::destroy_stream(StreamId stream) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.stream_destroy(handle_of(stream)), DeviceCall::destroy_stream));
    s_.streams.erase(stream);
    return {};
}

DeviceResult<EventId> CudaStreams::record_event(StreamId stream) {
    OOMLAB_TRY_VOID(s_.enter());
    Handle event = nullptr;
    OOMLAB_TRY_VOID(s_.check(s_.api.event_create(&event), DeviceCall::create_event));
    const auto recorded =
        s_.check(s_.api.event_record(event, s_.stream_of(stream)), DeviceCall::record_event);
    if (!recorded) {
        s_.api.event_destroy(event);
        return fail(recorded.error());
    }
    s_.events.insert(id_of(event));
    return id_of(event);
}

DeviceResult<bool> CudaStreams::query_event(EventId event) {
    OOMLAB_TRY_VOID(s_.enter());
    const int error = s_.api.event_query(handle_of(event));
    if (error == static_cast<int>(DeviceErrc::not_ready)) {
        s_.api.get_last_error();   // "not ready" is an answer, not a failure
        return false;
    }
    OOMLAB_TRY_VOID(s_.check(error, DeviceCall::query_event));
    return true;
}

DeviceResult<void> CudaStreams::synchronize_event(EventId event) {
    OOMLAB_TRY_VOID(s_.enter());
    return s_.check(s_.api.event_synchronize(handle_of(event)), DeviceCall::synchronize);
}

DeviceResult<void> CudaStreams::destroy_event(EventId event) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.event_destroy(handle_of(event)), DeviceCall::synchronize));
    s_.events.erase(event);
    return {};
}

DeviceResult<void> CudaStreams::synchronize() {
    OOMLAB_TRY_VOID(s_.enter());
    return s_.check(s_.api.device_synchronize(), DeviceCall::synchronize);
}

DeviceResult<void> CudaGraphs::begin_capture(StreamId stream) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(
        s_.check(s_.api.stream_begin_capture(s_.stream_of(stream)), DeviceCall::begin_capture));
    s_.capturing = stream;
    auto begun = s_.check_blas(s_.api.blas_set_stream(s_.blas(), s_.current_stream()),
                               DeviceCall::begin_capture);
    if (!begun) {
        Handle graph = nullptr;
        if (s_.api.stream_end_capture(s_.current_stream(), &graph) == 0) s_.api.graph_destroy(graph);
        s_.capturing.reset();
    }
    return begun;
}

DeviceResult<GraphId> CudaGraphs::end_capture(StreamId stream) {
    OOMLAB_TRY_VOID(s_.enter());
    Handle graph = nullptr;
    const int error = s_.api.stream_end_capture(s_.stream_of(stream), &graph);
    s_.capturing.reset();   // whatever came of it, the stream no longer captures
    const auto ended = s_.check(error, DeviceCall::end_capture);
    const auto back = s_.check_blas(s_.api.blas_set_stream(s_.blas(), s_.current_stream()),
                                    DeviceCall::end_capture);
    if (!ended) return fail(ended.error());
    if (!back) {
        s_.api.graph_destroy(graph);
        return fail(back.error());
    }
    auto exec = instantiate(graph);
    s_.api.graph_destroy(graph);
    return exec;
}

// Instantiating takes device memory outside any allocator. The upload makes it take all of it now;
// the difference in free memory is the graph's own, unless another process moved in between.
DeviceResult<GraphId> CudaGraphs::instantiate(Handle graph) {
    u64 before = 0, after = 0, total = 0;
    OOMLAB_TRY_VOID(s_.check(s_.api.mem_get_info(&before, &total), DeviceCall::mem_info));
    Handle exec = nullptr;
    OOMLAB_TRY_VOID(s_.check(s_.api.graph_instantiate(&exec, graph), DeviceCall::instantiate));
    auto uploaded = s_.check(s_.api.graph_upload(exec, s_.current_stream()), DeviceCall::instantiate);
    if (uploaded) {
        uploaded = s_.check(s_.api.mem_get_info(&after, &total), DeviceCall::mem_info);
    }
    if (!uploaded) {
        s_.api.graph_exec_destroy(exec);
        return fail(uploaded.error());
    }
    const u64 bytes = before - std::min(after, before);
    s_.graphs[id_of(exec)] = bytes;
    s_.graph_bytes += bytes;
    return id_of(exec);
}

DeviceResult<void> CudaGraphs::launch_graph(GraphId graph, StreamId stream) {
    OOMLAB_TRY_VOID(s_.enter());
    return s_.check(s_.api.graph_launch(handle_of(graph), s_.stream_of(stream)),
                    DeviceCall::launch_graph);
}

DeviceResult<void> CudaGraphs::destroy_graph(GraphId graph) {
    OOMLAB_TRY_VOID(s_.enter());
    OOMLAB_TRY_VOID(s_.check(s_.api.graph_exec_destroy(handle_of(graph)), DeviceCall::destroy_graph));
    if (const auto found = s_.graphs.find(graph); found != s_.graphs.end()) {
        s_.graph_bytes -= found->second;
        s_.graphs.erase(found);
    }
    return {};
}

}  // namespace oomlab::cuda
