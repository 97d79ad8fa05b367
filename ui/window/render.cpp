#include "ui/window/render.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "ui/window/app.hpp"
#include "ui/window/platform/offscreen.hpp"

namespace oomlab::window {
namespace {

Result<void> go_to(ViewState& state, const view::Model& model, const std::string& at) {
    const auto number = [&](std::string_view text, double& value) {
        const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
        return ec == std::errc() && value >= 0 && (end == text.data() + text.size() || std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)) == "s");
    };
    double value = 0;
    if (at.empty() || at == "end") return {};
    if (at == "failure") {
        if (model.failures().empty()) return fail(Error::usage("--at failure: this trace holds no failure"));
        state.go_to_last_failure(model);
    } else if (at.starts_with("event:") && number(at.substr(6), value)) {
        if (value >= static_cast<double>(model.events().size()))
            return fail(Error::usage(fmt::format("--at {}: the trace has {} events", at, model.events().size())));
        state.select_event(model, static_cast<std::size_t>(value));
    } else if (at.starts_with("request:") && number(at.substr(8), value)) {
        state.pin_request(static_cast<u32>(value));
        for (std::size_t i = model.events().size(); i-- > 0;) {
            if (model.events()[i].request != static_cast<u32>(value)) continue;
            state.select_event(model, i);
            return {};
        }
        return fail(Error::usage(fmt::format("--at {}: no event of that request", at)));
    } else if (number(at, value)) {
        state.put_cursor(static_cast<i64>(value * 1e6));
    } else {
        return fail(Error::usage(fmt::format("--at {}: takes end, failure, a time such as 12.5s, event:N or request:N", at)));
    }
    return {};
}

}  // namespace

Result<PanelId> parse_panel(const std::string& name) {
    std::string known;
    for (int i = 2; i < static_cast<int>(PanelId::count_); ++i) {
        const auto id = static_cast<PanelId>(i);
        if (name == App::panel_name(id)) return id;
        known += std::string(known.empty() ? "" : ", ") + App::panel_name(id);
    }
    return fail(Error::usage(fmt::format("--panel {}: the panels are {}", name, known)));
}

Result<void> render_png(const RenderOptions& o) {
    OOMLAB_TRY(path, view::find_trace(o.trace));
    OOMLAB_TRY(trace, view::LiveTrace::open(path));
    OOMLAB_TRY(screen, Offscreen::create(o.settings.width, o.settings.height));
    App app(screen->textures(), o.settings);
    app.open(std::move(trace));
    if (!o.before.empty()) {
        OOMLAB_TRY(before_path, view::find_trace(o.before));
        OOMLAB_TRY(before, view::LiveTrace::open(before_path));
        app.set_before(std::move(before));
    }
    if (!o.prediction.empty()) {
        OOMLAB_TRY(prediction, view::load_prediction(o.prediction));
        app.set_prediction(std::move(prediction));
    }
    app.state().map_mode = o.map_mode;
    const view::Model& m = app.model();
    app.state().fit(m);   // a moment is shown within the whole run
    OOMLAB_TRY_VOID(go_to(app.state(), m, o.at));
    if (!o.panels.empty()) {
        const i64 moment = app.state().moment_us(m);
        app.show_only(o.panels, fmt::format("{}{}, {}, at {} of {}", m.facts().device_name.empty() ? "unknown device" : m.facts().device_name,
                                            m.facts().simulated ? " (simulated)" : "", std::filesystem::path(path).filename().string(),
                                            clock_text(moment), clock_text(m.last_us())));
    }
    for (int i = 0; i < 4; ++i) screen->frame(app);   // layout settles in two, texts in one more
    return write_png(o.png, screen->width(), screen->height(), screen->pixels());
}

}  // namespace oomlab::window
