// What GPU timing is made of: events between which it measures, and graphs that replay runs.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <utility>

#include "kernels/bench/bench.h"
#include "kernels/bench/device.h"

namespace tilewire::bench {

inline constexpr int kMaxEvents = 17;

/// kMaxEvents events, made once. Used by one thread.
class Events {
 public:
  static Result<Events> Make() {
    Events events;
    for (cudaEvent_t& event : events.events_)
      TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaEventCreate(&event), "event"));
    return events;
  }
  Events() = default;
  Events(Events&& other) noexcept { std::swap(events_, other.events_); }
  Events& operator=(Events&&) = delete;
  ~Events() {
    for (cudaEvent_t event : events_)
      if (event != nullptr) cudaEventDestroy(event);
  }
  Status Record(int index, Stream stream) const {
    return FromCuda(cudaEventRecord(events_.at(static_cast<size_t>(index)), stream), "recording an event");
  }
  Result<double> SecondsBetween(int first, int second) const {
    float ms = 0;
    const auto begin = events_.at(static_cast<size_t>(first)), end = events_.at(static_cast<size_t>(second));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaEventElapsedTime(&ms, begin, end), "timing"));
    return ms * 1e-3;
  }

 private:
  std::array<cudaEvent_t, kMaxEvents> events_{};
};

/// So many runs of a Work, captured once and launched together. Used by one thread.
class Graph {
 public:
  static Result<Graph> Capture(Work& work, int count, Stream stream) {
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture"));
    Status status;
    for (int i = 0; i < count && status.ok(); ++i) status = work.Run(stream);
    Graph graph;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph.graph_);
    TILEWIRE_RETURN_IF_ERROR(std::move(status));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(ended, "ending a capture"));
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaGraphInstantiate(&graph.executable_, graph.graph_, 0), "making a graph"));
    return graph;
  }
  Graph() = default;
  Graph(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(executable_, other.executable_);
  }
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Status Launch(Stream stream) const {
    return FromCuda(cudaGraphLaunch(executable_, stream), "launching a graph");
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tilewire::bench
