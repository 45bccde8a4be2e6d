#include "server/optimize/model_reset.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"

namespace fusion {

absl::StatusOr<v1::ResetModelResponse> ResetModel(const v1::ResetModelRequest& request,
                                                  MeasurementStore& store) {
  if (request.all() == !request.device().empty())
    return InvalidField("device", "must name a device, or `all` must be set instead");
  if (!request.all()) {
    FUSION_ASSIGN_OR_RETURN(std::vector<std::string> devices, store.ModelDevices());
    if (std::find(devices.begin(), devices.end(), request.device()) == devices.end())
      return absl::NotFoundError(absl::StrCat(
          "nothing is stored of a device named ", request.device(),
          devices.empty()
              ? ""
              : absl::StrCat("; there are times and corrections of: ", absl::StrJoin(devices, ", "))));
  }
  FUSION_ASSIGN_OR_RETURN(ForgottenModel forgotten, store.ForgetModel(request.device()));
  spdlog::info("forgotten of {}: {} times of kernels, {} corrections, {} tables of routine times",
               request.all() ? "all devices" : request.device(), forgotten.kernel_times, forgotten.statistics,
               forgotten.routine_tables);
  v1::ResetModelResponse response;
  response.set_kernel_times(forgotten.kernel_times);
  response.set_statistics(forgotten.statistics);
  response.set_routine_tables(forgotten.routine_tables);
  return response;
}

}  // namespace fusion
