#include <fmt/format.h>

#include <algorithm>

#include "labs/field/budget/budget_parts.hpp"
#include "labs/field/budget/budget_report.hpp"
#include "labs/field/picture/canvas.hpp"

namespace oomlab::field {
namespace {

constexpr Colour kInk{32, 32, 40}, kSoft{140, 140, 150}, kRed{200, 60, 60};
constexpr int kTop = 70, kBarHeight = 420, kBarWidth = 130, kColumn = 610;

void draw(Canvas& canvas, const Budget& b, const std::string& name, int left, u64 scale_bytes) {
    canvas.text(left, 16, name.substr(0, 44), kInk);
    canvas.text(left, 40,
                fmt::format("{}  {}", b.fits ? "fits" : "does not fit", gib_text(b.total_bytes)),
                b.fits ? kSoft : kRed);
    const double per_byte =
        static_cast<double>(kBarHeight) / static_cast<double>(std::max<u64>(1, scale_bytes));
    double y = kTop + kBarHeight;
    int label_y = kTop + kBarHeight;
    for (const BudgetLine& line : b.lines) {
        const double h = std::max<double>(0, static_cast<double>(line.bytes)) * per_byte;
        const int top = static_cast<int>(y - h), height = static_cast<int>(y) - top;
        if (height > 0) canvas.fill(left, top, kBarWidth, height, colour_of(line.id));
        label_y = std::min(label_y - 22, top + height / 2 - 7);
        const Colour ink = line.bytes < 0 ? kRed : kInk;
        canvas.line(left + kBarWidth, top + height / 2.0, left + kBarWidth + 18, label_y + 7,
                    kSoft);
        canvas.fill(left + kBarWidth + 20, label_y, 12, 12, colour_of(line.id));
        canvas.text(left + kBarWidth + 38, label_y,
                    fmt::format("{:>10} {}", gib_text(line.bytes), line.title), ink);
        y -= h;
    }
    const int card =
        kTop + kBarHeight - static_cast<int>(static_cast<double>(b.total_bytes) * per_byte);
    canvas.frame(left, card, kBarWidth, kTop + kBarHeight - card, kInk);
    canvas.text(left, kTop + kBarHeight + 12,
                fmt::format("KV {} tokens, {:.1f} x {}", grouped(b.kv_tokens), b.max_concurrency,
                            grouped(b.resolved.max_model_len)),
                kInk);
    if (!b.reasons.empty())
        canvas.text(left, kTop + kBarHeight + 34, b.reasons.front().substr(0, 88), kRed, 1);
}

}  // namespace

Result<void> budget_plot(const std::vector<const Budget*>& budgets,
                         const std::vector<std::string>& names, const std::string& path) {
    Canvas canvas(20 + kColumn * static_cast<int>(budgets.size()), kTop + kBarHeight + 60);
    u64 scale = 0;
    for (const Budget* b : budgets) {
        u64 sum = 0;
        for (const BudgetLine& line : b->lines)
            sum += line.bytes > 0 ? static_cast<u64>(line.bytes) : 0;
        scale = std::max({scale, b->total_bytes, sum});
    }
    for (std::size_t i = 0; i < budgets.size(); ++i)
        draw(canvas, *budgets[i], names[i], 20 + kColumn * static_cast<int>(i), scale);
    return canvas.write_png(path);
}

}  // namespace oomlab::field
