#include "client/python/core/errors.h"

#include <string>

namespace nb = nanobind;

namespace tilewire::python {
namespace {

nb::str Text(std::string_view text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

void Raise(const Status& status) {
  const Status::Detail& detail = *status.detail();
  const nb::object error =
      nb::module_::import_("tilewire._errors")
          .attr("from_status")(Text(CodeName(detail.code)), Text(detail.reason), Text(detail.message),
                               Text(detail.field), Text(detail.value), Text(detail.allowed));
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

}  // namespace

void RegisterErrors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      Raise(error.status());
    }
  });
}

}  // namespace tilewire::python
