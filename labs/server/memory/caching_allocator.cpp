#include "labs/server/memory/caching_allocator.hpp"

#include <algorithm>

#include "labs/server/memory/detail/allocator_impl.hpp"

namespace oomlab {
namespace {

// 64 x 64 bits multiplied and folded: one instruction, and every input bit reaches the result.
u64 fold(u64 a, u64 b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

}  // namespace

CachingAllocator::Impl::Impl(Device& chip, const AllocConf& settings, AllocatorObserver* watcher)
    : device(chip),
      conf(settings),
      observer(watcher),
      divides(settings.roundup_power2_divisions != decltype(settings.roundup_power2_divisions){}),
      allowed(cap_of(settings.per_process_memory_fraction)) {}

CachingAllocator::Impl::~Impl() {
    close_everything();
}

// Place, size, state, and the labels that decide what its free will change.
u64 CachingAllocator::Impl::print_of(const Block& block) {
    const u64 kind = static_cast<u64>(block.state) | static_cast<u64>(block.owner) << 8;
    return fold(
        block.address ^ kind << 52 ^ 0x9e3779b97f4a7c15ULL,
        (block.bytes + block.requested_or_age * 0xd1b54a32d192ed03ULL) ^ 0x8cb92ba72f3d8dd7ULL);
}
u64 CachingAllocator::Impl::print_of_segment(u64 address, u64 bytes, memory::HomeId home) {
    return fold(address ^ 0xa0761d6478bd642fULL, bytes ^ (home + 1) * 0xe7037ed1a0b428dbULL);
}
u64 CachingAllocator::Impl::print_of_pages(u64 address, u64 bytes, u64 page_bytes) {
    u64 result = 0;
    for (u64 at = address; at < address + bytes; at += page_bytes) {
        result ^= fold(at ^ 0x8ebc6af09c88c6e3ULL, page_bytes ^ 0x589965cc75374cc3ULL);
    }
    return result;
}

CachingAllocator::Impl::SizeIndex& CachingAllocator::Impl::add_home(Pool& pool, StreamId stream) {
    auto id = std::find(homes.begin(), homes.end(), nullptr);
    if (id == homes.end()) id = homes.insert(id, nullptr);
    const auto index = static_cast<std::size_t>(id - homes.begin());
    OOMLAB_CHECK(index <= UINT16_MAX);
    auto home =
        std::make_unique<SizeIndex>(arena.all(), pool, stream, static_cast<memory::HomeId>(index));
    *id = home.get();
    const auto at = std::find_if(pool.homes.begin(), pool.homes.end(),
                                 [&](const auto& other) { return other->stream > stream; });
    return **pool.homes.insert(at, std::move(home));
}

CachingAllocator::Impl::SizeIndex& CachingAllocator::Impl::find_home(u64 rounded_bytes,
                                                                     StreamId stream) {
    const bool is_small = memory::is_small(rounded_bytes);
    Pool* pool = is_small ? &small : &large;
    if (capture_pool != 0) {
        memory::PrivatePool& own = private_pools.at(capture_pool);
        pool = is_small ? &own.small : &own.large;
    }
    const auto at = std::find_if(pool->homes.begin(), pool->homes.end(),
                                 [&](const auto& home) { return home->stream == stream; });
    SizeIndex& home = at != pool->homes.end() ? **at : add_home(*pool, stream);
    if (capture_pool == 0) last_home[is_small ? 0 : 1] = &home;
    return home;
}

// The first free block that is large enough; then the filters, which refuse it and look no further.
CachingAllocator::Impl::Block* CachingAllocator::Impl::best_fit(SizeIndex& home,
                                                                u64 rounded_bytes) {
    if (collects()) ++home.pool.lookups;
    Block* found = home.lower_bound(rounded_bytes);
    if (found == nullptr) return nullptr;
    if (found->expandable) found = expandable_fit(home, found);
    if (rounded_bytes < conf.max_split_bytes) {
        if (found->bytes >= conf.max_split_bytes) return nullptr;
    } else if (found->bytes >= rounded_bytes + conf.max_non_split_rounding_bytes) {
        return nullptr;
    }
    __builtin_prefetch(found->next);  // relinked when the block is split
    leave_free(home, found);
    return found;
}

// A block that can still grow counts as large as it may become: a hole that fits goes first.
CachingAllocator::Impl::Block* CachingAllocator::Impl::expandable_fit(const SizeIndex& home,
                                                                      Block* found) const {
    const auto may_become = [](const Block* block) {
        const Block* next = block->next;
        const bool grows = next != nullptr && next->state == BlockState::unmapped;
        return block->bytes + (grows ? next->bytes : 0);
    };
    for (Block* next = home.next(found); next != nullptr; next = home.next(next)) {
        if (may_become(next) >= may_become(found)) break;
        found = next;
    }
    return found;
}

bool CachingAllocator::Impl::should_split(const Block& block, const Pool& pool,
                                          u64 rounded_bytes) const {
    const u64 leftover = block.bytes - rounded_bytes;
    if (pool.small || conf.expandable_segments) {
        return leftover >= memory::kMinBlockBytes;
    }
    return rounded_bytes < conf.max_split_bytes && leftover > memory::kSmallRequestBytes;
}

// Cuts a block in two; returns the part behind, which is in none of the places yet.
CachingAllocator::Impl::Block* CachingAllocator::Impl::split(Block* block, u64 front_bytes) {
    Block* const rest = arena.take();
    rest->address = block->address + front_bytes;
    rest->bytes = block->bytes - front_bytes;
    rest->home = block->home;
    rest->expandable = block->expandable;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->bytes = front_bytes;
    return rest;
}

Allocation CachingAllocator::Impl::hand_out(SizeIndex& home, Block* block, u64 requested_bytes,
                                            u64 rounded_bytes, Owner owner, u32 request) {
    const StatPool pool = home.pool.stat();
    const bool already_split = block->is_split();
    const bool counts_as_split = !block->expandable;
    if (should_split(*block, home.pool, rounded_bytes)) {
        Block* const rest = split(block, rounded_bytes);
        enter_free(home, rest);
        if (counts_as_split && already_split) {
            counters.inactive_split_bytes.decrease(pool, block->bytes);
        } else if (counts_as_split) {
            counters.inactive_split_bytes.increase(pool, rest->bytes);
            counters.inactive_split.increase(pool, 1);
        }
    } else if (counts_as_split && already_split) {
        counters.inactive_split_bytes.decrease(pool, block->bytes);
        counters.inactive_split.decrease(pool, 1);
    }
    block->state = BlockState::allocated;
    block->requested_or_age = requested_bytes;
    block->owner = owner;
    block->request = request;
    print ^= print_of(*block);
    live.insert(block);
    owned_bytes[static_cast<std::size_t>(owner)] += block->bytes;

    counters.allocation.increase(pool, 1);
    counters.allocated_bytes.increase(pool, block->bytes);
    counters.requested_bytes.increase(pool, requested_bytes);
    if (counters.active.pending() != 0) [[unlikely]] {
        counters.active.note_peak();
        counters.active_bytes.note_peak();
    }
    if (block->bytes >= conf.max_split_bytes) stats.oversize_allocations.increase(1);
    return {.address = block->address, .bytes = block->bytes};
}

Result<Allocation, AllocFailure> CachingAllocator::Impl::malloc(u64 bytes, StreamId stream,
                                                                Owner owner, u32 request) {
    if (bytes == 0 || bytes >= memory::kAbsurdBytes) [[unlikely]]
        return malloc_odd(bytes, owner);
    if (!capturing && (outstanding != 0 || !deferred.empty())) [[unlikely]] {
        if (auto error = poll_events()) {
            return fail(failed({.requested_bytes = bytes, .error = std::move(error), .fatal = true},
                               owner));
        }
    }
    const u64 rounded_bytes =
        divides ? memory::round_size(conf, bytes) : memory::round_to_quantum(bytes);
    SizeIndex& home = home_for(rounded_bytes, stream);
    Block* const block = best_fit(home, rounded_bytes);
    if (block == nullptr) [[unlikely]] {
        return malloc_new(home, bytes, rounded_bytes, owner, request);
    }
    return hand_out(home, block, bytes, rounded_bytes, owner, request);
}

Result<Allocation, AllocFailure> CachingAllocator::Impl::malloc_new(SizeIndex& home, u64 bytes,
                                                                    u64 rounded_bytes, Owner owner,
                                                                    u32 request) {
    Request r{.requested_bytes = bytes, .rounded_bytes = rounded_bytes, .home = &home};
    if (!obtain(r)) return fail(failed(r, owner));
    return hand_out(home, r.block, bytes, rounded_bytes, owner, request);
}

Result<Allocation, AllocFailure> CachingAllocator::Impl::malloc_odd(u64 bytes, Owner owner) {
    if (bytes == 0) return Allocation{};
    AllocFailure f = failed({.requested_bytes = bytes}, owner);
    f.kind = AllocFailure::Kind::absurd_size;
    return fail(std::move(f));
}

u64 CachingAllocator::Impl::merge(SizeIndex& home, Block* block, Block* neighbour) {
    if (neighbour == nullptr || neighbour->state != block->state) return 0;
    if (block->state == BlockState::unmapped) {
        leave_unmapped(home, neighbour);
    } else {
        leave_free(home, neighbour);
    }
    const u64 taken = neighbour->bytes;
    if (neighbour == block->prev) {
        block->address = neighbour->address;
        block->prev = neighbour->prev;
        if (block->prev != nullptr) block->prev->next = block;
    } else {
        block->next = neighbour->next;
        if (block->next != nullptr) block->next->prev = block;
    }
    block->bytes += taken;
    arena.give_back(neighbour);
    return taken;
}

// REQUIRES: the block is in none of the places.
void CachingAllocator::Impl::complete_free(Block* block) {
    SizeIndex& home = home_of(block);
    const StatPool pool = home.pool.stat();
    counters.requested_bytes.decrease(pool, block->requested_or_age);
    block->state = BlockState::free;
    const u64 before = merge(home, block, block->prev);
    const u64 after = merge(home, block, block->next);
    enter_free(home, block);
    if (block->expandable) return;
    // Net changes, as the original counts them: a merge that ends with as many holes is no change.
    const i64 count = (block->is_split() ? 1 : 0) - (before != 0 ? 1 : 0) - (after != 0 ? 1 : 0);
    if (count > 0) counters.inactive_split.increase(pool, static_cast<u64>(count));
    if (count < 0) counters.inactive_split.decrease(pool, static_cast<u64>(-count));
    const u64 gone = before + after;
    const u64 come = block->is_split() ? block->bytes : 0;
    if (come > gone) counters.inactive_split_bytes.increase(pool, come - gone);
    if (come < gone) counters.inactive_split_bytes.decrease(pool, gone - come);
}

void CachingAllocator::Impl::free(u64 address) {
    if (address == 0) return;
    Block* const block = live.take(address);
    OOMLAB_CHECK(block != nullptr);  // not from malloc, or freed before
    // Both neighbours are looked at below: their lines may come while the figures are updated.
    __builtin_prefetch(block->prev);
    __builtin_prefetch(block->next);
    print ^= print_of(*block);
    const StatPool pool = pool_of(block).stat();
    owned_bytes[static_cast<std::size_t>(block->owner)] -= block->bytes;
    counters.allocation.decrease(pool, 1);
    counters.allocated_bytes.decrease(pool, block->bytes);
    if (block->bytes >= conf.max_split_bytes) stats.oversize_allocations.decrease(1);
    if (block->used_elsewhere) return start_waiting(block);
    complete_free(block);
}

CachingAllocator::CachingAllocator(Device& device, const AllocConf& conf,
                                   AllocatorObserver* observer)
    : impl_(std::make_unique<Impl>(device, conf, observer)) {}
CachingAllocator::~CachingAllocator() = default;

Result<Allocation, AllocFailure> CachingAllocator::malloc(u64 bytes, StreamId stream, Owner owner,
                                                          u32 request) {
    return impl_->malloc(bytes, stream, owner, request);
}
void CachingAllocator::free(u64 address) {
    impl_->free(address);
}

void CachingAllocator::record_stream(u64 address, StreamId stream) {
    if (address == 0) return;
    memory::Block* const block = impl_->live.find(address);
    OOMLAB_CHECK(block != nullptr);
    impl_->record_stream(block, stream);
}

void CachingAllocator::empty_cache() {
    // Nobody to report to: what the driver would not take back stays in the cache and is counted.
    std::optional<DeviceError> error;
    impl_->release_cached(error);
}

void CachingAllocator::set_per_process_memory_fraction(double fraction) {
    OOMLAB_CHECK(fraction >= 0 && fraction <= 1);
    impl_->allowed = impl_->cap_of(fraction);
}

void CachingAllocator::begin_capture(u32 private_pool) {
    OOMLAB_CHECK(!impl_->capturing);
    impl_->capturing = true;
    impl_->capture_pool = private_pool;
    if (private_pool == 0) return;
    auto [at, added] = impl_->private_pools.try_emplace(private_pool);
    at->second.in_use = true;
    if (!added) return;
    at->second.small = {.small = true, .private_id = private_pool};
    at->second.large = {.small = false, .private_id = private_pool};
}
void CachingAllocator::end_capture() {
    OOMLAB_CHECK(impl_->capturing);
    impl_->capturing = false;
    impl_->capture_pool = 0;
}
void CachingAllocator::release_private_pool(u32 private_pool) {
    const auto at = impl_->private_pools.find(private_pool);
    if (at != impl_->private_pools.end()) at->second.in_use = false;
}

const AllocatorStats& CachingAllocator::stats() const {
    return impl_->publish();
}
u64 CachingAllocator::memory_allocated() const {
    return static_cast<u64>(impl_->counters.allocated_bytes.current());
}
u64 CachingAllocator::memory_reserved() const {
    return impl_->reserved();
}
u64 CachingAllocator::largest_free_block_bytes() const {
    return impl_->largest_free();
}
std::vector<SegmentInfo> CachingAllocator::snapshot() const {
    return impl_->snapshot();
}
u64 CachingAllocator::owner_bytes(Owner owner) const {
    return impl_->owned_bytes[static_cast<std::size_t>(owner)];
}
std::string CachingAllocator::check_invariants() const {
    return impl_->check_invariants();
}

u64 CachingAllocator::fingerprint() const {
    u64 result = impl_->print;
    result ^=
        fold(impl_->allowed.value_or(UINT64_MAX) ^ 0x589965cc75374cc3ULL, 0x1d8e4e27c47d124fULL);
    if (impl_->capturing) result ^= fold(impl_->capture_pool + 1, 0xeb44accab455d165ULL);
    // With collection on, every lookup ages the cache, so no two moments are alike.
    if (impl_->collects()) {
        result ^= fold(impl_->large.lookups + 1, 0x9c6e6877736c46e3ULL) ^
                  fold(impl_->small.lookups + 1, 0x2d358dccaa6c78a5ULL);
    }
    return result;
}

}  // namespace oomlab
