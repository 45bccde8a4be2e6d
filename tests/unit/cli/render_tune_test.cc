#include "client/cli/render_tune.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::HasSubstr;

v1::TuningDetails Details() {
  v1::TuningDetails details;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(tuning {
           name: "tunings/1"
           declaration {
             program: "solver" section: "sweep" device_class: "cpu"
             context { name: "n" value: 9 } context { name: "m" value: -4 }
             parameters { name: "rate" real { lower: 0.001 upper: 1 logarithmic: true } default_value: 0.5 }
             parameters { name: "order" enumeration { values: "rows" values: "columns" } condition: "rate > 0.1" }
             constraints: "rate < 0.9"
             objective { name: "throughput" unit: "items/s" maximize: true }
           }
           generation: 3 phase: CONVERGED provenance: OTHER_DEVICE provenance_tuning: "tunings/2"
           best { values: 0.25 values: 1 } best_value: 300 best_relative_error: 0.02 default_value: 100
           default_relative_error: 0.05 better_than_default: true
           runs: 1234 failures: 1 configurations: 2 drifts: 2 programs: 1 exploration_excess: 5 total_value: 100
         }
         configurations { configuration { values: 0.25 values: 1 } count: 4 mean: 300 standard_deviation: 12 minimum: 280
                          expected: 295.5 relative_error: 0.02 }
         configurations { configuration { values: 0.5 values: 0 } count: 1 mean: 100 minimum: 100 }
         configurations { configuration { values: 0.75 values: 0 } failures: 1 }
         convergence { evaluations: 1 best { values: 0.5 values: 0 } value: 100 }
         convergence { evaluations: 7 best { values: 0.25 values: 1 } value: 300 })",
      &details));
  return details;
}

TEST(RenderTuneTest, Json) {
  const Json json = TuningDetailsJson(Details(), "a.svg", "");
  EXPECT_EQ(json["schema"], "fusion.tuning/1");
  EXPECT_EQ(json["context"], Json({{"n", 9}, {"m", -4}}));
  EXPECT_EQ(json["best"], Json({{"rate", 0.25}, {"order", "columns"}}));
  EXPECT_EQ(json["speedup"], 3.0);
  EXPECT_EQ(json["objective"], Json({{"name", "throughput"}, {"unit", "items/s"}, {"maximize", true}}));
  EXPECT_EQ(json["parameters"][0]["kind"], "real");
  EXPECT_EQ(json["parameters"][1]["condition"], "rate > 0.1");
  EXPECT_EQ(json["exploration_share"], 0.05);
  EXPECT_EQ(json["provenance"], "OTHER_DEVICE");
  EXPECT_EQ(json["updated"], Json());
  EXPECT_EQ(json["configurations"].size(), 3u);
  EXPECT_EQ(json["configurations"][1]["standard_deviation"], Json());
  EXPECT_EQ(json["configurations"][2]["mean"], Json());
  EXPECT_EQ(json["landscape_plot"], "a.svg");
  EXPECT_EQ(json["convergence_plot"], Json());
}

TEST(RenderTuneTest, Text) {
  const std::string text = TuningDetailsText(Details(), {});
  EXPECT_THAT(text, HasSubstr("tunings/1  solver/sweep  m=-4,n=9  on cpu"));
  EXPECT_THAT(text, HasSubstr("0.001 to 1, logarithmic"));
  EXPECT_THAT(text, HasSubstr("constraint: rate < 0.9"));
  EXPECT_THAT(text, HasSubstr("objective: the largest throughput, in items/s; strategy: portfolio"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "best: rate=0.25 order=columns, 300 items/s +-2.0 %, of tunings/2, on another class of device"));
  EXPECT_THAT(text, HasSubstr("default: 100 items/s +-5.0 %; the best is better by 3.00x"));
  EXPECT_THAT(
      text,
      HasSubstr("1,234 runs, 1 failure, 2 configurations; generation 3, 2 drifts; 1 program connected"));
  EXPECT_THAT(text, HasSubstr("exploring cost 5.0 % of the whole throughput"));
  EXPECT_EQ(TuningLineText(Details().tuning()),
            "CONVERGED  rate=0.25 order=columns  300 items/s +-2.0 %  1,234 runs\n");
}

TEST(RenderTuneTest, TheTableHasWhatItIsSortedBy) {
  const std::string text = TuningDetailsText(Details(), {});
  EXPECT_THAT(text, HasSubstr("+-"));
  EXPECT_THAT(text, HasSubstr("at worst"));
  EXPECT_THAT(text, HasSubstr("295.5 items/s"));
  const Json json = TuningDetailsJson(Details(), "", "");
  EXPECT_EQ(json["configurations"][0]["expected"], 295.5);
  EXPECT_EQ(json["configurations"][0]["relative_error"], 0.02);
  EXPECT_EQ(json["configurations"][2]["relative_error"], Json());
}

TEST(RenderTuneTest, WhatIsNotBetterIsNotCalledSo) {
  v1::TuningDetails details = Details();
  details.mutable_tuning()->set_better_than_default(false);
  EXPECT_THAT(TuningDetailsText(details, {}),
              HasSubstr("the best is not better by more than both are uncertain by"));
  EXPECT_EQ(TuningDetailsJson(details, "", "")["speedup"], Json());
  v1::ListTuningsResponse list;
  *list.add_tunings() = details.tuning();
  EXPECT_THAT(TuningListText(list, {}), HasSubstr("none"));
  EXPECT_THAT(TuningListText(list, {}), HasSubstr("5.0 %")) << "what exploring cost";
  details.mutable_tuning()->set_below_clock(true);
  *list.mutable_tunings(0) = details.tuning();
  EXPECT_THAT(TuningDetailsText(details, {}), HasSubstr("the clock hides which configuration is better"));
  EXPECT_THAT(TuningListText(list, {}), HasSubstr("below clock"));
  // Noise alone may make the sum negative.
  details.mutable_tuning()->set_exploration_excess(-3);
  EXPECT_THAT(TuningDetailsText(details, {}), HasSubstr("exploring cost 0 % of the whole throughput"));
}

TEST(RenderTuneTest, ValuesOfAnySizeAreShort) {
  v1::TuningDetails details = Details();
  v1::Tuning& tuning = *details.mutable_tuning();
  for (const double value : {1.7e308, 5e-324}) {
    tuning.mutable_declaration()->clear_objective();
    tuning.set_best_value(value);
    tuning.set_default_value(1);
    EXPECT_LT(TuningLineText(tuning).size(), 120u);
    EXPECT_LT(TuningDetailsText(details, {}).size(), 2000u);
  }
}

TEST(RenderTuneTest, ResultsOfAnotherObjectiveAreNoTimes) {
  v1::StoredTuningReport both;
  both.mutable_time()->set_seconds(1);
  both.mutable_report()->mutable_configuration()->add_values(0.25);
  both.mutable_report()->mutable_configuration()->add_values(1);
  both.mutable_report()->set_count(2);
  both.mutable_report()->set_mean(300);
  both.mutable_report()->set_minimum(290);
  both.mutable_report()->set_failures(1);
  const Json json = T4Json(Details().tuning(), {both});
  ASSERT_EQ(json["results"].size(), 2u);
  const Json& good = json["results"][0];
  EXPECT_EQ(good["timestamp"], "1970-01-01T00:00:01Z");
  EXPECT_EQ(good["invalidity"], "correct");
  EXPECT_TRUE(good["times"]["runtimes"].empty());
  EXPECT_EQ(good["measurements"][0], Json({{"name", "throughput"}, {"value", 300.0}, {"unit", "items/s"}}));
  EXPECT_EQ(json["results"][1]["invalidity"], "runtime");
}

TEST(RenderTuneTest, PlottedWhatRan) {
  const PlottedTuning plotted = PlottedOf(Details());
  EXPECT_EQ(plotted.parameters.size(), 2u);
  ASSERT_EQ(plotted.configurations.size(), 2u);  // one only failed
  EXPECT_EQ(plotted.best, 0);
  EXPECT_EQ(plotted.defaults, 1);
  EXPECT_EQ(plotted.configurations[0].standard_error, 6);
  EXPECT_EQ(plotted.evaluations, 7u);
}

}  // namespace
}  // namespace fusion
