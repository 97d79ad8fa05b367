#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "kernels/base/bytes.hpp"
#include "kernels/base/prng.hpp"

namespace oomlab {

void check_failed(const char* file, int line, const char* expression) {
    std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
    std::abort();
}

std::string format_size(u64 bytes) {
    if (bytes <= 1024) return fmt::format("{} bytes", bytes);
    const double n = static_cast<double>(bytes);
    if (bytes <= kMiB) return fmt::format("{:.2f} KiB", n / static_cast<double>(kKiB));
    if (bytes <= kGiB) return fmt::format("{:.2f} MiB", n / static_cast<double>(kMiB));
    return fmt::format("{:.2f} GiB", n / static_cast<double>(kGiB));
}

std::string human_bytes(u64 bytes) {
    struct Unit {
        u64 size;
        const char* name;
    };
    static constexpr Unit kUnits[] = {{kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}};
    for (const Unit& unit : kUnits) {
        if (bytes < unit.size) continue;
        if (bytes % unit.size == 0) return fmt::format("{} {}", bytes / unit.size, unit.name);
        return fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(unit.size),
                           unit.name);
    }
    return fmt::format("{} B", bytes);
}

std::string human_bytes_signed(i64 bytes) {
    const u64 size = bytes < 0 ? 0 - static_cast<u64>(bytes) : static_cast<u64>(bytes);
    return (bytes < 0 ? "-" : "+") + human_bytes(size);
}

Result<u64> parse_bytes(std::string_view text) {
    const auto bad = [&](const char* why) {
        return fail(Error::parse(fmt::format(
            "'{}' is not a size: {} (write 512MiB, 24GiB, 80GB or a number of bytes)", text, why)));
    };
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, ec] = std::from_chars(text.data(), end, number);
    if (ec != std::errc()) return bad("it does not start with a number");
    if (!(number >= 0)) return bad("it is negative");
    std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    struct Unit {
        std::string_view name;
        double size;
    };
    static constexpr Unit kUnits[] = {
        {"", 1},      {"B", 1},     {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
        {"TiB", 1099511627776.0},   {"K", 1024.0},   {"M", 1048576.0},   {"G", 1073741824.0},
        {"Ki", 1024.0},             {"Mi", 1048576.0}, {"Gi", 1073741824.0},
        {"kB", 1e3},  {"KB", 1e3},  {"MB", 1e6},     {"GB", 1e9},        {"TB", 1e12}};
    for (const Unit& u : kUnits) {
        if (u.name != unit) continue;
        const double bytes = number * u.size;
        if (bytes > 9.0e18) return bad("it is larger than any memory");
        return static_cast<u64>(std::llround(bytes));
    }
    return bad("its unit is unknown");
}

namespace {
std::uint64_t splitmix(std::uint64_t& x) {
    x += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = x;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}
std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
}  // namespace

Prng::Prng(std::uint64_t seed) : seed_(seed) {
    std::uint64_t x = seed;
    for (auto& word : state_) word = splitmix(x);
}

Prng Prng::fork(std::string_view name) const {
    return Prng(stable_hash(name, seed_ ^ 0xcbf29ce484222325ULL));
}

std::uint64_t Prng::next() {
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
}

double Prng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::uint64_t Prng::below(std::uint64_t n) {
    OOMLAB_CHECK(n > 0);
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    std::uint64_t x = next();
    while (x >= limit) x = next();
    return x % n;
}

std::uint64_t Prng::between(std::uint64_t lo, std::uint64_t hi) {
    OOMLAB_CHECK(lo <= hi);
    return lo + below(hi - lo + 1);
}

double Prng::exponential(double rate) { return -std::log(1.0 - uniform()) / rate; }

double Prng::normal() {
    const double r = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return r * std::cos(2.0 * std::numbers::pi * uniform());
}

double Prng::lognormal(double mean, double cv) {
    const double sigma2 = std::log(1.0 + cv * cv);
    return std::exp(std::log(mean) - sigma2 / 2 + std::sqrt(sigma2) * normal());
}

std::uint64_t stable_hash(std::string_view text, std::uint64_t basis) {
    std::uint64_t h = basis;
    for (const char c : text) {
        h ^= static_cast<unsigned char>(c);
        h *= 0x100000001b3ULL;
    }
    return h;
}

}  // namespace oomlab
