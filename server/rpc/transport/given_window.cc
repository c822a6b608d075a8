#include "server/rpc/transport/given_window.h"

#include <dlfcn.h>
#include <grpcpp/grpcpp.h>

#include "server/rpc/listener/window_class.h"

namespace tilewire::rpc {
namespace {

thread_local int64_t given = 0;

/// What gRPC begins with, by HTTP/2, when it asks for the first time.
constexpr double kFirstWindow = 65535;

/// As gRPC 1.51 declares TestOnlyTransportTargetWindowEstimatesMocker: a destructor, and what is asked
/// whenever its probe would change a window.
class Estimates {
 public:
  virtual ~Estimates() = default;
  virtual double Next(double current) = 0;
};

class Given final : public Estimates {
  double Next(double current) override {
    if (current != kFirstWindow) return current;
    return static_cast<double>(given > 0 ? given : kSealedWideBytes);
  }
};

bool Install() {
  if (!grpc::Version().starts_with("1.51.")) return false;
  void* const found =
      dlsym(RTLD_DEFAULT, "_ZN9grpc_core6chttp252g_test_only_transport_target_window_estimates_mockerE");
  if (found == nullptr) return false;
  *static_cast<Estimates**>(found) = new Given;  // gRPC's threads may outlive any static object
  return true;
}

}  // namespace

bool GiveWindows() {
  static const bool gives = Install();
  return gives;
}

GivenWindow::GivenWindow(int64_t bytes) {
  given = bytes;
}

GivenWindow::~GivenWindow() {
  given = 0;
}

}  // namespace tilewire::rpc
