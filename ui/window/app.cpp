#include "ui/window/app.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace oomlab::window {

App::App(TextureHost& textures, const Settings& settings) : textures_(textures), settings_(settings) {}

void App::open(std::unique_ptr<view::LiveTrace> trace) {
    before_ = std::move(trace_);
    trace_ = std::move(trace);
    state_ = ViewState();
    timeline_ = TimelinePanel();
    map_ = MapPanel();
    events_ = EventsPanel();
    summary_key_ = ~0ull;
    ++changes_;
    frames_wanted_ = 3;
}

void App::show_only(std::vector<PanelId> panels, std::string caption) {
    only_ = std::move(panels);
    caption_ = std::move(caption);
}

bool App::poll(double now_s) {
    bool changed = link_ != nullptr && link_->poll(now_s);
    if (link_ != nullptr && (!trace_ || trace_->path() != link_->path()))
        if (auto trace = view::LiveTrace::open(link_->path())) open(std::move(*trace));
    if (!folder_.empty() && now_s - looked_s_ >= 1) {
        looked_s_ = now_s;
        const auto found = view::find_trace(folder_);
        if (found && (!trace_ || trace_->path() != *found))
            if (auto trace = view::LiveTrace::open(*found)) {
                open(std::move(*trace));
                changed = true;
            }
    }
    if (trace_) {
        const u64 reopened = trace_->times_reopened();
        if (trace_->poll()) changed = true;
        if (trace_->times_reopened() != reopened) {   // what pointed into the old file
            map_ = MapPanel();
            events_ = EventsPanel();
            summary_key_ = ~0ull;
            ++changes_;
        }
    }
    if (control_ != nullptr && control_->poll()) changed = true;
    if (course_ != nullptr && course_->poll()) changed = true;
    if (course_ != nullptr) {
        const CoursePage& page = course_->page();
        if (page.trace_path != course_trace_) {
            course_trace_ = page.trace_path;
            if (!course_trace_.empty())
                if (auto trace = view::LiveTrace::open(course_trace_)) open(std::move(*trace));
        }
        const std::string locked = page.prediction_locked ? page.prediction_path : "";
        if (locked != prediction_path_) {
            prediction_path_ = locked;
            auto prediction = locked.empty() ? Result<view::Prediction>(view::Prediction())
                                             : view::load_prediction(locked);
            if (prediction) set_prediction(std::move(*prediction));
        }
    }
    if (changed) frames_wanted_ = std::max(frames_wanted_, 1);
    return changed;
}

bool App::rebuild_fonts() {
    if (!fonts_dirty_) return false;
    fonts_dirty_ = false;
    const int percent = present_ ? std::max(settings_.text_percent, 200) : settings_.text_percent;
    kit_.fonts = build_fonts(percent);
    kit_.em = kit_.fonts.body_px;
    kit_.palette.unit = std::max(1, (percent + 50) / 100);
    ++changes_;
    return true;
}

LinkState App::link_state() const {
    LinkState link;
    if (!trace_) {
        link.text = "nothing is open";
        return link;
    }
    link.live = link.coming = !trace_->finished();
    link.text = link_ != nullptr ? link_->text() : link.live ? "live" : "finished";
    if (link_ != nullptr) link.problem = link_->problem();
    if (link.problem.empty()) link.problem = trace_->damage();
    if (link.problem.empty() && trace_->dropped() > 0)
        link.problem = fmt::format("{} samples and maps did not fit the trace; events are complete", trace_->dropped());
    return link;
}

void App::prepare() {
    kit_.palette.name = settings_.theme;
    kit_.palette.vision = settings_.vision;
    kit_.palette.patterns = settings_.patterns;
    kit_.theme = kit_.palette.theme();
    kit_.apply_style();
    state_.update(model());
    const i64 moment = state_.moment_us(model());
    const u64 key = model().revision() * 0x9e3779b97f4a7c15ull ^ static_cast<u64>(moment) ^ changes_ << 48;
    if (key != summary_key_) {
        summary_key_ = key;
        view::summarise(model(), moment, summary_);
    }
}

const char* App::panel_name(PanelId id) {
    switch (id) {
        case PanelId::course: return "course";
        case PanelId::budget: return "budget";
        case PanelId::timeline: return "timeline";
        case PanelId::map: return "map";
        case PanelId::why: return "why";
        case PanelId::events: return "events";
        case PanelId::none:
        case PanelId::count_: break;
    }
    return "none";
}

void App::key(Key key, bool typing) {
    frames_wanted_ = std::max(frames_wanted_, 2);
    if (key_card_) {
        key_card_ = false;
        return;
    }
    if (const Binding* b = binding_of(key, typing)) obey(b->command, b->argument);
}

std::string App::numbers() const {
    const view::Summary& s = summary_;
    std::string text = fmt::format("{}{}, {}, at {} ({})\n", model().facts().device_name,
                                   model().facts().simulated ? " (simulated)" : "", view::health_word(s.health),
                                   clock_text(s.moment_us), trace::phase_name(model().phase_at(s.moment_us)));
    if (s.figures) {
        text += fmt::format("used {} of {}, headroom {}\n", exact_bytes(s.figures->used_bytes),
                            exact_bytes(s.figures->total_bytes), exact_bytes(s.figures->headroom_bytes()));
        for (const Owner o : view::stack_order())
            if (const u64 held = s.figures->owner_bytes[static_cast<std::size_t>(o)]; held > 0)
                text += fmt::format("  {:<16} {}\n", owner_name(o), exact_bytes(held));
    }
    if (s.failure != nullptr) text += s.why.headline + "\n";
    if (s.diagnosis.type != 0) text += fmt::format("type {}: {}\n", s.diagnosis.type, s.diagnosis.summary);
    if (trace_)
        text += fmt::format("picture: oomlab render {} --png picture.png --at {:.6f}s\n", trace_->path(),
                            static_cast<double>(s.moment_us) / 1e6);
    return text;
}

void App::obey(Command command, int argument) {
    const view::Model& m = model();
    const auto next = [](auto value) {
        const int count = static_cast<int>(decltype(value)::count_);
        return static_cast<decltype(value)>((static_cast<int>(value) + 1) % count);
    };
    switch (command) {
        case Command::none: return;
        case Command::zoom_in: state_.zoom(0.7, state_.following() ? 0.98 : 0.5); return;
        case Command::zoom_out: state_.zoom(1 / 0.7, state_.following() ? 0.98 : 0.5); return;
        case Command::pan_left: state_.pan(-0.15); return;
        case Command::pan_right: state_.pan(0.15); return;
        case Command::fit: state_.fit(m); return;
        case Command::follow: state_.set_following(!state_.following()); return;
        case Command::previous_event: state_.step_event(m, -1, false); return;
        case Command::next_event: state_.step_event(m, 1, false); return;
        case Command::previous_of_request: state_.step_event(m, -1, true); return;
        case Command::next_of_request: state_.step_event(m, 1, true); return;
        case Command::previous_map: state_.step_map(m, -1); return;
        case Command::next_map: state_.step_map(m, 1); return;
        case Command::mark_range: state_.select(state_.range()); return;
        case Command::last_oom: state_.go_to_last_failure(m); return;
        case Command::clear: state_.clear(); return;
        case Command::save_view: state_.save(argument); return;
        case Command::recall_view: state_.recall(argument); return;
        case Command::find:
            events_.focus_filter = true;
            tab_ = focus_ = PanelId::events;
            return;
        case Command::map_mode: state_.map_mode = next(state_.map_mode); return;
        case Command::stretch: state_.stretched = !state_.stretched; return;
        case Command::map_split: state_.map_split_only = !state_.map_split_only; return;
        case Command::patterns: settings_.patterns = !settings_.patterns; break;
        case Command::theme: settings_.theme = next(settings_.theme); break;
        case Command::vision: settings_.vision = next(settings_.vision); break;
        case Command::text_bigger: settings_.text_by(1); fonts_dirty_ = true; break;
        case Command::text_smaller: settings_.text_by(-1); fonts_dirty_ = true; break;
        case Command::text_reset: settings_.text_percent = 100; fonts_dirty_ = true; break;
        case Command::present: present_ = !present_; fonts_dirty_ = true; break;
        case Command::reset_layout: {
            const Settings fresh;
            settings_.left_permille = fresh.left_permille;
            settings_.right_permille = fresh.right_permille;
            settings_.middle_permille = fresh.middle_permille;
            present_ = false;
            fonts_dirty_ = true;
            break;
        }
        case Command::focus_panel:
            focus_ = tab_ = static_cast<PanelId>(argument);
            return;
        case Command::copy: ImGui::SetClipboardText(numbers().c_str()); return;
        case Command::key_card: key_card_ = true; return;
        case Command::quit: quit_ = true; return;
        case Command::list_up:
        case Command::list_down:
        case Command::page_up:
        case Command::page_down:
        case Command::list_home:
        case Command::list_end: obey_list(command); return;
        default: obey_run(command); return;
    }
    ++changes_;
}

void App::obey_list(Command command) {
    const int direction = command == Command::list_up || command == Command::page_up ? -1 : 1;
    const bool line = command == Command::list_up || command == Command::list_down;
    if (focus_ == PanelId::map && state_.map_mode == MapMode::blocks) {
        state_.map_scroll = std::clamp(state_.map_scroll + direction * (line ? 0.02 : 0.2), 0.0, 1.0);
    } else if (focus_ == PanelId::timeline && line) {
        state_.zoom(direction < 0 ? 0.7 : 1 / 0.7, state_.following() ? 0.98 : 0.5);
    } else if (line) {
        state_.step_event(model(), direction, false);
    } else {
        scroll_events(events_, command);
    }
}

void App::obey_run(Command command) {
    if (control_ != nullptr && control_->state().attached) {
        switch (command) {
            case Command::pause:
                control_->act(control_->state().paused ? ControlVerb::go : ControlVerb::pause);
                return;
            case Command::step: control_->act(ControlVerb::step); return;
            case Command::slower: control_->act(ControlVerb::slower); return;
            case Command::faster: control_->act(ControlVerb::faster); return;
            default: break;
        }
    }
    if (course_ == nullptr) return;
    const CoursePage& page = course_->page();
    const bool idle = page.busy.empty();
    switch (command) {
        case Command::run:
            if (idle && (!page.wants_prediction || page.prediction_locked)) course_->act(CourseVerb::run, "");
            return;
        case Command::check:
            if (idle) course_->act(CourseVerb::check, "");
            return;
        case Command::hint:
            if (idle) course_->act(CourseVerb::hint, "");
            return;
        case Command::next:
            if (idle) course_->act(CourseVerb::next, "");
            return;
        case Command::list: course_panel_.show_list = !course_panel_.show_list; break;
        case Command::reset: course_panel_.ask_reset = idle; break;
        case Command::edit: course_panel_.focus_text = true; break;
        case Command::ask:
            course_panel_.tab = CoursePanel::Tab::interview;
            course_->act(CourseVerb::ask, "");
            break;
        default: return;
    }
    tab_ = focus_ = PanelId::course;
}

}  // namespace oomlab::window
