#include "ui/window/paint/memory_map.hpp"

#include <array>
#include <cmath>

namespace oomlab::paint {
namespace {

// Between segments; narrow when there are many, so that the gaps do not make the picture.
u64 gap_pixels(std::size_t segments) { return segments > 400 ? 1 : 3; }

// A free block: plain when it is of use, cross-hatched yellow when it is too small for what failed.
Rgb free_pixel(bool useless, int x, int y, const Palette& palette, const Theme& theme) {
    if (!useless) return mix(theme.plot, theme.text, 10);
    return palette.owner_pixel(Owner::cached, x, y);
}

Rgb block_pixel(const trace::MapBlock& block, const MapView& view, int x, int y,
                const Palette& palette, const Theme& theme) {
    switch (block.state) {
        case trace::BlockState::free:
            return free_pixel(block.bytes < view.asked_bytes, x, y, palette, theme);
        case trace::BlockState::pending_free:
            return pattern_at(Pattern::vertical, x, y, palette.unit) ? theme.text
                                                                     : mix(theme.plot, theme.text, 35);
        case trace::BlockState::active: break;
    }
    if (view.highlight_request != trace::kNoRequest && block.request == view.highlight_request)
        return theme.text;
    return palette.owner_pixel(block.owner, x, y);
}

}  // namespace

MapLayout paint_block_map(Canvas& canvas, const view::BlockMap& map, const MapView& view,
                          const Palette& palette) {
    const Theme theme = palette.theme();
    canvas.clear(pack(theme.plot));
    MapLayout layout;
    const int width = canvas.width(), height = canvas.height();
    if (width < 8 || height < 4 || map.segments.empty()) return layout;
    layout.width_ = width;
    const auto left_out = [&](const trace::MapSegment& s) {
        return view.split_only && s.blocks == 1 && map.blocks[s.first_block].state == trace::BlockState::active;
    };
    u64 reserved = 0;
    for (const trace::MapSegment& s : map.segments) {
        if (left_out(s)) layout.left_out_bytes_ += s.bytes;
        else reserved += s.bytes;
    }

    // Rows as tall as lets everything in, at most a fifth of the canvas, at least four pixels.
    const int row_height = std::clamp(height / 12, 4 * palette.unit, 18 * palette.unit);
    layout.row_height_ = row_height;
    layout.rows_shown_ = std::max(1, height / row_height);
    const double pixels = static_cast<double>(layout.rows_shown_) * width * std::max(view.zoom, 1.0);
    const double gaps = static_cast<double>(map.segments.size() * gap_pixels(map.segments.size()));
    const double usable = std::max(pixels - gaps, pixels / 2);
    layout.bytes_per_pixel_ =
        std::max<u64>(512, static_cast<u64>(std::ceil(static_cast<double>(reserved) / usable)));
    u64 at = 0;
    layout.first_pixel_.reserve(map.segments.size() + 1);
    for (const trace::MapSegment& s : map.segments) {
        layout.first_pixel_.push_back(at);
        if (left_out(s)) continue;
        at += std::max<u64>(1, div_ceil(s.bytes, layout.bytes_per_pixel_)) + gap_pixels(map.segments.size());
    }
    layout.first_pixel_.push_back(at);
    layout.rows_total_ = static_cast<int>(std::min<u64>(div_ceil(at, static_cast<u64>(width)), 1u << 30));
    const int hidden = std::max(0, layout.rows_total_ - layout.rows_shown_);
    layout.first_row_ = static_cast<int>(std::clamp(view.scroll, 0.0, 1.0) * hidden + 0.5);

    const u64 from = static_cast<u64>(layout.first_row_) * static_cast<u64>(width);
    const u64 to = from + static_cast<u64>(layout.rows_shown_) * static_cast<u64>(width);
    const auto put = [&](u64 pixel, const auto& colour_of) {
        if (pixel < from || pixel >= to) return;
        const int x = static_cast<int>((pixel - from) % static_cast<u64>(width));
        const int y0 = static_cast<int>((pixel - from) / static_cast<u64>(width)) * row_height;
        const int y1 = std::min(y0 + row_height - 1, height);
        for (int y = y0; y < y1; ++y) canvas.row(y)[x] = pack(colour_of(x, y));
    };
    const u64 per = layout.bytes_per_pixel_;
    for (std::size_t s = 0; s < map.segments.size(); ++s) {
        const trace::MapSegment& segment = map.segments[s];
        const u64 base = layout.first_pixel_[s];
        if (base >= to || layout.first_pixel_[s + 1] <= from || left_out(segment)) continue;
        // Blocks smaller than a pixel are mixed; the sum of their bytes by colour decides.
        std::array<u64, 3> sum{};
        u64 weight = 0, open_pixel = 0;
        const auto flush = [&] {
            if (weight == 0) return;
            const Rgb colour{static_cast<std::uint8_t>(sum[0] / weight),
                             static_cast<std::uint8_t>(sum[1] / weight),
                             static_cast<std::uint8_t>(sum[2] / weight)};
            put(base + open_pixel, [&](int, int) { return colour; });
            sum = {};
            weight = 0;
        };
        for (u32 b = segment.first_block; b < segment.first_block + segment.blocks; ++b) {
            const trace::MapBlock& block = map.blocks[b];
            const u64 begin = block.address - segment.address, end = begin + block.bytes;
            const u64 whole_begin = div_ceil(begin, per), whole_end = end / per;
            const auto part = [&](u64 pixel, u64 bytes) {
                if (bytes == 0) return;
                if (pixel != open_pixel) flush();
                open_pixel = pixel;
                const Rgb c = block_pixel(block, view, 1, 3, palette, theme);
                const u64 share = std::max<u64>(1, bytes * 1024 / per);
                sum[0] += c.r * share;
                sum[1] += c.g * share;
                sum[2] += c.b * share;
                weight += share;
            };
            if (whole_begin > whole_end) {   // inside one pixel
                part(begin / per, end - begin);
                continue;
            }
            part(begin / per, whole_begin * per - begin);
            const u64 first = std::max(whole_begin, from > base ? from - base : 0);
            const u64 last = std::min(whole_end, to > base ? to - base : 0);
            if (whole_begin < whole_end) flush();
            for (u64 p = first; p < last; ++p) {
                const bool edge = p == whole_begin && whole_end - whole_begin > 2;
                put(base + p, [&](int x, int y) {
                    return edge ? theme.outline : block_pixel(block, view, x, y, palette, theme);
                });
            }
            part(whole_end, end - whole_end * per);
        }
        flush();
    }
    return layout;
}

MapLayout::Hit MapLayout::hit(const view::BlockMap& map, int x, int y) const {
    Hit result;
    if (width_ == 0 || x < 0 || y < 0 || x >= width_ || first_pixel_.empty()) return result;
    const u64 pixel = static_cast<u64>(first_row_ + y / row_height_) * static_cast<u64>(width_) +
                      static_cast<u64>(x);
    const auto after = std::upper_bound(first_pixel_.begin(), first_pixel_.end(), pixel);
    const std::size_t s = static_cast<std::size_t>(after - first_pixel_.begin());
    if (s == 0 || s > map.segments.size()) return result;
    const trace::MapSegment& segment = map.segments[s - 1];
    const u64 offset = (pixel - first_pixel_[s - 1]) * bytes_per_pixel_;
    if (offset >= segment.bytes) return result;   // the gap
    result.segment = static_cast<int>(s - 1);
    u32 low = segment.first_block, high = segment.first_block + segment.blocks;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        const trace::MapBlock& block = map.blocks[middle];
        if (block.address + block.bytes - segment.address <= offset) low = middle + 1;
        else high = middle;
    }
    if (low < segment.first_block + segment.blocks) result.block = static_cast<int>(low);
    return result;
}

Rgb request_colour(u32 request, const Palette& palette) {
    // Light and dark in turn, so that neighbours differ in lightness too.
    static constexpr Rgb kColours[] = {kOrange, kBlue, kYellow, kVermillion, kSky, kPurple};
    return palette.see(kColours[request % std::size(kColours)]);
}

u32 KvLayout::block_at(int x, int y) const {
    const u32 none = first_block.empty() ? 0 : first_block.back();
    if (x < 0 || y < 0 || cell <= 0 || x / cell >= columns) return none;
    const u64 at = static_cast<u64>(y / cell) * static_cast<u64>(columns) + static_cast<u64>(x / cell);
    return static_cast<u32>(std::min<u64>(at * blocks_per_cell, none));
}

int kv_owner_of(const view::KvMap& map, const KvLayout& layout, u32 block) {
    if (layout.first_block.size() < map.owners.size() + 3) return -2;
    const auto after = std::upper_bound(layout.first_block.begin(), layout.first_block.end(), block);
    const std::ptrdiff_t part = after - layout.first_block.begin() - 1;
    const auto owners = static_cast<std::ptrdiff_t>(map.owners.size());
    if (part < owners) return static_cast<int>(part);
    return part == owners ? -1 : -2;
}

KvLayout paint_kv_grid(Canvas& canvas, const view::KvMap& map, u32 highlight_request,
                       const Palette& palette) {
    const Theme theme = palette.theme();
    canvas.clear(pack(theme.plot));
    KvLayout layout;
    const int width = canvas.width(), height = canvas.height();
    if (width < 4 || height < 4 || map.blocks_total == 0) return layout;
    // Owners first, then what only the prefix cache holds, then free.
    u32 at = 0;
    for (const trace::KvOwner& owner : map.owners) {
        layout.first_block.push_back(at);
        at = std::min(map.blocks_total, at + std::min(owner.blocks, map.blocks_total - at));
    }
    layout.first_block.push_back(at);
    at = std::min(map.blocks_total, at + std::min(map.blocks_cached, map.blocks_total - at));
    layout.first_block.push_back(at);
    layout.first_block.push_back(map.blocks_total);

    // The largest square cell with which all fit; below three pixels several blocks share a cell.
    layout.blocks_per_cell = 1;
    for (;;) {
        const double cells = std::ceil(static_cast<double>(map.blocks_total) / layout.blocks_per_cell);
        int cell = static_cast<int>(std::sqrt(static_cast<double>(width) * height / cells));
        while (cell > 0 && static_cast<double>(width / cell) * (height / cell) < cells) --cell;
        if (cell >= 3) {
            layout.cell = std::min(cell, 22 * palette.unit);
            break;
        }
        layout.blocks_per_cell *= 2;
    }
    layout.columns = width / layout.cell;
    const u32 cells = static_cast<u32>(div_ceil(map.blocks_total, layout.blocks_per_cell));
    for (u32 c = 0; c < cells; ++c) {
        const int x0 = static_cast<int>(c % static_cast<u32>(layout.columns)) * layout.cell;
        const int y0 = static_cast<int>(c / static_cast<u32>(layout.columns)) * layout.cell;
        const int owner = kv_owner_of(map, layout, c * layout.blocks_per_cell);
        const int x1 = x0 + layout.cell - 1, y1 = y0 + layout.cell - 1;
        if (owner >= 0) {
            const u32 request = map.owners[static_cast<std::size_t>(owner)].request;
            const Rgb colour = request == highlight_request ? theme.text
                                                            : request_colour(request, palette);
            canvas.fill(x0, y0, x1, y1, pack(colour));
        } else if (owner == -1) {
            for (int y = y0; y < y1; ++y)
                for (int x = x0; x < x1; ++x)
                    canvas.set(x, y, pack(pattern_at(Pattern::diagonal, x, y, palette.unit)
                                              ? theme.secondary : mix(theme.plot, theme.text, 20)));
        } else {
            canvas.fill(x0, y0, x1, y1, pack(mix(theme.plot, theme.text, 12)));
        }
    }
    return layout;
}

}  // namespace oomlab::paint
