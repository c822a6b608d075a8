#include <algorithm>
#include <sstream>

#include "kernels/bench/format.h"
#include "kernels/bench/report.h"

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

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ') escaped += c;
    }
  }
  return escaped;
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
constexpr std::string_view kStyle = R"(<style>
 svg { background: #ffffff; color: #1f2328; font: 12px system-ui, sans-serif }
 text { fill: currentColor } .title { font-size: 16px; font-weight: 600 } .soft { opacity: .75 }
 .halo { paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
 .grid { stroke: currentColor; opacity: .2 } .one { stroke: currentColor; opacity: .6; stroke-dasharray: 4 3 }
 .cold { fill: #8c959f } .cold.ours { fill: #1a7f64 } .hot { fill: #8c959f; opacity: .45 } .hot.ours { fill: #1a7f64 }
 @media (prefers-color-scheme: dark) {
  svg { background: #0d1117; color: #e6edf3 } .halo { stroke: #0d1117 }
  .cold, .hot { fill: #7d8590 } .cold.ours, .hot.ours { fill: #3fb68b }
 }
</style>
)";

/// Vertical lines at 0, 20, … percent up to `top` (a share), and their labels.
void WriteAxis(double top, int bottom, std::ostream& out) {
  const int step = top > 2.5 ? 100 : 20;
  for (int percent = 0; percent <= top * 100 + 1e-9; percent += step) {
    const double x = kBarsLeft + kBarsWidth * (percent / 100.0) / top;
    out << "<line class=\"" << (percent == 100 ? "one" : "grid") << "\" x1=\"" << x << "\" x2=\"" << x
        << "\" y1=\"" << kTop - 6 << "\" y2=\"" << bottom
        << "\"/>\n<text class=\"soft\" text-anchor=\"middle\" x=\"" << x << "\" y=\"" << kTop - 10 << "\">"
        << percent << "%</text>\n";
  }
}

void WriteBar(const char* kind, bool ours, double y, double height, double share, double top,
              std::ostream& out) {
  out << "<rect class=\"" << kind << (ours ? " ours" : "") << "\" x=\"" << kBarsLeft << "\" y=\"" << y
      << "\" height=\"" << height << "\" width=\"" << kBarsWidth * std::min(share, top) / top << "\"/>\n";
}

/// The end of the axis: the largest share on it, at least 100%; what is hot in a cache may be cut off at
/// 500%.
double Top(const std::vector<Bar>& bars) {
  double top = 1;
  for (const Bar& bar : bars) top = std::max({top, bar.cold, std::min(bar.hot, 5.0)});
  return top > 2.5 ? static_cast<int>(top + 0.999) : static_cast<int>(top * 5 + 0.999) / 5.0;
}

void WriteNamedBars(const std::vector<Bar>& bars, double top, std::ostream& out) {
  double y = kTop;
  for (const Bar& bar : bars) {
    out << "<g><title>" << Escaped(bar.label) << ": cold " << FormatPercent(bar.cold) << ", hot "
        << FormatPercent(bar.hot) << "</title>\n";
    WriteBar("cold", bar.ours, y + 2, 9, bar.cold, top, out);
    WriteBar("hot", bar.ours, y + 12, 5, bar.hot, top, out);
    out << "<text text-anchor=\"end\" x=\"" << kBarsLeft - 8 << "\" y=\"" << y + 13 << "\">"
        << Escaped(bar.label) << "</text>\n<text x=\""
        << kBarsLeft + 6 + kBarsWidth * std::min(std::max(bar.cold, bar.hot), top) / top << "\" y=\""
        << y + 13 << "\" class=\"halo\">" << Escaped(bar.value) << "</text></g>\n";
    y += 22;
  }
}

/// Thin bars from the slowest to the fastest, and where the quarters lie.
void WriteDistribution(std::vector<Bar> bars, double top, std::ostream& out) {
  std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return Shown(a) < Shown(b); });
  std::vector<double> shares;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double share = Shown(bars[i]);
    shares.push_back(share);
    out << "<g><title>" << Escaped(bars[i].label) << ": " << Escaped(bars[i].value) << "</title>\n";
    WriteBar("cold", bars[i].ours, kTop + 3.0 * static_cast<double>(i), 2, share, top, out);
    out << "</g>\n";
  }
  std::sort(shares.begin(), shares.end());
  for (const int percent : {5, 25, 50, 75, 95}) {
    const double y = kTop + 3.0 * static_cast<double>(bars.size()) * percent / 100;
    out << "<text text-anchor=\"end\" x=\"" << kBarsLeft - 8 << "\" y=\"" << y + 4 << "\">" << percent
        << "th percentile: " << FormatPercent(Quantile(shares, percent / 100.0)) << "</text>\n";
  }
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
  std::ostringstream out;
  // Room behind the bars for the values that stand at their ends.
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth + 80 << ' ' << bottom + 12
      << "\" width=\"" << kWidth + 80 << "\" height=\"" << bottom + 12 << "\" role=\"img\">\n"
      << "<title>" << Escaped(group) << ": share of the measured limit</title>\n"
      << kStyle << "<text class=\"title\" x=\"16\" y=\"26\">" << Escaped(group)
      << ": share of the measured limit</text>\n<text class=\"soft\" x=\"16\" y=\"44\">" << Escaped(machine)
      << (named ? "; thick: cold, thin: hot" : "; cases from slowest to fastest") << "</text>\n";
  WriteAxis(top, bottom, out);
  if (named) {
    WriteNamedBars(bars, top, out);
  } else {
    WriteDistribution(bars, top, out);
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace tilewire::bench
