#include "ui/window/view_state.hpp"

#include <algorithm>

namespace oomlab::window {

void ViewState::update(const view::Model& model) {
    const i64 first = model.first_us(), last = std::max(model.last_us(), first + kShortestUs);
    if (fitted_ && following_) {
        // A little room to the right, so that the newest is not at the very edge.
        range_ = {first, last + std::max<i64>((last - first) / 50, 1)};
    } else if (following_) {
        const i64 length = range_.length();
        range_ = {last + length / 50 - length, last + length / 50};
    }
    if (event_ && *event_ >= model.events().size()) event_.reset();
}

i64 ViewState::moment_us(const view::Model& model) const { return cursor_ ? *cursor_ : model.last_us(); }

void ViewState::set_following(bool on) {
    following_ = on;
    if (on) {
        cursor_.reset();
        event_.reset();
    }
}

void ViewState::zoom(double factor, double at_share) {
    at_share = std::clamp(at_share, 0.0, 1.0);
    const double length = static_cast<double>(range_.length());
    const double anchor = static_cast<double>(range_.from_us) + length * at_share;
    const double longest = 3.2e16;   // a thousand years
    const double wanted = std::clamp(length * factor, static_cast<double>(kShortestUs), longest);
    range_.from_us = static_cast<i64>(anchor - wanted * at_share);
    range_.to_us = range_.from_us + static_cast<i64>(wanted);
    fitted_ = false;
    if (following_ && at_share < 0.9) following_ = false;
}

void ViewState::pan(double share) {
    const i64 by = static_cast<i64>(static_cast<double>(range_.length()) * share);
    range_.from_us += by;
    range_.to_us += by;
    following_ = fitted_ = false;
}

void ViewState::show(TimeRange range) {
    if (range.to_us - range.from_us < kShortestUs) range.to_us = range.from_us + kShortestUs;
    range_ = range;
    following_ = fitted_ = false;
}

void ViewState::fit(const view::Model& model) {
    if (selection_ && range_ != *selection_) {
        show(*selection_);
        return;
    }
    show({model.first_us(), model.last_us() + std::max<i64>((model.last_us() - model.first_us()) / 50, 1)});
    fitted_ = true;
    following_ = !cursor_;
}

void ViewState::put_cursor(i64 time_us) {
    cursor_ = time_us;
    following_ = false;
    event_.reset();
}

void ViewState::clear() {
    if (selection_) selection_.reset();
    else if (request_ != trace::kNoRequest) request_ = trace::kNoRequest;
    else set_following(true);
}

void ViewState::reveal(i64 time_us) {
    if (time_us >= range_.from_us && time_us <= range_.to_us) return;
    const i64 length = range_.length();
    show({time_us - length / 2, time_us - length / 2 + length});
}

void ViewState::select_event(const view::Model& model, std::size_t event) {
    if (event >= model.events().size()) return;
    const view::Event& e = model.events()[event];
    put_cursor(e.time_us);
    event_ = event;
    if (e.request != trace::kNoRequest) request_ = e.request;
    reveal(e.time_us);
}

void ViewState::step_event(const view::Model& model, int direction, bool of_request) {
    const auto& events = model.events();
    if (events.empty()) return;
    const auto size = static_cast<std::ptrdiff_t>(events.size());
    std::ptrdiff_t at = event_ ? static_cast<std::ptrdiff_t>(*event_)
                               : static_cast<std::ptrdiff_t>(model.events_until(moment_us(model))) -
                                     (direction > 0 ? 1 : 0);
    for (at += direction; at >= 0 && at < size; at += direction) {
        const view::Event& e = events[static_cast<std::size_t>(at)];
        if (of_request && request_ != trace::kNoRequest && e.request != request_) continue;
        if (of_request && e.request == trace::kNoRequest) continue;
        if (!filter.matches(e)) continue;
        select_event(model, static_cast<std::size_t>(at));
        return;
    }
}

void ViewState::step_map(const view::Model& model, int direction) {
    const auto& frames = map_mode == MapMode::kv_grid ? model.kv_maps() : model.block_maps();
    if (frames.empty()) return;
    const view::MapFrame* now = view::Model::nearest(frames, moment_us(model));
    const std::ptrdiff_t at = std::clamp<std::ptrdiff_t>(
        now - frames.data() + direction, 0, static_cast<std::ptrdiff_t>(frames.size()) - 1);
    put_cursor(frames[static_cast<std::size_t>(at)].time_us);
    reveal(*cursor_);
}

void ViewState::go_to_last_failure(const view::Model& model) {
    if (model.failures().empty()) return;
    const view::FailureNote& last = model.failures().back();
    if (last.event < model.events().size()) select_event(model, last.event);
    else put_cursor(last.time_us);
}

void ViewState::recall(int slot) {
    if (const auto& range = saved_[static_cast<std::size_t>(slot) % saved_.size()]) show(*range);
}

}  // namespace oomlab::window
