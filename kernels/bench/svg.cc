#include <algorithm>

#include "kernels/bench/report.h"
#include "kernels/figures/svg.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

constexpr size_t kMaxNamedBars = 60;
constexpr int kBarsLeft = 330;  ///< where bars begin, px; names stand left of it
constexpr int kBarsWidth = 520;
constexpr int kWidth = kBarsLeft + kBarsWidth + 60;
constexpr int kTop = 64;

struct Bar {
  std::string label;
  std::string value;  ///< what stands at its end
  double cold = 0, hot = 0;
  bool ours = false;
};

double Shown(const Bar& bar) {
  return bar.cold > 0 ? bar.cold : bar.hot;
}

/// Also the last step of each ladder.
bool IsOurs(const std::string& implementation) {
  return implementation == "tilewire" || implementation.ends_with("_ours");
}

std::vector<Bar> BarsOf(const Report& report, const std::string& group) {
  std::vector<Bar> bars;
  for (const Record& record : report.records) {
    const Measurement* headline = record.Headline();
    if (record.info.group != group || headline == nullptr || record.Share(*headline) <= 0) continue;
    const Measurement* cold = record.Find(Mode::kCold);
    const Measurement* hot = record.Find(Mode::kHot);
    bars.push_back({.label = record.info.name + " \u00b7 " + record.info.implementation,
                    .value = FormatPercent(record.Share(*headline)) + ", " +
                             FormatFixed(record.Rate(*headline) * 1e-9, 0) + " GB/s",
                    .cold = cold != nullptr ? record.Share(*cold) : 0,
                    .hot = hot != nullptr ? record.Share(*hot) : 0,
                    .ours = IsOurs(record.info.implementation)});
  }
  return bars;
}

/// Colours by CSS, so that the picture follows the page into the dark.
constexpr const char* kStyle =
    R"( svg { background: #ffffff; color: #1f2328; font: 12px system-ui, sans-serif }
 text { fill: currentColor } .title { font-size: 16px; font-weight: 600 } .soft { opacity: .75 }
 .end { text-anchor: end } .mid { text-anchor: middle }
 .halo { paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
 .grid { stroke: currentColor; opacity: .2 } .one { stroke: currentColor; opacity: .6; stroke-dasharray: 4 3 }
 .cold { fill: #8c959f } .cold.ours { fill: #1a7f64 } .hot { fill: #8c959f; opacity: .45 } .hot.ours { fill: #1a7f64 }
 @media (prefers-color-scheme: dark) {
  svg { background: #0d1117; color: #e6edf3 } .halo { stroke: #0d1117 }
  .cold, .hot { fill: #7d8590 } .cold.ours, .hot.ours { fill: #3fb68b }
 }
)";

/// Vertical lines at 0, 20, … percent up to `top` (a share), and their labels.
std::string Axis(double top, int bottom) {
  const int step = top > 2.5 ? 100 : 20;
  std::string out;
  for (int percent = 0; percent <= top * 100 + 1e-9; percent += step) {
    const double x = kBarsLeft + kBarsWidth * (percent / 100.0) / top;
    out += svg::Line(x, kTop - 6, x, bottom, percent == 100 ? "one" : "grid");
    out += svg::Text(x, kTop - 10, "soft mid", std::to_string(percent) + "%");
  }
  return out;
}

std::string BarOf(const char* kind, bool ours, double y, double height, double share, double top,
                  const std::string& tip) {
  return svg::Rect(kBarsLeft, y, kBarsWidth * std::min(share, top) / top, height,
                   std::string(kind) + (ours ? " ours" : ""), tip);
}

/// The end of the axis: the largest share on it, at least 100%; what is hot in a cache may be cut off at
/// 500%.
double Top(const std::vector<Bar>& bars) {
  double top = 1;
  for (const Bar& bar : bars) top = std::max({top, bar.cold, std::min(bar.hot, 5.0)});
  return top > 2.5 ? static_cast<int>(top + 0.999) : static_cast<int>(top * 5 + 0.999) / 5.0;
}

std::string NamedBars(const std::vector<Bar>& bars, double top) {
  std::string out;
  double y = kTop;
  for (const Bar& bar : bars) {
    const std::string tip =
        bar.label + ": cold " + FormatPercent(bar.cold) + ", hot " + FormatPercent(bar.hot);
    out += BarOf("cold", bar.ours, y + 2, 9, bar.cold, top, tip);
    out += BarOf("hot", bar.ours, y + 12, 5, bar.hot, top, tip);
    out += svg::Text(kBarsLeft - 8, y + 13, "end", bar.label);
    const double end = kBarsWidth * std::min(std::max(bar.cold, bar.hot), top) / top;
    out += svg::Text(kBarsLeft + 6 + end, y + 13, "halo", bar.value);
    y += 22;
  }
  return out;
}

/// Thin bars from the slowest to the fastest, and where the quarters lie.
std::string Distribution(std::vector<Bar> bars, double top) {
  std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return Shown(a) < Shown(b); });
  std::vector<double> shares;
  std::string out;
  for (const Bar& bar : bars) {
    const double y = kTop + 3.0 * static_cast<double>(shares.size());
    shares.push_back(Shown(bar));
    out += BarOf("cold", bar.ours, y, 2, Shown(bar), top, bar.label + ": " + bar.value);
  }
  for (const int percent : {5, 25, 50, 75, 95}) {
    const double y = kTop + 3.0 * static_cast<double>(bars.size()) * percent / 100;
    const std::string share = FormatPercent(Quantile(shares, percent / 100.0));
    out += svg::Text(kBarsLeft - 8, y + 4, "end", std::to_string(percent) + "th percentile: " + share);
  }
  return out;
}

}  // namespace

std::string SvgChart(const Report& report, const std::string& group) {
  const std::vector<Bar> bars = BarsOf(report, group);
  if (bars.empty()) return {};
  const bool named = bars.size() <= kMaxNamedBars;
  const double top = Top(bars);
  const int bottom = kTop + static_cast<int>(bars.size()) * (named ? 22 : 3) + 8;
  std::string machine;
  for (const auto& [name, value] : report.machine) {
    if (name == "gpu" || (name == "host" && machine.empty())) machine = value;
  }
  const std::string title = group + ": share of the measured limit";
  const char* what = named ? "; thick: cold, thin: hot" : "; cases from slowest to fastest";
  // Room behind the bars for the values that stand at their ends.
  return svg::Document(kWidth + 80, bottom + 12, title, kStyle,
                       svg::Text(16, 26, "title", title) + svg::Text(16, 44, "soft", machine + what) +
                           Axis(top, bottom) + (named ? NamedBars(bars, top) : Distribution(bars, top)));
}

}  // namespace tilewire::bench
