// The colours of a call's stages, wherever a picture shows them: in the timelines of `tilewire` and on the
// page of `tilewire-load`.
#pragma once

#include <string_view>

namespace tilewire::cli {

struct StageColour {
  std::string_view stage;
  std::string_view light, dark;  ///< "#rrggbb", on light and on dark paper
};

/// After Okabe and Ito, who chose colours that colour-blind people tell apart; some darker or lighter, so
/// that they stand out from the paper. What does the same on both sides of the wire has the same colour.
inline constexpr StageColour kStageColours[] = {
    // The server's, in the order of the data's way.
    {"queue", "#9aa3ad", "#77818c"},
    {"receive", "#56b4e9", "#56b4e9"},
    {"stage", "#e69f00", "#e69f00"},
    {"h2d", "#0072b2", "#2f8fd0"},
    {"kernel", "#00805c", "#0f9d75"},
    {"finish", "#004d38", "#63dbb6"},
    {"d2h", "#cc79a7", "#cc79a7"},
    {"send", "#c65500", "#dd6b1f"},
    {"other", "#57606a", "#b8c1ca"},
    // The client's, without `receive`.
    {"call", "#6d7680", "#8d96a0"},
    {"retry", "#b3261e", "#ff8a7f"},
    {"connect", "#7a5fc0", "#a991ea"},
    {"open", "#9aa3ad", "#77818c"},
    {"write", "#c65500", "#dd6b1f"},
    {"result", "#0072b2", "#4aa3df"},
    {"exchange", "#0072b2", "#4aa3df"},
    {"sink", "#e69f00", "#e69f00"},
};

}  // namespace tilewire::cli
