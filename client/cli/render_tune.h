// Makes what `tune` prints and writes. Pure functions; thread safe.
#pragma once

#include <string>
#include <vector>

#include "client/cli/render.h"
#include "client/cli/tuning_plots.h"
#include "fusion/v1/tuner.pb.h"

namespace fusion {

// {"schema": "fusion.tunings/1", "tunings": [...]}
Json TuningListJson(const v1::ListTuningsResponse& response);
// {"schema": "fusion.tuning/1", ...}; that of `tune show` also has "configurations" and "convergence". Plots
// come as the paths of their files, "" (printed as null) when there are none, and values of enumerations by
// their names.
Json TuningJson(const v1::Tuning& tuning);
Json TuningDetailsJson(const v1::TuningDetails& details, const std::string& landscape_plot,
                       const std::string& convergence_plot);
// The reports in the format of results of T4 (github.com/odgaard/TuningSchema, results-schema.json of branch
// T4), as Kernel Tuner writes it: times in ms.
Json T4Json(const v1::Tuning& tuning, const std::vector<v1::StoredTuningReport>& reports);

std::string TuningListText(const v1::ListTuningsResponse& response, const TextStyle& style);
// Declaration, best beside the default, where it comes from, counts, what exploring cost, the first ten
// configurations (style.all: all).
std::string TuningDetailsText(const v1::TuningDetails& details, const TextStyle& style);
// One line: "CONVERGED  tile=32  1.05 ms  +-0.5 %  1,234 runs".
std::string TuningLineText(const v1::Tuning& tuning);

// "tile=32 order=rows"
std::string ConfigurationText(const v1::SectionDeclaration& declaration,
                              const v1::Configuration& configuration);
// "program/section"
std::string SectionText(const v1::SectionDeclaration& declaration);
// "m=4096,n=100", names in order
std::string ContextText(const v1::SectionDeclaration& declaration);

PlottedTuning PlottedOf(const v1::TuningDetails& details);

}  // namespace fusion
