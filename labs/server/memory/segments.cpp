// What talks to the driver: new segments, the ways to make room for one, and giving them back.
#include <algorithm>
#include <cmath>

#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {

std::optional<u64> CachingAllocator::Impl::cap_of(double fraction) const {
    if (fraction >= 1) return std::nullopt;
    const DeviceProps& props = device.props();
    const u64 limit = props.memory_limit_bytes;
    const u64 total = limit != 0 ? std::min(limit, props.total_bytes) : props.total_bytes;
    return static_cast<u64>(std::floor(fraction * static_cast<double>(total)));
}

// [REQUEST] The order of the steps is the original's; each is tried only when those before failed.
bool CachingAllocator::Impl::obtain(Request& r) {
    if (collects()) {
        collect_garbage(r.error);
        r.fatal = r.error.has_value();
    }
    if (r.fatal) return false;
    if (new_segment(r)) return true;
    if (!r.fatal && release_oversize(r) && new_segment(r)) return true;
    return !r.fatal && !capturing && retry_after_release(r);
}

bool CachingAllocator::Impl::retry_after_release(Request& r) {
    const u64 before = reserved();
    MaybeError error;
    release_cached(error);
    const u64 released = before - reserved();
    bool succeeded = false;
    if (error) {
        r.error = std::move(error);
        r.fatal = true;
    } else {
        ++stats.num_alloc_retries;
        succeeded = new_segment(r);
    }
    if (observer != nullptr) observer->retry(r.segment_bytes, released, succeeded);
    return succeeded;
}

bool CachingAllocator::Impl::new_segment(Request& r) {
    r.error.reset();
    r.segment_bytes = memory::segment_size(conf, r.rounded_bytes);
    r.capped = allowed && reserved() + r.segment_bytes > *allowed;
    if (r.capped) return false;
    if (conf.expandable_segments) {
        r.block = grow_expandable(r);
        return r.block != nullptr;
    }
    auto address = device.memory().malloc(r.segment_bytes);
    if (!address) {
        r.fatal = !address.error().out_of_memory();
        r.error = std::move(address.error());
        return false;
    }
    Block* const block = arena.take();
    block->address = *address;
    block->bytes = r.segment_bytes;
    block->home = r.home->id;
    r.block = block;
    print ^= print_of_segment(block->address, block->bytes, block->home);
    const Pool& pool = r.home->pool;
    counters.segment.increase(pool.stat(), 1);
    counters.reserved_bytes.increase(pool.stat(), block->bytes);
    if (block->bytes >= conf.max_split_bytes) stats.oversize_segments.increase(1);
    ++stats.num_device_alloc;
    if (observer != nullptr) {
        observer->segment_alloc(block->address, block->bytes, r.home->stream, pool.small);
    }
    return true;
}

// [RELEASE]
void CachingAllocator::Impl::release_segment(Block* block, MaybeError& error) {
    OOMLAB_CHECK(!block->is_split() && !block->expandable);
    if (error) return;
    auto freed = device.memory().free(block->address);
    if (!freed) {
        error = std::move(freed.error());
        return;
    }
    SizeIndex& home = home_of(block);
    leave_free(home, block);
    print ^= print_of_segment(block->address, block->bytes, block->home);
    const Pool& pool = home.pool;
    counters.segment.decrease(pool.stat(), 1);
    counters.reserved_bytes.decrease(pool.stat(), block->bytes);
    if (block->bytes >= conf.max_split_bytes) stats.oversize_segments.decrease(1);
    ++stats.num_device_free;
    if (observer != nullptr) {
        observer->segment_free(block->address, block->bytes, home.stream, pool.small);
    }
    arena.give_back(block);
}

// With a limit on splitting, large blocks pile up unsplit: one that is large enough goes, else the
// largest of them until their sum is.
bool CachingAllocator::Impl::release_oversize(Request& r) {
    if (conf.max_split_bytes == UINT64_MAX) return false;
    const u64 wanted = std::max(r.rounded_bytes, conf.max_split_bytes);
    MaybeError error;
    u64 released = 0;
    const auto release = [&](Block* block) {
        // Pages are not returned whole: the ordinary release unmaps them.
        if (block->expandable || block->is_split()) return;
        const u64 bytes = block->bytes;
        release_segment(block, error);
        if (!error) released += bytes;
    };
    if (Block* fits = r.home->lower_bound(wanted)) {
        release(fits);
    } else {
        Block* block = r.home->last();
        while (block != nullptr && released < wanted && block->bytes >= conf.max_split_bytes) {
            Block* const smaller = r.home->previous(block);
            release(block);
            block = smaller;
        }
    }
    if (error) {
        r.error = std::move(error);
        r.fatal = true;
    }
    return !r.fatal && released >= wanted;
}

void CachingAllocator::Impl::release_cached(MaybeError& error) {
    error = wait_for_events();
    for (const auto& range : ranges) range->reclaim();
    std::erase_if(unclosed, [](const auto& range) { return range->close(); });
    release_pool(large, error);
    release_pool(small, error);
    for (auto at = private_pools.begin(); at != private_pools.end();) {
        auto& [id, pool] = *at;
        if (pool.in_use || capture_pool == id) {
            ++at;
            continue;
        }
        release_pool(pool.large, error);
        release_pool(pool.small, error);
        bool empty = true;
        arena.for_each([&, private_id = id](const Block* block) {
            empty = empty && pool_of(block).private_id != private_id;
        });
        if (!empty) {
            ++at;
            continue;
        }
        drop_homes(pool.large);
        drop_homes(pool.small);
        at = private_pools.erase(at);
    }
}

void CachingAllocator::Impl::drop_homes(Pool& pool) {
    for (const auto& home : pool.homes) homes[home->id] = nullptr;
    pool.homes.clear();
}

void CachingAllocator::Impl::release_pool(Pool& pool, MaybeError& error) {
    std::vector<Block*> to_unmap;
    for (const auto& home : pool.homes) {
        for (Block* block = home->first(); block != nullptr && !error;) {
            Block* const next = home->next(block);
            if (block->expandable) {
                to_unmap.push_back(block);
            } else if (!block->is_split()) {
                release_segment(block, error);
            }
            block = next;
        }
    }
    for (Block* block : to_unmap) unmap(block);
}

// Frees whole cached segments of the large pool that have waited at least as long as the average,
// again and again until enough is free or nothing is left to free.
void CachingAllocator::Impl::collect_garbage(MaybeError& error) {
    const u64 threshold =
        static_cast<u64>(conf.garbage_collection_threshold * static_cast<double>(*allowed));
    if (reserved() <= threshold) return;
    const u64 target = reserved() - threshold;
    const auto age = [&](const Block* block) { return large.lookups - block->requested_or_age; };
    const auto freeable = [](const Block* block) { return !block->is_split(); };
    u64 age_sum = 0, candidates = 0, reclaimed = 0;
    for (const auto& home : large.homes) {
        for (Block* block = home->first(); block != nullptr; block = home->next(block)) {
            if (!freeable(block)) continue;
            age_sum += age(block);
            ++candidates;
        }
    }
    bool freed_one = true;
    while (reclaimed < target && freed_one && candidates > 0) {
        const double mean_age = static_cast<double>(age_sum) / static_cast<double>(candidates);
        freed_one = false;
        for (const auto& home : large.homes) {
            for (Block* block = home->first(); block != nullptr;) {
                Block* const next = home->next(block);
                if (freeable(block) && !block->expandable &&
                    static_cast<double>(age(block)) >= mean_age) {
                    age_sum -= age(block);
                    --candidates;
                    reclaimed += block->bytes;
                    release_segment(block, error);
                    if (error) return;
                    freed_one = true;
                }
                block = next;
            }
        }
    }
}

void CachingAllocator::Impl::close_everything() {
    // Nothing is left to be told about a device that refuses: every result is dropped on purpose.
    for (auto& [stream, queue] : waiting) {
        for (const Waiting& entry : queue) (void)device.streams().destroy_event(entry.event);
    }
    arena.for_each([&](const Block* block) {
        if (!block->expandable && block->prev == nullptr) {
            (void)device.memory().free(block->address);
        }
    });
    for (const auto& range : ranges) (void)range->close();
    for (const auto& range : unclosed) (void)range->close();
}

// [FAILURE] The figures are read after everything that could be returned has been.
AllocFailure CachingAllocator::Impl::failed(const Request& r, Owner owner) {
    AllocFailure f;
    f.kind = r.fatal ? AllocFailure::Kind::device_error : AllocFailure::Kind::out_of_memory;
    f.device = r.error.value_or(DeviceError{.code = DeviceErrc::memory_allocation,
                                            .call = DeviceCall::malloc,
                                            .bytes = r.segment_bytes});
    f.requested_bytes = r.requested_bytes;
    f.rounded_bytes = r.rounded_bytes;
    f.segment_bytes = r.segment_bytes;
    if (const auto info = device.memory().mem_info()) {
        f.device_total_bytes = info->total_bytes;
        f.device_free_bytes = info->free_bytes;
        f.other_processes_bytes = info->other_processes_bytes;
    }
    f.allowed_bytes = allowed.value_or(0);
    f.capped = r.capped;
    f.allocated_bytes = static_cast<u64>(counters.allocated_bytes.current());
    f.reserved_bytes = reserved();
    f.private_pool_free_bytes = private_free_bytes();
    f.process_bytes =
        f.reserved_bytes + device.context_bytes() + device.graph_bytes() + device.outside_bytes();
    f.largest_free_block_bytes = largest_free();
    f.inactive_split_bytes = static_cast<u64>(counters.inactive_split_bytes.current());
    f.pending_free_bytes = counters.active_bytes.pending();
    f.owner = owner;
    if (f.kind == AllocFailure::Kind::out_of_memory && r.rounded_bytes != 0) ++stats.num_ooms;
    f.num_alloc_retries = static_cast<u64>(stats.num_alloc_retries);
    return f;
}

}  // namespace oomlab
