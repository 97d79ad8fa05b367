#include "ui/term/screen.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace oomlab::term {

namespace {

constexpr std::size_t at(Owner o) { return static_cast<std::size_t>(o); }

// From the bottom of the stack: what stays, then what moves, then what is not ours.
constexpr std::array<Owner, kOwners> kOrder = {
    Owner::context, Owner::communication, Owner::weights, Owner::graphs, Owner::workspace, Owner::kv,
    Owner::activations, Owner::cached, Owner::other_processes, Owner::viewer, Owner::unattributed};

// Colours of the 256-colour palette that stay apart for colour-blind eyes; the letter says it anyway.
int colour_of(char letter) {
    switch (letter) {
        case 'C': return 245;
        case 'N': return 181;
        case 'W': return 32;
        case 'G': return 97;
        case 'S': return 66;
        case 'K': return 35;
        case 'k': return 114;
        case 'A': return 208;
        case 'c': return 222;
        case 'O': return 160;
        case 'V': return 139;
        case '?': return 198;
        default: return -1;
    }
}

std::string clock(double seconds) {
    const auto s = static_cast<u64>(std::max(0.0, seconds));
    return s < 3600 ? fmt::format("{:02}:{:02}", s / 60, s % 60) : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

u64 pool_in_use(const Frame& f) {
    const u64 kv = f.owner_bytes[at(Owner::kv)];
    if (f.kv_total == 0) return kv;   // on demand: what is there is used
    return static_cast<u64>(static_cast<double>(kv) * std::min(1.0, static_cast<double>(f.kv_used) / static_cast<double>(f.kv_total)));
}

std::string cut(std::string text, std::size_t width) {
    if (text.size() > width) text.resize(width);
    return text;
}

std::string painted(const std::string& bar) {
    std::string out;
    int now = -1;
    for (const char c : bar) {
        const int wanted = colour_of(c);
        if (wanted != now) {
            out += wanted < 0 ? std::string("\033[0m") : fmt::format("\033[30;48;5;{}m", wanted);
            now = wanted;
        }
        out += c;
    }
    return out + "\033[0m";
}

}  // namespace

char owner_letter(Owner owner) {
    constexpr std::string_view kLetters = "CWKASGNcOV?";
    return at(owner) < kLetters.size() ? kLetters[at(owner)] : '?';
}

std::string memory_bar(const Frame& f, std::size_t cells) {
    struct Part {
        char letter;
        u64 bytes;
        std::size_t cells;
        u64 rest;
    };
    std::vector<Part> parts;
    u64 sum = 0;
    const auto add = [&](char letter, u64 bytes) {
        parts.push_back({letter, bytes, 0, 0});
        sum += bytes;
    };
    for (const Owner o : kOrder) {
        const u64 bytes = f.owner_bytes[at(o)];
        if (o == Owner::kv) {
            const u64 used = std::min(bytes, pool_in_use(f));
            add('K', used);
            add('k', bytes - used);
        } else {
            add(owner_letter(o), bytes);
        }
    }
    const u64 total = std::max({f.total_bytes, sum, u64{1}});
    add('.', total - sum);
    // Largest remainders: the cells always add up.
    std::size_t given = 0;
    for (Part& p : parts) {
        const double exact = static_cast<double>(p.bytes) / static_cast<double>(total) * static_cast<double>(cells);
        p.cells = static_cast<std::size_t>(exact);
        p.rest = static_cast<u64>((exact - static_cast<double>(p.cells)) * 1e9);
        given += p.cells;
    }
    while (given < cells) {
        auto most = std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rest < b.rest; });
        ++most->cells;
        most->rest = 0;
        ++given;
    }
    std::string bar;
    for (const Part& p : parts) bar.append(p.cells, p.letter);
    bar.resize(cells, '.');
    return bar;
}

std::vector<std::string> draw(const Frame& f, const Style& style) {
    const std::size_t width = std::clamp<std::size_t>(style.width, 20, 400);
    std::vector<std::string> lines;
    const std::string speed = f.times >= 1.5 ? fmt::format("  {:.0f} times real time", f.times) : "";
    lines.push_back(cut(fmt::format("{}{}  {}  {} {}{}", f.name, f.simulated ? " [simulated]" : "", f.device, trace::phase_name(f.phase),
                                    clock(f.at_s), speed), width));
    const std::string bar = memory_bar(f, width - 2);
    lines.push_back("[" + (style.colour ? painted(bar) : bar) + "]");
    lines.push_back(cut(fmt::format("{} used of {}, {} free, {} cached: {} headroom", human_bytes(f.used_bytes), human_bytes(f.total_bytes),
                                    human_bytes(f.total_bytes - std::min(f.total_bytes, f.used_bytes)),
                                    human_bytes(f.owner_bytes[at(Owner::cached)]),
                                    human_bytes(f.total_bytes - std::min(f.total_bytes, f.used_bytes) + f.owner_bytes[at(Owner::cached)])), width));
    // The legend: what holds memory, most first.
    std::vector<Owner> owners;
    for (const Owner o : kOrder) if (f.owner_bytes[at(o)] > 0 && o != Owner::cached) owners.push_back(o);
    std::stable_sort(owners.begin(), owners.end(), [&](Owner a, Owner b) { return f.owner_bytes[at(a)] > f.owner_bytes[at(b)]; });
    std::string legend;
    for (const Owner o : owners) {
        const std::string item = fmt::format("{}{} {} {}", legend.empty() ? "" : "  ", owner_letter(o), owner_name(o), human_bytes(f.owner_bytes[at(o)]));
        if (legend.size() + item.size() > width) break;
        legend += item;
    }
    lines.push_back(legend);
    const std::string kv = f.kv_total == 0 ? fmt::format("{} blocks", f.kv_used)
                                           : fmt::format("{:.0f}%", 100.0 * static_cast<double>(f.kv_used) / static_cast<double>(f.kv_total));
    lines.push_back(cut(fmt::format("running {}  waiting {}  KV {}  preemptions {}  done {}/{}  rejected {}  failed {}", f.running, f.waiting, kv,
                                    f.preempted, f.completed, f.received, f.rejected, f.failed), width));
    if (f.host_limit_bytes > 0) {
        lines.push_back(cut(fmt::format("host {} of {}", human_bytes(f.host_bytes), human_bytes(f.host_limit_bytes)), width));
    }
    if (!f.note.empty()) lines.push_back(cut(f.note, width));
    return lines;
}

std::string plain_line(const Frame& f) {
    const std::string kv = f.kv_total == 0 ? fmt::format("{} blocks", f.kv_used)
                                           : fmt::format("{:.0f}%", 100.0 * static_cast<double>(f.kv_used) / static_cast<double>(f.kv_total));
    return fmt::format("{} {}: {} of {} used, running {}, waiting {}, KV {}, preemptions {}, done {}/{}", trace::phase_name(f.phase), clock(f.at_s),
                       human_bytes(f.used_bytes), human_bytes(f.total_bytes), f.running, f.waiting, kv, f.preempted, f.completed, f.received);
}

}  // namespace oomlab::term
