#!/bin/sh
# Makes the two files of a new elementary function from a template, and lists what it still needs.
#   deploy/dev/scaffold_function.sh DOMAIN NAME [DIRECTORY]
# DIRECTORY is the folder of domains (default: library/functions of this checkout). The template suits the
# domain: entrywise, reduce, elements, and a map over a vector for any other.
set -eu

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: $0 DOMAIN NAME [DIRECTORY]" >&2
  exit 2
fi
domain=$1
name=$2
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
functions=${3:-$root/library/functions}

for word in "$domain" "$name"; do
  case $word in
    '' | [0-9]* | *[!a-zA-Z0-9_]*)
      echo "$0: \"$word\" must be an identifier: letters, digits, underscores; no digit first" >&2
      exit 2
      ;;
  esac
done
for existing in "$functions"/*/"$name"; do
  if [ -e "$existing" ]; then
    echo "$0: a function \"$name\" exists: $existing" >&2
    exit 1
  fi
done

folder=$functions/$domain/$name
mkdir -p "$folder"
{
  cat <<HEAD
# proto-file: fusion/v1/catalog.proto
# proto-message: fusion.v1.FunctionDefinition
name: "$name"
domain: "$domain"
documentation: ""
overloads {
HEAD
  case $domain in
    entrywise)
      cat <<BODY
  form: ENTRYWISE
  operands { name: "x" type: "any" }
  result: "any"
  formula: "y = x"
  routine: "${name}_map"
BODY
      ;;
    reduce)
      cat <<BODY
  form: REDUCE
  dimensions { name: "i" kind: PARALLEL }
  dimensions { name: "j" kind: REDUCTION }
  operands { name: "A" type: "matrix[i,j]" }
  result: "vector[i]"
  formula: "y_i = sum_j A_ij"
  monoid: SUM
  term_routine: "${name}_term"
BODY
      ;;
    elements)
      cat <<BODY
  form: ELEMENT
  operands { name: "v" type: "VECTOR<n>" }
  result: "VECTOR<n>"
  formula: "w = v"
  static_parameters: "n"
  implementations { granularity: THREAD threads: ONE routine: "${name}_thread" }
  implementations { granularity: SUB_WARP threads: PER_RESULT_ENTRY routine: "${name}_entry" }
  constraint: "n <= 32"
BODY
      ;;
    *)
      cat <<BODY
  form: MAP
  dimensions { name: "i" kind: PARALLEL }
  operands { name: "x" type: "vector[i]" }
  result: "vector[i]"
  formula: "y = x"
  routine: "${name}_map"
BODY
      ;;
  esac
  printf '  flops: "0"\n}\n'
} > "$folder/function.textproto"

case $domain in
  reduce)
    cat <<BODY
// y_i = sum_j A_ij
template <class T>
FUSION_FN T ${name}_term(T a) {
  return a;
}
BODY
    ;;
  elements)
    cat <<BODY
// w = v
template <class T, int n>
FUSION_FN void ${name}_thread(const T* v, T* result) {
  FUSION_UNROLL
  for (int e = 0; e < n; ++e) result[e] = v[e];
}

template <class T, int n>
FUSION_FN void ${name}_entry(int thread, const T* v, T* result) {
  result[thread] = v[thread];
}
BODY
    ;;
  *)
    cat <<BODY
// y = x
template <class T>
FUSION_FN T ${name}_map(T x) {
  return x;
}
BODY
    ;;
esac > "$folder/routines.h"

tables="routine_table.cc"
if [ "$domain" = elements ]; then tables="element_routine_table.cc"; fi
cat <<TEXT
Made $folder/function.textproto
     $folder/routines.h
Still needed:
  1. function.textproto: documentation (the library does not load without it), operands with their domains, formula, flops, cost,
     rounding;
     library/README.md explains each field.
  2. routines.h: the computation, for float and double; mathematics through library/device/fusion_math.h.
  3. tests/property/functions/$tables: include routines.h and add a row for each routine.
  4. tests/reference/reference_kernels.cc: what the function must compute, written independently.
  5. tests/unit/catalog/catalog_test.cc: the number of functions in FirstContentsAreComplete.
Then build and run property_functions_test and unit_catalog_test.
TEXT
