#include "client/cpp/arrays.h"

#include "client/cpp/client_impl.h"

namespace tilewire::client {
namespace {
constexpr auto kDeletePatience = std::chrono::seconds(2);
}  // namespace

OwnedArray::~OwnedArray() {
  try {
    (void)Delete();
  } catch (...) {  // nobody is left to tell
  }
}

OwnedArray& OwnedArray::operator=(OwnedArray&& other) noexcept {
  if (this == &other) return *this;
  const OwnedArray old(std::move(id_), spec_, std::move(deleter_));  // goes at the end
  id_ = std::exchange(other.id_, {});
  spec_ = other.spec_;
  deleter_ = std::exchange(other.deleter_, nullptr);
  return *this;
}

std::string OwnedArray::Release() {
  deleter_ = nullptr;
  return std::exchange(id_, {});
}

Status OwnedArray::Delete() {
  if (id_.empty()) return {};
  const Deleter deleter = std::exchange(deleter_, nullptr);
  return deleter(Release());
}

Status DeleteArray(const Link& link, const std::string& id, const CallOptions& options) {
  v1::DeleteRequest request;
  request.set_array(id);
  v1::DeleteResponse response;
  return CallOnce(link, link.arrays.get(), &v1::Arrays::Stub::Delete, request, options, DeadlineOf(options),
                  &response);
}

StoredReply Client::Impl::Own(Reply reply) const {
  const auto own = [this, &reply](size_t k) {
    return OwnedArray(reply.arrays[k], reply.specs[k], [link = link_](const std::string& id) {
      CallOptions options;
      options.timeout = kDeletePatience;
      return DeleteArray(*link, id, options);
    });
  };
  StoredReply stored{.array = own(0), .more = {}, .reply = {}};
  for (size_t k = 1; k < reply.arrays.size(); ++k) stored.more.push_back(own(k));
  stored.reply = std::move(reply);
  return stored;
}

template <typename Request, typename Response>
Status Client::Impl::Ask(grpc::Status (v1::Arrays::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                  Response*),
                         const Request& request, const CallOptions& options, Deadline deadline,
                         Response* response) {
  return CallPatiently(*link_, link_->arrays.get(), method, request, options, deadline, response);
}

Result<ArrayInfo> Client::Impl::Stat(const std::string& id, const CallOptions& options, Deadline deadline) {
  v1::StatRequest request;
  request.set_array(id);
  v1::ArrayInfo info;
  TILEWIRE_RETURN_IF_ERROR(Ask(&v1::Arrays::Stub::Stat, request, options, deadline, &info));
  return FromProto(info);
}

Result<ArrayList> Client::Impl::List(const CallOptions& options) {
  const Deadline deadline = DeadlineOf(options);
  ArrayList list;
  v1::ListRequest request;
  for (;;) {
    v1::ListResponse response;
    TILEWIRE_RETURN_IF_ERROR(Ask(&v1::Arrays::Stub::List, request, options, deadline, &response));
    for (const v1::ArrayInfo& info : response.arrays()) {
      TILEWIRE_ASSIGN_OR_RETURN(ArrayInfo array, FromProto(info));
      list.arrays.push_back(std::move(array));
    }
    list.stored_bytes = response.stored_bytes();
    list.quota_bytes = response.quota_bytes();
    if (response.next_page().empty()) return list;
    if (response.next_page() == request.page())
      return Fail(BadReply("after page '" + request.page() + "' of the list comes the same page again"));
    request.set_page(response.next_page());
  }
}

}  // namespace tilewire::client
