// What a person is looking at: the range of time, the moment, the selection. No ImGui: every key and
// every drag is one of these functions, so that a test can press them.
#pragma once

#include <array>
#include <optional>

#include "ui/view_model/model.hpp"

namespace oomlab::window {

struct TimeRange {
    i64 from_us = 0, to_us = 0;
    i64 length() const { return to_us - from_us; }
    friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

enum class MapMode { blocks, kv_grid, figures, count_ };

class ViewState {
  public:
    static constexpr i64 kShortestUs = 1'000;

    // Called once a frame before drawing: follows the newest, keeps everything within the run.
    void update(const view::Model& model);

    const TimeRange& range() const { return range_; }
    // The moment that status, map and explanation speak of.
    i64 moment_us(const view::Model& model) const;
    bool at_end() const { return !cursor_; }
    bool following() const { return following_; }
    void set_following(bool on);

    void zoom(double factor, double at_share);   // below 1: closer; `at_share` of the range stays put
    void pan(double share);
    void show(TimeRange range);
    void fit(const view::Model& model);          // selection, then everything

    void put_cursor(i64 time_us);
    void select(TimeRange range) { selection_ = range; }
    const std::optional<TimeRange>& selection() const { return selection_; }
    void clear();

    // Steps through events that the filter lets through; `only` restricts to one request.
    void step_event(const view::Model& model, int direction, bool of_request);
    void select_event(const view::Model& model, std::size_t event);
    void step_map(const view::Model& model, int direction);
    void go_to_last_failure(const view::Model& model);
    std::optional<std::size_t> event() const { return event_; }
    u32 request() const { return request_; }
    void pin_request(u32 request) { request_ = request; }

    void save(int slot) { saved_[static_cast<std::size_t>(slot) % saved_.size()] = range_; }
    void recall(int slot);

    MapMode map_mode = MapMode::blocks;
    double map_zoom = 1, map_scroll = 0;
    bool map_split_only = false;
    bool stretched = false;   // the timeline begins at the lowest use in view, not at 0
    view::EventFilter filter;

  private:
    void reveal(i64 time_us);

    TimeRange range_{0, 10'000'000};
    bool following_ = true, fitted_ = true, first_ = true;
    std::optional<i64> cursor_;
    std::optional<TimeRange> selection_;
    std::optional<std::size_t> event_;
    u32 request_ = trace::kNoRequest;
    std::array<std::optional<TimeRange>, 10> saved_;
};

}  // namespace oomlab::window
