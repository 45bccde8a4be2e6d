#include "server/model/kernel_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/model/cost_model.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"

namespace fusion {
namespace {

constexpr char kSizes[] = "4096,4096";

ResidualFeatures Features(double first, double second = 0) {
  ResidualFeatures features{};
  features[0] = first;
  features[1] = second;
  return features;
}

// Measured at `error` times its prediction of 1 ms.
RememberedKernel Remembered(const std::string& variant, double error, const ResidualFeatures& features,
                            const std::string& sizes = kSizes) {
  return {.sizes = sizes,
          .variant = variant,
          .seconds = 1e-3 * error,
          .deviation = 0.015,
          .predicted_seconds = 1e-3,
          .features = features};
}

TEST(FamilyTimes, AKernelThatWasMeasuredIsPredictedByItsTime) {
  const FamilyTimes times({Remembered("a", 2, Features(1)), Remembered("b", 0.5, Features(1, 1))}, kSizes,
                          Residual());
  const FamilyTimes::Answer a = times.Of("a", Features(1)), b = times.Of("b", Features(1, 1));
  EXPECT_NEAR(a.factor, 2, 0.1);
  EXPECT_NEAR(b.factor, 0.5, 0.03);
  EXPECT_EQ(a.seconds, 2e-3);
  EXPECT_EQ(b.seconds, 0.5e-3);
  EXPECT_LT(times.DeviationOf("a", Features(1)), 0.02);
}

TEST(FamilyTimes, OthersAreCorrectedByTheirNeighboursTheMoreTheNearerTheyAre) {
  const FamilyTimes times({Remembered("slow", 2, Features(1)), Remembered("fast", 1, Features(1, 2))}, kSizes,
                          Residual());
  const FamilyTimes::Answer near_slow = times.Of("x", Features(1, 0.2)),
                            near_fast = times.Of("x", Features(1, 1.8)), far = times.Of("x", Features(5, 5));
  EXPECT_GT(near_slow.factor, 1.5);
  EXPECT_LT(near_fast.factor, 1.3);
  EXPECT_FALSE(near_slow.seconds.has_value());
  EXPECT_LT(times.DeviationOf("x", Features(1, 0.2)), times.DeviationOf("x", Features(5, 5)));
  // What the family has in common remains.
  EXPECT_GT(far.factor, 1.05);
  EXPECT_LT(far.factor, near_slow.factor);
}

TEST(FamilyTimes, OtherSizesTellLittle) {
  const FamilyTimes here({Remembered("a", 2, Features(1))}, kSizes, Residual()),
      there({Remembered("a", 2, Features(1), "512,512")}, kSizes, Residual());
  EXPECT_GT(there.Of("a", Features(1)).factor, 1.02);
  EXPECT_LT(there.Of("a", Features(1)).factor, 1.1);
  EXPECT_GT(here.Of("a", Features(1)).factor, 1.9);
  EXPECT_FALSE(there.Of("a", Features(1)).seconds.has_value());
}

TEST(FamilyTimes, OfManyThoseOfTheSameSizesCount) {
  std::vector<RememberedKernel> kernels;
  for (int i = 0; i < 3 * kMostRelatives; ++i)
    kernels.push_back(Remembered(std::to_string(i), 1, Features(i * 0.01), "512,512"));
  kernels.push_back(Remembered("mine", 2, Features(1)));
  const FamilyTimes times(kernels, kSizes, Residual());
  EXPECT_NEAR(times.Of("mine", Features(1)).factor, 2, 0.1);
  EXPECT_EQ(times.Of("mine", Features(1)).seconds, 2e-3);
}

TEST(FamilyTimes, TimesThatAreNoneAreLeftOut) {
  std::vector<RememberedKernel> kernels(5, Remembered("a", 2, Features(1)));
  kernels[0].seconds = 0;
  kernels[1].seconds = std::numeric_limits<double>::infinity();
  kernels[2].predicted_seconds = -1;
  kernels[3].deviation = NAN;
  kernels[4].seconds = NAN;
  EXPECT_TRUE(FamilyTimes(kernels, kSizes, Residual()).empty());
  EXPECT_TRUE(FamilyTimes().empty());
  // Twice the same is no fault either.
  kernels.assign(2, Remembered("a", 2, Features(1)));
  EXPECT_NEAR(FamilyTimes(kernels, kSizes, Residual()).Of("a", Features(1)).factor, 2, 0.1);
}

TEST(FamilyTimes, AShareOfACoverIsNoTimeOfTheKernelItself) {
  RememberedKernel shared = Remembered("a", 2, Features(1));
  shared.deviation = 0.15;
  const FamilyTimes::Answer answer = FamilyTimes({shared}, kSizes, Residual()).Of("a", Features(1));
  EXPECT_FALSE(answer.seconds.has_value());
  EXPECT_GT(answer.factor, 1.3);
  EXPECT_LT(answer.factor, 2);
}

TEST(LearnFromCover, OneKernelTakesNearlyAll) {
  KernelBelief kernel = {1e-3, kUnmeasuredDeviation};
  LearnFromCover(2e-3, 0, {&kernel});
  EXPECT_NEAR(kernel.seconds, 2e-3, 0.05e-3);
  EXPECT_LT(kernel.deviation, 0.05);
  // What is measured again is averaged, and stays open to change.
  const double before = kernel.seconds;
  LearnFromCover(2.2e-3, 0, {&kernel});
  EXPECT_GT(kernel.seconds, before + 0.03e-3);
  EXPECT_LT(kernel.seconds, 2.2e-3);
  for (int i = 0; i < 50; ++i) LearnFromCover(3e-3, 0, {&kernel});
  EXPECT_NEAR(kernel.seconds, 3e-3, 0.01e-3);
}

// Predictions for a busy host, or for a kernel that the model knows little of, are off by a factor.
TEST(LearnFromCover, OneKernelTakesNearlyAllHoweverFarOffItWas) {
  for (double factor : {1e-4, 0.01, 0.2, 4.0, 26.0, 1e4}) {
    for (double deviation : {0.0, 0.04}) {
      KernelBelief kernel = {1e-3, kUnmeasuredDeviation};
      LearnFromCover(factor * 1e-3, deviation, {&kernel});
      EXPECT_NEAR(kernel.seconds / (factor * 1e-3), 1, 0.05) << factor << ' ' << deviation;
      EXPECT_LE(kernel.deviation, 0.05) << factor << ' ' << deviation;
    }
  }
  // What was measured before takes it for a time beside other work, unless it comes again and again.
  KernelBelief known = {1e-3, 0.015};
  LearnFromCover(26e-3, 0, {&known});
  EXPECT_LT(known.seconds, 1.1e-3);
}

TEST(LearnFromCover, ATimeThatScattersMovesLittle) {
  KernelBelief sure = {1e-3, 0.25}, unsure = sure;
  LearnFromCover(8e-3, 0, {&sure});
  LearnFromCover(8e-3, IntervalDeviation(1e-3, 64e-3), {&unsure});  // from 1 to 64 ms
  EXPECT_GT(sure.seconds, 6.5e-3);
  EXPECT_LT(unsure.seconds, 1.1e-3);
  EXPECT_GT(unsure.deviation, 0.24) << "it is known as little as before";
}

TEST(LearnFromCover, SeveralShareByHowUnsureTheyWere) {
  KernelBelief known = {1e-3, 0.015}, unknown = {1e-3, kUnmeasuredDeviation};
  LearnFromCover(3e-3, 0, {&known, &unknown});
  EXPECT_NEAR(known.seconds, 1e-3, 0.02e-3);
  EXPECT_GT(unknown.seconds, 1.8e-3);
  EXPECT_LT(unknown.seconds, 2e-3);
}

// Beside others a kernel may take longer than alone, each time that the cover is measured.
TEST(LearnFromCover, SharedCoversDoNotMoveWhatWasMeasuredAlone) {
  KernelBelief one = {1e-3, kUnmeasuredDeviation}, two = one;
  for (int pass = 0; pass < 5; ++pass) {
    LearnFromCover(1e-3, 0, {&one});
    LearnFromCover(1e-3, 0, {&two});
    for (int cover = 0; cover < 8; ++cover) LearnFromCover(2.3e-3, 0, {&one, &two});
  }
  EXPECT_NEAR(one.seconds, 1e-3, 1e-6);
  EXPECT_NEAR(two.seconds, 1e-3, 1e-6);
}

TEST(LearnFromCover, SharedCoversStayOpenToChange) {
  KernelBelief one = {1e-3, kUnmeasuredDeviation}, two = one;
  for (int i = 0; i < 100; ++i) LearnFromCover(2e-3, 0, {&one, &two});
  for (int i = 0; i < 20; ++i) LearnFromCover(3e-3, 0, {&one, &two});
  EXPECT_NEAR(one.seconds + two.seconds, 3e-3, 0.05e-3);
  // One of them alone says how much each takes.
  LearnFromCover(1e-3, 0, {&one});
  EXPECT_NEAR(one.seconds, 1e-3, 0.15e-3);
}

TEST(LearnFromCover, AKernelThatRunsSeveralTimesIsOneUnknown) {
  KernelBelief thrice = {1e-3, kUnmeasuredDeviation}, once = thrice;
  LearnFromCover(5e-3, 0, {&thrice, &once, &thrice, &thrice});
  EXPECT_GT(thrice.seconds, 1.25e-3);
  EXPECT_LT(thrice.seconds, 1.34e-3);
  EXPECT_NEAR(once.seconds, 1.1e-3, 0.02e-3);
  EXPECT_LT(thrice.deviation, once.deviation);
  // Nothing else is in the cover, but it runs beside itself.
  KernelBelief twice = {1e-3, kUnmeasuredDeviation};
  LearnFromCover(4e-3, 0, {&twice, &twice});
  EXPECT_NEAR(twice.seconds, 2e-3, 0.1e-3);
  EXPECT_GE(twice.deviation, 0.03);
}

TEST(LearnFromCover, CoversTellTheirKernelsApart) {
  // Three kernels of 1, 2 and 4 ms, seen in pairs alone.
  std::vector<KernelBelief> all(3, {2e-3, kUnmeasuredDeviation});
  const double truth[] = {1e-3, 2e-3, 4e-3};
  for (int turn = 0; turn < 20; ++turn)
    for (const auto& [a, b] : {std::pair{0, 1}, {1, 2}, {0, 2}})
      LearnFromCover(truth[a] + truth[b], 0, {&all[a], &all[b]});
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(all[i].seconds / truth[i], 1, 0.1) << i;
}

TEST(LearnFromCover, TimesThatAreNoneTeachNothing) {
  for (double measured : {0.0, -1.0, std::numeric_limits<double>::infinity(), double(NAN)}) {
    KernelBelief one = {1e-3, 0.1}, two = {1e-3, 0.2};
    LearnFromCover(measured, 0, {&one, &two});
    EXPECT_EQ(one.seconds, 1e-3) << measured;
    EXPECT_EQ(two.deviation, 0.2) << measured;
  }
}

TEST(CostModel, AMeasuredKernelTakesItsTime) {
  FusionImplementation kernel;
  kernel.skeleton = &RowPanelSkeleton();
  kernel.parameters = RowPanelParameters();
  kernel.estimate.memory_seconds = kernel.estimate.total_seconds = 1e-3;
  const CostModel model(DescribedDevice(v1::CUDA));
  // Also where the device's figures have changed since, and with them the prediction.
  RememberedKernel remembered = Remembered("a", 2, FeaturesOf(kernel));
  remembered.predicted_seconds = 3e-3;
  model.Correct(FamilyTimes({remembered}, kSizes, Residual()), "a", FeaturesOf(kernel), &kernel.estimate);
  EXPECT_DOUBLE_EQ(kernel.estimate.total_seconds, 2e-3);
  EXPECT_NEAR(kernel.estimate.total_seconds / kernel.estimate.correction, 1e-3, 1e-9);
  EXPECT_TRUE(kernel.estimate.measured);
}

TEST(CostModel, NoPredictionIsBelowTheFloorOfItsBytes) {
  DeviceDescription device = DescribedDevice(v1::CUDA);
  device.set_copy_bytes_per_second(1e12);
  device.set_l2_bytes(50'000'000);
  FusionImplementation kernel;
  kernel.skeleton = &RowPanelSkeleton();
  kernel.parameters = RowPanelParameters();
  kernel.estimate.memory_seconds = kernel.estimate.total_seconds = 1e-3;
  kernel.estimate.floor_bytes = 8e8;  // 0.8 ms
  const CostModel cold(device), warm(device, 1e9);
  RememberedKernel remembered = Remembered("a", 1e-3, FeaturesOf(kernel));
  FusionImplementation measured = kernel, relative = kernel, back_to_back = kernel;
  cold.Correct(FamilyTimes({remembered}, kSizes, Residual()), "a", FeaturesOf(measured), &measured.estimate);
  EXPECT_DOUBLE_EQ(measured.estimate.total_seconds, 0.8e-3);
  EXPECT_DOUBLE_EQ(measured.estimate.correction, 0.8);
  cold.Correct(FamilyTimes({remembered}, kSizes, Residual()), "b", FeaturesOf(relative), &relative.estimate);
  EXPECT_DOUBLE_EQ(relative.estimate.total_seconds, 0.8e-3);
  // Warm, a part may come from the cache, and copies that spread may have been faster.
  warm.Correct(FamilyTimes({remembered}, kSizes, Residual()), "a", FeaturesOf(back_to_back),
               &back_to_back.estimate);
  EXPECT_LT(back_to_back.estimate.total_seconds, 0.8e-3);
  EXPECT_GT(back_to_back.estimate.total_seconds, 0.4e-3);
  device.set_copy_spread(1);
  EXPECT_DOUBLE_EQ(CostModel(device).FloorSeconds(8e8), 0.4e-3);
  device.set_copy_spread(0);
  EXPECT_LT(CostModel(device).FloorSeconds(1e7), 1e-5) << "the cache may hold so much";
}

TEST(FamilyTimes, ATimeOfAnotherModelIsKnownAndItsErrorIsNot) {
  RememberedKernel old = Remembered("a", 2, Features(1));
  old.predicted_seconds = 0;
  old.jobs = 3;
  old.learned_micros = 7;
  const FamilyTimes times({old}, kSizes, Residual());
  EXPECT_FALSE(times.empty());
  EXPECT_EQ(times.Of("a", Features(1)).seconds, 2e-3);
  EXPECT_EQ(times.Of("a", Features(1)).jobs, 3);
  EXPECT_EQ(times.Of("a", Features(1)).learned_micros, 7);
  EXPECT_FALSE(times.Of("b", Features(1)).seconds.has_value());
  EXPECT_EQ(times.Of("b", Features(1)).factor, 1);
  EXPECT_LT(times.DeviationOf("a", Features(1)), 0.02);
  EXPECT_GT(times.DeviationOf("b", Features(1)), 0.1);
  EXPECT_TRUE(FamilyTimes({old}, "8,8", Residual()).empty());
}

TEST(Doubted, AKernelThatOneJobFoundSlowIsTriedAgain) {
  for (double factor : {1.3, 2.0, 30.0}) {
    // It was predicted to take 1 ms, and one bad job had it at `factor` times that.
    KernelBelief belief = {1e-3, kUnmeasuredDeviation};
    LearnFromCover(factor * 1e-3, 0, {&belief});
    const KernelBelief stored = Doubted(belief, 1e-3);
    EXPECT_EQ(stored.seconds, belief.seconds);
    RememberedKernel kernel = Remembered("a", factor, Features(1));
    kernel.deviation = stored.deviation;
    const FamilyTimes times({kernel}, kSizes, Residual());
    const FamilyTimes::Answer answer = times.Of("a", Features(1));
    EXPECT_FALSE(answer.seconds.has_value()) << factor;
    EXPECT_LE(answer.factor * std::exp(-2 * times.DeviationOf("a", Features(1))), 1) << "it may win yet";
    // The next job that measures it decides, either way.
    for (double next : {1.0, factor}) {
      KernelBelief again = stored;
      LearnFromCover(next * 1e-3, 0, {&again});
      again = Doubted(again, stored.seconds);
      EXPECT_NEAR(again.seconds, next * 1e-3, 0.02e-3 * next) << factor;
      EXPECT_LT(again.deviation, 0.03) << factor;
    }
  }
}

TEST(Doubted, WhatIsAsFastAsPredictedOrFasterIsBelievedAtOnce) {
  for (double factor : {0.2, 0.9, 1.0, 1.2}) {
    const KernelBelief stored = Doubted({factor * 1e-3, 0.015}, 1e-3);
    EXPECT_EQ(stored.deviation, 0.015) << factor;
  }
}

}  // namespace
}  // namespace fusion
