#include "labs/field/triage/facts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/base/check.hpp"

namespace oomlab::triage {

std::string_view name(Phase phase) {
    switch (phase) {
        case Phase::unknown:
            return "unknown";
        case Phase::start:
            return "start";
        case Phase::serving:
            return "serving";
    }
    return "unknown";
}

bool is_frame(Signal s) {
    return s >= Signal::frame_load && s <= Signal::frame_sleep_allocator;
}

std::size_t frame_slot(Signal s) {
    OOMLAB_CHECK(is_frame(s));
    return static_cast<std::size_t>(s) - static_cast<std::size_t>(Signal::frame_load);
}

double Fact::number(std::size_t field) const {
    std::string digits;
    for (const char c : fields[field])
        if (c != ',' && c != '+') digits.push_back(c);
    double value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return std::isfinite(value) ? value : 0;
}

bool mentions(std::string_view text, std::string_view what) {
    const auto fold = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::search(text.begin(), text.end(), what.begin(), what.end(),
                       [&](char a, char b) { return fold(a) == fold(b); }) != text.end();
}

std::optional<double> size_bytes(std::string_view text) {
    std::string digits;
    std::size_t i = 0;
    while (i < text.size() && text[i] == ' ') ++i;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (c == ',') continue;
        if ((c < '0' || c > '9') && c != '.' && c != '-') break;
        digits.push_back(c);
    }
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    while (i < text.size() && text[i] == ' ') ++i;
    const char unit = i < text.size() ? static_cast<char>(text[i] | 0x20) : 'b';
    switch (unit) {
        case 'k':
            return value * 1024;
        case 'm':
            return value * 1024 * 1024;
        case 'g':
            return value * 1024 * 1024 * 1024;
        case 't':
            return value * 1024 * 1024 * 1024 * 1024;
        case 'b':
            return value;
        default:
            return std::nullopt;
    }
}

void Facts::add(Fact fact) {
    Shelf& s = shelf(fact.signal);
    // Two rows of one signal on one line are one fact; the second may bring fields.
    Fact* same = !s.last.empty() ? &s.last.back() : !s.first.empty() ? &s.first.back() : nullptr;
    if (same != nullptr && same->place == fact.place && same->text == fact.text) {
        for (std::size_t i = 0; i < fact.fields.size(); ++i)
            if (same->fields[i].empty()) same->fields[i] = std::move(fact.fields[i]);
        return;
    }
    ++s.count;
    if (s.first.size() < kKeep) {
        s.first.push_back(std::move(fact));
        return;
    }
    if (s.last.size() == kKeep) s.last.pop_front();
    s.last.push_back(std::move(fact));
}

const Fact* Facts::last(Signal signal) const {
    const Shelf& s = shelf(signal);
    return !s.last.empty() ? &s.last.back() : !s.first.empty() ? &s.first.back() : nullptr;
}

const Fact* Facts::first_of(std::initializer_list<Signal> signals) const {
    const Fact* best = nullptr;
    for (const Signal s : signals) {
        const Fact* f = first(s);
        if (f != nullptr && (best == nullptr || f->place < best->place)) best = f;
    }
    return best;
}

const Fact* Facts::before(Signal signal, Place place) const {
    const Fact* best = nullptr;
    const auto look = [&](const Fact& f) {
        if (f.place.file == place.file && f.place.line < place.line) best = &f;
    };
    for (const Fact& f : shelf(signal).first) look(f);
    for (const Fact& f : shelf(signal).last) look(f);
    return best;
}

const Fact* Facts::after(Signal signal, Place place) const {
    return find(signal, [&](const Fact& f) {
        return f.place.file == place.file && f.place.line > place.line;
    });
}

}  // namespace oomlab::triage
