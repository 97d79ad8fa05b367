#include "ui/window/paint/timeline.hpp"

#include <array>

#include "ui/view_model/budget.hpp"

namespace oomlab::paint {
namespace {

using view::Bucket;

int column_of(i64 time_us, const TimelineView& view, int width) {
    const double share = static_cast<double>(time_us - view.from_us) /
                         static_cast<double>(view.to_us - view.from_us);
    return static_cast<int>(std::clamp(share, -1.0, 2.0) * width);
}

// The bucket a column shows: the last one, with the extremes of all that touch the column.
struct Column {
    bool any = false;
    Bucket bucket;
};

std::vector<Column> columns_of(const std::vector<Bucket>& buckets, const TimelineView& view,
                               int width) {
    std::vector<Column> columns(static_cast<std::size_t>(width));
    for (const Bucket& b : buckets) {
        const int begin = std::max(0, column_of(b.begin_us, view, width));
        const int end = std::min(width - 1, column_of(b.end_us, view, width));
        for (int x = begin; x <= end; ++x) {
            Column& column = columns[static_cast<std::size_t>(x)];
            if (!column.any) {
                column.any = true;
                column.bucket = b;
                continue;
            }
            for (std::size_t c = 0; c < view::kChannels; ++c) {
                trace::Envelope& into = column.bucket.value[c];
                into.now = b.value[c].now;
                into.low = std::min(into.low, b.value[c].low);
                into.high = std::max(into.high, b.value[c].high);
            }
        }
    }
    return columns;
}

int row_of(u64 bytes, const TimelineView& view, int height) {
    const double span = static_cast<double>(std::max(view.top_bytes, view.base_bytes + 1) - view.base_bytes);
    const double share = (static_cast<double>(bytes) - static_cast<double>(view.base_bytes)) / span;
    return height - static_cast<int>(std::clamp(share, 0.0, 4.0) * height + 0.5);
}

// Every owner's pixels for one period of its pattern, so that a column costs a look-up a pixel.
class Bands {
  public:
    Bands(const Palette& palette) : period_(35 * palette.unit) {
        const auto cells = static_cast<std::size_t>(period_) * static_cast<std::size_t>(period_);
        for (std::size_t o = 0; o < kOwners; ++o) {
            tile_[o].resize(cells);
            for (int y = 0; y < period_; ++y)
                for (int x = 0; x < period_; ++x)
                    tile_[o][static_cast<std::size_t>(y * period_ + x)] =
                        pack(palette.owner_pixel(static_cast<Owner>(o), x, y));
        }
    }
    std::uint32_t at(std::size_t owner, int x, int y) const {
        return tile_[owner][static_cast<std::size_t>((y % period_) * period_ + x % period_)];
    }

  private:
    int period_;
    std::array<std::vector<std::uint32_t>, kOwners> tile_;
};

// How many events of a lane happened at or before the moment.
std::size_t until(const view::Model& model, Lane lane, i64 time_us) {
    if (lane != Lane::preemptions) return model.events_until(time_us);
    const std::vector<i64>& times = model.preemption_times_us();
    return static_cast<std::size_t>(std::upper_bound(times.begin(), times.end(), time_us) -
                                    times.begin());
}

}  // namespace

u64 paint_stack(Canvas& canvas, const view::Model& model, const TimelineView& view,
                const Palette& palette) {
    const Theme theme = palette.theme();
    const int width = canvas.width(), height = canvas.height();
    canvas.clear(pack(theme.plot));
    if (width <= 0 || height <= 0) return 1;
    for (int quarter = 1; quarter < 4; ++quarter)
        canvas.fill(0, height * quarter / 4, width, height * quarter / 4 + 1, pack(theme.grid));
    const auto slice = model.tiers().slice(view.from_us, view.to_us, static_cast<std::size_t>(width) * 2);
    const std::vector<Column> columns = columns_of(slice.buckets, view, width);
    const Bands bands(palette);
    const std::uint32_t line = pack(theme.outline);
    const std::uint32_t peak = pack(theme.text);
    const auto activations = static_cast<std::size_t>(Owner::activations);
    for (int x = 0; x < width; ++x) {
        const Column& column = columns[static_cast<std::size_t>(x)];
        if (!column.any) continue;
        u64 sum = 0;
        int below = height;
        int activations_floor = height;
        u64 activations_base = 0;
        for (const Owner owner : view::stack_order()) {
            const auto o = static_cast<std::size_t>(owner);
            if (o == activations) {
                activations_base = sum;
                activations_floor = below;
            }
            const u64 bytes = column.bucket.value[o].now;
            if (bytes == 0) continue;
            sum += bytes;
            const int top = std::clamp(row_of(sum, view, height), 0, height);
            for (int y = top; y < below; ++y) canvas.row(y)[x] = bands.at(o, x, y);
            if (top < below) canvas.row(top)[x] = line;
            below = std::min(below, top);
        }
        // A spike shorter than a sample: it took from the cache or from what was free.
        const u64 high = column.bucket.value[activations].high;
        const int spike_top =
            std::clamp(row_of(activations_base + high, view, height), 0, height);
        for (int y = spike_top; y < activations_floor; ++y)
            canvas.row(y)[x] = bands.at(activations, x, y);
        if (spike_top < activations_floor) canvas.row(spike_top)[x] = line;
        const int used = std::clamp(
            row_of(column.bucket.value[view::kDeviceUsed].high, view, height), 0, height - 1);
        if (used < std::min(below, spike_top)) canvas.row(used)[x] = peak;
    }
    // A failure is a full-height mark: two lines and a gap, not a colour alone.
    for (const view::FailureNote& failure : model.failures()) {
        if (failure.time_us < view.from_us || failure.time_us > view.to_us) continue;
        const int x = std::min(column_of(failure.time_us, view, width), width - 1);
        canvas.fill(x - 2 * palette.unit, 0, x + 3 * palette.unit, height, pack(theme.plot));
        canvas.fill(x - palette.unit, 0, x + palette.unit, height, pack(theme.text));
    }
    return slice.samples_per_bucket;
}

void paint_ghost_line(Canvas& canvas, const view::Model& model, const TimelineView& view,
                      const Palette& palette) {
    const int width = canvas.width(), height = canvas.height();
    const auto slice = model.tiers().slice(view.from_us, view.to_us, static_cast<std::size_t>(width) * 2);
    const std::vector<Column> columns = columns_of(slice.buckets, view, width);
    const Theme theme = palette.theme();
    int previous = -1;
    for (int x = 0; x < width; ++x) {
        const Column& column = columns[static_cast<std::size_t>(x)];
        if (!column.any) {
            previous = -1;
            continue;
        }
        const int y = std::clamp(
            row_of(column.bucket.value[view::kDeviceUsed].high, view, height), 0, height - 1);
        const int from = previous < 0 ? y : std::min(y, previous);
        const int to = previous < 0 ? y : std::max(y, previous);
        if (x / (6 * palette.unit) % 2 == 0 || from != to)
            canvas.fill(x, from, x + 1, to + palette.unit + 1, pack(theme.secondary));
        previous = y;
    }
}

const char* lane_name(Lane lane) {
    switch (lane) {
        case Lane::load: return "load";
        case Lane::kv: return "KV use";
        case Lane::preemptions: return "preempt";
        case Lane::events:
        case Lane::count_: break;
    }
    return "events";
}

void paint_lane(Canvas& canvas, int y0, int y1, Lane lane, const view::Model& model,
                const TimelineView& view, const Palette& palette) {
    const Theme theme = palette.theme();
    const int width = canvas.width(), height = y1 - y0;
    canvas.fill(0, y0, width, y1, pack(theme.plot));
    canvas.fill(0, y1 - 1, width, y1, pack(theme.grid));
    if (height < 3) return;
    if (lane == Lane::load || lane == Lane::kv) {
        const auto slice = model.tiers().slice(view.from_us, view.to_us, static_cast<std::size_t>(width) * 2);
        const std::vector<Column> columns = columns_of(slice.buckets, view, width);
        u64 most = 1;
        if (lane == Lane::load) {
            for (const Column& c : columns)
                if (c.any)
                    most = std::max(most, c.bucket.value[view::kRunning].high +
                                              c.bucket.value[view::kWaiting].high);
        } else {
            // A pool that grows on demand has no size of its own: the most that was used is the scale.
            most = std::max<u64>(1, model.kv_blocks_total());
            for (const Column& c : columns)
                if (c.any) most = std::max(most, c.bucket.value[view::kKvUsed].high);
        }
        for (int x = 0; x < width; ++x) {
            const Column& c = columns[static_cast<std::size_t>(x)];
            if (!c.any) continue;
            const auto rows = [&](u64 v) {
                return static_cast<int>(static_cast<double>(std::min(v, most)) /
                                        static_cast<double>(most) * (height - 2) + 0.5);
            };
            if (lane == Lane::kv) {
                const int high = rows(c.bucket.value[view::kKvUsed].high);
                canvas.fill(x, y1 - 1 - high, x + 1, y1 - 1, pack(palette.owner(Owner::kv)));
            } else {
                const u64 running = c.bucket.value[view::kRunning].high;
                const int solid = rows(running);
                const int all = rows(running + c.bucket.value[view::kWaiting].high);
                for (int y = y1 - 1 - all; y < y1 - 1 - solid; ++y)
                    if ((x + y) % (3 * palette.unit) == 0) canvas.set(x, y, pack(theme.secondary));
                canvas.fill(x, y1 - 1 - solid, x + 1, y1 - 1, pack(theme.secondary));
            }
        }
        return;
    }
    // Marks: how many events of the lane fall into a column, as height. Two searches a column, so
    // a million events cost what a thousand do.
    std::vector<u32> count(static_cast<std::size_t>(width));
    std::vector<bool> failed(static_cast<std::size_t>(width));
    const double step = static_cast<double>(view.to_us - view.from_us) / width;
    std::size_t before = until(model, lane, view.from_us - 1);
    for (int x = 0; x < width; ++x) {
        const i64 edge_us = view.from_us + static_cast<i64>(step * (x + 1));
        const std::size_t upto = until(model, lane, edge_us);
        count[static_cast<std::size_t>(x)] = static_cast<u32>(upto - std::min(before, upto));
        before = upto;
    }
    if (lane == Lane::events)
        for (const view::FailureNote& f : model.failures())
            if (f.time_us >= view.from_us && f.time_us <= view.to_us)
                failed[static_cast<std::size_t>(
                    std::clamp(column_of(f.time_us, view, width), 0, width - 1))] = true;
    u32 most = 1;
    for (const u32 n : count) most = std::max(most, n);
    for (int x = 0; x < width; ++x) {
        const u32 n = count[static_cast<std::size_t>(x)];
        if (n > 0) {
            const int rows = std::max(2, static_cast<int>(static_cast<u64>(n) * static_cast<u64>(height - 2) / most));
            const Rgb colour = lane == Lane::preemptions ? palette.see(kPurple) : theme.secondary;
            canvas.fill(x, y1 - 1 - rows, x + 1, y1 - 1, pack(colour));
        }
        if (failed[static_cast<std::size_t>(x)])
            canvas.fill(x - palette.unit, y0, x + palette.unit, y1, pack(palette.fail()));
    }
}

}  // namespace oomlab::paint
