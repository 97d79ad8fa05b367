#include "grader/runbook/markdown.hpp"

#include <fmt/format.h>
#include <md4c.h>

#include <algorithm>

namespace oomlab::grader {
namespace {

constexpr std::size_t kMaxBlocks = 20000;

class Builder {
  public:
    explicit Builder(std::string_view source) : source_(source) {}

    int enter(MD_BLOCKTYPE type, void* detail) {
        switch (type) {
            case MD_BLOCK_H:
                begin(MdBlock::Kind::heading);
                current_.level = static_cast<MD_BLOCK_H_DETAIL*>(detail)->level;
                break;
            case MD_BLOCK_P: begin(items_ > 0 ? MdBlock::Kind::item : MdBlock::Kind::paragraph); break;
            case MD_BLOCK_LI:
                ++items_;
                begin(MdBlock::Kind::item);
                break;
            case MD_BLOCK_TR: begin(MdBlock::Kind::row); break;
            case MD_BLOCK_CODE: {
                begin(MdBlock::Kind::code);
                const MD_ATTRIBUTE& lang = static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->lang;
                if (lang.text != nullptr) current_.language.assign(lang.text, lang.size);
                break;
            }
            case MD_BLOCK_TH:
            case MD_BLOCK_TD:
                if (!current_.text.empty()) current_.text += " -> ";
                break;
            default: break;
        }
        return out.blocks.size() > kMaxBlocks ? 1 : 0;
    }

    int leave(MD_BLOCKTYPE type) {
        if (type == MD_BLOCK_LI) --items_;
        if (type == MD_BLOCK_H || type == MD_BLOCK_P || type == MD_BLOCK_LI || type == MD_BLOCK_TR || type == MD_BLOCK_CODE) flush();
        return 0;
    }

    int text(MD_TEXTTYPE type, const char* data, MD_SIZE size) {
        if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR) {
            current_.text += type == MD_TEXT_BR ? '\n' : ' ';
            return 0;
        }
        const char* const first = source_.data();
        if (data >= first && data < first + source_.size()) last_offset_ = static_cast<std::size_t>(data - first);
        if (current_.line == 0) current_.line = line_at(last_offset_);
        if (type == MD_TEXT_CODE && current_.kind == MdBlock::Kind::code) {
            code_lines(std::string_view(data, size));
        } else if (type == MD_TEXT_CODE) {
            out.code.push_back({std::string(data, size), line_at(last_offset_), true});
        }
        current_.text.append(data, size);
        return 0;
    }

    void flush() {
        if (current_.text.find_first_not_of(" \n\t") == std::string::npos) {
            current_.text.clear();
            current_.line = 0;
            return;
        }
        if (current_.kind == MdBlock::Kind::heading) ++section_;
        current_.section = section_;
        out.blocks.push_back(std::move(current_));
        current_ = {};
    }

    Markdown out;

  private:
    void begin(MdBlock::Kind kind) {
        flush();
        current_ = {};
        current_.kind = kind;
    }

    u32 line_at(std::size_t offset) {
        if (offset < counted_to_) {
            counted_to_ = 0;
            lines_ = 1;
        }
        lines_ += static_cast<u32>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(counted_to_), source_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
        counted_to_ = offset;
        return lines_;
    }

    // md4c hands code over in pieces; a line is whole at its '\n'.
    void code_lines(std::string_view piece) {
        for (const char c : piece) {
            if (c == '\n') {
                if (partial_.find_first_not_of(" \t") != std::string::npos) out.code.push_back({partial_, partial_line_, false});
                partial_.clear();
            } else {
                if (partial_.empty()) partial_line_ = line_at(last_offset_);
                partial_ += c;
            }
        }
    }

    std::string_view source_;
    MdBlock current_;
    std::string partial_;
    u32 partial_line_ = 0;
    u32 section_ = 0;
    int items_ = 0;
    std::size_t last_offset_ = 0;
    std::size_t counted_to_ = 0;
    u32 lines_ = 1;
};

// Comments of the decision table explain it to the writer; what is still to be written says nothing.
bool unwritten(const MdBlock& block, std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t");
    const bool comment = block.kind == MdBlock::Kind::code && block.language == "toml" && first != std::string_view::npos && line[first] == '#';
    return comment || line.find("TBD") != std::string_view::npos || line.find("TODO") != std::string_view::npos;
}

}  // namespace

Result<Markdown> parse_markdown(std::string_view source) {
    if (source.size() > kMaxRunbookBytes) return fail(Error::usage(fmt::format("a runbook may have {} KiB; this one has {}", kMaxRunbookBytes / 1024, source.size() / 1024)));
    Builder builder(source);
    MD_PARSER parser{};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_TASKLISTS | MD_FLAG_STRIKETHROUGH | MD_FLAG_NOHTML;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* user) { return static_cast<Builder*>(user)->enter(type, detail); };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* user) { return static_cast<Builder*>(user)->leave(type); };
    parser.enter_span = [](MD_SPANTYPE, void*, void*) { return 0; };
    parser.leave_span = [](MD_SPANTYPE, void*, void*) { return 0; };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* user) { return static_cast<Builder*>(user)->text(type, text, size); };
    if (md_parse(source.data(), static_cast<MD_SIZE>(source.size()), &parser, &builder) != 0)
        return fail(Error::parse("the Markdown has too many blocks to be a runbook"));
    builder.flush();
    builder.out.bytes = source.size();
    return std::move(builder.out);
}

RunbookText text_of(const Markdown& markdown) {
    RunbookText out;
    std::string plain;
    std::vector<std::pair<u32, u32>> sections;
    for (const MdBlock& b : markdown.blocks) {
        sections.emplace_back(static_cast<u32>(plain.size()), b.section);
        u32 line = b.line;
        std::size_t from = 0;
        while (from <= b.text.size()) {
            const std::size_t end = std::min(b.text.find('\n', from), b.text.size());
            const std::string_view piece = std::string_view(b.text).substr(from, end - from);
            out.lines.emplace_back(static_cast<u32>(plain.size()), line++);
            if (!unwritten(b, piece)) plain += piece;
            plain += '\n';
            from = end + 1;
        }
        plain += '\n';
    }
    out.text = prepare_text(plain);
    std::size_t s = 0;
    for (Token& t : out.text.tokens) {
        while (s + 1 < sections.size() && sections[s + 1].first <= t.begin) ++s;
        if (!sections.empty()) t.section = sections[s].second;
    }
    return out;
}

u32 RunbookText::file_line(u32 token) const {
    if (token >= text.tokens.size()) return 0;
    const u32 at = text.tokens[token].begin;
    const auto it = std::upper_bound(lines.begin(), lines.end(), at, [](u32 v, const auto& p) { return v < p.first; });
    return it == lines.begin() ? 1 : std::prev(it)->second;
}

}  // namespace oomlab::grader
