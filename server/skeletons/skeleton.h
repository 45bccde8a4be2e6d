// A skeleton is the loop structure of a generated kernel, with all that is known of it. Everything that works
// on kernels of any skeleton (the search, the code generator, what is learned) calls these methods; nothing
// outside of a skeleton's folder knows its parameters. A new one takes a folder beside the others, and its
// line in skeletons.cc.
#pragma once

#include <any>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lowering/fusion_code.h"
#include "server/lowering/lowering_context.h"
#include "server/model/residual_features.h"
#include "server/plan/plan.h"
#include "server/skeletons/parameter_archive.h"
#include "server/skeletons/shared/fusion_shape.h"
#include "server/skeletons/shared/loop_roles.h"
#include "server/skeletons/shared/nearest_miss.h"

namespace fusion {

// A set of nodes that kernels are wanted for.
struct FusionProblem {
  const Graph& graph;
  const NodeSet& nodes;
  int max_combinations = 64;   // of the ways to compute each node
  bool deterministic = false;  // nothing whose last bits differ from run to run (sums by atomic additions)
  std::optional<FusionShape> loop;  // the nodes as one loop, where a skeleton has that
  // The nodes as loops one after the other, with a barrier of the whole grid between them. Empty: they are
  // no such loops, or the target has no such barrier.
  std::vector<FusionShape> sweeps;
};

class Skeleton {
 public:
  virtual ~Skeleton() = default;

  // People read the name in descriptions of kernels and in results: "row_panel". Two skeletons may share it.
  virtual const char* name() const = 0;

  // The answer says whether one loop of this skeleton computes the nodes, a convex set, or why not. There is
  // none where they are of a kind that other skeletons are for.
  virtual std::optional<SkeletonAnswer> Loop(const Graph& graph, const NodeSet& nodes) const;
  // Returns the roles of the nodes of a kernel of this skeleton, if its loops go over vectors or rows.
  virtual LoopRoles Roles(const Graph& graph, const NodeSet& nodes) const;
  // Returns the simplest kernel of a loop for which Loop answered: slow, and of any size.
  virtual FusionImplementation Reference(const FusionShape& shape) const;

  // Appends every kernel for the problem that the device can run, each with its estimate without corrections;
  // *miss is told of those that do not fit.
  virtual void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                         NearestMiss* miss) const = 0;

  // Returns the code of the context's implementation. Internal (a bug of the search): its parameters do not
  // fit.
  virtual absl::StatusOr<FusionCode> Lower(LoweringContext& context) const = 0;

  // Corrections of predictions see these of a kernel. They are made from the terms of its estimate without
  // corrections.
  virtual ResidualFeatures Features(const FusionImplementation& kernel) const = 0;
  // Kernels for one set of nodes that differ in more than numbers have different structures: predictions of
  // one structure are wrong together. Structures of skeletons of one name are ordered by these numbers.
  virtual std::vector<int> Structure(const FusionImplementation& kernel) const = 0;

  // Returns a deterministic text for people and logs: "{M1,v1} element T128 E128 staged [thread,thread]".
  virtual std::string Describe(const Graph& graph, const FusionImplementation& kernel) const = 0;
  // Returns as text every parameter and order that makes the code. Measured times are stored under it.
  virtual std::string Variant(const FusionImplementation& kernel) const = 0;

  // Returns the loops of a kernel that is made of several.
  virtual const std::vector<FusionImplementation>& Sweeps(const FusionImplementation& kernel) const;

  // These write the parameters to a message and read them back.
  virtual void Write(const std::any& parameters, ParameterWriter* writer) const = 0;
  virtual std::any Read(ParameterReader* reader) const = 0;
};

// A skeleton whose parameters are of the type given, which lists its fields (parameter_archive.h).
template <typename Parameters>
class SkeletonOf : public Skeleton {
 public:
  void Write(const std::any& parameters, ParameterWriter* writer) const final {
    Parameters copy = std::any_cast<const Parameters&>(parameters);
    copy.Fields(*writer);
  }
  std::any Read(ParameterReader* reader) const final {
    Parameters parameters;
    parameters.Fields(*reader);
    return parameters;
  }
};

}  // namespace fusion
