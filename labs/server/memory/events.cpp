// Frees that wait: a block used on other streams is not reusable before their work is done.
#include <algorithm>

#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {

void CachingAllocator::Impl::record_stream(Block* block, StreamId stream) {
    if (stream == home_of(block).stream) return;
    block->used_elsewhere = true;
    auto& streams = elsewhere[block].streams;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
        streams.push_back(stream);
    }
}

void CachingAllocator::Impl::start_waiting(Block* block) {
    block->state = BlockState::pending;
    print ^= print_of(*block);
    const StatPool pool = pool_of(block).stat();
    counters.active.begin_pending(pool, 1);
    counters.active_bytes.begin_pending(pool, block->bytes);
    // An event recorded during capture may not be queried; one that cannot be recorded is tried
    // again at the next poll. Until then the block stays out of reach, which is always safe.
    if (capturing || record_events(block)) deferred.push_back(block);
}

CachingAllocator::Impl::MaybeError CachingAllocator::Impl::record_events(Block* block) {
    Elsewhere& used = elsewhere.at(block);
    while (!used.streams.empty()) {
        auto event = device.streams().record_event(used.streams.front());
        if (!event) return std::move(event.error());
        waiting[used.streams.front()].push_back({*event, block});
        ++outstanding;
        ++used.events;
        used.streams.erase(used.streams.begin());
    }
    return std::nullopt;
}

CachingAllocator::Impl::MaybeError CachingAllocator::Impl::record_deferred() {
    while (!deferred.empty()) {
        if (auto error = record_events(deferred.front())) return error;
        Block* const block = deferred.front();
        deferred.erase(deferred.begin());
        // The last of its events was recorded just now, so it is still waited for.
        OOMLAB_CHECK(elsewhere.at(block).events > 0);
    }
    return std::nullopt;
}

void CachingAllocator::Impl::event_done(Block* block) {
    --outstanding;
    Elsewhere& used = elsewhere.at(block);
    --used.events;
    if (used.events != 0 || !used.streams.empty()) return;
    elsewhere.erase(block);
    block->used_elsewhere = false;
    print ^= print_of(*block);
    const StatPool pool = pool_of(block).stat();
    counters.active.end_pending(pool, 1);
    counters.active_bytes.end_pending(pool, block->bytes);
    complete_free(block);
}

CachingAllocator::Impl::MaybeError CachingAllocator::Impl::poll_events() {
    if (auto error = record_deferred()) return error;
    for (auto& [stream, queue] : waiting) {
        while (!queue.empty()) {
            const auto done = device.streams().query_event(queue.front().event);
            if (!done) return done.error();
            if (!*done) break;
            const Waiting entry = queue.front();
            queue.pop_front();
            (void)device.streams().destroy_event(entry.event);  // done: nothing depends on it
            event_done(entry.block);
        }
    }
    return std::nullopt;
}

CachingAllocator::Impl::MaybeError CachingAllocator::Impl::wait_for_events() {
    ++stats.num_sync_all_streams;
    if (auto error = record_deferred()) return error;
    for (auto& [stream, queue] : waiting) {
        while (!queue.empty()) {
            auto waited = device.streams().synchronize_event(queue.front().event);
            if (!waited) return std::move(waited.error());
            const Waiting entry = queue.front();
            queue.pop_front();
            (void)device.streams().destroy_event(entry.event);
            event_done(entry.block);
        }
    }
    return std::nullopt;
}

}  // namespace oomlab
