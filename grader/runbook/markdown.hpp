// A runbook's Markdown as blocks: what stands under which heading, what is a command, where it is.
//
// Parsed with md4c (CommonMark and tables); rendering is nobody's business here. A learner's file is
// data: size and number of blocks are capped, nothing is executed, links are not followed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grader/concepts/text.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::grader {

struct MdBlock {
    enum class Kind : unsigned char { heading, paragraph, item, row, code };
    Kind kind = Kind::paragraph;
    std::string text;
    std::string language;  // of a fenced code block
    u32 level = 0;         // of a heading
    u32 line = 0;          // 1-based, in the file
    u32 section = 0;       // index of the heading it stands under, 0 before the first
};

struct MdCommand {
    std::string text;
    u32 line = 0;
    bool inline_code = false;
};

struct Markdown {
    std::vector<MdBlock> blocks;
    std::vector<MdCommand> code;  // every line of code, and every code span
    std::size_t bytes = 0;
};

inline constexpr std::size_t kMaxRunbookBytes = 256 * 1024;

// On failure: usage (too large) or parse.
Result<Markdown> parse_markdown(std::string_view source);

// The blocks as one text for marking: each block its own lines, tokens know their section and `lines`
// maps byte offsets of the text to lines of the file.
struct RunbookText {
    Text text;
    std::vector<std::pair<u32, u32>> lines;
    u32 file_line(u32 token) const;
};
RunbookText text_of(const Markdown& markdown);

}  // namespace oomlab::grader
