#include "server/model/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "server/model/cost_model.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

FusionImplementation Kernel(LoadPath path, double seconds = 1e-3) {
  FusionImplementation kernel;
  kernel.skeleton = &RowPanelSkeleton();
  kernel.parameters = RowPanelParameters{
      .threads = 256, .vector_width = 4, .chunks = 4, .threads_per_row = 256, .load_path = path};
  kernel.estimate.memory_seconds = kernel.estimate.total_seconds = seconds;
  return kernel;
}

ResidualObservation Observe(const std::vector<FusionImplementation>& kernels, double measured) {
  ResidualObservation observation{.measured_seconds = measured};
  for (const FusionImplementation& kernel : kernels) {
    observation.kernels.push_back(FeaturesOf(kernel));
    observation.predicted_seconds.push_back(kernel.estimate.total_seconds);
  }
  return observation;
}

TEST(Residual, NothingLearnedCorrectsNothing) {
  EXPECT_EQ(Residual().Correction(FeaturesOf(Kernel(LoadPath::kBulk))), 1);
  EXPECT_EQ(Residual(v1::ResidualStatistics(), v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kBulk))), 1);
  EXPECT_EQ(Residual().Explain(), "");
  EXPECT_EQ(Residual().jobs(), 0);
}

// Bulk copies take 1.3 times as long as predicted; graphs err by factors of their own, candidates by 3 %.
v1::ResidualStatistics Learn(int jobs, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> graph(0, 0.2), own(0, 0.03);
  v1::ResidualStatistics statistics;
  for (int job = 0; job < jobs; ++job) {
    const double common = std::exp(graph(random));
    std::vector<ResidualObservation> candidates;
    for (int i = 0; i < 20; ++i) {
      const LoadPath path = i % 2 ? LoadPath::kBulk : LoadPath::kDirect;
      candidates.push_back(Observe(
          {Kernel(path)}, 1e-3 * common * (path == LoadPath::kBulk ? 1.3 : 1) * std::exp(own(random))));
    }
    AddJob(candidates, &statistics);
  }
  return statistics;
}

TEST(Residual, LearnsWhatTellsCandidatesOfAGraphApart) {
  const Residual residual(Learn(10, 1), v1::HOST);
  EXPECT_NEAR(residual.Correction(FeaturesOf(Kernel(LoadPath::kBulk))) /
                  residual.Correction(FeaturesOf(Kernel(LoadPath::kDirect))),
              1.3, 0.03);
  EXPECT_NEAR(residual.deviation(), 0.03, 0.03);
  EXPECT_NEAR(residual.graph_deviation(), 0.2, 0.1);
  EXPECT_EQ(residual.jobs(), 10);
  EXPECT_EQ(residual.candidates(), 200);
  EXPECT_THAT(residual.Explain(), HasSubstr("bulk copies x1.2"));
}

// Where the model orders candidates well by itself, 20 candidates of each of ten graphs teach little of a
// choice, and all of them how far it is off as a whole.
TEST(Residual, ChoicesTeachLessOnGpusThanOnHosts) {
  const v1::ResidualStatistics statistics = Learn(10, 1);
  const auto of_bulk = [&](v1::Target target) {
    const Residual residual(statistics, target);
    return residual.Correction(FeaturesOf(Kernel(LoadPath::kBulk))) /
           residual.Correction(FeaturesOf(Kernel(LoadPath::kDirect)));
  };
  EXPECT_GT(of_bulk(v1::CUDA), 1);
  EXPECT_LT(of_bulk(v1::CUDA), of_bulk(v1::HOST));
  EXPECT_NEAR(Residual(statistics, v1::CUDA).Correction(FeaturesOf(Kernel(LoadPath::kDirect))) /
                  Residual(statistics, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kDirect))),
              1, 0.2);
}

TEST(Residual, TimesThatScatterTeachLittle) {
  // On a busy machine: every time is 30 times the predicted one, and spans a factor of 50.
  v1::ResidualStatistics quiet = Learn(10, 1), busy = quiet;
  std::vector<ResidualObservation> candidates(20, Observe({Kernel(LoadPath::kBulk)}, 30e-3));
  for (int i = 0; i < 10; ++i) candidates[i] = Observe({Kernel(LoadPath::kDirect)}, 90e-3);
  for (ResidualObservation& candidate : candidates) candidate.deviation = IntervalDeviation(2e-3, 100e-3);
  const auto ratio = [](const v1::ResidualStatistics& statistics) {
    const Residual residual(statistics, v1::HOST);
    return residual.Correction(FeaturesOf(Kernel(LoadPath::kBulk))) /
           residual.Correction(FeaturesOf(Kernel(LoadPath::kDirect)));
  };
  AddJob(candidates, &busy);
  EXPECT_NEAR(ratio(busy), 1.3, 0.05);
  EXPECT_LT(Residual(busy, v1::HOST).graph_deviation(), 0.6);
  v1::ResidualStatistics believed = quiet;
  for (ResidualObservation& candidate : candidates) candidate.deviation = 0;
  AddJob(candidates, &believed);
  EXPECT_LT(ratio(believed), 1.2) << "what it would have taught";
  EXPECT_GT(Residual(believed, v1::HOST).graph_deviation(), 0.6);
}

TEST(Residual, OneGraphsErrorIsNotTakenForThatOfAllGraphs) {
  // Twenty candidates of one job, all twice as slow as predicted: less than half of that is believed of other
  // graphs.
  std::vector<ResidualObservation> candidates(20, Observe({Kernel(LoadPath::kDirect)}, 2e-3));
  v1::ResidualStatistics once;
  AddJob(candidates, &once);
  v1::ResidualStatistics often = once;
  for (int i = 0; i < 20; ++i) AddJob(candidates, &often);
  const double after_one = Residual(once, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kDirect))),
               after_many = Residual(often, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kDirect)));
  EXPECT_GT(after_one, 1.05);
  EXPECT_LT(after_one, 1.8);
  EXPECT_NEAR(after_many, 2, 0.1);
}

// A device whose description is off as a whole: a few graphs tell, where a choice of the search needs more.
TEST(Residual, AFactorOfAllKernelsIsBelievedSooner) {
  v1::ResidualStatistics all, bulk;
  for (int job = 0; job < 3; ++job) {
    std::vector<ResidualObservation> of_all, of_bulk;
    for (int i = 0; i < 20; ++i) {
      const LoadPath path = i % 2 ? LoadPath::kBulk : LoadPath::kDirect;
      of_all.push_back(Observe({Kernel(path)}, 2e-3));
      of_bulk.push_back(Observe({Kernel(path)}, path == LoadPath::kBulk ? 2e-3 : 1e-3));
    }
    AddJob(of_all, &all);
    AddJob(of_bulk, &bulk);
  }
  EXPECT_GT(Residual(all, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kDirect))), 1.8);
  const Residual of_bulk(bulk, v1::HOST);
  EXPECT_LT(of_bulk.Correction(FeaturesOf(Kernel(LoadPath::kBulk))) /
                of_bulk.Correction(FeaturesOf(Kernel(LoadPath::kDirect))),
            1.9);
}

TEST(Residual, KernelsOfACoverShareItsErrorByTheirTimes) {
  // Covers of a plain kernel and a bulk one, of varying shares; the bulk one takes twice as long.
  v1::ResidualStatistics statistics;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> part(0.05, 0.95);
  for (int job = 0; job < 10; ++job) {
    std::vector<ResidualObservation> candidates;
    for (int i = 0; i < 20; ++i) {
      const double bulk = part(random) * 1e-3;
      candidates.push_back(
          Observe({Kernel(LoadPath::kBulk, bulk), Kernel(LoadPath::kDirect, 1e-3 - bulk)}, 1e-3 + bulk));
    }
    AddJob(candidates, &statistics);
  }
  const Residual residual(statistics, v1::HOST);
  // To first order: log(1 + share) instead of share * log(2).
  EXPECT_NEAR(residual.Correction(FeaturesOf(Kernel(LoadPath::kBulk))), 2, 0.15);
  EXPECT_NEAR(residual.Correction(FeaturesOf(Kernel(LoadPath::kDirect))), 1, 0.1);
}

TEST(Residual, CorrectionsAreBoundedAndTimesThatAreNoneLeftOut) {
  v1::ResidualStatistics statistics;
  for (int i = 0; i < 50; ++i) AddJob({Observe({Kernel(LoadPath::kDirect)}, 1.0)}, &statistics);
  EXPECT_DOUBLE_EQ(Residual(statistics, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kDirect))), 3);
  const std::string before = statistics.SerializeAsString();
  AddJob({}, &statistics);
  AddJob(
      {Observe({Kernel(LoadPath::kDirect)}, 0), Observe({Kernel(LoadPath::kDirect)}, -1),
       Observe({Kernel(LoadPath::kDirect)}, NAN), Observe({Kernel(LoadPath::kDirect, 0)}, 1), Observe({}, 1)},
      &statistics);
  EXPECT_EQ(statistics.SerializeAsString(), before);
}

TEST(Residual, ForeignAndDamagedStatisticsAreBegunAnew) {
  const v1::ResidualStatistics good = Learn(3, 2);
  for (int fault = 0; fault < 5; ++fault) {
    v1::ResidualStatistics bad = good;
    if (fault == 0) bad.set_model_version(kCostModelVersion + 1);
    if (fault == 1) bad.set_features(kResidualFeatures - 1);
    if (fault == 2) bad.mutable_within()->mutable_squares()->RemoveLast();
    if (fault == 3) bad.mutable_between()->set_products(0, NAN);
    if (fault == 4) bad.mutable_within()->set_weight(-1);
    EXPECT_EQ(Residual(bad, v1::HOST).jobs(), 0) << fault;
    EXPECT_EQ(Residual(bad, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kBulk))), 1) << fault;
    AddJob({Observe({Kernel(LoadPath::kDirect)}, 1e-3)}, &bad);
    EXPECT_EQ(bad.jobs(), 1) << fault;
    EXPECT_EQ(Residual(bad, v1::HOST).jobs(), 1) << fault;
  }
}

TEST(Residual, FiniteSumsWithoutSenseCorrectNothing) {
  v1::ResidualStatistics statistics;
  const std::vector<FusionImplementation> kernels = {Kernel(LoadPath::kBulk)};
  AddJob({Observe(kernels, 1e-3), Observe(kernels, 2e-3)}, &statistics);
  for (double& value : *statistics.mutable_within()->mutable_squares()) value = 1e300;
  for (double& value : *statistics.mutable_within()->mutable_products()) value = -1e308;
  statistics.mutable_within()->set_total(1e308);
  const Residual residual(statistics, v1::HOST);
  EXPECT_TRUE(std::isfinite(residual.deviation())) << residual.deviation();
  EXPECT_TRUE(std::isfinite(residual.graph_deviation())) << residual.graph_deviation();
  EXPECT_TRUE(std::isfinite(residual.Correction(FeaturesOf(kernels[0]))))
      << residual.Correction(FeaturesOf(kernels[0]));
}

// What is kept in the L2 cache, and vectors that one block keeps, are choices of the search: each is learned
// of by itself.
TEST(Residual, ChoicesOfTheSearchAreToldApart) {
  FusionImplementation kept = Kernel(LoadPath::kDirect), one_block = kept, vectors = kept;
  kept.As<RowPanelParameters>().l2_percent = 40;
  vectors.skeleton = &VectorSkeleton();
  vectors.parameters = VectorParameters{.threads = 256, .vector_width = 4};
  one_block.skeleton = &BlockVectorSkeleton();
  one_block.parameters = BlockVectorParameters{.threads = 256, .vector_width = 4, .chunks = 4};
  const std::vector<std::vector<FusionImplementation>> pairs = {{Kernel(LoadPath::kDirect), kept},
                                                                {vectors, one_block}};
  for (const std::vector<FusionImplementation>& pair : pairs) {
    v1::ResidualStatistics statistics;
    for (int i = 0; i < 50; ++i) {
      std::vector<ResidualObservation> job;  // with as many candidates as jobs have
      for (int k = 0; k < 10; ++k)
        for (int side : {0, 1}) job.push_back(Observe({pair[side]}, side == 0 ? 1e-3 : 0.8e-3));
      AddJob(job, &statistics);
    }
    const Residual residual(statistics, v1::HOST);
    EXPECT_NEAR(residual.Correction(FeaturesOf(pair[1])) / residual.Correction(FeaturesOf(pair[0])), 0.8,
                0.05);
  }
}

TEST(Residual, OlderJobsCountLess) {
  v1::ResidualStatistics statistics;
  for (int i = 0; i < 300; ++i) AddJob({Observe({Kernel(LoadPath::kDirect)}, 2e-3)}, &statistics);
  for (int i = 0; i < 600; ++i) AddJob({Observe({Kernel(LoadPath::kDirect)}, 1e-3)}, &statistics);
  EXPECT_LT(Residual(statistics, v1::HOST).Correction(FeaturesOf(Kernel(LoadPath::kDirect))), 1.06);
}

TEST(CostModel, CorrectionsChangeTheTotalAlone) {
  const CostModel model(DescribedDevice(v1::CUDA), 0, Residual(Learn(10, 1), v1::HOST));
  FusionImplementation kernel = Kernel(LoadPath::kBulk);
  model.Correct(FeaturesOf(kernel), &kernel.estimate);
  EXPECT_NE(kernel.estimate.correction, 1);
  EXPECT_DOUBLE_EQ(kernel.estimate.total_seconds, 1e-3 * kernel.estimate.correction);
  EXPECT_DOUBLE_EQ(kernel.estimate.memory_seconds, 1e-3);
  EXPECT_THAT(kernel.estimate.ToString(), HasSubstr(" learned"));
  // What is learned from corrected predictions is what would be from others.
  EXPECT_EQ(FeaturesOf(kernel), FeaturesOf(Kernel(LoadPath::kBulk)));
}

}  // namespace
}  // namespace fusion
