#include "ui/window/keys.hpp"

namespace oomlab::window {
namespace {

constexpr Key plain(int code) { return {code, false, false, false}; }
constexpr Key shift(int code) { return {code, false, true, false}; }
constexpr Key ctrl(int code) { return {code, true, false, false}; }
constexpr Key alt(int code) { return {code, false, false, true}; }

constexpr const char* kTime = "Time";
constexpr const char* kCourse = "Course";
constexpr const char* kRun = "Run";
constexpr const char* kLook = "Look";
constexpr const char* kWindow = "Window";

constexpr Binding kBindings[] = {
    {plain('W'), Command::zoom_in, 0, "W  S", "zoom in, out", kTime},
    {plain('S'), Command::zoom_out, 0, nullptr, "", kTime},
    {plain('A'), Command::pan_left, 0, "A  D  Left Right", "earlier, later", kTime},
    {plain('D'), Command::pan_right, 0, nullptr, "", kTime},
    {plain(kKeyLeft), Command::pan_left, 0, nullptr, "", kTime},
    {plain(kKeyRight), Command::pan_right, 0, nullptr, "", kTime},
    {plain('F'), Command::fit, 0, "F", "fit the selection; again: everything", kTime},
    {plain(' '), Command::follow, 0, "Space", "freeze, follow the newest", kTime},
    {plain(','), Command::previous_event, 0, ",  .", "event before, after: rewinds the map", kTime},
    {plain('.'), Command::next_event, 0, nullptr, "", kTime},
    {plain('['), Command::previous_of_request, 0, "[  ]", "the same for one request", kTime},
    {plain(']'), Command::next_of_request, 0, nullptr, "", kTime},
    {plain('-'), Command::previous_map, 0, "-  =", "map before, after", kTime},
    {plain('='), Command::next_map, 0, nullptr, "", kTime},
    {plain('G'), Command::last_oom, 0, "G", "go to the last failure", kTime},
    {plain('Z'), Command::stretch, 0, "Z", "stretch: only what moves", kTime},
    {plain('M'), Command::mark_range, 0, "M", "selection to what is in view", kTime},
    {plain(kKeyEscape), Command::clear, 0, "Esc", "clear, unpin, leave a text box", kTime},
    {plain('R'), Command::run, 0, "R", "run", kCourse},
    {plain('H'), Command::hint, 0, "H", "hint", kCourse},
    {plain('N'), Command::next, 0, "N", "next", kCourse},
    {plain('L'), Command::list, 0, "L", "list of exercises", kCourse},
    {plain('C'), Command::check, 0, "C", "check", kCourse},
    {plain('X'), Command::reset, 0, "X", "reset the exercise (asks first)", kCourse},
    {plain('E'), Command::edit, 0, "E", "write: prediction, answer, runbook", kCourse},
    {plain('I'), Command::ask, 0, "I", "interview question", kCourse},
    {plain('B'), Command::pause, 0, "B", "pause, continue the server", kRun},
    {plain('J'), Command::step, 0, "J", "one step of the server", kRun},
    {shift(','), Command::slower, 0, "<  >", "slower, faster", kRun},
    {shift('.'), Command::faster, 0, nullptr, "", kRun},
    {plain('T'), Command::map_mode, 0, "T", "blocks, KV grid, figures", kLook},
    {plain('Y'), Command::map_split, 0, "Y", "map: only segments with holes", kLook},
    {plain('P'), Command::patterns, 0, "P", "patterns on, off", kLook},
    {plain('K'), Command::theme, 0, "K", "theme: dark, light, high contrast", kLook},
    {plain('V'), Command::vision, 0, "V", "view as: colour-vision types", kLook},
    {ctrl('='), Command::text_bigger, 0, "Ctrl =  Ctrl -", "text bigger, smaller", kLook},
    {ctrl('-'), Command::text_smaller, 0, nullptr, "", kLook},
    {ctrl(kKeyBackspace), Command::text_reset, 0, "Ctrl Backspace", "text at 100%", kLook},
    {plain(kKeyUp), Command::list_up, 0, "Up Down", "in the panel with the focus", kWindow},
    {plain(kKeyDown), Command::list_down, 0, nullptr, "", kWindow},
    {plain(kKeyPageUp), Command::page_up, 0, nullptr, "", kWindow},
    {plain(kKeyPageDown), Command::page_down, 0, nullptr, "", kWindow},
    {plain(kKeyHome), Command::list_home, 0, nullptr, "", kWindow},
    {plain(kKeyEnd), Command::list_end, 0, nullptr, "", kWindow},
    {alt('1'), Command::focus_panel, 1, "Alt 1..6", "focus a panel", kWindow},
    {alt('2'), Command::focus_panel, 2, nullptr, "", kWindow},
    {alt('3'), Command::focus_panel, 3, nullptr, "", kWindow},
    {alt('4'), Command::focus_panel, 4, nullptr, "", kWindow},
    {alt('5'), Command::focus_panel, 5, nullptr, "", kWindow},
    {alt('6'), Command::focus_panel, 6, nullptr, "", kWindow},
    {ctrl('P'), Command::find, 0, "Ctrl P  /", "filter the events", kWindow},
    {plain('/'), Command::find, 0, nullptr, "", kWindow},
    {ctrl('1'), Command::save_view, 1, "Ctrl 1..4", "save what is in view", kWindow},
    {ctrl('2'), Command::save_view, 2, nullptr, "", kWindow},
    {ctrl('3'), Command::save_view, 3, nullptr, "", kWindow},
    {ctrl('4'), Command::save_view, 4, nullptr, "", kWindow},
    {plain('1'), Command::recall_view, 1, "1..4", "back to a saved view", kWindow},
    {plain('2'), Command::recall_view, 2, nullptr, "", kWindow},
    {plain('3'), Command::recall_view, 3, nullptr, "", kWindow},
    {plain('4'), Command::recall_view, 4, nullptr, "", kWindow},
    {plain(kKeyF11), Command::present, 0, "F11", "present: for a projector", kWindow},
    {ctrl('L'), Command::reset_layout, 0, "Ctrl L", "layout as it was at first", kWindow},
    {{'C', true, true, false}, Command::copy, 0, "Ctrl Shift C", "copy the numbers", kWindow},
    {shift('/'), Command::key_card, 0, "?", "this card", kWindow},
    {plain(kKeyF1), Command::key_card, 0, nullptr, "", kWindow},
    {ctrl('Q'), Command::quit, 0, "Ctrl Q", "quit", kWindow},
};

}  // namespace

std::span<const Binding> bindings() { return kBindings; }

const Binding* binding_of(Key key, bool typing) {
    const bool writes = !key.ctrl && !key.alt && key.code < kKeyEscape;
    const bool moves = !key.ctrl && !key.alt && key.code > kKeyEscape && key.code < kKeyF1;
    if (typing && (writes || moves)) return nullptr;
    for (const Binding& b : kBindings)
        if (b.key == key) return &b;
    return nullptr;
}

}  // namespace oomlab::window
