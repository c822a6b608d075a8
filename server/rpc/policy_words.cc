#include "server/rpc/policy_words.h"

#include <google/protobuf/descriptor.h>

#include <string>

#include "server/rpc/conversions/operations.h"

namespace tilewire::rpc {

PolicyWords WordsOfPolicies() {
  // Each call is looked up, and those that come by the thousand are found first.
  PolicyWords words{.admin_methods = {"Device.MeasureCeilings", "Device.DescribeKernels"}};
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* const file : {"kernels", "arrays", "device", "regions"}) {
    const auto* const known = pool->FindFileByName(std::string("tilewire/v1/") + file + ".proto");
    for (int s = 0; known != nullptr && s < known->service_count(); ++s)
      for (int m = 0; m < known->service(s)->method_count(); ++m)
        words.methods.push_back(known->service(s)->name() + "." + known->service(s)->method(m)->name());
  }
  for (const Descriptor* const operation : Operations()) words.operations.emplace_back(operation->name);
  words.operations.insert(words.operations.end(), {"put", "get"});
  return words;
}

}  // namespace tilewire::rpc
