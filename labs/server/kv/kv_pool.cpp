#include "labs/server/kv/kv_pool.hpp"

namespace oomlab::server {

KvPool::KvPool(u64 blocks, u64 block_size, bool prefix_caching)
    : block_size_(block_size), caching_(prefix_caching) {
    OOMLAB_CHECK(blocks >= 1 && blocks < kNone && block_size >= 1);
    next_.assign(blocks, kNone);
    prev_.assign(blocks, kNone);
    references_.assign(blocks, 0);
    content_.assign(blocks, 0);
    references_[0] = 1;   // the null block
    for (u32 b = 1; b < blocks; ++b) push_back(b);
}

u64 KvPool::content_hash(const ContentKey& key, u64 index) const {
    const u64 last_token = (index + 1) * block_size_;
    u64 h = last_token <= key.prefix_tokens ? key.prefix * 0x9e3779b97f4a7c15ULL + 1 : key.own * 0xc2b2ae3d27d4eb4fULL + 2;
    h ^= (index + 1) * 0x165667b19e3779f9ULL;
    h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9ULL;
    h ^= h >> 29;
    return h == 0 ? 1 : h;
}

void KvPool::push_back(u32 block) {
    prev_[block] = tail_;
    next_[block] = kNone;
    (tail_ == kNone ? head_ : next_[tail_]) = block;
    tail_ = block;
    ++free_count_;
    if (content_[block] != 0) ++cached_free_;
}

void KvPool::unlink(u32 block) {
    (prev_[block] == kNone ? head_ : next_[prev_[block]]) = next_[block];
    (next_[block] == kNone ? tail_ : prev_[next_[block]]) = prev_[block];
    --free_count_;
    if (content_[block] != 0) --cached_free_;
}

u32 KvPool::pop_front() {
    const u32 block = head_;
    unlink(block);
    if (content_[block] != 0) {   // its content is evicted
        by_content_.erase(content_[block]);
        content_[block] = 0;
    }
    return block;
}

KvPool::Hit KvPool::find_prefix(const ContentKey& key, u64 tokens) const {
    Hit hit;
    if (!caching_ || tokens == 0) return hit;
    const u64 most = (tokens - 1) / block_size_;
    for (u64 i = 0; i < most; ++i) {
        const auto found = by_content_.find(content_hash(key, i));
        if (found == by_content_.end()) break;
        hit.blocks.push_back(found->second);
        if (references_[found->second] == 0) ++hit.evictable;
    }
    return hit;
}

void KvPool::take_hit(const Hit& hit) {
    for (const u32 block : hit.blocks) {
        if (references_[block]++ == 0) unlink(block);
    }
}

bool KvPool::allocate(u64 count, std::vector<u32>& out) {
    if (count > free_count_) return false;
    for (u64 i = 0; i < count; ++i) {
        const u32 block = pop_front();
        references_[block] = 1;
        out.push_back(block);
    }
    return true;
}

void KvPool::publish(const ContentKey& key, u64 index, u32 block) {
    if (!caching_ || content_[block] != 0) return;
    const u64 h = content_hash(key, index);
    if (by_content_.emplace(h, block).second) content_[block] = h;
}

void KvPool::release(std::vector<u32>& blocks) {
    for (std::size_t i = blocks.size(); i-- > 0;) {
        const u32 block = blocks[i];
        OOMLAB_DCHECK(references_[block] > 0);
        if (--references_[block] == 0) push_back(block);
    }
    blocks.clear();
}

void KvPool::lose(u64 count) {
    for (u64 i = 0; i < count && free_count_ > 0; ++i) references_[pop_front()] = 1;
}

const char* KvPool::check_invariants() const {
    u64 listed = 0, cached = 0;
    for (u32 b = head_; b != kNone; b = next_[b]) {
        if (references_[b] != 0) return "a block in the free list is referenced";
        if (next_[b] != kNone && prev_[next_[b]] != b) return "the free list is torn";
        ++listed;
        cached += content_[b] != 0 ? 1 : 0;
        if (listed > next_.size()) return "the free list has a loop";
    }
    if (listed != free_count_) return "the count of free blocks is off";
    if (cached != cached_free_) return "the count of cached blocks is off";
    u64 unreferenced = 0;
    for (u32 b = 1; b < next_.size(); ++b) unreferenced += references_[b] == 0 ? 1 : 0;
    if (unreferenced != free_count_) return "an unreferenced block is not in the free list";
    for (const auto& [hash, block] : by_content_) {
        if (content_[block] != hash) return "a content key points to a block with other content";
    }
    return "";
}

}  // namespace oomlab::server
