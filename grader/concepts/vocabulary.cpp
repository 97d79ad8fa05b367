#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "grader/concepts/matcher.hpp"

namespace oomlab::grader {
namespace {

std::string_view trim(std::string_view s) {
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front())) != 0) s.remove_prefix(1);
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back())) != 0) s.remove_suffix(1);
    return s;
}

// A filler group such as "(is |are )*" may repeat this often.
constexpr int kMaxRepeats = 3;

const std::unordered_set<std::string>& articles() {
    static const std::unordered_set<std::string> set = {"the", "a",   "an",   "its",   "our",   "my",   "their", "your",
                                                        "this", "that", "these", "those", "some", "very", "just", "really", "quite",
                                                        "extremely", "truly", "highly", "rather", "significant", "important", "crucial", "overall", "entire",
                                                        "actual", "own", "current", "particular", "specific", "respective", "certain", "so-called"};
    return set;
}

}  // namespace

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known) {
    for (int limit = 1; limit <= 3; ++limit)
        for (const std::string& k : known)
            if (within_edits(wrong, k, limit)) return k;
    for (const std::string& k : known)
        if (wrong.size() >= 4 && (k.find(wrong) != std::string::npos || wrong.find(k) != std::string_view::npos)) return k;
    return {};
}

Result<void> Vocabulary::define(std::string_view name, const std::vector<std::string>& terms) {
    OOMLAB_CHECK(!finished_);
    if (names_.find(name) != names_.end()) return fail(Error::parse(fmt::format("set '{}' is defined twice", name)));
    const auto id = static_cast<u32>(refers_.size());
    names_.emplace(std::string(name), id);
    refers_.emplace_back();
    sequences_of_.emplace_back();
    for (const std::string& t : terms) OOMLAB_TRY_VOID(add_term(id, t));
    return {};
}

Result<void> Vocabulary::add_term(u32 set, std::string_view term) {
    term = trim(term);
    if (!term.empty() && term[0] == '@') {
        refers_[set].emplace_back(term.substr(1));
        return {};
    }
    const auto [it, fresh] = sequence_ids_.emplace(std::string(term), static_cast<u32>(sequences_.size()));
    if (fresh) {
        OOMLAB_TRY(nodes, parse_term(term));
        sequences_.push_back({std::move(nodes), {}});
    }
    sequences_of_[set].push_back(it->second);
    return {};
}

Result<std::vector<Vocabulary::Node>> Vocabulary::parse_term(std::string_view term) {
    const auto words = [](std::string_view part, bool prefix) {
        std::vector<Slot> out;
        std::size_t at = 0;
        while (at < part.size()) {
            const std::size_t space = std::min(part.find(' ', at), part.size());
            const std::string_view w = part.substr(at, space - at);
            at = space + 1;
            if (w.size() > 3 && w.back() == '*') {
                out.push_back({true, std::string(w.substr(0, w.size() - 1))});
                continue;
            }
            // The same tokenizer as for answers, so that both sides agree about "out-of-memory".
            for (const Token& t : prepare_text(w).tokens) out.push_back({false, t.stem});
        }
        if (prefix && !out.empty() && out.back().text.size() >= 3) out.back().prefix = true;
        return out;
    };
    std::vector<Node> nodes;
    std::size_t at = 0;
    while (at < term.size()) {
        if (term[at] == ' ') {
            ++at;
            continue;
        }
        if (term[at] != '(') {
            const std::size_t end = std::min(term.find_first_of(" (", at), term.size());
            const std::string_view word = term.substr(at, end - at);
            at = end;
            Node node;
            if (word == "_")
                node.times = Node::Times::gap;
            else
                node.choices.push_back(words(word, false));
            if (word != "_" && node.choices[0].empty()) continue;
            nodes.push_back(std::move(node));
            continue;
        }
        const std::size_t close = term.find(')', at);
        if (close == std::string_view::npos) return fail(Error::parse(fmt::format("term '{}': '(' is not closed", term)));
        const std::string_view inside = term.substr(at + 1, close - at - 1);
        at = close + 1;
        const char mark = at < term.size() ? term[at] : ' ';
        if (mark == '?' || mark == '*' || mark == 's') ++at;
        const std::size_t first_end = std::min(inside.find('|'), inside.size());
        const bool filler = first_end > 0 && inside[first_end - 1] == ' ';
        Node node;
        if (mark == '?') node.times = Node::Times::optional;
        if (mark == '*' && filler) node.times = Node::Times::any;
        std::size_t from = 0;
        while (from <= inside.size()) {
            const std::size_t bar = std::min(inside.find('|', from), inside.size());
            auto choice = words(trim(inside.substr(from, bar - from)), mark == '*' && !filler);
            if (choice.empty())
                node.times = node.times == Node::Times::once ? Node::Times::optional : node.times;
            else
                node.choices.push_back(std::move(choice));
            from = bar + 1;
        }
        if (!node.choices.empty()) nodes.push_back(std::move(node));
    }
    if (nodes.empty() || nodes.front().times == Node::Times::gap || nodes.back().times == Node::Times::gap)
        return fail(Error::parse(fmt::format("term '{}' is empty or begins or ends with a gap", term)));
    return nodes;
}

Result<u32> Vocabulary::intern(std::string_view expression) {
    expression = trim(expression);
    const std::string name = "#" + std::string(expression);
    if (const auto it = names_.find(name); it != names_.end()) return it->second;
    std::vector<std::string> terms;
    std::size_t at = 0;
    int depth = 0;
    std::string current;
    for (; at < expression.size(); ++at) {
        const char c = expression[at];
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == '|' && depth == 0) {
            terms.push_back(std::move(current));
            current.clear();
        } else {
            current += c;
        }
    }
    terms.push_back(std::move(current));
    OOMLAB_TRY_VOID(define(name, terms));
    return names_.find(name)->second;
}

Result<void> Vocabulary::finish() {
    const auto n = static_cast<u32>(refers_.size());
    std::vector<std::string> known = set_names();
    std::vector<std::vector<u32>> links(n);
    for (const auto& [name, id] : names_) {
        for (const std::string& r : refers_[id]) {
            const auto it = names_.find(r);
            if (it == names_.end()) {
                const std::string near = nearest_name(r, known);
                return fail(Error::parse(fmt::format("'{}' names the unknown set '@{}'{}", name, r,
                                                     near.empty() ? "" : " (nearest: @" + near + ")")));
            }
            links[id].push_back(it->second);
        }
    }
    std::vector<std::set<u32>> sets_of_sequence(sequences_.size());
    for (u32 id = 0; id < n; ++id) {
        std::set<u32> seen = {id};
        std::vector<u32> todo = {id};
        while (!todo.empty()) {
            const u32 s = todo.back();
            todo.pop_back();
            for (const u32 q : sequences_of_[s]) sets_of_sequence[q].insert(id);
            for (const u32 l : links[s])
                if (seen.insert(l).second) todo.push_back(l);
        }
    }
    std::unordered_set<std::string> spelled;
    for (u32 q = 0; q < sequences_.size(); ++q) {
        sequences_[q].sets.assign(sets_of_sequence[q].begin(), sets_of_sequence[q].end());
        std::unordered_set<std::string> indexed;
        bool leads = true;
        for (const Node& node : sequences_[q].nodes) {
            for (const auto& choice : node.choices) {
                const Slot& slot = choice.front();
                const std::string key = slot.prefix ? slot.text.substr(0, 3) : slot.text;
                if (leads && indexed.insert((slot.prefix ? "*" : "=") + key).second) (slot.prefix ? by_prefix_ : by_stem_)[key].push_back(q);
                for (const Slot& w : choice) {
                    if (w.text.find_first_of("._0123456789-=><") != std::string::npos) continue;
                    known_.insert(w.text);
                    if (w.text.size() >= 4) spelled.insert(w.text);
                }
            }
            leads = leads && (node.times == Node::Times::optional || node.times == Node::Times::any);
        }
    }
    spelled_.assign(spelled.begin(), spelled.end());
    std::sort(spelled_.begin(), spelled_.end());
    finished_ = true;
    return {};
}

void Vocabulary::know_words(std::string_view list) {
    const Text words = prepare_text(list);
    for (const Token& t : words.tokens) known_.insert(t.stem);
}

void Vocabulary::correct(Text& text) const {
    std::unordered_map<std::string, std::string> done;
    for (Token& t : text.tokens) {
        if (t.literal || t.symbol || t.word.size() < 5 || known_.count(t.stem) != 0) continue;
        const auto [it, fresh] = done.emplace(t.stem, t.stem);
        if (fresh) {
            bool prefix_known = false;
            for (std::size_t n = 5; n <= t.stem.size() && !prefix_known; ++n) prefix_known = known_.count(t.stem.substr(0, n)) != 0;
            std::string_view best;
            for (int limit = 1; !prefix_known && limit <= (t.word.size() >= 9 ? 2 : 1) && best.empty(); ++limit)
                for (const std::string& w : spelled_) {
                    if (w.size() < 5 && !(w.size() == 4 && t.word.size() == 5)) continue;
                    if (w[0] != t.stem[0]) continue;
                    const bool whole = within_edits(t.stem, w, limit) || within_edits(t.word, w, limit);
                    // A stem such as "preempt" also mends the front of "preemtions".
                    const bool front = w.size() >= 6 && t.stem.size() > w.size() &&
                                       (within_edits(std::string_view(t.stem).substr(0, w.size()), w, 1) ||
                                        within_edits(std::string_view(t.stem).substr(0, w.size() - 1), w, 1));
                    if (whole || front) {
                        best = w;
                        break;
                    }
                }
            if (!best.empty()) it->second = std::string(best);
        }
        if (it->second != t.stem) {
            t.stem = it->second;
            t.word = it->second;
        }
    }
}

bool Vocabulary::match_words(const Text& text, const std::vector<Slot>& words, bool first, u32 gap, u32& at, u32& last) {
    const auto n = static_cast<u32>(text.tokens.size());
    u32 p = at;
    for (std::size_t k = 0; k < words.size(); ++k) {
        const bool opening = first && k == 0;
        u32 skipped = 0;
        for (;; ++p) {
            if (p >= n || (!opening && text.tokens[p].before >= Break::clause)) return false;
            const Token& t = text.tokens[p];
            const Slot& w = words[k];
            if (w.prefix ? t.word.compare(0, w.text.size(), w.text) == 0 : t.stem == w.text || t.word == w.text) break;
            if (opening) return false;
            if (articles().count(t.word) != 0) continue;
            if (++skipped > (k == 0 ? gap : 0)) return false;
        }
        last = p++;
    }
    at = p;
    return true;
}

bool Vocabulary::match_nodes(const Text& text, const Sequence& sequence, std::size_t node, u32 at, u32 gap, int repeats, u32& last) {
    if (node == sequence.nodes.size()) return true;
    const Node& here = sequence.nodes[node];
    if (here.times == Node::Times::gap) return match_nodes(text, sequence, node + 1, at, gap + 2, 0, last);
    const u32 last_before = last;
    for (const auto& choice : here.choices) {
        u32 p = at;
        if (!match_words(text, choice, node == 0 && repeats == 0, gap, p, last)) {
            last = last_before;
            continue;
        }
        const u32 matched = last;
        if (here.times == Node::Times::any && repeats + 1 < kMaxRepeats && match_nodes(text, sequence, node, p, 0, repeats + 1, last)) return true;
        last = matched;
        if (match_nodes(text, sequence, node + 1, p, 0, 0, last)) return true;
        last = last_before;
    }
    if (here.times == Node::Times::once || repeats > 0) return repeats > 0 && match_nodes(text, sequence, node + 1, at, 0, 0, last);
    return match_nodes(text, sequence, node + 1, at, gap, 0, last);
}

Occurrences Vocabulary::find(const Text& text) const {
    OOMLAB_CHECK(finished_);
    Occurrences out;
    out.of_set.resize(refers_.size());
    out.is_term.assign(text.tokens.size(), false);
    const auto n = static_cast<u32>(text.tokens.size());
    const auto try_all = [&](const std::vector<u32>& candidates, u32 at) {
        for (const u32 q : candidates) {
            u32 last = at;
            if (!match_nodes(text, sequences_[q], 0, at, 0, 0, last)) continue;
            for (const u32 s : sequences_[q].sets) out.of_set[s].push_back({at, last});
        }
    };
    for (u32 i = 0; i < n; ++i) {
        const Token& t = text.tokens[i];
        if (const auto it = by_stem_.find(t.stem); it != by_stem_.end()) try_all(it->second, i);
        if (t.word != t.stem)
            if (const auto it = by_stem_.find(t.word); it != by_stem_.end()) try_all(it->second, i);
        if (t.word.size() >= 3)
            if (const auto it = by_prefix_.find(t.word.substr(0, 3)); it != by_prefix_.end()) try_all(it->second, i);
    }
    // A longer term of the same set wins over what it contains ("cache without eviction", "eviction").
    for (std::vector<Span>& spans : out.of_set) {
        std::vector<Span> kept;
        u32 reach = 0;
        std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first != b.first ? a.first < b.first : a.last > b.last; });
        for (const Span& s : spans) {
            if (!kept.empty() && s.last <= reach) continue;
            reach = s.last;
            kept.push_back(s);
        }
        spans = std::move(kept);
    }
    return out;
}

i64 Vocabulary::set_id(std::string_view name) const {
    const auto it = names_.find(name);
    return it == names_.end() ? -1 : static_cast<i64>(it->second);
}

std::vector<std::string> Vocabulary::set_names() const {
    std::vector<std::string> out;
    for (const auto& [name, id] : names_)
        if (name[0] != '#') out.push_back(name);
    return out;
}

}  // namespace oomlab::grader
