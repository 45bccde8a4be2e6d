// The function of libfusion_partition_tuner.so.
#include <exception>
#include <string>

#include "client/partition/loop_tuner.h"
#include "client/partition/tuner/plan_tuner.h"
#include "client/tuner/fusion_tuner.h"

extern "C" [[gnu::visibility("default")]] fusion::LoopTuner* fusion_partition_tuner(int version,
                                                                                    const char* program,
                                                                                    const char** reason) {
  static std::string why;
  why.clear();
  *reason = nullptr;
  try {
    if (version != fusion::kLoopTunerVersion) {
      why = "libfusion_partition_tuner.so is of another version than libfusion_partition.so";
    } else {
      fusion_tuner_options options;
      fusion_tuner_options_init(&options);
      options.program = program;
      options.exploration_share = fusion::PlanTuner::kShare;
      // The program's user has not asked for a tuner.
      options.notice = [](const char*, void*) {};
      fusion_tuner* tuner = nullptr;
      if (fusion_tuner_create(&options, &tuner) == FUSION_TUNER_OK) return new fusion::PlanTuner(tuner);
      why = fusion_tuner_message();
    }
  } catch (const std::exception& exception) {
    why = exception.what();
  }
  *reason = why.c_str();
  return nullptr;
}
