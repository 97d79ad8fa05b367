// Paints the allocator's segments and blocks to scale, and the KV pool as a grid, and answers which
// block lies under a pixel.
//
// Bytes run from left to right and wrap into rows, as text does; segments stand by address with a
// gap between them. A pixel that holds many blocks is their mixture, so small holes show as a tint.
#pragma once

#include "ui/view_model/block_map.hpp"
#include "ui/window/paint/canvas.hpp"

namespace oomlab::paint {

struct MapView {
    u64 asked_bytes = 0;      // the last failed request: smaller holes are of no use to it
    bool split_only = false;  // leave out segments that are one block in use: no hole can be there
    double zoom = 1;          // 1: everything fits
    double scroll = 0;        // share of the rows that are above the canvas
    u32 highlight_request = trace::kNoRequest;
};

// Where things lie, for the pixel that was painted last.
class MapLayout {
  public:
    struct Hit {
        int segment = -1, block = -1;   // numbers in the map, -1: none
    };
    Hit hit(const view::BlockMap& map, int x, int y) const;
    u64 bytes_per_pixel() const { return bytes_per_pixel_; }
    int rows_total() const { return rows_total_; }
    int rows_shown() const { return rows_shown_; }
    u64 left_out_bytes() const { return left_out_bytes_; }

  private:
    friend MapLayout paint_block_map(Canvas&, const view::BlockMap&, const MapView&, const Palette&);
    int width_ = 0, row_height_ = 1, first_row_ = 0, rows_total_ = 0, rows_shown_ = 0;
    u64 bytes_per_pixel_ = 1, left_out_bytes_ = 0;
    std::vector<u64> first_pixel_;   // of each segment, in the unwrapped line; left out: none of its own
};
MapLayout paint_block_map(Canvas& canvas, const view::BlockMap& map, const MapView& view,
                          const Palette& palette);

struct KvLayout {
    int columns = 1, cell = 1;
    u32 blocks_per_cell = 1;
    std::vector<u32> first_block;   // of each owner in drawing order, then used, cached, free
    // The number of the block under a pixel, or blocks_total when none.
    u32 block_at(int x, int y) const;
};
// Which owner (index in map.owners) holds the n-th block as drawn; -1: cached, -2: free.
int kv_owner_of(const view::KvMap& map, const KvLayout& layout, u32 block);
KvLayout paint_kv_grid(Canvas& canvas, const view::KvMap& map, u32 highlight_request,
                       const Palette& palette);
// A request's colour, the same in every picture.
Rgb request_colour(u32 request, const Palette& palette);

}  // namespace oomlab::paint
