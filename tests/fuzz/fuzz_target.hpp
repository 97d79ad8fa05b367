// One input for a parser: must neither crash, hang, nor show what was not written. libFuzzer drives
// it (OOMLAB_FUZZ), and a short, repeatable run of mutations in the ordinary tests.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
