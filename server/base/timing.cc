#include "server/base/timing.h"

namespace tilewire {

const char* StageName(Stage stage) {
  switch (stage) {
    case Stage::kQueue:
      return "queue";
    case Stage::kReceive:
      return "receive";
    case Stage::kStage:
      return "stage";
    case Stage::kH2D:
      return "h2d";
    case Stage::kKernel:
      return "kernel";
    case Stage::kD2H:
      return "d2h";
    case Stage::kSend:
      return "send";
    case Stage::kOther:
      return "other";
  }
  return "";
}

}  // namespace tilewire
