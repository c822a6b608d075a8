# Operating the server: command line, logs, metrics, process setup. No gRPC here.
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(absl REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(TILEWIRE_CONFINEMENT REQUIRED IMPORTED_TARGET libseccomp libcap-ng)
tilewire_library(ops
  SOURCES ops/access_log.cc ops/audit_log.cc ops/config.cc ops/confinement.cc ops/credential_metrics.cc ops/engine_metrics.cc ops/failure_fold.cc ops/flag_forms.cc ops/flags.cc ops/json_line.cc ops/landlock.cc ops/line_text.cc ops/log_sink.cc ops/logging.cc ops/metrics.cc
          ops/process.cc ops/process_metrics.cc ops/security_flags.cc ops/share_flags.cc ops/values.cc ops/version.cc
  DEPS tilewire_identity tilewire_base tilewire_array CLI11::CLI11 spdlog::spdlog nlohmann_json::nlohmann_json
       prometheus-cpp::core prometheus-cpp::pull absl::synchronization PkgConfig::TILEWIRE_CONFINEMENT)
set_property(SOURCE ops/version.cc APPEND PROPERTY COMPILE_DEFINITIONS TILEWIRE_VERSION="${PROJECT_VERSION}")
tilewire_tell_cuda(ops/version.cc)
