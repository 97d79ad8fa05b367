// Parts of oomlab-gpu-check.
#pragma once

namespace oomlab::gpu {

// Measures copy and cuBLAS rates, every kernel against its floor, and what an allocation costs; prints
// a table. Returns how many kernels miss the aim (85% of the copy rate).
int print_rates();

// Provokes one fault in this process and checks what CUDA says of it. Returns 0 when it is the fault
// that was asked for; the process can do nothing on the card afterwards.
int provoke(const char* name);

}  // namespace oomlab::gpu
