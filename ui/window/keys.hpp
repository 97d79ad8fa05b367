// Every key of the window in one table: what is pressed, what it does, and what the key card says.
// Keys do not go through ImGui, whose key numbers changed between versions; the platform and the
// tests hand them in as they are here.
#pragma once

#include <cstddef>
#include <span>

namespace oomlab::window {

// Letters are capitals, digits and punctuation are themselves; the rest has GLFW's numbers.
enum KeyCode : int {
    kKeyEscape = 256, kKeyEnter, kKeyTab, kKeyBackspace, kKeyInsert, kKeyDelete,
    kKeyRight, kKeyLeft, kKeyDown, kKeyUp, kKeyPageUp, kKeyPageDown, kKeyHome, kKeyEnd,
    kKeyF1 = 290, kKeyF11 = 300,
};

struct Key {
    int code = 0;
    bool ctrl = false, shift = false, alt = false;
    friend bool operator==(const Key&, const Key&) = default;
};

enum class Command {
    none,
    zoom_in, zoom_out, pan_left, pan_right, fit, previous_event, next_event,
    previous_of_request, next_of_request, previous_map, next_map, mark_range, follow, last_oom, clear,
    save_view, recall_view, find, stretch,
    run, hint, next, list, check, reset, edit, ask,
    pause, step, slower, faster,
    map_mode, map_split, patterns, theme, vision, text_bigger, text_smaller, text_reset,
    focus_panel, list_up, list_down, page_up, page_down, list_home, list_end,
    present, reset_layout, copy, key_card, quit,
};

struct Binding {
    Key key;
    Command command;
    int argument;        // digit of a saved view, number of a panel
    const char* keys;    // on the card; null: another binding of the same command says it
    const char* help;
    const char* group;
};
std::span<const Binding> bindings();
// Null when the key does nothing. With `typing` only keys that write no text are looked at.
const Binding* binding_of(Key key, bool typing);

}  // namespace oomlab::window
