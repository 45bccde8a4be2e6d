// These functions turn the handles of fusion_tuner.h into the objects behind them, and back.
#pragma once

#include "client/tuner/fusion_tuner.h"
#include "client/tuner/section.h"
#include "client/tuner/tuner.h"

namespace fusion::tuning {

inline Tuner* Of(fusion_tuner* handle) { return reinterpret_cast<Tuner*>(handle); }
inline Section* Of(fusion_tuner_section* handle) { return reinterpret_cast<Section*>(handle); }
inline Parameter* Of(fusion_tuner_parameter* handle) { return reinterpret_cast<Parameter*>(handle); }
inline fusion_tuner* HandleOf(Tuner* tuner) { return reinterpret_cast<fusion_tuner*>(tuner); }
inline fusion_tuner_section* HandleOf(Section* section) {
  return reinterpret_cast<fusion_tuner_section*>(section);
}
inline fusion_tuner_parameter* HandleOf(Parameter* parameter) {
  return reinterpret_cast<fusion_tuner_parameter*>(parameter);
}

}  // namespace fusion::tuning
