#include <sys/mman.h>

#include <new>

#include "labs/server/memory/detail/block.hpp"

namespace oomlab::memory {

BlockArena::BlockArena() : blocks_(nullptr), capacity_(kMaxBlocks) {
    // A host that limits addresses gets a smaller arena, down to one that is still useful.
    constexpr u64 kMinBlocks = u64{1} << 14;
    void* p = MAP_FAILED;
    for (; p == MAP_FAILED && capacity_ >= kMinBlocks; capacity_ /= 2) {
        p = ::mmap(nullptr, capacity_ * sizeof(Block), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED) break;
    }
    OOMLAB_CHECK(p != MAP_FAILED);
    blocks_ = static_cast<Block*>(p);
    new (&blocks_[0]) Block;
}

BlockArena::~BlockArena() {
    ::munmap(blocks_, capacity_ * sizeof(Block));
}

Block* BlockArena::take_fresh() {
    OOMLAB_CHECK(touched_ < capacity_);
    return new (&blocks_[touched_++]) Block;
}

}  // namespace oomlab::memory
