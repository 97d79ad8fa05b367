// The order in which the emulator's threads take turns.
#pragma once

namespace oomlab::emulator {

void set_backwards(bool backwards);

}  // namespace oomlab::emulator
