#include "tests/ops/emulator/emulator.hpp"

#include "tests/ops/emulator/order.hpp"

#ifndef __x86_64__
#include <ucontext.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

#ifdef __x86_64__
// Leaves the registers that a callee must keep on the old stack and takes up those of the new one.
// swapcontext would do, and asks the kernel for the signal mask twice at every switch besides.
extern "C" void oomlab_switch_stack(void** leave, void* enter);
asm(R"(
.text
.globl oomlab_switch_stack
.type oomlab_switch_stack, @function
oomlab_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size oomlab_switch_stack, .-oomlab_switch_stack
)");
#endif

namespace oomlab::emulator {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr unsigned kThreadsMax = 1024, kLanes = 32;
constexpr int kInvalidConfiguration = 9;

enum class State { ready, at_block, at_warp, done };

#ifdef __x86_64__
using Context = void*;   // the stack pointer
void switch_to(Context& from, Context& to) { oomlab_switch_stack(&from, to); }
Context context_on(char* stack, void (*entry)()) {
    // As after a call: the return address, and the stack pointer 8 short of a multiple of 16.
    const std::uintptr_t top = reinterpret_cast<std::uintptr_t>(stack + kStackBytes) / 16 * 16 - 16;
    *reinterpret_cast<void (**)()>(top) = entry;
    return std::memset(reinterpret_cast<void*>(top - 48), 0, 48);   // six registers
}
#else
using Context = ucontext_t;
void switch_to(Context& from, Context& to) { swapcontext(&from, &to); }
Context context_on(char* stack, void (*entry)()) {
    Context context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
    return context;
}
#endif

struct Fiber {
    Context context{};
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    State state = State::done;
};

std::vector<std::unique_ptr<Fiber>> g_fibers;
std::vector<Slot> g_slots;
Context g_scheduler{};
unsigned g_current = 0, g_threads = 0;
bool g_backwards = false;
const std::function<void()>* g_thread = nullptr;

[[noreturn]] void stop(const char* what) {
    std::fprintf(stderr, "emulated kernel, block %u,%u thread %u: %s\n", blockIdx.x, blockIdx.y,
                 g_current, what);
    std::abort();
}

void entry() {
    (*g_thread)();
    g_fibers[g_current]->state = State::done;
    switch_to(g_fibers[g_current]->context, g_scheduler);
}

void wait_as(State state) {
    g_fibers[g_current]->state = state;
    switch_to(g_fibers[g_current]->context, g_scheduler);
}

void place(unsigned thread) {
    g_current = thread;
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / blockDim.x / blockDim.y;
}

// Runs the threads of one warp until all are done or wait for the rest of the block. A warp runs as
// far ahead of the others as barriers let it, which is what a missing barrier cannot stand.
void run_warp(unsigned first) {
    const unsigned count = std::min(kLanes, g_threads - first);
    for (;;) {
        unsigned at_warp = 0;
        for (unsigned turn = 0; turn < count; ++turn) {
            const unsigned i = first + (g_backwards ? count - 1 - turn : turn);
            if (g_fibers[i]->state == State::ready) {
                place(i);
                switch_to(g_scheduler, g_fibers[i]->context);
            }
            at_warp += g_fibers[i]->state == State::at_warp;
        }
        if (at_warp == 0) return;
        if (at_warp != kLanes) stop("a shuffle that not all lanes reach");
        for (unsigned i = first; i < first + count; ++i) g_fibers[i]->state = State::ready;
    }
}

void run_block() {
    for (unsigned i = 0; i < g_threads; ++i) {
        Fiber& fiber = *g_fibers[i];
        fiber.context = context_on(fiber.stack.get(), entry);
        fiber.state = State::ready;
    }
    for (;;) {
        const unsigned warps = (g_threads + kLanes - 1) / kLanes;
        for (unsigned turn = 0; turn < warps; ++turn) {
            run_warp((g_backwards ? warps - 1 - turn : turn) * kLanes);
        }
        unsigned waiting = 0;
        for (unsigned i = 0; i < g_threads; ++i) waiting += g_fibers[i]->state == State::at_block;
        if (waiting == 0) return;
        if (waiting != g_threads) stop("a barrier that not all threads reach");
        for (unsigned i = 0; i < g_threads; ++i) g_fibers[i]->state = State::ready;
    }
}

}  // namespace

int run(dim3 grid, dim3 block, const std::function<void()>& thread) {
    g_threads = block.x * block.y * block.z;
    if (g_threads == 0 || g_threads > kThreadsMax || grid.x == 0 || grid.y == 0 || grid.y > 65535) {
        return kInvalidConfiguration;
    }
    while (g_fibers.size() < g_threads) g_fibers.push_back(std::make_unique<Fiber>());
    g_slots.assign((g_threads + kLanes - 1) / kLanes * kLanes, Slot{});
    g_thread = &thread;
    gridDim = grid;
    blockDim = block;
    for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
            blockIdx = dim3(x, y, 0);
            run_block();
        }
    }
    return 0;
}

void set_backwards(bool backwards) { g_backwards = backwards; }

void sync_block() { wait_as(State::at_block); }
void sync_warp() { wait_as(State::at_warp); }

Slot* exchange(const void* from, unsigned bytes) {
    std::memcpy(g_slots[g_current].bytes, from, bytes);
    const unsigned first = g_current / kLanes * kLanes;
    sync_warp();
    return &g_slots[first];
}

}  // namespace oomlab::emulator
