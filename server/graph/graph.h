// The dataflow graph of elementary functions (Fousek 2010, section 4.2.1), type checked: every name is
// resolved, every overload chosen, every index map bound to sizes.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/utf8.h"
#include "fusion/v1/program.pb.h"
#include "library/catalog/catalog.h"
#include "library/catalog/elementary_function.h"
#include "library/catalog/type.h"

namespace fusion {

// Strong integer ids: dense, from 0.
struct NodeId {
  int value = -1;
  friend auto operator<=>(NodeId, NodeId) = default;
};
struct ValueId {
  int value = -1;
  friend auto operator<=>(ValueId, ValueId) = default;
};

inline bool Contains(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Something that nodes read: an input, the result of a node, or a literal.
struct Value {
  ValueId id;
  std::string name;  // literals: their text
  Type type;
  std::optional<NodeId> producer;
  std::vector<NodeId> consumers;  // each once, ascending
  bool is_input = false;
  bool is_output = false;
  std::optional<double> literal;  // scalars written in place
  // An output has the input whose memory it takes, and that input the output.
  std::optional<ValueId> memory_of, overwritten_by;
  // Entries from one row of a matrix to the next in memory; absent: its columns.
  std::optional<Extent> leading_dimension;
  v1::InputValues values;  // what is asked of an input's values in measurements, if anything
  SourcePosition position;
};

// Returns the entries that a value takes in memory: those of its type, and what lies between the rows of a
// matrix with a leading dimension.
int64_t StorageEntries(const Value& value, const SizeValues& sizes);
int64_t StorageBytes(const Value& value, const SizeValues& sizes);
// Returns the type as declared in a .fuse file: "matrix[m,n,ld=lda]".
std::string DeclaredType(const Value& value);

// One dimension of a node's index space, bound to a size.
struct NodeDimension {
  Extent extent;
  v1::DimensionKind kind = v1::PARALLEL;
  friend bool operator==(const NodeDimension&, const NodeDimension&) = default;
};

// A call of an elementary function.
struct Node {
  NodeId id;
  const ElementaryFunction* function = nullptr;
  const Overload* overload = nullptr;
  std::vector<ValueId> operands;
  ValueId result;
  // ENTRYWISE: the dimensions of the result, all parallel (element entries are not dimensions).
  // ELEMENT, and ENTRYWISE on elements: {elements}.
  std::vector<NodeDimension> dimensions;
  // For each operand the dimension (position in `dimensions`) that each of its extents follows; {} for
  // scalars.
  std::vector<std::vector<int>> operand_maps;
  std::vector<int> result_map;
  StaticParameters static_parameters;  // ELEMENT
  SourcePosition position;

  bool mapped() const { return !dimensions.empty() && dimensions[0].extent.name == kElementsSize; }
  bool is_reduction() const { return overload->form == v1::REDUCE; }
};

// A named size with its value at submission, if any.
struct Size {
  std::string name;
  std::optional<int64_t> default_value;
  bool operator==(const Size&) const = default;
};

// Immutable once built (server/parse builds it). Keeps its catalog alive.
class Graph {
 public:
  Graph(std::string name, std::shared_ptr<const Catalog> catalog, std::vector<Size> sizes,
        std::vector<Value> values, std::vector<Node> nodes, std::vector<ValueId> inputs,
        std::vector<ValueId> outputs);

  const std::string& name() const { return name_; }
  const Catalog& catalog() const { return *catalog_; }
  const std::shared_ptr<const Catalog>& shared_catalog() const { return catalog_; }
  const std::vector<Size>& sizes() const { return sizes_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }  // in a topological order: producers first
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const Value& value(ValueId id) const { return values_[id.value]; }
  int node_count() const { return static_cast<int>(nodes_.size()); }

  // Nodes that come after `id`, and before it; each once, ascending. They read its result, or their result
  // takes the memory of an input that it reads.
  const std::vector<NodeId>& successors(NodeId id) const { return successors_[id.value]; }
  const std::vector<NodeId>& predecessors(NodeId id) const { return predecessors_[id.value]; }

  // Floor (design, vocabulary): bytes of each input read once and each output written once.
  int64_t FloorBytes(const SizeValues& sizes) const;

 private:
  std::string name_;
  std::shared_ptr<const Catalog> catalog_;
  std::vector<Size> sizes_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::vector<NodeId>> successors_;
  std::vector<std::vector<NodeId>> predecessors_;
};

// Returns the content hash of a graph: structure, types, functions with their routines; not the names of
// variables, not positions, not the values of sizes, nor what is asked of the values of inputs. "sha256:<16
// hex digits>".
std::string GraphHash(const Graph& graph);

}  // namespace fusion
