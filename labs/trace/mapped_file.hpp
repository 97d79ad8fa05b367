// A file mapped into memory, and the header of a trace read out of it. Internal to labs/trace.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/base/result.hpp"
#include "labs/trace/layout.hpp"

namespace oomlab::trace {

// Owns the descriptor and the mapping. Move-free: hold it by unique_ptr.
class MappedFile {
  public:
    enum class Access { read, read_write };
    // Maps the whole file as it is now. On failure: Error::io, or Error::parse for a file that is
    // empty or larger than any trace.
    static Result<std::unique_ptr<MappedFile>> open(const std::string& path, Access access);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<std::byte> bytes() const { return bytes_; }
    // How large the file is at this moment: touching the mapping beyond that is a SIGBUS.
    u64 size_now() const;

  private:
    MappedFile(int fd, std::span<std::byte> bytes) : fd_(fd), bytes_(bytes) {}
    int fd_;
    std::span<std::byte> bytes_;
};

// The checked header. A file that is shorter than its header says is accepted (a copy that was cut):
// the regions are cut with it. On failure: Error::parse naming the file and the reason.
struct Regions {
    FileHeader header;
    std::span<std::byte> virtual_log, wall_log, ring;
    bool cut = false;
};
Result<Regions> read_header(const std::string& path, std::span<std::byte> file);

// The changing words of a mapped header.
u64 load_live(std::span<std::byte> file, std::size_t offset_in_live);
void store_live(std::span<std::byte> file, std::size_t offset_in_live, u64 value);

std::string errno_text(int error);

}  // namespace oomlab::trace
