#include "labs/server/memory/ledger.hpp"

namespace oomlab::server {

bool Ledger::try_alloc(u64 bytes, Owner owner, u32 request, u16 op, Tensor& out) {
    recorder_.current_request = request;
    recorder_.current_owner = owner;
    auto result = allocator_.malloc(bytes, 0, owner, request);
    if (!result) {
        failure_ = Failure::of(std::move(result.error()));
        failure_.request = request;
        failure_.alloc.owner = owner;
        recorder_.failed_op(owner, bytes, request, op);
        return false;
    }
    out.address = result->address;
    out.bytes = result->bytes;
    out.owner = owner;
    out.request = request;
    if (out.address != 0) recorder_.grew(owner, out.address, out.bytes, request, op);
    return true;
}

}  // namespace oomlab::server
